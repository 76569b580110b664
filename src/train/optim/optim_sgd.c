/* optim_sgd.c -- stochastic gradient descent with momentum (docs/models.md 9.1), as PyTorch's SGD:
 *
 *   g = grad scale + wd p;  buf = g at the first update, then mom buf + g;  p -= lr buf
 *   Nesterov: p -= lr (g + mom buf)
 *
 * buf starts at zero, so that mom buf + g is g at the first update without a special case.
 */
#include "train/optim/optim_rows.h"

static void sgd_update(const optim_step *s, int64_t n, real *restrict p, const real *restrict grad,
                       real *restrict buf, real *restrict second) {
    (void)second;
    real scale = (real)s->scale, wd = (real)s->options->weight_decay, lr = (real)s->lr;
    real mom = (real)s->options->momentum;
    real direct = s->options->nesterov ? 1 : 0, through = s->options->nesterov ? mom : 1;
    for (int64_t i = 0; i < n; i++) {
        real g = grad[i] * scale + wd * p[i];
        buf[i] = mom * buf[i] + g;
        p[i] -= lr * (direct * g + through * buf[i]);
    }
}

const optim_row optim_sgd = {
    .name = "sgd",
    .citation = "Sutskever et al., ICML 2013",
    .summary = "stochastic gradient descent with momentum; weight decay is an L2 term",
    .options = "momentum nesterov",
    .slots = 1,
    .update = sgd_update,
};
