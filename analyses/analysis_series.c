/* A statistic of one site over the steps of a run: as recorded in /scalars, or computed again from
 * the rows of /vectors (analysis_vectors.c). Reads in blocks: memory does not grow with the file.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"

#define DEFINITION_OF(name, ...) {#name, __VA_ARGS__},

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

/* Statistics that no file holds: sums of two scalars. */
static const struct {
    const char *name, *term[2];
} sums[] = {{"tid_total", {"tid_mean", "tid_var"}}};

/* The i-th dataset whose values make the statistic; NULL past the end. */
static const char *term_name(const statistic *stat, int i) {
    for (size_t k = 0; k < sizeof sums / sizeof sums[0]; k++)
        if (strcmp(stat->name, sums[k].name) == 0) return i < 2 ? sums[k].term[i] : NULL;
    return i == 0 ? stat->name : NULL;
}

/* HDF5 takes about as long for one value of a row as for COLUMNS neighbours. */
enum { COLUMNS = 64, ROWS_BYTES = 1 << 18 };

static sr_status read_column(const series *s, int term, int64_t first, int64_t count, double *value,
                             sr_failure *why) {
    const char *name = term_name(s->stat, term);
    float raw[4096];
    sr_status status = SR_OK;
    for (int64_t at = 0; at < count && status == SR_OK; at += 4096) {
        const int64_t m = count - at < 4096 ? count - at : 4096;
        status = sr_run_scalar(s->run, name, s->site, first + at, m, raw, why);
        for (int64_t i = 0; status == SR_OK && i < m; i++)
            value[at + i] = (double)raw[i] + (term ? value[at + i] : 0);
    }
    return status;
}

/* Reads all sites, and keeps those of s[count] that are of the statistic. */
static sr_status read_rows(const series *s, int series_count, const statistic *stat, int term,
                           int64_t first, int64_t count, double *const *value, sr_failure *why) {
    const int64_t sites = sr_run_get_info(s->run)->sites, block = 1 + ROWS_BYTES / (4 * sites);
    float *raw = malloc((size_t)(block * sites) * sizeof *raw);
    sr_status status = raw ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t at = 0; at < count && status == SR_OK; at += block) {
        const int64_t m = count - at < block ? count - at : block;
        status = sr_run_scalar(s->run, term_name(stat, term), -1, first + at, m, raw, why);
        for (int k = 0; k < series_count && status == SR_OK; k++) {
            if (s[k].stat != stat) continue;
            for (int64_t i = 0; i < m; i++)
                value[k][at + i] =
                    (double)raw[i * sites + s[k].site] + (term ? value[k][at + i] : 0);
        }
    }
    free(raw);
    return status;
}

static sr_status read_scalars(const series *s, int series_count, int64_t first, int64_t count,
                              double *const *value, sr_failure *why) {
    const int64_t sites = sr_run_get_info(s->run)->sites;
    sr_status status = SR_OK;
    for (int k = 0; k < series_count && status == SR_OK; k++) {
        int before = 0, same = 0;
        for (int i = 0; i < series_count; i++) {
            same += s[i].stat == s[k].stat;
            before += i < k && s[i].stat == s[k].stat;
        }
        for (int i = 0; term_name(s[k].stat, i) && status == SR_OK; i++) {
            if (same * COLUMNS < sites)
                status = read_column(&s[k], i, first, count, value[k], why);
            else if (!before)
                status = read_rows(s, series_count, s[k].stat, i, first, count, value, why);
        }
    }
    return status;
}

/* -- from either ----------------------------------------------------------------------------- */

sr_status series_read_steps(const series *s, int64_t first, int64_t count, int64_t *step,
                            sr_failure *why) {
    return s->source == FROM_VECTORS ? sr_run_vector_steps(s->run, first, count, step, why)
                                     : sr_run_step_ints(s->run, "step", first, count, step, why);
}

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

/* Where every term is. */
static sr_status terms_recorded(const sr_runfile *run, const statistic *stat, bool *recorded,
                                sr_failure *why) {
    const int64_t sites = sr_run_get_info(run)->sites;
    const char *name;
    for (int i = 0; (name = term_name(stat, i)); i++)
        if (!sr_run_has_scalar(run, name)) return SR_OK;
    bool *here = malloc((size_t)sites + 1);
    sr_status status = here ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; (name = term_name(stat, i)) && status == SR_OK; i++) {
        memset(here, 0, (size_t)sites * sizeof *here);
        status = scalars_recorded(run, name, here, why);
        for (int64_t k = 0; k < sites; k++) recorded[k] = here[k] && (i == 0 || recorded[k]);
    }
    free(here);
    return status;
}

enum { LOOK = 16 }; /* rows */

/* What a method records is the same in every step, so the first rows tell; a run that has diverged
 * by then shows infinities or NaN in the values, and its first row is still from before that. */
static sr_status look_at_vectors(const series *s, int count, bool *recorded, sr_failure *why) {
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

static bool vectors_there(const sr_runfile *run, unsigned needs) {
    for (int v = 0; v < SR_VECTOR_COUNT; v++)
        if (needs >> v & 1 && !sr_run_has_vector(run, vector_names[v])) return false;
    return true;
}

static sr_status vectors_recorded(const sr_runfile *run, const statistic *stat, bool *recorded,
                                  sr_failure *why) {
    const int64_t sites = sr_run_get_info(run)->sites;
    if (!stat->recompute || !vectors_there(run, stat->needs)) return SR_OK;
    series *s = malloc((size_t)(sites + 1) * sizeof *s);
    if (!s) return sr_fail(why, SR_MEMORY, "out of memory");
    int count = 0;
    for (int64_t i = 0; i < sites; i++)
        if (formula_holds(stat, sr_run_get_site(run, i)))
            s[count++] = (series){run, i, stat, FROM_VECTORS};
    sr_status status = count ? look_at_vectors(s, count, recorded, why) : SR_OK;
    free(s);
    return status;
}

sr_status series_recorded(const sr_runfile *run, const statistic *stat, series_source source,
                          bool *recorded, sr_failure *why) {
    memset(recorded, 0, (size_t)sr_run_get_info(run)->sites * sizeof *recorded);
    if (source == FROM_VECTORS) return vectors_recorded(run, stat, recorded, why);
    return terms_recorded(run, stat, recorded, why);
}
