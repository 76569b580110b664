/* read_tabbed.c -- sentence pairs in the columns of one file, as Tatoeba's: `English TAB German`
 * lines. Further columns are ignored.
 *
 * Such a file has no official split, and contains a sentence once for each of its translations.
 * The first column decides: with h the FNV-1a hash of its sentence, mixed as in rng.h, and
 * u = h / 2^64,
 *     u < test share: test;  else u < test share + valid share: validation;  else training
 * so that no sentence of that column is in two splits, whatever the seed, the direction and the
 * other lines. Sentences of the other column may.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/hash.h"
#include "base/containers/vector.h"
#include "base/rng.h"
#include "data/dataset.h"

enum { COLUMNS = 16 };

typedef struct tabbed {
    const data_options *options;
    double valid_share, test_share;
    int column[SIDES]; /* columns of source and target, from 0 */
    file_bytes file;
    int64_t lines;
    byte_buffer text[PAIR_SPLITS][SIDES];
    int64_t count[PAIR_SPLITS]; /* lines */
    int64_t *number[PAIR_SPLITS][SIDES], number_capacity[PAIR_SPLITS][SIDES];
    bool words[SIDES]; /* a sentence of the side is no number */
} tabbed;

/* Number of a language in "en,de"; -1: not in it. */
static int find_column(const char *columns, const char *language) {
    const size_t length = strlen(language);
    int column = 0;
    for (const char *at = columns;; at++, column++) {
        const size_t n = strcspn(at, ",");
        if (n == length && n > 0 && !memcmp(at, language, n)) return column < COLUMNS ? column : -1;
        if (!at[n]) return -1;
        at += n;
    }
}

static sr_status choose_columns(tabbed *t, sr_failure *why) {
    const data_options *o = t->options;
    const char *const language[SIDES] = {o->source, o->target};
    for (int i = 0; i < SIDES; i++) {
        t->column[i] = find_column(o->columns, language[i]);
        if (t->column[i] < 0)
            return sr_fail(why, SR_USAGE, "%s language '%.40s' is not one of the columns '%.80s'",
                           i ? "target" : "source", language[i], o->columns);
    }
    if (t->column[0] == t->column[1])
        return sr_fail(why, SR_USAGE, "source and target are one language, '%.40s'", o->source);
    t->valid_share = dataset_share(o->valid_share, 0.01);
    t->test_share = dataset_share(o->test_share, 0.01);
    if (t->valid_share >= 0 && t->test_share >= 0 && t->valid_share + t->test_share < 1)
        return SR_OK;
    return sr_fail(why, SR_USAGE, "valid-share %g and test-share %g leave nothing for training",
                   t->valid_share, t->test_share);
}

/* Cuts a line into columns without ASCII blanks at their ends. Returns their number, at most
 * COLUMNS. */
static int split_columns(const char *line, size_t length, data_line column[COLUMNS]) {
    int n = 0;
    for (const char *end = line + length; n < COLUMNS;) {
        const char *tab = memchr(line, '\t', (size_t)(end - line));
        const char *from = line, *to = tab ? tab : end;
        while (from < to && (*from == ' ' || *from == '\r')) from++;
        while (from < to && (to[-1] == ' ' || to[-1] == '\r')) to--;
        column[n++] = (data_line){from, (size_t)(to - from)};
        if (!tab) break;
        line = tab + 1;
    }
    return n;
}

static data_split split_of(const tabbed *t, data_line sentence) {
    const uint64_t h = hash_bytes(sentence.byte, sentence.length);
    const double u = (double)(rng_at(h, 0) >> 11) * 0x1p-53; /* [0, 1) */
    if (u < t->test_share) return SPLIT_TEST;
    return u < t->test_share + t->valid_share ? SPLIT_VALID : SPLIT_TRAIN;
}

/* A blank line is a pair of empty sentences. */
static sr_status add_line(tabbed *t, int64_t number, const char *line, size_t length,
                          sr_failure *why) {
    data_line column[COLUMNS];
    const int columns = split_columns(line, length, column);
    const bool blank = columns == 1 && column[0].length == 0;
    const data_split split = split_of(t, column[0]);
    t->count[split]++;
    for (int i = 0; i < SIDES; i++) {
        byte_buffer *b = &t->text[split][i];
        int64_t **of = &t->number[split][i];
        if (!vector_reserve(of, &t->number_capacity[split][i], t->count[split], sizeof **of))
            return sr_fail(why, SR_MEMORY, "%s: out of memory for its lines", t->file.path);
        (*of)[t->count[split] - 1] = number;
        if (!blank && t->column[i] >= columns)
            return sr_fail(why, SR_FORMAT, "%s:%lld: %d column%s, but %s is column %d",
                           t->file.path, (long long)number, columns, columns == 1 ? "" : "s",
                           i ? t->options->target : t->options->source, t->column[i] + 1);
        const data_line side = column[blank ? 0 : t->column[i]];
        for (size_t k = 0; k < side.length && !t->words[i]; k++)
            t->words[i] = side.byte[k] < '0' || side.byte[k] > '9';
        buffer_put(b, side.byte, side.length);
        if (!buffer_put(b, "\n", 1)) /* false after one that failed */
            return sr_fail(why, SR_MEMORY, "%s: out of memory for its columns", t->file.path);
    }
    return SR_OK;
}

static sr_status read_texts(dataset *d, const data_options *o, pair_text text[PAIR_SPLITS],
                            sr_failure *why) {
    tabbed t = {.options = o};
    char path[FILE_PATH];
    bool found;
    sr_status status = choose_columns(&t, why);
    if (status == SR_OK) status = file_find(o->dir, o->file, path, &found, why);
    if (status == SR_OK && !found) return file_missing(path, why);
    if (status == SR_OK) status = text_read(path, &t.file, &t.lines, why);
    line_walk w = {.file = &t.file};
    while (status == SR_OK && line_walk_next(&w))
        status = add_line(&t, w.number, w.line, w.length, why);
    if (status == SR_OK && t.count[SPLIT_TRAIN] == 0)
        status = sr_fail(why, SR_FORMAT, "%s: none of %lld lines is left for training", path,
                         (long long)t.lines);
    if (status == SR_OK) {
        dataset_note(d, "tabbed %s-%s: from %s, %lld lines, split by the first column", o->source,
                     o->target, t.file.path, (long long)t.lines);
        for (int i = 0; i < SIDES; i++)
            if (!t.words[i])
                dataset_warn(d,
                             "column %d (%s) has numbers alone, which are no language "
                             "(Tatoeba's export of four columns: --columns id,A,id2,B)",
                             t.column[i] + 1, i ? o->target : o->source);
        dataset_check_ends(d, &t.file);
        /* The buffers become the texts. */
        for (int s = 0; s < PAIR_SPLITS; s++) {
            text[s].lines = t.count[s];
            for (int i = 0; i < SIDES; i++) {
                file_bytes *f = &text[s].side[i];
                f->byte = (uint8_t *)t.text[s][i].byte, f->size = t.text[s][i].size;
                memcpy(f->path, t.file.path, sizeof f->path);
                t.text[s][i] = (byte_buffer){0};
                text[s].number[i] = t.number[s][i], t.number[s][i] = NULL;
            }
        }
    }
    for (int s = 0; s < PAIR_SPLITS; s++)
        for (int i = 0; i < SIDES; i++) buffer_free(&t.text[s][i]), free(t.number[s][i]);
    file_free(&t.file);
    return status;
}

sr_status tabbed_open(dataset *d, const data_options *o, sr_failure *why) {
    return dataset_open_pairs(d, o, read_texts, why);
}
