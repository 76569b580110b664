/* The rule that groups pairs into batches, on lengths alone. */
#include <stdlib.h>
#include <string.h>

#include "data/sets/batch_plan.h"
#include "data_files.h"

enum { MOST = 3000 };

static int64_t source[MOST], target[MOST];

static int64_t longer(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static batch_plan make_by(const batch_rule *rule, int64_t pairs, uint64_t seed) {
    batch_plan p;
    sr_failure why = {0};
    check_ok(batch_plan_make(&p, source, target, pairs, rule, rng_create(seed), &why), &why);
    return p;
}

static batch_plan make(int64_t pairs, int64_t max_tokens, uint64_t seed) {
    const batch_rule rule = {.max_tokens = max_tokens};
    return make_by(&rule, pairs, seed);
}

static void draw_lengths(int64_t pairs, int64_t longest, uint64_t seed) {
    rng r = rng_create(seed);
    for (int64_t i = 0; i < pairs; i++) {
        source[i] = 1 + (int64_t)rng_below(&r, (uint64_t)longest);
        target[i] = 1 + (int64_t)rng_below(&r, (uint64_t)longest);
    }
}

static void holds_every_pair_once_within_max_tokens(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        int64_t pairs = (int64_t)(seed * 149), longest = 2 + (int64_t)seed * 3,
                most = longest * (1 + (int64_t)seed);
        int seen[MOST] = {0};
        draw_lengths(pairs, longest, seed);
        batch_plan p = make(pairs, most, seed);
        for (int64_t k = 0; k < p.count; k++) {
            int64_t count = p.first[k + 1] - p.first[k], length = 0;
            assert_true(count > 0);
            assert_true(count < 8 || count % 8 == 0 || k == p.count - 1);
            for (int64_t i = p.first[k]; i < p.first[k + 1]; i++) {
                seen[p.pair[i]]++;
                length = longer(length, longer(source[p.pair[i]], target[p.pair[i]]));
            }
            assert_true(count * length <= most);
        }
        for (int64_t i = 0; i < pairs; i++) assert_int_equal(seen[i], 1);
        batch_plan_free(&p);
    }
}

static void sorts_by_source_then_target(void **state) {
    (void)state;
    draw_lengths(500, 9, 3);
    batch_plan p = make(500, 100, 3);
    for (int i = 1; i < 500; i++) {
        int64_t a = p.pair[i - 1], b = p.pair[i];
        assert_true(source[a] < source[b] || (source[a] == source[b] && target[a] <= target[b]));
    }
    batch_plan_free(&p);
}

/* 20 pairs of length 5 under 65 tokens: 13 fit, the 14th closes, 8 leave, 5 stay; ... */
static void closes_and_cuts_as_specified(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) source[i] = target[i] = 5;
    batch_plan p = make(20, 65, 1);
    assert_int_equal(p.count, 2);
    assert_int_equal(p.first[1], 8);
    assert_int_equal(p.first[2], 20);
    batch_plan_free(&p);
    p = make(20, 34, 1); /* 6 fit: fewer than 8, all leave */
    assert_int_equal(p.count, 4);
    for (int k = 0; k < 3; k++) assert_int_equal(p.first[k + 1], 6 * (k + 1));
    batch_plan_free(&p);
    for (int i = 0; i < 20; i++) source[i] = 1, target[i] = i < 12 ? 1 : 40;
    p = make(20, 80, 1); /* 12 short ones: 8 leave, then the other 4, then pairs of long ones */
    static const int64_t want[] = {0, 8, 12, 14, 16, 18, 20};
    assert_int_equal(p.count, 6);
    for (int k = 0; k < 7; k++) assert_int_equal(p.first[k], want[k]);
    batch_plan_free(&p);
}

static void breaks_ties_by_seed(void **state) {
    (void)state;
    for (int i = 0; i < 64; i++) source[i] = target[i] = 4;
    batch_plan a = make(64, 64, 1), b = make(64, 64, 2), c = make(64, 64, 1);
    assert_memory_equal(a.pair, c.pair, 64 * sizeof *a.pair);
    assert_memory_not_equal(a.pair, b.pair, 64 * sizeof *a.pair);
    batch_plan_free(&a), batch_plan_free(&b), batch_plan_free(&c);
}

static void plans_nothing_for_nothing(void **state) {
    (void)state;
    batch_plan p = make(0, 10, 1);
    assert_int_equal(p.count, 0);
    batch_plan_free(&p);
}

/* 12 pairs of 2 words, 12 of 6, under 24: padded positions, or tokens of the longer side. */
static void random_and_valid(void **state) {
    (void)state;
    const batch_rule padded = {BATCHING_RANDOM, 24, false, 0},
                     valid = {BATCHING_RANDOM, 24, true, 0};
    bool mixed = false;
    for (int i = 0; i < 24; i++) source[i] = i % 2 ? 6 : 2, target[i] = 1;
    batch_plan a = make_by(&padded, 24, 3), b = make_by(&valid, 24, 3), sorted = make(24, 24, 3);
    assert_memory_equal(a.pair, b.pair, 24 * sizeof *a.pair);
    assert_memory_not_equal(a.pair, sorted.pair, 24 * sizeof *a.pair);
    for (int64_t k = 0; k < b.count; k++) {
        int64_t words = 0, longest = 0, count = b.first[k + 1] - b.first[k];
        for (int64_t i = b.first[k]; i < b.first[k + 1]; i++) {
            words += source[b.pair[i]];
            longest = longer(longest, source[b.pair[i]]);
        }
        assert_true(words <= 24);
        assert_true(k == b.count - 1 || words > 24 - 6 || count == 8);
        mixed = mixed || count * longest > 24;
    }
    assert_true(mixed); /* more positions than tokens were allowed */
    assert_true(b.count < a.count);
    for (int64_t k = 0; k < a.count; k++) assert_true((a.first[k + 1] - a.first[k]) * 2 <= 24);
    batch_plan_free(&a), batch_plan_free(&b), batch_plan_free(&sorted);
}

/* A fixed number per batch, whatever the lengths; the last batch has the rest. */
static void by_number(void **state) {
    (void)state;
    const batch_rule rule = {BATCHING_BUCKETED, 1, false, 10};
    draw_lengths(43, 9, 5);
    batch_plan p = make_by(&rule, 43, 1);
    assert_int_equal(p.count, 5);
    for (int64_t k = 0; k < 5; k++) assert_int_equal(p.first[k + 1] - p.first[k], k < 4 ? 10 : 3);
    for (int64_t i = 1; i < 43; i++) assert_true(source[p.pair[i]] >= source[p.pair[i - 1]]);
    batch_plan_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_every_pair_once_within_max_tokens),
        cmocka_unit_test(sorts_by_source_then_target),
        cmocka_unit_test(closes_and_cuts_as_specified),
        cmocka_unit_test(breaks_ties_by_seed),
        cmocka_unit_test(plans_nothing_for_nothing),
        cmocka_unit_test(random_and_valid),
        cmocka_unit_test(by_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
