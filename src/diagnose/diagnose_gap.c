/* diagnose_gap.c -- what running statistics cost in evaluation, in the unit of the metric.
 *
 * Measured where the run validated twice, NAME with running and NAME_batch with batch statistics.
 * Over the evaluations of the second half of training that have both,
 *
 *     gap = mean of (running - batch), its sign turned where more is better
 *
 * with Student's 95 % interval (neighbouring evaluations are of one run: an interval of this run).
 * The metric is a negative log-likelihood in nats (NAME is nll or ends in _nll) if the run has it
 * both ways: smoothing of labels and penalties are no part of it. Else it is the first loss in
 * nats, as of all metrics it is the finest, else the first that has a partner.
 *
 * Judged by what it costs: of a loss in nats 0.01 is notable and 0.1 severe, of any other metric
 * 0.2 % and 2 % of its value (mean of NAME); the interval must exclude zero. Thirds are of all
 * evaluations with both.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap.h"
#include "analysis/runs/run_metrics.h"
#include "diagnose/diagnosis.h"

const sr_run_metric *gap_partner(const sr_runfile *run, const sr_run_metric *m) {
    char name[SR_NAME_SIZE + 8];
    snprintf(name, sizeof name, "%s_batch", m->name);
    return sr_run_find_metric(run, name);
}

static bool has_values(const sr_runfile *run, const sr_run_metric *m) {
    double last = NAN;
    return metric_read_last(run, m->name, &last, NULL) == SR_OK && isfinite(last);
}

static bool is_in_nats(const sr_run_metric *m) {
    return strncmp(m->unit, "nats", 4) == 0;
}

/* Of names alone: a host's metrics have definitions in its own words. */
static bool is_likelihood(const sr_run_metric *m) {
    const char *last = strrchr(m->name, '_');
    return is_in_nats(m) && strcmp(last ? last + 1 : m->name, "nll") == 0;
}

static const sr_run_metric *choose_metric(const sr_runfile *run) {
    const sr_run_metric *m, *best = NULL;
    int best_rank = 0;
    for (int64_t i = 0; (m = sr_run_get_metric(run, i)); i++) {
        const sr_run_metric *other = gap_partner(run, m);
        const int rank = 1 + is_in_nats(m) + is_likelihood(m);
        if (!other || m->better == SR_BETTER_NEITHER || !has_values(run, m)) continue;
        if (!has_values(run, other) || rank <= best_rank) continue;
        best = m, best_rank = rank;
    }
    return best;
}

static double worse_by(const sr_run_metric *m, double than_it, double other) {
    return m->better == SR_BETTER_MORE ? other - than_it : than_it - other;
}

static double mean_of(const double *value, int n) {
    double mean = 0;
    for (int i = 0; i < n; i++) mean += value[i] / n;
    return n ? mean : NAN;
}

bool gap_is_possible(const subject *s) {
    const sr_run_site *site;
    for (int64_t i = 0; (site = sr_run_get_site(s->run, i)); i++)
        if (sr_run_over_batch(site) && site->family != SR_FAMILY_PN) return true;
    return false;
}

/* -- measured -------------------------------------------------------------------------------- */

/* Evaluations of a run in the order of steps. */
typedef struct evaluations {
    double *running, *batch, *step; /* [count] */
    int count;
} evaluations;

/* Those with a finite value of NAME, and of NAME_batch where `both`. To be freed: running. */
static sr_status read_evaluations(const sr_runfile *run, const sr_run_metric *m, bool both,
                                  evaluations *e, sr_failure *why) {
    const int64_t evals = sr_run_get_info(run)->evals;
    *e = (evaluations){.running = malloc(3 * (size_t)(evals + 1) * sizeof *e->running)};
    if (!e->running) return sr_fail(why, SR_MEMORY, "out of memory");
    e->batch = e->running + evals, e->step = e->batch + evals;
    for (int64_t i = 0; i < evals; i++) e->batch[i] = 0;
    sr_status status = sr_run_eval(run, m->name, 0, evals, e->running, why);
    if (status == SR_OK && both)
        status = sr_run_eval(run, gap_partner(run, m)->name, 0, evals, e->batch, why);
    if (status == SR_OK) status = sr_run_eval(run, "step", 0, evals, e->step, why);
    for (int64_t i = 0; i < evals && status == SR_OK; i++) {
        if (!isfinite(e->running[i]) || !isfinite(e->batch[i])) continue;
        e->running[e->count] = e->running[i];
        e->batch[e->count] = e->batch[i];
        e->step[e->count++] = e->step[i];
    }
    return status;
}

/* e->batch becomes the gap of each evaluation. */
static void take_gaps(const subject *s, evaluations *e, gap *g) {
    const double half = (double)s->window.end / 2;
    const int third = e->count / 3;
    int begin = 0;
    while (begin < e->count && e->step[begin] < half) begin++;
    const int n = e->count - begin;
    g->evaluations = e->count;
    g->running = mean_of(e->running + begin, n);
    g->batch = mean_of(e->batch + begin, n);
    for (int i = 0; i < e->count; i++)
        e->batch[i] = worse_by(g->metric, e->running[i], e->batch[i]);
    g->e = (estimate){mean_of(e->batch + begin, n), NAN, NAN, n};
    if (n > 2) student_interval(e->batch + begin, n, &g->e.low, &g->e.high);
    if (n) g->from = (int64_t)e->step[begin], g->to = (int64_t)e->step[e->count - 1];
    g->first = mean_of(e->batch, third);
    g->last = mean_of(e->batch + e->count - third, third);
    g->running_last = mean_of(e->running + e->count - third, third);
}

sr_status gap_measure(const subject *s, gap *g, sr_failure *why) {
    evaluations all;
    *g = (gap){.e = NO_ESTIMATE, .first = NAN, .last = NAN};
    if (s->batch_sites) g->metric = choose_metric(s->run);
    if (!g->metric) return SR_OK;
    sr_status status = read_evaluations(s->run, g->metric, true, &all, why);
    if (status == SR_OK) take_gaps(s, &all, g);
    free(all.running);
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
    sr_status status = read_evaluations(other, m, false, &theirs, why);
    const int third = theirs.count / 3;
    const double worse =
        worse_by(m, g->running_last, mean_of(theirs.running + theirs.count - third, third));
    free(theirs.running);
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
