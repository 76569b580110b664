/* read_names.c -- lists the names of a run file's columns by group (sr_run_name). */
#include "runfile/read/datasets/read_names.h"
#include "runfile/read/datasets/read_custom.h"
#include "runfile/read/datasets/read_metrics.h"

#include <stdio.h>
#include <stdlib.h>

#include "runfile/read/file/damage_list.h"
#include "runfile/read/file/open_file_cache.h"
#include "runfile/read/file/read_column.h"

static sr_status add_name(sr_runfile *f, int group, const char *name, sr_failure *why) {
    reader_names *list = &f->names[group];
    void *grown = realloc(list->name, (size_t)(list->count + 1) * sizeof *list->name);
    if (!grown)
        return sr_fail(why, SR_MEMORY, "%s: names in %s", f->path, reader_group_names[group]);
    list->name = grown;
    snprintf(list->name[list->count++], SR_NAME_SIZE, "%s", name);
    return SR_OK;
}

/* Tries each name instead of listing the group, which may crash HDF5 (h5_add_group). */
static sr_status add_columns(sr_runfile *f, int group, const run_column *c, int count,
                             sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; i < count && status == SR_OK; i++)
        if (reader_has_column(f, &c[i])) status = add_name(f, group, c[i].name, why);
    return status;
}

/* Members of /embeddings. If there are more than a run file may have (damage), the first ones. */
static sr_status count_embeddings(sr_runfile *f, int64_t *count, sr_failure *why) {
    sr_failure own = {0};
    if (h5_count_members(reader_file(f), "/embeddings", count, &own) == SR_OK &&
        *count > SR_EMBEDDINGS_MAX) {
        sr_fail(&own, SR_FORMAT, "%s: /embeddings has %lld members, more than %d", f->path,
                (long long)*count, SR_EMBEDDINGS_MAX);
        *count = SR_EMBEDDINGS_MAX;
    }
    return damage_list_add(f, &own, why);
}

static sr_status list_embeddings(sr_runfile *f, sr_failure *why) {
    char name[SR_NAME_SIZE];
    int64_t count = 0;
    if (!h5_has(reader_file(f), "/embeddings")) return SR_OK;
    sr_status status = count_embeddings(f, &count, why);
    sr_failure own = {0};
    for (int64_t i = 0; i < count && status == SR_OK && own.status == SR_OK; i++)
        if (h5_member(reader_file(f), "/embeddings", i, name, sizeof name, &own) == SR_OK)
            status = add_name(f, READER_GROUPS - 1, name, why);
    return status == SR_OK ? damage_list_add(f, &own, why) : status;
}

static sr_status add_declared(sr_runfile *f, int group, sr_scope scope, sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; i < f->declared_count && status == SR_OK; i++)
        if (f->declared[i].shown.scope == scope)
            status = add_name(f, group, f->declared[i].name, why);
    return status;
}

sr_status reader_list_names(sr_runfile *f, sr_failure *why) {
    sr_status status = add_columns(f, 0, run_scalars, SR_SCALAR_COUNT, why);
    if (status == SR_OK) status = add_declared(f, 0, SR_PER_SITE, why);
    if (status == SR_OK) status = add_columns(f, 1, run_vectors, SR_VECTOR_COUNT, why);
    if (status == SR_OK) status = add_columns(f, 2, &run_eval_epoch, 1, why);
    for (int i = 0; i < f->metrics && status == SR_OK; i++)
        status = add_name(f, 2, f->metric[i].name, why);
    if (status == SR_OK) status = add_columns(f, 3, run_steps, RUN_STEPS, why);
    if (status == SR_OK) status = add_declared(f, 3, SR_PER_STEP, why);
    return status == SR_OK ? list_embeddings(f, why) : status;
}
