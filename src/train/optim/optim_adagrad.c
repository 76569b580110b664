/* optim_adagrad.c -- AdaGrad (docs/models.md 9.1; Duchi et al., Adaptive subgradient methods for
 * online learning and stochastic optimization, JMLR 2011), as Chen and Manning's parser uses it:
 *
 *   g = grad scale + wd p;  sum += g^2;  p -= lr g / (sqrt(sum) + eps)
 *
 * eps is 1e-6 there.
 */
#include <math.h>

#include "train/optim/optim_rows.h"

static void adagrad_update(const optim_step *s, int64_t n, real *restrict p,
                           const real *restrict grad, real *restrict sum, real *restrict second) {
    (void)second;
    const real scale = (real)s->scale, wd = (real)s->options->weight_decay, lr = (real)s->lr;
    const real eps = (real)s->options->adagrad_eps;
    for (int64_t i = 0; i < n; i++) {
        const real g = grad[i] * scale + wd * p[i];
        sum[i] += g * g;
        p[i] -= lr * g / ((real)sqrt(sum[i]) + eps);
    }
}

const optim_row optim_adagrad = {
    .name = "adagrad",
    .citation = "Duchi et al., JMLR 2011",
    .summary =
        "steps divided by the root of the sum of squared gradients; weight decay is an L2 term",
    .options = "adagrad-eps",
    .slots = 1,
    .update = adagrad_update,
};
