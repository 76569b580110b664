/* h5_trees.c -- checks the index (version 2 B-tree) of an object with many attributes or links, all
 * nodes when HDF5 reads the header. HDF5 1.10
 * - allocates a node of any size in the header;
 * - reads as many entries of a node as its pointer says, even beyond the node;
 * - lists links in a table of the header's size, although the nodes may contain more links;
 * - follows an entry marked as shared into a heap that the file may lack.
 *
 * HDF5 File Format Specification 3.0, III.A.2:
 *   header  "BTHD", version [1], type [1], bytes of a node [4], of an entry [2], depth [2], two
 *           fill ratios [1] [1], address of the root [8], its entries [2], all entries [8],
 *           checksum [4]
 *   node    "BTLF" or "BTIN", version [1], type [1], n entries, in an inner node n + 1 pointers,
 *           checksum [4]
 *   pointer address [8], entries of the child [1], if that is an inner node all entries below it
 * An entry of an attribute: id [8], flags [1], order [4], by name (type 8) hash [4].
 *
 * HDF5 writes nodes of NODE bytes for links (types 5, 6), attributes (8, 9) and their large values
 * (1 to 4). A run file has no index of type 7, 10 or 11. A node with a wrong checksum passes: HDF5
 * rejects it or reads it again.
 */
#include "hdf5/v1_10/h5_checks.h"

#include <string.h>

#include "journal/positional_io.h"

enum { NODE = 512, HEAD = 6, SUM = 4, ADDRESS = 8, DEEPEST = 8 };
/* Entries of attributes: the offset of their flags, one of the flags, the types of the index. */
enum { FLAGS = 8, SHARED = 2, BY_NAME = 8, BY_ORDER = 9 };

/* Bytes of an entry by type; 0: unknown type. */
static const unsigned char entry_size[] = {0, 24, 36, 16, 28, 11, 15, 0, 17, 13};

/* Capacity of the nodes of a level; leaves are level 0. */
typedef struct level {
    size_t pointer;   /* bytes of one to a child; 0: leaves have none */
    uint64_t entries; /* entries of a node */
    uint64_t below;   /* entries of a node and all below it */
} level;

typedef struct tree {
    const trailer *e;
    int fd, type;
    size_t entry; /* bytes */
    level level[DEEPEST + 1];
    uint64_t nodes;   /* left, so that loops end: at first as many as fit into the file */
    uint64_t entries; /* found */
} tree;

static size_t bytes_of(uint64_t n) {
    size_t bytes = 1;
    while (n >>= 8) bytes++;
    return bytes;
}

/* As H5B2__hdr_init. */
static void measure_levels(tree *t) {
    t->level[0].entries = t->level[0].below = (NODE - HEAD - SUM) / t->entry;
    for (int i = 1; i <= DEEPEST; i++) {
        const level *child = &t->level[i - 1];
        level *l = &t->level[i];
        l->pointer = ADDRESS + 1 + (i > 1 ? bytes_of(child->below) : 0);
        l->entries = (NODE - HEAD - SUM - l->pointer) / (t->entry + l->pointer);
        l->below = (l->entries + 1) * child->below + l->entries;
    }
}

static bool none_is_shared(const tree *t, const unsigned char *node, size_t n) {
    if (t->type != BY_NAME && t->type != BY_ORDER) return true;
    for (size_t i = 0; i < n; i++)
        if (node[HEAD + i * t->entry + FLAGS] & SHARED) return false;
    return true;
}

/* Checks a node of n entries, which fit, and all nodes below it. */
static bool check_node(tree *t, uint64_t at, size_t n, int depth) {
    unsigned char node[NODE];
    const level *l = &t->level[depth];
    const size_t pointers = HEAD + n * t->entry,
                 end = pointers + (depth ? (n + 1) * l->pointer : 0);
    if (t->nodes-- == 0) return false;
    if (!positional_io_read(t->fd, at, node, sizeof node)) return true;
    if (t->e) trailer_patch(t->e, at, node, sizeof node);
    if (h5_checksum(node, end) != positional_io_number(node + end, SUM)) return true;
    t->entries += n;
    if (!none_is_shared(t, node, n)) return false;
    for (size_t i = 0; depth && i <= n; i++) {
        const unsigned char *pointer = node + pointers + i * l->pointer;
        const size_t of_child = pointer[ADDRESS];
        if (of_child > t->level[depth - 1].entries) return false;
        if (!check_node(t, positional_io_number(pointer, ADDRESS), of_child, depth - 1))
            return false;
    }
    return true;
}

bool h5_tree_is_sound(const trailer *e, int fd, const void *bytes, size_t size, uint64_t end) {
    enum { NODE_AT = 6, ENTRY_AT = 10, DEPTH_AT = 12 };
    enum { ROOT_AT = 16, COUNT_AT = 24, ALL_AT = 26, END = 34 };
    const unsigned char *h = bytes;
    if (size < END + SUM || memcmp(h, "BTHD", 4) != 0) return true;
    tree t = {.e = e, .fd = fd, .type = h[5], .nodes = end / NODE + 1};
    t.entry = t.type < (int)sizeof entry_size ? entry_size[t.type] : 0;
    const uint64_t depth = positional_io_number(h + DEPTH_AT, 2),
                   n = positional_io_number(h + COUNT_AT, 2);
    if (!t.entry || positional_io_number(h + NODE_AT, 4) != NODE ||
        positional_io_number(h + ENTRY_AT, 2) != t.entry || depth > DEEPEST)
        return false;
    measure_levels(&t);
    if (n > t.level[depth].entries) return false;
    return n == 0 || (check_node(&t, positional_io_number(h + ROOT_AT, ADDRESS), n, (int)depth) &&
                      t.entries <= positional_io_number(h + ALL_AT, 8));
}
