/* diagnose_gradient.c -- what the batch statistics add to the gradient, and PN's nu.
 *
 * Shares (Shen et al., ICML 2020, equation 3; docs/norms.md 18.2): g_q_share = sqrt(n) d g_q/||dx||_F,
 * the Frobenius norm of the part of dx that goes through statistic q over that of the whole, which
 * depends on no width, scale or loss reduction. psi2 stands where sigma2 stands in BN; no vision run
 * with it is recorded, so its range is that of sigma2.
 *
 * nu (docs/definitions.md, "PN: what keeps nu bounded"): nu <- nu (1 - (1 - alpha_bwd) Gamma) + ...
 * changes sign in one step where Gamma > 1/(1 - alpha_bwd) and grows where Gamma > 2/(1 - alpha_bwd).
 * alpha_bwd is that of the run's configuration ("alpha_bwd=0.9"), else the site's alpha.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnosis.h"

sr_status look_gradient(const subject *s, answer *a, sr_failure *why) {
    static const char *const names[] = {"g_mu_share", "g_sigma2_share", "g_psi2_share"};
    static const char *const ranges[] = {"g_mu_share", "g_sigma2_share", "g_sigma2_share"};
    bool any = false;
    for (int i = 0; i < 3; i++) {
        answer one = {.statistic = names[i], .range_of = ranges[i], .severity = NOTABLE};
        one.limit = healthy_limit(ranges[i]);
        sr_status status = answer_rank(s, measure_median, names[i], &one, why);
        if (status != SR_OK) return status;
        if (!one.asked && (any || a->reason[0])) continue;
        if (any && one.e.low / one.limit <= a->e.low / a->limit) continue;
        any = one.asked > 0;
        *a = one;
    }
    if (!any) return answer_nowhere(a, "no g_mu, g_sigma2 or g_psi2 with dx_norm and rows");
    if (a->verdict != FOUND) return SR_OK;
    estimate rows;
    sr_status status = measure_median(s, a->top[0].site, "rows", &rows, why);
    answer_figure(a, "statplot layers --stat %s", a->statistic);
    answer_says(a,
                "At %s %.3g of the norm of the input gradient goes through the batch statistic. "
                "The part falls with the root of the independent rows, of which a batch has at "
                "most %.4g here: fewer rows are the first thing to suspect.",
                answer_site(s, a, 0), a->e.value, rows.value);
    return status;
}

/* -- nu -------------------------------------------------------------------------------------- */

static double alpha_backward(const subject *s, int64_t site) {
    const char *config = s->info->config, *at = config ? strstr(config, "alpha_bwd=") : NULL;
    const double value = at ? strtod(at + strlen("alpha_bwd="), NULL) : NAN;
    return value >= 0 && value < 1 ? value : sr_run_get_site(s->run, site)->alpha;
}

/* Gamma_max (1 - alpha_bwd): nu changes sign beyond 1, grows beyond 2. */
static sr_status read_gain(const subject *s, int64_t site, double *value, sr_failure *why) {
    const double alpha = alpha_backward(s, site);
    sr_status status = subject_column(s, site, "Gamma_max", value, why);
    for (int64_t i = 0; i < s->count && status == SR_OK; i++) value[i] *= 1 - alpha;
    return status;
}

static sr_status measure_gain(const subject *s, int64_t site, const void *what, estimate *e,
                              sr_failure *why) {
    (void)what;
    *e = NO_ESTIMATE;
    if (!subject_has(s, "Gamma_max")) return SR_OK;
    double *value = subject_room(s, 1, why);
    if (!value) return why->status;
    sr_status status = read_gain(s, site, value, why);
    if (status == SR_OK) status = estimate_tail(value, s->count, TAIL_MOST, e, why);
    free(value);
    return status;
}

static sr_status tell_nu(const subject *s, answer *a, sr_failure *why) {
    double *value = subject_room(s, 1, why);
    if (!value) return why->status;
    int64_t turns = 0, grows = 0;
    sr_status status = read_gain(s, a->top[0].site, value, why);
    for (int64_t i = 0; i < s->count && status == SR_OK; i++) {
        turns += value[i] > 1;
        grows += value[i] > 2;
        if (value[i] > 1 && a->steps_shown < STEPS_SHOWN) a->at[a->steps_shown++] = s->step[i];
    }
    free(value);
    a->severity = grows ? SEVERE : NOTABLE;
    const double alpha = alpha_backward(s, a->top[0].site);
    answer_says(
        a,
        "At %s the largest Gamma is %.3g; with alpha_bwd %g nu changes sign above %.3g (steps: "
        "%lld) and grows above %.3g (steps: %lld): single batches have a power that the "
        "running psi2 does not know.",
        answer_site(s, a, 0), a->e.value / (1 - alpha), alpha, 1 / (1 - alpha), (long long)turns,
        2 / (1 - alpha), (long long)grows);
    return status;
}

/* That it happened needs no interval to be so: one step is enough. */
sr_status look_nu(const subject *s, answer *a, sr_failure *why) {
    *a = (answer){.statistic = "(1-alpha_bwd) Gamma_max", .limit = 1, .once = true};
    sr_status status = answer_rank(s, measure_gain, NULL, a, why);
    if (status != SR_OK) return status;
    if (!a->asked) return answer_nowhere(a, "no site with Gamma_max");
    return a->verdict == FOUND ? tell_nu(s, a, why) : SR_OK;
}
