/* diagnose_gradient.c -- the gradient through batch statistics, and PN's nu.
 *
 * Fractions (Shen et al., ICML 2020, equation 3; docs/norms.md 18.2): g_q_share = sqrt(n) d
 * g_q/||dx||_F. The numerator is the Frobenius norm of the part of dx through statistic q. The
 * fraction does not depend on width, scale or loss reduction. psi2 replaces BN's sigma2; no vision
 * run records it, so it is judged by the range of sigma2.
 *
 * nu (docs/definitions.md, "Stability of nu"): nu <- nu (1 - (1 - alpha_bwd) Gamma) + ... changes
 * sign in one step if Gamma > 1/(1 - alpha_bwd). It grows if Gamma > 2/(1 - alpha_bwd). alpha_bwd
 * is the site's (run_alpha_backward). All steps count, the burn-in and shorter passes too: nu went
 * through them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/runs/run_config.h"
#include "diagnose/diagnosis.h"

/* The worst of the parts; *any: one was asked. */
static sr_status rank_parts(const subject *s, answer *a, site_count *at, bool *any,
                            sr_failure *why) {
    static const char *const names[] = {"g_mu_share", "g_sigma2_share", "g_psi2_share"};
    static const char *const ranges[] = {"g_mu_share", "g_sigma2_share", "g_sigma2_share"};
    for (int i = 0; i < 3; i++) {
        answer one = {.statistic = names[i], .range_of = ranges[i], .severity = NOTABLE};
        one.limit = healthy_limit(s, ranges[i]);
        sr_status status = answer_rank_of_several(s, measure_median, names[i], &one, at, why);
        if (status != SR_OK) return status;
        if (!one.asked && (*any || a->reason[0])) continue;
        if (*any && one.e.low / one.limit <= a->e.low / a->limit) continue;
        *any = one.asked > 0;
        *a = one;
    }
    answer_count(s, at, a);
    return SR_OK;
}

sr_status look_gradient(const subject *s, answer *a, sr_failure *why) {
    bool any = false;
    site_count *at = answer_counts(s, why);
    const sr_status ranked = at ? rank_parts(s, a, at, &any, why) : why->status;
    free(at);
    if (ranked != SR_OK) return ranked;
    if (!any) return answer_nowhere(a, "no g_mu, g_sigma2 or g_psi2 with dx_norm and rows");
    if (a->verdict != FOUND) return SR_OK;
    estimate rows;
    sr_status status = measure_median(s, a->top[0].site, "rows", &rows, why);
    answer_figure(a, "statplot layers --stat %s", a->statistic);
    answer_says(a,
                "At %s the part of the input gradient that goes through the batch statistic has "
                "%.3g times the norm of the whole. The part falls with the root of the "
                "independent rows, of which a batch has at most %.4g here: suspect too few rows "
                "first.",
                answer_site(s, a, 0), a->e.value, rows.value);
    return status;
}

/* -- nu -------------------------------------------------------------------------------------- */

static double alpha_backward(const subject *s, int64_t site) {
    return run_alpha_backward(s->run, sr_run_get_site(s->run, site));
}

/* Gamma_max (1 - alpha_bwd) of all steps: nu changes sign beyond 1, grows beyond 2. In the first
 * pass of a run nu is 0, which does neither. */
static sr_status read_gain(const subject *s, int64_t site, double *value, sr_failure *why) {
    const double alpha = alpha_backward(s, site);
    bool at_zero = s->begin == 1;
    sr_status status = subject_history(s, site, "Gamma_max", value, why);
    if (status == SR_OK && at_zero) status = subject_begins_with(s, site, "nu", 0, &at_zero, why);
    for (int64_t i = 0; i < s->info->steps && status == SR_OK; i++) value[i] *= 1 - alpha;
    if (status == SR_OK && at_zero) value[0] = NAN;
    return status;
}

/* The largest of the run. An event counts whatever the number of steps. */
static sr_status measure_gain(const subject *s, int64_t site, const void *what, estimate *e,
                              sr_failure *why) {
    (void)what;
    *e = NO_ESTIMATE;
    if (!subject_has(s, "Gamma_max")) return SR_OK;
    double *value = subject_room(s, 1, why);
    if (!value) return why->status;
    sr_status status = read_gain(s, site, value, why);
    if (status == SR_OK) status = estimate_tail(value, s->info->steps, TAIL_MOST, e, why);
    if (isnan(e->low) && e->value > 1) e->low = e->high = e->value;
    free(value);
    return status;
}

typedef struct turns {
    int64_t turns, grows, early, first,
        last; /* steps; early: in the burn-in; first and last turn */
} turns;

static sr_status count_turns(const subject *s, answer *a, turns *t, sr_failure *why) {
    const int64_t steps = s->info->steps;
    int64_t *step = malloc((size_t)(steps + 1) * sizeof *step);
    double *value = subject_room(s, 1, why);
    if (!step) sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = step && value ? read_gain(s, a->top[0].site, value, why) : why->status;
    if (status == SR_OK) status = sr_run_step_ints(s->run, "step", 0, steps, step, why);
    for (int64_t i = 0; i < steps && status == SR_OK; i++) {
        if (!(value[i] > 1)) continue;
        t->turns++;
        t->grows += value[i] > 2;
        t->early += step[i] <= s->window.startup_end;
        if (a->steps_shown < STEPS_SHOWN) a->at[a->steps_shown++] = step[i];
        if (t->turns == 1) t->first = step[i];
        t->last = step[i];
    }
    free(step);
    free(value);
    return status;
}

static sr_status tell_nu(const subject *s, answer *a, sr_failure *why) {
    turns t = {0};
    sr_status status = count_turns(s, a, &t, why);
    a->severity = t.grows ? SEVERE : NOTABLE;
    const double alpha = alpha_backward(s, a->top[0].site);
    answer_says(
        a,
        "At %s the largest Gamma is %.3g; with alpha_bwd %g nu changes sign above %.3g (steps: "
        "%lld) and grows above %.3g (steps: %lld): single batches have a power that the "
        "running psi2 does not know.",
        answer_site(s, a, 0), a->e.value / (1 - alpha), alpha, 1 / (1 - alpha), (long long)t.turns,
        2 / (1 - alpha), (long long)t.grows);
    if (t.turns > 1)
        answer_says(a, " The first such step is %lld, the last %lld.", (long long)t.first,
                    (long long)t.last);
    if (t.early)
        answer_says(a, " %s in the burn-in of running statistics (%lld steps).",
                    t.early == t.turns ? t.turns == 1 ? "It was" : "All of them were"
                                       : "The first of them was",
                    (long long)s->window.startup);
    return status;
}

/* An event needs no interval: one step is enough, also in the burn-in. */
sr_status look_nu(const subject *s, answer *a, sr_failure *why) {
    *a = (answer){.statistic = "(1-alpha_bwd) Gamma_max", .limit = 1, .once = true, .whole = true};
    sr_status status = answer_rank(s, measure_gain, NULL, a, why);
    if (status != SR_OK) return status;
    if (!a->asked) return answer_nowhere(a, "no site with Gamma_max");
    return a->verdict == FOUND ? tell_nu(s, a, why) : SR_OK;
}
