/* row_ops.h -- operations on rows for decoding, without a tape and forward only: what becomes of a
 * row depends on that row alone, to the last bit, whatever other rows there are and however many
 * threads. (The products of gemm.h take the order of their sums from the number of rows.)
 */
#ifndef ENGINE_GEMM_ROW_OPS_H
#define ENGINE_GEMM_ROW_OPS_H

#include "engine/tape.h"

/* A weight [out, in] as row_linear wants it. */
typedef struct row_weight {
    int64_t in, out;
    real *value;  /* owned; columns of the turned weight in panels */
    char *packed; /* owned; for the CPU's tiles, or NULL */
} row_weight;

/* A copy of w [out, in]; SR_MEMORY. Free with row_weight_free (zeros are fine). */
sr_status row_weight_init(row_weight *r, const tensor *w, sr_failure *why);
void row_weight_free(row_weight *r);

/* y [rows, out] = x [rows, in] w^T + b; b [out] or NULL. */
void row_linear(int threads, int64_t rows, const real *x, const row_weight *w, const real *b,
                real *y);

/* Attention of one query to n keys by heads (op_attention.c), one thread: q, y and every key and
 * value [d]. share: scratch of row_attention_scratch(n) numbers. */
int64_t row_attention_scratch(int64_t n);
void row_attention(int64_t d, int heads, int64_t n, const real *q, const real *const *key,
                   const real *const *value, real *weight, real *y);

/* Keys and values of a sentence, which many queries look at. */
typedef struct row_memory {
    int64_t keys, key_stride, width,
        padded_width; /* room: keys rounded up; width of a head, and rounded up */
    real *key;        /* [heads width, room] turned, zeros behind the last */
    real *value;      /* [heads, keys, wide], zeros behind the last */
} row_memory;

/* Numbers that the memory of n keys [d] takes. */
int64_t row_memory_size(int64_t d, int heads, int64_t n);
/* A copy of key and value [n, d] in memory of that size. */
row_memory row_memory_make(int64_t d, int heads, int64_t n, const real *key, const real *value,
                           real *at);
/* Numbers of scratch for so many queries at once. */
int64_t row_memory_scratch(const row_memory *m, int64_t rows);
/* row_attention of `rows` queries [rows, d] to all of its keys, one thread. average: rows of `step`
 * numbers, of which the first `keys` become the weights averaged over the heads, or NULL. */
void row_memory_attention(const row_memory *m, int heads, int64_t rows, const real *q,
                          real *scratch, real *average, int64_t step, real *y);

/* log(sum exp x), which log softmax takes off x [n]; not finite where x has a NaN or an infinity.
 * largest [n / block, rounded up]: of each `block` numbers, NaN passed over. */
double row_log_sum(int64_t n, const real *x, int64_t block, real *largest);

#endif
