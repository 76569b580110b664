/* custom_scalars.c -- declares custom scalars; finds the statistics of the format by name. */
#include "record/run/custom_scalars.h"

#include <stdio.h>
#include <string.h>

#include "record/recorder_state.h"
#include "runfile/write/write_custom.h"

/* -- statistics of the format ------------------------------------------------------------------ */

int sr_vector_id(const char *name) {
    const run_column *c = name ? run_find_column(run_vectors, SR_VECTOR_COUNT, name) : NULL;
    return c ? (int)(c - run_vectors) : -1;
}

int sr_scalar_id(const char *name) {
    const run_column *c = name ? run_find_column(run_scalars, SR_SCALAR_COUNT, name) : NULL;
    return c ? (int)(c - run_scalars) : -1;
}

const char *sr_vector_name(int which) {
    return which >= 0 && which < SR_VECTOR_COUNT ? run_vectors[which].name : NULL;
}

const char *sr_scalar_name(int which) {
    return which >= 0 && which < SR_SCALAR_COUNT ? run_scalars[which].name : NULL;
}

const char *sr_vector_definition(int which) {
    return which >= 0 && which < SR_VECTOR_COUNT ? run_vectors[which].definition : NULL;
}

const char *sr_scalar_definition(int which) {
    return which >= 0 && which < SR_SCALAR_COUNT ? run_scalars[which].definition : NULL;
}

/* -- custom scalars ---------------------------------------------------------------------------- */

static bool is_taken(const sr_recorder *r, const char *name) {
    for (int i = 0; i < r->writer.declared_count; i++)
        if (strcmp(r->writer.declared[i].name, name) == 0) return true;
    return false;
}

static bool is_column(const char *name) {
    return run_find_column(run_scalars, SR_SCALAR_COUNT, name) ||
           run_find_column(run_steps, RUN_STEPS, name);
}

/* Columns that overhead_limit.c fills. */
static bool is_of_recorder(const char *name) {
    return name && (strcmp(name, RECORDER_SECONDS) == 0 || strcmp(name, RECORDER_EVERY) == 0);
}

bool recorder_is_paced(const sr_options *o) {
    return o->overhead > 0 && o->vectors && o->vectors_every == -1;
}

static sr_status check_scalar(sr_recorder *r, const char *name, const char *unit,
                              const char *definition, sr_scope scope) {
    sr_failure *why = &r->failure;
    if (recorder_check_label(r, "scalar", name, unit, definition) != SR_OK)
        return recorder_check(r);
    if (is_taken(r, name))
        return sr_fail(why, SR_USAGE, "%s: scalar %s declared twice", r->path, name);
    if (is_column(name))
        return sr_fail(why, SR_USAGE, "%s: scalar %s is a column of every file already", r->path,
                       name);
    if (scope != SR_PER_SITE && scope != SR_PER_STEP)
        return sr_fail(why, SR_USAGE, "%s: scalar %s: scope %d", r->path, name, (int)scope);
    int of_host = 0;
    for (int i = 0; i < r->writer.declared_count; i++)
        of_host += !is_of_recorder(r->writer.declared[i].name);
    if (is_of_recorder(name) || of_host < SR_DECLARED_MAX) return SR_OK;
    return sr_fail(why, SR_USAGE, "%s: scalar %s: %d are declared already", r->path, name,
                   SR_DECLARED_MAX);
}

int recorder_declare_scalar(sr_recorder *r, const char *name, const char *unit,
                            const char *definition, sr_scope scope) {
    if (!r || recorder_too_late(r, "sr_declare_scalar")) return -1;
    if (!unit) unit = "";
    if (!definition) definition = "";
    if (check_scalar(r, name, unit, definition, scope) != SR_OK) return -1;
    run_declared *d = writer_add_declared(&r->writer, &r->failure);
    if (!d) return -1;
    d->scope = scope;
    snprintf(d->name, sizeof d->name, "%s", name);
    snprintf(d->unit, sizeof d->unit, "%s", unit);
    snprintf(d->definition, sizeof d->definition, "%s", definition);
    return SR_SCALAR_COUNT + r->writer.declared_count - 1;
}

int sr_declare_scalar(sr_recorder *r, const char *name, const char *unit, const char *definition,
                      sr_scope scope) {
    if (!r || !is_of_recorder(name) || !recorder_is_paced(&r->options))
        return recorder_declare_scalar(r, name, unit, definition, scope);
    sr_fail(&r->failure, SR_USAGE, "%s: scalar %s: options.overhead has one of this name", r->path,
            name);
    return -1;
}
