/* test_bootstrap_draws.c -- resamples that threads draw: each once, from where the one before it ended, in no more memory than
 * sorting gave back. */
#include <omp.h>

#include "analysis/bootstrap/bootstrap_draws.h"
#include "refused.h"
#include "room.h"
#include "testing/check.h"

enum { THREADS_MOST = 3 };

/* How often each was drawn, by which threads. */
typedef struct calls {
    int times[TOGETHER];
    unsigned threads; /* a bit for each */
    double until;     /* waits for a second one */
} calls;

static unsigned calls_threads(calls *c, unsigned more) {
    unsigned threads;
#pragma omp atomic capture
    threads = c->threads |= more;
    return threads;
}

static void draw_counted(void *context, int64_t b, draw *d, int thread) {
    calls *c = context;
    index_range next[PIECES];
    unsigned threads = calls_threads(c, 1u << thread);
    c->times[b]++;
    while (draw_next(d, next)) continue;
    while (!(threads & (threads - 1)) && omp_get_wtime() < c->until) threads = calls_threads(c, 0);
}

static void expect_calls(resampling *r, int64_t count, int64_t twice) {
    calls c = {.until = 0};
    resamples_draw(r, count, THREADS_MOST, draw_counted, &c);
    for (int64_t b = 0; b < TOGETHER; b++)
        assert_int_equal(c.times[b], b >= count ? 0 : b > twice ? 2 : 1);
}

/* All of them at once, those twice that are behind a number that was refused. */
static void resamples_are_drawn_once(void **state) {
    (void)state;
    enum { LENGTH = 10001, EACH = 100, BLOCKS = (LENGTH + EACH - 1) / EACH };
    resampling r = {.first = {{0}, rng_range_create(LENGTH), LENGTH, EACH, LENGTH}};
    calls c = {.until = omp_get_wtime() + 20};
    r.begin[0] = rng_create(1);
    resamples_draw(&r, TOGETHER, THREADS_MOST, draw_counted, &c);
    if (!(c.threads & (c.threads - 1))) fail_msg("one thread draws all");
    assert_int_equal(r.begin[TOGETHER].counter, TOGETHER * BLOCKS);
    expect_calls(&r, TOGETHER, TOGETHER);
    r.begin[0] = refused_at(60 * BLOCKS + 3);
    expect_calls(&r, 100, 60);
    assert_int_equal(r.begin[60].counter, 60 * BLOCKS);
    assert_int_equal(r.begin[61].counter, 61 * BLOCKS + 1);
}

/* Of as many values as may be kept, and of fewer: counters of all threads take no more than 20 bytes of each value that
 * may be, which is what sorting has given back. */
static void counters_take_what_sorting_took(void **state) {
    (void)state;
    enum { KEPT = 1000 };
    const int before = omp_get_max_threads();
    static const struct {
        int asked, capacity, threads;
    } of[] = {{3, KEPT, 3}, {100, KEPT, 4}, {100, KEPT / 10, 49}, {100, 7, 100}, {100, 6000, 1}};
    room = KEPT * KEPT_BYTES;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        sr_failure why = {0};
        pool p = {0};
        omp_set_num_threads(of[i].asked);
        check_ok(pool_create(&p, of[i].capacity, &why), &why);
        check_ok(pool_sort(&p, &why), &why);
        assert_int_equal(p.threads, of[i].threads);
        pool_free(&p);
    }
    omp_set_num_threads(before);
    room = 64 << 20;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_take_what_sorting_took),
        cmocka_unit_test(resamples_are_drawn_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
