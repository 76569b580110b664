/* attention_ops.h -- attention operations, each without its projections. See ops.h. */
#ifndef ENGINE_OPS_ATTENTION_ATTENTION_OPS_H
#define ENGINE_OPS_ATTENTION_ATTENTION_OPS_H

#include "engine/tape.h"

/* Statistics of attention weights, per head (docs/definitions.md). */
typedef struct attention_report {
    const uint8_t *query_valid; /* [B*Tq], 1 = counted; NULL: all */
    double *logit_max;          /* [heads] largest logit of a visible key; NaN without queries */
    double *entropy;            /* [heads] nats, summed over the counted queries */
    double *queries;            /* [heads] counted queries: those that see a key */
} attention_report;

/* softmax(scale q k^T) v per head. q [B, Tq, d], k [B, Tk, d], v [B, Tk, e]. Head h uses columns
 * h*d/heads .. of q and k, and h*e/heads .. of v. key_valid [B*Tk] (1 = attend) or NULL. causal:
 * key j > query i is hidden. Dropout p on the attention weights. A query that sees no key gives 0.
 * Fills report unless it is NULL. -> [B, Tq, e]. */
tensor *op_attention(tape *t, tensor *q, tensor *k, tensor *v, int heads, double scale,
                     const uint8_t *key_valid, bool causal, double p, attention_report *report);

/* Attention with direction and distance (docs/models.md 5). qkv [B, T, 3 d] contains queries, keys
 * and values; head h uses columns h*d/heads .. of each. u, z [d]: biases by head. scaled: divides
 * scores by sqrt(d/heads). d/heads is even. key_valid, p and report as in op_attention.
 * -> [B, T, d]. */
tensor *op_tener_attention(tape *t, tensor *qkv, tensor *u, tensor *z, int heads,
                           const uint8_t *key_valid, bool scaled, double p,
                           attention_report *report);

/* Inputs of multi-linear attention with one head (docs/models.md 3.1). */
typedef struct multilinear_inputs {
    tensor *q;     /* [B, T, R] */
    tensor *k, *v; /* [B, K, R], K >= T: memory rows come first */
    tensor *r;     /* [K, R], of the keys' positions */
    tensor *core;  /* [cores, R] */
    tensor *u, *z; /* [R] */
} multilinear_inputs;

/* y[b, i, j K + k] = sum_h c_h ((q+u)_ih k_jh + (q+z)_ih r_jh) v_kh, c the mean of the cores.
 * causal: 0 where j or k > K - T + i. -> [B, T, K K]. */
tensor *op_multilinear(tape *t, const multilinear_inputs *in, bool causal);

/* Inputs of attention with relative positions (docs/models.md 4); width = heads x dh. */
typedef struct xl_inputs {
    tensor *q;     /* [B, T, width] */
    tensor *k, *v; /* [B, K, width], K >= T: memory rows come first */
    tensor *r;     /* [n, width]: row n-1-D is distance D, larger distances use row 0 */
    tensor *u, *z; /* [heads, dh] */
} xl_inputs;

typedef struct xl_options {
    int heads;
    int64_t reach; /* keys that a query sees, its own position included; 0: all before it */
    double p;      /* dropout on the attention weights */
    attention_report *report; /* or NULL; filled during the call */
} xl_options;

/* softmax(((q+u).k_j + (q+z).r_D) / sqrt(dh)) v per head, D = K - T + i - j >= 0.
 * -> [B, T, width]. */
tensor *op_xl_attention(tape *t, const xl_inputs *in, const xl_options *o);

#endif
