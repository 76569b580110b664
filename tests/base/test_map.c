/* Maps number keys, and vectors grow; every failing allocation leaves them unchanged. */
#include <stdio.h>
#include <string.h>

#include "base/containers/map.h"
#include "base/containers/vector.h"
#include "testing/check.h"
#include "testing/failing_malloc.h"

enum { KEYS = 20000 };

/* Key i: bytes of different lengths, including zero bytes. */
static size_t make_key(char key[64], int i) {
    int length = snprintf(key, 64, "%.*s%d", i % 23, "abcdefghijklmnopqrstuvwx", i);
    key[length / 2] = i % 3 ? key[length / 2] : 0;
    return (size_t)length;
}

/* The numbers given by a linear search. */
static void numbers_in_order(void **state) {
    (void)state;
    map m = {0};
    char key[64], other[64];
    int64_t number[KEYS], next = 0;
    assert_int_equal(map_find(&m, "a", 1), -1);
    for (int i = 0; i < KEYS; i++) {
        size_t length = make_key(key, i);
        number[i] = map_add(&m, key, length);
        if (number[i] == next)
            next++;
        else
            assert_memory_equal(map_text(&m, number[i], NULL), key, length);
    }
    assert_int_equal(m.count, next);
    assert_true(next > KEYS / 2);
    for (int i = 0; i < KEYS; i++) {
        size_t length = make_key(key, i), found;
        assert_int_equal(map_add(&m, key, length), number[i]);
        assert_int_equal(map_find(&m, key, length), number[i]);
        const char *text = map_text(&m, number[i], &found);
        assert_int_equal(found, length);
        assert_memory_equal(text, key, length + 1 - (text[length] == 0));
        assert_int_equal(text[length], 0);
        snprintf(other, sizeof other, "no%.*s", (int)length, key);
        assert_int_equal(map_find(&m, other, length + 2), -1);
    }
    map_free(&m);
    assert_int_equal(m.count, 0);
}

/* Keys that differ in one byte, or in length only, are different keys. */
static void every_byte_counts(void **state) {
    (void)state;
    map m = {0};
    char key[40] = {0};
    int64_t next = 0;
    for (size_t length = 0; length <= 24; length++) {
        memset(key, 'x', length);
        assert_int_equal(map_add(&m, key, length), next++);
        for (size_t i = 0; i < length; i++) {
            key[i] = 'y';
            assert_int_equal(map_add(&m, key, length), next++);
            key[i] = 'x';
        }
    }
    assert_int_equal(m.count, next);
    map_free(&m);
}

static void numbers_as_keys(void **state) {
    (void)state;
    map m = {0};
    assert_int_equal(map_find_number(&m, 0), -1);
    for (uint64_t i = 0; i < KEYS; i++)
        assert_int_equal(map_add_number(&m, i << 32 | (i * i & 0xff)), i);
    for (uint64_t i = 0; i < KEYS; i++) {
        const uint64_t key = i << 32 | (i * i & 0xff);
        assert_int_equal(map_add_number(&m, key), i);
        assert_int_equal(map_find_number(&m, key), i);
        assert_int_equal(map_find_number(&m, key | 1 << 16), -1);
        assert_true(map_number(&m, (int64_t)i) == key);
    }
    map_free(&m);
}

/* Keeps the memory: no allocation follows. */
static void cleared_maps_are_empty(void **state) {
    (void)state;
    map m = {0};
    char key[64];
    if (!failing_malloc_there()) skip();
    for (int round = 0; round < 3; round++) {
        failing_malloc_begin(round ? 0 : -1);
        for (int i = round; i < 1000; i++) {
            size_t length = make_key(key, i);
            assert_int_equal(map_find(&m, key, length), -1);
            assert_int_equal(map_add(&m, key, length), i - round);
        }
        map_clear(&m);
        failing_malloc_end();
        assert_int_equal(m.count, 0);
        assert_int_equal(map_find(&m, key, make_key(key, 500)), -1);
    }
    map_free(&m);
}

/* Adds keys while allocation n fails; adds the failed key again. */
static int64_t add_with_failure(map *m, long n, bool numbers) {
    int64_t failures = 0;
    char key[64];
    for (int i = 0; i < 3000; i++) {
        size_t length = (size_t)snprintf(key, sizeof key, "%dkey", i);
        int64_t number = -1;
        if (i == 0) failing_malloc_begin(n);
        while ((number = numbers ? map_add_number(m, (uint64_t)i) : map_add(m, key, length)) < 0) {
            assert_int_equal(m->count, i);
            assert_int_equal(numbers ? map_find_number(m, (uint64_t)i) : map_find(m, key, length),
                             -1);
            failures++;
        }
        assert_int_equal(number, i);
    }
    return failures;
}

static void failing_allocations(void **state) {
    (void)state;
    if (!failing_malloc_there()) skip();
    for (int numbers = 0; numbers < 2; numbers++) {
        int64_t failures = 1, n = 0;
        for (; failures; n++) {
            map m = {0};
            failures = add_with_failure(&m, (long)n, numbers);
            assert_in_range(failures, 0, 1);
            map_free(&m);
            assert_int_equal(failing_malloc_end(), 0);
        }
        assert_true(n > 10);
    }
}

static void vectors_grow(void **state) {
    (void)state;
    double *value = NULL;
    int64_t capacity = 0, moves = 0;
    for (int64_t i = 0; i < 100000; i++) {
        const int64_t before = capacity;
        assert_true(vector_reserve(&value, &capacity, i + 1, sizeof *value));
        assert_true(capacity > i);
        moves += capacity != before;
        value[i] = (double)i;
    }
    for (int64_t i = 0; i < 100000; i++) assert_true(value[i] == (double)i);
    assert_in_range(moves, 5, 20);
    assert_true(vector_reserve(&value, &capacity, 1000000, sizeof *value));
    assert_true(capacity >= 1000000);
    double *const old = value;
    const int64_t most = PTRDIFF_MAX / (int64_t)sizeof *value;
    capacity = 1000000;
    assert_false(vector_reserve(&value, &capacity, most + 1, sizeof *value));
    assert_false(vector_reserve(&value, &capacity, INT64_MAX, sizeof *value));
    assert_false(vector_reserve(&value, &capacity, (INT64_C(1) << 61) + 1, sizeof *value));
    assert_ptr_equal(value, old);
    assert_int_equal(capacity, 1000000);
    free(value);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_in_order),    cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(numbers_as_keys),     cmocka_unit_test(cleared_maps_are_empty),
        cmocka_unit_test(failing_allocations), cmocka_unit_test(vectors_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
