/* parse_split.c -- greedy parsing (docs/models.md 8): in every state the legal transition with the
 * largest logit, the lowest class on ties. Many sentences are parsed together; a finished one makes
 * room for the next. No result depends on another sentence (model_scorer).
 */
#include "task/parse_split.h"

#include <stdlib.h>
#include <string.h>

enum { TOGETHER = 256 };

typedef struct parsing {
    const task_decoding *d;
    parsed_split *out;
    void *scorer;
    arc_state state[TOGETHER];
    int64_t sentence[TOGETHER]; /* in the bank */
    int64_t active, next, features, classes;
    int32_t *feature; /* [TOGETHER, features] */
    real *logits;     /* [TOGETHER, classes] */
} parsing;

static int64_t start_of(const parsing *p, int64_t i) {
    return p->out->of.bank->start[p->sentence[i]];
}

/* Starts sentences in free places. */
static sr_status fill(parsing *p, sr_failure *why) {
    const data_trees *t = &p->out->of;
    while (p->active < TOGETHER && p->next < t->first + t->count) {
        const int64_t i = p->active, sentence = p->next++;
        const int64_t words = t->bank->start[sentence + 1] - t->bank->start[sentence];
        if (!arc_begin(&p->state[i], (int32_t)words, t->one_root))
            return sr_fail(why, SR_MEMORY, "out of memory for a sentence of %lld words",
                           (long long)words);
        p->sentence[i] = sentence;
        p->active++;
    }
    return SR_OK;
}

/* Keeps the arcs of a sentence; moves the last active one to its place. */
static void finish(parsing *p, int64_t i) {
    const arc_state done = p->state[i];
    const int64_t at = start_of(p, i) - p->out->first_word;
    const size_t bytes = (size_t)done.words * sizeof(int32_t);
    memcpy(p->out->head + at, done.head + 1, bytes);
    memcpy(p->out->label + at, done.label + 1, bytes);
    p->active--;
    p->state[i] = p->state[p->active];
    p->sentence[i] = p->sentence[p->active];
    p->state[p->active] = done; /* its memory is reused */
}

static void step(parsing *p, int64_t i) {
    const real *logit = p->logits + i * p->classes;
    const int32_t labels = p->out->of.arc_labels;
    arc_state *s = &p->state[i];
    bool legal[ARC_KINDS];
    int32_t best = -1, label;
    for (int k = 0; k < ARC_KINDS; k++) legal[k] = arc_legal(s, (arc_kind)k);
    for (int32_t c = 0; c < p->classes; c++)
        if (legal[arc_kind_of(c, labels, &label)] && (best < 0 || logit[c] > logit[best])) best = c;
    const arc_kind kind = arc_kind_of(best, labels, &label);
    arc_apply(s, kind, label);
}

static sr_status step_all(parsing *p, sr_failure *why) {
    for (int64_t i = 0; i < p->active; i++)
        data_tree_feature(&p->out->of, start_of(p, i), &p->state[i], p->feature + i * p->features);
    const sr_status status =
        p->d->model->row->scorer->score(p->scorer, p->active, p->feature, p->logits, why);
    if (status != SR_OK) return status;
    for (int64_t i = 0; i < p->active; i++) step(p, i);
    for (int64_t i = p->active - 1; i >= 0; i--)
        if (arc_done(&p->state[i])) finish(p, i);
    return SR_OK;
}

static sr_status parse_all(parsing *p, bool *stopped, sr_failure *why) {
    const task_decoding *d = p->d;
    p->feature = malloc((size_t)(TOGETHER * p->features) * sizeof *p->feature);
    p->logits = malloc((size_t)(TOGETHER * p->classes) * sizeof *p->logits);
    p->scorer = d->model->row->scorer->create(d->model, d->tape->threads, why);
    if (!p->scorer) return why ? why->status : SR_MEMORY;
    if (!p->feature || !p->logits) return sr_fail(why, SR_MEMORY, "out of memory for parsing");
    sr_status status = fill(p, why);
    while (status == SR_OK && p->active && !*stopped) {
        status = step_all(p, why);
        if (status == SR_OK) status = fill(p, why);
        *stopped = d->stop && d->stop(d->context);
    }
    return status;
}

sr_status parse_split(const task_decoding *d, parsed_split *out, bool *stopped, sr_failure *why) {
    *out = (parsed_split){0};
    *stopped = false;
    if (!data_trees_of(d->data, d->split, &out->of) || !d->model->row->scorer)
        return sr_fail(why, SR_USAGE, "model %s parses no sentences of the %s split",
                       d->model->row->name, data_split_name(d->split));
    parsing *p = calloc(1, sizeof *p);
    if (!p) return sr_fail(why, SR_MEMORY, "out of memory for parsing");
    *p = (parsing){.d = d,
                   .out = out,
                   .next = out->of.first,
                   .features = data_tree_features(&out->of),
                   .classes = data_tree_classes(&out->of)};
    const data_trees *t = &out->of;
    out->first_word = t->bank->start[t->first];
    out->words = t->bank->start[t->first + t->count] - out->first_word;
    out->head = malloc((size_t)out->words * sizeof *out->head);
    out->label = malloc((size_t)out->words * sizeof *out->label);
    sr_status status =
        out->head && out->label
            ? parse_all(p, stopped, why)
            : sr_fail(why, SR_MEMORY, "out of memory for the trees of %lld sentences",
                      (long long)t->count);
    if (p->scorer) d->model->row->scorer->free(p->scorer);
    for (int i = 0; i < TOGETHER; i++) arc_free(&p->state[i]);
    free(p->feature);
    free(p->logits);
    free(p);
    if (status != SR_OK || *stopped) parsed_split_free(out);
    return status;
}

void parsed_split_free(parsed_split *p) {
    free(p->head);
    free(p->label);
    p->head = p->label = NULL;
}
