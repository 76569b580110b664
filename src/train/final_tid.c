/* final_tid.c -- the training-inference discrepancy over a last pass (norms.md 18.3 (b)).
 *
 * After training mu and sigma2 are frozen; training batches pass once more in the order of the next
 * epoch, with dropout as in training, every normalization in NORM_BATCH mode, without a backward
 * pass. Per site, over the batches that had a valid row there:
 *
 *     tid_mean = mean ||mu_B - mu||_2 / ||sigma||_2      sigma = sqrt(sigma2), without eps
 *     tid_var  = mean ||sigma_B - sigma||_2 / ||sigma||_2
 *
 * NaN at sites whose method has no running mean and variance of its own. Weights and running values
 * stay as they are.
 */
#include <math.h>
#include <stdlib.h>

#include "statnet/progress.h"
#include "trainer.h"

/* Sums of one site. */
typedef struct tid_sum {
    double mean, var;
    int64_t batches;
    void *context; /* that the site's observers had before */
} tid_sum;

static bool has_running(const norm_site *s) {
    const uint32_t needed = NORM_BIT(mu_B) | NORM_BIT(sigma2_B) | NORM_BIT(mu) | NORM_BIT(sigma2);
    return (s->method->vectors & needed) == needed;
}

static void add_batch(void *context, const norm_observation *o) {
    tid_sum *t = context;
    double *const *stat = o->call->stat, mean = 0, var = 0, sigma = 0;
    if (o->call->rows->mode != NORM_BATCH || o->call->rows->valid == 0) return;
    for (int64_t k = 0; k < o->call->features; k++) {
        double m = stat[NORM_mu_B][k] - stat[NORM_mu][k];
        double s = sqrt(stat[NORM_sigma2_B][k]) - sqrt(stat[NORM_sigma2][k]);
        mean += m * m;
        var += s * s;
        sigma += stat[NORM_sigma2][k];
    }
    t->mean += sqrt(mean / sigma);
    t->var += sqrt(var / sigma);
    t->batches++;
}

/* -- watching -------------------------------------------------------------------------------- */

static void watch(model *m, tid_sum *sum) {
    for (int i = 0; i < m->sites; i++) {
        norm_site *s = m->site[i];
        if (!has_running(s)) continue;
        sum[i].context = s->observer_context;
        s->observer_context = &sum[i];
        s->forward_observer = add_batch;
        s->observe_frozen = true;
    }
}

static void unwatch(model *m, const tid_sum *sum) {
    for (int i = 0; i < m->sites; i++) {
        norm_site *s = m->site[i];
        if (!has_running(s)) continue;
        s->observer_context = sum[i].context;
        s->forward_observer = NULL;
        s->observe_frozen = false;
    }
}

static sr_status pass_batches(trainer *r, int64_t count, int64_t *done, sr_failure *why) {
    int64_t number = (int64_t)ceil(r->epoch);
    for (*done = 0; *done < count; ++*done) {
        batch b;
        if (r->events->stop && r->events->stop(r->events->context)) return SR_OK;
        sr_status status = data_batch(r->data, SPLIT_TRAIN, number, *done, &b, why);
        if (status != SR_OK) return status;
        uint64_t draw = (uint64_t)(r->result->steps + 1 + *done);
        r->tape->profiling = false;
        tape_reset(r->tape, rng_split(&r->random, draw), true, false);
        cross_entropy_report report = {0};
        if (!model_loss(r->model, r->tape, &b, NORM_BATCH, &report)) {
            const sr_failure *f = tape_failure(r->tape);
            return sr_fail(why, f->status, "final pass: %s", f->text);
        }
    }
    return SR_OK;
}

/* -- recording ------------------------------------------------------------------------------- */

static sr_status record(trainer *r, const tid_sum *sum, int64_t batches, sr_failure *why) {
    int sites = r->model->sites;
    double *memory = malloc((size_t)(SR_FINAL_COUNT * sites) * sizeof *memory);
    if (!memory) return sr_fail(why, SR_MEMORY, "out of memory for %d sites", sites);
    double *value[SR_FINAL_COUNT];
    for (int i = 0; i < SR_FINAL_COUNT; i++) value[i] = memory + i * sites;
    for (int i = 0; i < sites; i++) {
        int site = hooks_site(r->hooks, i);
        double n = sum[i].batches ? (double)sum[i].batches : NAN;
        if (site < 0) continue;
        value[SR_FINAL_tid_mean][site] = sum[i].mean / n;
        value[SR_FINAL_tid_var][site] = sum[i].var / n;
    }
    sr_put_final(r->recorder, batches, (const double *const *)value);
    free(memory);
    return SR_OK;
}

sr_status trainer_final_tid(trainer *r, sr_failure *why) {
    if (!r->recorder || !r->hooks) return SR_OK;
    double start = progress_clock();
    int64_t count = r->batches, done = 0;
    if (r->config->final_batches && r->config->final_batches < count)
        count = r->config->final_batches;
    tid_sum *sum = calloc((size_t)r->model->sites, sizeof *sum);
    if (!sum) return sr_fail(why, SR_MEMORY, "out of memory for %d sites", r->model->sites);
    watch(r->model, sum);
    sr_status status = pass_batches(r, count, &done, why);
    unwatch(r->model, sum);
    if (status == SR_OK && done == count) status = record(r, sum, done, why);
    free(sum);
    r->result->times.validation += progress_clock() - start;
    return status;
}
