/* data_checks.c -- what is odd about the texts of a data set, as warnings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/map.h"
#include "data/dataset.h"

void dataset_check_ends(dataset *d, const file_bytes *f) {
    line_ends e = {0};
    char text[FILE_PATH + 128];
    line_ends_add(&e, (const char *)f->byte, f->size);
    if (e.crlf) dataset_note(d, " (%lld lines end in CR LF)", (long long)e.crlf);
    line_ends_warning(&e, f->path, text, sizeof text);
    if (*text) dataset_warn(d, "%s", text);
}

/* -- sentences */

/* How many of b have the hash of one of a; -1: out of memory. */
static int64_t count_common(const sentence_split *a, const sentence_split *b) {
    map of_b = {0};
    int64_t common = 0;
    bool done = true;
    for (int64_t i = 0; done && i < b->count; i++) done = map_add_number(&of_b, b->hash[i]) >= 0;
    bool *found = done ? calloc((size_t)of_b.count + 1, sizeof *found) : NULL;
    for (int64_t i = 0; found && i < a->count; i++) {
        const int64_t k = map_find_number(&of_b, a->hash[i]);
        if (k >= 0) found[k] = true;
    }
    for (int64_t i = 0; found && i < b->count; i++)
        common += found[map_find_number(&of_b, b->hash[i])];
    const bool counted = found != NULL;
    free(found);
    map_free(&of_b);
    return counted ? common : -1;
}

/* A share of 5 % or more is a warning: short sentences occur again. */
static void check_common(dataset *d, int split) {
    const sentence_split *p = &d->sentences.split[split];
    const int64_t common = count_common(&d->sentences.split[SPLIT_TRAIN], p);
    if (20 * common < p->count) return;
    dataset_warn(d, "%lld of %lld %s sentences (%.1f %%) are in the training text, too",
                 (long long)common, (long long)p->count, dataset_split_titles[split],
                 100 * (double)common / (double)p->count);
}

static void check_split(dataset *d, int split) {
    const sentence_split *p = &d->sentences.split[split];
    const char *title = dataset_split_titles[split];
    bool one_class = true;
    if (p->count == 1) dataset_warn(d, "the %s text is one sentence", title);
    if (p->count < 2) return;
    if (p->words == p->count)
        dataset_warn(d, "every %s sentence is one word; are words separated?", title);
    for (int64_t i = 1; i < p->count; i++) one_class = one_class && p->label[i] == p->label[0];
    if (one_class && d->sentences.task == TASK_SENTENCES)
        dataset_warn(d, "all %lld %s sentences have one class", (long long)p->count, title);
}

void dataset_check_sentences(dataset *d) {
    sentence_split *p = d->sentences.split;
    for (int i = 0; i < SENTENCE_SPLITS; i++)
        if (p[i].count) check_split(d, i);
    for (int i = SPLIT_TRAIN + 1; i < SENTENCE_SPLITS; i++)
        if (p[i].count) check_common(d, i);
    for (int i = 0; i < SENTENCE_SPLITS; i++) free(p[i].hash), p[i].hash = NULL;
}

void dataset_check_labels(dataset *d, const char *(*name)(const void *labels, int i),
                          const void *labels, int count) {
    enum { SHOWN = 3 };
    const sentence_split *p = &d->sentences.split[SPLIT_TRAIN];
    int64_t *times = calloc((size_t)count + 1, sizeof *times);
    char examples[256] = "";
    int once = 0;
    for (int64_t i = 0; times && i < p->count; i++) times[p->label[i]]++;
    for (int i = 0; times && i < count; i++) {
        if (times[i] != 1 || once++ >= SHOWN) continue;
        const size_t used = strlen(examples);
        snprintf(examples + used, sizeof examples - used, "%s '%s'", used ? "," : "",
                 name(labels, i));
    }
    free(times);
    if (once)
        dataset_warn(d, "%d of %d labels occur%s once in the training text:%s%s", once, count,
                     once == 1 ? "s" : "", examples, once > SHOWN ? " ..." : "");
}
