/* data_table.c -- the table of data sets and the functions of data.h, which choose by task. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset.h"

static const dataset_row table[] = {
    {"cifar10", "CIFAR-10 binary batches in --data-dir, plain or .gz, any of the official names",
     TASK_IMAGES, cifar10_open},
    {"parallel", "sentence pairs PREFIX.LANG in --data-dir, plain or .gz, one joint dictionary",
     TASK_PAIRS, parallel_open},
    {"synth-images", "generated: striped shapes in ten classes, 6400 and 1000 images of 32 x 32",
     TASK_IMAGES, synth_images_open},
    {"synth-pairs", "generated: translation pairs of known entropy, 8000 and 500 sentences",
     TASK_PAIRS, synth_pairs_open},
};
enum { ROWS = sizeof table / sizeof table[0] };

const char *data_name(int i) {
    return i >= 0 && i < ROWS ? table[i].name : NULL;
}

const char *data_summary(int i) {
    return i >= 0 && i < ROWS ? table[i].summary : NULL;
}

task data_task(int i) {
    return i >= 0 && i < ROWS ? table[i].task : TASK_IMAGES;
}

static const dataset_row *find_row(const char *name) {
    for (int i = 0; i < ROWS; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

void dataset_note(dataset *d, const char *format, ...) {
    size_t used = strlen(d->describe);
    va_list args;
    va_start(args, format);
    vsnprintf(d->describe + used, sizeof d->describe - used, format, args);
    va_end(args);
}

static void note_three(dataset *d, const char *what, const double *v) {
    dataset_note(d, "; %s %.4f %.4f %.4f", what, v[0], v[1], v[2]);
}

sr_status dataset_finish_images(dataset *d, sr_failure *why) {
    image_set *s = &d->images;
    sr_status status = image_set_finish(s, why);
    d->shape = (data_shape){.task = TASK_IMAGES,
                            .height = s->height,
                            .width = s->width,
                            .channels = IMAGE_CHANNELS,
                            .classes = s->classes};
    dataset_note(d, "; %lld training and %lld validation images, no test split",
                 (long long)s->split[SPLIT_TRAIN].count, (long long)s->split[SPLIT_VALID].count);
    note_three(d, "training mean", s->mean);
    note_three(d, "standard deviation", s->deviation);
    return status;
}

static void note_split(dataset *d, data_split split, const char *name) {
    const pair_split *p = &d->pairs.split[split];
    if (p->count == 0) return;
    dataset_note(d, "; %s %lld pairs, %lld target tokens, %.2f %% <unk>", name, (long long)p->count,
                 (long long)p->tokens, 100 * data_unknown_share(d, split));
    if (p->dropped_empty || p->dropped_long)
        dataset_note(d, " (dropped: %lld with an empty side, %lld too long)",
                     (long long)p->dropped_empty, (long long)p->dropped_long);
}

/* How full the batches are decides what their statistics can be compared with. */
static void note_batches(dataset *d) {
    const pair_split *p = &d->pairs.split[SPLIT_TRAIN];
    int64_t words, positions;
    if (p->plan.count == 0) return;
    pair_set_fill(p, &words, &positions);
    dataset_note(d, "; %lld training batches of %lld source words on average, %.1f %% padding",
                 (long long)p->plan.count, (long long)(words / p->plan.count),
                 100 * (1 - (double)words / (double)positions));
}

void dataset_finish_pairs(dataset *d) {
    const pair_set *s = &d->pairs;
    d->shape =
        (data_shape){.task = TASK_PAIRS, .vocabulary = vocab_size(s->words), .longest = s->longest};
    dataset_note(d, "; dictionary %lld (%lld words)", (long long)d->shape.vocabulary,
                 (long long)vocab_words(s->words));
    note_split(d, SPLIT_TRAIN, "training");
    note_split(d, SPLIT_VALID, "validation");
    note_split(d, SPLIT_TEST, "test");
    note_batches(d);
    if (s->shuffle_sources) dataset_note(d, "; sources shuffled among the pairs of each split");
}

static sr_status open_row(dataset *d, const data_options *o, sr_failure *why) {
    if (o->limit < 0) return sr_fail(why, SR_USAGE, "limit %lld is negative", (long long)o->limit);
    d->row = find_row(o->name);
    if (d->row) return d->row->open(d, o, why);
    sr_status status = sr_fail(why, SR_USAGE, "no data set is called '%s'", o->name);
    sr_hint(why, "`statrec list data` names them");
    return status;
}

dataset *data_open(const data_options *options, sr_failure *why) {
    dataset *d = calloc(1, sizeof *d);
    if (!d) {
        sr_fail(why, SR_MEMORY, "no memory for a data set");
        return NULL;
    }
    if (open_row(d, options, why) == SR_OK) return d;
    data_close(d);
    return NULL;
}

void data_close(dataset *d) {
    if (!d) return;
    image_set_free(&d->images);
    pair_set_free(&d->pairs);
    free(d);
}

const data_shape *data_get_shape(const dataset *d) {
    return &d->shape;
}

const char *data_describe(const dataset *d) {
    return d->describe;
}

bool data_has_split(const dataset *d, data_split split) {
    return data_batches(d, split) > 0;
}

static bool is_images(const dataset *d) {
    return d->row->task == TASK_IMAGES;
}

int64_t data_batches(const dataset *d, data_split split) {
    if ((unsigned)split > SPLIT_TEST) return 0;
    return is_images(d) ? image_set_batches(&d->images, split) : d->pairs.split[split].plan.count;
}

sr_status data_batch(dataset *d, data_split split, int64_t epoch, int64_t index, batch *b,
                     sr_failure *why) {
    int64_t batches = data_batches(d, split);
    if (index < 0 || index >= batches)
        return sr_fail(why, SR_USAGE, "%s: batch %lld is not one of %lld", d->row->name,
                       (long long)index, (long long)batches);
    if (is_images(d))
        image_set_batch(&d->images, split, epoch, index, b);
    else
        pair_set_batch(&d->pairs, split, epoch, index, b);
    return SR_OK;
}

double data_unknown_share(const dataset *d, data_split split) {
    const pair_split *p = &d->pairs.split[split];
    return p->tokens > 0 ? (double)p->unknown / (double)p->tokens : NAN;
}

double data_entropy(const dataset *d) {
    return is_images(d) ? NAN : d->pairs.entropy;
}

const char *data_word(const dataset *d, int64_t id) {
    return is_images(d) ? NULL : vocab_word(d->pairs.words, id);
}
