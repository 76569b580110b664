/* diagnose_gap.c -- the loss that running statistics cause in evaluation, in the unit of the
 * metric.
 *
 * Measured if the run validated twice, NAME with running and NAME_batch with batch statistics. Over
 * the evaluations of the second half of training that have both,
 *
 *     gap = mean of (running - batch), its sign turned where more is better
 *
 * with Student's 95 % interval. Neighbouring evaluations belong to one run, so the interval is
 * about this run. The metric is a negative log-likelihood in nats (NAME is nll or ends in _nll) if
 * the run has it both ways. It contains neither label smoothing nor penalties. Else it is the first
 * loss in nats, the finest of all metrics; else the first one with a partner.
 *
 * Limits: for a loss in nats 0.01 is notable and 0.1 severe; for any other metric 0.2 % and 2 % of
 * its value (mean of NAME). The interval must exclude zero. Thirds are thirds of all evaluations
 * with both.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/column_summary.h"
#include "analysis/evaluations.h"
#include "analysis/runs/run_metrics.h"
#include "diagnose/diagnosis.h"

const sr_run_metric *gap_partner(const sr_runfile *run, const sr_run_metric *m) {
    char name[BATCH_NAME];
    evaluations_batch_name(m->name, name);
    return sr_run_find_metric(run, name);
}

/* *has: both have a value. */
static sr_status have_values(const sr_runfile *run, const sr_run_metric *m,
                             const sr_run_metric *other, bool *has, sr_failure *why) {
    double running = NAN, batch = NAN;
    sr_status status = metric_read_last(run, m->name, &running, why);
    if (status == SR_OK) status = metric_read_last(run, other->name, &batch, why);
    *has = isfinite(running) && isfinite(batch);
    return status;
}

static bool is_in_nats(const sr_run_metric *m) {
    return strncmp(m->unit, "nats", 4) == 0;
}

/* Decided by names alone: metrics of a host program have definitions in its own words. */
static bool is_likelihood(const sr_run_metric *m) {
    const char *last = strrchr(m->name, '_');
    return is_in_nats(m) && strcmp(last ? last + 1 : m->name, "nll") == 0;
}

sr_status gap_metric(const subject *s, const sr_run_metric **best, sr_failure *why) {
    const sr_runfile *run = s->run;
    const sr_run_metric *m;
    int best_rank = 0;
    sr_status status = SR_OK;
    *best = NULL;
    if (!s->batch_sites) return SR_OK;
    for (int64_t i = 0; status == SR_OK && (m = sr_run_get_metric(run, i)); i++) {
        const sr_run_metric *other = gap_partner(run, m);
        const int rank = 1 + is_in_nats(m) + is_likelihood(m);
        bool has = false;
        if (!other || m->better == SR_BETTER_NEITHER || rank <= best_rank) continue;
        status = have_values(run, m, other, &has, why);
        if (has) *best = m, best_rank = rank;
    }
    return status;
}

static double worse_by(const sr_run_metric *m, double than_it, double other) {
    return m->better == SR_BETTER_MORE ? other - than_it : than_it - other;
}

bool gap_is_possible(const subject *s) {
    const sr_run_site *site;
    for (int64_t i = 0; (site = sr_run_get_site(s->run, i)); i++)
        if (sr_run_over_batch(site) && site->family != SR_FAMILY_PN) return true;
    return false;
}

/* -- measured -------------------------------------------------------------------------------- */

/* Mean of a third of value [count]: of the first one, or of the last. */
static double mean_of_third(const double *value, int count, bool last) {
    const int third = evaluations_third(count);
    return column_mean(last ? value + count - third : value, third);
}

static void take_gaps(const running_gap *from, gap *g) {
    const evaluations *at = &from->at;
    const double *running = at->value[0], *batch = at->value[1], *cost = at->value[2];
    const int n = at->count - from->half;
    g->evaluations = at->count;
    g->running = column_mean(running + from->half, n);
    g->batch = column_mean(batch + from->half, n);
    g->e = (estimate){from->mean, from->low, from->high, n};
    if (n) g->from = (int64_t)at->step[from->half], g->to = (int64_t)at->step[at->count - 1];
    g->first = mean_of_third(cost, at->count, false);
    g->last = mean_of_third(cost, at->count, true);
    g->running_last = mean_of_third(running, at->count, true);
}

sr_status gap_measure(const subject *s, gap *g, sr_failure *why) {
    running_gap measured;
    *g = (gap){.e = NO_ESTIMATE, .first = NAN, .last = NAN};
    sr_status status = gap_metric(s, &g->metric, why);
    if (status != SR_OK || !g->metric) return status;
    status = running_gap_read(&measured, s->run, g->metric->name, g->metric->better, why);
    if (status == SR_OK) take_gaps(&measured, g);
    evaluations_free(&measured.at);
    const double whole = is_in_nats(g->metric) ? 1 : 0.2 * fabs(g->running);
    g->notable = 0.01 * whole, g->severe = 0.1 * whole;
    return status;
}

severity gap_severity(const gap *g) {
    if (!(g->e.low > 0) || !(g->e.value >= g->notable)) return 0;
    return g->e.value >= g->severe ? SEVERE : NOTABLE;
}

bool gap_is_told(const gap *g) {
    return isfinite(g->e.low) && (gap_severity(g) || g->e.high < g->notable);
}

/* -- in words -------------------------------------------------------------------------------- */

void gap_tell_number(const gap *g, answer *a) {
    answer_says(a, "%s: gap %.3g [%.3g, %.3g] %s in %lld evaluations, notable from %.3g on",
                g->metric->name, g->e.value, g->e.low, g->e.high, g->metric->unit,
                (long long)g->e.steps, g->notable);
}

static void tell_trend(const gap *g, answer *a) {
    const double change = g->last - g->first;
    if (!isfinite(change)) return;
    answer_says(a, " It %s: %.3g in the first third of all %d evaluations, %.3g in the last.",
                change >= g->notable    ? "grows"
                : change <= -g->notable ? "shrinks"
                                        : "stays",
                g->first, g->evaluations, g->last);
}

static const char *better_or_worse(double worse) {
    return worse < 0 ? "better" : "worse";
}

static bool is_same(const char *a, const char *b) {
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* The other run's NAME over its last third, against this run's. */
static sr_status tell_part(const subject *s, const gap *g, answer *a, sr_failure *why) {
    const sr_runfile *other = s->beside ? s->beside->run : NULL;
    const sr_run_metric *m = other ? sr_run_find_metric(other, g->metric->name) : NULL;
    evaluations theirs;
    if (!m || strcmp(m->unit, g->metric->unit) != 0 || !isfinite(g->last)) return SR_OK;
    if (!is_same(sr_run_get_info(other)->data, s->info->data)) return SR_OK;
    sr_status status = evaluations_read(&theirs, other, (const char *[]){m->name, NULL, NULL}, why);
    if (status == SR_OK) evaluations_keep_finite(&theirs, 1);
    const double worse =
        status == SR_OK
            ? worse_by(m, g->running_last, mean_of_third(theirs.value[0], theirs.count, true))
            : NAN;
    evaluations_free(&theirs);
    if (status != SR_OK || !isfinite(worse)) return status;
    const double rest = worse - g->last;
    answer_says(a, " Against %s %s is %.3g %s (last third of the evaluations).", s->beside->path,
                m->name, fabs(worse), better_or_worse(worse));
    if (worse > 0)
        answer_says(a,
                    " The gap is %.3g of that (gap/difference %.3g): with batch statistics it "
                    "would be %.3g %s.",
                    g->last, g->last / worse, fabs(rest), better_or_worse(rest));
    else
        answer_says(a, " Without the gap of %.3g it would be %.3g better.", g->last, fabs(rest));
    return SR_OK;
}

sr_status gap_tell(const subject *s, const gap *g, answer *a, sr_failure *why) {
    answer_says(a,
                "%s is %.3g [%.3g, %.3g] %s worse with running than with batch statistics "
                "(%.4g against %.4g, mean of %lld evaluations).",
                g->metric->name, g->e.value, g->e.low, g->e.high, g->metric->unit, g->running,
                g->batch, (long long)g->e.steps);
    tell_trend(g, a);
    return tell_part(s, g, a, why);
}
