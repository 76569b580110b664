/* gemm.c -- matrix products, distributed over our own threads.
 *
 * c = op(a) op(b) + beta c. gemm_amx.c computes the products that amx_takes accepts. gemm_tiles.c
 * computes the others that gemm_tiles_fit accepts. The rest are cut into fixed chunks; each is one
 * single-threaded library call:
 *   float, with oneDNN:  dnnl_sgemm, except products of fewer than SMALL_WORK multiply-adds
 *   otherwise:           cblas (OpenBLAS)
 * OpenBLAS 0.3.21 falls back to AVX2 kernels on CPUs newer than itself, at half the speed. oneDNN
 * checks instructions instead, but tiny products are faster in OpenBLAS. bench/bench_gemm.c
 * measures both. Products of equal sizes use the same library, so results do not depend on the
 * caller.
 *
 * Cutting depends on m, n, k alone:
 *   rows or columns  blocks of the longer side of c, at least NARROWEST wide
 *   depth            split-K when c is too small but k is long (weight gradients): partial sums of
 *                    k-blocks, added in the order of the blocks */
#include "engine/gemm/gemm.h"

#include <cblas.h>
#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "engine/amx/gemm_amx.h"
#include "engine/gemm/gemm_tiles.h"
#include "engine/gemm_group.h"
#include "engine/onednn/onednn.h"
#include "engine/work_chunks.h"

enum {
    /* multiply-adds; below, OpenBLAS is faster than dnnl_sgemm */
    SMALL_WORK = 16 * 1024,
    /* multiply-adds that a chunk should have: some fifty microseconds */
    CHUNK_WORK = 4 * 1024 * 1024,
    MOST_CHUNKS = 8, /* the library copies all of b for each chunk */
    NARROWEST = 48,  /* rows or columns of a chunk */
    SHORTEST = 128   /* depth of a chunk */
};

typedef enum { CUT_NOT, CUT_ROWS, CUT_COLUMNS, CUT_DEPTH } cut_side;

typedef struct cut {
    cut_side side;
    int64_t chunks, width; /* the last chunk may be narrower */
} cut;

void gemm_chunk(bool ta, bool tb, int64_t m, int64_t n, int64_t k, real alpha, const real *a,
                int64_t lda, const real *b, int64_t ldb, real beta, real *c, int64_t ldc) {
    /* Both libraries ask OpenMP how many threads they may use. To them, a region of one thread is
     * not parallel. */
    int allowed = omp_get_max_threads();
    if (allowed != 1) omp_set_num_threads(1);
    bool done = false;
#ifdef USE_DNNL
    done =
        m * n * k >= SMALL_WORK && gemm_dnnl(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
#endif
    CBLAS_TRANSPOSE opa = ta ? CblasTrans : CblasNoTrans, opb = tb ? CblasTrans : CblasNoTrans;
#ifdef REAL_DOUBLE
    if (!done)
        cblas_dgemm(CblasRowMajor, opa, opb, (int)m, (int)n, (int)k, alpha, a, (int)lda, b,
                    (int)ldb, beta, c, (int)ldc);
#else
    if (!done)
        cblas_sgemm(CblasRowMajor, opa, opb, (int)m, (int)n, (int)k, alpha, a, (int)lda, b,
                    (int)ldb, beta, c, (int)ldc);
#endif
    if (allowed != 1) omp_set_num_threads(allowed);
}

static void product_run(const gemm_group *p) {
    gemm_chunk(p->ta, p->tb, p->m, p->n, p->k, 1, p->a, p->lda, p->b, p->ldb, p->beta, p->c,
               p->ldc);
    for (int64_t i = 0; p->bias && i < p->m; i++) {
        real *restrict c = p->c + i * p->ldc;
        for (int64_t j = 0; j < p->n; j++) c[j] += p->bias[j];
    }
}

/* Blocks of equal width, rounded up to a multiple of `grain`, along `length`. */
static cut cut_evenly(cut_side side, int64_t length, int64_t chunks, int64_t grain) {
    int64_t width = (length + chunks - 1) / chunks;
    width = (width + grain - 1) / grain * grain;
    return (cut){side, (length + width - 1) / width, width};
}

static cut product_cut(const gemm_group *p) {
    int64_t wanted = lesser(p->m * p->n * p->k / CHUNK_WORK, MOST_CHUNKS);
    if (wanted < 2) return (cut){CUT_NOT, 1, 0};
    int64_t longest = p->m > p->n ? p->m : p->n;
    int64_t across = lesser(wanted, longest / NARROWEST);
    int64_t deep = lesser(wanted, p->k / SHORTEST);
    if (across < 4 && deep > across) return cut_evenly(CUT_DEPTH, p->k, deep, 16);
    if (across < 2) return (cut){CUT_NOT, 1, 0};
    return cut_evenly(p->m >= p->n ? CUT_ROWS : CUT_COLUMNS, longest, across, 16);
}

static gemm_group product_rows(gemm_group p, int64_t from, int64_t width) {
    p.a += p.ta ? from : from * p.lda;
    p.c += from * p.ldc;
    p.m = lesser(width, p.m - from);
    return p;
}

static gemm_group product_columns(gemm_group p, int64_t from, int64_t width) {
    p.b += p.tb ? from * p.ldb : from;
    p.c += from;
    p.bias = p.bias ? p.bias + from : NULL;
    p.n = lesser(width, p.n - from);
    return p;
}

/* Writes to `sum` [m x n] instead of c. */
static gemm_group product_depth(gemm_group p, int64_t from, int64_t width, real *sum) {
    p.a += p.ta ? from * p.lda : from;
    p.b += p.tb ? from : from * p.ldb;
    p.k = lesser(width, p.k - from);
    p.c = sum;
    p.ldc = p.n;
    p.beta = 0;
    p.bias = NULL;
    return p;
}

/* c = beta c + partial[0] + partial[1] + ... + bias in this order. */
static void merge_row(const gemm_group *p, const real *partial, int64_t chunks, int64_t row) {
    real *restrict c = p->c + row * p->ldc;
    if (p->beta == 0)
        for (int64_t j = 0; j < p->n; j++) c[j] = 0;
    else if (p->beta != 1)
        for (int64_t j = 0; j < p->n; j++) c[j] *= p->beta;
    for (int64_t i = 0; i < chunks; i++) {
        const real *restrict x = partial + (i * p->m + row) * p->n;
        for (int64_t j = 0; j < p->n; j++) c[j] += x[j];
    }
    for (int64_t j = 0; p->bias && j < p->n; j++) c[j] += p->bias[j];
}

static void product_by_depth(const gemm_group *p, const cut *by, int threads) {
    int64_t size = p->m * p->n;
    real *partial = malloc((size_t)(by->chunks * size) * sizeof *partial);
    if (!partial) {
        product_run(p);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < by->chunks; i++) {
            gemm_group part = product_depth(*p, i * by->width, by->width, partial + i * size);
            product_run(&part);
        }
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < p->m; row++) merge_row(p, partial, by->chunks, row);
    }
    free(partial);
}

void gemm_group_by_libraries(const gemm_group *p, int threads) {
    cut by = product_cut(p);
    if (by.side == CUT_NOT) {
        product_run(p);
    } else if (by.side == CUT_DEPTH) {
        product_by_depth(p, &by, threads);
    } else {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int64_t i = 0; i < by.chunks; i++) {
            gemm_group part = by.side == CUT_ROWS ? product_rows(*p, i * by.width, by.width)
                                                  : product_columns(*p, i * by.width, by.width);
            product_run(&part);
        }
    }
}

static void product_any(scratch_memory *scratch, const gemm_group *p, int threads) {
    if (amx_takes(p) && amx_products(scratch, SIDES_ROWS, 1, p, AMX_WHOLE, threads, NULL) == SR_OK)
        return;
    if (gemm_tiles_fit(p) && gemm_tiles(scratch, p, threads, NULL) == SR_OK) return;
    gemm_group_by_libraries(p, threads);
}

void gemm_grouped(scratch_memory *scratch, gemm_group_sides sides, int count, const gemm_group *one,
                  int threads) {
    if (count > 1 && amx_takes_together(sides, one) &&
        amx_products(scratch, sides, count, one, AMX_WHOLE, threads, NULL) == SR_OK)
        return;
    for (int i = 0; i < count; i++) {
        gemm_group p = one[i];
        if (i && sides == SIDES_DEPTH) p.beta = 1;
        product_any(scratch, &p, threads);
    }
}

void gemm(scratch_memory *scratch, int threads, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
          const real *a, int64_t lda, const real *b, int64_t ldb, real beta, real *c, int64_t ldc) {
    product_any(scratch, &(gemm_group){ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc, NULL},
                threads);
}

void gemm_biased(scratch_memory *scratch, int threads, bool ta, bool tb, int64_t m, int64_t n,
                 int64_t k, const real *a, int64_t lda, const real *b, int64_t ldb,
                 const real *bias, real *c, int64_t ldc) {
    product_any(scratch, &(gemm_group){ta, tb, m, n, k, a, lda, b, ldb, 0, c, ldc, bias}, threads);
}

/* Flushes denormals: vanishing activations become denormal, which cost a hundred times a normal
 * number. */
static void flush_denormals(void) {
#if defined(__SSE2__)
    enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040 };
    _mm_setcsr(_mm_getcsr() | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
#endif
}

/* Blocks outside signals on this thread. Inside dnnl_sgemm (oneDNN 2.6) the stack pointer points
 * into the heap, where a signal would write its frame. Only the main thread takes such signals; its
 * handlers have a separate stack (tool.c). */
static void block_signals(void) {
    static const int own[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
    sigset_t outside;
    sigfillset(&outside);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) sigdelset(&outside, own[i]);
    pthread_sigmask(SIG_BLOCK, &outside, NULL);
}

void gemm_setup(int threads) {
    openblas_set_num_threads(1); /* its OpenMP build calls omp_set_num_threads(1) here */
    omp_set_num_threads(threads);
    flush_denormals(); /* threads started later inherit it */
#pragma omp parallel num_threads(threads)
    {
        flush_denormals();
        if (omp_get_thread_num() != 0) block_signals();
    }
}

const char *gemm_kernels(void) {
    if (amx_native()) return "AMX-BF16";
#ifdef USE_DNNL
    return "oneDNN";
#else
    return "OpenBLAS";
#endif
}

const char *gemm_library(void) {
    return openblas_get_corename();
}
