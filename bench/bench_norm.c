/* bench_norm.c -- time of normalization layers against the memory traffic of their passes.
 *
 *     bench_norm [METHOD ROWS FEATURES THREADS [watched]]
 *
 * The yardstick is the time that plain loops need for the same number of reads and writes. It is
 * measured in the same run on the same buffers with the same threads:
 *
 *     batch methods   forward: x read twice, y written    backward: x, dy read twice, dx written
 *     row methods     forward: x read, y written          backward: x, dy read, dx written
 *
 * watched: with an empty hook, so that the layer computes all its statistics.
 *
 * Buffers are cycled so that each call finds its own in memory, not in cache. Each number is the
 * least over rounds, because other work on the machine only adds time. In a round the layer and its
 * yardstick take turns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "norm/norm_options.h"
#include "norm/norm_site.h"

enum { ROUNDS = 21, SETS_MAX = 16 };

/* More than the last-level cache of the machines this runs on. */
static const size_t cycled_bytes = (size_t)192 << 20;

typedef struct set {
    real *x, *dy, *y, *dx;
    tape *t; /* its own: y must not be in cache either */
} set;

typedef struct bench {
    int64_t rows, d;
    int sets, threads;
    set set[SETS_MAX];
    params p;
    norm_site site;
    double sink;
} bench;

/* With one thread it is processor time, which other programs do not increase. */
static double now(const bench *b) {
    struct timespec t;
    clock_gettime(b->threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double least(const double *x) {
    double best = x[0];
    for (int i = 1; i < ROUNDS; i++)
        if (x[i] < best) best = x[i];
    return best;
}

/* -- plain traffic ----------------------------------------------------------------------------- */

enum { BLOCK = 4096 };

static real sum_block(const real *x, int64_t count) {
    real lane[32] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 32 <= count; i += 32)
        for (int j = 0; j < 32; j++) lane[j] += x[i + j];
    for (int j = 0; j < 32; j++) sum += lane[j];
    return sum;
}

static double read_plain(const real *x, int64_t count, int threads) {
    double sum = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sum)
    for (int64_t i = 0; i < count / BLOCK; i++) sum += (double)sum_block(x + i * BLOCK, BLOCK);
    return sum;
}

static void write_plain(const real *a, const real *b, real *y, int64_t count, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < count; i++) y[i] = a[i] + (real)2 * b[i];
}

static void copy_plain(const real *a, real *y, int64_t count, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < count; i++) y[i] = a[i] * (real)2;
}

static double plain_forward(bench *b, const set *s, bool twice) {
    double start = now(b);
    if (twice) b->sink += read_plain(s->x, b->rows * b->d, b->threads);
    copy_plain(s->x, s->y, b->rows * b->d, b->threads);
    return now(b) - start;
}

static double plain_backward(bench *b, const set *s, bool twice) {
    double start = now(b);
    if (twice) {
        b->sink += read_plain(s->x, b->rows * b->d, b->threads);
        b->sink += read_plain(s->dy, b->rows * b->d, b->threads);
    }
    write_plain(s->x, s->dy, s->dx, b->rows * b->d, b->threads);
    return now(b) - start;
}

/* -- the layer --------------------------------------------------------------------------------- */

/* Method functions directly: the same calls as norm_apply makes, on the benchmark's buffers. */
static void time_layer(bench *b, const set *s, double *forward, double *backward) {
    norm_rows rows;
    tape_reset(s->t, rng_create(1), true, true);
    if (norm_rows_init(&rows, s->t, b->rows, NULL, NORM_TRAIN) != SR_OK) exit(1);
    int64_t dim[2] = {b->rows, b->d}, one = 1;
    tensor *x = tape_wrap(s->t, 2, dim, s->x), *loss = tape_tensor(s->t, 1, &one);
    if (!x || !loss) exit(1);
    x->wants_grad = loss->wants_grad = true;
    x->grad = s->dx;
    double start = now(b);
    tensor *y = norm_apply(&b->site, s->t, x, &rows);
    *forward = now(b) - start;
    if (!y) exit(1);
    y->grad = s->dy;
    y->has_grad = true;
    start = now(b);
    tape_backward(s->t, loss, 1);
    *backward = now(b) - start;
    if (tape_failure(s->t)) exit(1);
}

static bool make_sets(bench *b, sr_failure *why) {
    size_t count = (size_t)(b->rows * b->d), bytes = count * sizeof(real);
    b->sets = (int)(cycled_bytes / (4 * bytes)) + 1;
    if (b->sets > SETS_MAX) b->sets = SETS_MAX;
    if (b->sets < 2) b->sets = 2;
    rng r = rng_create(1);
    for (int i = 0; i < b->sets; i++) {
        b->set[i].t = tape_create(b->threads, why);
        if (!b->set[i].t) return false;
        real **array[] = {&b->set[i].x, &b->set[i].dy, &b->set[i].y, &b->set[i].dx};
        for (int j = 0; j < 4; j++) {
            *array[j] = aligned_alloc(64, (bytes + 63) / 64 * 64);
            if (!*array[j]) return false;
            for (size_t k = 0; k < count; k++) (*array[j])[k] = (real)rng_uniform(&r);
        }
    }
    return true;
}

static void free_sets(bench *b) {
    for (int i = 0; i < b->sets; i++) {
        tape_free(b->set[i].t);
        free(b->set[i].x);
        free(b->set[i].dy);
        free(b->set[i].y);
        free(b->set[i].dx);
    }
}

static void look_at_nothing(void *context, const norm_view *o) {
    (void)context, (void)o;
}

static void run(const char *name, int64_t rows, int64_t d, int threads, bool watched) {
    bench *b = calloc(1, sizeof *b);
    sr_failure why = {0};
    double time[4][ROUNDS];
    const norm_method *m = norm_find(name);
    if (!b || !m) exit(1);
    *b = (bench){.rows = rows, .d = d, .threads = threads};
    norm_options o = norm_options_default(m);
    params_init(&b->p, 1);
    if (!make_sets(b, &why) ||
        norm_site_init(&b->site, &b->p, "bench", "encoder", 0, d, m, &o, &why) != SR_OK) {
        fprintf(stderr, "bench_norm: %s\n", why.text);
        exit(1);
    }
    if (watched) b->site.backward_hook = look_at_nothing;
    bool twice = !strcmp(m->axis, "batch");
    for (int i = -2; i < ROUNDS; i++) {
        const set *s = &b->set[(i + 2) % b->sets];
        int at = i < 0 ? 0 : i;
        time_layer(b, s, &time[0][at], &time[1][at]);
        s = &b->set[(i + 2 + b->sets / 2) % b->sets];
        time[2][at] = plain_forward(b, s, twice);
        time[3][at] = plain_backward(b, s, twice);
    }
    double f = least(time[0]), g = least(time[1]), pf = least(time[2]), pg = least(time[3]);
    double mb = (double)(rows * d) * sizeof(real) / 1e6;
    printf("%s\t%lld\t%lld\t%d\t%.3f\t%.3f\t%.2f\t%.3f\t%.3f\t%.2f\t%.2f\t%.1f\n", name,
           (long long)rows, (long long)d, threads, 1e3 * f, 1e3 * pf, f / pf, 1e3 * g, 1e3 * pg,
           g / pg, (f + g) / (pf + pg), (twice ? 3 : 2) * mb / 1e3 / pf);
    norm_site_free(&b->site);
    params_free(&b->p);
    free_sets(b);
    free(b);
}

int main(int argc, char **argv) {
    const int64_t shape[][2] = {{131072, 16}, {4096, 512}, {32768, 64}};
    const char *const names[] = {"bn",           "rbn", "brn",         "mabn",
                                 "pnv",          "pn",  "pn-released", "bn-powernorm",
                                 "rbn-released", "ln",  "adanorm"};
    printf("# least of %d rounds, milliseconds; plain = the same reads and writes in plain loops\n"
           "# of a batch (or row) method; a layer scale, which pn-released and bn-powernorm always "
           "have, counts no "
           "pass\n# both = ratio of forward and backward together\n",
           ROUNDS);
    printf("method\trows\tfeatures\tthreads\tforward\tplain\tratio\tbackward\tplain\tratio\tboth\tG"
           "B/s\n");
    if (argc >= 5) {
        run(argv[1], atoll(argv[2]), atoll(argv[3]), atoi(argv[4]), argc > 5);
        return 0;
    }
    for (int threads = 1; threads <= 2; threads++)
        for (size_t s = 0; s < sizeof shape / sizeof *shape; s++)
            for (size_t m = 0; m < sizeof names / sizeof *names; m++)
                run(names[m], shape[s][0], shape[s][1], threads, false);
    return 0;
}
