/* diagnose_healthy.c -- the ranges that the recorded runs span, as lines of healthy_ranges.h. */
#include <math.h>
#include <string.h>

#include "diagnose/diagnose.h"
#include "diagnose/diagnosis.h"

typedef struct measured {
    const char *statistic, *kind;
    measure_fn *measure;
    const char *what;
    bool single; /* one record is enough, without an interval */
} measured;

static const measured rows[] = {
    {"tid_mean", "vision", measure_median, "tid_mean", false},
    {"tid_var", "vision", measure_median, "tid_var", false},
    {"outliers", "vision", measure_outliers, "dist_mu", false},
    {"g_mu_share", "vision", measure_median, "g_mu_share", false},
    {"g_sigma2_share", "vision", measure_median, "g_sigma2_share", false},
    {"dead", "vision", measure_dead, NULL, false},
    {"growth", "vision", measure_growth, NULL, false},
    {"padding", "vision", measure_padding, NULL, false},
    {"like_samples", "vision", measure_alike, NULL, false},
    {"lag", "vision", measure_slow, NULL, false},
    {"embedding_rank", "text", measure_embedding, NULL, true},
    {"tid_mean", "watched", measure_own_median, "tid_mean", false},
    {"tid_var", "watched", measure_own_median, "tid_var", false},
    {"outliers", "watched", measure_outliers, "dist_mu", false},
    {"g_mu_share", "watched", measure_own_median, "g_mu_share", false},
    {"g_sigma2_share", "watched", measure_own_median, "g_sigma2_share", false},
    {"padding", "watched", measure_padding, NULL, false},
    {"like_samples", "watched", measure_alike, NULL, false},
};

typedef struct span {
    double low, high;
    int runs, sites;
} span;

static void take(const measured *m, const estimate *e, span *all, bool *counted) {
    if (!isfinite(m->single ? e->value : e->low)) return;
    if (!all->sites || e->value < all->low) all->low = e->value;
    if (!all->sites || e->value > all->high) all->high = e->value;
    all->sites++;
    all->runs += !*counted;
    *counted = true;
}

static sr_status measure_run(const measured *m, const subject *s, span *all, sr_failure *why) {
    bool counted = false;
    for (int64_t i = 0; i < s->info->sites; i++) {
        estimate e = NO_ESTIMATE;
        if (subject_is_replica(s, i)) continue;
        sr_status status = m->measure(s, i, m->what, &e, why);
        if (status != SR_OK) return status;
        take(m, &e, all, &counted);
    }
    return SR_OK;
}

static sr_status print_row(const measured *m, const run_set *set, FILE *out, sr_failure *why) {
    span all = {0};
    sr_status status = SR_OK;
    for (int r = 0; r < set->count && status == SR_OK; r++) {
        subject s;
        status = subject_open(&s, set->run[r], set->path[r], why);
        if (status == SR_OK) status = measure_run(m, &s, &all, why);
        subject_free(&s);
    }
    if (status == SR_OK && all.sites)
        fprintf(out, "    X(%s, \"%s\", %.3g, %.3g, %d, %d) \\\n", m->statistic, m->kind, all.low,
                all.high, all.runs, all.sites);
    return status;
}

sr_status diagnose_healthy(const char *kind, char **paths, int count, FILE *out, sr_failure *why) {
    run_set set;
    sr_status status = diagnose_open_whole(&set, count, paths, why);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && status == SR_OK; i++)
        if (strcmp(rows[i].kind, kind) == 0) status = print_row(&rows[i], &set, out, why);
    run_set_close(&set);
    return status;
}
