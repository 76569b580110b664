/* optim_clip.c -- bounds on gradients (docs/models.md 9.3).
 *
 *   by value  g = max(-bound, min(bound, g)) for every number
 *   by norm   g *= min(1, bound/(norm + 1e-6)), norm over all parameters
 */
#include <math.h>

#include "train/optim/optim_rows.h"

void optim_clip_values(params *p, int threads, double bound) {
    const real high = (real)bound;
#pragma omp parallel num_threads(threads)
    for (int i = 0; i < p->count; i++) {
        real *g = p->item[i]->t.grad;
        const int64_t n = p->item[i]->t.count;
#pragma omp for schedule(static) nowait
        for (int64_t k = 0; k < n; k++) g[k] = g[k] > high ? high : g[k] < -high ? -high : g[k];
    }
}

double optim_clip_factor(double norm, double bound) {
    return fmin(1, bound / (norm + 1e-6));
}
