/* read_bytes.c -- running text whose tokens are the bytes of one file, such as enwik8 or text8
 * (docs/models.md 4). The file is DIR/FILE or DIR/FILE.gz, plain preferred.
 *
 * Training text comes first, then validation, then test. Their sizes are bytes or fractions, by
 * default 90, 5 and 5 %. There is no end-of-line symbol. The symbols are the different bytes of the
 * training text, spelled as numbers. The most frequent is first, ties in the order of first
 * appearance. <unk> is last where other parts have further bytes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"

enum { BYTE_VALUES = 256 };
static const double SHARE = 0.05; /* of the bytes, for validation and for test */

typedef struct byte_parts {
    const uint8_t *first[RUNNING_SPLITS];
    int64_t size[RUNNING_SPLITS];
} byte_parts;

/* -- offsets of the splits */

static sr_status size_of(const char *what, int64_t bytes, double given, const file_bytes *f,
                         int64_t *size, sr_failure *why) {
    const double share = dataset_share(given, SHARE);
    *size = bytes ? bytes : llround(share * (double)f->size);
    if (share >= 0 && share < 1) return SR_OK;
    return sr_fail(why, SR_USAGE, "%s-share is %g, not in [0, 1)", what, share);
}

static sr_status cut(const data_options *o, const file_bytes *f, byte_parts *p, sr_failure *why) {
    const int64_t all = (int64_t)f->size;
    int64_t *size = p->size;
    sr_status status = size_of("valid", o->valid_bytes, o->valid_share, f, &size[SPLIT_VALID], why);
    if (status == SR_OK)
        status = size_of("test", o->test_bytes, o->test_share, f, &size[SPLIT_TEST], why);
    if (status != SR_OK) return status;
    size[SPLIT_TRAIN] = all - size[SPLIT_VALID] - size[SPLIT_TEST];
    if (size[SPLIT_TRAIN] <= 0)
        return sr_fail(why, SR_FORMAT, "%s: %lld bytes; validation %lld and test %lld use all",
                       f->path, (long long)all, (long long)size[SPLIT_VALID],
                       (long long)size[SPLIT_TEST]);
    p->first[SPLIT_TRAIN] = f->byte;
    p->first[SPLIT_VALID] = f->byte + size[SPLIT_TRAIN];
    p->first[SPLIT_TEST] = p->first[SPLIT_VALID] + size[SPLIT_VALID];
    if (o->limit > 0 && o->limit < size[SPLIT_TRAIN]) size[SPLIT_TRAIN] = o->limit;
    return SR_OK;
}

/* -- symbols */

typedef struct spelling {
    char text[8];
    size_t length;
} spelling;

static spelling spell(int byte) {
    spelling s;
    s.length = (size_t)snprintf(s.text, sizeof s.text, "%d", byte);
    return s;
}

static bool count_byte(vocab *v, int byte, int64_t times) {
    const spelling s = spell(byte);
    return vocab_count(v, s.text, s.length, times);
}

/* Words in the order of first appearance, then <unk>. */
static bool make_symbols(vocab *v, const byte_parts *p) {
    int64_t count[BYTE_VALUES] = {0};
    bool done = true;
    const uint8_t *text = p->first[SPLIT_TRAIN];
    for (int64_t i = 0; i < p->size[SPLIT_TRAIN]; i++) {
        const int byte = text[i];
        if (count[byte]++ == 0) done = done && count_byte(v, byte, 0);
    }
    for (int byte = 0; byte < BYTE_VALUES && done; byte++)
        if (count[byte]) done = count_byte(v, byte, count[byte]);
    bool unknown = false;
    for (int split = SPLIT_VALID; split < RUNNING_SPLITS; split++)
        for (int64_t i = 0; i < p->size[split] && !unknown; i++)
            unknown = !count[p->first[split][i]];
    if (done && unknown) done = vocab_count(v, "<unk>", strlen("<unk>"), 0);
    return done && vocab_finish(v, 0);
}

static sr_status encode(running_set *s, const byte_parts *p, const file_bytes *f, sr_failure *why) {
    int32_t id[BYTE_VALUES];
    for (int byte = 0; byte < BYTE_VALUES; byte++) {
        const spelling of = spell(byte);
        id[byte] = vocab_id(s->words, of.text, of.length);
    }
    for (int split = 0; split < RUNNING_SPLITS; split++) {
        running_split *to = &s->split[split];
        to->tokens = p->size[split];
        to->id = malloc((size_t)(to->tokens + 1) * sizeof *to->id);
        if (!to->id) return sr_fail(why, SR_MEMORY, "%s: out of memory for its bytes", f->path);
        for (int64_t i = 0; i < to->tokens; i++) {
            to->id[i] = id[p->first[split][i]];
            to->unknown += to->id[i] == vocab_unknown(s->words);
        }
    }
    return SR_OK;
}

/* -- the set */

sr_status bytes_open(dataset *d, const data_options *o, sr_failure *why) {
    running_set *s = &d->running;
    file_bytes f = {0};
    byte_parts p = {0};
    char path[FILE_PATH];
    bool found;
    sr_status status = running_set_create(s, o, true, why);
    if (status == SR_OK) status = file_find(o->dir, o->file, path, &found, why);
    if (status == SR_OK && !found) return file_missing(path, why);
    if (status == SR_OK)
        status =
            file_read_as(path, ACCEPT(KIND_IDX) | ACCEPT(KIND_UTF16), "a file of bytes", &f, why);
    if (status == SR_OK && f.size == 0) status = sr_fail(why, SR_FORMAT, "%s: holds no byte", path);
    if (status == SR_OK) status = cut(o, &f, &p, why);
    if (status == SR_OK && !make_symbols(s->words, &p))
        status = sr_fail(why, SR_MEMORY, "%s: out of memory for its symbols", f.path);
    if (status == SR_OK) status = encode(s, &p, &f, why);
    const char *of[RUNNING_SPLITS];
    for (int i = 0; i < RUNNING_SPLITS; i++) of[i] = p.size[i] > 0 ? f.path : "";
    if (status == SR_OK) status = running_set_plan(s, of, why);
    if (status == SR_OK) dataset_note(d, "bytes: from %s", f.path);
    file_free(&f);
    if (status == SR_OK) dataset_finish_running(d);
    return status;
}
