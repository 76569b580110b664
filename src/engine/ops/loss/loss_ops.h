/* loss_ops.h -- losses: cross entropy, adaptive softmax, conditional random field. See ops.h. */
#ifndef ENGINE_OPS_LOSS_LOSS_OPS_H
#define ENGINE_OPS_LOSS_LOSS_OPS_H

#include "engine/tape.h"

typedef enum {
    SMOOTHING_ALL,   /* form 0: eps/V on every class, target included (docs/models.md 2.5) */
    SMOOTHING_OTHERS /* form 1: eps/(V-1) on the other classes (later fairseq) */
} smoothing_form;

typedef struct cross_entropy_report {
    double loss;    /* sum over counted rows, nats, smoothing included */
    double nll;     /* sum over counted rows, nats, no smoothing */
    int64_t tokens; /* counted rows */
    /* Rows whose target has the largest logit (lowest index on ties). Negative: unknown, there are
     * no logits. */
    int64_t correct;
    int64_t unknown; /* counted rows whose target is `unk` */
} cross_entropy_report;

/* Summed loss, count 1. logits [..., V], target [rows]. Rows with target == ignore are not counted
 * (ignore = -1: all are). unk = -1: none. Fills report unless it is NULL. */
tensor *op_cross_entropy(tape *t, tensor *logits, const int32_t *target, int32_t ignore,
                         int32_t unk, double eps, smoothing_form form,
                         cross_entropy_report *report);

/* Inputs of the adaptive softmax (docs/models.md 3.2). */
typedef struct adaptive_inputs {
    tensor *h;             /* [..., d] */
    tensor *w, *b;         /* [V, d], [V]: words, the most frequent first */
    tensor *wc, *bc;       /* [cutoffs, d], [cutoffs]: clusters after the first cut-off, or NULL */
    const int64_t *cutoff; /* [cutoffs], rising, 0 < cutoff < V */
    int cutoffs;
} adaptive_inputs;

/* Negative log-likelihood of each target [rows] -> [rows]. */
tensor *op_adaptive_softmax(tape *t, const adaptive_inputs *in, const int32_t *target);

/* Inputs of a linear-chain conditional random field (docs/models.md 5). */
typedef struct crf_inputs {
    tensor *logits;      /* [B, T, K]: of K tags, before the log-softmax */
    tensor *trans;       /* [K, K], from the row's tag to the column's */
    tensor *start, *end; /* [K] */
} crf_inputs;

/* Negative log-likelihood of the tags [B, T] of each sentence. mask [B, T] is 1 for words (NULL:
 * everywhere); every sentence has at least one. tag and mask must stay valid until backward.
 * -> [B]. */
tensor *op_crf(tape *t, const crf_inputs *in, const int32_t *tag, const uint8_t *mask);
/* Finds the best tags of each sentence: path [B, T], 0 where masked; its score [B], or NULL.
 * allowed [(K+2)^2] has row K for the start and column K+1 for the end. A transition that is 0
 * there costs 10000. NULL: all transitions are free. Returns false after a failure. */
bool crf_viterbi(tape *t, const crf_inputs *in, const uint8_t *mask, const uint8_t *allowed,
                 int32_t *path, double *score);

#endif
