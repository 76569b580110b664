/* data_checks.c -- warnings about the texts of a data set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"

void dataset_check_ends(dataset *d, const file_bytes *f) {
    line_ends e = {0};
    char text[FILE_PATH + 128];
    line_ends_add(&e, (const char *)f->byte, f->size);
    if (e.crlf) dataset_note(d, " (%lld lines end in CR LF)", (long long)e.crlf);
    line_ends_warning(&e, f->path, text, sizeof text);
    if (*text) dataset_warn(d, "%s", text);
}

/* Text of one byte per character has next to no letters that are UTF-8. */
void dataset_check_encoding(dataset *d, const char *path, const text_decoding *how) {
    enum { WARNED_MOST = 3, FEW = 10 };
    static const char *const names[] = {"UTF-8", "Windows-1252"};
    text_encodings *first = &d->encodings;
    if (!how->recoded && !how->letters) return;
    const bool damaged = how->recoded && how->letters && FEW * how->letters >= how->bad;
    const bool other = *first->path && how->recoded != first->recoded;
    if (!*first->path) {
        snprintf(first->path, sizeof first->path, "%s", path);
        first->recoded = how->recoded;
    }
    if (!(damaged || other) || first->warned++ >= WARNED_MOST) return;
    if (damaged)
        dataset_warn(d,
                     "%s, so the file is read as Windows-1252, and its %lld letters in UTF-8 are "
                     "misread; correct the line",
                     how->fault, (long long)how->letters);
    else
        dataset_warn(d, "%s is read as %s, but %s as %s", path, names[how->recoded], first->path,
                     names[first->recoded]);
}

/* -- sentences that occur again */

/* The unit in which texts are counted. */
static const char *unit_of(const dataset *d) {
    switch (d->shape.task) {
    case TASK_PAIRS:
        return "pair";
    case TASK_LM:
        return "line";
    default:
        return "sentence";
    }
}

/* A share of 5 % or more is a warning: short sentences occur again. In running text the words
 * count, since headings repeat. */
static sr_status check_common(dataset *d, data_split split, sr_failure *why) {
    const set_kind *kind = &set_kinds[d->row->task];
    const line_hashes *p = kind->lines(d, split);
    line_count common;
    int64_t words = 0;
    if (!p->count) return SR_OK;
    if (!line_hashes_common(kind->lines(d, SPLIT_TRAIN), p, &common))
        return sr_fail(why, SR_MEMORY, "out of memory for the lines of a split");
    for (int64_t i = 0; i < p->count; i++) words += p->line[i].words;
    const bool running = d->shape.task == TASK_LM;
    const int64_t some = running ? common.words : common.lines, all = running ? words : p->count;
    if (20 * some < all) return SR_OK;
    dataset_warn(d, "%lld of %lld %s %ss (%.1f %%%s) are in the training text, too",
                 (long long)common.lines, (long long)p->count, dataset_split_titles[split],
                 unit_of(d), 100 * (double)some / (double)all, running ? " of the words" : "");
    return SR_OK;
}

/* -- texts of one thing */

static void warn_one_word(dataset *d, data_split split, const char *side) {
    dataset_warn(d, "every %s %s%s is one word; are words separated?", dataset_split_titles[split],
                 side, unit_of(d));
}

static void check_words(dataset *d, data_split split) {
    const line_hashes *p = set_kinds[d->row->task].lines(d, split);
    int64_t words = 0;
    if (p->count == 1)
        dataset_warn(d, "the %s text is one %s", dataset_split_titles[split], unit_of(d));
    if (p->count < 2) return;
    for (int64_t i = 0; i < p->count; i++) words += p->line[i].words;
    const pair_split *pairs = &d->pairs.split[split];
    static const char *const side[SIDES] = {"source of a ", "target of a "};
    for (int i = 0; d->shape.task == TASK_PAIRS && i < SIDES; i++)
        if (pairs->side[i].first[pairs->count] == pairs->count) warn_one_word(d, split, side[i]);
    if (d->shape.task != TASK_PAIRS && words == p->count) warn_one_word(d, split, "");
}

static void check_class(dataset *d, data_split split) {
    const sentence_split *p = &d->sentences.split[split];
    const image_split *image = &d->images.split[split];
    const bool images = d->shape.task == TASK_IMAGES;
    const int64_t count = images ? image->count : p->count;
    bool one = true;
    if (!images && d->shape.task != TASK_SENTENCES) return;
    for (int64_t i = 1; i < count && one; i++)
        one = images ? image->label[i] == image->label[0] : p->label[i] == p->label[0];
    if (one && count > 1)
        dataset_warn(d, "all %lld %s %s have one class", (long long)count,
                     dataset_split_titles[split], images ? "images" : "sentences");
}

/* -- words that the dictionary lacks */

/* From half of them, unless the split is tiny. */
static void warn_unknown(dataset *d, data_split split, const char *words, int64_t unknown,
                         int64_t all) {
    enum { TINY = 100 };
    if (all < TINY || 2 * unknown < all) return;
    dataset_warn(d, "%.1f %% of the %s %s are not in the dictionary, so <unk>",
                 100 * (double)unknown / (double)all, dataset_split_titles[split], words);
}

static void check_unknown(dataset *d, data_split split) {
    const pair_split *pairs = &d->pairs.split[split];
    const sentence_split *sentences = &d->sentences.split[split];
    const running_split *running = &d->running.split[split];
    const tree_split *trees = &d->trees.split[split];
    static const char *const side[SIDES] = {"source words", "target words"};
    for (int i = 0; i < SIDES && pairs->count; i++)
        warn_unknown(d, split, side[i], pairs->unknown[i], pairs->side[i].first[pairs->count]);
    warn_unknown(d, split, "words", sentences->unknown, sentences->words);
    warn_unknown(d, split, d->running.bytes ? "bytes" : "words", running->unknown, running->tokens);
    warn_unknown(d, split, "words", trees->unknown, trees->words);
}

/* -- sentences that are too long */

static void check_long(dataset *d, data_split split) {
    const pair_split *p = &d->pairs.split[split];
    const long_line *l = &p->too_long;
    if (d->shape.task != TASK_PAIRS || !p->dropped_long) return;
    dataset_warn(d,
                 "%s:%lld: a sentence of %lld tokens, at most %lld; %lld %s pair%s left out; cut "
                 "it%s",
                 l->path, (long long)l->line, (long long)l->tokens, (long long)l->most,
                 (long long)p->dropped_long, dataset_split_titles[split],
                 p->dropped_long == 1 ? " is" : "s are",
                 l->most < PAIR_LONGEST ? ", or raise --max-tokens" : "");
}

sr_status dataset_check(dataset *d, sr_failure *why) {
    const set_kind *kind = &set_kinds[d->row->task];
    for (int i = 0; i < DATA_SPLITS; i++) {
        if (kind->lines) check_words(d, (data_split)i);
        check_class(d, (data_split)i);
        check_long(d, (data_split)i);
        check_unknown(d, (data_split)i);
    }
    sr_status status = SR_OK;
    for (int i = SPLIT_TRAIN + 1; status == SR_OK && kind->lines && i < DATA_SPLITS; i++)
        status = check_common(d, (data_split)i, why);
    return status;
}

/* -- labels */

static void warn_labels(dataset *d, const char *what, const int64_t *times, int64_t count,
                        const char *(*name)(const void *names, int64_t i), const void *names,
                        int64_t often) {
    enum { SHOWN = 3 };
    char examples[256] = "";
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        if (times[i] != often || found++ >= SHOWN) continue;
        const size_t used = strlen(examples);
        snprintf(examples + used, sizeof examples - used, "%s '%s'", used ? "," : "",
                 name(names, i));
    }
    if (found)
        dataset_warn(d, "%lld of %lld %s occur%s %s in the training text:%s%s", (long long)found,
                     (long long)count, what, found == 1 ? "s" : "", often ? "once" : "nowhere",
                     examples, found > SHOWN ? " ..." : "");
}

void dataset_check_labels(dataset *d, const char *what, const int64_t *times, int64_t count,
                          const char *(*name)(const void *names, int64_t i), const void *names) {
    warn_labels(d, what, times, count, name, names, 1);
    warn_labels(d, what, times, count, name, names, 0);
}
