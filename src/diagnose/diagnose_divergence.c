/* diagnose_divergence.c -- did it diverge, when, and at which site first?
 *
 * An event: the first step with a loss that is not finite, or with a NaN or infinity among a site's
 * vectors (`nonfinite`). All steps count, the burn-in too. Among the sites of that step the first
 * in the forward pass is named.
 *
 * A rise, if all values are finite: m_1 and m_2 are the medians of the loss over the first and the
 * last tenth of the steps. A tenth has at least LEAST_STEPS steps. rise = (m_2 - m_1)/|m_1|, its
 * ends from the ends of the two intervals. Above 0 training ended worse than it began. The site is
 * then the first whose dx_norm permanently leaves its range in the first tenth.
 *
 * Validation, if training has no event: a metric where less is better, finite at the first
 * evaluations and at none after them (NaN, infinite, or no longer recorded). Metrics by batch
 * statistics are written after the others, so an interrupted run lacks the last ones: they do not
 * count.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/evaluations.h"
#include "diagnose/diagnosis.h"

typedef struct history {
    int64_t steps;
    int64_t *step;                  /* [steps] */
    double *loss, *value, *rows_of; /* [steps]: of one site, value */
} history;

static void history_free(history *h) {
    free(h->step);
    free(h->loss);
}

static sr_status history_read(history *h, const subject *s, sr_failure *why) {
    h->steps = s->info->steps;
    h->step = malloc((size_t)(h->steps + 1) * sizeof *h->step);
    h->loss = malloc(3 * (size_t)(h->steps + 1) * sizeof *h->loss);
    if (!h->step || !h->loss) return sr_fail(why, SR_MEMORY, "out of memory");
    h->value = h->loss + h->steps + 1;
    h->rows_of = h->value + h->steps + 1;
    sr_status status = sr_run_step_ints(s->run, "step", 0, h->steps, h->step, why);
    return status == SR_OK ? sr_run_step_reals(s->run, "loss", 0, h->steps, h->loss, why) : status;
}

/* -- an event -------------------------------------------------------------------------------- */

typedef struct event {
    int64_t row, site; /* rows of the run: no event; site -1: the loss alone */
} event;

/* A run may leave out losses (NaN at every step): losses that are never finite do not count. */
static void look_at_loss(const history *h, event *first) {
    bool any = false;
    for (int64_t i = 0; i < h->steps; i++) any = any || isfinite(h->loss[i]);
    for (int64_t i = 0; any && i < h->steps; i++)
        if (!isfinite(h->loss[i])) {
            *first = (event){i, -1};
            return;
        }
}

static sr_status look_at_sites(history *h, const subject *s, event *first, sr_failure *why) {
    sr_status status = SR_OK;
    if (!subject_has(s, "nonfinite")) return SR_OK;
    for (int64_t k = 0; k < s->info->sites && status == SR_OK; k++) {
        if (subject_is_replica(s, k)) continue;
        status = subject_history(s, k, "nonfinite", h->value, why);
        if (status == SR_OK) status = subject_history(s, k, "rows", h->rows_of, why);
        for (int64_t i = 0; status == SR_OK && i < h->steps && i <= first->row; i++) {
            if (!(h->value[i] > 0) || h->rows_of[i] <= 0) continue;
            if (i < first->row || first->site < 0) *first = (event){i, k};
            break;
        }
    }
    return status;
}

/* Steps that a loss scaler skips end this way: the last step is finite at this site, too, or all of
 * it but the running values, which training does not use. */
static sr_status look_at_end(history *h, const subject *s, const event *e, bool *went_on,
                             sr_failure *why) {
    bool any = false;
    for (int64_t i = 0; i < h->steps; i++) any = any || isfinite(h->loss[i]);
    *went_on =
        strcmp(s->info->status, "diverged") != 0 && (!any || isfinite(h->loss[h->steps - 1]));
    if (!*went_on || e->site < 0) return SR_OK;
    sr_status status = subject_history(s, e->site, "nonfinite", h->value, why);
    *went_on = status == SR_OK && !(h->value[h->steps - 1] > 0);
    return *went_on || status != SR_OK ? status : momentum_broken(s, e->site, went_on, why);
}

/* Number of the first sites that leave no vectors; a NaN passes them unseen. */
static int64_t count_silent(const subject *s, int64_t sites) {
    int64_t silent = 0;
    for (int64_t i = 0; i < sites; i++) {
        const sr_run_site *at = sr_run_get_site(s->run, i);
        silent += !subject_is_replica(s, i) && at->family == SR_FAMILY_NONE && !at->observed;
    }
    return silent;
}

static void tell_event(const history *h, const subject *s, const event *e, bool went_on,
                       answer *a) {
    const bool known = e->row < h->steps;
    const double step = known ? (double)h->step[e->row] : NAN;
    a->verdict = FOUND, a->severity = SEVERE;
    a->statistic = "nonfinite";
    a->e = (estimate){step, step, step, 1};
    a->limit = 0;
    snprintf(a->unit, sizeof a->unit, "first at step");
    if (known) a->at[a->steps_shown++] = h->step[e->row];
    if (known && e->site >= 0)
        answer_says(a, "The first value that is not finite is at %s, step %lld",
                    sr_run_get_site(s->run, e->site)->name, (long long)h->step[e->row]);
    else if (known)
        answer_says(a, "The loss is not finite at step %lld, with no such value at any site before",
                    (long long)h->step[e->row]);
    else
        answer_says(a, "The run calls itself diverged");
    answer_says(a, known && isfinite(h->loss[e->row]) ? "; the loss of that step is %g." : ".",
                known ? h->loss[e->row] : NAN);
    const int64_t silent = count_silent(s, e->site >= 0 ? e->site : s->info->sites);
    if (silent)
        answer_says(a, " Sites%s that record nothing which could tell: %lld%s.",
                    e->site >= 0 ? " in front of it" : "", (long long)silent,
                    subject_how(s, " (--observe batch)"));
    if (s->info->reason && s->info->reason[0]) answer_says(a, " It says: %s.", s->info->reason);
    if (went_on) {
        a->severity = NOTABLE;
        const bool finite = !(e->site >= 0 && h->value[h->steps - 1] > 0);
        answer_says(a, finite
                           ? " Training went on, and its last step is finite."
                           : " Training went on with a finite loss: of the running values, which "
                             "it does not use, the question on momentum tells.");
    }
    if (e->site < 0) return;
    a->top[0] = (site_estimate){e->site, a->e};
    a->shown = 1;
}

/* -- validation ------------------------------------------------------------------------------ */

static bool is_by_batch(const char *name) {
    const char *end = strrchr(name, '_');
    return end && strcmp(end, "_batch") == 0;
}

/* How many evaluations are finite, if all others come after them; 0 if there are no others. */
static int count_before_end(const evaluations *e) {
    int finite = 0, after;
    while (finite < e->count && isfinite(e->value[0][finite])) finite++;
    for (after = finite; after < e->count && !isfinite(e->value[0][after]);) after++;
    return after == e->count && finite < e->count ? finite : 0;
}

static void tell_validation(const evaluations *e, const char *name, int finite, answer *a) {
    const double step = e->step[finite];
    a->verdict = FOUND, a->severity = NOTABLE;
    a->statistic = "nonfinite_evaluations";
    a->e = (estimate){step, step, step, 1};
    a->limit = 0;
    snprintf(a->unit, sizeof a->unit, "first at step");
    a->at[a->steps_shown++] = (int64_t)step;
    answer_says(a,
                "%s is finite at the first %d evaluations and not at the other %d, from step %.0f "
                "on: NaN, infinite, or no longer recorded. Training is finite.",
                name, finite, e->count - finite, step);
}

static sr_status look_at_validation(const subject *s, answer *a, sr_failure *why) {
    const sr_run_metric *m;
    sr_status status = SR_OK;
    for (int64_t i = 0; status == SR_OK && (m = sr_run_get_metric(s->run, i)); i++) {
        evaluations e;
        if (m->better != SR_BETTER_LESS || is_by_batch(m->name)) continue;
        status = evaluations_read(&e, s->run, (const char *[]){m->name, NULL, NULL}, why);
        const int finite = status == SR_OK ? count_before_end(&e) : 0;
        if (finite) tell_validation(&e, m->name, finite, a);
        evaluations_free(&e);
        if (finite) break;
    }
    return status;
}

/* -- a rise ---------------------------------------------------------------------------------- */

/* The first row after which the site's dx_norm stays above the largest of the first `begin`
 * rows. */
static int64_t leaves_at(const history *h, int64_t begin) {
    double most = 0;
    int64_t at = h->steps;
    for (int64_t i = 0; i < begin; i++)
        if (h->value[i] > most) most = h->value[i];
    while (at > begin && !(h->value[at - 1] <= most)) at--;
    return at;
}

static sr_status find_riser(history *h, const subject *s, int64_t begin, answer *a,
                            sr_failure *why) {
    sr_status status = SR_OK;
    event first = {h->steps, -1};
    if (!subject_has(s, "dx_norm")) return SR_OK;
    for (int64_t k = 0; k < s->info->sites && status == SR_OK; k++) {
        if (subject_is_replica(s, k)) continue;
        status = subject_history(s, k, "dx_norm", h->value, why);
        if (status != SR_OK || !isfinite(h->value[h->steps - 1])) continue;
        const int64_t at = leaves_at(h, begin);
        if (at < first.row) first = (event){at, k};
    }
    if (status != SR_OK || first.site < 0) return status;
    a->top[0] = (site_estimate){first.site, a->e};
    a->shown = 1;
    a->at[a->steps_shown++] = h->step[first.row];
    answer_says(a,
                " The input gradient (dx_norm) of %s is the first to stay above all of its first "
                "%lld steps, from step %lld on.",
                sr_run_get_site(s->run, first.site)->name, (long long)begin,
                (long long)h->step[first.row]);
    return SR_OK;
}

static sr_status judge_rise(history *h, const subject *s, answer *a, sr_failure *why) {
    const int64_t tenth = h->steps / 10, part = tenth > LEAST_STEPS ? tenth : LEAST_STEPS;
    estimate begin, end;
    if (h->steps < 2 * part)
        return answer_not_asked(a,
                                "all is finite; a rise of the loss needs %d steps, there are %lld",
                                2 * LEAST_STEPS, (long long)h->steps);
    sr_status status = estimate_median(h->loss, part, &begin, why);
    if (status == SR_OK) status = estimate_median(h->loss + h->steps - part, part, &end, why);
    if (status != SR_OK) return status;
    const double scale = fabs(begin.value);
    a->e = (estimate){(end.value - begin.value) / scale, (end.low - begin.high) / scale,
                      (end.high - begin.low) / scale, 2 * part};
    a->limit = 0, a->severity = SEVERE;
    a->from = h->step[0], a->to = h->step[h->steps - 1];
    answer_judge(a);
    if (a->verdict == NOT_ASKED) return answer_not_asked(a, "the file has no loss");
    if (a->verdict != FOUND) return SR_OK;
    answer_says(a, "The training loss ends at %.4g, above the %.4g that it began with.", end.value,
                begin.value);
    return find_riser(h, s, part, a, why);
}

sr_status look_divergence(const subject *s, answer *a, sr_failure *why) {
    history h = {0};
    sr_status status = history_read(&h, s, why);
    event first = {h.steps, -1};
    a->statistic = "loss_rise";
    if (status == SR_OK) {
        look_at_loss(&h, &first);
        status = look_at_sites(&h, s, &first, why);
    }
    if (status == SR_OK && (first.row < h.steps || strcmp(s->info->status, "diverged") == 0)) {
        bool went_on;
        status = look_at_end(&h, s, &first, &went_on, why);
        if (status == SR_OK) tell_event(&h, s, &first, went_on, a);
    } else if (status == SR_OK) {
        status = look_at_validation(s, a, why);
        if (status == SR_OK && a->verdict != FOUND) status = judge_rise(&h, s, a, why);
    }
    history_free(&h);
    return status;
}
