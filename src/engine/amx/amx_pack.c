/* amx_pack.c -- splits and packs operands for AMX tiles; gemm_amx.c explains the algorithm. */
#include "engine/amx/amx_pack.h"

#ifdef PRODUCT_AMX
#include <immintrin.h>
#include <string.h>

static __mmask16 first_lanes(int64_t n) {
    return n >= LANES ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
}

/* Location of the numbers of a tile: vector i of LANES, and its pair vector `further` on. Along a
 * row, both belong to row i; down the rows, to rows i and 16 + i. */
typedef struct tile_source {
    const float *x;
    int64_t stride, further, rows, further_rows; /* valid rows */
    __mmask16 lanes, further_lanes;
    bool full; /* all numbers are valid */
} tile_source;

static tile_source tile_source_at(const operand *o, int64_t at, int64_t from) {
    tile_source s = {.x = o->x + (o->along ? at * o->stride + from : from * o->stride + at),
                     .stride = o->stride};
    const int64_t length = o->length - at, depth = o->depth - from;
    s.further = o->along ? LANES : LANES * o->stride;
    s.rows = o->along ? length : depth;
    s.further_rows = o->along ? length : depth - LANES;
    s.lanes = first_lanes(o->along ? depth : length);
    s.further_lanes = o->along ? first_lanes(depth - LANES) : s.lanes;
    s.full = depth >= DEPTH && length >= LANES;
    return s;
}

static NATIVE inline __m512 tile_low(const tile_source *s, bool full, int64_t i) {
    const float *x = s->x + i * s->stride;
    return full ? _mm512_loadu_ps(x) : _mm512_maskz_loadu_ps(i < s->rows ? s->lanes : 0, x);
}

static NATIVE inline __m512 tile_high(const tile_source *s, bool full, int64_t i) {
    const float *x = s->x + i * s->stride + s->further;
    if (full) return _mm512_loadu_ps(x);
    return _mm512_maskz_loadu_ps(i < s->further_rows ? s->further_lanes : 0, x);
}

/* Transposes: x[i] lane j <-> x[j] lane i. Exchanges pairs, then fours, then quarters of
 * vectors. */
static NATIVE inline void transpose(__m512 x[LANES]) {
    __m512 t[LANES];
#pragma GCC unroll 8
    for (int i = 0; i < LANES; i += 2) {
        t[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < LANES; i += 2) {
        const int one = i / 4 * 4 + i % 4 / 2;
        const __m512d upper = (__m512d)t[one], lower = (__m512d)t[one + 2];
        x[i] = (__m512)_mm512_unpacklo_pd(upper, lower);
        x[i + 1] = (__m512)_mm512_unpackhi_pd(upper, lower);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512 even = _mm512_shuffle_f32x4(x[i], x[4 + i], 0x88);
        const __m512 odd = _mm512_shuffle_f32x4(x[i], x[4 + i], 0xdd);
        const __m512 even_below = _mm512_shuffle_f32x4(x[8 + i], x[12 + i], 0x88);
        const __m512 odd_below = _mm512_shuffle_f32x4(x[8 + i], x[12 + i], 0xdd);
        t[i] = _mm512_shuffle_f32x4(even, even_below, 0x88);
        t[4 + i] = _mm512_shuffle_f32x4(odd, odd_below, 0x88);
        t[8 + i] = _mm512_shuffle_f32x4(even, even_below, 0xdd);
        t[12 + i] = _mm512_shuffle_f32x4(odd, odd_below, 0xdd);
    }
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) x[i] = t[i];
}

/* Upper halves of the lanes of two vectors, as pairs. */
static NATIVE inline __m512i pairs_of(__m512i low, __m512i high) {
    const __m512i down = _mm512_set4_epi32(0x0f0e0f0e, 0x0b0a0b0a, 0x07060706, 0x03020302);
    return _mm512_mask_shuffle_epi8(high, 0x3333333333333333, low, down);
}

static NATIVE inline __m512i half_added(__m512 x) {
    return _mm512_add_epi32((__m512i)x, _mm512_set1_epi32(0x8000));
}

static NATIVE inline __m512 without_part(__m512 x, __m512i part) {
    return _mm512_sub_ps(x, (__m512)_mm512_and_si512(part, _mm512_set1_epi32((int)0xffff0000)));
}

/* Splits two vectors into three parts. `check` becomes NaN when a number is odd, because its last
 * part is NaN. It may also when two numbers are beyond 2^80. */
static NATIVE inline void split(__m512 x, __m512 y, char *to, __m512 *check) {
    __m512i low = half_added(x), high = half_added(y);
    _mm512_store_si512(to, pairs_of(low, high));
    x = without_part(x, low), y = without_part(y, high);
    low = half_added(x), high = half_added(y);
    _mm512_store_si512(to + PART, pairs_of(low, high));
    x = without_part(x, low), y = without_part(y, high);
    *check = _mm512_fmadd_ps(x, y, *check);
    _mm512_store_si512(to + 2 * PART, pairs_of((__m512i)x, (__m512i)y));
}

static NATIVE inline void round_pair(__m512 x, __m512 y, char *to) {
    const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(x));
    const __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(y));
    _mm512_store_si512(to, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}

enum { LEAST_ODD = 0x7f7f8000 }; /* bits of the smallest odd number */

bool amx_is_odd(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7fffffff) >= LEAST_ODD;
}

static NATIVE __m512 without_odd(__m512 x) {
    const __m512i size = _mm512_and_si512((__m512i)x, _mm512_set1_epi32(0x7fffffff));
    return _mm512_maskz_mov_ps(_mm512_cmplt_epi32_mask(size, _mm512_set1_epi32(LEAST_ODD)), x);
}

/* How the two vectors of a tile row are packed. */
typedef enum form { WHOLE, WITHOUT_ODD, ROUNDED } form;

static NATIVE inline void pack(form f, __m512 x, __m512 y, char *to, __m512 *check) {
    if (f == ROUNDED)
        round_pair(x, y, to);
    else if (f == WHOLE)
        split(x, y, to, check);
    else
        split(without_odd(x), without_odd(y), to, check);
}

static NATIVE inline void tile_pack_as(form f, bool full, const tile_source *s, char *to,
                                       __m512 *check) {
    for (int i = 0; i < LANES; i++)
        pack(f, tile_low(s, full, i), tile_high(s, full, i), to + i * 64, check);
}

static NATIVE inline void tile_transpose_as(form f, bool full, const tile_source *s, char *to,
                                            __m512 *check) {
    __m512 low[LANES], high[LANES];
    for (int i = 0; i < LANES; i++) low[i] = tile_low(s, full, i);
    transpose(low);
    for (int i = 0; i < LANES; i++) high[i] = tile_high(s, full, i);
    transpose(high);
    for (int i = 0; i < LANES; i++) pack(f, low[i], high[i], to + i * 64, check);
}

/* Packs a tile; false when a number is odd. */
static NATIVE inline bool tile_store(form f, bool full, bool transposed, const tile_source *s,
                                     char *to) {
    __m512 check = _mm512_setzero_ps();
    if (transposed)
        tile_transpose_as(f, full, s, to, &check);
    else
        tile_pack_as(f, full, s, to, &check);
    return _mm512_cmp_ps_mask(check, check, _CMP_UNORD_Q) == 0;
}

static void tile_pack(const operand *o, int64_t at, int64_t from, char *to) {
    const tile_source s = tile_source_at(o, at, from);
    const bool transposed = o->along == o->is_b;
    bool fine = true;
    if (o->parts == AMX_ROUNDED)
        tile_store(ROUNDED, false, transposed, &s, to);
    else if (s.full)
        fine = tile_store(WHOLE, true, transposed, &s, to);
    else
        fine = tile_store(WHOLE, false, transposed, &s, to);
    if (fine) return;
    tile_store(WITHOUT_ODD, false, transposed, &s, to);
    atomic_store(o->odd, true);
}

/* Packs the tiles of rows (columns) at .. at+31 for DEPTH of the depth. Skips a tile outside the
 * operand. */
static void tiles_pack(const operand *o, int64_t at, int64_t from, char *to) {
    tile_pack(o, at, from, to);
    if (at + LANES < o->length) tile_pack(o, at + LANES, from, to + TILE);
}

int64_t panel_bytes(const operand *o, int64_t step) {
    return step / DEPTH * o->parts * PART;
}

/* Memory still to be prefetched, in the storage order of an operand. */
typedef struct prefetch_cursor {
    const char *row;
    int64_t rows, bytes, stride; /* bytes of a row; stride between rows */
    int64_t at;                  /* offset within the row */
} prefetch_cursor;

static prefetch_cursor prefetch_cursor_of(const operand *o, int64_t first, int64_t end,
                                          int64_t from, int64_t depth) {
    const int64_t numbers = (int64_t)sizeof *o->x;
    const int64_t length = lesser(end, o->length) - first, deep = lesser(depth, o->depth - from);
    const float *x = o->x + (o->along ? first * o->stride + from : from * o->stride + first);
    return (prefetch_cursor){.row = (const char *)x,
                             .rows = o->along ? length : deep,
                             .bytes = (o->along ? deep : length) * numbers,
                             .stride = o->stride * numbers};
}

/* Prefetches the next lines. Packing reads in the order of panels, which the CPU does not
 * predict. */
static inline void prefetch(prefetch_cursor *s, int64_t lines) {
    enum { LINE = 64 };
    for (; lines > 0 && s->rows > 0; lines--) {
        __builtin_prefetch(s->row + s->at);
        s->at += LINE;
        if (s->at >= s->bytes) s->at = 0, s->row += s->stride, s->rows--;
    }
}

/* Reads the numbers in their storage order. */
void panels_pack(const operand *o, int64_t first, int64_t end, int64_t from, int64_t depth,
                 int64_t panel, char *to) {
    /* lines of memory: before the first tile, and for each two tiles */
    enum { FIRST_LINES = 512, PANEL_LINES = 64 };
    const int64_t slices = (depth + DEPTH - 1) / DEPTH, bytes = o->parts * PART;
    const int64_t panels = (end - first + SIDE - 1) / SIDE;
    prefetch_cursor cursor = prefetch_cursor_of(o, first, end, from, depth);
    prefetch(&cursor, FIRST_LINES);
    for (int64_t i = 0; i < slices * panels; i++) {
        const int64_t slice = o->along ? i % slices : i / panels;
        const int64_t at = o->along ? i / slices : i % panels;
        prefetch(&cursor, PANEL_LINES);
        tiles_pack(o, first + at * SIDE, from + slice * DEPTH, to + at * panel + slice * bytes);
    }
}
#endif
