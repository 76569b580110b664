/* Singular values of the embedding matrix (PowerNorm, ICML 2020, figure 6; docs/norms.md 18.7).
 *
 * For each recorded matrix: sigma_1 >= sigma_2 >= ... >= sigma_d, and sigma_i / sigma_1. Default:
 * the last recorded step of every embedding; --all: every recorded step. The run file contains the
 * values; this program decomposes nothing. --summary prints a row for every recorded step instead,
 *
 *     effective_rank = exp(-sum_i p_i ln p_i),  p_i = sigma_i / sum_j sigma_j,  0 ln 0 = 0
 *                      (Roy and Vetterli, EUSIPCO 2007: 1 .. d; d for a flat spectrum)
 *     stable_rank    = sum_i sigma_i^2 / sigma_1^2
 *     decay          = -b of the least-squares line  ln sigma_i = a + b ln i,  first <= i <= last:
 *                      sigma_i falls like i^-decay
 *     r2             = fraction of the variance of ln sigma_i in that range that the line explains
 *     condition      = sigma_1 / sigma_m
 *
 * m counts the resolved values, above SVD_RESOLUTION of sigma_1. first is 2 by default, since
 * sigma_1 is mostly the mean of the rows; last is m. A spectrum that is not finite, or zero,
 * resolves nothing: all results are NaN. A flat spectrum has no variance to explain: r2 is NaN.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/column_summary.h"
#include "analysis/frame/stat_program.h"
#include "base/effective_rank.h"
#include "base/svd.h"

typedef struct settings {
    bool all, summary;
    int64_t fit_first, fit_last;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    FLAG_OPTION("Output", "all", AT(all), "no", "print every recorded step instead of the last"),
    FLAG_OPTION("Output", "summary", AT(summary), "no",
                "print a row for each recorded step: effective rank, decay exponent, condition"),
    INT_OPTION("Summary", "fit-first", AT(fit_first), "2", 1, 1000000, "index",
               "begin the fit of the decay exponent at index N"),
    INT_OPTION("Summary", "fit-last", AT(fit_last), "0", 0, 1000000, "index",
               "end it at index N; 0: at the last resolved value"),
};

enum { LEAST_FIT = 3 };

/* -- one spectrum ---------------------------------------------------------------------------- */

typedef struct line_fit {
    int64_t first, last; /* indices from 1; the fit is NaN when they are too few */
    double slope, r2;
} line_fit;

typedef struct spectrum {
    int64_t values, resolved;
    double largest, effective_rank, stable_rank, condition;
    line_fit decay;
} spectrum;

/* Relative to sigma_1, so that no square overflows. */
static double stable_rank(const double *sigma, int64_t count) {
    double squares = 0;
    for (int64_t i = 0; i < count; i++) squares += (sigma[i] / sigma[0]) * (sigma[i] / sigma[0]);
    return squares;
}

/* ln(sigma_i / sigma_1) against ln i: the same slope, and exact zeros for a flat spectrum. */
static void fit_line(const double *sigma, line_fit *f) {
    const double count = (double)(f->last - f->first + 1);
    double x = 0, y = 0, xx = 0, xy = 0, yy = 0;
    if (f->last - f->first + 1 < LEAST_FIT) return;
    for (int64_t i = f->first; i <= f->last; i++) {
        x += log((double)i) / count;
        y += log(sigma[i - 1] / sigma[0]) / count;
    }
    for (int64_t i = f->first; i <= f->last; i++) {
        const double dx = log((double)i) - x, dy = log(sigma[i - 1] / sigma[0]) - y;
        xx += dx * dx;
        xy += dx * dy;
        yy += dy * dy;
    }
    f->slope = xy / xx;
    f->r2 = xy * xy / (xx * yy);
}

static void measure(const settings *o, const double *sigma, int64_t count, spectrum *s) {
    int64_t m = 0;
    bool finite = true;
    for (int64_t i = 0; i < count; i++) finite = finite && isfinite(sigma[i]);
    while (finite && m < count && sigma[m] > SVD_RESOLUTION * sigma[0]) m++; /* they fall */
    const bool to_end = o->fit_last == 0 || o->fit_last > m;
    *s = (spectrum){count, m, count ? sigma[0] : NAN, NAN, NAN, NAN, {0}};
    s->decay = (line_fit){o->fit_first, to_end ? m : o->fit_last, NAN, NAN};
    if (!m) return;
    s->effective_rank = effective_rank(sigma, count);
    s->stable_rank = stable_rank(sigma, count);
    s->condition = sigma[0] / sigma[m - 1];
    fit_line(sigma, &s->decay);
}

/* -- rows ------------------------------------------------------------------------------------ */

static void declare_summary(tsv *t) {
    tsv_column(t, "values", "d, singular values");
    tsv_column(t, "resolved", "m, those above 5e-7 of sigma_1; 0 when one is not finite");
    tsv_column(t, "below_resolution", "d - m, the others");
    tsv_column(t, "sigma_1", "the largest");
    tsv_column(t, "effective_rank",
               "exp of the entropy of sigma_i / sum sigma, all d values (Roy and Vetterli 2007)");
    tsv_column(t, "stable_rank", "sum sigma_i^2 / sigma_1^2");
    tsv_column(t, "condition", "sigma_1 / sigma_m, of the resolved values");
    tsv_column(t, "decay",
               "decay exponent: minus the least-squares slope of ln sigma_i over ln i, i = "
               "fit_first .. fit_last; nan with fewer than 3 values");
    tsv_column(t, "fit_first", "index where the fit begins, from 1");
    tsv_column(t, "fit_last", "index where it ends: m, or --fit-last when that is less");
    tsv_column(t, "r2", "R^2 of the fit; nan where all its values are the same");
}

static void declare_columns(stat_table *table) {
    tsv *t = &table->table;
    tsv_column(t, "run", "run file as given");
    tsv_column(t, "embedding", "name of the matrix");
    tsv_column(t, "step", "forward and backward passes before it was decomposed");
    if (((const settings *)table->settings)->summary) {
        declare_summary(t);
        return;
    }
    tsv_column(t, "index", "i, from 1, largest singular value first");
    tsv_column(t, "value", "sigma_i");
    tsv_column(t, "relative", "sigma_i / sigma_1");
}

static void print_summary(tsv *t, const char *path, const char *name, int64_t step,
                          const spectrum *s) {
    tsv_text(t, path);
    tsv_text(t, name);
    tsv_int(t, step);
    tsv_int(t, s->values);
    tsv_int(t, s->resolved);
    tsv_int(t, s->values - s->resolved);
    tsv_real(t, s->largest);
    tsv_real(t, s->effective_rank);
    tsv_real(t, s->stable_rank);
    tsv_real(t, s->condition);
    tsv_real(t, 0 - s->decay.slope); /* 0, not -0 */
    tsv_int(t, s->decay.first);
    tsv_int(t, s->decay.last);
    tsv_real(t, s->decay.r2);
}

static sr_status print_embedding(stat_table *table, int r, const char *name, sr_failure *why) {
    const settings *s = table->settings;
    const run_set *set = table->set;
    tsv *t = &table->table;
    sr_run_embedding e = SR_INIT(sr_run_embedding, .rows = 0);
    int64_t step;
    sr_status status = sr_run_get_embedding(set->run[r], name, &e, why);
    if (status != SR_OK) return status;
    double *value = malloc((size_t)(e.values + 1) * sizeof *value);
    if (!value) return sr_fail(why, SR_MEMORY, "out of memory");
    const int64_t first = s->all || s->summary || e.records == 0 ? 0 : e.records - 1;
    for (int64_t i = first; i < e.records && status == SR_OK; i++) {
        status = sr_run_singular_values(set->run[r], name, i, &step, value, why);
        if (status != SR_OK) break;
        if (s->summary) {
            spectrum of;
            measure(s, value, e.values, &of);
            print_summary(t, set->path[r], name, step, &of);
        }
        for (int64_t k = 0; k < e.values && !s->summary; k++) {
            tsv_text(t, set->path[r]);
            tsv_text(t, name);
            tsv_int(t, step);
            tsv_int(t, k + 1);
            tsv_real(t, value[k]);
            tsv_real(t, value[k] / value[0]);
        }
    }
    free(value);
    return status;
}

/* Counts a run's records; how they were computed goes into the head of the table. */
static sr_status count_records(const run_set *set, int r, tsv *t, int64_t *records,
                               sr_failure *why) {
    const char *name;
    *records = 0;
    for (int i = 0; (name = sr_run_name(set->run[r], "embeddings", i)); i++) {
        sr_run_embedding e = SR_INIT(sr_run_embedding, .rows = 0);
        sr_status status = sr_run_get_embedding(set->run[r], name, &e, why);
        if (status != SR_OK) return status;
        *records += e.records;
        if (e.records)
            tsv_note(t, "method", "%s: %s: %s", set->path[r], name,
                     *e.method ? e.method : "the recording program does not name it");
    }
    return SR_OK;
}

/* A run that has not ended, and has an embedding whose values come at the end. */
static bool is_waiting(const run_set *set, int r) {
    const char *status = sr_run_get_info(set->run[r])->status;
    return strcmp(status, "complete") != 0 && strcmp(status, "diverged") != 0 &&
           sr_run_name(set->run[r], "embeddings", 0);
}

/* Notes the runs without any; a failure when there is no other. */
static sr_status find_records(stat_table *table, sr_failure *why) {
    const settings *s = table->settings;
    const run_set *set = table->set;
    tsv *t = &table->table;
    int64_t total = 0;
    bool waiting = false;
    if (s->fit_last && s->fit_last < s->fit_first)
        return sr_fail(why, SR_USAGE, "--fit-last is before --fit-first");
    for (int r = 0; r < set->count; r++) {
        int64_t records;
        sr_status status = count_records(set, r, t, &records, why);
        if (status != SR_OK) return status;
        if (!records)
            tsv_note(t, "note", "%s: no singular values of an embedding%s: left out", set->path[r],
                     is_waiting(set, r) ? " before its end" : "");
        waiting = waiting || is_waiting(set, r);
        total += records;
    }
    if (total) return SR_OK;
    sr_fail(why, SR_FORMAT, "%s%s has no singular values of an embedding", set->path[0],
            set->count > 1 ? " (and no other run)" : "");
    if (waiting)
        sr_hint(why, "the run has not ended: `statrec train --svd-every N` records them earlier");
    else
        sr_hint(why, "`statrec train` records them for models with word embeddings");
    return SR_FORMAT;
}

static sr_status print_runs(stat_table *t, sr_failure *why) {
    sr_status status = SR_OK;
    for (int r = 0; r < t->set->count; r++) {
        const char *name;
        for (int i = 0; (name = sr_run_name(t->set->run[r], "embeddings", i)); i++)
            if (status == SR_OK) status = print_embedding(t, r, name, why);
    }
    return status;
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-svd",
        .usage = "RUN.h5... [--all]\n"
                 "RUN.h5... --summary [--fit-first I] [--fit-last I]",
        .does =
            "Singular values of the recorded embedding matrices, and normalized by the largest.\n"
            "--summary: effective rank, stable rank, decay exponent, condition of each spectrum.",
        .options = {rows, sizeof rows / sizeof rows[0]},
        .settings = sizeof(settings),
        .head = find_records,
        .columns = declare_columns,
        .rows = print_runs,
    };
    return stat_program_main(&p, argc, argv);
}
