/* bench_ops.c -- time of the ops other than products: attention, cross entropy, dropout, relu, add
 * and embedding. Sizes are the mini Transformer's and a long one's; relu also with 67 MB. Also the
 * optimizers, under `forward`, on 16 million numbers. The last three do not fit into a cache.
 *
 *   bench_ops [THREADS] [ROUNDS]
 *
 * Prints microseconds of forward and of backward, least and median of ROUNDS (default 25). On a
 * shared machine set OMP_WAIT_POLICY=passive: otherwise a spinning thread waits for its whole time
 * slice.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program/progress.h"
#include "engine/gemm/gemm.h"
#include "engine/ops/attention/attention_ops.h"
#include "engine/ops/loss/loss_ops.h"
#include "engine/ops/ops.h"
#include "train/optim/optim.h"

enum { MOST_ROUNDS = 1000, LONGEST = 8192 };

typedef struct shape {
    const char *name;
    tensor *(*build)(tape *t, const struct shape *s, real *data);
    int64_t a, b, c, d; /* rows, features; or B, Tq, Tk, d */
} shape;

static int32_t number[LONGEST];

/* Constant values as an input that wants a gradient. */
static tensor *input(tape *t, int rank, const int64_t *dim, real *data) {
    tensor *x = tape_wrap(t, rank, dim, data);
    if (x) x->wants_grad = true;
    return x;
}

static tensor *matrix(tape *t, const shape *s, real *data) {
    return input(t, 2, (int64_t[]){s->a, s->b}, data);
}

static tensor *attend(tape *t, const shape *s, real *data, bool causal) {
    int64_t query[3] = {s->a, s->b, s->d}, key[3] = {s->a, s->c, s->d};
    return op_attention(t, input(t, 3, query, data), input(t, 3, key, data), input(t, 3, key, data),
                        4, 1 / sqrt((double)s->d / 4), NULL, causal, 0.1, NULL);
}

static tensor *attention(tape *t, const shape *s, real *data) {
    return attend(t, s, data, false);
}

static tensor *attention_causal(tape *t, const shape *s, real *data) {
    return attend(t, s, data, true);
}

static tensor *cross_entropy(tape *t, const shape *s, real *data) {
    return op_cross_entropy(t, matrix(t, s, data), number, -1, -1, 0.1, SMOOTHING_ALL, NULL);
}

static tensor *dropout(tape *t, const shape *s, real *data) {
    return op_dropout(t, matrix(t, s, data), 0.3);
}

static tensor *relu(tape *t, const shape *s, real *data) {
    return op_relu(t, matrix(t, s, data));
}

static tensor *add(tape *t, const shape *s, real *data) {
    return op_add(t, matrix(t, s, data), matrix(t, s, data));
}

/* a tokens from a vocabulary of c. */
static tensor *embedding(tape *t, const shape *s, real *data) {
    tensor *table = input(t, 2, (int64_t[]){s->c, s->b}, data);
    return op_embedding(t, table, number, s->a / 32, 32, 11, NULL, 1);
}

static const shape shapes[] = {
    {"attention", attention, 60, 17, 17, 128},
    {"attention", attention, 30, 32, 32, 128},
    {"attention causal", attention_causal, 30, 32, 32, 128},
    {"attention", attention, 16, 64, 64, 512},
    {"attention", attention, 4, 300, 300, 512},
    {"cross_entropy", cross_entropy, 1024, 4000, 0, 0},
    {"cross_entropy", cross_entropy, 1024, 8000, 0, 0},
    {"dropout", dropout, 1024, 512, 0, 0},
    {"relu", relu, 1024, 512, 0, 0},
    {"relu", relu, 32768, 512, 0, 0},
    {"add", add, 1024, 512, 0, 0},
    {"embedding", embedding, 1024, 128, 4000, 0},
    {"embedding", embedding, 4096, 512, 10000, 0},
};

enum { SHAPES = sizeof shapes / sizeof shapes[0], ROOM = 32768 * 512 };

/* Gradient of the op alone: its output gets a gradient of ones, then its node runs. */
static bool time_once(tape *t, const shape *s, real *data, double *forward, double *backward) {
    tape_reset(t, rng_create(1), true, true);
    double start = (1e9 * progress_clock());
    tensor *y = s->build(t, s, data);
    *forward = ((1e9 * progress_clock()) - start) * 1e-3;
    bool add_to;
    real *g = y && t->last ? tape_grad(t, y, &add_to) : NULL;
    for (int64_t i = 0; g && i < y->count; i++) g[i] = 1;
    start = (1e9 * progress_clock());
    if (g) t->last->backward(t, t->last);
    *backward = ((1e9 * progress_clock()) - start) * 1e-3;
    return g && !tape_failure(t);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double found[2][MOST_ROUNDS]; /* microseconds of forward and of backward */

static void print(const shape *s, int rounds) {
    for (int pass = 0; pass < 2; pass++)
        qsort(found[pass], (size_t)rounds, sizeof(double), by_value);
    printf("%s\t%lld\t%lld\t%lld\t%lld\t%.0f\t%.0f\t%.0f\t%.0f\n", s->name, (long long)s->a,
           (long long)s->b, (long long)s->c, (long long)s->d, found[0][0], found[0][rounds / 2],
           found[1][0], found[1][rounds / 2]);
}

static bool bench(tape *t, const shape *s, real *data, int rounds) {
    for (int r = 0; r < rounds; r++)
        if (!time_once(t, s, data, &found[0][r], &found[1][r])) return false;
    print(s, rounds);
    return true;
}

static bool bench_optimizer(const char *name, int threads, int rounds, sr_failure *why) {
    const shape s = {name, NULL, 4096, 4096, 0, 0};
    const optim_row *row = optim_find(name);
    const optim_options o = {.momentum = 0.9, .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-8};
    params p;
    params_init(&p, 1);
    tensor *x = params_add(&p, "weight", 2, (int64_t[]){s.a, s.b}, INIT_UNIFORM, 0.1);
    bool ok = x && params_slots(&p, row->slots, why) == SR_OK;
    for (int64_t i = 0; ok && i < x->count; i++) x->grad[i] = (real)0.01;
    for (int r = -1; ok && r < rounds; r++) { /* round -1 warms up */
        const optim_step u = {&o, r + 2, 1e-4, 1, threads};
        double start = progress_clock();
        optim_apply(row, &u, &p);
        if (r >= 0) found[0][r] = 1e6 * (progress_clock() - start), found[1][r] = 0;
    }
    if (ok) print(&s, rounds);
    params_free(&p);
    return ok;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 2, rounds = argc > 2 ? atoi(argv[2]) : 25;
    if (threads < 1 || rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: bench_ops [THREADS] [ROUNDS]\n");
        return 2;
    }
    gemm_setup(threads);
    sr_failure why = {0};
    tape *t = tape_create(threads, &why);
    real *data = calloc(ROOM, sizeof *data);
    if (!t || !data) return 1;
    rng r = rng_create(1);
    for (int64_t i = 0; i < ROOM; i++) data[i] = (real)(rng_uniform(&r) - 0.5);
    for (int i = 0; i < LONGEST; i++) number[i] = (int32_t)rng_below(&r, 4000);
    printf("# ops on %d threads, microseconds\n", threads);
    printf("op\ta\tb\tc\td\tforward least\tmedian\tbackward least\tmedian\n");
    bool ok = true;
    for (int i = 0; i < SHAPES && ok; i++) ok = bench(t, &shapes[i], data, rounds);
    ok = ok && bench_optimizer("sgd", threads, rounds, &why) &&
         bench_optimizer("adam", threads, rounds, &why);
    free(data);
    tape_free(t);
    return ok ? 0 : 1;
}
