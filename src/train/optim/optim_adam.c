/* optim_adam.c -- Adam in the three forms that occur in the sources (docs/models.md 9.1).
 *
 *   m = b1 m + (1-b1) g,  v = b2 v + (1-b2) g^2,  c1 = 1 - b1^t,  c2 = 1 - b2^t
 *   adam          g = grad scale + wd p         p -= lr/c1 m / (sqrt(v)/sqrt(c2) + eps)
 *   adamw         p *= 1 - lr wd first          the same step
 *   adam-fairseq  p *= 1 - lr wd first          p -= lr sqrt(c2)/c1 m / (sqrt(v) + eps)
 *
 * The last two differ only in the number that eps is compared with. All three are one loop: a step
 * size and an eps computed once per update.
 */
#include <math.h>

#include "train/optim/optim_rows.h"

#define ADAM_OPTIONS "adam-beta1 adam-beta2 adam-eps"

typedef struct adam_coefficients {
    real l2, keep; /* wd added to g; factor on p */
    real step, eps;
} adam_coefficients;

static void adam_loop(const optim_step *s, adam_coefficients c, int64_t n, real *restrict p,
                      const real *restrict grad, real *restrict m, real *restrict v) {
    real scale = (real)s->scale, b1 = (real)s->options->beta1, b2 = (real)s->options->beta2;
    /* in double first: 1 - 0.999f is 0.000999987 */
    real new1 = (real)(1 - s->options->beta1), new2 = (real)(1 - s->options->beta2);
    for (int64_t i = 0; i < n; i++) {
        real g = grad[i] * scale + c.l2 * p[i];
        m[i] = b1 * m[i] + new1 * g;
        v[i] = b2 * v[i] + new2 * g * g;
        p[i] = c.keep * p[i] - c.step * m[i] / ((real)sqrt(v[i]) + c.eps);
    }
}

/* sqrt(v)/sqrt(c2) + eps = (sqrt(v) + eps sqrt(c2)) / sqrt(c2): PyTorch's form is fairseq's with
 * eps times sqrt(c2). */
static adam_coefficients coefficients(const optim_step *s, bool decoupled, bool fairseq) {
    double c1 = 1 - pow(s->options->beta1, (double)s->count);
    double c2 = 1 - pow(s->options->beta2, (double)s->count);
    double wd = s->options->weight_decay;
    return (adam_coefficients){
        .l2 = decoupled ? 0 : (real)wd,
        .keep = decoupled ? (real)(1 - s->lr * wd) : 1,
        .step = (real)(s->lr * sqrt(c2) / c1),
        .eps = (real)(s->options->eps * (fairseq ? 1 : sqrt(c2))),
    };
}

static void adam_update(const optim_step *s, int64_t n, real *p, const real *g, real *m, real *v) {
    adam_loop(s, coefficients(s, false, false), n, p, g, m, v);
}

static void adamw_update(const optim_step *s, int64_t n, real *p, const real *g, real *m, real *v) {
    adam_loop(s, coefficients(s, true, false), n, p, g, m, v);
}

static void adam_fairseq_update(const optim_step *s, int64_t n, real *p, const real *g, real *m,
                                real *v) {
    adam_loop(s, coefficients(s, true, true), n, p, g, m, v);
}

const optim_row optim_adam = {
    .name = "adam",
    .citation = "Kingma and Ba, ICLR 2015",
    .summary = "weight decay as an L2 term (PyTorch's Adam)",
    .options = ADAM_OPTIONS,
    .slots = 2,
    .update = adam_update,
};

const optim_row optim_adamw = {
    .name = "adamw",
    .citation = "Loshchilov and Hutter, ICLR 2019",
    .summary = "decoupled weight decay (PyTorch's AdamW)",
    .options = ADAM_OPTIONS,
    .slots = 2,
    .update = adamw_update,
};

const optim_row optim_adam_fairseq = {
    .name = "adam-fairseq",
    .citation = "Ott et al., NAACL 2019 (fairseq)",
    .summary = "decoupled weight decay, eps beside the uncorrected root",
    .options = ADAM_OPTIONS,
    .slots = 2,
    .update = adam_fairseq_update,
};
