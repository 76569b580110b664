/* declare.c -- creates every group, dataset and attribute of a run file (docs/file-format.md). None
 * can be created after the switch to SWMR. */
#include "runfile/write/declare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/dimension_scales.h"

/* A declaration in progress: stops at the first failure. */
typedef struct declaration {
    run_writer *w;
    sr_failure *why;
    sr_status status;
} declaration;

static void add_group(declaration *d, const char *path) {
    if (d->status == SR_OK) d->status = h5_add_group(d->w->file, path, d->why);
}

static h5_id add_dataset(declaration *d, const char *path, const h5_shape *shape) {
    h5_id set = 0;
    if (d->status == SR_OK) d->status = h5_add_dataset(d->w->file, path, shape, &set, d->why);
    return set;
}

static void put_text(declaration *d, const char *object, const char *name, const char *text) {
    if (d->status == SR_OK)
        d->status =
            h5_put_attribute(d->w->file, object, name, H5_TEXT, strlen(text), -1, text, d->why);
}

static void put_int(declaration *d, const char *object, const char *name, int64_t value) {
    if (d->status == SR_OK)
        d->status = h5_put_attribute(d->w->file, object, name, H5_INT64, 0, -1, &value, d->why);
}

static void write_all(declaration *d, h5_id set, h5_type type, size_t text, const void *value) {
    if (d->status == SR_OK) d->status = h5_write_all(set, type, text, value, d->why);
}

/* -- / and /sites ---------------------------------------------------------------------------- */

static void declare_root(declaration *d, const sr_run_info *info) {
    put_text(d, "/", "format", SR_FORMAT_NAME);
    put_int(d, "/", "format_version", SR_FORMAT_VERSION);
#define PUT(name) put_text(d, "/", #name, info->name);
    RUN_TEXTS(PUT)
#undef PUT
    if (d->status == SR_OK)
        d->status =
            h5_put_attribute(d->w->file, "/", "seed", H5_UINT64, 0, -1, &info->seed, d->why);
    put_int(d, "/", "threads", info->threads);
}

/* Creates one fixed array of /sites. */
static void declare_site_array(declaration *d, const char *path, h5_type type, size_t text,
                               int64_t count, const void *value, const char *definition) {
    h5_shape shape = {.type = type, .text = text, .rank = 1, .dims = {count, 1}};
    h5_id set = add_dataset(d, path, &shape);
    if (count > 0) write_all(d, set, type, text, value);
    put_text(d, path, "definition", definition);
    h5_close_dataset(set);
}

static h5_type text_type_of(const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] >= 0x80) return H5_TEXT;
    return H5_TEXT_ASCII;
}

static void declare_site_texts(declaration *d, char *scratch) {
    const run_layout *l = &d->w->layout;
#define TEXTS(field, size, definition)                                                             \
    for (int64_t i = 0; i < l->sites; i++) memcpy(scratch + i * (size), l->site[i].field, (size)); \
    declare_site_array(d, "/sites/" #field, text_type_of(scratch, (size_t)l->sites *(size)),       \
                       (size), l->sites, scratch, definition);
    SR_SITE_TEXTS(TEXTS)
    SR_METHOD_TEXTS(TEXTS)
#undef TEXTS
    memset(scratch, 0, (size_t)l->sites * SR_KIND_SIZE);
    for (int64_t i = 0; i < l->sites; i++)
        strcpy(scratch + i * SR_KIND_SIZE, sr_family_name(l->site[i].family));
    declare_site_array(d, "/sites/family", H5_TEXT_ASCII, SR_KIND_SIZE, l->sites, scratch,
                       SR_FAMILY_DEFINITION);
}

static void declare_site_numbers(declaration *d, void *scratch) {
    const run_layout *l = &d->w->layout;
    int32_t *whole = scratch;
    double *real = scratch;
#define INTS(field, definition)                                                                    \
    for (int64_t i = 0; i < l->sites; i++) whole[i] = (int32_t)l->site[i].field;                   \
    declare_site_array(d, "/sites/" #field, H5_INT32, 0, l->sites, whole, definition);
#define REALS(field, definition)                                                                   \
    for (int64_t i = 0; i < l->sites; i++) real[i] = l->site[i].field;                             \
    declare_site_array(d, "/sites/" #field, H5_FLOAT64, 0, l->sites, real, definition);
    SR_SITE_INTS(INTS)
    SR_SITE_REALS(REALS)
#undef INTS
#undef REALS
}

static void declare_sites(declaration *d) {
    const run_layout *l = &d->w->layout;
    add_group(d, "/sites");
    size_t bytes = (size_t)l->sites * SR_NAME_SIZE + (size_t)l->width * sizeof(int32_t) + 1;
    void *scratch = calloc(bytes, 1);
    if (!scratch) {
        d->status =
            sr_fail(d->why, SR_MEMORY, "%s: %zu bytes for the table of sites", d->w->path, bytes);
        return;
    }
    declare_site_texts(d, scratch);
    declare_site_numbers(d, scratch);
    int32_t *of_column = scratch;
    for (int64_t i = 0; i < l->sites; i++)
        for (int64_t k = 0; k < l->site[i].width; k++)
            of_column[l->site[i].offset + k] = (int32_t)i;
    declare_site_array(d, "/sites/column_site", H5_INT32, 0, l->width, scratch,
                       "site of each column of /vectors");
    free(scratch);
}

/* -- /copy ----------------------------------------------------------------------------------- */

static void declare_copied(declaration *d) {
    add_group(d, "/copy");
    for (int i = 0; i < COPY_TEXTS; i++)
        put_text(d, "/copy", run_copy_names[i], d->w->layout.copied[i]);
}

/* -- growing columns ------------------------------------------------------------------------- */

static h5_id declare_shaped(declaration *d, const run_column *c, const h5_shape *shape) {
    const h5_path path = h5_path_of("/%s/%s", c->group, c->name);
    h5_id set = add_dataset(d, path.text, shape);
    put_text(d, path.text, "definition", c->definition);
    put_text(d, path.text, "unit", c->unit);
    put_text(d, path.text, "definition_id",
             h5_path_of("%s/%s@%d", c->group, c->name, SR_FORMAT_VERSION).text);
    return set;
}

static h5_id declare_column(declaration *d, const run_column *c, int rank, int64_t columns,
                            const int64_t chunk[2]) {
    h5_shape shape = {
        .type = c->type, .rank = rank, .dims = {0, columns}, .chunk = {chunk[0], chunk[1]}};
    return declare_shaped(d, c, &shape);
}

static const char *scope_of(const run_layout *l) {
    int64_t merged = 0;
    for (int64_t i = 0; i < l->sites; i++) merged += l->site[i].merged;
    if (merged == 0) return "one micro-batch of this process, not merged over micro-batches";
    return "where /sites/merged is 1 all passes of the step, merged; elsewhere one of them";
}

/* Creates a statistic. The common attributes are stored with each, so that readers see them. */
static h5_id declare_statistic(declaration *d, const run_column *c, int64_t columns,
                               const int64_t chunk[2]) {
    h5_id set = declare_column(d, c, 2, columns, chunk);
    const h5_path at = h5_path_of("/%s/%s", c->group, c->name);
    const char *path = at.text;
    put_int(d, path, "ddof", 0);
    put_text(d, path, "running", "running values are those from before this step's update");
    put_text(d, path, "alpha", "weighs the old running value");
    put_text(d, path, "rows", "valid rows only");
    put_text(d, path, "scope", scope_of(&d->w->layout));
    if (*d->w->layout.ranks) put_text(d, path, "ranks", d->w->layout.ranks);
    return set;
}

static run_column own_column(const run_declared *d) {
    const bool site = d->scope == SR_PER_SITE;
    return (run_column){site ? "scalars" : "steps", d->name, d->unit, d->definition,
                        site ? H5_FLOAT32 : H5_FLOAT64};
}

/* Creates custom scalars. Their names are an attribute of /host. */
static void declare_own(declaration *d, const char *list, sr_scope scope, int64_t columns,
                        const int64_t chunk[2]) {
    char names[RUN_DECLARED_MAX * (SR_NAME_SIZE + 1)] = "", *end = names;
    for (int i = 0; i < d->w->declared_count; i++) {
        run_declared *own = &d->w->declared[i];
        if (own->scope != scope) continue;
        const run_column c = own_column(own);
        own->set = declare_column(d, &c, scope == SR_PER_SITE ? 2 : 1, columns, chunk);
        end += sprintf(end, "%s%s", end == names ? "" : "\n", own->name);
    }
    if (d->w->layout.has_host) put_text(d, "/host", list, names);
}

static void declare_steps(declaration *d) {
    run_writer *w = d->w;
    int64_t chunk[2];
    run_chunk_steps(&w->layout, chunk);
    add_group(d, "/steps");
    for (int i = 0; i < RUN_STEPS; i++)
        w->step_set[i] = declare_column(d, &run_steps[i], 1, 1, chunk);
    declare_own(d, "steps", SR_PER_STEP, 1, chunk);
}

static void declare_statistics(declaration *d) {
    run_writer *w = d->w;
    const run_layout *l = &w->layout;
    int64_t chunk[2], step_chunk[2];
    add_group(d, "/scalars");
    if (l->scalars) run_chunk_scalars(l, chunk);
    for (int i = 0; i < SR_SCALAR_COUNT && l->scalars; i++)
        w->scalar_set[i] = declare_statistic(d, &run_scalars[i], l->sites, chunk);
    if (l->scalars) declare_own(d, "scalars", SR_PER_SITE, l->sites, chunk);
    add_group(d, "/vectors");
    run_chunk_steps(l, step_chunk);
    w->vector_step_set = declare_column(d, &run_vector_step, 1, 1, step_chunk);
    if (l->vectors) run_chunk_vectors(l, chunk);
    for (int i = 0; i < SR_VECTOR_COUNT && l->vectors; i++)
        w->vector_set[i] = declare_statistic(d, &run_vectors[i], l->width, chunk);
}

static void declare_evals(declaration *d) {
    run_writer *w = d->w;
    const int64_t chunk[2] = {RUN_EVAL_CHUNK, 1};
    add_group(d, "/evals");
    put_int(d, "/evals", "metrics", w->metrics);
    w->eval_step_set = declare_column(d, &run_eval_step, 1, 1, chunk);
    w->eval_epoch_set = declare_column(d, &run_eval_epoch, 1, 1, chunk);
    for (int i = 0; i < w->metrics; i++) {
        run_metric *m = &w->metric[i];
        const run_column c = {"evals", m->name, m->unit, m->definition, H5_FLOAT64};
        const h5_path path = h5_path_of("/evals/%s", m->name);
        m->set = declare_column(d, &c, 1, 1, chunk);
        put_text(d, path.text, "better", run_better_words[m->better + 1]);
        put_int(d, path.text, "place", i); /* the group does not keep the order */
    }
}

static void declare_spectra(declaration *d) {
    spectra_row *s = &d->w->spectra;
    const run_layout *l = &d->w->layout;
    if (!l->spectra) return;
    const int64_t steps[2] = {128, 1}, sites[2] = {1, l->sites}, columns[2] = {1, l->width};
    add_group(d, "/spectra");
    s->step_set = declare_column(d, &run_spectra_step, 1, 1, steps);
    s->rows_set = declare_column(d, &run_spectra_rows, 2, l->sites, sites);
    for (int i = 0; i < SR_SPECTRUM_COUNT; i++)
        s->set[i] = declare_column(d, &run_spectra[i], 2, l->width, columns);
}

static void declare_finals(declaration *d) {
    run_writer *w = d->w;
    const int64_t none = -1;
    const h5_shape one = {.type = H5_INT64};
    const h5_shape sites = {.type = H5_FLOAT64, .rank = 1, .dims = {w->layout.sites, 1}};
    if (!w->layout.final) return;
    add_group(d, "/final");
    w->final_batches_set = add_dataset(d, "/final/batches", &one);
    write_all(d, w->final_batches_set, H5_INT64, 0, &none);
    put_text(d, "/final/batches", "definition", "batches of the pass; -1: it was not made");
    for (int i = 0; i < SR_FINAL_COUNT; i++)
        w->final_set[i] = declare_shaped(d, &run_finals[i], &sites);
    for (int i = 0; i < SR_PAIR_COUNT && w->layout.pairs > 0; i++) {
        const h5_shape pairs = {
            .type = run_pairs[i].type, .rank = 2, .dims = {w->layout.sites, w->layout.pairs}};
        w->pair_set[i] = declare_shaped(d, &run_pairs[i], &pairs);
    }
}

static void declare_running(declaration *d) {
    running_rows *r = &d->w->running;
    const run_layout *l = &d->w->layout;
    const int64_t steps[2] = {SR_RUNNING_KEPT, 1}, columns[2] = {1, l->width};
    if (!l->running) return;
    add_group(d, "/running");
    r->step_set = declare_column(d, &run_running_step, 1, 1, steps);
    for (int i = 0; i < RUN_RUNNING; i++)
        r->set[i] = declare_column(d, &run_running[i], 2, l->width, columns);
}

static void declare_embedding(declaration *d, run_embedding *e) {
    const h5_path at = h5_path_of("/embeddings/%s", e->name);
    const h5_path step = h5_path_of("%s/step", at.text);
    const h5_path singular = h5_path_of("%s/singular_values", at.text);
    const char *group = at.text;
    int64_t values = e->rows < e->cols ? e->rows : e->cols;
    add_group(d, group);
    put_int(d, group, "rows", e->rows);
    put_int(d, group, "cols", e->cols);
    put_text(d, group, "method", e->method);
    h5_shape steps = {.type = H5_INT64, .rank = 1, .dims = {0, 1}, .chunk = {16, 1}};
    e->step = add_dataset(d, step.text, &steps);
    put_text(d, step.text, "definition", "step after which the singular values were computed");
    h5_shape shape = {.type = H5_FLOAT64, .rank = 2, .dims = {0, values}, .chunk = {1, values}};
    e->values = add_dataset(d, singular.text, &shape);
    put_text(d, singular.text, "definition", "singular values of the embedding matrix, descending");
}

/* -- /state ---------------------------------------------------------------------------------- */

static h5_id declare_state(declaration *d, const char *name, h5_type type, size_t text,
                           const void *value) {
    h5_shape shape = {.type = type, .text = text};
    h5_id set = add_dataset(d, h5_path_of("/state/%s", name).text, &shape);
    write_all(d, set, type, text, value);
    return set;
}

static void declare_states(declaration *d) {
    run_writer *w = d->w;
    static const char empty[SR_REASON_SIZE] = "", running[SR_STATUS_SIZE] = "running";
    const int64_t zero = 0;
    const double unknown = 0.0 / 0.0;
    add_group(d, "/state");
    for (int i = 0; i < COMMITTED_COUNT; i++)
        w->committed_set[i] = declare_state(d, run_committed_names[i], H5_INT64, 0, &zero);
    w->status_set = declare_state(d, "status", H5_TEXT_ASCII, SR_STATUS_SIZE, running);
    w->reason_set = declare_state(d, "reason", H5_TEXT_ASCII, SR_REASON_SIZE, empty);
    w->finished_set = declare_state(d, "finished", H5_TEXT_ASCII, RUN_FINISHED_SIZE, empty);
    w->digest_set = declare_state(d, "weights_digest", H5_TEXT_ASCII, SR_DIGEST_SIZE, empty);
    w->wall_set = declare_state(d, "wall_seconds", H5_FLOAT64, 0, &unknown);
    put_text(d, "/state/finished", "definition", "UTC time of the end; empty: not ended");
    put_text(d, "/state/wall_seconds", "unit", "s");
}

/* -- dimension scales ------------------------------------------------------------------------ */

/* Scales that several groups use have a second name in the root group. Readers of netCDF, as
 * xarray, search for a dimension in the group of the dataset and in the groups above it. */
static const char *const root_scale[][2] = {
    {"/steps/step", "/step"}, {"/sites/depth", "/site"}, {"/sites/column_site", "/column"}};

_Static_assert((int)RUN_STEPS + (int)SR_SCALAR_COUNT + (int)SR_VECTOR_COUNT + (int)SR_METRICS_MAX +
                       1 + (int)SR_SPECTRUM_COUNT + (int)SR_FINAL_COUNT + (int)SR_PAIR_COUNT +
                       (int)RUN_DECLARED_MAX + 16 <=
                   (int)SCALED_MAX,
               "room for the scaled datasets");

typedef struct scale_list {
    scaled row[SCALED_MAX];
    char path[SCALED_MAX][SR_NAME_SIZE + 32];
    int count;
} scale_list;

static void attach_one(scale_list *s, const char *group, const char *name, const char *row,
                       const char *column) {
    snprintf(s->path[s->count], sizeof s->path[0], "/%s/%s", group, name);
    s->row[s->count] = (scaled){s->path[s->count], column ? 2 : 1, row, column};
    s->count++;
}

static void attach(scale_list *s, const run_column *c, int count, const char *row,
                   const char *column) {
    for (int i = 0; i < count; i++) attach_one(s, c[i].group, c[i].name, row, column);
}

/* All arrays but depth, which is the scale. */
static void attach_sites(scale_list *s) {
#define OF_SITES(field, ...) #field,
    static const char *const of_sites[] = {SR_SITE_TEXTS(OF_SITES) SR_METHOD_TEXTS(
        OF_SITES) SR_SITE_INTS(OF_SITES) SR_SITE_REALS(OF_SITES) "family"};
#undef OF_SITES
    for (size_t i = 0; i < sizeof of_sites / sizeof *of_sites; i++)
        if (strcmp(of_sites[i], "depth") != 0) attach_one(s, "sites", of_sites[i], "/site", NULL);
}

static void attach_all(scale_list *s, const run_writer *w) {
    const run_layout *l = &w->layout;
    attach_sites(s);
    attach(s, run_steps + 1, RUN_STEPS - 1, "/step", NULL);
    attach(s, &run_eval_epoch, 1, "/evals/step", NULL);
    for (int i = 0; i < w->metrics; i++)
        attach_one(s, "evals", w->metric[i].name, "/evals/step", NULL);
    if (l->scalars) attach(s, run_scalars, SR_SCALAR_COUNT, "/step", "/site");
    for (int i = 0; i < w->declared_count; i++) {
        const run_column c = own_column(&w->declared[i]);
        const bool site = w->declared[i].scope == SR_PER_SITE;
        if (w->declared[i].set) attach(s, &c, 1, "/step", site ? "/site" : NULL);
    }
    if (l->vectors) attach(s, run_vectors, SR_VECTOR_COUNT, "/vectors/step", "/column");
    if (l->spectra) attach(s, run_spectra, SR_SPECTRUM_COUNT, "/spectra/step", "/column");
    if (l->spectra) attach(s, &run_spectra_rows, 1, "/spectra/step", "/site");
    if (l->final) attach(s, run_finals, SR_FINAL_COUNT, "/site", NULL);
    for (int i = 0; i < SR_PAIR_COUNT && l->pairs > 0; i++) {
        attach(s, &run_pairs[i], 1, "/site", NULL);
        s->row[s->count - 1].rank = 2; /* columns are random pairs and have no scale */
    }
}

static void declare_scales(declaration *d) {
    if (d->status != SR_OK) return;
    scale_list *s = calloc(1, sizeof *s);
    if (!s) {
        d->status = sr_fail(d->why, SR_MEMORY, "%s: %zu bytes for the dimension scales", d->w->path,
                            sizeof *s);
        return;
    }
    attach_all(s, d->w);
    for (size_t i = 0; i < sizeof root_scale / sizeof *root_scale && d->status == SR_OK; i++)
        d->status = h5_link(d->w->file, root_scale[i][0], root_scale[i][1], d->why);
    if (d->status == SR_OK)
        d->status = dimension_scales_write(d->w->file, s->row, s->count, d->why);
    free(s);
}

sr_status declare_run_file(run_writer *w, const sr_run_info *info, sr_failure *why) {
    declaration d = {w, why, SR_OK};
    declare_root(&d, info);
    if (d.status == SR_OK) declare_sites(&d);
    if (w->layout.has_host) add_group(&d, "/host");
    if (w->layout.has_host) put_text(&d, "/host", "ranks", w->layout.ranks);
    if (w->layout.copied) declare_copied(&d);
    declare_steps(&d);
    declare_statistics(&d);
    declare_evals(&d);
    add_group(&d, "/embeddings");
    for (int i = 0; i < w->embeddings; i++) declare_embedding(&d, &w->embedding[i]);
    declare_spectra(&d);
    declare_finals(&d);
    declare_running(&d);
    declare_states(&d);
    declare_scales(&d);
    return d.status;
}
