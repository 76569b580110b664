/* A statistic of one site over the steps of a run. It comes from /scalars, or from /vectors
 * (series_vectors.c). Reads in blocks: memory does not grow with the file.
 */
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/series/series.h"

#define DEFINITION_OF(name, ...) {#name, __VA_ARGS__},

const char *statistic_definition(const statistic *stat) {
    static const struct { const char *name, *definition; } scalar[] = {SR_SCALARS(DEFINITION_OF)};
    if (stat->definition) return stat->definition;
    for (size_t i = 0; i < sizeof scalar / sizeof scalar[0]; i++)
        if (strcmp(scalar[i].name, stat->name) == 0) return scalar[i].definition;
    const stat_form *f = form_find(stat->name);
    return f ? f->definition : "";
}

/* -- from /scalars --------------------------------------------------------------------------- */

/* HDF5 takes about as long for one value of a row as for COLUMNS neighbours. */
enum { COLUMNS = 64, ROWS_BYTES = 1 << 18, FORM_ROWS = 4096, TILE_ROWS = 64, MANY_ROWS = 1 << 16 };

static sr_status read_column(const series *s, const char *name, int64_t first, int64_t count,
                             double *value, sr_failure *why) {
    float raw[4096];
    sr_status status = SR_OK;
    for (int64_t at = 0; at < count && status == SR_OK; at += 4096) {
        const int64_t m = count - at < 4096 ? count - at : 4096;
        status = sr_run_scalar(s->run, name, s->site, first + at, m, raw, why);
        for (int64_t i = 0; status == SR_OK && i < m; i++) value[at + i] = (double)raw[i];
    }
    return status;
}

/* A pass over a dataset with all sites, for the sites of s[n]. Threads read a block in turn. */
typedef struct row_pass {
    const series *s;
    int n;
    const char *name;
    int64_t sites, first, count, block;
    double *const *value; /* [n][count] */
    pthread_mutex_t turn;
    int64_t at; /* the next block, from the first row wanted */
    sr_status status;
    sr_failure *why;
} row_pass;

/* Reads the next rows into raw [block, sites]; their number, 0 after the last and after a
 * failure. */
static int64_t take_rows(row_pass *p, int64_t *at, float *raw) {
    pthread_mutex_lock(&p->turn);
    const int64_t left = p->status == SR_OK ? p->count - p->at : 0;
    int64_t rows = left < p->block ? left : p->block;
    *at = p->at;
    if (rows) p->status = sr_run_scalar(p->s->run, p->name, -1, p->first + *at, rows, raw, p->why);
    if (p->status != SR_OK) rows = 0;
    p->at += rows;
    pthread_mutex_unlock(&p->turn);
    return rows;
}

/* Rows `at` .. at + count - 1 into the columns. */
static void place_rows(const row_pass *p, int64_t at, int64_t count, const float *raw) {
    /* so few rows that neighbours are still in the cache when their turn comes */
    for (int64_t tile = 0, end; tile < count; tile = end) {
        end = count - tile < TILE_ROWS ? count : tile + TILE_ROWS;
        for (int k = 0; k < p->n; k++)
            for (int64_t i = tile; i < end; i++)
                p->value[k][at + i] = (double)raw[i * p->sites + p->s[k].site];
    }
}

static sr_status read_rows(const series *s, int n, const char *name, int64_t first, int64_t count,
                           double *const *value, sr_failure *why) {
    const int64_t sites = sr_run_get_info(s->run)->sites, block = 1 + ROWS_BYTES / (4 * sites);
    const int threads = count >= MANY_ROWS && omp_get_max_threads() > 1 ? 2 : 1;
    row_pass p = {.s = s,
                  .n = n,
                  .name = name,
                  .sites = sites,
                  .first = first,
                  .count = count,
                  .block = block,
                  .value = value,
                  .why = why};
    float *raw = malloc((size_t)(threads * block * sites) * sizeof *raw);
    if (!raw) return sr_fail(why, SR_MEMORY, "out of memory");
    pthread_mutex_init(&p.turn, NULL);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        float *own = raw + omp_get_thread_num() * block * sites;
        for (int64_t at, rows; (rows = take_rows(&p, &at, own)) > 0;) place_rows(&p, at, rows, own);
    }
    pthread_mutex_destroy(&p.turn);
    free(raw);
    return p.status;
}

/* Reads one dataset at the sites of s[n], all in one run. */
static sr_status read_dataset(const series *s, int n, const char *name, int64_t first,
                              int64_t count, double *const *value, sr_failure *why) {
    sr_status status = SR_OK;
    if (strcmp(name, "tokens") == 0) {
        for (int k = 0; k < n && status == SR_OK; k++)
            status = sr_run_step_reals(s->run, name, first, count, value[k], why);
        return status;
    }
    if (n * COLUMNS >= sr_run_get_info(s->run)->sites)
        return read_rows(s, n, name, first, count, value, why);
    for (int k = 0; k < n && status == SR_OK; k++)
        status = read_column(&s[k], name, first, count, value[k], why);
    return status;
}

/* -- forms: computed from several datasets --------------------------------------------------- */

static sr_status read_form(const series *s, int n, const stat_form *f, int64_t first, int64_t count,
                           double *const *value, sr_failure *why) {
    const int terms = form_terms(f), columns = terms * n;
    double *memory = malloc((size_t)(columns * FORM_ROWS) * sizeof *memory);
    double **read = malloc((size_t)columns * sizeof *read); /* [terms, n][FORM_ROWS] */
    sr_status status = memory && read ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < columns && status == SR_OK; i++) read[i] = memory + i * FORM_ROWS;
    for (int64_t at = 0; at < count && status == SR_OK; at += FORM_ROWS) {
        const int64_t m = count - at < FORM_ROWS ? count - at : FORM_ROWS;
        for (int j = 0; j < terms && status == SR_OK; j++)
            status = read_dataset(s, n, f->term[j], first + at, m, read + j * n, why);
        for (int k = 0; k < n && status == SR_OK; k++) {
            const form_site site = form_site_of(s[k].run, s[k].site, f);
            for (int64_t i = 0; i < m; i++) {
                double term[FORM_TERMS];
                for (int j = 0; j < terms; j++) term[j] = read[j * n + k][i];
                value[k][at + i] = f->combine(term, &site);
            }
        }
    }
    free(memory);
    free(read);
    return status;
}

/* -- several statistics ---------------------------------------------------------------------- */

static bool seen_before(const series *s, int k) {
    for (int i = 0; i < k; i++)
        if (s[i].stat == s[k].stat) return true;
    return false;
}

/* The series of one statistic, side by side. */
static sr_status read_scalars(const series *s, int series_count, int64_t first, int64_t count,
                              double *const *value, sr_failure *why) {
    series *alike = malloc((size_t)series_count * sizeof *alike);
    double **into = malloc((size_t)series_count * sizeof *into);
    sr_status status = alike && into ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int k = 0; k < series_count && status == SR_OK; k++) {
        int n = 0;
        if (seen_before(s, k)) continue;
        for (int i = k; i < series_count; i++) {
            if (s[i].stat != s[k].stat) continue;
            alike[n] = s[i];
            into[n++] = value[i];
        }
        const stat_form *f = form_find(s[k].stat->name);
        status = f ? read_form(alike, n, f, first, count, into, why)
                   : read_dataset(alike, n, s[k].stat->name, first, count, into, why);
    }
    free(alike);
    free(into);
    return status;
}

/* -- from either ----------------------------------------------------------------------------- */

sr_status series_read_all(const series *s, int series_count, int64_t first, int64_t count,
                          double *const *value, int64_t *step, sr_failure *why) {
    if (count == 0 || series_count == 0) return SR_OK;
    sr_status status = step ? series_read_steps(s, first, count, step, why) : SR_OK;
    if (status != SR_OK) return status;
    return s->source == FROM_VECTORS ? vectors_read(s, series_count, first, count, value, why)
                                     : read_scalars(s, series_count, first, count, value, why);
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

enum { LOOK = 16 }; /* rows */

/* A method records the same statistics at every step, so the first rows suffice. A run may diverge
 * within them; its first row is still finite. */
static sr_status look_at_rows(const series *s, int count, bool *recorded, sr_failure *why) {
    const int64_t length = series_length(s), rows = length < LOOK ? length : LOOK;
    double *memory = malloc((size_t)(count * LOOK + 1) * sizeof *memory);
    double **value = malloc((size_t)(count + 1) * sizeof *value);
    sr_status status = memory && value ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < count && value; i++) value[i] = memory + i * LOOK;
    if (status == SR_OK) status = series_read_all(s, count, 0, rows, value, NULL, why);
    for (int i = 0; i < count && status == SR_OK; i++)
        for (int64_t k = 0; k < rows; k++)
            if (!isnan(value[i][k])) recorded[s[i].site] = true;
    free(memory);
    free(value);
    return status;
}

static sr_status vectors_recorded(const sr_runfile *run, const statistic *stat, bool *recorded,
                                  sr_failure *why) {
    const int64_t sites = sr_run_get_info(run)->sites;
    bool there = stat->recompute != NULL;
    for (int v = 0; v < SR_VECTOR_COUNT; v++)
        if (stat->needs >> v & 1) there = there && sr_run_has_vector(run, vector_names[v]);
    if (!there) return SR_OK;
    series *s = malloc((size_t)(sites + 1) * sizeof *s);
    if (!s) return sr_fail(why, SR_MEMORY, "out of memory");
    int count = 0;
    for (int64_t i = 0; i < sites; i++) {
        const sr_run_site *site = sr_run_get_site(run, i);
        /* the observer's sum_gx uses bn's xhat */
        const sr_family family = site->observed ? SR_FAMILY_SIGMA : site->family;
        if (!stat->family || strcmp(stat->family, sr_family_name(family)) == 0)
            s[count++] = (series){run, i, stat, FROM_VECTORS};
    }
    sr_status status = count ? look_at_rows(s, count, recorded, why) : SR_OK;
    free(s);
    return status;
}

/* True if the file has the dataset, with or without values. */
static bool is_declared(const sr_runfile *run, const char *term) {
    const char *name;
    if (strcmp(term, "tokens") == 0) return true;
    for (int i = 0; (name = sr_run_name(run, "scalars", i)); i++)
        if (strcmp(name, term) == 0) return true;
    return false;
}

/* A site has a form if it has the first term, and a value of the form in the first rows. */
static sr_status form_recorded(const sr_runfile *run, const statistic *stat, const stat_form *f,
                               bool *recorded, sr_failure *why) {
    const int64_t sites = sr_run_get_info(run)->sites;
    for (int i = 0; i < form_terms(f); i++)
        if (!is_declared(run, f->term[i])) return SR_OK;
    sr_status status = scalars_recorded(run, f->term[0], recorded, why);
    series *s = malloc((size_t)(sites + 1) * sizeof *s);
    if (!s) return sr_fail(why, SR_MEMORY, "out of memory");
    int count = 0;
    for (int64_t i = 0; i < sites; i++) {
        if (recorded[i]) s[count++] = (series){run, i, stat, FROM_SCALARS};
        recorded[i] = false;
    }
    if (status == SR_OK && count) status = look_at_rows(s, count, recorded, why);
    free(s);
    return status;
}

sr_status series_recorded(const sr_runfile *run, const statistic *stat, series_source source,
                          bool *recorded, sr_failure *why) {
    memset(recorded, 0, (size_t)sr_run_get_info(run)->sites * sizeof *recorded);
    if (source == FROM_VECTORS) return vectors_recorded(run, stat, recorded, why);
    const stat_form *f = form_find(stat->name);
    if (f) return form_recorded(run, stat, f, recorded, why);
    if (!sr_run_has_scalar(run, stat->name)) return SR_OK;
    return scalars_recorded(run, stat->name, recorded, why);
}
