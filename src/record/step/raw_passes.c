/* raw_passes.c -- chooses and merges the forward and backward passes of a site in one step.
 *
 * A backward pass matches the last unmatched forward pass. Unmatched forward passes do not count:
 * activation checkpointing runs some twice. Passes that count are merged (sr_site.repeat), b into
 * a, with n = n_a + n_b, delta = mean_b - mean_a (Chan, Golub and LeVeque 1979):
 *
 *   mean = mean_a + delta n_b / n
 *   variance = (n_a var_a + n_b var_b + delta^2 n_a n_b / n) / n
 *   sum_gc about a reference c, the mean of the first pass: + sum_gc_b + (mean_b - c) sum_g_b
 */
#include "record/step/raw_passes.h"

#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "record/recorder_state.h"
#include "record/site_arguments.h"
#include "record/step/put_step.h"
#include "runfile/abi_struct.h"
#include "statrec/moments.h"

/* -- memory ---------------------------------------------------------------------------------- */

sr_status raw_reserve(sr_recorder *r, int site) {
    raw_state *raw = &r->state[site].raw;
    const int64_t width = r->site[site].width;
    if (raw->mu) return SR_OK;
    double *all = calloc((size_t)width * (4 + RAW_WORK + 8), sizeof *all);
    if (!all)
        return sr_fail(&r->failure, SR_MEMORY, "%s: %lld running values", r->path,
                       (long long)width * 4);
    raw_total *t = &raw->total;
    double **const place[] = {&raw->mu,     &raw->sigma2,  &raw->psi2, &raw->nu,  &t->mean,
                              &t->variance, &t->square,    &t->gain,   &t->sum_g, &t->sum_gc,
                              &t->sum_gg,   &t->reference, &raw->work};
    for (size_t i = 0; i < sizeof place / sizeof *place; i++) *place[i] = all + (int64_t)i * width;
    for (int64_t k = 0; k < width; k++) raw->sigma2[k] = raw->psi2[k] = 1;
    return SR_OK;
}

/* Allocates memory for one more unmatched pass; reuses the memory of earlier passes. */
static sr_status reserve_pass(sr_recorder *r, raw_state *raw, int64_t width) {
    const int64_t before = raw->pending_capacity;
    if (!vector_reserve(&raw->pending, &raw->pending_capacity, raw->pendings + 1,
                        sizeof *raw->pending))
        return sr_fail(&r->failure, SR_MEMORY, "%s: %d passes", r->path, raw->pendings + 1);
    memset(raw->pending + before, 0,
           (size_t)(raw->pending_capacity - before) * sizeof *raw->pending);
    raw_pass *p = &raw->pending[raw->pendings];
    if (p->mean) return SR_OK;
    p->mean = malloc((size_t)width * 4 * sizeof *p->mean);
    if (!p->mean)
        return sr_fail(&r->failure, SR_MEMORY, "%s: moments of %lld features", r->path,
                       (long long)width);
    p->variance = p->mean + width, p->square = p->mean + 2 * width, p->gain = p->mean + 3 * width;
    return SR_OK;
}

void raw_free(raw_state *raw) {
    for (int i = 0; i < raw->pending_capacity; i++) free(raw->pending[i].mean);
    free(raw->pending), free(raw->mu);
}

/* -- merging --------------------------------------------------------------------------------- */

static void merge_moments(raw_total *t, const raw_pass *p, int64_t width) {
    const double share = (double)p->rows / (double)(t->rows + p->rows), left = 1 - share;
    for (int64_t k = 0; k < width; k++) {
        const double delta = p->mean[k] - t->mean[k];
        t->mean[k] += delta * share;
        t->variance[k] =
            left * t->variance[k] + share * p->variance[k] + delta * delta * left * share;
        t->square[k] += (p->square[k] - t->square[k]) * share;
    }
}

static void take_moments(raw_total *t, const raw_pass *p, int64_t width) {
    const size_t bytes = (size_t)width * sizeof *t->mean;
    memcpy(t->mean, p->mean, bytes), memcpy(t->variance, p->variance, bytes);
    memcpy(t->square, p->square, bytes), memcpy(t->reference, p->mean, bytes);
    memset(t->sum_g, 0, bytes), memset(t->sum_gc, 0, bytes), memset(t->sum_gg, 0, bytes);
}

static void merge_forward(raw_total *t, const raw_pass *p, int64_t width) {
    if (p->rows > 0) {
        (t->rows > 0 ? merge_moments : take_moments)(t, p, width);
        memcpy(t->gain, p->gain, (size_t)width * sizeof *t->gain);
    }
    t->rows += p->rows, t->padded += p->padded;
    const bool known = p->samples > 0 || p->rows + p->padded == 0;
    t->samples = t->samples < 0 || !known ? -1 : t->samples + p->samples;
}

static void merge_backward(raw_total *t, const raw_pass *p, const sr_backward *dy, int64_t width) {
    t->has_gg = dy->sum_gg != NULL;
    for (int64_t k = 0; k < width; k++) {
        t->sum_g[k] += dy->sum_g[k];
        t->sum_gc[k] += dy->sum_gc[k] + (p->mean[k] - t->reference[k]) * dy->sum_g[k];
        if (dy->sum_gg) t->sum_gg[k] += dy->sum_gg[k];
    }
}

static void forget_total(raw_total *t) {
    t->passes = 0, t->has_gg = false;
    t->rows = t->samples = t->padded = 0;
}

void raw_begin_step(raw_state *raw) {
    raw->pendings = 0;
    forget_total(&raw->total);
}

bool raw_finish_passes(raw_state *raw, int64_t width) {
    if (raw->total.passes > 0) return true;
    if (raw->pendings == 0) return false;
    merge_forward(&raw->total, &raw->pending[raw->pendings - 1], width);
    return true;
}

/* -- forward --------------------------------------------------------------------------------- */

/* Adds a pass without moments; NULL after keeping a failure. */
static raw_pass *push_pass(sr_recorder *r, int site) {
    raw_state *raw = &r->state[site].raw;
    const int64_t width = r->site[site].width;
    if (!r->site[site].merged) raw->pendings = 0;
    if (raw->pendings == RAW_PENDING_MAX) {
        sr_fail(&r->failure, SR_STATE,
                "%s: site %s: %d forward passes without a backward pass in step %lld", r->path,
                r->site[site].name, RAW_PENDING_MAX, (long long)r->step);
        return NULL;
    }
    if (raw_reserve(r, site) != SR_OK || reserve_pass(r, raw, width) != SR_OK) return NULL;
    return &raw->pending[raw->pendings++];
}

static sr_status refuse_tensor(sr_recorder *r, int site, const sr_tensor *x, const char *call) {
    return sr_fail(&r->failure, SR_USAGE,
                   "%s: %s: tensor [%lld, %lld, %lld]%s of element %d at site %s of width %lld%s",
                   r->path, call, (long long)x->outer, (long long)x->channels, (long long)x->inner,
                   x->data ? "" : " without data", (int)x->element, r->site[site].name,
                   (long long)r->site[site].width,
                   x->inner < 1 ? "; inner is at least 1, also for an empty batch" : "");
}

/* Copies and checks the caller's tensor. */
static sr_status take_tensor(sr_recorder *r, int site, sr_tensor *x, const sr_tensor *from,
                             const char *call) {
    sr_status status = abi_struct_take(x, sizeof *x, from, "sr_tensor", &r->failure);
    if (status != SR_OK) return status;
    const double bytes = 8.0 * (double)x->outer * (double)x->channels * (double)x->inner;
    const bool fits = x->outer >= 0 && x->inner >= 1 && x->channels == r->site[site].width &&
                      (unsigned)x->element <= SR_FLOAT16 && x->samples >= 0 &&
                      (x->data || x->outer == 0) && bytes < (double)INT64_MAX;
    return fits ? SR_OK : refuse_tensor(r, site, x, call);
}

sr_status sr_take_forward(sr_recorder *r, int site, const sr_tensor *x, const float *gamma) {
    const double began = recorder_clock();
    sr_tensor t = {0};
    if (!recorder_site(r, site, "sr_take_forward") ||
        take_tensor(r, site, &t, x, "sr_take_forward") != SR_OK)
        return recorder_check(r);
    raw_pass *p = push_pass(r, site);
    if (!p) return recorder_check(r);
    p->x = t, p->of_sums = false;
    p->rows = sr_moments(&t, p->mean, p->variance, p->square);
    p->samples = t.samples > 0 || t.inner == 1 ? t.samples : t.outer;
    p->padded = t.outer * t.inner - p->rows;
    for (int64_t k = 0; k < t.channels; k++) p->gain[k] = gamma ? gamma[k] : 1;
    r->own_seconds += recorder_clock() - began;
    return SR_OK;
}

sr_status sr_put_forward(sr_recorder *r, int site, const sr_forward *from) {
    sr_forward f = {0};
    if (!recorder_site(r, site, "sr_put_forward") ||
        abi_struct_take(&f, sizeof f, from, "sr_forward", &r->failure) != SR_OK)
        return recorder_check(r);
    if (f.rows < 0 || f.samples < 0 || f.padded < 0 ||
        (f.rows > 0 && (!f.mean || !f.variance || !f.mean_square)))
        return sr_fail(&r->failure, SR_USAGE,
                       "%s: sr_put_forward: %lld rows, %lld samples, %lld padded%s at site %s",
                       r->path, (long long)f.rows, (long long)f.samples, (long long)f.padded,
                       f.mean && f.variance && f.mean_square ? "" : ", a moment missing",
                       r->site[site].name);
    if (f.rows > 0 &&
        (put_step_squares(r, site, "sr_put_forward", "variance", f.variance) != SR_OK ||
         put_step_squares(r, site, "sr_put_forward", "mean square", f.mean_square) != SR_OK))
        return SR_USAGE;
    raw_pass *p = push_pass(r, site);
    if (!p) return recorder_check(r);
    const int64_t width = r->site[site].width;
    p->x = (sr_tensor){0}, p->of_sums = true;
    p->rows = f.rows, p->samples = f.samples, p->padded = f.padded;
    for (int64_t k = 0; k < width && f.rows > 0; k++) {
        p->mean[k] = f.mean[k], p->variance[k] = f.variance[k], p->square[k] = f.mean_square[k];
        p->gain[k] = f.gamma ? f.gamma[k] : 1;
    }
    return SR_OK;
}

/* -- backward -------------------------------------------------------------------------------- */

/* The forward pass of a backward pass; NULL: none. That is an error only if the step had no forward
 * pass. */
static raw_pass *top_pass(sr_recorder *r, int site, const char *call) {
    raw_state *raw = &r->state[site].raw;
    if (raw->pendings > 0) return &raw->pending[raw->pendings - 1];
    if (raw->total.passes == 0)
        sr_fail(&r->failure, SR_STATE, "%s: %s: no forward at site %s in step %lld", r->path, call,
                r->site[site].name, (long long)r->step);
    return NULL;
}

static void pop_pass(sr_recorder *r, int site, const sr_backward *dy) {
    raw_state *raw = &r->state[site].raw;
    const raw_pass *p = &raw->pending[raw->pendings - 1];
    const int64_t width = r->site[site].width;
    if (!r->site[site].merged) forget_total(&raw->total);
    merge_forward(&raw->total, p, width);
    if (p->rows > 0) merge_backward(&raw->total, p, dy, width);
    raw->total.passes++;
    raw->pendings--;
}

sr_status sr_take_backward(sr_recorder *r, int site, const sr_tensor *dy) {
    const double began = recorder_clock();
    sr_tensor g = {0};
    if (!recorder_site(r, site, "sr_take_backward") ||
        take_tensor(r, site, &g, dy, "sr_take_backward") != SR_OK)
        return recorder_check(r);
    const raw_pass *p = top_pass(r, site, "sr_take_backward");
    if (!p) return recorder_check(r);
    const int64_t width = g.channels;
    if (p->of_sums || p->x.outer != g.outer || p->x.inner != g.inner)
        return sr_fail(&r->failure, SR_STATE, "%s: sr_take_backward: %s at site %s in step %lld",
                       r->path,
                       p->of_sums ? "the forward pass was sums" : "dy and x differ in shape",
                       r->site[site].name, (long long)r->step);
    double *sums = malloc(3 * (size_t)width * sizeof *sums);
    if (!sums) return sr_fail(&r->failure, SR_MEMORY, "%s: %lld sums", r->path, (long long)width);
    sr_gradient_sums(&g, &p->x, p->mean, sums, sums + width, sums + 2 * width);
    pop_pass(r, site, &SR_INIT(sr_backward, sums, sums + width, sums + 2 * width));
    free(sums);
    r->own_seconds += recorder_clock() - began;
    return SR_OK;
}

sr_status sr_put_backward(sr_recorder *r, int site, const sr_backward *from) {
    sr_backward b = {0};
    if (!recorder_site(r, site, "sr_put_backward") ||
        abi_struct_take(&b, sizeof b, from, "sr_backward", &r->failure) != SR_OK)
        return recorder_check(r);
    const raw_pass *p = top_pass(r, site, "sr_put_backward");
    if (!p) return recorder_check(r);
    if (p->rows > 0 && (!b.sum_g || !b.sum_gc))
        return sr_fail(&r->failure, SR_USAGE, "%s: sr_put_backward: no %s at site %s", r->path,
                       b.sum_g ? "sum_gc" : "sum_g", r->site[site].name);
    pop_pass(r, site, &b);
    return SR_OK;
}

/* -- many passes ----------------------------------------------------------------------------- */

static sr_status put_pass(sr_recorder *r, const sr_pass *p) {
    if (!p->values)
        return sr_fail(&r->failure, SR_USAGE, "%s: sr_put_passes: NULL for values", r->path);
    const double *row[7];
    for (int i = 0; i < 7; i++) row[i] = p->values + i * p->stride;
    const sr_forward x = SR_INIT(sr_forward, p->rows, p->samples, p->padded, row[0], row[1], row[2],
                                 p->has_gamma ? row[6] : NULL);
    const sr_backward dy = SR_INIT(sr_backward, row[3], row[4], p->has_gg ? row[5] : NULL);
    const sr_status status = sr_put_forward(r, p->site, &x);
    return status == SR_OK ? sr_put_backward(r, p->site, &dy) : status;
}

sr_status sr_put_passes(sr_recorder *r, const sr_pass *passes, int64_t count) {
    for (int64_t i = 0; r && i < count; i++) {
        sr_pass p = {0};
        const char *at = (const char *)passes + (size_t)i * passes->size;
        if (abi_struct_take(&p, sizeof p, at, "sr_pass", &r->failure) != SR_OK ||
            put_pass(r, &p) != SR_OK)
            break;
    }
    return recorder_check(r);
}
