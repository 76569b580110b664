/* data_counts.c -- counts of the splits of a data set; see data_counts.h. */
#include "data/data_counts.h"

#include "base/containers/hash.h"
#include "data/dataset.h"
#include "data/readers/sentence_lines.h"

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* -- by task */

static void count_pairs(const pair_split *p, data_counts *c) {
    c->unit = "pairs", c->records = p->count;
    c->empty = p->dropped_empty, c->too_long = p->dropped_long;
    for (int k = 0; k < SIDES; k++) c->unknown[k] = p->unknown[k];
    for (int64_t i = 0; i < p->count; i++) {
        int64_t words[SIDES];
        for (int k = 0; k < SIDES; k++) {
            words[k] = p->side[k].first[i + 1] - p->side[k].first[i];
            c->words[k] += words[k];
            c->longest[k] = larger(c->longest[k], words[k]);
        }
        c->uneven += words[0] > DATA_RATIO * words[1] || words[1] > DATA_RATIO * words[0];
    }
}

static void count_running(const running_split *p, bool bytes, data_counts *c) {
    c->unit = bytes ? "bytes" : "lines", c->records = bytes ? p->tokens : p->lines;
    c->empty = p->empty, c->unknown[SIDE_SOURCE] = p->unknown;
}

/* times [classes] */
static void count_class(data_counts *c, const int64_t *times, int64_t classes) {
    for (int64_t i = 0; i < classes; i++) {
        if (times[i] == 0) continue;
        c->fewest = c->classes++ ? (times[i] < c->fewest ? times[i] : c->fewest) : times[i];
        c->most = larger(c->most, times[i]);
    }
}

static void count_sentences(const dataset *d, const sentence_split *p, data_counts *c) {
    int64_t times[LABELS_MAX] = {0};
    c->unit = "sentences", c->records = p->count;
    c->empty = p->empty, c->cut = p->cut, c->unknown[SIDE_SOURCE] = p->unknown;
    if (d->shape.task == TASK_TAGS) return;
    for (int64_t i = 0; i < p->count; i++) times[p->label[i]]++;
    count_class(c, times, LABELS_MAX);
}

static void count_images(const image_split *p, data_counts *c) {
    int64_t times[256] = {0};
    c->unit = "images", c->records = p->count;
    for (int64_t i = 0; i < p->count; i++) times[p->label[i]]++;
    count_class(c, times, 256);
}

/* -- repeated records */

static bool hash_images(const image_set *s, data_split split, line_hashes *h) {
    const image_split *p = &s->split[split];
    const size_t size = (size_t)(s->size.height * s->size.width * s->size.channels);
    bool done = true;
    for (int64_t i = 0; done && i < p->count; i++)
        done = line_hashes_add(h, hash_bytes(p->pixel + (size_t)i * size, size), 1);
    return done;
}

static bool count_again(const line_hashes *train, const line_hashes *own, data_counts *c) {
    line_count repeated, common = {0};
    if (!line_hashes_repeated(own, &repeated)) return false;
    if (own != train && !line_hashes_common(train, own, &common)) return false;
    c->repeated = repeated.lines, c->common = common.lines;
    return true;
}

static bool count_images_again(dataset *d, data_split split, data_counts *c) {
    line_hashes train = {0}, own = {0};
    bool done = hash_images(&d->images, SPLIT_TRAIN, &train);
    if (split != SPLIT_TRAIN) done = done && hash_images(&d->images, split, &own);
    done = done && count_again(&train, split == SPLIT_TRAIN ? &train : &own, c);
    line_hashes_free(&train), line_hashes_free(&own);
    return done;
}

static bool count_lines_again(dataset *d, data_split split, data_counts *c) {
    const set_kind *kind = &set_kinds[d->row->task];
    const line_hashes *own = kind->lines(d, split);
    for (int64_t i = 0; i < own->count && d->shape.task != TASK_PAIRS; i++) {
        c->words[SIDE_SOURCE] += own->line[i].words;
        c->longest[SIDE_SOURCE] = larger(c->longest[SIDE_SOURCE], own->line[i].words);
    }
    return count_again(kind->lines(d, SPLIT_TRAIN), own, c);
}

sr_status data_count(dataset *d, data_split split, data_counts *c, sr_failure *why) {
    *c = (data_counts){.unit = "sentences"};
    switch (d->shape.task) { /* unreached: a value that is no task */
    case TASK_IMAGES:
        count_images(&d->images.split[split], c);
        break;
    case TASK_PAIRS:
        count_pairs(&d->pairs.split[split], c);
        break;
    case TASK_LM:
        count_running(&d->running.split[split], d->running.bytes, c);
        break;
    case TASK_SENTENCES:
    case TASK_TAGS:
        count_sentences(d, &d->sentences.split[split], c);
        break;
    case TASK_TREES:
        c->records = d->trees.split[split].count;
        c->unknown[SIDE_SOURCE] = d->trees.split[split].unknown;
        break;
    }
    const bool done = d->shape.task == TASK_IMAGES ? count_images_again(d, split, c)
                                                   : count_lines_again(d, split, c);
    return done ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for the lines of a split");
}
