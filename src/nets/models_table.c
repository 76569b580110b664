/* models_table.c -- the table of models and what all of them share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_rows.h"
#include "statnet/models.h"

static const model_row *const rows[] = {&model_resnet20, &model_transformer};

enum { ROWS = sizeof rows / sizeof rows[0] };

const model_row *model_at(int i) {
    return i >= 0 && i < ROWS ? rows[i] : NULL;
}

const model_row *model_find(const char *name) {
    for (int i = 0; i < ROWS; i++)
        if (!strcmp(rows[i]->name, name)) return rows[i];
    return NULL;
}

static const char *task_word(task k) {
    return k == TASK_IMAGES ? "images" : "sentence pairs";
}

model *model_create(const model_options *o, const data_shape *shape, sr_failure *why) {
    const model_row *row = model_find(o->name);
    if (!row) {
        sr_fail(why, SR_USAGE, "model '%s' is not known", o->name);
        return NULL;
    }
    if (row->task != shape->task) {
        sr_fail(why, SR_USAGE, "model %s takes %s, the data are %s", o->name, task_word(row->task),
                task_word(shape->task));
        return NULL;
    }
    model *m = calloc(1, sizeof *m);
    if (!m) {
        sr_fail(why, SR_MEMORY, "out of memory for model %s", o->name);
        return NULL;
    }
    m->row = row;
    params_init(&m->params, o->seed);
    sr_status status = row->build(m, o, shape, why);
    if (status == SR_OK && m->params.failure.status != SR_OK)
        status = sr_fail(why, m->params.failure.status, "%s", m->params.failure.text);
    if (status == SR_OK) return m;
    model_free(m);
    return NULL;
}

void model_free(model *m) {
    if (!m) return;
    if (m->self) m->row->free(m);
    for (int i = 0; i < m->sites; i++) {
        norm_site_free(m->site[i]);
        free(m->site[i]);
    }
    free(m->site);
    params_free(&m->params);
    free(m);
}

tensor *model_loss(model *m, tape *t, const batch *b, norm_mode mode,
                   cross_entropy_report *report) {
    return m->row->loss(m, t, b, mode, report);
}

norm_site *model_add_site(model *m, const char *name, const char *kind, int64_t features,
                          const norm_method *method, const norm_options *options, sr_failure *why) {
    if (m->sites == m->room) {
        int room = m->room ? 2 * m->room : 32;
        norm_site **site = realloc(m->site, (size_t)room * sizeof(*site));
        if (!site) {
            sr_fail(why, SR_MEMORY, "out of memory for site %s", name);
            return NULL;
        }
        m->site = site;
        m->room = room;
    }
    norm_site *s = calloc(1, sizeof *s);
    if (!s) {
        sr_fail(why, SR_MEMORY, "out of memory for site %s", name);
        return NULL;
    }
    if (norm_site_init(s, &m->params, name, kind, m->sites, features, method, options, why) !=
        SR_OK) {
        norm_site_free(s);
        free(s);
        return NULL;
    }
    return m->site[m->sites++] = s;
}

bool model_glob(const char *pattern, const char *name) {
    if (!*pattern) return !*name;
    if (*pattern == '*')
        return model_glob(pattern + 1, name) || (*name && model_glob(pattern, name + 1));
    return *name && (*pattern == '?' || *pattern == *name) && model_glob(pattern + 1, name + 1);
}
