/* bench_gemm.c -- speed of gemm() on the products of the mini Transformer (1024 tokens, d 128, FFN
 * 256, vocabulary 4000) and of gemm_chunk() on its attention heads' products.
 *
 *   bench_gemm [THREADS] [ROUNDS]
 *
 * Every round times every product once with one thread and once with THREADS (default 2). The table
 * has the best rounds and the medians over ROUNDS (default 15), so that a slow moment of the
 * machine does not affect a single line. It has medians with THREADS of the same products (except
 * heads):
 *   library   by oneDNN or OpenBLAS (gemm.c), as without tiles
 *   far       operands and results at another address each time, in no core's cache
 *   bf16      gemm_bf16(), packing included
 * Numbers are random: tiles are faster on numbers with few digits. For the other library build with
 * `make DNNL=0`.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/program/progress.h"
#include "base/rng.h"
#include "engine/gemm/bf16.h"
#include "engine/gemm/gemm.h"
#include "engine/gemm_group.h"

typedef struct shape {
    const char *name;
    bool ta, tb;
    int64_t m, n, k;
} shape;

static const shape shapes[] = {
    {"linear y", false, true, 1024, 128, 128},    {"linear dx", false, false, 1024, 128, 128},
    {"linear dw", true, false, 128, 128, 1024},   {"ffn1 y", false, true, 1024, 256, 128},
    {"ffn1 dx", false, false, 1024, 128, 256},    {"ffn1 dw", true, false, 256, 128, 1024},
    {"ffn2 y", false, true, 1024, 128, 256},      {"ffn2 dx", false, false, 1024, 256, 128},
    {"ffn2 dw", true, false, 128, 256, 1024},     {"logits y", false, true, 1024, 4000, 128},
    {"logits dx", false, false, 1024, 128, 4000}, {"logits dw", true, false, 4000, 128, 1024},
    {"head qk, T 16", false, true, 16, 16, 32},   {"head av, T 16", false, false, 16, 32, 16},
    {"head qk, T 32", false, true, 32, 32, 32},   {"head av, T 32", false, false, 32, 32, 32},
};

typedef enum { ONE_THREAD, ALL_THREADS, ALL_LIBRARY, ALL_FAR, ALL_BF16, WAYS } way;

enum { SHAPES = sizeof shapes / sizeof shapes[0], ROOM = 16 << 20, MOST_ROUNDS = 1000 };

/* [ROOM] each */
typedef struct matrices {
    real *a, *b, *c;
} matrices;

static bool is_head(const shape *s) {
    return s->name[0] == 'h';
}

/* Offset in ROOM of the i-th matrix of `count` numbers. */
static int64_t place_of(int64_t count, int i) {
    const int64_t line = 16, size = (count + line - 1) / line * line;
    return i % (ROOM / size) * size;
}

static void run(const shape *s, way w, int threads, const matrices *x, int i) {
    static scratch_memory room;
    sr_failure why = {0};
    const int64_t lda = s->ta ? s->m : s->k, ldb = s->tb ? s->k : s->n;
    const int far = w == ALL_FAR ? i : 0;
    const real *a = x->a + place_of(s->m * s->k, far), *b = x->b + place_of(s->k * s->n, far);
    real *c = x->c + place_of(s->m * s->n, far);
    if (w == ALL_BF16)
        gemm_bf16(&room, threads, s->ta, s->tb, s->m, s->n, s->k, a, lda, b, ldb, 0, c, s->n, &why);
    else if (w == ALL_LIBRARY)
        gemm_group_by_libraries(
            &(gemm_group){s->ta, s->tb, s->m, s->n, s->k, a, lda, b, ldb, 0, c, s->n, NULL},
            threads);
    else if (is_head(s))
        gemm_chunk(s->ta, s->tb, s->m, s->n, s->k, 1, a, lda, b, ldb, 0, c, s->n);
    else
        gemm(&room, w == ONE_THREAD ? 1 : threads, s->ta, s->tb, s->m, s->n, s->k, a, lda, b, ldb,
             0, c, s->n);
}

/* GFLOP/s over enough repetitions for a millisecond or more. */
static double speed(const shape *s, way w, int threads, const matrices *x) {
    if (w >= ALL_LIBRARY && is_head(s)) return 0;
    double work = 2.0 * (double)(s->m * s->n * s->k);
    int repeat = 1 + (int)(2e8 / work);
    double start = (1e9 * progress_clock());
    for (int i = 0; i < repeat; i++) run(s, w, threads, x, i);
    return work * repeat / ((1e9 * progress_clock()) - start);
}

static real *random_matrices(uint64_t seed) {
    real *x = aligned_alloc(64, ROOM * sizeof *x);
    rng r = rng_create(seed);
    for (int i = 0; x && i < ROOM; i++) x[i] = (real)(rng_uniform(&r) - 0.5);
    return x;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    static double found[SHAPES][WAYS][MOST_ROUNDS];
    int threads = argc > 1 ? atoi(argv[1]) : 2, rounds = argc > 2 ? atoi(argv[2]) : 15;
    if (threads < 1 || rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: bench_gemm [THREADS] [ROUNDS]\n");
        return 2;
    }
    gemm_setup(threads);
    const matrices x = {random_matrices(1), random_matrices(2), random_matrices(3)};
    if (!x.a || !x.b || !x.c) return 1;
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < SHAPES; i++)
            for (way w = 0; w < WAYS; w++) found[i][w][r] = speed(&shapes[i], w, threads, &x);
    printf("# gemm, GFLOP/s, median of %d; by %s, OpenBLAS core %s\n", rounds, gemm_kernels(),
           gemm_library());
    printf("product\tm\tn\tk\t1 thread\t%d threads\tbest 1\tbest %d\tlibrary\tfar\tbf16\n", threads,
           threads);
    for (int i = 0; i < SHAPES; i++) {
        for (way w = 0; w < WAYS; w++) qsort(found[i][w], (size_t)rounds, sizeof(double), by_value);
        const double(*of)[MOST_ROUNDS] = found[i];
        printf("%s\t%lld\t%lld\t%lld\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\n", shapes[i].name,
               (long long)shapes[i].m, (long long)shapes[i].n, (long long)shapes[i].k,
               of[ONE_THREAD][rounds / 2], of[ALL_THREADS][rounds / 2], of[ONE_THREAD][rounds - 1],
               of[ALL_THREADS][rounds - 1], of[ALL_LIBRARY][rounds / 2], of[ALL_FAR][rounds / 2],
               of[ALL_BF16][rounds / 2]);
    }
    free(x.a), free(x.b), free(x.c);
    return 0;
}
