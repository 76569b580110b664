/* raw_statistics.c -- statistics from raw tensors, for hosts that have none: docs/norms.md 2, 10, 11, 18.
 *
 *   forward   mu_B, sigma2_B, psi2_B of x over valid rows; running (start 0, 1, 1)
 *             mu <- alpha mu + (1 - alpha) mu_B, sigma2 and psi2 alike (biased), recorded as they
 *             were before this
 *   backward  sum_g, sum_gx with the xhat of the site's family (statrec/record.h)
 *   PN        Gamma_t = psi2_B / (psi2 + eps)    Lambda_t = gamma sum_gx / n
 *             nu <- nu (1 - (1 - alpha) Gamma_t) + (1 - alpha) Lambda_t, start 0, recorded as it was
 *             before
 *
 * dx_norm and direct_norm follow from the sums of g, g xhat and g^2, with Q = mean[xhat^2] (of the
 * batch statistic in use, v/(v + eps); PN: Gamma_t) and A, B, E the sums of g, g xhat and g^2:
 *
 *   SIGMA  direct^2 = sum_k (gamma scale)^2 E    dx^2 = direct^2 - sum_k (gamma scale)^2 (A^2 + (2 - Q) B^2)/n
 *   PSI    the same without A
 *   PN     dx^2 = direct^2 - sum_k scale^2 nu (2 gamma B - n nu Q), nu from before the update
 *   NONE   both are the root of sum_k E;  ROW, OWN: dx needs the rows, or the method: NaN
 *   observed: dx_norm_bn and direct_norm_bn by SIGMA, where that is not the family
 *
 * Kept between forward and backward: the pointer to x, and center and scale of xhat.
 * Deviation: one alpha serves PN's forward and backward averages.
 */
#include <math.h>
#include <stdlib.h>

#include "recorder.h"
#include "statrec/moments.h"

/* Rows of raw_state.work: batch statistics, gamma, xhat = (x - center) * scale of this step, and
 * the scale of PN's xhat. */
enum { MEAN, VARIANCE, SQUARE, GAIN, CENTER, SCALE, PN_SCALE, WORK_ROWS };

static sr_status allocate_state(sr_recorder *r, raw_state *raw, int64_t width) {
    if (raw->work) return SR_OK;
    double *all = malloc((size_t)width * (4 + WORK_ROWS) * sizeof *all);
    if (!all)
        return sr_fail(&r->failure, SR_MEMORY, "%s: %lld running values", r->path,
                       (long long)width * 4);
    raw->mu = all, raw->sigma2 = all + width, raw->psi2 = all + 2 * width;
    raw->nu = all + 3 * width, raw->work = all + 4 * width;
    for (int64_t k = 0; k < width; k++) {
        raw->mu[k] = raw->nu[k] = 0;
        raw->sigma2[k] = raw->psi2[k] = 1;
    }
    return SR_OK;
}

static sr_status check_tensor(sr_recorder *r, int site, const sr_tensor *x, const char *call) {
    const sr_run_site *at = &r->site[site];
    if (!x || x->outer < 0 || x->inner < 0 || x->channels != at->width ||
        (!x->data && x->outer * x->inner > 0))
        return sr_fail(&r->failure, SR_USAGE,
                       "%s: %s: tensor [%lld, %lld, %lld]%s at site %s of width %lld", r->path,
                       call, x ? (long long)x->outer : 0, x ? (long long)x->channels : 0,
                       x ? (long long)x->inner : 0, x && !x->data ? " without data" : "", at->name,
                       (long long)at->width);
    return SR_OK;
}

static void advance(double *running, const double *batch, double alpha, int64_t width) {
    for (int64_t k = 0; k < width; k++) running[k] = alpha * running[k] + (1 - alpha) * batch[k];
}

static void put_forward(sr_recorder *r, int site, const raw_state *raw) {
    const double *work = raw->work;
    int64_t width = r->site[site].width;
    recorder_put_vector(r, site, SR_mu_B, work + MEAN * width);
    recorder_put_vector(r, site, SR_sigma2_B, work + VARIANCE * width);
    recorder_put_vector(r, site, SR_psi2_B, work + SQUARE * width);
    recorder_put_vector(r, site, SR_gamma, work + GAIN * width);
    if (isnan(r->site[site].alpha)) return;
    recorder_put_vector(r, site, SR_mu, raw->mu);
    recorder_put_vector(r, site, SR_sigma2, raw->sigma2);
    recorder_put_vector(r, site, SR_psi2, raw->psi2);
}

/* From the statistics of this batch and the running ones from before it. */
static void prepare_xhat(const sr_recorder *r, int site, raw_state *raw) {
    int64_t width = r->site[site].width;
    double eps = r->site[site].eps, *work = raw->work;
    sr_family family = r->state[site].family;
    bool centred = r->site[site].observed || (family != SR_FAMILY_PSI && family != SR_FAMILY_PN);
    const double *statistic = work + (centred ? VARIANCE : SQUARE) * width;
    if (!centred && family == SR_FAMILY_PN) statistic = raw->psi2;
    for (int64_t k = 0; k < width; k++) {
        work[CENTER * width + k] = centred ? work[MEAN * width + k] : 0;
        work[SCALE * width + k] = 1 / sqrt(statistic[k] + eps);
        work[PN_SCALE * width + k] = 1 / sqrt(raw->psi2[k] + eps);
    }
}

static void advance_all(raw_state *raw, double alpha, int64_t width) {
    advance(raw->mu, raw->work + MEAN * width, alpha, width);
    advance(raw->sigma2, raw->work + VARIANCE * width, alpha, width);
    advance(raw->psi2, raw->work + SQUARE * width, alpha, width);
}

sr_status sr_observe_forward(sr_recorder *r, int site, const sr_tensor *x, const float *gamma) {
    site_state *s = recorder_site(r, site, "sr_observe_forward");
    if (!s || check_tensor(r, site, x, "sr_observe_forward") != SR_OK) return recorder_check(r);
    raw_state *raw = &s->raw;
    int64_t width = r->site[site].width;
    if (raw->seen)
        return sr_fail(&r->failure, SR_STATE, "%s: site %s observed twice in step %lld", r->path,
                       r->site[site].name, (long long)r->step);
    if (allocate_state(r, raw, width) != SR_OK) return recorder_check(r);
    double *work = raw->work;
    raw->seen = true, raw->x = *x;
    s->rows = sr_moments(x->data, x->outer, width, x->inner, x->valid, work + MEAN * width,
                         work + VARIANCE * width, work + SQUARE * width);
    if (x->inner > 1) sr_put_scalar(r, site, SR_SCALAR_samples, (double)x->outer);
    sr_put_scalar(r, site, SR_SCALAR_padded, (double)(x->outer * x->inner - s->rows));
    if (s->rows == 0) return SR_OK;
    for (int64_t k = 0; k < width; k++) work[GAIN * width + k] = gamma ? gamma[k] : 1;
    prepare_xhat(r, site, raw);
    put_forward(r, site, raw);
    if (!isnan(r->site[site].alpha)) advance_all(raw, r->site[site].alpha, width);
    return recorder_check(r);
}

/* sum g x = sum_gx / scale + center * sum_g when sum_gx is not that of PN's xhat. */
static void put_pn(sr_recorder *r, int site, raw_state *raw, const double *sum_g,
                   const double *sum_gx) {
    int64_t width = r->site[site].width;
    bool observed = r->site[site].observed;
    double alpha = r->site[site].alpha, rows = (double)r->state[site].rows;
    const double *scale = raw->work + SCALE * width, *center = raw->work + CENTER * width,
                 *own = raw->work + PN_SCALE * width, *gain = raw->work + GAIN * width;
    double *Gamma = raw->work + SQUARE * width, *Lambda = raw->work + MEAN * width;
    recorder_put_vector(r, site, SR_nu, raw->nu);
    for (int64_t k = 0; k < width; k++) {
        double gx = sum_gx[k];
        if (observed) gx = (gx / scale[k] + center[k] * sum_g[k]) * own[k];
        Gamma[k] *= own[k] * own[k]; /* from mean x^2 to mean xhat^2 */
        Lambda[k] = gain[k] * gx / rows;
        raw->nu[k] = raw->nu[k] * (1 - (1 - alpha) * Gamma[k]) + (1 - alpha) * Lambda[k];
    }
    recorder_put_vector(r, site, SR_Gamma_t, Gamma);
    recorder_put_vector(r, site, SR_Lambda_t, Lambda);
}

/* What is subtracted from (gamma scale)^2 E in feature k; mean_part: the term of A too. */
static double batch_part(const raw_state *raw, int64_t width, int64_t k, double eps, double n,
                         bool mean_part, const double *sums) {
    const double statistic = raw->work[(mean_part ? VARIANCE : SQUARE) * width + k];
    const double a = raw->work[GAIN * width + k] * raw->work[SCALE * width + k];
    const double q = statistic / (statistic + eps), g = mean_part ? sums[k] : 0;
    return a * a * (g * g + (2 - q) * sums[width + k] * sums[width + k]) / n;
}

static double pn_part(const raw_state *raw, int64_t width, int64_t k, double n,
                      const double *sums) {
    const double s = raw->work[SCALE * width + k], nu = raw->nu[k];
    const double q = raw->work[SQUARE * width + k] * s * s;
    return s * s * nu * (2 * raw->work[GAIN * width + k] * sums[width + k] - n * nu * q);
}

/* sums [3, width]: of g, g xhat, g^2. Before nu moves. */
static void put_norms(sr_recorder *r, int site, const raw_state *raw, const double *sums) {
    const int64_t width = r->site[site].width;
    const double eps = r->site[site].eps, n = (double)r->state[site].rows;
    const bool observed = r->site[site].observed;
    const sr_family family = observed ? SR_FAMILY_SIGMA : r->state[site].family;
    const bool bn = observed && r->state[site].family != SR_FAMILY_SIGMA;
    double direct = 0, part = 0;
    if (family == SR_FAMILY_ROW || family == SR_FAMILY_OWN) return;
    for (int64_t k = 0; k < width; k++) {
        double a = raw->work[GAIN * width + k] * raw->work[SCALE * width + k];
        if (family == SR_FAMILY_NONE) a = 1;
        direct += a * a * sums[2 * width + k];
        if (family == SR_FAMILY_PN) part += pn_part(raw, width, k, n, sums);
        if (family == SR_FAMILY_SIGMA || family == SR_FAMILY_PSI)
            part += batch_part(raw, width, k, eps, n, family == SR_FAMILY_SIGMA, sums);
    }
    const double dx = sqrt(part < direct ? direct - part : 0);
    sr_put_scalar(r, site, bn ? SR_SCALAR_dx_norm_bn : SR_SCALAR_dx_norm, dx);
    sr_put_scalar(r, site, bn ? SR_SCALAR_direct_norm_bn : SR_SCALAR_direct_norm, sqrt(direct));
}

sr_status sr_observe_backward(sr_recorder *r, int site, const sr_tensor *dy) {
    site_state *s = recorder_site(r, site, "sr_observe_backward");
    if (!s || check_tensor(r, site, dy, "sr_observe_backward") != SR_OK) return recorder_check(r);
    raw_state *raw = &s->raw;
    const sr_tensor *x = &raw->x;
    if (!raw->seen || x->outer != dy->outer || x->inner != dy->inner)
        return sr_fail(&r->failure, SR_STATE, "%s: sr_observe_backward: %s at site %s in step %lld",
                       r->path, raw->seen ? "shape of dy is not that of x" : "no forward",
                       r->site[site].name, (long long)r->step);
    if (s->rows == 0) return SR_OK;
    int64_t width = r->site[site].width;
    double *sums = malloc(3 * (size_t)width * sizeof *sums);
    if (!sums) return sr_fail(&r->failure, SR_MEMORY, "%s: %lld sums", r->path, (long long)width);
    sr_gradient_sums(dy->data, x->data, x->outer, width, x->inner, x->valid,
                     raw->work + CENTER * width, raw->work + SCALE * width, sums, sums + width,
                     sums + 2 * width);
    recorder_put_vector(r, site, SR_sum_g, sums);
    recorder_put_vector(r, site, SR_sum_gx, sums + width);
    put_norms(r, site, raw, sums);
    if (s->family == SR_FAMILY_PN && !isnan(r->site[site].alpha))
        put_pn(r, site, raw, sums, sums + width);
    free(sums);
    return recorder_check(r);
}
