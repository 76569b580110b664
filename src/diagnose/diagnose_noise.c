/* diagnose_noise.c -- outliers in time; rows that are too few, alike, or padding.
 *
 * Outliers: batch statistics of text have large outliers in time (Shen et al., ICML 2020, section
 * 3). The measure is the deviation (v - median)/mad of dist_mu, dist_sigma2 and dist_psi2. Medians
 * are over parts of PART to 2 PART - 1 steps, since the usual value changes during training. The
 * estimate is the 99 % quantile of the deviations with its bootstrap interval. Steps beyond
 * DEVIATIONS are named, by the one-sided rule of stat-outlier.
 *
 * Rows: with n independent rows mu_B - mu has the norm sqrt(2/((1 + alpha) n)) ||sigma||
 * (docs/definitions.md, excess). A batch of n rows has no smaller TID unless rows repel each other.
 * Alike: with samples (sentences, images) in place of rows it is the largest TID of random samples.
 * They reach it if all rows of a sample are equal. Beyond it batches are not random samples, or the
 * mean moves faster than its running value.
 *
 *     like_samples = tid_mean / sqrt(2/((1 + alpha) samples))
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/diagnosis.h"

enum { PART = 50 };
static const double DEVIATIONS = 10;

/* -- outliers -------------------------------------------------------------------------------- */

/* value [n] becomes (v - median)/mad of its part; NaN without a spread. */
static void deviations_of_part(double *value, int64_t n, double *scratch) {
    summary s;
    memcpy(scratch, value, (size_t)n * sizeof *scratch);
    summary_range(scratch, n, &s);
    const double median = s.median;
    for (int64_t i = 0; i < n; i++) scratch[i] = fabs(value[i] - median);
    summary_range(scratch, n, &s);
    for (int64_t i = 0; i < n; i++) value[i] = s.median > 0 ? (value[i] - median) / s.median : NAN;
}

/* scratch [2, count]: the deviations, and as much again. */
static sr_status read_deviations(const subject *s, int64_t site, const char *name, double *room,
                                 sr_failure *why) {
    const int64_t pieces = s->count / PART ? s->count / PART : 1;
    sr_status status = subject_column(s, site, name, room, why);
    for (int64_t p = 0; p < pieces && status == SR_OK; p++) {
        const int64_t first = p * s->count / pieces, end = (p + 1) * s->count / pieces;
        deviations_of_part(room + first, end - first, room + s->count);
    }
    return status;
}

sr_status measure_outliers(const subject *s, int64_t site, const void *what, estimate *e,
                           sr_failure *why) {
    *e = NO_ESTIMATE;
    if (!subject_has(s, what)) return SR_OK;
    double *room = subject_room(s, 2, why);
    if (!room) return why->status;
    sr_status status = read_deviations(s, site, what, room, why);
    if (status == SR_OK) status = estimate_tail(room, s->count, TAIL_99, e, why);
    free(room);
    return status;
}

/* Steps of the first outliers at the worst site. */
static sr_status tell_outliers(const subject *s, const char *name, answer *a, sr_failure *why) {
    double *room = subject_room(s, 2, why), largest = 0;
    if (!room) return why->status;
    int64_t count = 0;
    sr_status status = read_deviations(s, a->top[0].site, name, room, why);
    for (int64_t i = 0; i < s->count && status == SR_OK; i++) {
        if (room[i] > largest) largest = room[i];
        if (!(room[i] > DEVIATIONS)) continue;
        if (a->steps_shown < STEPS_SHOWN) a->at[a->steps_shown++] = s->step[i];
        count++;
    }
    free(room);
    answer_figure(a, "statplot layers --stat %s", name);
    answer_says(a,
                "At %s %lld of %lld steps have a %s more than %g median absolute deviations above "
                "the usual of their time; the largest is %.3g. Such batches push the running "
                "values away from those that evaluation meets.",
                answer_site(s, a, 0), (long long)count, (long long)a->top[0].e.steps, name,
                DEVIATIONS, largest);
    return status;
}

/* The worst of the distances; *worst: its name, NULL: none was asked. */
static sr_status rank_distances(const subject *s, answer *a, site_count *at, const char **worst,
                                sr_failure *why) {
    static const char *const names[] = {"dist_mu", "dist_sigma2", "dist_psi2"};
    static const char *const titles[] = {"dist_mu deviations q99", "dist_sigma2 deviations q99",
                                         "dist_psi2 deviations q99"};
    *worst = NULL;
    for (int i = 0; i < 3; i++) {
        answer one = {.statistic = titles[i], .range_of = "outliers", .severity = NOTABLE};
        one.limit = healthy_limit(s, "outliers");
        sr_status status = answer_rank_of_several(s, measure_outliers, names[i], &one, at, why);
        if (status != SR_OK) return status;
        if (!one.asked && (*worst || a->reason[0])) continue;
        if (*worst && one.e.low <= a->e.low) continue;
        *worst = one.asked ? names[i] : NULL;
        *a = one;
    }
    answer_count(s, at, a);
    return SR_OK;
}

sr_status look_outliers(const subject *s, answer *a, sr_failure *why) {
    const char *worst = NULL;
    site_count *at = answer_counts(s, why);
    const sr_status ranked = at ? rank_distances(s, a, at, &worst, why) : why->status;
    free(at);
    if (ranked != SR_OK) return ranked;
    if (!worst) return answer_nowhere(a, "no dist_mu, dist_psi2 of any site");
    return a->verdict == FOUND ? tell_outliers(s, worst, a, why) : SR_OK;
}

/* -- rows ------------------------------------------------------------------------------------ */

/* The least TID, by rows or samples. For sites that take a mean over the batch, or observe one. */
sr_status measure_expected(const subject *s, int64_t site, const void *what, estimate *e,
                           sr_failure *why) {
    const sr_run_site *at = sr_run_get_site(s->run, site);
    estimate rows;
    sr_status status = measure_median(s, site, what, &rows, why);
    *e = NO_ESTIMATE;
    if (status != SR_OK || !isfinite(at->alpha)) return status;
    if (!(sr_run_over_batch(at) && sr_run_uses(at, "mu")) && !at->observed) return SR_OK;
    const double unit = 2 / (1 + at->alpha);
    *e = (estimate){sqrt(unit / rows.value), sqrt(unit / rows.high), sqrt(unit / rows.low),
                    rows.steps};
    return SR_OK;
}

sr_status look_rows(const subject *s, answer *a, sr_failure *why) {
    *a = (answer){.statistic = "expected tid_mean", .range_of = "tid_mean", .severity = NOTABLE};
    a->limit = healthy_limit(s, "tid_mean");
    sr_status status = answer_rank(s, measure_expected, "rows", a, why);
    if (status != SR_OK) return status;
    if (!a->asked) return answer_nowhere(a, "no site with a batch mean, rows and alpha");
    if (a->verdict != FOUND) return SR_OK;
    estimate rows, seen;
    status = measure_median(s, a->top[0].site, "rows", &rows, why);
    if (status == SR_OK) status = measure_median(s, a->top[0].site, "tid_mean", &seen, why);
    answer_says(a,
                "A batch has %.4g rows at %s. Even if they were independent, the mean of so few "
                "would be %.2g deviations from its running value",
                rows.value, answer_site(s, a, 0), a->e.value);
    answer_says(a, isfinite(seen.value) ? "; observed is %.2g." : ".", seen.value);
    if (isfinite(seen.value)) answer_figure(a, "statplot compare --stat dist_mu_excess");
    return status;
}

sr_status measure_alike(const subject *s, int64_t site, const void *what, estimate *e,
                        sr_failure *why) {
    const double alpha = sr_run_get_site(s->run, site)->alpha;
    (void)what;
    *e = NO_ESTIMATE;
    if (!subject_has(s, "tid_mean") || !subject_has(s, "samples")) return SR_OK;
    double *tid = subject_room(s, 2, why);
    if (!tid) return why->status;
    double *samples = tid + s->count + 1;
    sr_status status = subject_column(s, site, "tid_mean", tid, why);
    if (status == SR_OK) status = subject_column(s, site, "samples", samples, why);
    for (int64_t i = 0; i < s->count && status == SR_OK; i++)
        tid[i] *= sqrt(samples[i] * (1 + alpha) / 2);
    if (status == SR_OK) status = estimate_median(tid, s->count, e, why);
    free(tid);
    return status;
}

sr_status look_alike(const subject *s, answer *a, sr_failure *why) {
    *a = (answer){.statistic = "like_samples", .range_of = "like_samples", .severity = NOTABLE};
    a->limit = healthy_limit(s, "like_samples");
    sr_status status = answer_rank(s, measure_alike, NULL, a, why);
    if (status != SR_OK) return status;
    if (!a->asked) return answer_nowhere(a, "no site with tid_mean, samples and alpha");
    if (a->verdict != FOUND) return SR_OK;
    estimate samples, excess;
    status = measure_median(s, a->top[0].site, "samples", &samples, why);
    if (status == SR_OK) status = measure_median(s, a->top[0].site, "dist_mu_excess", &excess, why);
    answer_says(a,
                "Batches of %.4g samples have means at %s that vary as those of %.2g independent "
                "samples would",
                samples.value, answer_site(s, a, 0), samples.value / (a->e.value * a->e.value));
    if (isfinite(excess.value))
        answer_says(a, " (variance over steps %.3g times that of independent rows)",
                    excess.value * excess.value);
    answer_says(a, ": samples of a batch are alike, or the mean moves faster than its running "
                   "value; the question on the running average tells which.");
    return status;
}

/* -- padding --------------------------------------------------------------------------------- */

sr_status measure_padding(const subject *s, int64_t site, const void *what, estimate *e,
                          sr_failure *why) {
    (void)what;
    *e = NO_ESTIMATE;
    if (!subject_has(s, "padded")) return SR_OK;
    double *padded = subject_room(s, 2, why);
    if (!padded) return why->status;
    double *rows = padded + s->count + 1;
    sr_status status = subject_column(s, site, "padded", padded, why);
    if (status == SR_OK) status = subject_column(s, site, "rows", rows, why);
    for (int64_t i = 0; i < s->count && status == SR_OK; i++) rows[i] += padded[i];
    if (status == SR_OK) status = estimate_ratio(padded, rows, s->count, e, why);
    if (status == SR_OK && isnan(e->value) && e->steps) *e = NO_ESTIMATE;
    free(padded);
    return status;
}

sr_status look_padding(const subject *s, answer *a, sr_failure *why) {
    *a = (answer){.statistic = "padded fraction", .range_of = "padding", .severity = MINOR};
    a->limit = 0.5;
    sr_status status = answer_rank(s, measure_padding, NULL, a, why);
    if (status != SR_OK || a->reason[0]) return status;
    if (!a->asked) return answer_not_asked(a, "no site with padded and rows");
    if (a->verdict == FOUND)
        answer_says(a,
                    "%.3g %% of the rows of %s are padding. They are no part of the recorded "
                    "statistics; a batch has the fewer rows for them, and a host that counts them "
                    "has other statistics than these.",
                    100 * a->e.value, answer_site(s, a, 0));
    return SR_OK;
}
