/* bn_observer.c -- BN's statistics at a site with another method. They are computed in addition and
 * change nothing else (docs/norms.md 2, 10, 18).
 *
 * Per feature over the n valid rows of the method's input x (after a layer scale), g = dL/dy as it
 * arrives at the site:
 *
 *     forward   mu_B = mean[x]  sigma2_B = mean[(x - mu_B)^2]  psi2_B = mean[x^2]
 *               s = sqrt(sigma2_B + eps)  xhat = (x - mu_B)/s
 *     state     v <- alpha v + (1-alpha) v_B  for v = mu, sigma2, psi2, from 0, 1, 1; biased
 *     backward  sum_g = sum g    sum_gx = sum g xhat
 *               direct_norm_bn = ||gamma/s g||_F    dx_norm_bn = the root of its square less
 *                   sum_k (gamma/s)^2 (sum_g^2 + (2 - Q) sum_gx^2)/n,  Q = sigma2_B/(sigma2_B +
 *                   eps)
 *
 * They give the parts of dx that BN and PN-V would have with the gain of this site (1 without gain)
 * at the same g. BN: c_mu = gamma/s sum_g/n and c_sig = gamma/s sum_gx/n. PN-V: sum g x/psi = (s
 * sum_gx + mu_B sum_g)/psi. This holds for this one call. Had the site used BN from the start,
 * weights, x and g would differ.
 *
 * The observer computes only values that the method does not. Methods over a batch have batch and
 * running statistics. Methods of NORM_FAMILY_SIGMA and releases with sigma2 have the sums too (with
 * the xhat above, or their release's). The sum_gx of the others uses another xhat. For hooks the
 * observer's sum_gx replaces it, and the plain gain replaces MABN's and RepBN's with its factor.
 * dgamma and dbeta stay the method's. A method that counts padded rows (norm_method.padded) is not
 * synchronized, nor is its observer.
 *
 * eps and alpha are the site's; a site without eps uses bn's. Kept: center, 1/s and the sums
 * [d]. */
#include "norm/bn_observer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "norm/kernels/batch_stats.h"
#include "norm/kernels/sync.h"
#include "norm/methods/methods.h"

#define BATCH   (NORM_BIT(mu_B) | NORM_BIT(sigma2_B) | NORM_BIT(psi2_B))
#define RUNNING (NORM_BIT(mu) | NORM_BIT(sigma2) | NORM_BIT(psi2))
#define SUMS    (NORM_BIT(sum_g) | NORM_BIT(sum_gx))

struct bn_observer_call {
    const norm_observer_state *observer;
    norm_call call; /* the layer's, with the observer's options, kept memory, sums and gain */
    norm_rows rows;
    norm_options options;
};

/* -- the site ---------------------------------------------------------------------------------- */

const norm_method *norm_observer(void) {
    return &norm_bn;
}

sr_status norm_site_observe_batch(norm_site *s, double alpha, sr_failure *why) {
    const norm_method *m = s->method;
    int64_t d = s->features;
    if (s->observer) return SR_OK;
    if (!(alpha >= 0 && alpha <= 1))
        return sr_fail(why, SR_USAGE, "%s: alpha is %g, not between 0 and 1", s->name, alpha);
    norm_observer_state *observer = calloc(1, sizeof *observer);
    double *state = malloc(3 * (size_t)d * sizeof *state);
    if (!observer || !state) {
        free(observer), free(state);
        return sr_fail(why, SR_MEMORY, "out of memory for the batch statistics of %s", s->name);
    }
    observer->eps = m->eps > 0 || s->options.eps > 0 ? s->options.eps : norm_bn.eps;
    observer->alpha = m->alpha > 0 ? s->options.alpha : alpha;
    /* vectors of BN and PN-V that the method does not fill */
    observer->vectors = (BATCH | RUNNING | NORM_BIT(gamma)) & ~m->vectors;
    const bool release = m->padded && m->uses & NORM_BIT(sigma2);
    if (m->family != NORM_FAMILY_SIGMA && !release) observer->vectors |= SUMS;
    observer->mu = state, observer->sigma2 = state + d, observer->psi2 = state + 2 * d;
    for (int64_t k = 0; k < d; k++)
        observer->mu[k] = 0, observer->sigma2[k] = observer->psi2[k] = 1;
    s->observer = observer;
    return SR_OK;
}

uint32_t norm_site_vectors(const norm_site *s) {
    return s->method->vectors | (s->observer ? s->observer->vectors : 0);
}

/* -- one call ---------------------------------------------------------------------------------- */

static bn_observer_call *start_call(const norm_site *site, const norm_call *c) {
    bn_observer_call *k = tape_alloc(c->tape, sizeof *k);
    const size_t bytes = batch_kept_bytes(c);
    double *sums = tape_alloc(c->tape, 3 * (size_t)c->features * sizeof *sums);
    void *kept = tape_alloc(c->tape, bytes);
    if (!k || !sums || !kept) return NULL;
    *k = (bn_observer_call){
        .observer = site->observer, .call = *c, .rows = *c->rows, .options = *c->options};
    k->options.eps = site->observer->eps;
    k->options.alpha = site->observer->alpha;
    if (site->method->padded) k->rows.gather = NULL;
    k->call.kept = memset(kept, 0, bytes);
    k->call.options = &k->options;
    k->call.rows = &k->rows;
    k->call.stat[NORM_sum_g] = sums;
    k->call.stat[NORM_sum_gx] = sums + c->features;
    k->call.stat[NORM_gamma] = sums + 2 * c->features;
    for (int64_t j = 0; j < c->features; j++) k->call.stat[NORM_gamma][j] = (double)c->gamma[j];
    return k;
}

static void advance(const bn_observer_call *k, const batch_kept *kept, norm_vector v,
                    norm_vector batch, double *state) {
    const norm_call *c = &k->call;
    if (!(k->observer->vectors >> v & 1)) return;
    memcpy(c->stat[v], state, (size_t)c->features * sizeof *state);
    batch_advance(c, kept, state, c->stat[batch], 1);
}

sr_status bn_observer_forward(const norm_site *site, norm_call *c, const real *x,
                              bn_observer_call **kept) {
    const norm_observer_state *s = site->observer;
    *kept = NULL;
    if (!s || c->rows->mode != NORM_TRAIN) return SR_OK;
    bn_observer_call *k = start_call(site, c);
    if (!k) return SR_MEMORY;
    batch_kept *b = batch_kept_start(&k->call);
    sr_status status =
        s->vectors & NORM_BIT(mu_B) ? batch_statistics(&k->call, b, x) : sync_rows(&k->call, &b->n);
    if (status != SR_OK) return status;
    advance(k, b, NORM_mu, NORM_mu_B, s->mu);
    advance(k, b, NORM_sigma2, NORM_sigma2_B, s->sigma2);
    advance(k, b, NORM_psi2, NORM_psi2_B, s->psi2);
    batch_divide(&k->call, b, c->stat[NORM_mu_B], c->stat[NORM_sigma2_B]);
    *kept = k;
    return SR_OK;
}

uint32_t norm_site_scalars(const norm_site *s) {
    const uint32_t own = NORM_SCALAR_BIT(dx_norm) | NORM_SCALAR_BIT(direct_norm);
    const uint32_t observer = NORM_SCALAR_BIT(dx_norm_bn) | NORM_SCALAR_BIT(direct_norm_bn);
    const bool sums = s->observer && s->observer->vectors & NORM_BIT(sum_gx);
    return s->method->scalars | own | (sums ? observer : 0);
}

/* Measures the dx that BN would write here, without writing it. The sums cover all n rows; this
 * process has v of them. It stores roots of this process's part of dx_norm_bn^2: its square minus
 * v/n of the correction, with the sign of the part. The squares of the parts then add up to the
 * total. */
static sr_status measure_dx(const norm_call *own, norm_call *c, const real *dy) {
    const batch_kept *k = own->kept;
    column_passes m = column_passes_valid(own);
    double square, off = 0, *a = k->scratch;
    m.scale = NULL; /* dy is not scaled */
    for (int64_t j = 0; j < own->features; j++) a[j] = (double)own->gamma[j] * k->inverse[j];
    sr_status status = column_passes_squares(&m, dy, a, &square);
    if (status != SR_OK) return status;
    c->scalar[NORM_SCALAR_direct_norm_bn] = sqrt(square);
    for (int64_t j = 0; j < own->features; j++) {
        const double variance = own->stat[NORM_sigma2_B][j];
        const double q = variance / (variance + own->options->eps);
        const double g = own->stat[NORM_sum_g][j], gx = own->stat[NORM_sum_gx][j];
        off += a[j] * a[j] * (g * g + (2 - q) * gx * gx) / k->n;
    }
    square -= off * ((double)own->rows->valid / k->n);
    const bool part = own->rows->gather != NULL; /* only rounding makes a total negative */
    c->scalar[NORM_SCALAR_dx_norm_bn] = square >= 0 ? sqrt(square) : part ? -sqrt(-square) : 0;
    return SR_OK;
}

sr_status bn_observer_backward(bn_observer_call *k, norm_call *c, const real *x, const real *dy) {
    if (!k || !(k->observer->vectors & NORM_BIT(sum_gx))) return SR_OK;
    sr_status status = batch_gradient_sums(&k->call, k->call.kept, x, dy);
    c->stat[NORM_sum_g] = k->call.stat[NORM_sum_g];
    c->stat[NORM_sum_gx] = k->call.stat[NORM_sum_gx];
    c->stat[NORM_gamma] = k->call.stat[NORM_gamma];
    return status == SR_OK ? measure_dx(&k->call, c, dy) : status;
}
