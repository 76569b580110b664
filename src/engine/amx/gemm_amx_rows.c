/* gemm_amx_rows.c -- rows times a packed weight, by AMX tiles, for decoding.
 *
 * Each panel of the weight is contiguous over all of its depth. Rows are packed for one k-block at
 * a time. A panel is read once for all rows; sums of k-blocks are added in order. */
#include "engine/amx/gemm_amx_rows.h"

#include "engine/amx/amx_kernel.h"

#ifdef PRODUCT_AMX
#include <string.h>

enum {
    K_BLOCK = 256,                                          /* depth of a k-block */
    PACKED_BYTES = 4 * (K_BLOCK / DEPTH * AMX_WHOLE * PART) /* bytes of packed rows, on the stack */
};

size_t gemm_amx_rows_bytes(int64_t out, int64_t in) {
    const operand w = {.parts = AMX_WHOLE};
    if (lesser(out, in) < SIDE || !amx_native()) return 0;
    return (size_t)(up(out, SIDE) / SIDE * panel_bytes(&w, up(in, DEPTH)));
}

bool gemm_amx_rows_pack(int64_t out, int64_t in, const real *w, char *packed) {
    atomic_bool odd = false;
    const operand b = {w, in, out, in, true, true, AMX_WHOLE, &odd};
    memset(packed, 0, gemm_amx_rows_bytes(out, in)); /* columns after the last are loaded too */
    panels_pack(&b, 0, out, 0, in, panel_bytes(&b, up(in, DEPTH)), packed);
    return !odd;
}

/* A group of rows, a weight, and the buffer for the rows of a k-block. */
typedef struct rows_gemm {
    /* block, panel: bytes of AMX_ROWS packed rows and of a panel of the weight */
    int64_t rows, out, in, block, panel;
    const char *packed;
    const real *b;
    real *y;
    char *packed_rows;
} rows_gemm;

/* Multiplies the weight panel at column j by all rows, for depth from .. from+depth-1. */
static void panel_multiply(const rows_gemm *k, int64_t j, int64_t from, int64_t depth) {
    float bias[SIDE];
    const int64_t columns = lesser(k->out - j, SIDE);
    const char *w = k->packed + j / SIDE * k->panel + from / DEPTH * AMX_WHOLE * PART;
    const bool biased = k->b && from == 0;
    for (int64_t i = 0; biased && i < SIDE; i++) bias[i] = i < columns ? k->b[j + i] : 0;
    for (int64_t r = 0; r < k->rows; r += AMX_ROWS) {
        const tile_sums to = {k->y + r * k->out + j, k->out, lesser(k->rows - r, AMX_ROWS), columns,
                              from > 0};
        panels_multiply(AMX_WHOLE, k->packed_rows + r / AMX_ROWS * k->block, w, depth,
                        biased ? bias : NULL, &to);
    }
}

static bool rows_run(const rows_gemm *k, const real *x) {
    atomic_bool odd = false;
    const operand a = {x, k->in, k->rows, k->in, true, false, AMX_WHOLE, &odd};
    tiles_open();
    for (int64_t from = 0; from < k->in; from += K_BLOCK) {
        const int64_t depth = lesser(k->in - from, K_BLOCK);
        panels_pack(&a, 0, k->rows, from, depth, k->block, k->packed_rows);
        for (int64_t j = 0; j < k->out; j += SIDE) panel_multiply(k, j, from, depth);
    }
    tiles_close();
    return !odd;
}

/* Takes as many rows at a time as fit into packed_rows. */
bool gemm_amx_rows(int64_t rows, const real *x, int64_t out, int64_t in, const char *packed,
                   const real *b, real *y) {
    char packed_rows[PACKED_BYTES] __attribute__((aligned(64)));
    const operand w = {.parts = AMX_WHOLE};
    rows_gemm k = {.out = out, .in = in, .packed = packed, .b = b, .packed_rows = packed_rows};
    bool good = true;
    k.block = panel_bytes(&w, up(lesser(in, K_BLOCK), DEPTH));
    k.panel = panel_bytes(&w, up(in, DEPTH));
    const int64_t group = PACKED_BYTES / k.block * AMX_ROWS;
    for (int64_t r = 0; r < rows; r += group) {
        k.rows = lesser(rows - r, group);
        k.y = y + r * out;
        good = rows_run(&k, x + r * in) && good;
    }
    return good;
}

bool gemm_amx_rows_odd(int64_t count, const real *x) {
    for (int64_t i = 0; i < count; i++)
        if (amx_is_odd(x[i])) return true;
    return false;
}
#else
size_t gemm_amx_rows_bytes(int64_t out, int64_t in) {
    (void)out, (void)in;
    return 0;
}

bool gemm_amx_rows_pack(int64_t out, int64_t in, const real *w, char *packed) {
    (void)out, (void)in, (void)w, (void)packed;
    return false;
}

bool gemm_amx_rows(int64_t rows, const real *x, int64_t out, int64_t in, const char *packed,
                   const real *b, real *y) {
    (void)rows, (void)x, (void)out, (void)in, (void)packed, (void)b, (void)y;
    return false;
}

bool gemm_amx_rows_odd(int64_t count, const real *x) {
    (void)count, (void)x;
    return false;
}
#endif
