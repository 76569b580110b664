/* amx_kernel.c -- multiplies two packed panels by AMX tiles; gemm_amx.c explains the algorithm. */
#include "engine/amx/amx_kernel.h"

#ifdef PRODUCT_AMX
#include <immintrin.h>
#include <string.h>

/* Makes the compiler assume that these instructions read and write memory. */
#define COMPILER_BARRIER() __asm__ volatile("" ::: "memory")

NATIVE void tiles_open(void) {
    struct {
        uint8_t palette, start_row, zero[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shape = {.palette = 1};
    for (int i = 0; i < 8; i++) shape.row_bytes[i] = 64, shape.rows[i] = LANES;
    COMPILER_BARRIER();
    _tile_loadconfig(&shape);
}

/* Whether a 32 x 32 block has rows, and columns, beyond the first LANES. */
typedef struct extent {
    bool tall, wide;
} extent;

/* Tiles 0 to 3 are sums, 4 and 5 parts of a, 6 and 7 of b. */
static NATIVE inline void load_a(const char *a, int part, extent e) {
    _tile_loadd(4, a + part * PART, 64);
    if (e.tall) _tile_loadd(5, a + part * PART + TILE, 64);
}

static NATIVE inline void load_b(const char *b, int part, extent e) {
    _tile_loadd(6, b + part * PART, 64);
    if (e.wide) _tile_loadd(7, b + part * PART + TILE, 64);
}

static NATIVE inline void multiply(extent e) {
    _tile_dpbf16ps(0, 4, 6);
    if (e.wide) _tile_dpbf16ps(1, 4, 7);
    if (e.tall) _tile_dpbf16ps(2, 5, 6);
    if (e.tall && e.wide) _tile_dpbf16ps(3, 5, 7);
}

enum { HIGH, MIDDLE, LOW };

/* Only one operand changes from product to product. */
static NATIVE inline void multiply_parts(const char *a, const char *b, extent e) {
    load_a(a, LOW, e), load_b(b, HIGH, e), multiply(e);
    load_a(a, MIDDLE, e), multiply(e);
    load_b(b, MIDDLE, e), multiply(e);
    load_a(a, HIGH, e), multiply(e);
    load_b(b, HIGH, e), multiply(e);
    load_b(b, LOW, e), multiply(e);
}

/* Starts the sums with the bias in every row (a stride of 0), or with zeros. */
static NATIVE inline void sums_begin(const float *bias, extent e) {
    if (!bias) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        return;
    }
    _tile_loadd(0, bias, 0);
    if (e.wide) _tile_loadd(1, bias + LANES, 0);
    if (e.tall) _tile_loadd(2, bias, 0);
    if (e.tall && e.wide) _tile_loadd(3, bias + LANES, 0);
}

static NATIVE inline void sums_end(float *c, int64_t stride, extent e) {
    _tile_stored(0, c, stride * 4);
    if (e.wide) _tile_stored(1, c + LANES, stride * 4);
    if (e.tall) _tile_stored(2, c + LANES * stride, stride * 4);
    if (e.tall && e.wide) _tile_stored(3, c + LANES * stride + LANES, stride * 4);
}

/* Prefetches rows of c for writing; stores to lines outside the cache would wait. */
static inline void prefetch_rows(const tile_sums *to, int64_t first, int64_t end) {
    for (int64_t i = first; i < lesser(end, to->rows); i++) {
        __builtin_prefetch(to->c + i * to->stride, 1);
        __builtin_prefetch(to->c + i * to->stride + LANES, 1);
    }
}

/* Writes the sums to c, which is their destination `to` or a copy. Prefetches the destination
 * during the products. */
static NATIVE void tiles_multiply(amx_parts parts, const char *a, const char *b, int64_t depth,
                                  const float *bias, float *c, int64_t stride,
                                  const tile_sums *to) {
    const extent e = {to->rows > LANES, to->columns > LANES};
    const int64_t slices = (depth + DEPTH - 1) / DEPTH;
    COMPILER_BARRIER();
    sums_begin(bias, e);
    for (int64_t i = 0; i < slices; i++, a += parts * PART, b += parts * PART) {
        prefetch_rows(to, i * SIDE / slices, (i + 1) * SIDE / slices);
        if (parts == AMX_ROUNDED)
            load_a(a, HIGH, e), load_b(b, HIGH, e), multiply(e);
        else
            multiply_parts(a, b, e);
    }
    sums_end(c, stride, e);
    COMPILER_BARRIER();
}

/* c [rows, columns] += x [rows, SIDE] */
static void rows_add(int64_t rows, int64_t columns, const float *x, float *c, int64_t stride) {
    for (int64_t i = 0; i < rows; i++)
#pragma omp simd
        for (int64_t j = 0; j < columns; j++) c[i * stride + j] += x[i * SIDE + j];
}

/* Uses a copy when sums are added, and at c's edges. */
void panels_multiply(amx_parts parts, const char *a, const char *b, int64_t depth,
                     const float *bias, const tile_sums *to) {
    const bool direct = !to->add && to->rows % LANES == 0 && to->columns % LANES == 0;
    float sum[SIDE * SIDE] __attribute__((aligned(64)));
    tiles_multiply(parts, a, b, depth, bias, direct ? to->c : sum, direct ? to->stride : SIDE, to);
    if (to->add)
        rows_add(to->rows, to->columns, sum, to->c, to->stride);
    else if (!direct)
        for (int64_t i = 0; i < to->rows; i++)
            memcpy(to->c + i * to->stride, sum + i * SIDE, (size_t)to->columns * sizeof *sum);
}

NATIVE void tiles_close(void) {
    _tile_release();
}
#endif
