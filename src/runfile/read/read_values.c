/* read_values.c -- values of an open run file (statrec/runfile.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "runfile/abi_struct.h"
#include "runfile/read/datasets/read_custom.h"
#include "runfile/read/datasets/read_metrics.h"
#include "runfile/read/file/open_file_cache.h"
#include "runfile/read/file/read_column.h"
#include "runfile/read/file/scalar_cache.h"

const sr_run_info *sr_run_get_info(const sr_runfile *f) {
    return &f->info;
}

const sr_run_site *sr_run_get_site(const sr_runfile *f, int64_t site) {
    return site >= 0 && site < f->info.sites ? &f->site[site] : NULL;
}

int64_t sr_run_find_site(const sr_runfile *f, const char *name) {
    const int64_t number = map_find(&f->site_names, name, strlen(name));
    return number < 0 ? -1 : f->site_of[number];
}

/* -- names ----------------------------------------------------------------------------------- */

/* A scalar of the format, or a custom one. */
static const run_column *find_scalar(const sr_runfile *f, const char *name) {
    const run_column *c = run_find_column(run_scalars, SR_SCALAR_COUNT, name);
    return c ? c : reader_declared_column(f, name, SR_PER_SITE);
}

static sr_status open_kept(const sr_runfile *f, reader_kept *k, const run_column *c, bool direct,
                           sr_failure *why) {
    h5_shape shape;
    h5_close_dataset(k->set);
    *k = (reader_kept){.direct = direct};
    sr_status status = direct ? reader_open_direct(f, c, &k->set, &shape, why)
                              : reader_open_column(f, c, &k->set, &shape, why);
    if (status != SR_OK) return status;
    k->column = c;
    h5_get_chunk(k->set, k->chunk);
    return SR_OK;
}

/* The column, which stays open between calls. */
static sr_status keep_column(const sr_runfile *f, const run_column *c, reader_kept **kept,
                             sr_failure *why) {
    reader_cache *cache = reader_cache_of(f, why);
    if (!cache) return SR_MEMORY;
    const int slots = sizeof cache->kept / sizeof cache->kept[0];
    for (int i = 0; i < slots; i++) {
        *kept = &cache->kept[i];
        if ((*kept)->column == c) return SR_OK;
    }
    *kept = &cache->kept[cache->next];
    cache->next = (cache->next + 1) % slots;
    return open_kept(f, *kept, c, false, why);
}

/* Caches the answer, except for a growing file, whose answer may change. */
static bool has_values(const sr_runfile *f, const run_column *c, int64_t rows) {
    reader_shelf *shelf = f->shelf;
    if (!c) return false;
    for (int64_t i = 0; i < shelf->answers; i++)
        if (shelf->answer[i].column == c) return shelf->answer[i].has;
    reader_kept *kept;
    const bool open = keep_column(f, c, &kept, NULL) == SR_OK;
    const bool has =
        open ? rows == 0 || h5_stored_bytes(kept->set, NULL) != 0 : reader_has_column(f, c);
    if (!f->unfinished && vector_reserve(&shelf->answer, &shelf->answer_capacity,
                                         shelf->answers + 1, sizeof *shelf->answer))
        shelf->answer[shelf->answers++] = (reader_answer){c, has};
    return has;
}

bool sr_run_has_scalar(const sr_runfile *f, const char *name) {
    return has_values(f, find_scalar(f, name), f->info.steps);
}

bool sr_run_has_vector(const sr_runfile *f, const char *name) {
    return has_values(f, run_find_column(run_vectors, SR_VECTOR_COUNT, name), f->info.vectors);
}

bool sr_run_has_eval(const sr_runfile *f, const char *name) {
    return has_values(f, reader_eval_column(f, name), f->info.evals);
}

const char *sr_run_name(const sr_runfile *f, const char *group, int i) {
    for (int g = 0; g < READER_GROUPS; g++)
        if (strcmp(reader_group_names[g], group) == 0)
            return i >= 0 && i < f->names[g].count ? f->names[g].name[i] : NULL;
    return NULL;
}

/* NULL on failure. */
static reader_text *read_definition(const sr_runfile *f, const char *dataset, sr_failure *why) {
    const h5_path path = h5_path_of("%s%s", dataset[0] == '/' ? "" : "/", dataset);
    void *text = NULL;
    if (reader_wake(f, why) != SR_OK) return NULL;
    if (h5_has(reader_file(f), path.text) &&
        h5_has_attribute(reader_file(f), path.text, "definition") &&
        h5_get_attribute(reader_file(f), path.text, "definition", H5_TEXT, &text, NULL, why) !=
            SR_OK)
        return NULL;
    reader_text *t = calloc(1, sizeof *t);
    char *name = strdup(dataset);
    if (!t || !name) {
        sr_fail(why, SR_MEMORY, "%s: a definition", f->path);
        free(t), free(name), free(text);
        return NULL;
    }
    *t = (reader_text){*f->texts, name, text};
    return *f->texts = t;
}

sr_status reader_definition(const sr_runfile *f, const char *dataset, const char **text,
                            sr_failure *why) {
    sr_failure own = {0};
    const reader_text *t = *f->texts;
    while (t && strcmp(t->dataset, dataset) != 0) t = t->next;
    if (!t) t = read_definition(f, dataset, &own);
    *text = t && t->text ? t->text : "";
    return t ? SR_OK : sr_fail(why, own.status, "%s", own.text);
}

const char *sr_run_definition(const sr_runfile *f, const char *dataset) {
    const char *text;
    reader_definition(f, dataset, &text, NULL);
    return text;
}

/* -- rows ------------------------------------------------------------------------------------ */

static sr_status check_range(const sr_runfile *f, const run_column *c, const char *name,
                             int64_t first, int64_t count, int64_t rows, sr_failure *why) {
    if (!c) return sr_fail(why, SR_USAGE, "%s: no column '%s' in a run file", f->path, name);
    if (first >= 0 && count >= 0 && first <= rows && count <= rows - first) return SR_OK;
    return sr_fail(why, SR_USAGE, "%s: %lld rows from %lld of %s/%s, which has %lld", f->path,
                   (long long)count, (long long)first, c->group, name, (long long)rows);
}

static sr_status read_column(const sr_runfile *f, const run_column *c, const h5_rows *rows,
                             h5_type type, void *value, sr_failure *why) {
    reader_kept *k;
    if (rows->count == 0) return SR_OK;
    sr_status status = keep_column(f, c, &k, why);
    return status == SR_OK ? h5_read_rows(k->set, rows, type, value, why) : status;
}

/* Reads sites first .. last of a column of /vectors. */
static sr_status read_vector(const sr_runfile *f, const run_column *c, int64_t first_site,
                             int64_t last_site, int64_t first, int64_t count, float *value,
                             sr_failure *why) {
    reader_kept *k;
    if (count == 0 || f->info.sites == 0) return SR_OK;
    const sr_run_site *from = &f->site[first_site], *to = &f->site[last_site];
    const int64_t columns = to->offset + to->width - from->offset;
    const h5_rows part = {first, count, from->offset, columns, columns}, *rows = &part;
    sr_status status = keep_column(f, c, &k, why);
    /* chunks with the rows of one site are read without HDF5's cache */
    bool direct = status == SR_OK && rows->columns == k->chunk[1];
    for (int64_t i = 0; direct && i < f->info.sites; i++) direct = f->site[i].width == k->chunk[1];
    if (status == SR_OK && direct != k->direct) status = open_kept(f, k, c, direct, why);
    return status == SR_OK ? h5_read_rows(k->set, rows, H5_FLOAT32, value, why) : status;
}

static h5_rows one_column(int64_t first, int64_t count) {
    return (h5_rows){.first = first, .count = count, .columns = 1, .stride = 1};
}

/* In place. HDF5 would convert in a buffer of 1 MiB that it fills with zeros for each read. */
static void make_reals(void *value, int64_t count) {
    for (char *at = value, *end = at + 8 * count; at < end; at += 8) {
        int64_t whole;
        memcpy(&whole, at, 8);
        const double real = (double)whole;
        memcpy(at, &real, 8);
    }
}

/* Reads a column of one dimension, which has `rows` rows. c NULL: unknown name. */
static sr_status read_rows(const sr_runfile *f, const run_column *c, const char *name,
                           int64_t first, int64_t count, int64_t rows, h5_type type, void *value,
                           sr_failure *why) {
    sr_status status = check_range(f, c, name, first, count, rows, why);
    if (status != SR_OK) return status;
    const h5_rows part = one_column(first, count);
    const bool whole = type == H5_FLOAT64 && c->type == H5_INT64;
    status = read_column(f, c, &part, whole ? H5_INT64 : type, value, why);
    if (status == SR_OK && whole) make_reals(value, count);
    return status;
}

/* Programs ask for the last step of every run before they read any. It is cached, so that a closed
 * file need not be opened again. */
sr_status sr_run_step_ints(const sr_runfile *f, const char *name, int64_t first, int64_t count,
                           int64_t *value, sr_failure *why) {
    const run_column *c = run_find_column(run_steps, RUN_STEP_INTS, name);
    const bool last = count == 1 && first == f->info.steps - 1 && strcmp(name, "step") == 0;
    if (last && first >= 0 && f->shelf->last_step >= 0) return *value = f->shelf->last_step, SR_OK;
    sr_status status = read_rows(f, c, name, first, count, f->info.steps, H5_INT64, value, why);
    if (status == SR_OK && last && !f->unfinished) f->shelf->last_step = *value;
    return status;
}

sr_status sr_run_step_reals(const sr_runfile *f, const char *name, int64_t first, int64_t count,
                            double *value, sr_failure *why) {
    const run_column *c = run_find_column(run_steps, RUN_STEPS, name);
    if (!c) c = reader_declared_column(f, name, SR_PER_STEP);
    return read_rows(f, c, name, first, count, f->info.steps, H5_FLOAT64, value, why);
}

static sr_status check_site(const sr_runfile *f, int64_t site, sr_failure *why) {
    if (site >= -1 && site < f->info.sites) return SR_OK;
    return sr_fail(why, SR_USAGE, "%s: site %lld of %lld", f->path, (long long)site,
                   (long long)f->info.sites);
}

sr_status sr_run_scalar(const sr_runfile *f, const char *name, int64_t site, int64_t first,
                        int64_t count, float *value, sr_failure *why) {
    const run_column *c = find_scalar(f, name);
    sr_status status = check_range(f, c, name, first, count, f->info.steps, why);
    if (status == SR_OK) status = check_site(f, site, why);
    if (status != SR_OK) return status;
    int64_t columns = site < 0 ? f->info.sites : 1;
    h5_rows rows = {first, count, site < 0 ? 0 : site, columns, columns};
    if (site >= 0 && scalar_cache_holds(f, count))
        return scalar_cache_read(f, c, &rows, read_column, value, why);
    return read_column(f, c, &rows, H5_FLOAT32, value, why);
}

sr_status sr_run_vector_steps(const sr_runfile *f, int64_t first, int64_t count, int64_t *step,
                              sr_failure *why) {
    return read_rows(f, &run_vector_step, "step", first, count, f->info.vectors, H5_INT64, step,
                     why);
}

sr_status sr_run_vector(const sr_runfile *f, const char *name, int64_t site, int64_t first,
                        int64_t count, float *value, sr_failure *why) {
    const run_column *c = run_find_column(run_vectors, SR_VECTOR_COUNT, name);
    sr_status status = check_range(f, c, name, first, count, f->info.vectors, why);
    if (status == SR_OK) status = check_site(f, site, why);
    if (status != SR_OK) return status;
    return read_vector(f, c, site < 0 ? 0 : site, site < 0 ? f->info.sites - 1 : site, first, count,
                       value, why);
}

sr_status sr_run_vectors(const sr_runfile *f, const char *name, int64_t first_site, int64_t sites,
                         int64_t first, int64_t count, float *value, sr_failure *why) {
    const run_column *c = run_find_column(run_vectors, SR_VECTOR_COUNT, name);
    sr_status status = check_range(f, c, name, first, count, f->info.vectors, why);
    if (status == SR_OK && sites < 1) status = check_site(f, f->info.sites, why);
    if (status == SR_OK) status = check_site(f, first_site < 0 ? -2 : first_site, why);
    if (status == SR_OK) status = check_site(f, first_site + sites - 1, why);
    if (status != SR_OK) return status;
    return read_vector(f, c, first_site, first_site + sites - 1, first, count, value, why);
}

sr_status sr_run_vector_block(const sr_runfile *f, const char *name, int64_t *rows,
                              int64_t *columns, sr_failure *why) {
    const run_column *c = run_find_column(run_vectors, SR_VECTOR_COUNT, name);
    reader_kept *k;
    sr_status status = check_range(f, c, name, 0, 0, 0, why);
    if (status == SR_OK) status = keep_column(f, c, &k, why);
    if (status != SR_OK) return status;
    *rows = k->chunk[0], *columns = k->chunk[1];
    return SR_OK;
}

sr_status sr_run_eval(const sr_runfile *f, const char *name, int64_t first, int64_t count,
                      double *value, sr_failure *why) {
    const run_column *c = strcmp(name, "step") == 0 ? &run_eval_step : reader_eval_column(f, name);
    return read_rows(f, c, name, first, count, f->info.evals, H5_FLOAT64, value, why);
}

/* -- embeddings ------------------------------------------------------------------------------ */

/* The open datasets of an embedding; 0: not open. */
typedef struct embedding_sets {
    h5_id step, values;
} embedding_sets;

static void close_embedding(embedding_sets *s) {
    h5_close_dataset(s->step), h5_close_dataset(s->values);
}

/* Rows of an open dataset that are in the file. */
static sr_status count_rows(const sr_runfile *f, h5_id set, int64_t columns, int64_t *rows,
                            sr_failure *why) {
    sr_failure own = {0};
    const int64_t bytes = h5_stored_bytes(set, &own);
    *rows = bytes < 0 ? 0 : bytes / 8 / columns;
    if (f->cut_at) *rows = h5_whole_rows(set, *rows, f->cut_at);
    return bytes >= 0 || f->cut_at ? SR_OK : sr_fail(why, own.status, "%s", own.text);
}

/* Leaves both datasets open, also after a failure. */
static sr_status open_records(const sr_runfile *f, const char *group, sr_run_embedding *e,
                              embedding_sets *s, sr_failure *why) {
    h5_shape steps, values;
    int64_t stored[2];
    sr_status status =
        reader_open(f, h5_path_of("%s/step", group).text, H5_INT64, 1, 0, &s->step, &steps, why);
    if (status == SR_OK) status = count_rows(f, s->step, 1, &stored[0], why);
    if (status != SR_OK) return status;
    status = reader_open(f, h5_path_of("%s/singular_values", group).text, H5_FLOAT64, 2, e->values,
                         &s->values, &values, why);
    if (status == SR_OK) status = count_rows(f, s->values, e->values, &stored[1], why);
    if (status != SR_OK) return status;
    const int64_t rows[] = {steps.dims[0], values.dims[0], stored[0], stored[1]};
    e->records = rows[0];
    for (int i = 1; i < 4; i++)
        if (rows[i] < e->records) e->records = rows[i];
    return SR_OK;
}

/* Fills all members but the method. Close *s in any case. */
static sr_status find_embedding(const sr_runfile *f, const char *name, sr_run_embedding *e,
                                embedding_sets *s, sr_failure *why) {
    *s = (embedding_sets){0};
    *e = SR_INIT(sr_run_embedding, .rows = 0);
    int known = 0;
    for (int i = 0; i < f->names[READER_GROUPS - 1].count; i++)
        known |= strcmp(f->names[READER_GROUPS - 1].name[i], name) == 0;
    if (!known) return sr_fail(why, SR_USAGE, "%s: no embedding '%s'", f->path, name);
    const h5_path path = h5_path_of("/embeddings/%s", name);
    const char *group = path.text;
    sr_status status = reader_wake(f, why);
    if (status == SR_OK)
        status = h5_get_attribute(reader_file(f), group, "rows", H5_INT64, NULL, &e->rows, why);
    if (status == SR_OK)
        status = h5_get_attribute(reader_file(f), group, "cols", H5_INT64, NULL, &e->cols, why);
    if (status != SR_OK) return status;
    e->values = e->rows < e->cols ? e->rows : e->cols;
    if (e->values < 1) return sr_fail(why, SR_FORMAT, "%s: %s: no values", f->path, group);
    if (e->values > h5_file_bytes(reader_file(f)) / 8)
        return sr_fail(why, SR_FORMAT, "%s: %s: %lld values in a file of %lld bytes", f->path,
                       group, (long long)e->values, (long long)h5_file_bytes(reader_file(f)));
    return open_records(f, group, e, s, why);
}

/* Older files have no method. */
static sr_status read_method(const sr_runfile *f, const char *name, sr_run_embedding *e,
                             sr_failure *why) {
    const h5_path path = h5_path_of("/embeddings/%s", name);
    void *text = NULL;
    if (!h5_has_attribute(reader_file(f), path.text, "method")) return SR_OK;
    sr_status status =
        h5_get_attribute(reader_file(f), path.text, "method", H5_TEXT, &text, NULL, why);
    if (status == SR_OK) snprintf(e->method, sizeof e->method, "%s", (const char *)text);
    free(text);
    return status;
}

sr_status sr_run_get_embedding(const sr_runfile *f, const char *name, sr_run_embedding *e,
                               sr_failure *why) {
    sr_run_embedding ours;
    embedding_sets sets;
    sr_status status = find_embedding(f, name, &ours, &sets, why);
    close_embedding(&sets);
    if (status == SR_OK) status = read_method(f, name, &ours, why);
    return status == SR_OK ? abi_struct_give(e, &ours, sizeof ours, "sr_run_embedding", why)
                           : status;
}

sr_status sr_run_singular_values(const sr_runfile *f, const char *name, int64_t i, int64_t *step,
                                 double *value, sr_failure *why) {
    sr_run_embedding e;
    embedding_sets sets;
    sr_status status = find_embedding(f, name, &e, &sets, why);
    if (status == SR_OK && (i < 0 || i >= e.records))
        status = sr_fail(why, SR_USAGE, "%s: record %lld of %lld of embedding %s", f->path,
                         (long long)i, (long long)e.records, name);
    const h5_rows one = one_column(i, 1), row = {i, 1, 0, e.values, e.values};
    if (status == SR_OK) status = h5_read_rows(sets.step, &one, H5_INT64, step, why);
    if (status == SR_OK) status = h5_read_rows(sets.values, &row, H5_FLOAT64, value, why);
    close_embedding(&sets);
    return status;
}
