/* test_h5_trees.c -- indices of many attributes and links. Those that HDF5 writes are accepted.
 * Rejected: headers with impossible values, nodes with too many entries for themselves or the
 * header, attributes marked as shared. Heaps likewise. */
#define _GNU_SOURCE /* memmem */
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hdf5/v1_10/h5_checks.h"
#include "journal/positional_io.h"
#include "testing/check.h"
#include "testing/damage.h"

/* Numbers of entries: in one leaf; in leaves below an inner node; below two levels of inner
 * nodes. */
enum { NODE = 512, HEADER = 38, FEW = 20, MANY = 200, MOST = 1500 };

/* Writes attributes and links of the root. Each kind has one index by name and one by creation
 * order. */
static void make(const char *path, int count) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), space = H5Screate(H5S_SCALAR),
          both = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    H5Pset_attr_creation_order(both, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    H5Pset_link_creation_order(both, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, both, access);
    assert_true(file >= 0);
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "thing %d", i);
        hid_t made = H5Acreate2(file, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(made >= 0 && H5Aclose(made) >= 0);
        assert_true(H5Lcreate_soft("/nothing", file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    }
    assert_true(H5Fclose(file) >= 0);
    H5Sclose(space), H5Pclose(access), H5Pclose(both);
}

static const char *temporary(void) {
    static char path[600];
    snprintf(path, sizeof path, "%s/trees.h5", check_temporary());
    return path;
}

/* The file in memory and open: put() writes changes to both. */
typedef struct image {
    unsigned char *bytes;
    size_t size;
    int fd;
} image;

static image image_make(int count) {
    make(temporary(), count);
    image f = {.fd = open(temporary(), O_RDWR)};
    f.bytes = (unsigned char *)damage_load(temporary(), &f.size);
    assert_true(f.fd >= 0 && f.bytes);
    return f;
}

static void image_free(image *f) {
    close(f->fd);
    free(f->bytes);
}

/* Returns the next header after `from`; NULL: none. */
static unsigned char *next_header(const image *f, const unsigned char *from) {
    const unsigned char *at = from ? from + 4 : f->bytes;
    return memmem(at, (size_t)(f->bytes + f->size - at), "BTHD", 4);
}

static uint64_t number(const unsigned char *at, int bytes) {
    return positional_io_number(at, bytes);
}

static unsigned char *root_of(const image *f, const unsigned char *header) {
    return f->bytes + number(header + 16, 8);
}

static bool is_sound(const image *f, const unsigned char *header) {
    return h5_tree_is_sound(NULL, f->fd, header, HEADER, f->size);
}

static void check_headers(int count, int depth) {
    static const struct {
        int at;
        unsigned char value;
    } wrong[] = {{5, 0},  {5, 7},   {5, 10}, {6, 1},  {7, 4},   {9, 101},
                 {10, 0}, {10, 18}, {12, 9}, {13, 1}, {24, 60}, {25, 1}};
    image f = image_make(count);
    int seen = 0, types = 0;
    for (unsigned char *h = next_header(&f, NULL); h; h = next_header(&f, h)) {
        assert_int_equal(number(h + 12, 2), depth);
        assert_int_equal(number(h + 26, 8), count);
        assert_true(is_sound(&f, h));
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            const unsigned char was = h[wrong[i].at];
            h[wrong[i].at] = wrong[i].value;
            if (is_sound(&f, h))
                fail_msg("byte %d of a header may be %d", wrong[i].at, wrong[i].value);
            assert_true(
                h5_tree_is_sound(NULL, f.fd, h, HEADER - 1, f.size)); /* too short for a header */
            h[wrong[i].at] = was;
        }
        h[26]--;
        assert_false(is_sound(&f, h)); /* fewer than the nodes have */
        h[26] += 2;
        assert_true(is_sound(&f, h)); /* nodes without a valid checksum, for example */
        h[26]--;
        assert_true(depth == 0 || !h5_tree_is_sound(NULL, f.fd, h, HEADER,
                                                    0)); /* more nodes than the file has room for */
        seen++, types |= 1 << h[5];
    }
    assert_int_equal(seen, 4);
    assert_int_equal(types, 1 << 5 | 1 << 6 | 1 << 8 | 1 << 9);
    image_free(&f);
}

static void headers(void **state) {
    (void)state;
    check_headers(FEW, 0);
    check_headers(MANY, 1);
    check_headers(MOST, 2);
}

static size_t entry_of(const unsigned char *header) {
    return (size_t)number(header + 10, 2);
}

/* Returns the address of the node's valid checksum. */
static unsigned char *sum_of(unsigned char *node) {
    for (size_t end = 6; end + 4 <= NODE; end++)
        if (h5_checksum(node, end) == number(node + end, 4)) return node + end;
    fail_msg("no sum");
    return NULL;
}

static void put(const image *f, const unsigned char *node) {
    assert_int_equal(pwrite(f->fd, node, NODE, node - f->bytes), NODE);
}

/* Alters one byte of a node. HDF5 rejects a wrong checksum, statrec the value. */
static void check_byte(const image *f, const unsigned char *header, unsigned char *node,
                       unsigned char *at, unsigned char value) {
    unsigned char kept[NODE], *sum = sum_of(node);
    memcpy(kept, node, NODE);
    *at = value;
    put(f, node);
    assert_true(is_sound(f, header));
    const uint32_t right = h5_checksum(node, (size_t)(sum - node));
    for (int k = 0; k < 4; k++) sum[k] = (unsigned char)(right >> 8 * k);
    put(f, node);
    assert_false(is_sound(f, header));
    memcpy(node, kept, NODE);
    put(f, node);
    assert_true(is_sound(f, header));
}

/* The first and the last entry of a node of n. */
static void check_sharing(const image *f, const unsigned char *header, unsigned char *node,
                          size_t n) {
    if (header[5] < 8) return; /* links */
    for (int last = 0; last < 2; last++) {
        unsigned char *flags = node + 6 + (last ? n - 1 : 0) * entry_of(header) + 8;
        check_byte(f, header, node, flags, *flags | 2);
    }
}

/* An inner node: its own entries, the counts that its pointers give, and its children. */
static void check_node(const image *f, const unsigned char *header, unsigned char *node, size_t n,
                       int depth) {
    check_sharing(f, header, node, n);
    if (depth == 0) return;
    const size_t pointer = depth == 1 ? 9 : 11;
    for (size_t i = 0; i <= n; i += n) {
        unsigned char *at = node + 6 + n * entry_of(header) + i * pointer;
        check_byte(f, header, node, at + 8, (unsigned char)(502 / entry_of(header) + 1));
        if (depth > 1)
            check_byte(f, header, node, at + 8, (unsigned char)(502 / (entry_of(header) + 9) + 1));
        check_node(f, header, f->bytes + number(at, 8), at[8], depth - 1);
    }
}

static void nodes(void **state) {
    (void)state;
    static const int counts[] = {FEW, MANY, MOST};
    for (int i = 0; i < 3; i++) {
        image f = image_make(counts[i]);
        for (unsigned char *h = next_header(&f, NULL); h; h = next_header(&f, h))
            check_node(&f, h, root_of(&f, h), (size_t)number(h + 24, 2), (int)number(h + 12, 2));
        image_free(&f);
    }
}

static void other_bytes(void **state) {
    (void)state;
    static const unsigned char leaf[NODE] = "BTLF\0\x05", none[HEADER] = "BTHD\0\x08\0\2\0\0\x11";
    assert_true(h5_tree_is_sound(NULL, -1, "BT", 2, 0));
    assert_true(h5_tree_is_sound(NULL, -1, leaf, NODE, 0));
    assert_true(h5_tree_is_sound(NULL, -1, none, HEADER, 0)); /* empty */
}

/* Nodes that cannot be read, or are after the end of the file: HDF5 reports them. */
static void unreadable(void **state) {
    (void)state;
    image f = image_make(FEW);
    unsigned char *h = next_header(&f, NULL);
    assert_true(h5_tree_is_sound(NULL, -1, h, HEADER, f.size));
    h[16 + 5] = 1; /* the root's address */
    assert_true(is_sound(&f, h));
    image_free(&f);
}

static void heap_refused(char *heap, int at, int8_t value) {
    const char was = heap[at];
    heap[at] = value;
    assert_false(h5_heap_is_small(heap, 146));
    assert_true(h5_heap_is_small(heap, 100));
    heap[at] = was;
    assert_true(h5_heap_is_small(heap, 146));
}

/* Their heap, as HDF5 made it; then with impossible values. First and largest block: not in the
 * file, no power of two, or the first larger than the largest. Rows of no block or of three. */
static void heaps(void **state) {
    (void)state;
    size_t size;
    make(temporary(), FEW);
    char *bytes = damage_load(temporary(), &size), *heap = memmem(bytes, size, "FRHP", 4);
    assert_true(heap && h5_heap_is_small(heap, 146));
    assert_true(heap[110] == 4 && heap[112 + 1] == 4 &&
                heap[120 + 2] == 1); /* 4 blocks, 1,024 bytes, 64 KiB */
    heap_refused(heap, 112 + 3, 2), heap_refused(heap, 120 + 3, 2);
    heap_refused(heap, 112 + 0, 1), heap_refused(heap, 120 + 2, 101);
    heap_refused(heap, 112 + 1, 0), heap_refused(heap, 120 + 2, 0);
    heap_refused(heap, 110, 0), heap_refused(heap, 110, 3);
    heap[112 + 1] = 0, heap[112 + 2] = 2; /* 128 KiB, a power of two */
    assert_false(h5_heap_is_small(heap, 146));
    heap[120 + 2] = 0, heap[120 + 3] = 1; /* 16 MiB */
    assert_true(h5_heap_is_small(heap, 146));
    heap[120 + 3] = 2;
    assert_false(h5_heap_is_small(heap, 146));
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(headers), cmocka_unit_test(nodes),
                                       cmocka_unit_test(heaps), cmocka_unit_test(other_bytes),
                                       cmocka_unit_test(unreadable)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
