#include "data_files.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "data/dataset.h"

const char *make_folder(void) {
    static char path[8][512];
    static int made;
    char *p = path[made++ % 8];
    snprintf(p, sizeof path[0], "%s/%d", check_temporary(), made);
    assert_int_equal(mkdir(p, 0777), 0);
    return p;
}

static const char *join(const char *dir, const char *name) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

const char *write_raw(const char *dir, const char *name, const void *bytes, size_t size) {
    const char *path = join(dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    return path;
}

const char *write_bytes(const char *dir, const char *name, const void *bytes, size_t size) {
    size_t length = strlen(name);
    if (length < 3 || strcmp(name + length - 3, ".gz") != 0)
        return write_raw(dir, name, bytes, size);
    const char *path = join(dir, name);
    gzFile f = gzopen(path, "wb");
    assert_non_null(f);
    if (size) assert_int_equal(gzwrite(f, bytes, (unsigned)size), size);
    assert_int_equal(gzclose(f), Z_OK);
    return path;
}

const char *write_text(const char *dir, const char *name, const char *text) {
    return write_bytes(dir, name, text, strlen(text));
}

void write_in(const char *dir, const char *folder, const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s", dir);
    for (const char *at = folder; *at;) {
        const size_t length = strcspn(at, "/"), used = strlen(path);
        snprintf(path + used, sizeof path - used, "/%.*s", (int)length, at);
        assert_true(mkdir(path, 0777) == 0 || errno == EEXIST);
        at += length + (at[length] == '/');
    }
    write_text(path, name, text);
}

unsigned char *read_raw(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    unsigned char *bytes = malloc(1 << 22);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1 << 22, f);
    fclose(f);
    return bytes;
}

data_options default_options(const char *name, const char *dir) {
    data_options o = {.batch_size = 128, .augment = true, .max_tokens = 2048, .seed = 1};
    o.eval_batch_size = 10, o.window = 32, o.eos_of_empty = true;
    snprintf(o.name, sizeof o.name, "%s", name);
    snprintf(o.dir, sizeof o.dir, "%s", dir);
    strcpy(o.source, "de"), strcpy(o.target, "en");
    strcpy(o.idx_train_images, "train-images-idx3-ubyte");
    strcpy(o.idx_train_labels, "train-labels-idx1-ubyte");
    strcpy(o.idx_test_images, "t10k-images-idx3-ubyte");
    strcpy(o.idx_test_labels, "t10k-labels-idx1-ubyte");
    strcpy(o.trainpref, "train"), strcpy(o.validpref, "valid"), strcpy(o.testpref, "test");
    return o;
}

dataset *open_data(const data_options *o) {
    sr_failure why = {0};
    dataset *d = data_open(o, &why);
    if (!d) fail_msg("%s", why.text);
    return d;
}

void refuse_data(const data_options *o, sr_status status, const char *part) {
    sr_failure why = {0};
    dataset *d = data_open(o, &why);
    if (d) fail_msg("opened, expected: %s", part);
    check_failure(&why, status, part);
    assert_null(data_open(o, NULL));
}

static uint64_t digest(uint64_t h, const void *bytes, size_t size) {
    const unsigned char *p = bytes;
    for (size_t i = 0; p && i < size; i++) h = (h ^ p[i]) * 0x100000001b3ull;
    return h;
}

uint64_t digest_batch(const batch *b) {
    int64_t sizes[] = {b->task, b->count, b->source_length, b->target_length, b->tokens};
    uint64_t h = digest(0xcbf29ce484222325ull, sizes, sizeof sizes);
    size_t source = (size_t)(b->count * b->source_length),
           target = (size_t)(b->count * b->target_length);
    size_t pixels = (size_t)(b->count * b->height * b->width * b->channels);
    h = digest(h, b->image, pixels * sizeof *b->image);
    h = digest(h, b->label, (size_t)b->count * sizeof *b->label);
    h = digest(h, b->feature, (size_t)(b->count * b->features) * sizeof *b->feature);
    h = digest(h, b->source, source * sizeof *b->source);
    h = digest(h, b->source_mask, source);
    h = digest(h, b->tag, source * sizeof *b->tag);
    h = digest(h, b->character, source * (size_t)b->word_length * sizeof *b->character);
    h = digest(h, b->target_in, target * sizeof *b->target_in);
    h = digest(h, b->target_out, target * sizeof *b->target_out);
    return digest(h, b->target_mask, target);
}

static uint64_t weights_digest_of(dataset *d, data_split split, int64_t epoch, int64_t index) {
    batch b;
    sr_failure why = {0};
    check_ok(data_batch(d, split, epoch, index, &b, &why), &why);
    return digest_batch(&b);
}

void check_pure(const data_options *o, data_split split) {
    dataset *d = open_data(o), *again = open_data(o);
    int64_t n = data_batches(d, split);
    assert_true(n > 1);
    uint64_t *want = malloc((size_t)n * sizeof *want);
    assert_non_null(want);
    for (int64_t i = 0; i < n; i++) want[i] = weights_digest_of(d, split, 3, i);
    for (int64_t i = n - 1; i >= 0; i--) {
        weights_digest_of(again, SPLIT_TRAIN, i, 0);
        assert_true(weights_digest_of(again, split, 3, i) == want[i]);
    }
    free(want);
    data_close(d);
    data_close(again);
}

const char *data_word(const dataset *d, data_side side, int64_t id) {
    const vocab *words = data_dictionary(d, side);
    return words ? vocab_word(words, id) : NULL;
}

double data_unknown_share(const dataset *d, data_split split) {
    const pair_split *pairs = &d->pairs.split[split];
    const running_split *running = &d->running.split[split];
    const tree_split *trees = &d->trees.split[split];
    const sentence_split *sentences = &d->sentences.split[split];
    switch (d->row->task) {
    case TASK_IMAGES:
        return NAN;
    case TASK_PAIRS:
        return (double)pairs->unknown[SIDE_TARGET] / (double)pairs->tokens;
    case TASK_LM:
        return (double)running->unknown / (double)running->tokens;
    case TASK_TREES:
        return (double)trees->unknown / (double)trees->words;
    default:
        return (double)sentences->unknown / (double)sentences->words;
    }
}

double data_entropy(const dataset *d) {
    return d->row->task == TASK_PAIRS ? d->pairs.entropy : NAN;
}
