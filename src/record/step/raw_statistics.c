/* raw_statistics.c -- statistics from raw tensors or from a host program's sums
 * (docs/norms.md 2, 10, 11, 18).
 *
 *   forward   mu_B, sigma2_B, psi2_B of x over valid rows
 *             mu <- alpha mu + (1 - alpha) mu_B, from 0; sigma2 and psi2 (biased) from 1.
 *             Recorded are the values before this update.
 *   backward  sum_g, sum_gx with the xhat of the site's family (statrec/record.h)
 *   PN        Gamma_t = psi2_B / (psi2 + eps)    Lambda_t = gamma sum_gx / n
 *             nu <- nu (1 - (1 - alpha_bwd) Gamma_t) + (1 - alpha_bwd) Lambda_t, from 0.
 *             Recorded is the value before this update.
 *
 * dx_norm and direct_norm use A, B, E, the sums of g, g xhat and g^2, and Q = mean[xhat^2]. Q is
 * v/(v + eps) for a batch statistic v, and Gamma_t for PN:
 *
 *   SIGMA  direct^2 = sum_k (gamma scale)^2 E
 *          dx^2 = direct^2 - sum_k (gamma scale)^2 (A^2 + (2 - Q) B^2)/n
 *   PSI    as SIGMA without A
 *   PN     dx^2 = direct^2 - sum_k scale^2 nu (2 gamma B - n nu Q), nu from before the update
 *   NONE   both are the root of sum_k E;  ROW, OWN: NaN, since sums do not suffice
 *   observed: dx_norm_bn and direct_norm_bn by SIGMA, unless that is the family
 *
 * raw_passes.c collects the passes of a step. This file turns their sums into vectors and scalars
 * when the step ends. Vectors that the host program puts replace the recorder's.
 */
#include "record/step/raw_passes.h"

#include <math.h>
#include <stdlib.h>

#include "record/recorder_state.h"
#include "record/step/put_step.h"

/* One site at the end of a step; vectors are [width]. */
typedef struct ending {
    sr_recorder *r;
    int site;
    int64_t width;
    double eps, alpha, alpha_bwd, n;
    sr_family family;
    bool observed;
    const double *mean, *variance, *square, *gain; /* statistics of the passes */
    const double *mu, *sigma2, *psi2, *nu;         /* running, from before this step */
    const double *sum_g, *sum_gg;                  /* sum_gg NULL: not known */
    double *center, *scale, *own_scale, *sum_gx;   /* xhat = (x - center) scale; PN's own scale */
} ending;

/* The host program's vector of this step, or else the recorder's. */
static const double *put_or(const sr_recorder *r, int site, sr_vector which, const double *ours) {
    if (!(r->state[site].put >> which & 1)) return ours;
    return r->vector[which] + r->site[site].offset;
}

static void put_vector(const ending *e, sr_vector which, const double *value) {
    if (!(e->r->state[e->site].put >> which & 1)) recorder_put_vector(e->r, e->site, which, value);
}

static void put_scalar(const ending *e, sr_scalar which, double value) {
    if (!(e->r->state[e->site].scalar_put >> which & 1)) sr_put_scalar(e->r, e->site, which, value);
}

static void put_forward(const ending *e) {
    put_vector(e, SR_mu_B, e->mean);
    put_vector(e, SR_sigma2_B, e->variance);
    put_vector(e, SR_psi2_B, e->square);
    put_vector(e, SR_gamma, e->gain);
    if (isnan(e->alpha)) return;
    put_vector(e, SR_mu, e->mu);
    put_vector(e, SR_sigma2, e->sigma2);
    put_vector(e, SR_psi2, e->psi2);
}

/* Uses the statistics of this step, and running statistics from before it. */
static void prepare_xhat(const ending *e) {
    const bool centred = e->observed || (e->family != SR_FAMILY_PSI && e->family != SR_FAMILY_PN);
    const double *statistic = centred ? e->variance : e->square;
    if (!centred && e->family == SR_FAMILY_PN) statistic = e->psi2;
    for (int64_t k = 0; k < e->width; k++) {
        e->center[k] = centred ? e->mean[k] : 0;
        e->scale[k] = 1 / sqrt(statistic[k] + e->eps);
        e->own_scale[k] = 1 / sqrt(e->psi2[k] + e->eps);
    }
}

/* sum g x = sum_gx / scale + center * sum_g if sum_gx does not use PN's xhat. Updates nu. */
static void put_pn(const ending *e, double *Gamma, double *Lambda, double *nu) {
    put_vector(e, SR_nu, e->nu);
    for (int64_t k = 0; k < e->width; k++) {
        double gx = e->sum_gx[k];
        if (e->observed) gx = (gx / e->scale[k] + e->center[k] * e->sum_g[k]) * e->own_scale[k];
        Gamma[k] = e->square[k] * e->own_scale[k] * e->own_scale[k]; /* mean xhat^2 */
        Lambda[k] = e->gain[k] * gx / e->n;
        nu[k] = e->nu[k] * (1 - (1 - e->alpha_bwd) * Gamma[k]) + (1 - e->alpha_bwd) * Lambda[k];
    }
    put_vector(e, SR_Gamma_t, Gamma);
    put_vector(e, SR_Lambda_t, Lambda);
}

/* The amount subtracted from (gamma scale)^2 E in feature k; mean_part: with the term of A. */
static double batch_part(const ending *e, int64_t k, bool mean_part) {
    const double statistic = mean_part ? e->variance[k] : e->square[k];
    const double a = e->gain[k] * e->scale[k];
    const double q = statistic / (statistic + e->eps), g = mean_part ? e->sum_g[k] : 0;
    return a * a * (g * g + (2 - q) * e->sum_gx[k] * e->sum_gx[k]) / e->n;
}

static double pn_part(const ending *e, int64_t k) {
    const double s = e->scale[k], nu = e->nu[k], q = e->square[k] * s * s;
    return s * s * nu * (2 * e->gain[k] * e->sum_gx[k] - e->n * nu * q);
}

static void put_norms(const ending *e) {
    const sr_family family = e->observed ? SR_FAMILY_SIGMA : e->family;
    const bool bn = e->observed && e->family != SR_FAMILY_SIGMA;
    double direct = 0, part = 0;
    if (family == SR_FAMILY_ROW || family == SR_FAMILY_OWN || !e->sum_gg) return;
    for (int64_t k = 0; k < e->width; k++) {
        const double a = family == SR_FAMILY_NONE ? 1 : e->gain[k] * e->scale[k];
        direct += a * a * e->sum_gg[k];
        if (family == SR_FAMILY_PN) part += pn_part(e, k);
        if (family == SR_FAMILY_SIGMA || family == SR_FAMILY_PSI)
            part += batch_part(e, k, family == SR_FAMILY_SIGMA);
    }
    const double rest = direct - part, dx = sqrt(rest < 0 ? 0 : rest); /* NaN stays NaN */
    put_scalar(e, bn ? SR_SCALAR_dx_norm_bn : SR_SCALAR_dx_norm, dx);
    put_scalar(e, bn ? SR_SCALAR_direct_norm_bn : SR_SCALAR_direct_norm, sqrt(direct));
}

/* sum_gc is about `reference`. */
static void put_backward(const ending *e, const double *sum_gc, const double *reference) {
    for (int64_t k = 0; k < e->width; k++)
        e->sum_gx[k] = (sum_gc[k] + (reference[k] - e->center[k]) * e->sum_g[k]) * e->scale[k];
    put_vector(e, SR_sum_g, e->sum_g);
    put_vector(e, SR_sum_gx, e->sum_gx);
    put_norms(e);
}

static void advance(double *running, const double *batch, double alpha, int64_t width) {
    for (int64_t k = 0; k < width; k++) running[k] = alpha * running[k] + (1 - alpha) * batch[k];
}

static ending begin_ending(sr_recorder *r, int site, raw_state *raw) {
    const sr_run_site *at = &r->site[site];
    raw_total *t = &raw->total;
    return (ending){.r = r,
                    .site = site,
                    .width = at->width,
                    .eps = at->eps,
                    .alpha = at->alpha,
                    .alpha_bwd = isnan(at->alpha_bwd) ? at->alpha : at->alpha_bwd,
                    .n = (double)t->rows,
                    .family = r->state[site].family,
                    .observed = at->observed,
                    .mean = t->mean,
                    .variance = t->variance,
                    .square = t->square,
                    .gain = put_or(r, site, SR_gamma, t->gain),
                    .mu = put_or(r, site, SR_mu, raw->mu),
                    .sigma2 = put_or(r, site, SR_sigma2, raw->sigma2),
                    .psi2 = put_or(r, site, SR_psi2, raw->psi2),
                    .nu = put_or(r, site, SR_nu, raw->nu),
                    .sum_g = t->sum_g,
                    .sum_gg = t->passes == 1 && t->has_gg ? t->sum_gg : NULL,
                    .center = raw->work,
                    .scale = raw->work + at->width,
                    .own_scale = raw->work + 2 * at->width,
                    .sum_gx = raw->work + 3 * at->width};
}

/* PN divides by psi2 from before the step: the recorder's with an alpha, or the host program's. */
static sr_status check_pn(const ending *e, const raw_total *t) {
    const bool given = e->r->state[e->site].put >> SR_psi2 & 1;
    if (e->family != SR_FAMILY_PN || e->observed || !isnan(e->alpha) || given || t->passes == 0)
        return SR_OK;
    return sr_fail(&e->r->failure, SR_USAGE,
                   "%s: site %s: family pn without alpha (NaN) has no psi2 in step %lld; put it "
                   "(SR_psi2)",
                   e->r->path, e->r->site[e->site].name, (long long)e->r->step);
}

static sr_status end_site(sr_recorder *r, int site) {
    raw_state *raw = &r->state[site].raw;
    raw_total *t = &raw->total;
    if (!raw_finish_passes(raw, r->site[site].width)) return recorder_check(r);
    const ending e = begin_ending(r, site, raw);
    if (r->state[site].rows < 0) r->state[site].rows = t->rows;
    if (t->samples > 0) put_scalar(&e, SR_SCALAR_samples, (double)t->samples);
    put_scalar(&e, SR_SCALAR_padded, (double)t->padded);
    if (t->rows == 0 || check_pn(&e, t) != SR_OK) return recorder_check(r);
    prepare_xhat(&e);
    put_forward(&e);
    if (t->passes > 0) put_backward(&e, t->sum_gc, t->reference);
    if (isnan(e.alpha)) return recorder_check(r);
    if (t->passes > 0 && e.family == SR_FAMILY_PN)
        put_pn(&e, raw->work + 4 * e.width, raw->work + 5 * e.width, raw->nu);
    advance(raw->mu, t->mean, e.alpha, e.width);
    advance(raw->sigma2, t->variance, e.alpha, e.width);
    advance(raw->psi2, t->square, e.alpha, e.width);
    return recorder_check(r);
}

sr_status raw_end_step(sr_recorder *r) {
    for (int64_t i = 0; i < r->sites; i++)
        if (end_site(r, (int)i) != SR_OK) return recorder_check(r);
    return SR_OK;
}
