/* row_ops.h -- operations on rows for decoding, forward only, without a tape.
 *
 * The result of a row depends on that row alone, to the last bit. Other rows and the number of
 * threads do not matter. (The products of gemm.h choose the order of sums by the number of
 * rows.) */
#ifndef ENGINE_GEMM_ROW_OPS_H
#define ENGINE_GEMM_ROW_OPS_H

#include "engine/tape.h"

/* A weight [out, in] packed for row_linear. */
typedef struct row_weight {
    int64_t in, out;
    real *value;  /* owned; the transposed weight in panels of columns */
    char *packed; /* owned; packed for AMX tiles, or NULL */
} row_weight;

/* Packs a copy of w [out, in]; SR_MEMORY. Free with row_weight_free, which accepts zeros. */
sr_status row_weight_init(row_weight *r, const tensor *w, sr_failure *why);
void row_weight_free(row_weight *r);

/* y [rows, out] = x [rows, in] w^T + b; b [out] or NULL. */
void row_linear(int threads, int64_t rows, const real *x, const row_weight *w, const real *b,
                real *y);

/* Attention of one query to n keys by heads (op_attention.c), one thread. q, y and every key and
 * value are [d]. weight: scratch memory of row_attention_scratch(n) numbers. */
int64_t row_attention_scratch(int64_t n);
void row_attention(int64_t d, int heads, int64_t n, const real *q, const real *const *key,
                   const real *const *value, real *weight, real *y);

/* Keys and values of a sentence, for many queries. */
typedef struct row_memory {
    int64_t keys, key_stride, width,
        /* key_stride: keys rounded up to lanes; width: of a head, and rounded up to lanes */
        padded_width;
    real *key;   /* [heads width, key_stride] transposed, zeros after the last key */
    real *value; /* [heads, keys, padded_width], zeros after the last number */
} row_memory;

/* Numbers in the memory of n keys [d]. */
int64_t row_memory_size(int64_t d, int heads, int64_t n);
/* Copies key and value [n, d] to `at`, which has row_memory_size numbers. */
row_memory row_memory_make(int64_t d, int heads, int64_t n, const real *key, const real *value,
                           real *at);
/* Numbers of scratch memory for `rows` queries at once. */
int64_t row_memory_scratch(const row_memory *m, int64_t rows);
/* row_attention of `rows` queries [rows, d] to all keys, one thread. average: rows of `step`
 * numbers, or NULL; their first `keys` become the attention weights averaged over the heads. */
void row_memory_attention(const row_memory *m, int heads, int64_t rows, const real *q,
                          real *scratch, real *average, int64_t step, real *y);

/* Returns log(sum exp x) of x [n], for log softmax; not finite when x has a NaN or an infinity.
 * largest [n / block, rounded up]: the largest of each `block` numbers, NaN skipped. */
double row_log_sum(int64_t n, const real *x, int64_t block, real *largest);

#endif
