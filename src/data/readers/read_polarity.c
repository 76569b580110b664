/* read_polarity.c -- sentiment of movie reviews as Pang and Lee published it. Files are
 * DIR/PREFIX.neg and DIR/PREFIX.pos, plain or .gz, one snippet a line, not UTF-8.
 *
 * There is no official split: the n lines of both files are put in random order by the seed. The
 * first test_count lines are the test split, the next valid_count validation, the rest training
 * (docs/models.md 6). Fold K/N cuts the order into N parts; part i begins at i n/N. Part K is the
 * test split, the next part, in a circle, validation.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/readers/sentence_lines.h"

enum { POLARITIES = 2, FOLDS_MAX = 1000, VALID_COUNT = 964, TEST_COUNT = 1090 };

static const char *const suffix[POLARITIES] = {"neg", "pos"};

/* Ranges of the order; the rest is training. */
typedef struct pieces {
    int64_t test, test_end, valid, valid_end;
} pieces;

typedef struct polarity {
    dataset *d;
    const data_options *options;
    file_bytes file[POLARITIES];
    int64_t lines, negative; /* lines in both files, in the first */
    data_line *line;         /* [lines] */
    pieces pieces;
} polarity;

static sr_status choose_pieces(polarity *p, sr_failure *why) {
    const data_options *o = p->options;
    const int64_t test = o->test_count < 0 ? TEST_COUNT : o->test_count,
                  valid = o->valid_count < 0 ? VALID_COUNT : o->valid_count;
    if (*o->fold) {
        const int64_t n = p->lines;
        int fold, folds;
        char rest;
        const bool read = sscanf(o->fold, "%4d/%4d%c", &fold, &folds, &rest) == 2;
        if (!read || fold < 1 || fold > folds || folds < 3 || folds > FOLDS_MAX)
            return sr_fail(
                why, SR_USAGE,
                "fold '%.40s' is not K/N, as 1/10, with K from 1 to N and N from 3 to %d", o->fold,
                FOLDS_MAX);
        if (n < folds)
            return sr_fail(why, SR_USAGE, "fold '%s': %lld lines are fewer than the folds", o->fold,
                           (long long)n);
        const int first = fold - 1, next = fold % folds; /* parts of test and validation */
        p->pieces = (pieces){n * first / folds, n * (first + 1) / folds, n * next / folds,
                             n * (next + 1) / folds};
        dataset_note(p->d, "; fold %d of %d by seed %llu", fold, folds,
                     (unsigned long long)o->seed);
        return SR_OK;
    }
    if (test >= p->lines || valid >= p->lines - test) {
        sr_fail(why, SR_USAGE,
                "%s and .pos: valid-count %lld and test-count %lld use all %lld lines",
                p->file[0].path, (long long)valid, (long long)test, (long long)p->lines);
        sr_hint(why,
                "--valid-count N and --test-count N set other counts, --fold 1/10 a tenth each");
        return SR_USAGE;
    }
    p->pieces = (pieces){0, test, test, test + valid};
    dataset_note(p->d, "; split at random by seed %llu", (unsigned long long)o->seed);
    return SR_OK;
}

/* Collects the lines of both files; negative: lines of the first. */
static sr_status find_lines(polarity *p, sr_failure *why) {
    for (int pass = 0; pass < 2; pass++) {
        int64_t n = 0;
        for (int i = 0; i < POLARITIES; i++) {
            line_walk w = {.file = &p->file[i]};
            for (; line_walk_next(&w); n++)
                if (pass) p->line[n] = (data_line){w.line, w.length};
            if (i == 0) p->negative = n;
        }
        p->lines = n;
        if (pass == 0) p->line = malloc((size_t)(n + 1) * sizeof *p->line);
        if (!p->line) return sr_fail(why, SR_MEMORY, "out of memory for %lld lines", (long long)n);
    }
    return SR_OK;
}

/* Adds lines in the drawn order, so that the first training sentences have both classes. */
static sr_status add_lines(const polarity *p, sr_failure *why) {
    int64_t *order = draw_order(p->options->seed, p->lines);
    sr_status status = SR_OK;
    if (!order)
        return sr_fail(why, SR_MEMORY, "out of memory for the split of %lld lines",
                       (long long)p->lines);
    for (int64_t i = 0; i < p->lines && status == SR_OK; i++) {
        const int64_t k = order[i];
        const pieces *at = &p->pieces;
        const data_split split = i >= at->test && i < at->test_end     ? SPLIT_TEST
                                 : i >= at->valid && i < at->valid_end ? SPLIT_VALID
                                                                       : SPLIT_TRAIN;
        status = sentence_set_line(&p->d->sentences, p->options, split, p->line[k].byte,
                                   p->line[k].length, k >= p->negative, k, why);
    }
    free(order);
    return status;
}

static sr_status read_files(polarity *p, sr_failure *why) {
    sr_status status = SR_OK;
    if (!*p->options->trainpref) return sr_fail(why, SR_USAGE, "trainpref is empty");
    for (int i = 0; i < POLARITIES && status == SR_OK; i++) {
        char name[DATA_TEXT + 8];
        bool found;
        snprintf(name, sizeof name, "%s.%s", p->options->trainpref, suffix[i]);
        status = read_text_file(p->d, p->options, name, false, &p->file[i], &found, why);
    }
    return status;
}

static void place_of(const void *loader, int64_t line, char *text, size_t size) {
    const polarity *p = loader;
    const bool positive = line >= p->negative;
    snprintf(text, size, "%s:%lld", p->file[positive].path,
             (long long)(positive ? line - p->negative : line) + 1);
}

sr_status polarity_open(dataset *d, const data_options *o, sr_failure *why) {
    polarity p = {.d = d, .options = o};
    dataset_note(d, "polarity: from");
    sr_status status = sentence_set_create(&d->sentences, o, why);
    d->sentences.place = place_of, d->sentences.loader = &p;
    if (status == SR_OK) status = read_files(&p, why);
    if (status == SR_OK) status = find_lines(&p, why);
    if (status == SR_OK) status = choose_pieces(&p, why);
    if (status == SR_OK) status = add_lines(&p, why);
    free(p.line);
    for (int i = 0; i < POLARITIES; i++) file_free(&p.file[i]);
    if (status == SR_OK) status = sentence_set_build(&d->sentences, why);
    if (status == SR_OK) dataset_finish_sentences(d, POLARITIES);
    return status;
}
