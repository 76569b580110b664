/* A statistic of one site over the steps of a run: as recorded in /scalars, or computed again from
 * the rows of /vectors. Reads in blocks, so that memory does not grow with the file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"

#define NAME_OF(name, ...)       #name,
#define DEFINITION_OF(name, ...) {#name, __VA_ARGS__},

static const char *const vector_name[] = {SR_VECTORS(NAME_OF)};

const char *statistic_definition(const statistic *stat) {
    static const struct { const char *name, *definition; } scalar[] = {SR_SCALARS(DEFINITION_OF)};
    if (stat->definition) return stat->definition;
    for (size_t i = 0; i < sizeof scalar / sizeof scalar[0]; i++)
        if (strcmp(scalar[i].name, stat->name) == 0) return scalar[i].definition;
    return "";
}

int64_t series_length(const series *s) {
    const sr_run_info *info = sr_run_get_info(s->run);
    return s->source == FROM_SCALARS ? info->steps : info->vectors;
}

/* -- from /scalars --------------------------------------------------------------------------- */

static sr_status read_scalars(const series *s, int64_t first, int64_t count, double *value,
                              int64_t *step, sr_failure *why) {
    float *raw = malloc((size_t)count * sizeof *raw);
    if (!raw) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = sr_run_scalar(s->run, s->stat->name, s->site, first, count, raw, why);
    if (status == SR_OK && step) status = sr_run_step_ints(s->run, "step", first, count, step, why);
    for (int64_t i = 0; status == SR_OK && i < count; i++) value[i] = raw[i];
    free(raw);
    return status;
}

/* -- from /vectors --------------------------------------------------------------------------- */

/* Row counts n of the steps in step [count]: /scalars/rows has a row per step, /vectors fewer. */
static sr_status read_row_counts(const series *s, unsigned needs, int64_t count,
                                 const int64_t *step, double *rows, sr_failure *why) {
    const int64_t steps = sr_run_get_info(s->run)->steps;
    int64_t at[2048];
    float n[2048];
    int64_t i = 0;
    for (int64_t j = 0; j < count; j++) rows[j] = NAN;
    if (!(needs & NEEDS_ROWS) || !sr_run_has_scalar(s->run, "rows")) return SR_OK;
    for (int64_t first = 0; first < steps && i < count; first += 2048) {
        const int64_t m = steps - first < 2048 ? steps - first : 2048;
        sr_status status = sr_run_step_ints(s->run, "step", first, m, at, why);
        if (status != SR_OK) return status;
        if (at[m - 1] < step[i]) continue;
        status = sr_run_scalar(s->run, "rows", s->site, first, m, n, why);
        if (status != SR_OK) return status;
        for (int64_t k = 0; k < m && i < count; k++)
            if (at[k] == step[i])
                rows[i++] = n[k];
            else if (at[k] > step[i])
                k--, i++;
    }
    return SR_OK;
}

typedef struct vector_block {
    int64_t width, count;
    float *raw;                     /* [count, width] of one vector */
    double *value[SR_VECTOR_COUNT]; /* [count, width] of the vectors needed */
    int64_t *step;                  /* [count] */
    double *rows;                   /* [count] */
} vector_block;

static void block_free(vector_block *b) {
    for (int v = 0; v < SR_VECTOR_COUNT; v++) free(b->value[v]);
    free(b->raw);
    free(b->step);
    free(b->rows);
}

static sr_status block_create(vector_block *b, unsigned needs, int64_t width, int64_t count,
                              sr_failure *why) {
    const size_t values = (size_t)(width * count);
    *b = (vector_block){.width = width, .count = count};
    b->raw = malloc(values * sizeof *b->raw);
    b->step = malloc((size_t)count * sizeof *b->step);
    b->rows = malloc((size_t)count * sizeof *b->rows);
    bool whole = b->raw && b->step && b->rows;
    for (int v = 0; v < SR_VECTOR_COUNT; v++) {
        if (!(needs & 1u << v)) continue;
        b->value[v] = malloc(values * sizeof *b->value[v]);
        whole = whole && b->value[v];
    }
    if (whole) return SR_OK;
    block_free(b);
    return sr_fail(why, SR_MEMORY, "out of memory");
}

static sr_status block_read(vector_block *b, const series *s, unsigned needs, int64_t first,
                            int64_t count, sr_failure *why) {
    sr_status status = sr_run_vector_steps(s->run, first, count, b->step, why);
    if (status == SR_OK) status = read_row_counts(s, needs, count, b->step, b->rows, why);
    for (int v = 0; v < SR_VECTOR_COUNT && status == SR_OK; v++) {
        if (!b->value[v]) continue;
        status = sr_run_vector(s->run, vector_name[v], s->site, first, count, b->raw, why);
        for (int64_t i = 0; status == SR_OK && i < count * b->width; i++)
            b->value[v][i] = b->raw[i];
    }
    return status;
}

static double block_value(const vector_block *b, const series *s, int64_t i) {
    const sr_run_site *site = sr_run_get_site(s->run, s->site);
    vector_row row = {
        .width = b->width, .eps = site->eps, .rows = b->rows[i], .alpha = site->alpha};
    for (int v = 0; v < SR_VECTOR_COUNT; v++)
        row.v[v] = b->value[v] ? b->value[v] + i * b->width : NULL;
    return s->stat->recompute(&row);
}

/* Rows of a block: few enough that its values stay in the cache between two statistics. */
static int64_t block_rows(int64_t width, int64_t count) {
    const int64_t most = 32 * (1 + (1 << 10) / (width > 0 ? width : 1));
    return most < count ? most : count;
}

/* One pass for all statistics: they read the same vectors. */
static sr_status read_vectors(const series *s, int statistics, int64_t first, int64_t count,
                              double *const *value, int64_t *step, sr_failure *why) {
    const int64_t width = sr_run_get_site(s->run, s->site)->width;
    unsigned needs = 0;
    vector_block b;
    for (int k = 0; k < statistics; k++) needs |= s[k].stat->needs;
    sr_status status = block_create(&b, needs, width, block_rows(width, count), why);
    if (status != SR_OK) return status;
    for (int64_t at = 0; at < count && status == SR_OK; at += b.count) {
        const int64_t m = count - at < b.count ? count - at : b.count;
        status = block_read(&b, s, needs, first + at, m, why);
        for (int k = 0; k < statistics && status == SR_OK; k++)
            for (int64_t i = 0; i < m; i++) value[k][at + i] = block_value(&b, &s[k], i);
        for (int64_t i = 0; step && status == SR_OK && i < m; i++) step[at + i] = b.step[i];
    }
    block_free(&b);
    return status;
}

sr_status series_read_all(const series *s, int statistics, int64_t first, int64_t count,
                          double *const *value, int64_t *step, sr_failure *why) {
    if (count == 0 || statistics == 0) return SR_OK;
    if (s->source == FROM_VECTORS)
        return read_vectors(s, statistics, first, count, value, step, why);
    sr_status status = SR_OK;
    for (int k = 0; k < statistics && status == SR_OK; k++)
        status = read_scalars(&s[k], first, count, value[k], k ? NULL : step, why);
    return status;
}

sr_status series_read(const series *s, int64_t first, int64_t count, double *value, int64_t *step,
                      sr_failure *why) {
    return series_read_all(s, 1, first, count, &value, step, why);
}

/* -- which sites have it --------------------------------------------------------------------- */

static sr_status scalars_recorded(const sr_runfile *run, const char *name, bool *recorded,
                                  sr_failure *why) {
    const sr_run_info *info = sr_run_get_info(run);
    const int64_t block = 1 + (1 << 18) / (info->sites > 0 ? info->sites : 1);
    float *value = malloc((size_t)(block * info->sites + 1) * sizeof *value);
    if (!value) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = SR_OK;
    int64_t missing = info->sites;
    for (int64_t first = 0; first < info->steps && missing && status == SR_OK; first += block) {
        const int64_t m = info->steps - first < block ? info->steps - first : block;
        status = sr_run_scalar(run, name, -1, first, m, value, why);
        for (int64_t i = 0; status == SR_OK && i < m * info->sites; i++) {
            if (isnan(value[i]) || recorded[i % info->sites]) continue;
            recorded[i % info->sites] = true;
            missing--;
        }
    }
    free(value);
    return status;
}

/* What a method records is the same in every step, so the first rows tell; a run that has diverged
 * by then shows infinities or NaN in the values, and its first row is still from before that. */
static sr_status vectors_recorded(const series *s, bool *recorded, sr_failure *why) {
    enum { LOOK = 16 };
    double value[LOOK];
    const int64_t rows = series_length(s), count = rows < LOOK ? rows : LOOK;
    for (int v = 0; v < SR_VECTOR_COUNT; v++)
        if (s->stat->needs & 1u << v && !sr_run_has_vector(s->run, vector_name[v])) return SR_OK;
    sr_status status = series_read(s, 0, count, value, NULL, why);
    for (int64_t i = 0; i < count && status == SR_OK; i++)
        if (!isnan(value[i])) *recorded = true;
    return status;
}

static bool word_among(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
    return false;
}

/* Where batch statistics are only observed, sum_gx is that of bn's xhat. */
static bool formula_holds(const statistic *stat, const sr_run_site *site) {
    return !stat->norms || word_among(stat->norms, site->observed ? "bn" : site->norm);
}

sr_status series_recorded(const sr_runfile *run, const statistic *stat, series_source source,
                          bool *recorded, sr_failure *why) {
    const int64_t sites = sr_run_get_info(run)->sites;
    memset(recorded, 0, (size_t)sites * sizeof *recorded);
    if (source == FROM_SCALARS)
        return sr_run_has_scalar(run, stat->name) ? scalars_recorded(run, stat->name, recorded, why)
                                                  : SR_OK;
    sr_status status = SR_OK;
    for (int64_t i = 0; i < sites && stat->recompute && status == SR_OK; i++) {
        const series s = {run, i, stat, source};
        if (!formula_holds(stat, sr_run_get_site(run, i))) continue;
        status = vectors_recorded(&s, &recorded[i], why);
    }
    return status;
}
