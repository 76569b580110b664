#include "testing/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

/* The published first values of SplitMix64 with state 1234567. */
static void rng_at_is_splitmix64(void **state) {
    (void)state;
    static const uint64_t want[] = {6457827717110365317u, 3203168211198807973u,
                                    9817491932198370423u, 4593380528125082431u,
                                    16408922859458223821u};
    for (uint64_t i = 0; i < 5; i++) assert_true(rng_at(1234567, i) == want[i]);
}

static void first_values_are_pinned(void **state) {
    (void)state;
    static const uint64_t next[] = {0x5e41ab087439611eu, 0xf18d6ce93d6cf1eeu, 0x0b95f66d327e8d78u};
    static const uint64_t split[] = {0xb77f44bf456fe3b3u, 0x2a7812e0d5866b86u, 0xac15a093f731db18u};
    rng r = rng_create(1), s = rng_split(&r, 3);
    for (int i = 0; i < 3; i++) assert_true(rng_next(&r) == next[i]);
    for (int i = 0; i < 3; i++) assert_true(rng_next(&s) == split[i]);
}

static void positions_equal_draws(void **state) {
    (void)state;
    rng r = rng_create(42);
    uint64_t key = r.key;
    for (uint64_t i = 0; i < 100; i++) assert_true(rng_next(&r) == rng_at(key, i));
    assert_true(r.counter == 100);
}

static void split_ignores_and_keeps_the_position(void **state) {
    (void)state;
    rng r = rng_create(5);
    rng before = rng_split(&r, 7);
    for (int i = 0; i < 10; i++) rng_next(&r);
    uint64_t counter = r.counter;
    rng after = rng_split(&r, 7);
    assert_true(before.key == after.key && after.counter == 0);
    assert_true(r.counter == counter);
}

static int compare_keys(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Streams of near seeds and near numbers, and streams of streams, all differ. */
static void split_keys_differ(void **state) {
    (void)state;
    enum { SEEDS = 20, STREAMS = 200, COUNT = SEEDS * STREAMS * 2 };
    static uint64_t key[COUNT];
    int count = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rng r = rng_create(seed);
        for (uint64_t stream = 0; stream < STREAMS; stream++) {
            rng s = rng_split(&r, stream), t = rng_split(&s, stream);
            key[count++] = s.key;
            key[count++] = t.key;
        }
    }
    qsort(key, COUNT, sizeof key[0], compare_keys);
    for (int i = 1; i < COUNT; i++) assert_true(key[i] != key[i - 1]);
}

/* Correlation of n pairs of uniform values is within 5 / sqrt(n) of 0. */
static void check_uncorrelated(rng a, rng b) {
    enum { N = 20000 };
    double sum = 0;
    for (int i = 0; i < N; i++) sum += (rng_uniform(&a) - 0.5) * (rng_uniform(&b) - 0.5);
    double correlation = sum / N * 12;
    check_below(fabs(correlation), 5 / sqrt(N));
}

static void splits_are_independent(void **state) {
    (void)state;
    rng r = rng_create(11);
    for (uint64_t stream = 0; stream < 20; stream++) {
        check_uncorrelated(rng_split(&r, stream), rng_split(&r, stream + 1));
        check_uncorrelated(r, rng_split(&r, stream));
        rng other = rng_create(12);
        check_uncorrelated(rng_split(&other, stream), rng_split(&r, stream));
    }
}

/* Each of the 64 bits is set in half of the draws. */
static void bits_are_balanced(void **state) {
    (void)state;
    enum { N = 20000 };
    int ones[64] = {0};
    rng r = rng_create(0);
    for (int i = 0; i < N; i++) {
        uint64_t v = rng_next(&r);
        for (int bit = 0; bit < 64; bit++) ones[bit] += (int)(v >> bit & 1);
    }
    for (int bit = 0; bit < 64; bit++) check_within(ones[bit], N / 2.0, 5 * sqrt(N) / 2);
}

static void uniform_is_in_range_with_its_moments(void **state) {
    (void)state;
    enum { N = 200000 };
    rng r = rng_create(3);
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        double u = rng_uniform(&r);
        check_at_least(u, 0);
        check_below(u, 1);
        sum += u - 0.5, squares += (u - 0.5) * (u - 0.5);
    }
    check_below(fabs(sum / N), 5 * sqrt(1.0 / 12 / N));
    check_within(squares / N, 1.0 / 12, 5 * sqrt(1.0 / 180 / N));
}

static void normal_has_its_moments(void **state) {
    (void)state;
    enum { N = 400000 };
    rng r = rng_create(4);
    double moment[5] = {0};
    int within = 0;
    for (int i = 0; i < N; i++) {
        double z = rng_normal(&r), power = 1;
        assert_true(isfinite(z));
        for (int p = 1; p <= 4; p++) moment[p] += power *= z;
        within += fabs(z) < 1;
    }
    assert_true(r.counter == 2 * (uint64_t)N);
    check_below(fabs(moment[1] / N), 5 * sqrt(1.0 / N));
    check_within(moment[2] / N, 1, 5 * sqrt(2.0 / N));
    check_below(fabs(moment[3] / N), 5 * sqrt(15.0 / N));
    check_within(moment[4] / N, 3, 5 * sqrt(96.0 / N));
    check_within((double)within / N, 0.682689492137, 5 * sqrt(0.25 / N));
}

static void below_is_uniform(void **state) {
    (void)state;
    enum { N = 60000, SIDES = 6 };
    int seen[SIDES] = {0};
    rng r = rng_create(6);
    for (int i = 0; i < N; i++) {
        uint64_t v = rng_below(&r, SIDES);
        assert_true(v < SIDES);
        seen[v]++;
    }
    double chi2 = 0;
    for (int i = 0; i < SIDES; i++) chi2 += (seen[i] - N / 6.0) * (seen[i] - N / 6.0) / (N / 6.0);
    check_below(chi2, 25.7); /* 5 degrees of freedom, probability 1e-4 */
}

/* n = 3 * 2^62: a plain remainder would draw the lowest third half of the time. */
static void below_rejects_the_surplus(void **state) {
    (void)state;
    enum { N = 30000 };
    uint64_t third = (uint64_t)1 << 62;
    int low = 0;
    rng r = rng_create(8);
    for (int i = 0; i < N; i++) low += rng_below(&r, 3 * third) < third;
    check_within((double)low / N, 1.0 / 3, 5 * sqrt(2.0 / 9 / N));
    assert_true(r.counter > N); /* a quarter of the draws is rejected */
}

static void below_one_is_zero(void **state) {
    (void)state;
    rng r = rng_create(9);
    for (int i = 0; i < 10; i++) assert_true(rng_below(&r, 1) == 0);
    for (int i = 0; i < 10; i++) assert_true(rng_below(&r, UINT64_MAX) < UINT64_MAX);
}

/* The same numbers with and without divisions: near powers of two, for small and large n, and with
 * many rejected draws. */
static void ranges_are_those_of_below(void **state) {
    (void)state;
    enum { N = 2000 };
    const uint64_t some[] = {1, 2, 3, 6, 1000003, (uint64_t)3 << 62, UINT64_MAX};
    rng random = rng_create(11);
    for (int trial = 0; trial < 7 + 3 * 64 + 100; trial++) {
        const int bit = (trial - 7) / 3;
        uint64_t n = rng_next(&random) >> trial % 64;
        if (trial < 7)
            n = some[trial];
        else if (bit < 64)
            n = ((uint64_t)1 << bit) + (uint64_t)((trial - 7) % 3) - 1;
        if (n == 0) n = 1;
        const rng_range range = rng_range_create(n);
        rng a = rng_create(12), b = a;
        for (int i = 0; i < N; i++) assert_true(rng_in_range(&a, &range) == rng_below(&b, n));
        assert_true(a.counter == b.counter);
    }
}

/* 2^64 mod (2^64 - v) is v itself, below 2^63: the smallest accepted draw. */
static void the_limit_is_no_surplus(void **state) {
    (void)state;
    int seen = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        const rng first = rng_create(seed);
        rng a = first, b = first;
        const uint64_t v = rng_at(first.key, 0);
        if (v >> 63) continue;
        const rng_range range = rng_range_create(-v);
        assert_true(rng_in_range(&a, &range) == v && rng_below(&b, -v) == v);
        seen++;
    }
    assert_true(seen > 0);
}

/* All 24 orders of 4 items are equally frequent. */
static void shuffle_is_uniform(void **state) {
    (void)state;
    enum { N = 24000 };
    int seen[256] = {0}, orders = 0;
    rng r = rng_create(10);
    for (int i = 0; i < N; i++) {
        int64_t item[4] = {0, 1, 2, 3};
        rng_shuffle(&r, item, 4);
        assert_int_equal((1 << item[0]) | (1 << item[1]) | (1 << item[2]) | (1 << item[3]), 15);
        seen[item[0] * 64 + item[1] * 16 + item[2] * 4 + item[3]]++;
    }
    double chi2 = 0;
    for (int i = 0; i < 256; i++) {
        if (!seen[i]) continue;
        orders++;
        chi2 += (seen[i] - N / 24.0) * (seen[i] - N / 24.0) / (N / 24.0);
    }
    assert_int_equal(orders, 24);
    check_below(chi2, 59.0); /* 23 degrees of freedom, probability 5e-5 */
}

static void shuffle_of_few(void **state) {
    (void)state;
    rng r = rng_create(10);
    int64_t one = 17;
    rng_shuffle(&r, &one, 1);
    rng_shuffle(&r, NULL, 0);
    assert_int_equal(one, 17);
    assert_true(r.counter == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rng_at_is_splitmix64),
        cmocka_unit_test(first_values_are_pinned),
        cmocka_unit_test(positions_equal_draws),
        cmocka_unit_test(split_ignores_and_keeps_the_position),
        cmocka_unit_test(split_keys_differ),
        cmocka_unit_test(splits_are_independent),
        cmocka_unit_test(bits_are_balanced),
        cmocka_unit_test(uniform_is_in_range_with_its_moments),
        cmocka_unit_test(normal_has_its_moments),
        cmocka_unit_test(below_is_uniform),
        cmocka_unit_test(below_rejects_the_surplus),
        cmocka_unit_test(below_one_is_zero),
        cmocka_unit_test(ranges_are_those_of_below),
        cmocka_unit_test(the_limit_is_no_surplus),
        cmocka_unit_test(shuffle_is_uniform),
        cmocka_unit_test(shuffle_of_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
