/* attention_scalars.c -- see attention_scalars.h. Site scalars, each at the site of the branch that the
 * attention is in, NaN at other sites:
 *
 *   attention_logit_max          largest over the heads     attention_logit_max_headH    of head H
 *   attention_entropy            mean over the heads        attention_entropy_headH      of head H
 *
 * in the order of the heads, in double; NaN where no query counts.
 */
#include "attention_scalars.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOGIT_MAX, ENTROPY, KINDS, HEADS_MAX = SR_DECLARED_MAX / KINDS - 2 };

typedef struct watched {
    attention_scalars *owner;
    int site; /* number in the recorder */
} watched;

struct attention_scalars {
    sr_recorder *recorder;
    model *model;
    int number;
    watched *of;                /* [attentions of the model] */
    int all[KINDS];             /* ids of what is over all heads */
    int head[KINDS][HEADS_MAX]; /* and of each */
};

/* -- declaring */

static const struct {
    const char *name, *unit, *definition, *over;
} kinds[KINDS] = {
    [LOGIT_MAX] = {"attention_logit_max", "1",
                   "largest logit of the attention over queries and the keys that they see",
                   "largest over its heads"},
    [ENTROPY] = {"attention_entropy", "nats",
                 "mean over queries of -sum p ln p of the attention's weights p",
                 "mean over its heads"},
};

static void declare_kind(attention_scalars *a, int kind, int heads) {
    char name[SR_NAME_SIZE], definition[SR_DEFINITION_SIZE];
    snprintf(definition, sizeof definition, "%s, %s", kinds[kind].definition, kinds[kind].over);
    a->all[kind] =
        sr_declare_scalar(a->recorder, kinds[kind].name, kinds[kind].unit, definition, SR_PER_SITE);
    for (int h = 0; h < heads; h++) {
        snprintf(name, sizeof name, "%s_head%d", kinds[kind].name, h);
        snprintf(definition, sizeof definition, "%s, of head %d", kinds[kind].definition, h);
        a->head[kind][h] =
            sr_declare_scalar(a->recorder, name, kinds[kind].unit, definition, SR_PER_SITE);
    }
}

static sr_status declare(attention_scalars *a, sr_failure *why) {
    int heads = 0;
    for (int i = 0; i < a->model->attentions; i++)
        if (a->model->attention[i]->heads > heads) heads = a->model->attention[i]->heads;
    if (heads > HEADS_MAX)
        return sr_fail(why, SR_USAGE, "--attention-stats: at most %d heads, not %d", (int)HEADS_MAX,
                       heads);
    for (int k = 0; k < KINDS; k++) declare_kind(a, k, heads);
    const sr_failure *f = sr_failed(a->recorder);
    return f ? sr_fail(why, f->status, "%s", f->text) : SR_OK;
}

/* -- watching */

static void put(const watched *w, int kind, const double *value, int heads) {
    const attention_scalars *a = w->owner;
    double largest = value[0], sum = 0;
    for (int h = 0; h < heads; h++) {
        if (value[h] > largest) largest = value[h];
        sum += value[h];
        sr_put_scalar(a->recorder, w->site, a->head[kind][h], value[h]);
    }
    sr_put_scalar(a->recorder, w->site, a->all[kind],
                  kind == LOGIT_MAX ? largest : sum / (double)heads);
}

static void watch(void *context, const model_attention *of, const attention_report *found) {
    const watched *w = context;
    if (w->owner->number != 0) return;
    put(w, LOGIT_MAX, found->logit_max, of->heads);
    put(w, ENTROPY, found->entropy, of->heads);
}

attention_scalars *attention_scalars_create(model *m, sr_recorder *r, const hooks *h,
                                            sr_failure *why) {
    attention_scalars *a = calloc(1, sizeof *a);
    if (a) a->of = calloc((size_t)m->attentions + 1, sizeof *a->of);
    if (!a || !a->of) {
        sr_fail(why, SR_MEMORY, "out of memory for %d attentions", m->attentions);
        free(a);
        return NULL;
    }
    a->recorder = r;
    a->model = m;
    if (declare(a, why) != SR_OK) {
        attention_scalars_free(a);
        return NULL;
    }
    for (int i = 0; i < m->attentions; i++) {
        a->of[i] = (watched){a, hooks_site(h, m->attention[i]->site->depth)};
        if (a->of[i].site < 0) continue;
        m->attention[i]->watcher = watch;
        m->attention[i]->context = &a->of[i];
    }
    return a;
}

void attention_scalars_free(attention_scalars *a) {
    if (!a) return;
    for (int i = 0; i < a->model->attentions; i++) a->model->attention[i]->watcher = NULL;
    free(a->of);
    free(a);
}

void attention_scalars_enter(attention_scalars *a, int number) {
    if (a) a->number = number;
}
