/* diagnose_inference.c -- good in training, bad in evaluation, and which sites' discrepancy says
 * why.
 *
 * The gap is measured where the run validated twice, NAME with running and NAME_batch with batch
 * statistics. Over the evaluations of the second half of training that have both,
 *
 *     gap = (running - batch)/|running|, its sign turned where more is better
 *
 * positive where running statistics are worse; Student's 95 % interval of the mean (neighbouring
 * evaluations are of one run: an interval of this run). The metric is a loss in nats if the run has
 * one, as of all metrics it is the finest, else the first that has a partner.
 *
 * The discrepancy of a site is the median of tid_mean and tid_var over the second half of training,
 * with its interval (Wang, Wu and Huang, NeurIPS 2022, section 3; docs/norms.md 18.3). The final
 * pass with frozen running statistics is printed beside it. Sites that divide by psi have rel_psi =
 * ||psi_B - psi||/||psi||, the relative error of the divisor, as tid_var is the error of sigma.
 * Both are equal if features have no mean, hence tid_var's range and limit. Otherwise psi = |(mu,
 * sigma)| moves by no more than the pair, so rel_psi <= sqrt(tid_mean^2 + tid_var^2), except for
 * the spread of mu_B in the running psi2.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap.h"
#include "analysis/runs/run_metrics.h"
#include "diagnose/diagnosis.h"

static const char gap_name[] = "gap_relative";

/* -- the gap --------------------------------------------------------------------------------- */

typedef struct gap {
    const sr_run_metric *metric; /* NULL: no pair */
    double running, batch;       /* means of the evaluations */
    int evaluations;
    int64_t from, to; /* their steps */
    estimate e;
} gap;

static const sr_run_metric *partner(const sr_runfile *run, const sr_run_metric *m) {
    char name[SR_NAME_SIZE + 8];
    snprintf(name, sizeof name, "%s_batch", m->name);
    return sr_run_find_metric(run, name);
}

static bool has_values(const sr_runfile *run, const sr_run_metric *m) {
    double last = NAN;
    return metric_read_last(run, m->name, &last, NULL) == SR_OK && isfinite(last);
}

static const sr_run_metric *choose_metric(const sr_runfile *run) {
    const sr_run_metric *m, *first = NULL;
    for (int64_t i = 0; (m = sr_run_get_metric(run, i)); i++) {
        const sr_run_metric *other = partner(run, m);
        if (!other || m->better == SR_BETTER_NEITHER || !has_values(run, m)) continue;
        if (!has_values(run, other)) continue;
        if (strncmp(m->unit, "nats", 4) == 0) return m;
        if (!first) first = m;
    }
    return first;
}

/* memory [4, evals]: running, batch, step, gap. */
static sr_status read_gap(const subject *s, gap *g, double *memory, sr_failure *why) {
    const int64_t evals = s->info->evals;
    const double half = (double)s->window.end / 2;
    double *running = memory, *batch = running + evals, *step = batch + evals, *each = step + evals;
    sr_status status = sr_run_eval(s->run, g->metric->name, 0, evals, running, why);
    if (status == SR_OK)
        status = sr_run_eval(s->run, partner(s->run, g->metric)->name, 0, evals, batch, why);
    if (status == SR_OK) status = sr_run_eval(s->run, "step", 0, evals, step, why);
    for (int64_t i = 0; i < evals && status == SR_OK; i++) {
        if (!isfinite(running[i]) || !isfinite(batch[i]) || step[i] < half) continue;
        const double sign = g->metric->better == SR_BETTER_MORE ? -1 : 1;
        each[g->evaluations++] = sign * (running[i] - batch[i]) / fabs(running[i]);
        g->running += running[i], g->batch += batch[i];
        if (g->evaluations == 1) g->from = (int64_t)step[i];
        g->to = (int64_t)step[i];
    }
    const int n = g->evaluations;
    double mean = 0;
    for (int i = 0; i < n; i++) mean += each[i] / n;
    g->e = (estimate){n ? mean : NAN, NAN, NAN, n};
    if (n > 2) student_interval(each, n, &g->e.low, &g->e.high);
    g->running /= n, g->batch /= n;
    return status;
}

static sr_status measure(const subject *s, gap *g, sr_failure *why) {
    *g = (gap){.metric = choose_metric(s->run), .e = NO_ESTIMATE};
    if (!g->metric) return SR_OK;
    double *memory = malloc(4 * (size_t)(s->info->evals + 1) * sizeof *memory);
    if (!memory) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = read_gap(s, g, memory, why);
    free(memory);
    return status;
}

/* Of runs without batch statistics the two validations are the same. */
sr_status measure_gap(const subject *s, int64_t site, const void *what, estimate *e,
                      sr_failure *why) {
    gap g;
    (void)what;
    *e = NO_ESTIMATE;
    if (site || s->batch_sites == 0) return SR_OK;
    sr_status status = measure(s, &g, why);
    *e = g.e;
    return status;
}

/* -- the answer ------------------------------------------------------------------------------ */

/* mean and variance of the final pass at a site; NaN without one. */
static void read_final(const subject *s, int64_t site, double value[SR_FINAL_COUNT]) {
    const size_t sites = (size_t)s->info->sites;
    double *all = malloc(SR_FINAL_COUNT * sites * sizeof *all), *column[SR_FINAL_COUNT];
    int64_t batches = -1;
    value[0] = value[1] = NAN;
    for (int i = 0; all && i < SR_FINAL_COUNT; i++) column[i] = all + (size_t)i * sites;
    if (all && sr_run_final(s->run, &batches, column, NULL) == SR_OK && batches > 0)
        for (int i = 0; i < SR_FINAL_COUNT; i++) value[i] = column[i][site];
    free(all);
}

/* The discrepancies, the range that each is held against, its place in the final pass (-1:
   none). */
static const struct {
    const char *statistic, *range;
    int final;
} discrepancy[] = {{"tid_mean", "tid_mean", SR_FINAL_tid_mean},
                   {"tid_var", "tid_var", SR_FINAL_tid_var},
                   {"rel_psi", "tid_var", -1}};
enum { DISCREPANCIES = sizeof discrepancy / sizeof discrepancy[0], OF_BN = 2 };

static int discrepancy_final(const char *name) {
    for (int i = 0; i < DISCREPANCIES; i++)
        if (strcmp(discrepancy[i].statistic, name) == 0) return discrepancy[i].final;
    return -1;
}

static bool is_worse(const answer *a, const answer *b) {
    return a->asked && (!b->asked || a->e.low / a->limit > b->e.low / b->limit);
}

sr_status discrepancy_rank(const subject *s, bool observed, answer *a, sr_failure *why) {
    for (int i = 0; i < (observed ? OF_BN : DISCREPANCIES); i++) {
        answer one = {.statistic = discrepancy[i].statistic, .e = NO_ESTIMATE};
        one.range_of = discrepancy[i].range;
        one.limit = healthy_limit(one.range_of);
        sr_status status = answer_rank(s, observed ? measure_observed_median : measure_discrepancy,
                                       one.statistic, &one, why);
        if (status != SR_OK) return status;
        if (i == 0 || is_worse(&one, a) || (!a->asked && !a->reason[0])) *a = one;
    }
    return SR_OK;
}

static void tell_tid(const subject *s, const answer *tid, answer *a) {
    double final[SR_FINAL_COUNT];
    const site_estimate *worst = &tid->top[0];
    if (!tid->asked) {
        answer_says(a, " Where, no discrepancy says: %s.",
                    tid->reason[0] ? tid->reason : "none is recorded");
        return;
    }
    read_final(s, worst->site, final);
    answer_says(a, " %s is %.3g [%.3g, %.3g] at %s", tid->statistic, worst->e.value, worst->e.low,
                worst->e.high, sr_run_get_site(s->run, worst->site)->name);
    const int at = discrepancy_final(tid->statistic);
    if (at >= 0 && isfinite(final[at])) answer_says(a, " (%.3g in the final pass)", final[at]);
    if (tid->verdict == FOUND)
        answer_says(a, ", beyond %.3g at %lld of %lld sites.", tid->limit, (long long)tid->beyond,
                    (long long)tid->asked);
    else
        answer_says(a, ", within %.3g: discrepancy does not explain it.", tid->limit);
}

/* The figure draws valid_loss alone. */
static void figure_of_gap(const subject *s, const gap *g, answer *a) {
    const char *name = g->metric->name;
    if (strcmp(name, "valid_loss") == 0)
        answer_figure(a, "statplot modes");
    else
        answer_figure(a, "stat-curve --evals --metric %s,%s", name,
                      partner(s->run, g->metric)->name);
}

static sr_status answer_by_gap(const subject *s, const gap *g, const answer *tid, answer *a) {
    a->statistic = a->range_of = gap_name;
    a->severity = SEVERE;
    a->e = g->e;
    a->from = g->from, a->to = g->to;
    answer_says(a,
                "%s is %.3g %% better with batch than with running statistics (%.4g against %.4g, "
                "mean of %d evaluations).",
                g->metric->name, 100 * g->e.value, g->batch, g->running, g->evaluations);
    tell_tid(s, tid, a);
    memcpy(a->top, tid->top, sizeof a->top);
    a->shown = tid->shown, a->asked = tid->asked, a->beyond = tid->beyond;
    figure_of_gap(s, g, a);
    a->verdict = FOUND;
    return SR_OK;
}

/* Whether the worst site divides by the running psi in training too. */
static bool has_one_psi(const subject *s, const answer *a) {
    return a->shown && sr_run_get_site(s->run, a->top[0].site)->family == SR_FAMILY_PN;
}

/* Of a finding without a gap: what it means for evaluation. open: the interval of a gap that was
 * measured holds one. */
static void tell_cost(const subject *s, const gap *g, bool open, answer *a) {
    if (has_one_psi(s, a)) {
        answer_says(a, "The power of batches is far from the running one. Training divides by that "
                       "as evaluation does, so that no gap follows; what comes out of the site has "
                       "another power than 1, and nu is taken from it.");
        return;
    }
    if (isfinite(g->e.low))
        answer_says(
            a,
            "Batches stray far from the running statistics; %s (%s: gap %.2g %% [%.2g, "
            "%.2g] of %d evaluations).",
            open ? "whether evaluation suffers, the evaluations are too few or too uneven to say"
                 : "evaluation does not suffer from it so far",
            g->metric->name, 100 * g->e.value, 100 * g->e.low, 100 * g->e.high, g->evaluations);
    else
        answer_says(a,
                    "Batches stray far from the running statistics that evaluation uses; what "
                    "it costs is not measured%s.",
                    subject_how(s, " (--validate-batch)"));
}

static void answer_by_tid(const subject *s, const gap *g, const answer *tid, double limit,
                          answer *a) {
    const bool measured = isfinite(g->e.low);
    const bool open = measured && g->e.high > limit; /* the interval holds a gap too */
    *a = *tid;
    a->severity = (measured && !open) || has_one_psi(s, a) ? MINOR : NOTABLE;
    if (a->verdict != FOUND && measured)
        answer_says(a, "%s: gap %.2g %% [%.2g, %.2g] of %d evaluations, found above %.2g %%.",
                    g->metric->name, 100 * g->e.value, 100 * g->e.low, 100 * g->e.high,
                    g->evaluations, 100 * limit);
    if (a->verdict != FOUND) return;
    tell_cost(s, g, open, a);
    tell_tid(s, tid, a);
}

static sr_status not_asked(const subject *s, const answer *tid, answer *a) {
    if (s->batch_sites == 0 && s->observed_sites)
        return answer_not_asked(a, "no site normalizes over the batch; of what is observed "
                                   "would-bn asks");
    if (tid->reason[0]) return answer_not_asked(a, "%s", tid->reason);
    if (s->batch_sites == 0)
        return answer_not_asked(a, "no batch statistics%s",
                                subject_how(s, ": --observe batch takes them"));
    if (s->merged_sites == s->sites)
        return answer_not_asked(a, "the rows of several passes are merged, and no discrepancy of "
                                   "single passes (pass_tid_mean) is recorded");
    return answer_not_asked(a, "no tid_mean, tid_var or rel_psi, and no evaluation in pairs (NAME, "
                               "NAME_batch)");
}

sr_status look_inference(const subject *s, answer *a, sr_failure *why) {
    gap g;
    answer tid;
    const healthy_range *healthy = healthy_find(gap_name);
    sr_status status = measure(s, &g, why);
    if (status == SR_OK) status = discrepancy_rank(s, false, &tid, why);
    if (status != SR_OK) return status;
    if (s->batch_sites == 0) g.e = NO_ESTIMATE;
    a->limit = healthy && healthy->high > 0 ? healthy_limit(gap_name) : 0;
    if (g.e.low > a->limit && g.e.low > 0) return answer_by_gap(s, &g, &tid, a);
    if (tid.asked) {
        answer_by_tid(s, &g, &tid, a->limit, a);
        return SR_OK;
    }
    if (!isfinite(g.e.low)) return not_asked(s, &tid, a);
    a->statistic = a->range_of = gap_name;
    a->e = g.e, a->from = g.from, a->to = g.to;
    answer_judge(a);
    return SR_OK;
}
