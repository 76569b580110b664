/* ops.h -- operations of the tape, one file op_*.c each: linear, element-wise, shapes, embeddings.
 *
 * Attention, losses and image operations have their own headers: attention/attention_ops.h,
 * loss/loss_ops.h, image/image_ops.h.
 *
 * Every op returns a new tensor of the tape. It returns NULL after a failure, which the tape keeps.
 * Inputs are tensors of the tape or parameters. Formulas and kept values are in the op's file.
 * Sizes: B sentences, T positions, N images or rows, d features, V classes.
 */
#ifndef ENGINE_OPS_OPS_H
#define ENGINE_OPS_OPS_H

#include "engine/tape.h"

/* y = x w^T + b. x [..., in], w [out, in], b [out] or NULL -> [..., out]. */
tensor *op_linear(tape *t, tensor *x, tensor *w, tensor *b);
/* y[i] = op_linear(t, x, w[i], b[i]) for i < count. Up to three weights of equal size share one
 * GEMM. Returns false when some y[i] is NULL: after a failure, or when x or a w[i] is NULL. */
bool op_linears(tape *t, tensor *x, int count, tensor *const *w, tensor *const *b, tensor **y);

/* y = x + b; adds b [C] to every row of x [..., C]. */
tensor *op_add_bias(tape *t, tensor *x, tensor *b);

/* Element-wise. op_add requires equal counts; op_scale multiplies by the constant c. */
tensor *op_relu(tape *t, tensor *x);
tensor *op_tanh(tape *t, tensor *x);
tensor *op_cube(tape *t, tensor *x);
tensor *op_add(tape *t, tensor *a, tensor *b);
tensor *op_scale(tape *t, tensor *x, double c);

/* Sum of all elements, in double -> [1]. */
tensor *op_sum(tape *t, tensor *x);

/* Concatenates n <= NODE_INPUTS tensors along an axis. Their other dimensions are equal. */
tensor *op_concat(tape *t, tensor *const *part, int n, int axis);
/* Indices first .. first + count - 1 of an axis: the same rank, dim[axis] = count. */
tensor *op_slice(tape *t, tensor *x, int axis, int64_t first, int64_t count);
/* Unfolds each position of x [N, C, d] with its neighbours: [N, C, width d], width odd, zeros
 * beyond the ends. op_linear after it is a 1-D convolution. */
tensor *op_unfold(tape *t, tensor *x, int64_t width);

/* Training: y = x * m/(1-p), m = 1 with probability 1-p, drawn from the tape's stream by element
 * number. Evaluation or p = 0: returns x. 0 <= p < 1. */
tensor *op_dropout(tape *t, tensor *x, double p);

/* Looks up rows of table [V, d]: y[b,i] = scale * table[token[b*T+i]] + position_table[pos].
 * positions [P, d] may be NULL. pos = pad for pad tokens, else pad + 1 + (number of non-pad tokens
 * before it in its sentence) (docs/models.md 2.2). The pad row of the table gets no gradient.
 * pad -1: there is no padding. token [B*T] must stay valid until backward. -> [B, T, d]. */
tensor *op_embedding(tape *t, tensor *table, const int32_t *token, int64_t B, int64_t T,
                     double scale, const tensor *positions, int32_t pad);
/* Fills value [count x d] with sinusoidal positions, halves not interleaved, frequency
 * exp(-i ln(10000)/(d/2-1)), row `pad` zero (docs/models.md 2.2). */
void op_embedding_positions(real *value, int64_t count, int64_t d, int32_t pad);

/* A table [V, d] and its number of index columns. */
typedef struct feature_table {
    tensor *rows;
    int64_t columns;
} feature_table;
enum { FEATURE_TABLES = 4 };

/* Looks up rows of several tables and concatenates them -> [count, sum of columns times width].
 * number is [count, sum of columns]: first the columns of the first table, then the next table's.
 * It must stay valid until backward. */
tensor *op_feature_embedding(tape *t, const feature_table *table, int tables, const int32_t *number,
                             int64_t count);

/* Largest value of each feature over the valid positions: x [N, C, F], valid [N * C] (NULL: all
 * valid) -> [N, F]. 0 when no position is valid. */
tensor *op_masked_max(tape *t, tensor *x, const uint8_t *valid);
/* Mean over the words of each sentence: x [B, T, d], mask [B*T] (1 = counted; NULL: all) -> [B, d],
 * 0 for a sentence without words. mask must stay valid until backward. */
tensor *op_masked_mean(tape *t, tensor *x, const uint8_t *mask);

#endif
