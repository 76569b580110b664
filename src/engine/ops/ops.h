/* ops.h -- the operations of the tape, one file op_*.c each.
 *
 * Every op returns a new tensor of the tape, or NULL after a failure (kept in the tape). Inputs
 * are tensors of the tape or parameters. Formulas and what is kept for backward stand in the
 * op's file. Sizes: B sentences, T positions, N images or rows, d features, V classes.
 */
#ifndef ENGINE_OPS_OPS_H
#define ENGINE_OPS_OPS_H

#include "engine/tape.h"

/* y = x w^T + b. x [..., in], w [out, in], b [out] or NULL -> [..., out]. */
tensor *op_linear(tape *t, tensor *x, tensor *w, tensor *b);
/* Several of one x: y[i] = op_linear(t, x, w[i], b[i]), as one product where all weights are of one size and there are
 * at most three. False where a y[i] is NULL: after a failure, or where x or a w[i] is. */
bool op_linears(tape *t, tensor *x, int count, tensor *const *w, tensor *const *b, tensor **y);

/* y = x + b, b [C] added to every row of x [..., C]. */
tensor *op_add_bias(tape *t, tensor *x, tensor *b);

/* Element-wise. op_add needs equal counts; op_scale multiplies by the constant c. */
tensor *op_relu(tape *t, tensor *x);
tensor *op_tanh(tape *t, tensor *x);
tensor *op_cube(tape *t, tensor *x);
tensor *op_add(tape *t, tensor *a, tensor *b);
tensor *op_scale(tape *t, tensor *x, double c);

/* n <= NODE_INPUTS tensors of one rank behind one another along an axis; they are equal in the other
 * dims. */
tensor *op_concat(tape *t, tensor *const *part, int n, int axis);
/* Indices first .. first + count - 1 of an axis: the same rank, dim[axis] = count. */
tensor *op_slice(tape *t, tensor *x, int axis, int64_t first, int64_t count);

/* Training: y = x * m/(1-p), m = 1 with probability 1-p, drawn from the tape's stream by element
 * number. Evaluation or p = 0: returns x. 0 <= p < 1. */
tensor *op_dropout(tape *t, tensor *x, double p);

/* Rows of table [V, d] by number: y[b,i] = scale * table[token[b*T+i]] + position_table[pos], where
 * positions [P, d] may be NULL and pos = pad for pad tokens, else pad + 1 + (number of non-pad
 * tokens before it in its sentence) (docs/models.md 2.2). The pad row of the table gets no
 * gradient. pad -1: there is no padding. token [B*T] must stay until backward. -> [B, T, d]. */
tensor *op_embedding(tape *t, tensor *table, const int32_t *token, int64_t B, int64_t T,
                     double scale, const tensor *positions, int32_t pad);

/* A table [V, d] for so many columns of numbers. */
typedef struct feature_table {
    tensor *rows;
    int64_t columns;
} feature_table;
enum { FEATURE_TABLES = 4 };

/* Rows of tables by number, side by side: those of the first table for the first columns of number [count,
 * sum of columns], then those of the next. number must stay until backward. -> [count, sum of columns
 * times width]. */
tensor *op_feature_embedding(tape *t, const feature_table *table, int tables, const int32_t *number,
                             int64_t count);

/* Fills value [count x d] with sinusoidal positions, halves not interleaved, frequency
 * exp(-i ln(10000)/(d/2-1)), row `pad` zero (docs/models.md 2.2). */
void op_embedding_positions(real *value, int64_t count, int64_t d, int32_t pad);

/* Over the last dimension. */
tensor *op_softmax(tape *t, tensor *x);

/* What the weights of an attention are like, of every head by itself (docs/definitions.md). */
typedef struct attention_report {
    const uint8_t *query_valid; /* [B*Tq], 1 = counts; NULL: all do */
    double *
        logit_max; /* [heads] the largest logit of a key that is not hidden; NaN: no query counts */
    double *entropy; /* [heads] of the weights of a query, summed over those that count, nats */
    double *queries; /* [heads] how many count: they see a key */
} attention_report;

/* softmax(scale q k^T) v per head. q [B, Tq, d], k [B, Tk, d], v [B, Tk, e], head h =
 * columns h*d/heads .. of q and k, h*e/heads .. of v; key_valid [B*Tk] (1 = attend) or NULL; causal:
 * key j > query i is hidden. Dropout p on the attention weights. A query with every key hidden gives 0. report may be
 * NULL; filled at the call. -> [B, Tq, e]. */
tensor *op_attention(tape *t, tensor *q, tensor *k, tensor *v, int heads, double scale,
                     const uint8_t *key_valid, bool causal, double p, attention_report *report);

/* Attention that sees direction and distance (docs/models.md 5): qkv [B, T, 3 d] holds queries, keys
 * and values, head h = columns h*d/heads .. of each; u, z [d] biases by head; scaled: scores divided
 * by sqrt(d/heads), which is to be even. key_valid, p and report as in op_attention. -> [B, T, d]. */
tensor *op_tener_attention(tape *t, tensor *qkv, tensor *u, tensor *z, int heads,
                           const uint8_t *key_valid, bool scaled, double p,
                           attention_report *report);

/* What multi-linear attention of one head takes (docs/models.md 3.1). */
typedef struct multilinear_inputs {
    tensor *q;     /* [B, T, R] */
    tensor *k, *v; /* [B, K, R], K >= T: memory in front */
    tensor *r;     /* [K, R], of the keys' positions */
    tensor *core;  /* [cores, R] */
    tensor *u, *z; /* [R] */
} multilinear_inputs;

/* y[b, i, j K + k] = sum_h c_h ((q+u)_ih k_jh + (q+z)_ih r_jh) v_kh, c the mean of the cores;
 * causal: 0 where j or k > K - T + i. -> [B, T, K K]. */
tensor *op_multilinear(tape *t, const multilinear_inputs *in, bool causal);

/* What attention with relative positions takes (docs/models.md 4); width = heads x dh. */
typedef struct xl_inputs {
    tensor *q;     /* [B, T, width] */
    tensor *k, *v; /* [B, K, width], K >= T: memory in front */
    tensor *r;     /* [n, width]: row n-1-D is distance D, greater ones have row 0 */
    tensor *u, *z; /* [heads, dh] */
} xl_inputs;

typedef struct xl_options {
    int heads;
    int64_t reach; /* a query sees so many keys, its own place among them; 0: all before it */
    double p;      /* dropout on the attention weights */
    attention_report *report; /* or NULL; filled at the call */
} xl_options;

/* softmax(((q+u).k_j + (q+z).r_D) / sqrt(dh)) v per head, D = K - T + i - j >= 0. -> [B, T, width]. */
tensor *op_xl_attention(tape *t, const xl_inputs *in, const xl_options *o);

/* What the adaptive softmax takes (docs/models.md 3.2). */
typedef struct adaptive_inputs {
    tensor *h;       /* [..., d] */
    tensor *w, *b;   /* [V, d], [V]: words, the most frequent first */
    tensor *wc, *bc; /* [cutoffs, d], [cutoffs]: clusters behind the first cut-off; NULL: none */
    const int64_t *cutoff; /* [cutoffs], rising, 0 < cutoff < V */
    int cutoffs;
} adaptive_inputs;

/* Negative log-likelihood of each target [rows] -> [rows]. */
tensor *op_adaptive_softmax(tape *t, const adaptive_inputs *in, const int32_t *target);

/* What a linear-chain conditional random field takes (docs/models.md 5). */
typedef struct crf_inputs {
    tensor *logits;      /* [B, T, K]: of K tags, before the log-softmax */
    tensor *trans;       /* [K, K], from the row's tag to the column's */
    tensor *start, *end; /* [K] */
} crf_inputs;

/* Negative log-likelihood of each sentence's tags [B, T], words where mask [B, T] is 1 (NULL:
 * everywhere), at least one in each sentence. tag and mask must stay until backward. -> [B]. */
tensor *op_crf(tape *t, const crf_inputs *in, const int32_t *tag, const uint8_t *mask);
/* The best tags of each sentence: path [B, T], 0 where masked; its score [B], or NULL. allowed
 * [(K+2)^2], row K the start, column K+1 the end: steps that are 0 there cost 10000; NULL: none do.
 * false after a failure. */
bool crf_viterbi(tape *t, const crf_inputs *in, const uint8_t *mask, const uint8_t *allowed,
                 int32_t *path, double *score);

/* Each position of x [N, C, d] with its neighbours, zeros beyond the ends: [N, C, width d], width odd;
 * a 1-D convolution with op_linear behind it. */
tensor *op_unfold(tape *t, tensor *x, int64_t width);
/* Largest value of each feature over the positions with valid [N * C] 1 (NULL: all), 0 where there
 * is none: x [N, C, F] -> [N, F]. */
tensor *op_masked_max(tape *t, tensor *x, const uint8_t *valid);

/* Sum of all elements, in double -> [1]. */
tensor *op_sum(tape *t, tensor *x);

typedef enum {
    SMOOTHING_ALL,   /* form 0: eps/V on every class, target included (docs/models.md 2.5) */
    SMOOTHING_OTHERS /* form 1: eps/(V-1) on the other classes (later fairseq) */
} smoothing_form;

typedef struct cross_entropy_report {
    double loss;     /* sum over counted rows, nats, smoothing included */
    double nll;      /* sum over counted rows, nats, no smoothing */
    int64_t tokens;  /* counted rows */
    int64_t correct; /* rows whose target has the largest logit (lowest index on ties); negative:
                        not known, there are no logits */
    int64_t unknown; /* counted rows whose target is `unk` */
} cross_entropy_report;

/* Summed loss, count 1. logits [..., V], target [rows]; rows with target == ignore are not
 * counted (ignore = -1: all are). unk = -1: none. report may be NULL; filled at the call. */
tensor *op_cross_entropy(tape *t, tensor *logits, const int32_t *target, int32_t ignore,
                         int32_t unk, double eps, smoothing_form form,
                         cross_entropy_report *report);

/* x [N, H, W, Ci], w [Co, kh, kw, Ci] -> [N, Ho, Wo, Co], zero padding `pad` on each side,
 * Ho = (H + 2 pad - kh)/stride + 1. No bias. */
tensor *op_conv2d(tape *t, tensor *x, tensor *w, int stride, int pad);
/* The same, its sums taken as they are written: never by minimal filtering (conv_winograd.c). */
tensor *op_conv2d_direct(tape *t, tensor *x, tensor *w, int stride, int pad);

/* Option-A shortcut (docs/models.md 1.1): every stride-th row and column from index 0, channels
 * zero padded to `channels`, half in front and half behind. stride 1 and equal channels: returns x.
 */
tensor *op_shortcut(tape *t, tensor *x, int stride, int64_t channels);

/* Largest value of each k x k window, every stride pixels, without padding (the first of equal ones,
 * NaN before every number): [N, H, W, C] -> [N, (H - k)/stride + 1, (W - k)/stride + 1, C]. */
tensor *op_max_pool(tape *t, tensor *x, int k, int stride);

/* Mean over all positions: [N, H, W, C] -> [N, C]. */
tensor *op_average_pool(tape *t, tensor *x);

/* Mean over the words of each sentence: x [B, T, d], mask [B*T] (1 = counted; NULL: all) -> [B, d]; 0
 * where none is. mask must stay until backward. */
tensor *op_masked_mean(tape *t, tensor *x, const uint8_t *mask);

#endif
