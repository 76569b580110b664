/* The most frequent pair of the heap, compared with a search among all pairs, while counts rise and
 * fall and pairs are set aside and return. */
#include "base/rng.h"
#include "testing/check.h"
#include "text/bpe/bpe_internal.h"
#include "text/bpe/bpe_pairs.h"

enum { SYMBOLS = 6, SEEDS = 100 };

/* Whether pair a is greater than b: by count, then by the letters, which are the symbols' numbers. */
static bool greater(const bpe_pairs *p, int32_t a, int32_t b) {
    if (b < 0 || p->pair[a].count != p->pair[b].count)
        return b < 0 || p->pair[a].count > p->pair[b].count;
    const symbol_pair x = bpe_pair_of(&p->key, a), y = bpe_pair_of(&p->key, b);
    return x.left != y.left ? x.left > y.left : x.right > y.right;
}

static int32_t searched(const bpe_pairs *p) {
    int32_t best = -1;
    for (int32_t i = 0; i < (int32_t)p->key.count; i++)
        if (p->pair[i].active && p->pair[i].count >= 0 && greater(p, i, best)) best = i;
    return best;
}

static void change(bpe_pairs *p, rng *random, int32_t times) {
    const int32_t left = (int32_t)rng_below(random, SYMBOLS),
                  right = (int32_t)rng_below(random, SYMBOLS);
    const int64_t count = 1 + (int64_t)rng_below(random, 300);
    assert_true(bpe_pairs_change(p, left, right, 0, times, count));
}

/* Merges until all pairs are set aside; returns their number. */
static int merges(const map *symbol, rng *random) {
    bpe_pairs p = {.symbol = symbol};
    int merge = 0;
    for (int i = 0; i < 200; i++) change(&p, random, 1);
    assert_true(bpe_pairs_begin(&p));
    for (;; merge++) {
        int32_t best;
        int64_t count;
        assert_true(bpe_pairs_best(&p, 0, &best, &count)); /* 0: none are taken back */
        assert_int_equal(best, searched(&p));
        if (best < 0) break;
        bpe_pairs_forget(&p, best);
        for (int i = 1 + (int)rng_below(random, 6); i > 0; i--)
            change(&p, random, i == 1 || rng_below(random, 2) ? 1 : -1);
        assert_true(bpe_pairs_settle(&p, best, rng_below(random, 9) ? 1 : 100));
    }
    bpe_pairs_free(&p);
    return merge;
}

static void heap_is_search(void **state) {
    (void)state;
    map symbol = {0};
    int all = 0;
    for (int i = 0; i < SYMBOLS; i++) assert_int_equal(map_add(&symbol, &"abcdef"[i], 1), i);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) all += merges(&symbol, &(rng){.key = seed});
    assert_in_range(all, 50 * SEEDS, INT32_MAX);
    map_free(&symbol);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(heap_is_search)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
