/* read_open.c -- opens a run file: its format, state, sites, and numbers of readable rows. Type,
 * rank and size of each object are checked before it is read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "journal/trailer.h"
#include "runfile/read/datasets/read_custom.h"
#include "runfile/read/datasets/read_metrics.h"
#include "runfile/read/datasets/read_names.h"
#include "runfile/read/datasets/read_pairs.h"
#include "runfile/read/datasets/read_spectra.h"
#include "runfile/read/display_norm.h"
#include "runfile/read/file/damage_list.h"
#include "runfile/read/file/open_file_cache.h"
#include "runfile/read/file/read_column.h"
#include "runfile/read/file/read_growing.h"
#include "runfile/read/file/shared_tables.h"
#include "runfile/read/read_trailer.h"
#include "runfile/site_method.h"

/* Least bytes of a site in /sites, in any version, and of a column. */
enum { SITES_MAX = 1 << 20, SITE_BYTES = 2 * SR_NAME_SIZE + SR_KIND_SIZE + 32, COLUMN_BYTES = 4 };

/* The file must have bytes for its sites and columns, since their number determines allocations. */
static sr_status check_counts(const sr_runfile *f, const char *what, int64_t count, int64_t bytes,
                              sr_failure *why) {
    const int64_t file = h5_file_bytes(reader_file(f));
    if (count <= file / bytes) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s: /sites: %lld %s in a file of %lld bytes", f->path,
                   (long long)count, what, (long long)file);
}

/* -- / and /state ---------------------------------------------------------------------------- */

static sr_status check_format(const sr_runfile *f, sr_failure *why) {
    void *text = NULL;
    int64_t version = 0;
    sr_failure inner = {0};
    if (h5_get_attribute(reader_file(f), "/", "format", H5_TEXT, &text, NULL, &inner) != SR_OK ||
        strcmp(text, SR_FORMAT_NAME) != 0) {
        const bool checkpoint = text && strcmp(text, "statrec-checkpoint") == 0;
        free(text);
        if (inner.status == SR_IO) return sr_fail(why, SR_IO, "%s", inner.text);
        sr_status status = inner.status == SR_MEMORY ? SR_MEMORY : SR_FORMAT;
        if (!checkpoint)
            return sr_fail(why, status, "%s: HDF5, but not a run file (no attribute format = %s)",
                           f->path, SR_FORMAT_NAME);
        sr_fail(why, status, "%s: a checkpoint; wanted is a run file", f->path);
        sr_hint(why, "`statrec info`, `evaluate`, `translate` and `export` read checkpoints; the "
                     "records are in the run file, RUN.h5");
        return status;
    }
    free(text);
    sr_status status =
        h5_get_attribute(reader_file(f), "/", "format_version", H5_INT64, NULL, &version, why);
    if (status == SR_OK && version != SR_FORMAT_VERSION)
        status = sr_fail(why, SR_FORMAT, "%s: format_version %lld; this library reads %d", f->path,
                         (long long)version, SR_FORMAT_VERSION);
    return status;
}

/* A text of the root; "" if it is damaged. malloc'd. */
static sr_status read_text(sr_runfile *f, const char *name, const char **at, sr_failure *why) {
    void *text = NULL;
    sr_failure own = {0};
    h5_get_attribute(reader_file(f), "/", name, H5_TEXT, &text, NULL, &own);
    sr_status status = damage_list_add(f, &own, why);
    if (status == SR_OK && !text && !(text = calloc(1, 1)))
        status = sr_fail(why, SR_MEMORY, "%s: attribute %s", f->path, name);
    *at = text;
    return status;
}

static sr_status read_root(sr_runfile *f, sr_failure *why) {
    sr_status status = check_format(f, why);
    sr_run_info *info = &f->info;
    sr_failure seed = {0}, other = {0};
#define READ(name)                                                                                 \
    if (status == SR_OK) status = read_text(f, #name, &info->name, why);
    RUN_TEXTS(READ)
#undef READ
    int64_t threads = 0;
    if (status != SR_OK) return status;
    h5_get_attribute(reader_file(f), "/", "seed", H5_UINT64, NULL, &info->seed, &seed);
    h5_get_attribute(reader_file(f), "/", "threads", H5_INT64, NULL, &threads, &other);
    info->threads = threads > INT32_MAX || threads < 0 ? 0 : (int)threads;
    status = damage_list_add(f, &seed, why);
    return status == SR_OK ? damage_list_add(f, &other, why) : status;
}

/* Reads a text of /state [size]; `otherwise` if it is damaged. malloc'd. */
static sr_status read_state_text(sr_runfile *f, const char *path, size_t size,
                                 const char *otherwise, const char **text, sr_failure *why) {
    sr_failure own = {0};
    char *field = calloc(size + 1, 1);
    if (!(*text = field)) return sr_fail(why, SR_MEMORY, "%s: %s", f->path, path);
    if (reader_fixed(f, path, H5_TEXT, size, 0, field, &own) != SR_OK) strcpy(field, otherwise);
    return damage_list_add(f, &own, why);
}

static sr_status read_committed(sr_runfile *f, int which, sr_failure *why) {
    const h5_path path = h5_path_of("/state/%s", run_committed_names[which]);
    sr_failure own = {0};
    int64_t count = -1;
    sr_status status = reader_fixed(f, path.text, H5_INT64, 0, 0, &count, &own);
    if (status == SR_OK && count < 0)
        sr_fail(&own, SR_FORMAT, "%s: %s: %lld", f->path, path.text, (long long)count);
    f->committed[which] = own.status == SR_OK ? count : -1;
    return damage_list_add(f, &own, why);
}

static sr_status read_state(sr_runfile *f, sr_failure *why) {
    sr_run_info *info = &f->info;
    const struct {
        const char *path, *otherwise;
        size_t size;
        const char **text;
    } texts[] = {{"/state/status", "damaged", SR_STATUS_SIZE, &info->status},
                 {"/state/reason", "", SR_REASON_SIZE, &info->reason},
                 {"/state/finished", "", RUN_FINISHED_SIZE, &info->finished},
                 {"/state/weights_digest", "", SR_DIGEST_SIZE, &info->weights_digest}};
    sr_status status = SR_OK;
    sr_failure own = {0};
    /* In the opposite order of a writer, so that each counted row belongs to a counted step. */
    for (int i = COMMITTED_COUNT; i-- > 0 && status == SR_OK;) status = read_committed(f, i, why);
    for (size_t i = 0; i < sizeof texts / sizeof *texts && status == SR_OK; i++)
        status = read_state_text(f, texts[i].path, texts[i].size, texts[i].otherwise, texts[i].text,
                                 why);
    if (status == SR_OK && !*info->status) /* writers start with "running" */
        status = sr_fail(why, SR_FORMAT, "%s: /state/status: empty", f->path);
    if (status != SR_OK) return status;
    if (reader_fixed(f, "/state/wall_seconds", H5_FLOAT64, 0, 0, &info->wall_seconds, &own) !=
        SR_OK)
        info->wall_seconds = NAN;
    return damage_list_add(f, &own, why);
}

/* -- /sites ---------------------------------------------------------------------------------- */

/* Older files do not describe their methods. */
static bool has_methods(const sr_runfile *f) {
#define HAS(field, ...) h5_has(reader_file(f), "/sites/" #field) ||
    return SR_METHOD_TEXTS(HAS) h5_has(reader_file(f), "/sites/family");
#undef HAS
}

static sr_status read_families(sr_runfile *f, char *scratch, sr_failure *why) {
    int64_t count = f->info.sites;
    sr_status status = reader_fixed(f, "/sites/family", H5_TEXT, SR_KIND_SIZE, 1, scratch, why);
    for (int64_t i = 0; i < count && status == SR_OK; i++) {
        char name[SR_KIND_SIZE] = "";
        memcpy(name, scratch + i * SR_KIND_SIZE, SR_KIND_SIZE - 1);
        const sr_family family = sr_family_find(name);
        f->site[i].family = family == SR_FAMILY_COUNT ? SR_FAMILY_NONE : family;
        if (family == SR_FAMILY_COUNT)
            status = sr_fail(why, SR_FORMAT, "%s: /sites/family: unknown '%s' at site %lld",
                             f->path, name, (long long)i);
    }
    return status;
}

/* A column of texts to `offset` in each site. *damaged: it could not be read, which is noted. */
static sr_status read_site_text(sr_runfile *f, const char *column, size_t offset, size_t size,
                                char *scratch, bool *damaged, sr_failure *why) {
    sr_failure own = {0};
    reader_fixed(f, column, H5_TEXT, size, 1, scratch, &own);
    for (int64_t i = 0; i < f->info.sites && own.status == SR_OK; i++)
        memcpy((char *)&f->site[i] + offset, scratch + (size_t)i * size, size - 1);
    *damaged = *damaged || own.status != SR_OK;
    return damage_list_add(f, &own, why);
}

static sr_status read_site_texts(sr_runfile *f, char *scratch, sr_failure *why) {
    int64_t count = f->info.sites;
    bool damaged = false;
    sr_status status = reader_fixed(f, "/sites/name", H5_TEXT, SR_NAME_SIZE, 1, scratch, why);
    for (int64_t i = 0; i < count && status == SR_OK; i++)
        memcpy(f->site[i].name, scratch + i * SR_NAME_SIZE, SR_NAME_SIZE - 1);
#define READ(field, size, definition)                                                              \
    if (status == SR_OK && strcmp(#field, "name") != 0)                                            \
        status = read_site_text(f, "/sites/" #field, offsetof(sr_run_site, field), size, scratch,  \
                                &damaged, why);
    SR_SITE_TEXTS(READ)
    if (!has_methods(f)) {
        for (int64_t i = 0; i < count; i++) method_guess(&f->site[i]);
        return status;
    }
    damaged = false; /* damage of the method alone */
    SR_METHOD_TEXTS(READ)
#undef READ
    sr_failure families = {0};
    if (status == SR_OK) read_families(f, scratch, &families);
    for (int64_t i = 0; i < count && (damaged || families.status != SR_OK); i++)
        method_forget(&f->site[i]);
    return status == SR_OK ? damage_list_add(f, &families, why) : status;
}

/* Analyses take lengths and weights from these numbers: values outside of their definition are
 * damage, and read as NaN. */
static sr_status check_site_numbers(sr_runfile *f, sr_failure *why) {
    sr_status status = SR_OK;
    for (int64_t i = 0; i < f->info.sites && status == SR_OK; i++) {
        sr_run_site *s = &f->site[i];
        sr_failure own = {0};
        if (!isnan(s->alpha) && !(s->alpha >= 0 && s->alpha <= 1))
            sr_fail(&own, SR_FORMAT, "%s: /sites/alpha: %g at site %lld is not within 0 and 1",
                    f->path, s->alpha, (long long)i);
        else if (!isnan(s->alpha_bwd) && !(s->alpha_bwd >= 0 && s->alpha_bwd <= 1))
            sr_fail(&own, SR_FORMAT, "%s: /sites/alpha_bwd: %g at site %lld is not within 0 and 1",
                    f->path, s->alpha_bwd, (long long)i);
        else if (!isnan(s->eps) && !(s->eps >= 0 && isfinite(s->eps)))
            sr_fail(&own, SR_FORMAT, "%s: /sites/eps: %g at site %lld is not within 0 and 1e308",
                    f->path, s->eps, (long long)i);
        if (own.status == SR_OK) continue;
        s->alpha = s->alpha_bwd = s->eps = NAN;
        status = damage_list_add(f, &own, why);
    }
    return status;
}

static sr_status read_site_numbers(sr_runfile *f, void *scratch, sr_failure *why) {
    int64_t count = f->info.sites;
    sr_status status = SR_OK;
    const int32_t *whole = scratch;
    const double *real = scratch;
#define READ(field, type, from)                                                                    \
    if (status == SR_OK) status = reader_fixed(f, "/sites/" #field, type, 0, 1, scratch, why);     \
    for (int64_t i = 0; i < count && status == SR_OK; i++) f->site[i].field = from[i];
#define READ_IF_WHOLE(field, type, from, otherwise)                                                \
    if (status == SR_OK) {                                                                         \
        sr_failure own = {0};                                                                      \
        reader_fixed(f, "/sites/" #field, type, 0, 1, scratch, &own);                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            f->site[i].field = own.status == SR_OK ? from[i] : (otherwise);                        \
        status = damage_list_add(f, &own, why);                                                    \
    }
    READ(offset, H5_INT32, whole)
    READ(width, H5_INT32, whole)
    READ_IF_WHOLE(depth, H5_INT32, whole, i)
    READ_IF_WHOLE(layer_scale, H5_INT32, whole, 0)
    READ_IF_WHOLE(eps, H5_FLOAT64, real, NAN)
    READ_IF_WHOLE(alpha, H5_FLOAT64, real, NAN)
    if (h5_has(reader_file(f), "/sites/observed")) { /* absent in the first files of this version */
        READ_IF_WHOLE(observed, H5_INT32, whole, 0)
    }
    if (h5_has(reader_file(f), "/sites/merged")) { /* absent before passes could be merged */
        READ_IF_WHOLE(merged, H5_INT32, whole, 0)
    }
    for (int64_t i = 0; i < count; i++) f->site[i].alpha_bwd = NAN;
    if (h5_has(reader_file(f), "/sites/alpha_bwd")) { /* absent in 0.1.0 */
        READ_IF_WHOLE(alpha_bwd, H5_FLOAT64, real, NAN)
    }
    if (has_methods(f)) {
        READ_IF_WHOLE(layer_scale_own, H5_INT32, whole, 0)
    }
#undef READ
#undef READ_IF_WHOLE
    if (status == SR_OK) status = check_site_numbers(f, why);
    for (int64_t i = 0; i < count && status == SR_OK; i++) display_norm_fill(&f->site[i]);
    return status;
}

static sr_status check_sites(sr_runfile *f, sr_failure *why) {
    int64_t at = 0;
    for (int64_t i = 0; i < f->info.sites; i++) {
        const sr_run_site *s = &f->site[i];
        if (s->offset != at || s->width < 1 || !s->name[0])
            return sr_fail(why, SR_FORMAT, "%s: /sites: site %lld '%s' at column %lld, width %lld",
                           f->path, (long long)i, s->name, (long long)s->offset,
                           (long long)s->width);
        at += s->width;
    }
    if (check_counts(f, "columns", at, COLUMN_BYTES, why) != SR_OK) return why->status;
    if (f->info.width < 0) f->info.width = at; /* /sites/column_site is damaged */
    if (at == f->info.width) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s: /sites/column_site has %lld columns, the sites %lld",
                   f->path, (long long)f->info.width, (long long)at);
}

/* Number of elements of a fixed array, from its shape alone. */
static sr_status read_length(sr_runfile *f, const char *path, h5_type type, int64_t most,
                             int64_t *count, sr_failure *why) {
    h5_id set;
    h5_shape shape;
    sr_status status = reader_open_fixed(f, path, type, 1, &set, &shape, why);
    if (status == SR_OK && shape.dims[0] > most)
        status = sr_fail(why, SR_FORMAT, "%s: %s: %lld elements", f->path, path,
                         (long long)shape.dims[0]);
    *count = shape.dims[0];
    h5_close_dataset(set);
    return status;
}

/* A damaged file may have a name twice. False if out of memory. */
static bool index_sites(sr_runfile *f) {
    f->site_of = calloc((size_t)f->info.sites + 1, sizeof *f->site_of);
    for (int64_t i = 0; f->site_of && i < f->info.sites; i++) {
        const int64_t known = f->site_names.count;
        const int64_t name = map_add(&f->site_names, f->site[i].name, strlen(f->site[i].name));
        if (name < 0) return false;
        if (name == known) f->site_of[name] = (int32_t)i;
    }
    return f->site_of != NULL;
}

static sr_status read_sites(sr_runfile *f, sr_failure *why) {
    sr_run_info *info = &f->info;
    sr_status status = read_length(f, "/sites/name", H5_TEXT, SITES_MAX, &info->sites, why);
    sr_failure own = {0};
    if (status == SR_OK &&
        read_length(f, "/sites/column_site", H5_INT32, INT32_MAX, &info->width, &own) != SR_OK)
        info->width = -1;
    if (status == SR_OK) status = damage_list_add(f, &own, why);
    if (status == SR_OK) status = check_counts(f, "sites", info->sites, SITE_BYTES, why);
    if (status != SR_OK) return status;
    char *scratch = calloc((size_t)info->sites + 1, SR_NAME_SIZE);
    f->site = calloc((size_t)info->sites + 1, sizeof *f->site);
    for (int64_t i = 0; f->site && i < info->sites; i++) f->site[i].size = sizeof *f->site;
    if (!f->site || !scratch)
        status = sr_fail(why, SR_MEMORY, "%s: %lld sites", f->path, (long long)info->sites);
    if (status == SR_OK) status = read_site_texts(f, scratch, why);
    if (status == SR_OK) status = read_site_numbers(f, scratch, why);
    if (status == SR_OK) status = check_sites(f, why);
    if (status == SR_OK && !index_sites(f))
        status = sr_fail(why, SR_MEMORY, "%s: out of memory for %lld sites", f->path,
                         (long long)info->sites);
    free(scratch);
    return status;
}

/* -- how many rows --------------------------------------------------------------------------- */

typedef enum {
    FILLED,  /* has a value in every counted row */
    SPARSE,  /* may have fewer values */
    OPTIONAL /* may be missing */
} column_kind;

/* Takes the extent of one column into account. A damaged extent may have any value. So the readable
 * rows are limited by the stored bytes of the largest filled column. */
static sr_status count_column(sr_runfile *f, const run_column *c, int which, column_kind kind,
                              sr_failure *why) {
    const bool filled = kind == FILLED;
    h5_id set;
    h5_shape shape;
    sr_failure own = {0};
    sr_status status = reader_open_column(f, c, &set, &shape, &own);
    if (status != SR_OK && kind == OPTIONAL && !reader_has_column(f, c)) return SR_OK;
    if (status != SR_OK) return damage_list_add(f, &own, why);
    int64_t rows = shape.dims[0], stored = 0, claimed = f->committed[which];
    if (rows > f->extent_most[which]) f->extent_most[which] = rows;
    if (f->cut_at) rows = h5_whole_rows(set, rows, f->cut_at);
    if (rows < f->extent_least[which]) f->extent_least[which] = rows;
    if (filled && claimed < 0) claimed = rows;
    if (filled) {
        const int64_t bytes = h5_stored_bytes(set, &own);
        const int64_t wanted = rows < claimed ? rows : claimed;
        stored = bytes < 0 ? 0 : bytes / 8;
        if (bytes >= 0 && stored < wanted)
            sr_fail(&own, SR_FORMAT, "%s: /%s/%s: damaged: %lld of %lld rows are stored", f->path,
                    c->group, c->name, (long long)stored, (long long)wanted);
    }
    if (stored > f->stored_most[which]) f->stored_most[which] = stored;
    if (filled && f->cut_at && stored < f->extent_least[which]) f->extent_least[which] = stored;
    h5_close_dataset(set);
    if (f->cut_at && own.status != SR_MEMORY) return SR_OK; /* its index may be cut off */
    return damage_list_add(f, &own, why);
}

static sr_status count_columns(sr_runfile *f, const run_column *c, int count, int which,
                               sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; i < count && status == SR_OK; i++)
        status = count_column(f, &c[i], which, OPTIONAL, why);
    return status;
}

static int64_t readable(const sr_runfile *f, int which) {
    int64_t rows = f->extent_least[which];
    if (f->stored_most[which] < rows) rows = f->stored_most[which];
    return f->committed[which] >= 0 && f->committed[which] < rows ? f->committed[which] : rows;
}

static sr_status count_filled(sr_runfile *f, sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; i < RUN_STEPS && status == SR_OK; i++)
        status = count_column(f, &run_steps[i], COMMITTED_STEPS, FILLED, why);
    if (status == SR_OK) status = count_column(f, &run_vector_step, COMMITTED_VECTORS, FILLED, why);
    if (status == SR_OK) status = count_column(f, &run_eval_step, COMMITTED_EVALS, FILLED, why);
    return status;
}

static sr_status count_others(sr_runfile *f, sr_failure *why) {
    sr_status status = count_columns(f, run_scalars, SR_SCALAR_COUNT, COMMITTED_STEPS, why);
    for (int i = 0; i < f->declared_count && status == SR_OK; i++)
        status = count_column(f, &f->declared[i].column, COMMITTED_STEPS, SPARSE, why);
    if (status == SR_OK)
        status = count_columns(f, run_vectors, SR_VECTOR_COUNT, COMMITTED_VECTORS, why);
    if (status == SR_OK) status = count_column(f, &run_eval_epoch, COMMITTED_EVALS, SPARSE, why);
    for (int i = 0; i < f->metrics && status == SR_OK; i++)
        status = count_column(f, &f->metric[i].column, COMMITTED_EVALS, SPARSE, why);
    return status;
}

/* The committed counts were read before; since then a writer can only have extended columns. A
 * finished file has all columns at the same length. Its trailer shows that nothing changed since,
 * so that most of its datasets need not be opened. */
static sr_status count_rows(sr_runfile *f, sr_failure *why) {
    for (int i = 0; i < COMMITTED_COUNT; i++)
        f->extent_least[i] = INT64_MAX, f->extent_most[i] = f->stored_most[i] = 0;
    sr_status status = count_filled(f, why);
    if (status == SR_OK && !reader_is_intact(f)) status = count_others(f, why);
    f->info.steps = readable(f, COMMITTED_STEPS);
    f->info.vectors = readable(f, COMMITTED_VECTORS);
    f->info.evals = readable(f, COMMITTED_EVALS);
    return status;
}

/* -- opening and closing --------------------------------------------------------------------- */

static sr_status read_file(sr_runfile *f, sr_failure *why) {
    sr_status status = reader_load_trailer(f, why);
    if (status == SR_OK)
        status =
            reader_open_file(f->path, f->end, &f->unfinished, &f->cut_at, &f->shelf->file, why);
    if (status == SR_OK) status = reader_report_trailer(f, why);
    if (status == SR_OK) status = read_root(f, why);
    if (status == SR_OK) status = read_state(f, why);
    char *reason = (char *)(uintptr_t)f->info.reason;
    if (status == SR_OK && f->cut_at && !*reason) /* the writer could not store one */
        snprintf(reason, SR_REASON_SIZE, "truncated to %lld bytes", (long long)f->cut_at);
    if (status == SR_OK) status = read_sites(f, why);
    if (status == SR_OK) status = reader_list_metrics(f, why);
    if (status == SR_OK) status = reader_list_declared(f, why);
    if (status == SR_OK) status = count_rows(f, why);
    if (status == SR_OK) status = reader_count_spectra(f, why);
    if (status == SR_OK) status = reader_count_pairs(f, why);
    return status == SR_OK ? reader_list_names(f, why) : status;
}

void sr_disable_hdf5_atexit(void) {
    h5_disown_exit();
}

static sr_runfile *open_once(const char *path, sr_failure *why) {
    sr_failure own = {0};
    char *chosen = reader_choose_path(path, why);
    if (!chosen) return NULL;
    sr_runfile *f = calloc(1, sizeof *f);
    reader_text **texts = calloc(1, sizeof *texts);
    reader_shelf *shelf = calloc(1, sizeof *shelf);
    if (!f || !texts || !shelf) {
        sr_fail(why, SR_MEMORY, "%s: open", path);
        free(f), free(texts), free(shelf), free(chosen);
        return NULL;
    }
    f->info.size = sizeof f->info;
    shelf->last_step = -1;
    f->path = chosen, f->info.path = chosen, f->texts = texts, f->shelf = shelf;
    if (read_file(f, &own) == SR_OK) return f;
    if (own.status == SR_FORMAT && f->cut_at)
        sr_fail(why, SR_FORMAT, "%s: truncated to %lld bytes: nothing of the run is left", f->path,
                (long long)f->cut_at);
    else
        *why = own;
    sr_run_close(f);
    return NULL;
}

/* A growing file may change or be renamed between two reads, so opening is repeated. */
sr_runfile *sr_run_open(const char *path, sr_failure *why) {
    if (!path || !*path) {
        sr_fail(why, SR_USAGE, "no path of a run file");
        return NULL;
    }
    for (int attempts = 0;; attempts++) {
        sr_failure own = {0};
        const bool live = reader_is_live(path);
        sr_runfile *f = open_once(path, &own);
        if (!f && reader_retries(path, live, &own, attempts)) continue;
        if (!f && why && why->status == SR_OK) *why = own;
        return f;
    }
}

sr_runfile *sr_run_open_beside(const char *path, const sr_runfile *beside, sr_failure *why) {
    sr_runfile *f = sr_run_open(path, why);
    if (!f) return NULL;
    if (reader_join(f, beside, why) == SR_OK) return f;
    sr_run_close(f);
    return NULL;
}

static void free_text(const char *text) {
    free((void *)(uintptr_t)text);
}

void sr_run_close(sr_runfile *f) {
    if (!f) return;
    reader_leave(f);
    reader_drop_cache(f), h5_close(f->shelf->file, NULL), free(f->shelf->answer);
    if (f->end) trailer_free(f->end);
    free(f->end);
#define FREE(name) free_text(f->info.name);
    RUN_TEXTS(FREE)
#undef FREE
    free_text(f->info.status), free_text(f->info.reason);
    free_text(f->info.finished), free_text(f->info.weights_digest), free_text(f->info.ranks);
    shared_tables_free(f);
    for (reader_text *t = *f->texts, *next; t; t = next) {
        next = t->next;
        free(t->dataset), free(t->text), free(t);
    }
    free(f->damage), free(f->texts), free(f->shelf), free(f->path);
    free(f);
}
