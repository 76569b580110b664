/* models_table.c -- the table of models and their shared functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options/options.h"
#include "nets/model_rows.h"
#include "nets/models.h"

static const model_row *const rows[] = {
#define MODEL_ROW(name) &model_##name,
    MODELS(MODEL_ROW)
#undef MODEL_ROW
};

enum { ROWS = sizeof rows / sizeof rows[0] };

const model_row *model_at(int i) {
    return i >= 0 && i < ROWS ? rows[i] : NULL;
}

const model_row *model_find(const char *name) {
    for (int i = 0; i < ROWS; i++)
        if (!strcmp(rows[i]->name, name)) return rows[i];
    return NULL;
}

bool model_obeys(const char *name, const char *key) {
    const model_row *row = model_find(name);
    return row && options_lists(row->options, key);
}

static model *start(const model_row *row, const model_options *o, sr_failure *why) {
    model *m = calloc(1, sizeof *m);
    if (m) m->self = calloc(1, row->size);
    if (!m || !m->self) {
        free(m);
        sr_fail(why, SR_MEMORY, "out of memory for model %s", o->name);
        return NULL;
    }
    m->row = row;
    params_init(&m->params, o->seed);
    m->params.most = o->most_parameters;
    return m;
}

/* Its sites have their names, whatever normalizes there. */
static sr_status assign_norms(model *m, const model_options *o, const data_shape *shape,
                              sr_failure *why) {
    if (!*o->norm_at) return SR_OK;
    model_options plain = *o;
    *plain.norm_at = 0;
    if (o->most_parameters) { /* its sites may have fewer parameters than `norm` has */
        strcpy(plain.norm, "none"), strcpy(plain.decoder_norm, "none");
        plain.layer_scale = 0;
    }
    model *named = start(m->row, &plain, why);
    if (!named) return why->status;
    sr_status status = m->row->build(named, &plain, shape, why);
    if (status == SR_OK && named->params.failure.status != SR_OK)
        status = sr_fail(why, named->params.failure.status, "%s", named->params.failure.text);
    if (status == SR_OK) status = model_assign_norms(m, named, o, why);
    model_free(named);
    return status;
}

model *model_create(const model_options *o, const data_shape *shape, sr_failure *why) {
    const model_row *row = model_find(o->name);
    if (!row) {
        sr_fail(why, SR_USAGE, "unknown model '%s'", o->name);
        return NULL;
    }
    model *m = start(row, o, why);
    if (!m) return NULL;
    sr_status status = assign_norms(m, o, shape, why);
    if (status == SR_OK) status = row->build(m, o, shape, why);
    if (m->params.failure.status == SR_FORMAT && why) *why = m->params.failure; /* it was first */
    /* builders seldom check their parameters: reports the first failure */
    if (m->params.failure.status != SR_OK && !(why && why->status != SR_OK))
        status = sr_fail(why, m->params.failure.status, "%s", m->params.failure.text);
    if (status == SR_OK) status = model_check_norm_params(m, o, why);
    if (status == SR_OK) return m;
    model_free(m);
    return NULL;
}

const char *model_condition(const model *m) {
    return m->condition ? m->condition : "";
}

void model_free(model *m) {
    if (!m) return;
    if (m->self && m->row->free) m->row->free(m);
    free(m->self);
    for (int i = 0; i < m->sites; i++) {
        norm_site_free(m->site[i]);
        free(m->site[i]);
    }
    free(m->site);
    for (int i = 0; i < m->attentions; i++) free(m->attention[i]);
    free(m->attention);
    free(m->assigned);
    params_free(&m->params);
    free(m);
}
