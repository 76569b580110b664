/* Batches prefetched by a thread: the requested ones, in unused buffers, with errors. Data sets
 * give the same bytes with and without prefetching. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "data/prefetch.h"
#include "data_files.h"

enum { SIZE = 4096 };

/* A batch is SIZE numbers derived from its index. */
typedef struct maker {
    int32_t number[PREFETCH_SLOTS][SIZE];
    int64_t failing; /* index of the failing batch; -1: none */
    bool slow;
    pthread_t caller;
    int64_t missed; /* batches that the caller made itself */
} maker;

static int32_t number_of(batch_place at) {
    return (int32_t)(at.split * 1000000 + at.epoch * 1000 + at.index);
}

static sr_status make_numbers(void *self, int slot, batch_place at, batch *b, sr_failure *why) {
    maker *m = self;
    if (pthread_equal(pthread_self(), m->caller)) m->missed++;
    if (m->slow) nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    for (int i = 0; i < SIZE; i++) m->number[slot][i] = number_of(at);
    *b = (batch){.count = SIZE, .label = m->number[slot], .tokens = number_of(at)};
    if (at.index == m->failing) {
        sr_fail(why, SR_IO, "batch %d: gone", (int)at.index);
        sr_hint(why, "look for it");
        return SR_IO;
    }
    return SR_OK;
}

static batch_place train(int64_t epoch, int64_t index) {
    return (batch_place){SPLIT_TRAIN, epoch, index};
}

static void expect_numbers(const batch *b, batch_place at) {
    assert_int_equal(b->tokens, number_of(at));
    for (int i = 0; i < SIZE; i++) assert_int_equal(b->label[i], number_of(at));
}

static void get(prefetch *p, batch_place at, const batch_place *next) {
    batch b;
    sr_failure why = {0};
    check_ok(prefetch_get(p, at, next, &b, &why), &why);
    expect_numbers(&b, at);
    if (next) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* the thread is at work */
    expect_numbers(&b, at);
}

static void hands_out_what_was_made_ahead(void **state) {
    (void)state;
    static maker m;
    m = (maker){.caller = pthread_self(), .failing = -1};
    for (int slow = 0; slow < 2; slow++) {
        m.slow = slow, m.missed = 0;
        prefetch *p = prefetch_create(make_numbers, &m);
        for (int i = 0; i < 20; i++) {
            batch_place next = train(0, i + 1);
            get(p, train(0, i), &next);
            assert_int_equal(m.missed, 1); /* the first */
        }
        prefetch_free(p); /* with a batch in preparation */
    }
}

/* Evaluation between training batches leaves the prefetched one untouched. */
static void evaluates_between(void **state) {
    (void)state;
    static maker m;
    m = (maker){.caller = pthread_self(), .failing = -1, .slow = true};
    prefetch *p = prefetch_create(make_numbers, &m);
    int evaluated = 0;
    for (int i = 0; i < 10; i++) {
        batch_place next = train(0, i + 1);
        for (int k = 0; k < i % 3; k++) get(p, (batch_place){SPLIT_VALID, 0, k}, NULL);
        get(p, train(0, i), &next);
        for (int k = 0; k < i % 4; k++) get(p, (batch_place){SPLIT_TEST, 0, k}, NULL);
        evaluated += i % 3 + i % 4;
    }
    assert_int_equal(m.missed, 1 + evaluated);
    prefetch_free(p);
}

/* Requests that differ from the predicted one: in epoch, in index, a repeated one. */
static void makes_what_was_not_foreseen(void **state) {
    (void)state;
    static maker m;
    m = (maker){.caller = pthread_self(), .failing = -1};
    static const int place[][2] = {{0, 0}, {0, 2}, {0, 2}, {1, 3}, {1, 4}, {2, 4}, {0, 0}};
    prefetch *p = prefetch_create(make_numbers, &m);
    for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
        batch_place next = train(place[i][0], place[i][1] + 1);
        get(p, train(place[i][0], place[i][1]), &next);
    }
    assert_int_equal(m.missed, sizeof place / sizeof *place - 1);
    const batch_place other = {SPLIT_VALID, 0, 0}, next = train(0, 1); /* in split */
    get(p, train(0, 5), &other);
    get(p, train(0, 0), &next);
    assert_int_equal(m.missed, sizeof place / sizeof *place + 1);
    prefetch_free(p);
}

/* The error is reported when the failed batch is requested; the other batches arrive. */
static void failures_arrive_with_their_batch(void **state) {
    (void)state;
    static maker m;
    m = (maker){.caller = pthread_self(), .failing = 3};
    prefetch *p = prefetch_create(make_numbers, &m);
    for (int i = 0; i < 3; i++) {
        batch_place next = train(0, i + 1);
        get(p, train(0, i), &next);
    }
    batch b;
    batch_place next = train(0, 4);
    for (int again = 0; again < 2; again++) {
        sr_failure why = {0};
        assert_int_equal(prefetch_get(p, train(0, 3), &next, &b, &why), SR_IO);
        check_failure(&why, SR_IO, "batch 3: gone");
        assert_string_equal(why.hint, "look for it");
    }
    get(p, train(0, 4), &next);
    prefetch_free(p);
    prefetch_free(NULL);
}

/* -- data sets */

static uint64_t weights_digest_of(dataset *d, data_split split, int64_t epoch, int64_t index) {
    batch b;
    sr_failure why = {0};
    check_ok(data_batch(d, split, epoch, index, &b, &why), &why);
    uint64_t first = digest_batch(&b);
    assert_true(digest_batch(&b) == first);
    return first;
}

/* A training run's order of batches: an evaluation after every third, then jumps. */
static uint64_t *walk(const data_options *o, int64_t *count) {
    dataset *d = open_data(o);
    const int64_t n = data_batches(d, SPLIT_TRAIN), v = data_batches(d, SPLIT_VALID);
    uint64_t *seen = malloc((size_t)(8 * n + 8 * v * n) * sizeof *seen);
    assert_non_null(seen);
    assert_true(n > 3 && v > 0);
    *count = 0;
    for (int64_t epoch = 0; epoch < 3; epoch++)
        for (int64_t i = 0; i < n; i++) {
            seen[(*count)++] = weights_digest_of(d, SPLIT_TRAIN, epoch, i);
            for (int64_t k = 0; i % 3 == 2 && k < v; k++)
                seen[(*count)++] = weights_digest_of(d, SPLIT_VALID, 0, k);
        }
    for (int64_t i = n - 1; i >= 0; i--) seen[(*count)++] = weights_digest_of(d, SPLIT_TRAIN, 1, i);
    data_close(d);
    return seen;
}

static void same_bytes(data_options *o) {
    int64_t count[2];
    uint64_t *seen[2];
    for (int ahead = 0; ahead < 2; ahead++) {
        o->prefetch = ahead;
        seen[ahead] = walk(o, &count[ahead]);
    }
    assert_int_equal(count[0], count[1]);
    for (int64_t i = 0; i < count[0]; i++) assert_true(seen[0][i] == seen[1][i]);
    free(seen[0]);
    free(seen[1]);
}

static void images_are_the_same(void **state) {
    (void)state;
    data_options o = default_options("synth-images", "");
    o.limit = 70, o.batch_size = 16;
    same_bytes(&o);
}

static void pairs_are_the_same(void **state) {
    (void)state;
    data_options o = default_options("synth-pairs", "");
    o.limit = 100, o.max_tokens = 128;
    same_bytes(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hands_out_what_was_made_ahead),
        cmocka_unit_test(evaluates_between),
        cmocka_unit_test(makes_what_was_not_foreseen),
        cmocka_unit_test(failures_arrive_with_their_batch),
        cmocka_unit_test(images_are_the_same),
        cmocka_unit_test(pairs_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
