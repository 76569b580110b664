/* bench_gemm.c -- speed of gemm() on the products of the mini Transformer (1024 tokens, d 128,
 * FFN 256, vocabulary 4000) and of gemm_piece() on those of its attention heads.
 *
 *   bench_gemm [THREADS] [ROUNDS]
 *
 * Every round times every product once with one thread and once with THREADS (default 2); the
 * table has the medians over ROUNDS (default 15), so that a slow moment of the machine does not hit
 * one line only, and the best rounds; `bf16`: gemm_bf16() with THREADS, packing included, medians (heads: none). For the
 * other library build with `make DNNL=0`.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "statnet/bf16.h"
#include "statnet/gemm.h"
#include "statnet/progress.h"

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

typedef enum { ONE_THREAD, ALL_THREADS, ALL_BF16, WAYS } way;

enum { SHAPES = sizeof shapes / sizeof shapes[0], ROOM = 4096 * 1024, MOST_ROUNDS = 1000 };

static bool is_head(const shape *s) {
    return s->name[0] == 'h';
}

static void run(const shape *s, way w, int threads, const real *a, const real *b, real *c) {
    static scratch_memory room;
    sr_failure why = {0};
    int64_t lda = s->ta ? s->m : s->k, ldb = s->tb ? s->k : s->n;
    if (w == ALL_BF16)
        gemm_bf16(&room, threads, s->ta, s->tb, s->m, s->n, s->k, a, lda, b, ldb, 0, c, s->n, &why);
    else if (is_head(s))
        gemm_piece(s->ta, s->tb, s->m, s->n, s->k, 1, a, lda, b, ldb, 0, c, s->n);
    else
        gemm(&room, w == ONE_THREAD ? 1 : threads, s->ta, s->tb, s->m, s->n, s->k, a, lda, b, ldb,
             0, c, s->n);
}

/* GFLOP/s over enough repetitions for a millisecond or more. */
static double speed(const shape *s, way w, int threads, const real *a, const real *b, real *c) {
    if (w == ALL_BF16 && is_head(s)) return 0;
    double work = 2.0 * (double)(s->m * s->n * s->k);
    int repeat = 1 + (int)(2e8 / work);
    double start = (1e9 * progress_clock());
    for (int i = 0; i < repeat; i++) run(s, w, threads, a, b, c);
    return work * repeat / ((1e9 * progress_clock()) - start);
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
    real *a = calloc(ROOM, sizeof *a), *b = calloc(ROOM, sizeof *b), *c = calloc(ROOM, sizeof *c);
    if (!a || !b || !c) return 1;
    for (int i = 0; i < ROOM; i++) a[i] = b[i] = (real)(i % 17) / 16;
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < SHAPES; i++)
            for (way w = 0; w < WAYS; w++) found[i][w][r] = speed(&shapes[i], w, threads, a, b, c);
    printf("# gemm, GFLOP/s, median of %d; by %s, OpenBLAS core %s\n", rounds, gemm_kernels(),
           gemm_library());
    printf("product\tm\tn\tk\t1 thread\t%d threads\tbest 1\tbest %d\tbf16\n", threads, threads);
    for (int i = 0; i < SHAPES; i++) {
        for (way w = 0; w < WAYS; w++) qsort(found[i][w], (size_t)rounds, sizeof(double), by_value);
        printf("%s\t%lld\t%lld\t%lld\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\n", shapes[i].name,
               (long long)shapes[i].m, (long long)shapes[i].n, (long long)shapes[i].k,
               found[i][0][rounds / 2], found[i][1][rounds / 2], found[i][0][rounds - 1],
               found[i][1][rounds - 1], found[i][ALL_BF16][rounds / 2]);
    }
    free(a), free(b), free(c);
    return 0;
}
