/* diagnose_inference.c -- good in training, bad in evaluation: measures the loss and names sites
 * with a large discrepancy.
 *
 * The loss is measured (diagnose_gap.c) or left open: a discrepancy alone does not predict it.
 * Recorded runs with and without a gap overlap in each of these statistics (harm_ranges.h). A
 * discrepancy beyond the usual range without a measured gap is found, and its cost is open. Within
 * the range nothing is found, but the run is not called healthy.
 *
 * The discrepancy of a site is the median of tid_mean and tid_var over the second half of training,
 * with its interval. Source: Wang, Wu and Huang, NeurIPS 2022, section 3; docs/norms.md 18.3. The
 * final pass with frozen running statistics is printed beside it. Only sites that divide by psi
 * have rel_psi = ||psi_B - psi||/||psi||. It is the relative error of the divisor, as tid_var is
 * the error of sigma. Both are equal if features have no mean, hence tid_var's range and limit.
 * Otherwise psi = |(mu, sigma)| moves by no more than the pair, so rel_psi <= sqrt(tid_mean^2 +
 * tid_var^2), except for the spread of mu_B in the running psi2.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/diagnosis.h"

/* mean and variance of the final pass at a site; NaN without one. */
static sr_status read_final(const subject *s, int64_t site, double value[SR_FINAL_COUNT],
                            sr_failure *why) {
    const size_t sites = (size_t)s->info->sites;
    double *all = malloc(SR_FINAL_COUNT * sites * sizeof *all), *column[SR_FINAL_COUNT];
    int64_t batches = -1;
    value[0] = value[1] = NAN;
    if (!all) return sr_fail(why, SR_MEMORY, "out of memory for the final pass");
    for (int i = 0; i < SR_FINAL_COUNT; i++) column[i] = all + (size_t)i * sites;
    const sr_status status = sr_run_final(s->run, &batches, column, why);
    for (int i = 0; i < SR_FINAL_COUNT && status == SR_OK && batches > 0; i++)
        value[i] = column[i][site];
    free(all);
    return status;
}

/* The discrepancies, the range that limits each, its index in the final pass (-1: none). */
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

/* Only for sites that divide by psi: BN does not use its psi_B. */
sr_status measure_psi(const subject *s, int64_t site, const void *what, estimate *e,
                      sr_failure *why) {
    const sr_run_site *at = sr_run_get_site(s->run, site);
    *e = NO_ESTIMATE;
    if (!sr_run_uses(at, "psi2") || sr_run_uses(at, "sigma2")) return SR_OK;
    return measure_own_median(s, site, what, e, why);
}

static sr_status rank_all(const subject *s, bool observed, answer all[DISCREPANCIES],
                          site_count *at, sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; i < (observed ? OF_BN : DISCREPANCIES) && status == SR_OK; i++) {
        all[i] = (answer){.statistic = discrepancy[i].statistic, .e = NO_ESTIMATE};
        all[i].range_of = discrepancy[i].range;
        all[i].limit = healthy_limit(s, all[i].range_of);
        measure_fn *measure = observed    ? measure_observed_median
                              : i < OF_BN ? measure_discrepancy
                                          : measure_psi;
        status = answer_rank_of_several(s, measure, all[i].statistic, &all[i], at, why);
    }
    return status;
}

sr_status discrepancy_rank(const subject *s, bool observed, answer *a, answer *also,
                           sr_failure *why) {
    answer all[DISCREPANCIES] = {0};
    const int count = observed ? OF_BN : DISCREPANCIES;
    int worst = 0, second = -1;
    site_count *at = answer_counts(s, why);
    const sr_status status = at ? rank_all(s, observed, all, at, why) : why->status;
    for (int i = 1; i < count; i++)
        if (is_worse(&all[i], &all[worst]) || (!all[worst].asked && !all[worst].reason[0]))
            worst = i;
    for (int i = 0; i < count; i++)
        if (i != worst && (second < 0 || is_worse(&all[i], &all[second]))) second = i;
    *a = all[worst], *also = all[second];
    if (status == SR_OK) answer_count(s, at, a);
    free(at);
    return status;
}

/* Found: the whole interval is beyond the limit. The value alone may be beyond it too. */
static bool may_be_unusual(const answer *a) {
    return a->e.high > a->limit;
}

/* Which of a site's statistics is beyond its limit, and how many sites have one that is. */
static void tell_beyond(const subject *s, const answer *tid, const answer *also, answer *a) {
    answer_says(a, ", beyond %.3g", tid->limit);
    if (also->verdict == FOUND)
        answer_says(a, ", and %s %.3g at %s, beyond %.3g:", also->statistic, also->e.value,
                    answer_site(s, also, 0), also->limit);
    answer_says(a, " at %lld of %lld sites.", (long long)tid->beyond, (long long)tid->asked);
}

static sr_status tell_tid(const subject *s, const answer *tid, const answer *also, answer *a,
                          sr_failure *why) {
    double final[SR_FINAL_COUNT];
    const site_estimate *worst = &tid->top[0];
    if (!tid->asked) {
        answer_says(a, " Where, no discrepancy says: %s.",
                    tid->reason[0] ? tid->reason : "none is recorded");
        return SR_OK;
    }
    const sr_status status = read_final(s, worst->site, final, why);
    answer_says(a, " %s is %.3g [%.3g, %.3g] at %s", tid->statistic, worst->e.value, worst->e.low,
                worst->e.high, sr_run_get_site(s->run, worst->site)->name);
    const int at = discrepancy_final(tid->statistic);
    if (at >= 0 && isfinite(final[at])) answer_says(a, " (%.3g in the final pass)", final[at]);
    if (tid->verdict == FOUND)
        tell_beyond(s, tid, also, a);
    else if (may_be_unusual(tid))
        answer_says(a, "; its interval holds the limit %.3g: it may be more than usual.",
                    tid->limit);
    else
        answer_says(a, ", which is usual (up to %.3g): its size alone does not explain it.",
                    tid->limit);
    return status;
}

/* The figure draws valid_loss alone; valid_nll is its part without smoothing. */
static void figure_of_gap(const subject *s, const gap *g, answer *a) {
    const char *name = g->metric->name;
    const sr_run_metric *loss = sr_run_find_metric(s->run, "valid_loss");
    const bool drawn = loss && gap_partner(s->run, loss);
    if (drawn && (g->metric == loss || strcmp(name, "valid_nll") == 0))
        answer_figure(a, "statplot modes");
    else
        answer_figure(a, "stat-curve --evals --metric %s,%s", name,
                      gap_partner(s->run, g->metric)->name);
}

/* The number is the gap's, the sites are the discrepancy's. */
static void take_gap(const gap *g, const answer *tid, answer *a) {
    a->statistic = "gap";
    a->in = g->metric->unit;
    a->e = g->e;
    a->limit = g->notable, a->severe = g->severe;
    a->once = true; /* ranked by the loss it causes */
    a->from = g->from, a->to = g->to;
    a->of_sites = tid->statistic;
    memcpy(a->top, tid->top, sizeof a->top);
    a->shown = tid->shown, a->asked = tid->asked, a->beyond = tid->beyond;
    a->by_others = tid->by_others;
}

static sr_status answer_by_gap(const subject *s, const gap *g, const answer *tid,
                               const answer *also, answer *a, sr_failure *why) {
    take_gap(g, tid, a);
    a->severity = gap_severity(g);
    a->verdict = FOUND;
    sr_status status = gap_tell(s, g, a, why);
    if (status == SR_OK) status = tell_tid(s, tid, also, a, why);
    figure_of_gap(s, g, a);
    return status;
}

/* Nothing is found: the number, and whether it excludes harm. */
static void answer_without(const subject *s, const gap *g, const answer *tid, answer *a) {
    take_gap(g, tid, a);
    a->verdict = gap_is_told(g) ? IN_ORDER : UNTOLD;
    gap_tell_number(g, a);
    if (tid->asked)
        answer_says(a, "; largest discrepancy: %s %.3g at %s", tid->statistic, tid->e.value,
                    answer_site(s, tid, 0));
    answer_says(a, ".");
    if (a->verdict == UNTOLD)
        answer_says(a, " The interval holds that limit: more evaluations would tell%s.",
                    subject_how(s, " (--validate-interval-updates)"));
}

/* Whether the worst site divides by the running psi in training too. */
static bool has_one_psi(const subject *s, const answer *a) {
    return a->shown && sr_run_get_site(s->run, a->top[0].site)->family == SR_FAMILY_PN;
}

static void tell_too_few(const gap *g, answer *a) {
    answer_says(a, "%s is there both ways, but not at three evaluations in the second half.",
                g->metric->name);
}

/* Of a finding without a gap: what it means for evaluation. */
static void tell_cost(const subject *s, const gap *g, answer *a) {
    if (has_one_psi(s, a)) {
        answer_says(a, "The power of batches is far from the running one. Training divides by that "
                       "as evaluation does, so that no gap follows; what comes out of the site has "
                       "another power than 1, and nu is taken from it.");
        return;
    }
    if (isfinite(g->e.low)) {
        answer_says(
            a, "Batches stray far from the running statistics; %s (",
            gap_is_told(g)
                ? "evaluation does not suffer from it so far"
                : "whether evaluation suffers, the evaluations are too few or too uneven to say");
        gap_tell_number(g, a);
        answer_says(a, ").");
        return;
    }
    answer_says(a, "Batches stray far from the running statistics that evaluation uses; what it "
                   "costs is not measured: ");
    if (g->metric)
        tell_too_few(g, a);
    else
        answer_says(a, "validate both ways%s.", subject_how(s, " (--validate-batch)"));
}

/* A discrepancy that is not found to be unusual, of unmeasured cost. */
static void tell_usual(const subject *s, const gap *g, answer *a) {
    const harm_range *harm = harm_find(a->statistic);
    a->verdict = UNTOLD;
    answer_says(a, "%s is %.3g [%.3g, %.3g] at %s. ", a->statistic, a->e.value, a->e.low, a->e.high,
                answer_site(s, a, 0));
    if (may_be_unusual(a))
        answer_says(a, "Its interval holds the limit %.3g, so it may be more than usual. Harm",
                    a->limit);
    else
        answer_says(a, "That is usual, but harm");
    answer_says(a, " cannot be told from it");
    if (harm && harm->harmful && harm->harmless)
        answer_says(a,
                    ": recorded runs that lose nothing have up to %.3g, runs that lose "
                    "something have it from %.3g on",
                    harm->harmless_high, harm->harmful_low);
    answer_says(a, ". ");
    if (g->metric)
        tell_too_few(g, a);
    else
        answer_says(a, "Validate with running and with batch statistics%s.",
                    subject_how(s, " (--validate-batch)"));
}

static sr_status answer_by_tid(const subject *s, const gap *g, const answer *tid,
                               const answer *also, answer *a, sr_failure *why) {
    *a = *tid;
    if (a->verdict == FOUND) {
        a->severity = gap_is_told(g) || has_one_psi(s, a) ? MINOR : NOTABLE;
        tell_cost(s, g, a);
        return tell_tid(s, tid, also, a, why);
    }
    if (gap_is_possible(s)) tell_usual(s, g, a);
    return SR_OK;
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
    answer tid, also;
    sr_status status = gap_measure(s, &g, why);
    if (status == SR_OK) status = discrepancy_rank(s, false, &tid, &also, why);
    if (status != SR_OK) return status;
    if (gap_severity(&g)) return answer_by_gap(s, &g, &tid, &also, a, why);
    if (tid.verdict == FOUND || (tid.asked && !isfinite(g.e.low)))
        return answer_by_tid(s, &g, &tid, &also, a, why);
    if (!isfinite(g.e.low)) return not_asked(s, &tid, a);
    answer_without(s, &g, &tid, a);
    return SR_OK;
}
