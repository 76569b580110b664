/* bench_limits.c -- limits of this machine, and the compiler and libraries of this build.
 *
 *   bench_limits [THREADS] [ROUNDS] [MEGABYTES]
 *
 *   fma    float32 multiply-adds on registers, two operations each, in as many independent chains
 *          of this build's widest vectors as hide their latency
 *   read   sum of three arrays of MEGABYTES (128) each, several times the last cache
 *   copy   a = 2 b                           bytes: b and a once
 *   triad  a = b + 2 c                       bytes: b, c and a once
 *
 * Counts the bytes that the program requests, not that a processor reads a line before it writes
 * it. Lines are prefetched AHEAD of their use, because processors prefetch too few. Every round
 * measures each line once, with one thread and with THREADS (2). The table has the median of ROUNDS
 * (15) and the best round. `#` lines: compiler, linked libraries and their instruction sets.
 */
#include <cblas.h>
#include <hdf5.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef USE_DNNL
#include <dnnl.h>
#endif

#include "base/program/progress.h"
#include "engine/gemm/gemm.h"

#if defined(__AVX512F__)
enum { VECTOR = 64 };
#define BUILT_FOR "AVX-512"
#elif defined(__AVX2__) && defined(__FMA__)
enum { VECTOR = 32 };
#define BUILT_FOR "AVX2 and FMA"
#else
enum { VECTOR = 16 };
#define BUILT_FOR "vectors of 16 bytes"
#endif
#ifdef __clang__
#define COMPILER "clang"
#else
#define COMPILER "gcc"
#endif

typedef float vector __attribute__((vector_size(VECTOR)));

enum { CHAINS = 12, FMA_TURNS = 1 << 21, MOST_ROUNDS = 1000, ARRAYS = 3, BLOCK = 4096 };
enum { CHUNK = 64, AHEAD = 1024 }; /* numbers */

typedef struct memory {
    real *array[ARRAYS];
    int64_t count; /* numbers per array, a multiple of BLOCK */
    double sink;   /* so that no loop is left out */
} memory;

/* -- loops: each gives operations or bytes --------------------------------------------------------- */

static float fma_chains(float factor, float term) {
    vector chain[CHAINS], by = factor - (vector){0}, plus = term - (vector){0};
    for (int i = 0; i < CHAINS; i++) chain[i] = plus * (float)i;
    for (int turn = 0; turn < FMA_TURNS; turn++)
        for (int i = 0; i < CHAINS; i++) chain[i] = chain[i] * by + plus;
    float sum = 0;
    for (int i = 0; i < CHAINS; i++)
        for (size_t j = 0; j < VECTOR / sizeof sum; j++) sum += chain[i][j];
    return sum;
}

static double run_fma(memory *m, int threads) {
    volatile float factor = 0.5F, term = 0.25F; /* known at run time only */
    double sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    sum += (double)fma_chains(factor, term);
    m->sink += sum;
    return 2.0 * CHAINS * FMA_TURNS * VECTOR / sizeof(float) * threads;
}

/* The lines of a chunk that is AHEAD of this one. */
static void ask(const real *x, int write) {
    const char *line = (const char *)(x + AHEAD);
    for (size_t at = 0; at < CHUNK * sizeof *x; at += 64)
        if (write)
            __builtin_prefetch(line + at, 1);
        else
            __builtin_prefetch(line + at, 0);
}

static real sum_block(const real *x) {
    real lane[CHUNK] = {0}, sum = 0;
    for (int i = 0; i < BLOCK; i += CHUNK) {
        ask(x + i, 0);
        for (int j = 0; j < CHUNK; j++) lane[j] += x[i + j];
    }
    for (int j = 0; j < CHUNK; j++) sum += lane[j];
    return sum;
}

static double run_read(memory *m, int threads) {
    double sum = 0;
    for (int a = 0; a < ARRAYS; a++) {
        const real *x = m->array[a];
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sum)
        for (int64_t i = 0; i < m->count; i += BLOCK) sum += (double)sum_block(x + i);
    }
    m->sink += sum;
    return (double)m->count * sizeof(real) * ARRAYS;
}

static double run_copy(memory *m, int threads) {
    real *restrict a = m->array[0];
    const real *restrict b = m->array[1];
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < m->count; i += CHUNK) {
        ask(b + i, 0), ask(a + i, 1);
        for (int j = 0; j < CHUNK; j++) a[i + j] = 2 * b[i + j];
    }
    return (double)m->count * sizeof(real) * 2;
}

static double run_triad(memory *m, int threads) {
    real *restrict a = m->array[0];
    const real *restrict b = m->array[1], *restrict c = m->array[2];
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < m->count; i += CHUNK) {
        ask(b + i, 0), ask(c + i, 0), ask(a + i, 1);
        for (int j = 0; j < CHUNK; j++) a[i + j] = b[i + j] + 2 * c[i + j];
    }
    return (double)m->count * sizeof(real) * 3;
}

static const struct limit {
    const char *name, *unit;
    double (*run)(memory *m, int threads);
} limits[] = {{"fma", "GFLOP/s", run_fma},
              {"read", "GB/s", run_read},
              {"copy", "GB/s", run_copy},
              {"triad", "GB/s", run_triad}};

enum { LIMITS = sizeof limits / sizeof limits[0] };

/* -- rounds ---------------------------------------------------------------------------------------- */

static bool memory_create(memory *m, int threads, int64_t megabytes) {
    m->count = megabytes * 1000000 / (int64_t)sizeof(real) / BLOCK * BLOCK;
    for (int a = 0; a < ARRAYS; a++) {
        real *x = m->array[a] = aligned_alloc(64, (size_t)m->count * sizeof *x);
        if (!x) return false;
            /* each page first touched by the thread that will use it */
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int64_t i = 0; i < m->count; i++) x[i] = (real)(i % 17);
    }
    return true;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(memory *m, int threads, int rounds) {
    static double found[LIMITS][2][MOST_ROUNDS];
    for (int r = -1; r < rounds; r++) /* round -1 warms up */
        for (int i = 0; i < LIMITS; i++)
            for (int all = 0; all < 2; all++) {
                double start = progress_clock(), work = limits[i].run(m, all ? threads : 1);
                if (r >= 0) found[i][all][r] = 1e-9 * work / (progress_clock() - start);
            }
    printf("limit\tthreads\tmedian\tbest\tunit\n");
    for (int i = 0; i < LIMITS; i++)
        for (int all = 0; all < (threads > 1 ? 2 : 1); all++) {
            double *x = found[i][all];
            qsort(x, (size_t)rounds, sizeof *x, by_value);
            printf("%s\t%d\t%.1f\t%.1f\t%s\n", limits[i].name, all ? threads : 1, x[rounds / 2],
                   x[rounds - 1], limits[i].unit);
        }
}

/* -- versions -------------------------------------------------------------------------------------- */

#ifdef USE_DNNL
static const char *dnnl_instructions(void) {
    switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
        return "SSE4.1";
    case dnnl_cpu_isa_avx:
        return "AVX";
    case dnnl_cpu_isa_avx2:
        return "AVX2";
    case dnnl_cpu_isa_avx512_core:
        return "AVX-512";
    case dnnl_cpu_isa_avx512_core_vnni:
        return "AVX-512 with VNNI";
    case dnnl_cpu_isa_avx512_core_bf16:
        return "AVX-512 with VNNI and bfloat16";
    default:
        return "others";
    }
}
#endif

static void print_versions(void) {
    unsigned first, second, third;
    printf("# compiler: " COMPILER " %s, for " BUILT_FOR "\n", __VERSION__);
    printf("# products: %s\n", gemm_kernels());
    printf("# OpenBLAS: %.15s, kernels for %s\n", openblas_get_config(), gemm_library());
#ifdef USE_DNNL
    const dnnl_version_t *v = dnnl_version();
    printf("# oneDNN: %d.%d.%d, %s\n", v->major, v->minor, v->patch, dnnl_instructions());
#else
    printf("# oneDNN: none\n");
#endif
    if (H5get_libversion(&first, &second, &third) >= 0)
        printf("# HDF5: %u.%u.%u\n", first, second, third);
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 2, rounds = argc > 2 ? atoi(argv[2]) : 15;
    int64_t megabytes = argc > 3 ? atoi(argv[3]) : 128;
    if (threads < 1 || rounds < 1 || rounds > MOST_ROUNDS || megabytes < 1) {
        fprintf(stderr, "usage: bench_limits [THREADS] [ROUNDS] [MEGABYTES]\n");
        return 2;
    }
    gemm_setup(threads);
    memory m = {0};
    bool enough = memory_create(&m, threads, megabytes);
    if (enough) {
        print_versions();
        printf("# arrays of %lld MB; medians of %d rounds and the best one\n", (long long)megabytes,
               rounds);
        measure(&m, threads, rounds);
    }
    for (int a = 0; a < ARRAYS; a++) free(m.array[a]);
    if (!enough) fprintf(stderr, "bench_limits: out of memory\n");
    return enough && m.sink != 0 ? 0 : 1;
}
