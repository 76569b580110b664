/* diagnose_bn.c -- would BN work here? Asked of sites whose mean and standard deviation over the
 * batch are only the observer's (statrec train --observe batch, sr_set_observed;
 * docs/observed-sites.md).
 *
 * BN would evaluate with running statistics. Their discrepancy, tid_mean and tid_var, is compared
 * with the limits of the question on inference. BN would send a part of dx through mu_B and
 * sigma2_B. g_mu_share and g_sigma2_share are compared with the limits of the question on the
 * gradient. A site is beyond a limit if the nearer end of an interval is, and within it if the
 * farther end is. Else the interval contains the limit, and the site is open.
 *
 * Rows: n independent rows have a TID of at least sqrt(2/((1 + alpha) n)), so n = 2/((1 + alpha)
 * limit^2) rows reach the limit. The rows of a sample are not independent if the excess over that
 * bound is above 1. With independent samples of as many rows, each TID still falls with the root of
 * their number, whatever their rows are. So S samples become S (tid_mean/limit)^2. This fails if
 * samples are not independent either, or if the mean moves: like_samples is then above 1, the most
 * for independent ones.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/runs/run_config.h"
#include "diagnose/diagnosis.h"

typedef enum { UNKNOWN, WITHIN, OPEN, BEYOND } side;
enum { TID_MEAN, TID_VAR, MU_SHARE, SIGMA2_SHARE, QUANTITIES };
static const char *const names[QUANTITIES] = {"tid_mean", "tid_var", "g_mu_share",
                                              "g_sigma2_share"};

/* A site that might use BN. */
typedef struct seat {
    int64_t site;
    estimate e[QUANTITIES];
} seat;

typedef struct seats {
    seat *at; /* [count], in forward order; those with an estimate of TID */
    int64_t count;
    double limit[QUANTITIES];
} seats;

static side side_of(const estimate *e, double limit) {
    if (isnan(e->low) || isnan(limit)) return UNKNOWN;
    return e->low > limit ? BEYOND : e->high > limit ? OPEN : WITHIN;
}

/* The worst side of the quantities first .. end - 1. */
static side side_among(const seats *all, const seat *at, int first, int end) {
    side worst = UNKNOWN;
    for (int q = first; q < end; q++) {
        const side here = side_of(&at->e[q], all->limit[q]);
        if (here > worst) worst = here;
    }
    return worst;
}

static side side_of_tid(const seats *all, const seat *at) {
    return side_among(all, at, TID_MEAN, MU_SHARE);
}

static int64_t count_tid(const seats *all, side which) {
    int64_t count = 0;
    for (int64_t i = 0; i < all->count; i++) count += side_of_tid(all, &all->at[i]) == which;
    return count;
}

/* The quantity of first .. end - 1 that is farthest beyond its limit, or nearest to it. */
static int worst_of(const seats *all, const seat *at, int first, int end) {
    int worst = first;
    for (int q = first + 1; q < end; q++)
        if (isnan(at->e[worst].low) ||
            at->e[q].low / all->limit[q] > at->e[worst].low / all->limit[worst])
            worst = q;
    return worst;
}

static double excess_of(const seats *all, const seat *at, int first, int end) {
    const int q = worst_of(all, at, first, end);
    return at->e[q].low / all->limit[q];
}

/* The worst site by these quantities among those that are not `taken`; NULL: none has any. */
static const seat *worst_seat(const seats *all, int first, int end, const bool *taken) {
    const seat *worst = NULL;
    for (int64_t i = 0; i < all->count; i++) {
        const double here = excess_of(all, &all->at[i], first, end);
        if (isnan(here) || (taken && taken[i])) continue;
        if (!worst || here > excess_of(all, worst, first, end)) worst = &all->at[i];
    }
    return worst;
}

static sr_status read_seats(const subject *s, seats *all, sr_failure *why) {
    sr_status status = SR_OK;
    for (int q = 0; q < QUANTITIES; q++) all->limit[q] = healthy_limit(s, names[q]);
    all->at = calloc((size_t)s->info->sites + 1, sizeof *all->at);
    if (!all->at) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; i < s->info->sites && status == SR_OK; i++) {
        seat *next = &all->at[all->count];
        if (subject_is_replica(s, i)) continue;
        next->site = i;
        for (int q = 0; q < QUANTITIES && status == SR_OK; q++)
            status = measure_observed_median(s, i, names[q], &next->e[q], why);
        all->count += side_of_tid(all, next) != UNKNOWN;
    }
    return status;
}

/* -- in words ---------------------------------------------------------------------------------- */

static const char *site_name(const subject *s, const seat *at) {
    return sr_run_get_site(s->run, at->site)->name;
}

static void tell_estimate(const estimate *e, answer *a) {
    answer_says(a, "%.3g [%.3g, %.3g]", e->value, e->low, e->high);
}

/* "; worst: c (tid_mean 0.4 [0.39, 0.41]), b (...)": up to SITES_SHOWN that are on this side. */
static sr_status tell_worst(const subject *s, const seats *all, side which, answer *a,
                            sr_failure *why) {
    const char *word = which == WITHIN ? "; nearest to a limit: " : "; worst: ";
    bool *taken = calloc((size_t)all->count + 1, sizeof *taken);
    const seat *at;
    if (!taken) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; i < all->count; i++) taken[i] = side_of_tid(all, &all->at[i]) != which;
    for (int i = 0; i < SITES_SHOWN && (at = worst_seat(all, TID_MEAN, MU_SHARE, taken)); i++) {
        const int q = worst_of(all, at, TID_MEAN, MU_SHARE);
        answer_says(a, "%s%s (%s ", i ? ", " : word, site_name(s, at), names[q]);
        tell_estimate(&at->e[q], a);
        answer_says(a, ")");
        taken[at - all->at] = true;
    }
    free(taken);
    answer_says(a, ". The limits are %.3g of tid_mean and %.3g of tid_var.", all->limit[TID_MEAN],
                all->limit[TID_VAR]);
    return SR_OK;
}

static sr_status tell_sites(const subject *s, const seats *all, answer *a, sr_failure *why) {
    const int64_t beyond = count_tid(all, BEYOND), open = count_tid(all, OPEN);
    const long long observed = all->count;
    if (beyond)
        answer_says(
            a,
            "Not by what is observed: at %lld of %lld sites the running statistics would not "
            "stand for those of batches",
            (long long)beyond, observed);
    else if (open)
        answer_says(
            a,
            "Not told by what is observed: at none of %lld sites are the running statistics "
            "found too far from those of batches",
            observed);
    else
        answer_says(a,
                    "The running statistics are as near to those of batches as usual at all of "
                    "%lld observed sites, which does not tell what evaluation would lose",
                    observed);
    if (open)
        answer_says(a, ", %s at %lld the interval holds the limit", beyond ? "and" : "but",
                    (long long)open);
    return tell_worst(s, all, beyond ? BEYOND : open ? OPEN : WITHIN, a, why);
}

/* like_samples decides whether more of the same samples help: independent ones give at most 1. */
static void tell_samples(const estimate *samples, const estimate *like, const estimate *tid,
                         double limit, answer *a) {
    const double per = samples->value / (limit * limit);
    if (like->low > 1)
        answer_says(a, " More than independent samples could show is seen (like_samples ");
    else
        answer_says(a, " Rows of a sample are not independent (like_samples ");
    tell_estimate(like, a);
    if (like->low > 1)
        answer_says(a, ", at most 1 of such): samples of a batch are alike, or the mean moves "
                       "faster than its running value, and more of them need not help.");
    else
        answer_says(a,
                    "): with as many rows each it takes about %.4g [%.4g, %.4g] samples, as long "
                    "as they are independent and the mean stands still.",
                    ceil(per * tid->value * tid->value), ceil(per * tid->low * tid->low),
                    ceil(per * tid->high * tid->high));
}

/* Describes the batches at the site with the worst tid_mean, and the rows and samples that it
   takes. */
static sr_status tell_rows(const subject *s, const seats *all, answer *a, sr_failure *why) {
    const seat *at = worst_seat(all, TID_MEAN, TID_VAR, NULL);
    estimate rows, samples, excess, like = NO_ESTIMATE;
    if (!at) return SR_OK;
    const double alpha = sr_run_get_site(s->run, at->site)->alpha, unit = 2 / (1 + alpha);
    const double limit = all->limit[TID_MEAN];
    sr_status status = measure_median(s, at->site, "rows", &rows, why);
    if (status == SR_OK) status = measure_median(s, at->site, "samples", &samples, why);
    if (status == SR_OK) status = measure_median(s, at->site, "dist_mu_excess", &excess, why);
    if (status == SR_OK) status = measure_alike(s, at->site, NULL, &like, why);
    if (status != SR_OK || !isfinite(rows.value) || !isfinite(unit)) return status;
    answer_says(a, " A batch has %.6g rows", rows.value);
    if (isfinite(samples.value)) answer_says(a, " of %.4g samples", samples.value);
    answer_says(a,
                " at %s, and the observer's alpha is %g: independent rows would have a tid_mean of "
                "%.3g [%.3g, %.3g], and be within the limit from %.4g rows on.",
                site_name(s, at), alpha, sqrt(unit / rows.value), sqrt(unit / rows.high),
                sqrt(unit / rows.low), ceil(unit / (limit * limit)));
    if (excess.low > 1 && isfinite(like.low))
        tell_samples(&samples, &like, &at->e[TID_MEAN], limit, a);
    return SR_OK;
}

static void tell_gradient(const subject *s, const seats *all, answer *a) {
    const seat *at = worst_seat(all, MU_SHARE, QUANTITIES, NULL);
    int64_t beyond = 0, asked = 0;
    if (!at) {
        answer_says(a, " What part of the gradient would go through them is not measured.");
        return;
    }
    const int q = worst_of(all, at, MU_SHARE, QUANTITIES);
    for (int64_t i = 0; i < all->count; i++) {
        const side here = side_among(all, &all->at[i], MU_SHARE, QUANTITIES);
        beyond += here == BEYOND;
        asked += here != UNKNOWN;
    }
    answer_says(a, " Through these statistics would go ");
    tell_estimate(&at->e[q], a);
    answer_says(a,
                " of the norm of the input gradient at %s, the worst (%s); beyond the limits (%.3g "
                "of g_mu_share, %.3g of g_sigma2_share) are %lld of %lld sites.",
                site_name(s, at), names[q], all->limit[MU_SHARE], all->limit[SIGMA2_SHARE],
                (long long)beyond, (long long)asked);
}

/* -- sites for BN ------------------------------------------------------------------------------ */

/* chosen [count]: sites within all limits that can be checked; returns their number. */
static int64_t choose_places(const seats *all, int64_t *chosen) {
    int64_t places = 0;
    for (int64_t i = 0; i < all->count; i++) {
        const side tid = side_of_tid(all, &all->at[i]);
        const side share = side_among(all, &all->at[i], MU_SHARE, QUANTITIES);
        if (tid == WITHIN && share <= WITHIN) chosen[places++] = all->at[i].site;
    }
    return places;
}

/* Every site of the model is among the places, none was left out of the recording. */
static bool is_everywhere(const subject *s, int64_t places) {
    option_text recorded;
    run_option(s->run, "record-sites", recorded, sizeof recorded);
    return places == s->sites && strcmp(recorded, "*") == 0;
}

static void name_places(const subject *s, const int64_t *chosen, int64_t places, answer *a) {
    char list[1024];
    if (s->trained && is_everywhere(s, places))
        answer_says(a, " (--norm-at '*=bn')");
    else if (s->trained && advice_norm_at(s, chosen, places, "bn", list, sizeof list))
        answer_says(a, " (--norm-at '%s', the others as they are)", list);
    else
        for (int64_t i = 0; i < places && i < 24; i++)
            answer_says(a, "%s%s", i ? ", " : ": ", sr_run_get_site(s->run, chosen[i])->name);
}

static sr_status tell_places(const subject *s, const seats *all, answer *a, sr_failure *why) {
    int64_t *chosen = calloc((size_t)all->count + 1, sizeof *chosen);
    if (!chosen) return sr_fail(why, SR_MEMORY, "out of memory");
    const int64_t places = choose_places(all, chosen);
    if (places == 0)
        answer_says(a, " No site is within all of these limits.");
    else
        answer_says(a,
                    " Within all of these limits, so that BN may be tried there, %s %lld of them",
                    places == 1 ? "is" : "are", (long long)places);
    if (places) {
        name_places(s, chosen, places, a);
        answer_says(a, ".");
    }
    free(chosen);
    return SR_OK;
}

/* -- the answer -------------------------------------------------------------------------------- */

static sr_status tell(const subject *s, const seats *all, answer *a, sr_failure *why) {
    sr_status status = tell_sites(s, all, a, why);
    if (status == SR_OK) status = tell_rows(s, all, a, why);
    if (status != SR_OK) return status;
    tell_gradient(s, all, a);
    status = tell_places(s, all, a, why);
    const char *method = method_of(sr_run_get_site(s->run, a->top[0].site), "");
    answer_says(a,
                " All of it is the observer's, in a network that was trained %s%s: how one "
                "trained with BN would fare, whose x and g are others, it does not say.",
                method[0] ? "with " : "without normalization there", method);
    return status;
}

sr_status look_would_bn(const subject *s, answer *a, sr_failure *why) {
    seats all = {0};
    answer also;
    sr_status status = discrepancy_rank(s, true, a, &also, why);
    a->severity = NOTABLE;
    if (status == SR_OK && !a->asked) {
        if (s->observed_sites || s->batch_sites == 0)
            return answer_nowhere(a, s->observed_sites
                                         ? "no tid_mean or tid_var that is only the observer's"
                                     : s->trained ? "nothing is observed (--observe batch)"
                                                  : "nothing is observed");
        return answer_not_asked(a, "sites have batch statistics of their own, none is observed");
    }
    if (status == SR_OK) status = read_seats(s, &all, why);
    if (status == SR_OK) {
        a->asked = all.count;
        a->beyond = count_tid(&all, BEYOND);
        a->by_others = false; /* beyond by any of the two */
        status = tell(s, &all, a, why);
    }
    free(all.at);
    return status;
}
