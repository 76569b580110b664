/* fuzz_data.c -- see fuzz_data.h. */
#include "fuzz_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "text/tag_set.h"
#include "text/tags.h"

enum { BATCHES = 3 }; /* first batches of a split; the last batch is read too */
enum { FOLDERS = 2 }; /* a split and a class */

static data_options options_of(const fuzz_reader *r) {
    data_options o = {.batch_size = 4, .eval_batch_size = 3, .window = 5, .max_tokens = 256};
    o.valid_images = -1, o.valid_count = o.test_count = -1, o.valid_share = o.test_share = NAN;
    o.eos_of_empty = true, o.word_column = 1, o.seed = 1;
    snprintf(o.name, sizeof o.name, "%s", r->name);
    snprintf(o.dir, sizeof o.dir, "%s", fuzz_folder());
    strcpy(o.source, "de"), strcpy(o.target, "en");
    strcpy(o.trainpref, "train"), strcpy(o.validpref, "valid"), strcpy(o.testpref, "test");
    strcpy(o.idx_train_images, "images"), strcpy(o.idx_train_labels, "labels");
    strcpy(o.idx_test_images, "test-images"), strcpy(o.idx_test_labels, "test-labels");
    return o;
}

static void store_files(const fuzz_reader *r, const uint8_t *data, size_t size, bool zipped) {
    fuzz_part part[FUZZ_PARTS];
    const int parts = fuzz_split(data, size, part);
    char name[64];
    for (int i = 0; i < FUZZ_PARTS && r->file[i]; i++) {
        unlink(fuzz_path(r->file[i]));
        snprintf(name, sizeof name, "%s.gz", r->file[i]);
        unlink(fuzz_path(name));
        if (i < parts) fuzz_store(zipped ? name : r->file[i], part[i].byte, part[i].size);
    }
}

static void store_folders(const uint8_t *data, size_t size) {
    fuzz_part part[FUZZ_PARTS];
    const int parts = fuzz_split(data, size, part);
    fuzz_empty_folder("set");
    for (int i = 0; i < parts; i++) fuzz_store_named("set", part[i], FOLDERS);
}

static void expect_below(const int32_t *id, int64_t count, int64_t least, int64_t bound) {
    for (int64_t i = 0; id && i < count; i++)
        if (id[i] < least || id[i] >= bound) {
            fprintf(stderr, "fuzz: id %d is not one of %lld\n", id[i], (long long)bound);
            abort();
        }
}

/* Includes tags of types that training lacks; the model treats those as O. */
static int64_t tags_of(const tag_set *s) {
    const int64_t letters = (int64_t)strlen(tag_scheme_letters(s->scheme)); /* with O */
    return 1 + (letters - 1) * s->all_types;
}

static void look_at(const batch *b, const data_shape *s) {
    const int64_t source = b->count * b->source_length, target = b->count * b->target_length;
    const int64_t targets = s->target_vocabulary ? s->target_vocabulary : s->vocabulary;
    float sum = 0;
    fuzz_expect(b->count > 0, "an empty batch");
    for (int64_t i = 0; b->image && i < b->count * b->height * b->width * b->channels; i++)
        sum += b->image[i];
    fuzz_expect(!b->image || isfinite(sum), "images that are no numbers");
    expect_below(b->label, b->count, 0, s->classes);
    expect_below(b->source, source, 0, s->vocabulary);
    expect_below(b->target_in, target, 0, targets);
    expect_below(b->target_out, target, 0, targets);
    expect_below(b->character, source * b->word_length, 0, s->characters);
    if (b->tag) expect_below(b->tag, source, -1, tags_of(b->tags));
}

static void look_at_split(dataset *d, data_split split) {
    const int64_t batches = data_batches(d, split);
    sr_failure why = {0};
    batch b;
    for (int64_t i = 0; i < batches; i++) {
        if (i == BATCHES) i = batches > BATCHES ? batches - 1 : i;
        fuzz_expect(data_batch(d, split, 1, i, &b, &why) == SR_OK, why.text);
        look_at(&b, data_get_shape(d));
    }
}

static void look_at_data(const data_options *o) {
    sr_failure why = {0};
    dataset *d = data_open(o, &why);
    fuzz_expect_reason(!d, &why);
    if (!d) return;
    fuzz_expect(strlen(data_describe(d)) > 0, "data without a description");
    for (int split = SPLIT_TRAIN; split <= SPLIT_TEST; split++) look_at_split(d, (data_split)split);
    data_close(d);
}

int fuzz_read_data(const fuzz_reader *r, const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    data_options o = options_of(r);
    if (r->vary) r->vary(&o, data[0] & 31u);
    store_files(r, data + 1, size - 1, data[0] & 32u);
    look_at_data(&o);
    return 0;
}

int fuzz_read_folder(const fuzz_reader *r, const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    data_options o = options_of(r);
    if (r->vary) r->vary(&o, data[0] & 31u);
    store_folders(data + 1, size - 1);
    snprintf(o.dir, sizeof o.dir, "%s", fuzz_path("set"));
    look_at_data(&o);
    return 0;
}
