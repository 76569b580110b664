/* read_custom.c -- reads the declarations of custom scalars, and the ranks whose rows the
 * statistics cover. */
#include "runfile/read/datasets/read_custom.h"

#include <stdlib.h>
#include <string.h>

#include "runfile/read/file/damage_list.h"
#include "runfile/read/file/open_file_cache.h"
#include "runfile/read/file/read_column.h"

sr_status reader_line(const sr_runfile *f, const char *object, const char *attribute, bool lines,
                      char *text, size_t size, sr_failure *why) {
    void *read = NULL;
    sr_status status =
        h5_get_attribute(reader_file(f), object, attribute, H5_TEXT, &read, NULL, why);
    if (status != SR_OK) return status;
    size_t length = 0;
    for (const unsigned char *c = read; (*c >= ' ' && *c != 0x7f) || (lines && *c == '\n'); c++)
        length++;
    if (((char *)read)[length] || length >= size)
        status = sr_fail(why, SR_FORMAT, "%s: %s attribute %s: not a line of less than %zu bytes",
                         f->path, object, attribute, size);
    else
        memcpy(text, read, length + 1);
    free(read);
    return status;
}

/* Whether sr_declare_scalar would accept the name after the earlier ones. */
static bool is_free(const sr_runfile *f, const char *name) {
    for (int i = 0; i < f->declared_count; i++)
        if (strcmp(f->declared[i].name, name) == 0) return false;
    return *name && *name != '.' && !strchr(name, '/') &&
           !run_find_column(run_scalars, SR_SCALAR_COUNT, name) &&
           !run_find_column(run_steps, RUN_STEPS, name);
}

static sr_status read_texts(const sr_runfile *f, reader_declared *d, sr_failure *why) {
    h5_id set;
    h5_shape shape;
    const h5_path path = h5_path_of("/%s/%s", d->column.group, d->name);
    sr_status status = reader_open_column(f, &d->column, &set, &shape, why);
    if (status != SR_OK) return status;
    h5_close_dataset(set);
    status = reader_line(f, path.text, "unit", false, d->unit, sizeof d->unit, why);
    if (status != SR_OK) return status;
    return reader_line(f, path.text, "definition", false, d->definition, sizeof d->definition, why);
}

/* Adds a scalar. Its column and its public view point into it, so it must not move. */
static sr_status take_name(sr_runfile *f, const char *name, size_t length, sr_scope scope,
                           sr_failure *why) {
    const bool site = scope == SR_PER_SITE;
    char taken[SR_NAME_SIZE] = "";
    if (length < sizeof taken) memcpy(taken, name, length);
    if (f->declared_count == RUN_DECLARED_MAX || !is_free(f, taken))
        return sr_fail(why, SR_FORMAT, "%s: /host: '%.*s' is not a name, or one of more than %d",
                       f->path, (int)(length < SR_NAME_SIZE ? length : SR_NAME_SIZE), name,
                       RUN_DECLARED_MAX);
    reader_declared *d = &f->declared[f->declared_count];
    *d = (reader_declared){0};
    memcpy(d->name, taken, sizeof taken);
    d->column = (run_column){site ? "scalars" : "steps", d->name, d->unit, d->definition,
                             site ? H5_FLOAT32 : H5_FLOAT64};
    d->shown = SR_INIT(sr_run_declared, d->name, d->unit, d->definition, scope);
    sr_failure own = {0};
    if (read_texts(f, d, &own) == SR_OK) f->declared_count++;
    return damage_list_add(f, &own, why);
}

/* Reports the first invalid name, and reads the others. */
static sr_status read_list(sr_runfile *f, const char *attribute, sr_scope scope, sr_failure *why) {
    enum { SIZE = RUN_DECLARED_MAX * (SR_NAME_SIZE + 1) };
    char *names = calloc(1, SIZE);
    sr_failure own = {0};
    int taken = 0;
    if (!names) return sr_fail(why, SR_MEMORY, "%s: names of scalars", f->path);
    reader_line(f, "/host", attribute, true, names, SIZE, &own);
    for (char *at = names; *at && taken <= RUN_DECLARED_MAX && own.status != SR_MEMORY;
         at += *at == '\n', taken++) {
        const size_t length = strcspn(at, "\n");
        take_name(f, at, length, scope, &own);
        at += length;
    }
    free(names);
    return damage_list_add(f, &own, why);
}

sr_status reader_list_declared(sr_runfile *f, sr_failure *why) {
    char *ranks = calloc(1, SR_REASON_SIZE);
    sr_failure own = {0};
    if (!(f->info.ranks = ranks)) return sr_fail(why, SR_MEMORY, "%s: ranks", f->path);
    if (!h5_has(reader_file(f), "/host")) return SR_OK;
    reader_line(f, "/host", "ranks", false, ranks, SR_REASON_SIZE, &own);
    sr_status status = damage_list_add(f, &own, why);
    if (status != SR_OK) return status;
    f->declared = calloc(RUN_DECLARED_MAX, sizeof *f->declared);
    if (!f->declared) return sr_fail(why, SR_MEMORY, "%s: scalars of the host", f->path);
    if (h5_has(reader_file(f), "/scalars/rows")) status = read_list(f, "scalars", SR_PER_SITE, why);
    return status == SR_OK ? read_list(f, "steps", SR_PER_STEP, why) : status;
}

const sr_run_declared *sr_run_get_declared(const sr_runfile *f, int64_t i) {
    return i >= 0 && i < f->declared_count ? &f->declared[i].shown : NULL;
}

const run_column *reader_declared_column(const sr_runfile *f, const char *name, sr_scope scope) {
    for (int i = 0; i < f->declared_count; i++)
        if (f->declared[i].shown.scope == scope && strcmp(f->declared[i].name, name) == 0)
            return &f->declared[i].column;
    return NULL;
}
