/* diagnosed_columns.c -- columns and medians of a diagnosed run, each read and taken once.
 *
 * Questions go from site to site, and a chunk of the file has the rows of all sites. So a column is
 * read for as many neighbouring sites as fit, and the last few statistics are kept. Several
 * questions ask for the same median; its interval costs a thousand resamples, hence it is kept too.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/column_summary.h"
#include "diagnose/diagnosis.h"

enum { STATISTICS = 5, MEDIANS = 32 };

/* One statistic at the sites first .. first + sites - 1, all steps. */
typedef struct band {
    const statistic *stat; /* NULL: empty */
    int64_t first, sites;
    column_block of; /* [sites][steps] */
} band;

/* The medians of one statistic. */
typedef struct medians {
    const char *name;
    estimate *at; /* [sites] */
    bool *known;  /* [sites] */
} medians;

struct kept_columns {
    band band[STATISTICS];
    int next, names;
    medians of[MEDIANS];
};

kept_columns *columns_keep(void) {
    return calloc(1, sizeof(kept_columns));
}

void columns_drop(kept_columns *k) {
    for (int i = 0; k && i < STATISTICS; i++) columns_free(&k->band[i].of);
    for (int i = 0; k && i < k->names; i++) free(k->of[i].at), free(k->of[i].known);
    free(k);
}

/* As many columns as one statistic may have in memory. */
static int64_t sites_together(const subject *s, int64_t site) {
    const int64_t left = s->info->sites - site;
    const int64_t fit =
        column_memory_limit() / (STATISTICS + 1) / (s->info->steps + 1) / (int64_t)sizeof(double);
    return fit < 1 ? 1 : fit < left ? fit : left;
}

static sr_status band_read(band *b, const subject *s, int64_t site, const statistic *stat,
                           sr_failure *why) {
    const int64_t steps = s->info->steps;
    const int sites = (int)sites_together(s, site);
    columns_free(&b->of);
    *b = (band){.first = site, .sites = sites};
    series *of = malloc((size_t)sites * sizeof *of);
    if (!of) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < sites; i++) of[i] = (series){s->run, site + i, stat, FROM_SCALARS};
    sr_status status = columns_create(&b->of, sites, steps + 1, why);
    if (status == SR_OK) status = series_read_all(of, sites, 0, steps, b->of.value, NULL, why);
    if (status == SR_OK) b->stat = stat;
    free(of);
    return status;
}

/* *value [info->steps]: until the next call. */
static sr_status columns_read(const subject *s, int64_t site, const statistic *stat,
                              const double **value, sr_failure *why) {
    kept_columns *k = s->columns;
    for (int i = 0; i < STATISTICS; i++) {
        const band *b = &k->band[i];
        if (b->stat != stat || site < b->first || site >= b->first + b->sites) continue;
        *value = b->of.value[site - b->first];
        return SR_OK;
    }
    band *b = &k->band[k->next];
    for (int i = 0; i < STATISTICS; i++) /* the next sites replace those before */
        if (k->band[i].stat == stat) b = &k->band[i];
    if (b == &k->band[k->next]) k->next = (k->next + 1) % STATISTICS;
    sr_status status = band_read(b, s, site, stat, why);
    *value = status == SR_OK ? b->of.value[0] : NULL;
    return status;
}

/* -- columns of the questions ------------------------------------------------------------------ */

/* Statistics of single passes, if the passes of a step are merged: the host program's custom
 * scalars. */
static const struct {
    const char *name;
    statistic of_pass;
} of_passes[] = {
    {"tid_mean", {.word = "pass_tid_mean", .name = "pass_tid_mean"}},
    {"tid_var", {.word = "pass_tid_var", .name = "pass_tid_var"}},
    {"samples", {.word = "pass_samples", .name = "pass_samples"}},
    {"pass_rows", {.word = "pass_rows", .name = "pass_rows"}},
};

/* The statistic of the site's own batches; NULL: the file has only merged rows. A batch norm's rows
 * are the rows of a pass; merged rows make its discrepancy too small. */
static const statistic *find_statistic(const subject *s, int64_t site, const char *name) {
    const bool merged = sr_run_get_site(s->run, site)->merged == 1;
    for (size_t i = 0; i < sizeof of_passes / sizeof of_passes[0]; i++)
        if (merged && strcmp(of_passes[i].name, name) == 0)
            return sr_run_has_scalar(s->run, of_passes[i].of_pass.name) ? &of_passes[i].of_pass
                                                                        : NULL;
    if (merged && (strncmp(name, "rel_", 4) == 0 || strstr(name, "_excess"))) return NULL;
    for (int i = 0; i < RECORDED_STATISTICS; i++)
        if (strcmp(recorded_statistics[i].name, name) == 0) return &recorded_statistics[i];
    return NULL;
}

int64_t subject_judged(const subject *s, const char *name) {
    static const char *const late[] = {"tid_mean", "tid_var", "rel_psi", "like_samples"};
    int64_t i = 0;
    for (size_t k = 0; k < sizeof late / sizeof late[0]; k++) {
        if (strcmp(name, late[k]) != 0) continue;
        while (i < s->count && s->step[i] < second_half_from(s->window.end)) i++;
    }
    return i;
}

sr_status subject_column(const subject *s, int64_t site, const char *name, double *value,
                         sr_failure *why) {
    const statistic *stat = find_statistic(s, site, name);
    const int64_t judged = subject_judged(s, name);
    const double *all = NULL;
    sr_status status = stat && s->count ? columns_read(s, site, stat, &all, why) : SR_OK;
    for (int64_t i = 0; i < s->count && status == SR_OK; i++)
        value[i] = all && s->usual[i] && i >= judged ? all[s->first + i] : NAN;
    return status;
}

sr_status subject_history(const subject *s, int64_t site, const char *name, double *value,
                          sr_failure *why) {
    const statistic *stat = find_statistic(s, site, name);
    const double *all = NULL;
    sr_status status = stat && s->info->steps ? columns_read(s, site, stat, &all, why) : SR_OK;
    for (int64_t i = 0; i < s->info->steps && status == SR_OK; i++) value[i] = all ? all[i] : NAN;
    return status;
}

/* -- medians ---------------------------------------------------------------------------------- */

/* NULL when out of memory. With too many statistics the last one is dropped. */
static medians *medians_of(kept_columns *k, const char *name, int64_t sites) {
    for (int i = 0; i < k->names; i++)
        if (strcmp(k->of[i].name, name) == 0) return &k->of[i];
    if (k->names == MEDIANS) free(k->of[--k->names].at), free(k->of[k->names].known);
    medians m = {name, malloc((size_t)(sites + 1) * sizeof *m.at),
                 calloc((size_t)sites + 1, sizeof *m.known)};
    if (!m.at || !m.known) {
        free(m.at), free(m.known);
        return NULL;
    }
    k->of[k->names] = m;
    return &k->of[k->names++];
}

/* Medians of this site and of those read with it, which are asked next. Each thread has its own
 * sites, so the number of threads changes nothing. */
static sr_status take_medians(const subject *s, int64_t site, const char *name, medians *m,
                              sr_failure *why) {
    const int64_t first = site, end = site + sites_together(s, site);
    column_block b = {0};
    sr_status status = columns_create(&b, end - first, s->count + 1, why);
    for (int64_t i = first; i < end && status == SR_OK; i++)
        status = subject_column(s, i, name, b.value[i - first], why);
    if (status == SR_OK) {
#pragma omp parallel for schedule(dynamic)
        for (int64_t i = first; i < end; i++) {
            sr_failure own = {0};
            const sr_status done = estimate_median(b.value[i - first], s->count, &m->at[i], &own);
            m->known[i] = done == SR_OK;
#pragma omp critical
            if (done != SR_OK && status == SR_OK) *why = own, status = done;
        }
    }
    columns_free(&b);
    return status;
}

sr_status columns_median(const subject *s, int64_t site, const char *name, estimate *e,
                         sr_failure *why) {
    medians *m = medians_of(s->columns, name, s->info->sites);
    if (!m) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = m->known[site] ? SR_OK : take_medians(s, site, name, m, why);
    *e = status == SR_OK ? m->at[site] : NO_ESTIMATE;
    return status;
}
