/* test_stream_bootstrap.c -- resamples of series that do not fit into memory, by a room that is made small,
 * against a plain bootstrap that keeps and sorts all; blocks against covariances that are summed value by
 * value; programs against themselves with room for all. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "analysis/bootstrap/bootstrap.h"
#include "base/sort.h"
#include "refused.h"
#include "room.h"
#include "statrec/format.h"
#include "testing/check.h"
#include "testing/failing_malloc.h"
#include "testing/programs.h"

/* The programs, to be called with a room of our own. */
int stat_scalar_main(int argc, char **argv);
int stat_compare_main(int argc, char **argv);

enum { LONGEST = 3001, SOME = 24, BATCHES = 1030, ROOM_OF_ONE = 64 };

/* -- series ---------------------------------------------------------------------------------- */

enum { SERIES = 13 };

static double value_of(int kind, int i, double *state, rng *r) {
    *state = 0.95 * *state + 0.3 * rng_normal(r);
    switch (kind) {
    case 0:
        return rng_normal(r);
    case 1:
        return *state;
    case 2:
        return floor(2 * *state); /* ties */
    case 3:
        return -7.25;
    case 4:
        return rng_below(r, 20) ? 1 : rng_normal(r); /* nearly all are equal */
    case 5:
        return i % 2 ? 0.0 : -0.0;
    case 6:
        return i % 3 ? *state : (i % 9 ? -0.0 : 0.0);
    case 7:
        return i % 2 ? 1 + 1e-9 * rng_uniform(r) : 2; /* a period, as of epochs */
    case 8:
        return i;
    case 9:
        return i % 7 == 3 ? NAN : i % 31 == 0 ? INFINITY : *state;
    case 10:
        return ldexp(rng_normal(r), (int)rng_below(r, 2000) - 1070);
    case 11:
        return 1 + ldexp((double)rng_below(r, 9), -52); /* alike but for the last digit */
    default:
        return rng_below(r, 50) ? (double)(i % 5) : -1e308 - 1e307 * rng_uniform(r);
    }
}

/* All of it, and the finite ones. */
typedef struct sequence {
    double value[LONGEST], finite[LONGEST];
    int rows, n;
    int64_t asked;
    int left; /* reads until one fails; below 0: none does */
} sequence;

static void sequence_make(sequence *s, int kind, int length, rng *r) {
    double state = 0;
    *s = (sequence){.rows = length, .left = -1};
    for (int i = 0; i < length; i++) {
        s->value[i] = value_of(kind, i, &state, r);
        if (isfinite(s->value[i])) s->finite[s->n++] = s->value[i];
    }
}

static sr_status sequence_read(void *context, int64_t first, int64_t count, double *const *value,
                               sr_failure *why) {
    sequence *s = context;
    if (s->left >= 0 && s->left-- == 0) return sr_fail(why, SR_IO, "no more");
    s->asked += count;
    memcpy(*value, s->value + first, (size_t)count * sizeof **value);
    return SR_OK;
}

static column_source source_of(sequence *s) {
    return (column_source){1, s->rows, false, sequence_read, s};
}

/* -- plain bootstrap ------------------------------------------------------------------------- */

/* Values in order, how often each of their ranks was drawn, and what was drawn in order. */
typedef struct plain {
    double sorted[LONGEST], resample[LONGEST];
    int64_t n, drawn[LONGEST];
} plain;

static int64_t plain_rank(const plain *p, double value) {
    int64_t rank = 0;
    while (p->sorted[rank] < value) rank++;
    return rank;
}

static void plain_order(plain *p) {
    int64_t to = 0;
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t k = 0; k < p->drawn[i]; k++) p->resample[to++] = p->sorted[i];
    assert_int_equal(to, p->n);
}

static void plain_draw(plain *p, const int64_t *rank, int64_t block, rng *r) {
    memset(p->drawn, 0, sizeof p->drawn);
    for (int64_t drawn = 0; drawn < p->n;) {
        int64_t at = (int64_t)rng_below(r, (uint64_t)p->n);
        for (int64_t i = 0; i < block && drawn < p->n; i++, drawn++, at = (at + 1) % p->n)
            p->drawn[rank[at]]++;
    }
}

static void plain_tails(const double *value, int n, int64_t block, rng r, int64_t resamples,
                        double *result) {
    static plain p;
    static int64_t rank[LONGEST];
    p.n = n;
    memcpy(p.sorted, value, (size_t)n * sizeof *value);
    sort_reals(p.sorted, n);
    for (int i = 0; i < n; i++) rank[i] = plain_rank(&p, value[i]);
    for (int64_t b = 0; b < resamples; b++) {
        plain_draw(&p, rank, block, &r);
        plain_order(&p);
        result[b] = quantile_of_sorted(p.resample, n, 0.5);
        result[resamples + b] = quantile_of_sorted(p.resample, n, 0.99);
        result[2 * resamples + b] = quantile_of_sorted(p.resample, n, 1);
    }
}

/* -- tails ----------------------------------------------------------------------------------- */

/* Of one value, of seven, of some, of all by classes, of all. */
static const int64_t rooms[] = {ROOM_OF_ONE, 7 * ROOM_OF_ONE, 200 * ROOM_OF_ONE,
                                LONGEST *ROOM_OF_ONE, 64 << 20};
enum { ROOMS = sizeof rooms / sizeof *rooms };

static void expect_tails_of(sequence *s, int64_t block, rng from, int64_t resamples,
                            const double *want, const char *what) {
    static double got[BOOTSTRAP_TAILS * BATCHES];
    const column_source source = source_of(s);
    for (int i = resamples > SOME ? 2 : 0; i < ROOMS; i++) {
        sr_failure why = {0};
        room = rooms[i];
        check_ok(bootstrap_tails(&source, s->n, block, from, resamples, got, &why), &why);
        for (int64_t k = 0; k < BOOTSTRAP_TAILS * resamples; k++)
            if (got[k] != want[k])
                fail_msg("%s, %d values, blocks of %d, room %d: number %d is %a, not %a", what,
                         s->n, (int)block, (int)room, (int)k, got[k], want[k]);
    }
    room = 64 << 20;
}

static void expect_tails(sequence *s, int64_t block, int64_t resamples, const char *what) {
    static double want[BOOTSTRAP_TAILS * BATCHES];
    plain_tails(s->finite, s->n, block, rng_create(5), resamples, want);
    expect_tails_of(s, block, rng_create(5), resamples, want, what);
}

static void tails_of_what_is_not_kept(void **state) {
    (void)state;
    static const int length[] = {1, 2, 3, 4, 5, 20, 63, 64, 65, 256, 700, LONGEST};
    static sequence s;
    rng r = rng_create(11);
    for (int kind = 0; kind < SERIES; kind++)
        for (size_t i = 0; i < sizeof length / sizeof *length; i++) {
            char what[32];
            sequence_make(&s, kind, length[i], &r);
            if (!s.n) continue;
            snprintf(what, sizeof what, "series %d", kind);
            expect_tails(&s, 1, SOME, what);
            expect_tails(&s, s.n / 9 + 1, SOME, what);
            expect_tails(&s, s.n, SOME, what);
        }
}

/* More resamples than go through the file together. */
static void tails_of_many_resamples(void **state) {
    (void)state;
    static sequence s;
    rng r = rng_create(12);
    sequence_make(&s, 1, 900, &r);
    expect_tails(&s, 10, BATCHES, "many");
}

enum { THREADS_MOST = 3 };

/* So much work that threads that shared what is one's own would meet. */
static void tails_on_any_threads(void **state) {
    (void)state;
    static double want[BOOTSTRAP_TAILS * BATCHES];
    static sequence s;
    const int before = omp_get_max_threads();
    rng r = rng_create(16);
    sequence_make(&s, 1, LONGEST, &r);
    for (int64_t block = 1; block < 100; block += 60) {
        plain_tails(s.finite, s.n, block, rng_create(5), BATCHES, want);
        for (int threads = 1; threads <= THREADS_MOST; threads++) {
            char what[32];
            snprintf(what, sizeof what, "%d threads", threads);
            omp_set_num_threads(threads);
            expect_tails_of(&s, block, rng_create(5), BATCHES, want, what);
        }
    }
    omp_set_num_threads(before);
}

/* In the first resample, in the last number of one, in the middle, at the end of what is drawn together, and in the
 * last of all: what lies behind it begins by one later. */
static void refused_numbers_are_drawn_again(void **state) {
    (void)state;
    enum { LENGTH = 700, BLOCK_OF = 7, BLOCKS = LENGTH / BLOCK_OF };
    static const uint64_t at[] = {
        0, BLOCKS - 1, 511 * BLOCKS + 50, 1024 * BLOCKS - 1, 1024 * BLOCKS, BATCHES * BLOCKS - 1};
    static double want[BOOTSTRAP_TAILS * BATCHES];
    static sequence s;
    rng r = rng_create(17);
    sequence_make(&s, 0, LENGTH, &r);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        char what[32];
        assert_true(rng_at(refused_at(at[i]).key, at[i]) == 0);
        snprintf(what, sizeof what, "number %d is refused", (int)at[i]);
        plain_tails(s.finite, s.n, BLOCK_OF, refused_at(at[i]), BATCHES, want);
        expect_tails_of(&s, BLOCK_OF, refused_at(at[i]), BATCHES, want, what);
    }
}

/* With room for so many values. */
static int times_read(int kind, int64_t block, int64_t kept) {
    static sequence s;
    double result[BOOTSTRAP_TAILS * SOME];
    sr_failure why = {0};
    rng r = rng_create(13);
    sequence_make(&s, kind, LONGEST, &r);
    const column_source source = source_of(&s);
    room = kept * ROOM_OF_ONE;
    check_ok(bootstrap_tails(&source, s.n, block, rng_create(1), SOME, result, &why), &why);
    room = 64 << 20;
    return (int)(s.asked / LONGEST);
}

/* The sample, the classes, the values of the few classes that are asked for: three times, of a series with memory and of
 * one with a period. The 255 classes have 12 values at most: those of the median, the 99 % quantile and the maximum,
 * the same in every resample that is one block, do not fit together where there is room for 13. */
static void read_three_times(void **state) {
    (void)state;
    assert_int_equal(times_read(0, 20, 500), 3);
    assert_int_equal(times_read(1, 20, 500), 3);
    assert_int_equal(times_read(7, 20, 500), 3);
    assert_int_equal(times_read(0, LONGEST, 500), 3);
    assert_in_range(times_read(0, LONGEST, 13), 5, 7);
    assert_int_equal(times_read(0, 15, 8 * LONGEST), 1); /* kept as a whole */
    assert_int_equal(times_read(0, 16, 8 * LONGEST), 3); /* faster by classes */
}

static sr_status tails_and_block(sequence *s, double *result, sr_failure *why) {
    const column_source source = source_of(s);
    const int64_t block = bootstrap_block(&source, s->n, 0, why);
    if (!block) return why->status;
    return bootstrap_tails(&source, s->n, block, rng_create(1), SOME, result, why);
}

/* Of any read, and of any allocation, on the way of small classes and on that of large ones. */
static void failures_are_passed_on(void **state) {
    (void)state;
    static sequence s;
    double result[BOOTSTRAP_TAILS * SOME];
    rng r = rng_create(14);
    sequence_make(&s, 1, 600, &r);
    for (int i = 0; i < 3; i++) {
        room = i == 0 ? ROOM_OF_ONE * 1000 * 512 : i == 1 ? ROOM_OF_ONE * 600 : ROOM_OF_ONE * 2;
        sr_status status = SR_IO;
        int until = 0;
        for (; status == SR_IO; until += i == 2 ? 97 : 1) {
            sr_failure why = {0};
            s.left = until;
            status = tails_and_block(&s, result, &why);
            if (status != SR_OK) check_failure(&why, SR_IO, "no more");
        }
        assert_int_equal(status, SR_OK);
        assert_true(until > 2);
        s.left = -1;
        if (!failing_malloc_there()) continue;
        status = SR_MEMORY;
        for (long n = 0; status == SR_MEMORY; n++) {
            sr_failure why = {0};
            failing_malloc_begin(n);
            status = tails_and_block(&s, result, &why);
            assert_int_equal(failing_malloc_end(), 0);
            if (status != SR_OK) check_failure(&why, SR_MEMORY, "out of memory");
        }
        assert_int_equal(status, SR_OK);
    }
    room = 64 << 20;
}

/* -- blocks ---------------------------------------------------------------------------------- */

static double plain_covariance(const double *y, int n, double mean, int lag) {
    double sum = 0;
    for (int i = lag; i < n; i++) sum += (y[i] - mean) * (y[i - lag] - mean);
    return sum / n;
}

/* The last lag before so many small ones in a row, of r [most + 1]. */
static int plain_end(const double *r, int n, int most) {
    const double limit = 2 * sqrt(log10(n) / n);
    const int needed = (int)fmax(5, ceil(sqrt(log10(n))));
    int last = 0;
    for (int k = 1, row = 0; k <= most; k++) {
        row = fabs(r[k]) < limit * r[0] ? row + 1 : 0;
        if (row == needed) return k - needed;
        if (!row) last = k;
    }
    return last;
}

static int64_t plain_block(const double *value, int n, double median) {
    static double y[LONGEST], r[LONGEST + 1];
    const int most = (int)fmin(ceil(2 * sqrt(n)) + 10, n - 1);
    double mean = 0;
    if (n < 4) return 1;
    for (int i = 0; i < n; i++) mean += y[i] = value[i] > median;
    mean /= n;
    for (int k = 0; k <= most; k++) r[k] = plain_covariance(y, n, mean, k);
    const int end = plain_end(r, n, most);
    const int twice = 2 * (end > 0 ? end : 1), window = twice < most ? twice : most;
    double large = 0, spectrum = r[0];
    for (int k = 1; k <= window; k++) {
        const double t = (double)k / window, w = t <= 0.5 ? 1 : 2 * (1 - t);
        large += 2 * w * k * r[k];
        spectrum += 2 * w * r[k];
    }
    if (!(spectrum > 0)) return 1;
    const double length = ceil(cbrt(2 * large * large / (4.0 / 3 * spectrum * spectrum) * n));
    return (int64_t)fmin(fmax(1, length), ceil(fmin(3 * sqrt(n), n / 3.0)));
}

static void expect_block(sequence *s, int kind) {
    static double sorted[LONGEST];
    sr_failure why = {0};
    const column_source source = source_of(s);
    memcpy(sorted, s->finite, (size_t)s->n * sizeof *sorted);
    sort_reals(sorted, s->n);
    const double median = quantile_of_sorted(sorted, s->n, 0.5);
    const int64_t want = plain_block(s->finite, s->n, median);
    const int64_t got = bootstrap_block(&source, s->n, median, &why);
    if (got != want)
        fail_msg("series %d, %d values: blocks of %d, not %d", kind, s->n, (int)got, (int)want);
}

/* Counted or summed, the covariances have the same block. */
static void blocks_are_those_of_sums(void **state) {
    (void)state;
    const int trials = (int)check_places(300);
    static sequence s;
    rng r = rng_create(15);
    for (int trial = 0; trial < trials; trial++)
        for (int kind = 0; kind < SERIES; kind++) {
            const int most = trial % 50 ? 400 : LONGEST;
            sequence_make(&s, kind, 1 + (int)rng_below(&r, (uint64_t)most), &r);
            if (s.n) expect_block(&s, kind);
        }
}

/* -- memory ---------------------------------------------------------------------------------- */

enum { LONG_ROWS = 6000000 };

static sr_status read_long(void *context, int64_t first, int64_t count, double *const *value,
                           sr_failure *why) {
    (void)context, (void)why;
    for (int64_t i = 0; i < count; i++)
        value[0][i] = (double)(rng_at(1, (uint64_t)(first + i)) >> 11);
    return SR_OK;
}

static double most_memory(void) {
    struct rusage used;
    assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
    return 1024.0 * (double)used.ru_maxrss;
}

/* A byte and a quarter of each value, and those of a few of 255 classes. Nothing that takes more comes before it: the
 * largest memory of a process does not fall. */
static void memory_of_a_value(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* it keeps what is freed */
#endif
    const column_source source = {1, LONG_ROWS, false, read_long, NULL};
    double result[BOOTSTRAP_TAILS * SOME];
    sr_failure why = {0};
    const double before = most_memory();
    assert_in_range(bootstrap_block(&source, LONG_ROWS, 0x1p52, &why), 1, 20);
    check_ok(bootstrap_tails(&source, LONG_ROWS, 100, rng_create(1), SOME, result, &why), &why);
    const double each = (most_memory() - before) / LONG_ROWS;
    if (each > 2) fail_msg("%.2f bytes of each value", each);
    assert_true(fabs(result[0] / 0x1p52 - 1) < 0.01);
    assert_true(fabs(result[SOME] / 0x1p53 - 0.99) < 0.001);
    assert_true(result[2 * SOME] / 0x1p53 > 0.999);
}

/* -- programs -------------------------------------------------------------------------------- */

enum { STEPS = 4000 };

static void write_run(const char *path, uint64_t seed, double level) {
    rng r = rng_create(seed);
    sr_options o = run_options();
    double slow = 0;
    o.config = level > 1 ? "norm = ln\nlr = 0.2\n" : "norm = ln\nlr = 0.1\n";
    o.seed = seed;
    sr_recorder *to = run_create(program_file(path), o);
    for (int i = 0; i < 2; i++)
        sr_add_site(to, &(sr_site){.size = sizeof(sr_site),
                                   .name = i ? "b" : "a",
                                   .norm = "ln",
                                   .kind = "encoder",
                                   .family = SR_FAMILY_ROW,
                                   .width = 2,
                                   .depth = i,
                                   .eps = 0,
                                   .alpha = NAN});
    for (int step = 1; step <= STEPS; step++) {
        slow = 0.9 * slow + rng_normal(&r);
        sr_begin_step(to, step);
        for (int i = 0; i < 2; i++) {
            const double value = level * exp(0.2 * slow + i * rng_normal(&r));
            sr_put_scalar(to, i, SR_SCALAR_row_grad_mean, step % 101 ? value : INFINITY);
            sr_put_scalar(to, i, SR_SCALAR_row_grad_var, floor(value));
        }
        run_end_step(to, step);
    }
    run_finish(to);
}

/* Rooms where classes are small, and where they are split again. */
static void expect_program(program_main *program, char **words, int least) {
    expect_same_table(program, 1000 * ROOM_OF_ONE, words, least);
    expect_same_table(program, 5 * ROOM_OF_ONE, words, least);
}

static void programs_print_the_same(void **state) {
    (void)state;
    static char scalar[] = "stat-scalar", intervals[] = "--intervals", stat[] = "--stat",
                both[] = "row_grad_mean,row_grad_var", compare[] = "stat-compare",
                after[] = "--after", part[] = "33.3", block[] = "--block", one[] = "1";
    char *run[3];
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "run%d.h5", i);
        write_run(name, 1 + (uint64_t)i, i == 2 ? 1.5 : 1);
        run[i] = strdup(program_file(name));
        assert_non_null(run[i]);
    }
    expect_program(stat_scalar_main, (char *[]){scalar, run[0], stat, both, intervals, NULL},
                   4 + 1);
    expect_program(stat_compare_main,
                   (char *[]){compare, run[2], run[0], run[1], stat, both, after, part, NULL},
                   12 + 1);
    expect_program(stat_compare_main,
                   (char *[]){compare, run[0], run[1], stat, both, block, one, NULL}, 12 + 1);
    for (int i = 0; i < 3; i++) free(run[i]);
}

int main(void) {
    /* Programs are children of this process, and have no threads of OpenMP where it had some. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_print_the_same),
        cmocka_unit_test(memory_of_a_value),
        cmocka_unit_test(tails_of_what_is_not_kept),
        cmocka_unit_test(tails_of_many_resamples),
        cmocka_unit_test(tails_on_any_threads),
        cmocka_unit_test(refused_numbers_are_drawn_again),
        cmocka_unit_test(read_three_times),
        cmocka_unit_test(failures_are_passed_on),
        cmocka_unit_test(blocks_are_those_of_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
