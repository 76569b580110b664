/* op_crf.c -- negative log-likelihood of a linear-chain conditional random field (Lafferty,
 * McCallum, Pereira, ICML 2001; docs/models.md 5). Per sentence with words 1 .. L (masked positions
 * left out), K tags:
 *
 *   score(y) = start[y_1] + sum_(t>1) trans[y_(t-1), y_t] + sum_t e_t[y_t] + end[y_L]
 *   nll      = log sum over all y of exp(score(y)) - score(gold)
 *
 * e = log-softmax(logits). The logarithm of the softmax subtracts one number per word from every
 * path. It cancels in nll and in all gradients, so e = logits here. crf_viterbi subtracts it,
 * because it changes the score. Forward and backward sums are in log space and in double:
 *
 *   a_1[k] = start[k] + e_1[k]      a_t[k] = e_t[k] + log sum_j exp(a_(t-1)[j] + trans[j, k])
 *   b_L[k] = end[k]                 b_(t-1)[j] = log sum_k exp(trans[j, k] + e_t[k] + b_t[k])
 *   log Z  = log sum_k exp(a_L[k] + end[k])
 *
 * Backward, p_t[k] = exp(a_t[k] + b_t[k] - log Z), p_t[j, k] of the pair (t-1, t):
 *   de_t[k] = p_t[k] - [k = gold_t]         dtrans[j, k] = sum_t p_t[j, k] - [the gold pair]
 *   dstart = de_1, dend = de_L without the emissions; each times dy of its sentence.
 * Kept: a and log Z. Shared inputs get the sum over sentences in double, in order. Illegal
 * transitions count like any other (docs/models.md 5); only decoding forbids them. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "engine/ops/loss/crf_shape.h"
#include "engine/ops/loss/loss_ops.h"

typedef struct crf {
    crf_inputs in;
    const int32_t *tag; /* [B, T] */
    int64_t B, T, K;
    int64_t *position; /* [B, T]: positions of a sentence's words, [0..length-1] */
    int64_t *length;   /* [B] */
    double *a;         /* [B, T, K], by word */
    double *log_z;     /* [B] */
} crf;

/* One sentence. */
typedef struct chain {
    const crf *c;
    int64_t L;
    const int64_t *position;
    const real *logits; /* [T, K] */
    const int32_t *tag; /* [T] */
    double *a;          /* [L, K] */
} chain;

static chain chain_of(const crf *c, int64_t b) {
    return (chain){.c = c,
                   .L = c->length[b],
                   .position = c->position + b * c->T,
                   .logits = c->in.logits->value + b * c->T * c->K,
                   .tag = c->tag + b * c->T,
                   .a = c->a + b * c->T * c->K};
}

static const real *emission(const chain *s, int64_t t) {
    return s->logits + s->position[t] * s->c->K;
}

static int64_t gold(const chain *s, int64_t t) {
    return s->tag[s->position[t]];
}

/* Returns log sum exp(x) and the largest in *m; x becomes exp(x - m). */
static double log_sum(int64_t n, double *x, double *m) {
    *m = x[0];
    for (int64_t i = 1; i < n; i++) *m = x[i] > *m ? x[i] : *m;
    if (*m == -INFINITY) *m = 0;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] = exp(x[i] - *m);
    return *m + log(sum);
}

static double gold_score(const chain *s) {
    const crf_inputs *in = &s->c->in;
    double score = (double)in->start->value[gold(s, 0)] + (double)in->end->value[gold(s, s->L - 1)];
    for (int64_t t = 0; t < s->L; t++) {
        score += (double)emission(s, t)[gold(s, t)];
        if (t > 0) score += (double)in->trans->value[gold(s, t - 1) * s->c->K + gold(s, t)];
    }
    return score;
}

/* Fills a; returns log Z. x [K] is scratch memory. */
static double forward_chain(const chain *s, double *x) {
    const int64_t K = s->c->K;
    const real *trans = s->c->in.trans->value;
    double m;
    for (int64_t k = 0; k < K; k++)
        s->a[k] = (double)s->c->in.start->value[k] + (double)emission(s, 0)[k];
    for (int64_t t = 1; t < s->L; t++) {
        const double *before = s->a + (t - 1) * K;
        for (int64_t k = 0; k < K; k++) {
            for (int64_t j = 0; j < K; j++) x[j] = before[j] + (double)trans[j * K + k];
            s->a[t * K + k] = (double)emission(s, t)[k] + log_sum(K, x, &m);
        }
    }
    for (int64_t k = 0; k < K; k++)
        x[k] = s->a[(s->L - 1) * K + k] + (double)s->c->in.end->value[k];
    return log_sum(K, x, &m);
}

/* -- backward */

/* Gradients of one sentence for dy = 1. partial: trans [K, K], start [K], end [K], initially
 * zero. */
typedef struct chain_gradient {
    double log_z;
    double *partial;
    double *b, *next; /* [K] */
    double *x;        /* [K] */
} chain_gradient;

/* Computes b_(t-1) from b_t; adds the pair of words t-1 and t to the partial gradient of trans. */
static void step_back(const chain *s, int64_t t, chain_gradient *g) {
    const int64_t K = s->c->K;
    const real *e = emission(s, t);
    for (int64_t j = 0; j < K; j++) {
        const real *trans = s->c->in.trans->value + j * K;
        double m;
        for (int64_t k = 0; k < K; k++) g->x[k] = (double)trans[k] + (double)e[k] + g->b[k];
        g->next[j] = log_sum(K, g->x, &m);
        const double p = exp(s->a[(t - 1) * K + j] + m - g->log_z);
        for (int64_t k = 0; k < K; k++) g->partial[j * K + k] += p * g->x[k];
    }
    g->partial[gold(s, t - 1) * K + gold(s, t)] -= 1;
    memcpy(g->b, g->next, (size_t)K * sizeof *g->b);
}

/* Adds dy (p_t - gold) to the rows of the words in de [T, K], unless it is NULL. */
static void backward_chain(const chain *s, double dy, chain_gradient *g, real *de) {
    const int64_t K = s->c->K;
    double *start = g->partial + K * K, *end = start + K;
    for (int64_t k = 0; k < K; k++) g->b[k] = (double)s->c->in.end->value[k];
    for (int64_t t = s->L - 1; t >= 0; t--) {
        for (int64_t k = 0; k < K; k++) {
            const double p = exp(s->a[t * K + k] + g->b[k] - g->log_z);
            const double d = p - (k == gold(s, t) ? 1 : 0);
            real *to = de ? de + s->position[t] * K + k : NULL;
            if (to) *to = (real)((double)*to + dy * d);
            if (t == 0) start[k] = d;
            if (t == s->L - 1) end[k] = d;
        }
        if (t > 0) step_back(s, t, g);
    }
}

/* dx += sum over sentences of dy times their terms from `first` on. */
static void add_partials(tape *t, const crf *c, tensor *x, const real *dy, const double *partial,
                         int64_t first) {
    const int64_t each = c->K * c->K + 2 * c->K;
    real *dx = tape_grad_zeroed(t, x);
    for (int64_t i = 0; dx && i < x->count; i++) {
        double sum = 0;
        for (int64_t b = 0; b < c->B; b++) sum += (double)dy[b] * partial[b * each + first + i];
        dx[i] = (real)((double)dx[i] + sum);
    }
}

static void crf_backward(tape *t, const tape_node *node) {
    const crf *c = node->kept;
    const int64_t K = c->K, each = K * K + 2 * K;
    const real *dy = node->out->grad;
    real *de = tape_grad_zeroed(t, c->in.logits);
    double *partial = tape_alloc(t, (size_t)(c->B * each) * sizeof *partial);
    double *scratch =
        partial ? tape_alloc(t, (size_t)(3 * K * t->threads) * sizeof *scratch) : NULL;
    if (!scratch) return;
    memset(partial, 0, (size_t)(c->B * each) * sizeof *partial);
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t b = 0; b < c->B; b++) {
        double *own = scratch + 3 * K * omp_get_thread_num();
        chain_gradient g = {c->log_z[b], partial + b * each, own, own + K, own + 2 * K};
        const chain s = chain_of(c, b);
        backward_chain(&s, (double)dy[b], &g, de ? de + b * c->T * K : NULL);
    }
    add_partials(t, c, c->in.trans, dy, partial, 0);
    add_partials(t, c, c->in.start, dy, partial, K * K);
    add_partials(t, c, c->in.end, dy, partial, K * K + K);
}

/* -- the op */

/* Finds the positions of the words. Fails for a sentence without words and for an unknown tag. */
static bool find_words(tape *t, crf *c, const uint8_t *mask) {
    for (int64_t b = 0; b < c->B; b++) {
        c->length[b] = 0;
        for (int64_t i = 0; i < c->T; i++) {
            if (mask && !mask[b * c->T + i]) continue;
            const int32_t tag = c->tag[b * c->T + i];
            if (tag < 0 || tag >= c->K)
                return tape_fail(t, SR_USAGE, "crf: tag %d, not 0 to %lld", (int)tag,
                                 (long long)c->K - 1);
            c->position[b * c->T + c->length[b]++] = i;
        }
        if (!c->length[b])
            return tape_fail(t, SR_USAGE, "crf: sentence %lld has no words", (long long)b);
    }
    return true;
}

static crf *crf_create(tape *t, const crf_inputs *in, const int32_t *tag) {
    crf *c = tape_alloc(t, sizeof *c);
    if (!c) return NULL;
    *c = (crf){.in = *in, .tag = tag, .B = in->logits->dim[0], .T = in->logits->dim[1]};
    c->K = in->logits->dim[2];
    c->position = tape_alloc(t, (size_t)(c->B * c->T) * sizeof *c->position);
    c->length = c->position ? tape_alloc(t, (size_t)c->B * sizeof *c->length) : NULL;
    c->a = c->length ? tape_alloc(t, (size_t)(c->B * c->T * c->K) * sizeof *c->a) : NULL;
    c->log_z = c->a ? tape_alloc(t, (size_t)c->B * sizeof *c->log_z) : NULL;
    return c->log_z ? c : NULL;
}

tensor *op_crf(tape *t, const crf_inputs *in, const int32_t *tag, const uint8_t *mask) {
    if (!crf_fits(t, in)) return NULL;
    crf *c = crf_create(t, in, tag);
    if (!c || !find_words(t, c, mask)) return NULL;
    tensor *y = tape_tensor(t, 1, &c->B);
    double *scratch = y ? tape_alloc(t, (size_t)(c->K * t->threads) * sizeof *scratch) : NULL;
    if (!scratch) return NULL;
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t b = 0; b < c->B; b++) {
        const chain s = chain_of(c, b);
        c->log_z[b] = forward_chain(&s, scratch + c->K * omp_get_thread_num());
        y->value[b] = (real)(c->log_z[b] - gold_score(&s));
    }
    return tape_push(t, "crf", crf_backward, y,
                     (tensor *[]){in->logits, in->trans, in->start, in->end, NULL}, c);
}
