#include "testing/check.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

enum { BLOCK = 4096 };

static bool aligned(const void *p) {
    return (uintptr_t)p % ARENA_ALIGN == 0;
}

static void pieces_are_aligned_and_apart(void **state) {
    (void)state;
    enum { PIECES = 300 };
    arena *a = arena_create(BLOCK);
    unsigned char *piece[PIECES];
    for (int i = 0; i < PIECES; i++) {
        piece[i] = arena_alloc(a, (size_t)i);
        assert_non_null(piece[i]);
        assert_true(aligned(piece[i]));
        memset(piece[i], i & 255, (size_t)i);
    }
    for (int i = 0; i < PIECES; i++)
        for (int j = 0; j < i; j++) assert_int_equal(piece[i][j], i & 255);
    arena_free(a);
}

static void zero_bytes_give_distinct_pieces(void **state) {
    (void)state;
    arena *a = arena_create(BLOCK);
    void *first = arena_alloc(a, 0), *second = arena_alloc(a, 0);
    assert_non_null(first);
    assert_ptr_not_equal(first, second);
    arena_free(a);
}

static void reset_keeps_memory_as_one_block(void **state) {
    (void)state;
    arena *a = arena_create(BLOCK);
    void *first = NULL;
    size_t held = 0;
    for (int step = 0; step < 5; step++) {
        for (int i = 0; i < 20; i++) {
            void *p = arena_alloc(a, 1000);
            if (i) continue;
            if (step > 1) assert_ptr_equal(p, first);
            first = p;
        }
        assert_true(arena_used(a) >= 20 * 1000);
        if (step) assert_int_equal(arena_held(a), held);
        size_t used = arena_used(a);
        arena_reset(a);
        assert_int_equal(arena_used(a), 0);
        held = arena_held(a);
        assert_true(held >= used && held < used + BLOCK);
    }
    arena_free(a);
}

static void large_requests_get_their_own_block(void **state) {
    (void)state;
    arena *a = arena_create(BLOCK);
    arena_alloc(a, 100);
    unsigned char *large = arena_alloc(a, 10 * BLOCK);
    assert_non_null(large);
    memset(large, 1, 10 * BLOCK);
    assert_true(arena_held(a) >= 11 * BLOCK);
    assert_true(arena_held(a) < 12 * BLOCK);
    arena_reset(a);
    size_t held = arena_held(a);
    arena_alloc(a, 100);
    assert_non_null(arena_alloc(a, 10 * BLOCK));
    assert_int_equal(arena_held(a), held);
    arena_free(a);
}

/* Steps that request the same sizes in another order need the same memory. */
static void sizes_in_another_order_settle(void **state) {
    (void)state;
    arena *a = arena_create(BLOCK);
    size_t held = 0;
    for (int step = 0; step < 20; step++) {
        arena_alloc(a, step % 2 ? 10 * BLOCK : 100);
        arena_alloc(a, step % 2 ? 100 : 10 * BLOCK);
        arena_alloc(a, 3 * BLOCK);
        arena_reset(a);
        if (step == 0) held = arena_held(a);
        if (step > 0) assert_int_equal(arena_held(a), held);
    }
    arena_free(a);
}

static void impossible_requests_leave_it_usable(void **state) {
    (void)state;
    arena *a = arena_create(BLOCK);
    assert_null(arena_alloc(a, SIZE_MAX));
    assert_null(arena_alloc(a, SIZE_MAX - ARENA_ALIGN));
    assert_non_null(arena_alloc(a, 10));
    arena_free(a);
}

static void default_block_and_null(void **state) {
    (void)state;
    arena *a = arena_create(0);
    arena_alloc(a, 1);
    assert_int_equal(arena_held(a), (size_t)16 << 20);
    arena_free(a);
    arena_free(NULL);
}

/* Detects errors only with the address sanitizer. */
static void reset_poisons(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    arena *a = arena_create(BLOCK);
    unsigned char *p = arena_alloc(a, 100), *large = arena_alloc(a, 10 * BLOCK);
    for (int i = 0; i < 100; i++) assert_false(__asan_address_is_poisoned(p + i));
    assert_true(__asan_address_is_poisoned(p + 128)); /* after the allocation */
    arena_reset(a);
    for (int i = 0; i < 100; i++) assert_true(__asan_address_is_poisoned(p + i));
    assert_true(__asan_address_is_poisoned(large));
    assert_true(__asan_address_is_poisoned(large + 10 * BLOCK - 1));
    unsigned char *first = arena_alloc(a, 50);
    arena_reset(a); /* one block by now: the same address again */
    assert_true(__asan_address_is_poisoned(first));
    unsigned char *again = arena_alloc(a, 50);
    assert_ptr_equal(again, first);
    assert_false(__asan_address_is_poisoned(again + 49));
    assert_true(__asan_address_is_poisoned(again + 64));
    arena_free(a);
#else
    print_message("skipped: poisoning is there under the address sanitizer only (MODE=asan)\n");
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_apart),
        cmocka_unit_test(zero_bytes_give_distinct_pieces),
        cmocka_unit_test(reset_keeps_memory_as_one_block),
        cmocka_unit_test(large_requests_get_their_own_block),
        cmocka_unit_test(sizes_in_another_order_settle),
        cmocka_unit_test(impossible_requests_leave_it_usable),
        cmocka_unit_test(default_block_and_null),
        cmocka_unit_test(reset_poisons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
