/* task_tags.c -- a tag for every word (docs/models.md 10.2). The loss is a conditional random
 * field's, a mean over sentences. Metrics are precision, recall and F1 of entities in the best
 * tags.
 *
 * The loss pass counts entities sentence by sentence in the model's decoded tags (pass.predicted);
 * sums cover the split. Predictions are written in IOB2, in the order of the file, their columns
 * separated as there.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "task/task_rows.h"
#include "text/tag_set.h"

/* task_sums' count. */
enum { COUNT_RIGHT, COUNT_PREDICTED, COUNT_GOLD, COUNT_WORDS, COUNTS };
enum { METRIC_TAG_LOSS, METRIC_TAG_NLL, METRIC_TAGS, METRIC_PRECISION, METRIC_RECALL, METRIC_F1 };

/* -- counting */

/* Copies the ids of a sentence's words; returns their number. */
static int64_t words_of(const batch *b, int64_t i, const int32_t *id, int32_t *to) {
    int64_t words = 0;
    for (int64_t k = i * b->source_length; k < (i + 1) * b->source_length; k++)
        if (b->source_mask[k]) to[words++] = id[k];
    return words;
}

typedef struct workspace {
    int32_t *gold, *predicted; /* [source_length] each */
    tag_span *of_gold, *of_predicted;
} workspace;

static bool count_entities(const pass *p, task_sums *sum) {
    const batch *b = p->batch;
    const size_t length = (size_t)b->source_length;
    const workspace w = {tape_alloc(p->tape, length * sizeof *w.gold),
                         tape_alloc(p->tape, length * sizeof *w.predicted),
                         tape_alloc(p->tape, length * sizeof *w.of_gold),
                         tape_alloc(p->tape, length * sizeof *w.of_predicted)};
    if (!w.gold || !w.predicted || !w.of_gold || !w.of_predicted) return false;
    sum->correct = 0;
    for (int64_t i = 0; i < b->count; i++) {
        const int64_t words = words_of(b, i, b->tag, w.gold);
        words_of(b, i, p->predicted, w.predicted);
        const int64_t gold = tag_set_spans(b->tags, w.gold, words, w.of_gold);
        const int64_t predicted = tag_set_spans(b->tags, w.predicted, words, w.of_predicted);
        sum->count[COUNT_GOLD] += gold;
        sum->count[COUNT_PREDICTED] += predicted;
        sum->count[COUNT_RIGHT] += tag_spans_matching(w.of_gold, gold, w.of_predicted, predicted);
        sum->count[COUNT_WORDS] += words;
        for (int64_t k = 0; k < words; k++) sum->correct += w.gold[k] == w.predicted[k];
    }
    return true;
}

static tensor *tags_loss_of_nll(const pass *p, tensor *nll, task_sums *sum) {
    tensor *loss = task_sum_nll(p, nll, sum);
    if (loss && p->predicted && !count_entities(p, sum)) return NULL;
    return loss;
}

/* -- numbers */

static void tags_measure(const task_sums *sum, double *value) {
    const int64_t *n = sum->count;
    const entity_scores f = entity_scores_of(n[COUNT_RIGHT], n[COUNT_PREDICTED], n[COUNT_GOLD]);
    const bool decoded = n[COUNT_WORDS] > 0;
    value[METRIC_TAG_LOSS] = sum->loss / (double)sum->tokens;
    value[METRIC_TAG_NLL] = sum->nll / (double)sum->tokens;
    value[METRIC_TAGS] = decoded ? 100 * (double)sum->correct / (double)n[COUNT_WORDS] : NAN;
    value[METRIC_PRECISION] = decoded ? f.precision : NAN;
    value[METRIC_RECALL] = decoded ? f.recall : NAN;
    value[METRIC_F1] = decoded ? f.f1 : NAN;
}

static void tags_describe(const task_result *r, char text[TASK_TEXT]) {
    const int64_t *n = r->sum->count;
    double value[TASK_METRICS];
    tags_measure(r->sum, value);
    snprintf(text, TASK_TEXT,
             "%s F1: %.2f %% (P %.2f %%, R %.2f %%: %lld right, %lld predicted, %lld gold; "
             "I behind O or another type begins one, as in conlleval; %s%srunning statistics)",
             r->split, value[METRIC_F1], value[METRIC_PRECISION], value[METRIC_RECALL],
             (long long)n[COUNT_RIGHT], (long long)n[COUNT_PREDICTED], (long long)n[COUNT_GOLD],
             r->condition, *r->condition ? "; " : "");
}

static int tags_arrays(const batch *b, task_array array[TASK_ARRAYS]) {
    const int64_t n = b->count, s = b->source_length;
    array[0] = (task_array){"source", {NPZ_INT32, 2, {n, s}, (void *)b->source}};
    array[1] = (task_array){"source_mask", {NPZ_UINT8, 2, {n, s}, (void *)b->source_mask}};
    array[2] = (task_array){"tag", {NPZ_INT32, 2, {n, s}, (void *)b->tag}};
    array[3] =
        (task_array){"character", {NPZ_INT32, 3, {n, s, b->word_length}, (void *)b->character}};
    return b->character ? 4 : 3;
}

/* -- predictions */

typedef struct tagged {
    int64_t words;
    tag_mark *mark; /* [2 * words]: gold, predicted */
} tagged;

/* Sentences by their number in the split. */
typedef struct tagged_split {
    tagged *sentence; /* [count] */
    int64_t count, capacity;
} tagged_split;

/* One sentence of a batch, in IOB2. */
static bool keep_sentence(tagged_split *s, const pass *p, int64_t i) {
    const batch *b = p->batch;
    const size_t length = (size_t)b->source_length;
    const int64_t number = b->pair[i], before = s->capacity;
    int32_t *id = tape_alloc(p->tape, 2 * length * sizeof *id);
    if (!id || !vector_reserve(&s->sentence, &s->capacity, number + 1, sizeof *s->sentence))
        return false;
    memset(s->sentence + before, 0, (size_t)(s->capacity - before) * sizeof *s->sentence);
    if (number >= s->count) s->count = number + 1;
    tagged *t = &s->sentence[number];
    t->words = words_of(b, i, b->tag, id);
    words_of(b, i, p->predicted, id + t->words);
    t->mark = malloc((2 * (size_t)t->words + 1) * sizeof *t->mark);
    for (int64_t k = 0; t->mark && k < 2 * t->words; k++) t->mark[k] = b->tags->mark[id[k]];
    for (int side = 0; t->mark && side < 2; side++)
        tag_convert(TAG_IOB2, t->mark + side * t->words, t->words, t->mark + side * t->words);
    return t->mark;
}

static sr_status tag_batch(const task_decoding *d, int64_t index, tagged_split *s,
                           sr_failure *why) {
    batch b;
    task_sums sum;
    sr_status status = data_batch(d->data, d->split, 0, index, &b, why);
    if (status != SR_OK) return status;
    pass p = {.tape = d->tape, .batch = &b, .mode = NORM_RUNNING};
    tape_reset(d->tape, rng_create(0), false, false);
    if (!task_loss(&task_tags, d->options, d->model, &p, &sum)) return tape_status(d->tape, why);
    if (!p.predicted)
        return sr_fail(why, SR_USAGE, "model %s decodes no tags", d->model->row->name);
    for (int64_t i = 0; i < b.count; i++)
        if (!keep_sentence(s, &p, i))
            return sr_fail(why, SR_MEMORY, "out of memory for predictions");
    return SR_OK;
}

static void write_sentence(const task_decoding *d, const tagged *t, int64_t number, FILE *to) {
    const tag_set *set = data_tags(d->data);
    for (int64_t i = 0; i < t->words; i++) {
        const data_line word = data_tagged_word(d->data, d->split, number, i);
        fwrite(word.byte, 1, word.length, to);
        for (int side = 0; side < 2; side++) {
            char tag[TAG_NAME];
            const tag_mark m = t->mark[side * t->words + i];
            tag_format(TAG_IOB2, m.part, m.type < 0 ? NULL : set->type[m.type], tag);
            fprintf(to, "%c%s", data_tag_separator(d->data), tag);
        }
        fputc('\n', to);
    }
    fputc('\n', to);
}

static sr_status tags_predict(const task_decoding *d, FILE *to, sr_failure *why) {
    tagged_split s = {0};
    sr_status status = SR_OK;
    const int64_t batches = data_batches(d->data, d->split);
    for (int64_t k = 0; status == SR_OK && k < batches; k++) status = tag_batch(d, k, &s, why);
    for (int64_t i = 0; status == SR_OK && i < s.count; i++)
        write_sentence(d, &s.sentence[i], i, to);
    for (int64_t i = 0; i < s.count; i++) free(s.sentence[i].mark);
    free(s.sentence);
    return status;
}

#define OF_ENTITIES                                                                                \
    ", type, first and last word alike; I behind O or another type begins one, as in conlleval"

const task_row task_tags = {
    .id = TASK_TAGS,
    .name = "tags",
    .takes = "sentences with a tag for every word",
    .summary = "the tags of a sentence's words, conditional random field, F1 of entities",
    .text = true,
    .metric =
        {
            {"loss", "nats per sentence", "loss", BETTER_LESS},
            {"nll", "nats per sentence", "negative log-likelihood of the gold tags", BETTER_LESS},
            {"accuracy", "percent",
             "words whose decoded tag, in the scheme of training, is the gold one", BETTER_MORE},
            {"precision", "percent", "entities right among those predicted" OF_ENTITIES,
             BETTER_MORE},
            {"recall", "percent", "entities right among those in the text" OF_ENTITIES,
             BETTER_MORE},
            {"f1", "percent", "2 PR / (P + R) of all entities of the split" OF_ENTITIES,
             BETTER_MORE},
        },
    .counts = COUNTS,
    .leading = METRIC_F1,
    .example =
        {.task = TASK_TAGS, .vocabulary = 64, .longest = 64, .classes = 17, .characters = 32},
    .loss_of_nll = tags_loss_of_nll,
    .measure = tags_measure,
    .predict = tags_predict,
    .describe = tags_describe,
    .arrays = tags_arrays,
};
