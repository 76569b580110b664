/* final_tid.c -- the training-inference discrepancy over a last pass (docs/norms.md 18.3 (b)).
 *
 * After training, mu and sigma2 are frozen. Training batches pass once more in the order of the
 * next epoch, with dropout, in NORM_BATCH mode, without a backward pass. Per site, over the batches
 * with a valid row there:
 *
 *     tid_mean = mean ||mu_B - mu||_2 / ||sigma||_2      sigma = sqrt(sigma2), without eps
 *     tid_var  = mean ||sigma_B - sigma||_2 / ||sigma||_2
 *
 * An observed site (--observe batch, bn_observer.c) without a running mean and variance uses the
 * observer's, frozen here. Its mu_B = mean[x] and sigma2_B = mean[(x - mu_B)^2] cover the valid
 * rows of the method's input, in two passes in double. All other sites have NaN. Weights and
 * running statistics do not change.
 */
#include <math.h>
#include <stdlib.h>

#include "observe/final_pairs.h"
#include "observe/run_record.h"
#include "statrec/moments.h"

/* Sums of one site. */
typedef struct tid_sum {
    double mean, var;
    int64_t batches;
    double *batch;   /* [2, features] mu_B, sigma2_B of an observed site; owned */
    void *context;   /* the site's before: of its hooks */
    bool want_input; /* the same */
} tid_sum;

static bool has_running(const norm_site *s) {
    const uint32_t needed = NORM_BIT(mu_B) | NORM_BIT(sigma2_B) | NORM_BIT(mu) | NORM_BIT(sigma2);
    return (s->method->vectors & needed) == needed;
}

/* Adds the statistics of one batch [d]. */
static void add_statistics(tid_sum *t, int64_t d, const double *mu_B, const double *sigma2_B,
                           const double *mu, const double *sigma2) {
    t->mean += sr_tid_mean(mu_B, mu, sigma2, d);
    t->var += sr_tid_var(sigma2_B, sigma2, d);
    t->batches++;
}

static void add_batch(void *context, const norm_view *o) {
    double *const *stat = o->call->stat;
    if (o->call->rows->mode != NORM_BATCH || o->call->rows->valid == 0) return;
    add_statistics(context, o->call->features, stat[NORM_mu_B], stat[NORM_sigma2_B], stat[NORM_mu],
                   stat[NORM_sigma2]);
}

/* Mean and biased variance [d] over the valid rows. */
static void moments_of_rows(const norm_rows *rows, const real *x, int64_t d, double *mean,
                            double *variance) {
    for (int64_t k = 0; k < d; k++) mean[k] = variance[k] = 0;
    for (int64_t i = 0; i < rows->valid; i++) {
        const real *row = x + (rows->index ? rows->index[i] : i) * d;
        for (int64_t k = 0; k < d; k++) mean[k] += (double)row[k];
    }
    for (int64_t k = 0; k < d; k++) mean[k] /= (double)rows->valid;
    for (int64_t i = 0; i < rows->valid; i++) {
        const real *row = x + (rows->index ? rows->index[i] : i) * d;
        for (int64_t k = 0; k < d; k++) {
            double delta = (double)row[k] - mean[k];
            variance[k] += delta * delta;
        }
    }
    for (int64_t k = 0; k < d; k++) variance[k] /= (double)rows->valid;
}

static void add_observed_batch(void *context, const norm_view *o) {
    tid_sum *t = context;
    int64_t d = o->call->features;
    if (o->call->rows->mode != NORM_BATCH || o->call->rows->valid == 0) return;
    moments_of_rows(o->call->rows, o->x, d, t->batch, t->batch + d);
    add_statistics(t, d, t->batch, t->batch + d, o->site->observer->mu, o->site->observer->sigma2);
}

/* -- watching -------------------------------------------------------------------------------- */

static bool watched(const norm_site *s) {
    return has_running(s) || s->observer;
}

/* NULL on failure. */
static tid_sum *make_sums(const model *m, sr_failure *why) {
    tid_sum *sum = calloc((size_t)m->sites + 1, sizeof *sum);
    bool ok = sum != NULL;
    for (int i = 0; i < m->sites && ok; i++) {
        if (has_running(m->site[i]) || !watched(m->site[i])) continue;
        sum[i].batch = malloc(2 * (size_t)m->site[i]->features * sizeof(double));
        ok = sum[i].batch != NULL;
    }
    if (ok) return sum;
    sr_fail(why, SR_MEMORY, "out of memory for %d sites", m->sites);
    for (int i = 0; i < m->sites && sum; i++) free(sum[i].batch);
    free(sum);
    return NULL;
}

/* -- the pass -------------------------------------------------------------------------------- */

struct final_tid {
    model *model;
    tid_sum *sum; /* [sites of the model] */
};

final_tid *final_tid_begin(model *m, sr_failure *why) {
    final_tid *f = calloc(1, sizeof *f);
    if (f) *f = (final_tid){m, make_sums(m, why)};
    if (!f) sr_fail(why, SR_MEMORY, "out of memory for the final pass");
    if (!f || !f->sum) return free(f), NULL;
    for (int i = 0; i < m->sites; i++) {
        norm_site *s = m->site[i];
        if (!watched(s)) continue;
        f->sum[i].context = s->hook_context;
        f->sum[i].want_input = s->want_input;
        s->hook_context = &f->sum[i];
        s->forward_hook = f->sum[i].batch ? add_observed_batch : add_batch;
        s->hook_in_batch_mode = true;
        s->want_input |= f->sum[i].batch != NULL;
    }
    return f;
}

bool final_tid_of(const final_tid *f, int site, double *mean, double *var) {
    const double n = f->sum[site].batches ? (double)f->sum[site].batches : NAN;
    *mean = f->sum[site].mean / n;
    *var = f->sum[site].var / n;
    return f->sum[site].batches > 0;
}

void final_tid_end(final_tid *f) {
    if (!f) return;
    for (int i = 0; i < f->model->sites; i++) {
        norm_site *s = f->model->site[i];
        free(f->sum[i].batch);
        if (!watched(s)) continue;
        s->hook_context = f->sum[i].context;
        s->want_input = f->sum[i].want_input;
        s->forward_hook = NULL;
        s->hook_in_batch_mode = false;
    }
    free(f->sum);
    free(f);
}

sr_status run_record_final(run_record *r, const final_tid *f, const final_pairs *pairs,
                           int64_t batches, sr_failure *why) {
    if (!r || !r->hooks) return SR_OK;
    final_pairs_put(pairs);
    /* the file may have replicas of every site, NAME@K, whose values are NaN */
    const int sites = r->model->sites, most = sites * (r->shares > 1 ? r->shares : 1);
    double *memory = malloc((size_t)SR_FINAL_COUNT * (size_t)most * sizeof *memory);
    if (!memory) return sr_fail(why, SR_MEMORY, "out of memory for %d sites", most);
    double *value[SR_FINAL_COUNT];
    for (int i = 0; i < SR_FINAL_COUNT * most; i++) memory[i] = NAN;
    for (int i = 0; i < SR_FINAL_COUNT; i++) value[i] = memory + i * most;
    for (int i = 0; i < sites; i++) {
        const int site = hooks_site(r->hooks, i);
        double mean, var;
        final_tid_of(f, i, &mean, &var);
        if (site < 0) continue;
        value[SR_FINAL_tid_mean][site] = mean;
        value[SR_FINAL_tid_var][site] = var;
    }
    sr_put_final(r->recorder, batches, (const double *const *)value);
    free(memory);
    return SR_OK;
}
