/* attention_scalars.c -- see attention_scalars.h. Scalars at the site of the attention's branch,
 * NaN at other sites:
 *
 *   attention_logit_max          largest over the heads     attention_logit_max_headH    of head H
 *   attention_entropy            mean over the heads        attention_entropy_headH      of head H
 *
 * in the order of the heads, in double; NaN without a valid query. Shards are merged in their
 * order: the largest logit is their maximum. The entropy is the sum over queries divided by all
 * queries.
 */
#include "observe/attention_scalars.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observe/shard_gather.h"

enum { LOGIT_MAX, ENTROPY, KINDS, HEADS_MAX = SR_DECLARED_MAX / KINDS - 2 };

/* Sums of a shard and head; queries 0: nothing. */
typedef struct head_sums {
    double logit_max, entropy, queries;
} head_sums;

typedef struct watched {
    attention_scalars *owner;
    int head; /* its first head, among all heads of the model */
    bool chosen;
} watched;

struct attention_scalars {
    sr_recorder *recorder; /* NULL: another process has it */
    model *model;
    const hooks *hooks;
    int number, shares, heads;  /* share that passes; of this process; of all attentions */
    watched *of;                /* [attentions of the model] */
    head_sums *found;           /* [shares, heads] in this step */
    int all[KINDS];             /* ids of scalars over all heads */
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

static sr_status declare(attention_scalars *a, sr_failure *why) {
    int heads = 0;
    if (!a->recorder) return SR_OK;
    for (int i = 0; i < a->model->attentions; i++)
        if (a->model->attention[i]->heads > heads) heads = a->model->attention[i]->heads;
    if (heads > HEADS_MAX)
        return sr_fail(why, SR_USAGE, "--attention-stats: at most %d heads, not %d", (int)HEADS_MAX,
                       heads);
    for (int k = 0; k < KINDS; k++) {
        char name[SR_NAME_SIZE], definition[SR_DEFINITION_SIZE];
        snprintf(definition, sizeof definition, "%s, %s", kinds[k].definition, kinds[k].over);
        a->all[k] =
            sr_declare_scalar(a->recorder, kinds[k].name, kinds[k].unit, definition, SR_PER_SITE);
        for (int h = 0; h < heads; h++) {
            snprintf(name, sizeof name, "%s_head%d", kinds[k].name, h);
            snprintf(definition, sizeof definition, "%s, of head %d", kinds[k].definition, h);
            a->head[k][h] =
                sr_declare_scalar(a->recorder, name, kinds[k].unit, definition, SR_PER_SITE);
        }
    }
    const sr_failure *f = sr_failed(a->recorder);
    return f ? sr_fail(why, f->status, "%s", f->text) : SR_OK;
}

/* -- watching */

static void watch(void *context, const model_attention *of, const attention_report *found) {
    const watched *w = context;
    const attention_scalars *a = w->owner;
    head_sums *to = a->found + a->number * a->heads + w->head;
    for (int h = 0; h < of->heads; h++)
        to[h] = (head_sums){found->logit_max[h], found->entropy[h], found->queries[h]};
}

attention_scalars *attention_scalars_create(model *m, sr_recorder *r, const hooks *h, int shares,
                                            sr_failure *why) {
    attention_scalars *a = calloc(1, sizeof *a);
    if (a) *a = (attention_scalars){.recorder = r, .model = m, .hooks = h, .shares = shares};
    if (a) a->of = calloc((size_t)m->attentions + 1, sizeof *a->of);
    for (int i = 0; a && a->of && i < m->attentions; i++) {
        model_attention *of = m->attention[i];
        a->of[i] = (watched){a, a->heads, hooks_watches(h, of->site->depth)};
        a->heads += of->heads;
        if (!a->of[i].chosen) continue;
        of->hook = watch;
        of->context = &a->of[i];
    }
    if (a && a->of) a->found = calloc((size_t)(shares * a->heads) + 1, sizeof *a->found);
    if (!a || !a->found) sr_fail(why, SR_MEMORY, "out of memory for %d attentions", m->attentions);
    if (a && a->found && declare(a, why) == SR_OK) return a;
    attention_scalars_free(a);
    return NULL;
}

void attention_scalars_free(attention_scalars *a) {
    if (!a) return;
    for (int i = 0; i < a->model->attentions; i++) a->model->attention[i]->hook = NULL;
    free(a->found);
    free(a->of);
    free(a);
}

void attention_scalars_begin_step(attention_scalars *a) {
    if (a) memset(a->found, 0, (size_t)(a->shares * a->heads) * sizeof *a->found);
}

void attention_scalars_enter(attention_scalars *a, int number) {
    if (a) a->number = number;
}

/* -- all shares -- */

/* Merges one head of all [shards, heads]. */
static void merge_head(const attention_scalars *a, const head_sums *all, int shares,
                       double value[KINDS]) {
    head_sums sum = {.logit_max = -INFINITY};
    for (int k = 0; k < shares; k++, all += a->heads) {
        if (!(all->queries > 0)) continue;
        if (all->logit_max > sum.logit_max) sum.logit_max = all->logit_max;
        sum.entropy += all->entropy;
        sum.queries += all->queries;
    }
    value[LOGIT_MAX] = sum.queries > 0 ? sum.logit_max : NAN;
    value[ENTROPY] = sum.entropy / sum.queries;
}

static void put(const attention_scalars *a, int i, const head_sums *all, int shares) {
    const model_attention *of = a->model->attention[i];
    const int site = hooks_site(a->hooks, of->site->depth);
    double largest = NAN, sum = 0;
    for (int h = 0; h < of->heads; h++) {
        double value[KINDS];
        merge_head(a, all + a->of[i].head + h, shares, value);
        if (h == 0 || value[LOGIT_MAX] > largest) largest = value[LOGIT_MAX];
        sum += value[ENTROPY];
        for (int k = 0; k < KINDS; k++) sr_put_scalar(a->recorder, site, a->head[k][h], value[k]);
    }
    sr_put_scalar(a->recorder, site, a->all[LOGIT_MAX], largest);
    sr_put_scalar(a->recorder, site, a->all[ENTROPY], sum / (double)of->heads);
}

sr_status attention_scalars_exchange(attention_scalars *a, const run_exchange *x, sr_failure *why) {
    const int64_t each = a ? a->heads * (int64_t)(sizeof *a->found / sizeof(double)) : 0;
    double *all;
    if (!a) return SR_OK;
    sr_status status = shard_gather_shares(x, (double *)(void *)a->found, each, &all, why);
    if (status != SR_OK) return status;
    for (int i = 0; i < a->model->attentions && a->recorder; i++)
        if (a->of[i].chosen) put(a, i, (const head_sums *)(void *)all, shard_gather_count(x));
    free(all);
    return SR_OK;
}
