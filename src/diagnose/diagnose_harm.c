/* diagnose_harm.c -- statistics as signs of harm: the value at the worst site of each run beside
 * the run's loss by running statistics in evaluation. Prints lines of harm_ranges.h.
 *
 * Covers runs that validated both ways and have a site with other statistics in evaluation.
 * Harmful: a gap is found (diagnose_gap.c). Harmless: its interval ends below the limit. Runs whose
 * interval contains the limit are named, but belong to neither.
 */
#include <math.h>
#include <string.h>

#include "diagnose/diagnose.h"
#include "diagnose/diagnosis.h"

typedef struct measured {
    const char *statistic;
    measure_fn *measure;
    const char *what;
} measured;

static const measured rows[] = {
    {"tid_mean", measure_own_median, "tid_mean"},
    {"tid_var", measure_own_median, "tid_var"},
    {"rel_psi", measure_psi, "rel_psi"},
    {"outliers", measure_outliers, "dist_mu"},
    {"outliers", measure_outliers, "dist_sigma2"},
    {"outliers", measure_outliers, "dist_psi2"},
    {"g_mu_share", measure_own_median, "g_mu_share"},
    {"g_sigma2_share", measure_own_median, "g_sigma2_share"},
    {"g_psi2_share", measure_own_median, "g_psi2_share"},
    {"dead", measure_dead, "dead"},
    {"growth", measure_growth, "growth"},
    {"padding", measure_padding, "padding"},
    {"expected_tid_mean", measure_expected, "rows"},
    {"like_samples", measure_alike, "like_samples"},
    {"lag", measure_slow, "lag"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

typedef struct span {
    double low, high;
    int runs;
} span;

typedef struct harms {
    span harmless[ROWS], harmful[ROWS]; /* of rows with the same statistic the first is used */
} harms;

static int first_row(int i) {
    for (int k = 0; k < i; k++)
        if (strcmp(rows[k].statistic, rows[i].statistic) == 0) return k;
    return i;
}

static void take(span *all, double value) {
    if (!all->runs || value < all->low) all->low = value;
    if (!all->runs || value > all->high) all->high = value;
    all->runs++;
}

/* worst [ROWS]: the value at the site that the question would name; NaN without an interval. */
static sr_status measure_worst(const subject *s, double *worst, sr_failure *why) {
    for (int i = 0; i < ROWS; i++) worst[i] = NAN;
    for (int i = 0; i < ROWS; i++) {
        answer a = {.statistic = rows[i].what, .e = NO_ESTIMATE};
        const int row = first_row(i);
        sr_status status = answer_rank(s, rows[i].measure, rows[i].what, &a, why);
        if (status != SR_OK) return status;
        if (a.asked && !(a.e.value <= worst[row])) worst[row] = a.e.value;
    }
    return SR_OK;
}

static void print_run(const subject *s, const gap *g, FILE *out) {
    const char *slash = strrchr(s->path, '/');
    static const char *const word[] = {"harmless", "", "notable", "severe"};
    fprintf(out, " * %s: %s %.3g [%.3g, %.3g] %s: %s\n", slash ? slash + 1 : s->path,
            g->metric->name, g->e.value, g->e.low, g->e.high, g->metric->unit,
            gap_is_told(g) ? word[gap_severity(g)] : "open");
}

static sr_status add_run(const subject *s, harms *all, FILE *out, sr_failure *why) {
    gap g;
    double worst[ROWS];
    sr_status status = gap_measure(s, &g, why);
    if (status != SR_OK || !isfinite(g.e.low) || !gap_is_possible(s)) return status;
    print_run(s, &g, out);
    if (!gap_is_told(&g)) return SR_OK;
    status = measure_worst(s, worst, why);
    for (int i = 0; i < ROWS && status == SR_OK; i++)
        if (isfinite(worst[i]))
            take(gap_severity(&g) ? all->harmful + i : all->harmless + i, worst[i]);
    return status;
}

static void print_rows(const harms *all, FILE *out) {
    fprintf(out, " */\n#define HARM_RANGES(X)");
    for (int i = 0; i < ROWS; i++) {
        const span *less = &all->harmless[i], *ful = &all->harmful[i];
        if (first_row(i) != i || less->runs + ful->runs == 0) continue;
        fprintf(out, " \\\n    X(%s, %.3g, %.3g, %d, %.3g, %.3g, %d)", rows[i].statistic, less->low,
                less->high, less->runs, ful->low, ful->high, ful->runs);
    }
    fputc('\n', out);
}

sr_status diagnose_harm(char **paths, int count, FILE *out, sr_failure *why) {
    run_set set;
    harms all = {0};
    sr_status status = diagnose_open_whole(&set, count, paths, why);
    for (int r = 0; r < set.count && status == SR_OK; r++) {
        subject s;
        status = subject_open(&s, set.run[r], set.path[r], why);
        if (status == SR_OK) status = add_run(&s, &all, out, why);
        subject_free(&s);
    }
    if (status == SR_OK) print_rows(&all, out);
    run_set_close(&set);
    return status;
}
