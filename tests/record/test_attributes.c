/* test_attributes.c -- the index of many attributes: nodes as HDF5 writes them are let through, of one entry that
 * is said to be shared none is; a file with one is refused and does not crash. */
#define _GNU_SOURCE /* memmem */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/record/h5_attributes.h"
#include "../../src/record/h5_heaps.h"
#include "../../src/record/h5_sum.h"
#include "../check.h"
#include "damage.h"

enum { NODE = 512, FEW = 20, MANY = 200 }; /* in one leaf, in leaves below an inner node */

/* With an index by name and one by the order in which they were made. */
static void make(const char *path, int attributes) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), space = H5Screate(H5S_SCALAR),
          both = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    H5Pset_attr_creation_order(both, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, both, access);
    assert_true(file >= 0);
    for (int i = 0; i < attributes; i++) {
        char name[32];
        snprintf(name, sizeof name, "attribute %d", i);
        hid_t made = H5Acreate2(file, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(made >= 0 && H5Aclose(made) >= 0);
    }
    assert_true(H5Fclose(file) >= 0);
    H5Sclose(space), H5Pclose(access), H5Pclose(both);
}

static const char *temporary(void) {
    static char path[600];
    snprintf(path, sizeof path, "%s/attributes.h5", check_temporary());
    return path;
}

/* The nodes of the index, of one kind. */
static int nodes_of(char *bytes, size_t size, const char *kind, unsigned char *node[64]) {
    int count = 0;
    for (size_t at = 0; at + NODE <= size && count < 64; at++)
        if (!memcmp(bytes + at, kind, 4)) node[count++] = (unsigned char *)bytes + at;
    return count;
}

/* The first and the last entry; the sum is made right again, else the node is HDF5's to refuse. */
static void share(unsigned char *node, size_t entry, size_t step, size_t more) {
    size_t end = 6 + more;
    while (h5_sum(node, end) !=
           (node[end] | node[end + 1] << 8 | node[end + 2] << 16 | (uint32_t)node[end + 3] << 24)) {
        end += step;
        assert_true(end + 4 <= NODE);
    }
    const size_t count = (end - 6 - more) / step, at[] = {0, count - 1};
    assert_true(count > 0);
    for (int i = 0; i < 2; i++) {
        unsigned char copy[NODE];
        memcpy(copy, node, NODE);
        copy[6 + at[i] * entry + 8] |= 2;
        assert_true(h5_attributes_are_own(copy, NODE));
        const uint32_t sum = h5_sum(copy, end);
        for (int k = 0; k < 4; k++) copy[end + (size_t)k] = (unsigned char)(sum >> 8 * k);
        assert_false(h5_attributes_are_own(copy, NODE));
    }
}

static void nodes(void **state) {
    (void)state;
    static const struct {
        int attributes;
        const char *kind;
        size_t more;
    } cases[] = {{FEW, "BTLF", 0}, {MANY, "BTLF", 0}, {MANY, "BTIN", 9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size;
        unsigned char *node[64];
        make(temporary(), cases[i].attributes);
        char *bytes = damage_load(temporary(), &size);
        const int count = nodes_of(bytes, size, cases[i].kind, node);
        int by_name = 0;
        for (int k = 0; k < count; k++) {
            const size_t entry = node[k][5] == 8 ? 17 : 13;
            assert_true(h5_attributes_are_own(node[k], NODE));
            share(node[k], entry, entry + cases[i].more, cases[i].more);
            by_name += entry == 17;
        }
        assert_true(by_name > 0 && by_name < count);
        free(bytes);
    }
}

static void other_bytes(void **state) {
    (void)state;
    static const unsigned char links[NODE] = "BTLF\0\5", none[NODE] = "BTHD\0\x08";
    assert_true(h5_attributes_are_own("BT", 2));
    assert_true(h5_attributes_are_own(links, NODE));
    assert_true(h5_attributes_are_own(none, NODE));
}

static void heap_refused(char *heap, int at, int8_t value) {
    const char was = heap[at];
    heap[at] = value;
    assert_false(h5_heap_is_small(heap, 146));
    assert_true(h5_heap_is_small(heap, 100));
    heap[at] = was;
    assert_true(h5_heap_is_small(heap, 146));
}

/* Their heap: as HDF5 made it, and with a first or a largest block that nobody has, or that are no powers of
 * two; with a first one larger than the largest; with rows of no or of three blocks. */
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(nodes), cmocka_unit_test(heaps),
                                       cmocka_unit_test(other_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
