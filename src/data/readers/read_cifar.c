/* read_cifar.c -- CIFAR-10 and CIFAR-100 in their binary versions (Krizhevsky 2009).
 *
 * A record is one label byte (CIFAR-10: class 0..9) or two (CIFAR-100: coarse class 0..19, fine
 * class 0..99). The fine class is learnt. Then come 1024 red, 1024 green and 1024 blue bytes, row
 * by row. The training images are the files data_batch_1.bin .. data_batch_5.bin (CIFAR-100:
 * train.bin) that exist, in that order, plain or .gz (plain preferred). test_batch.bin (test.bin)
 * has the validation images, since the data have no third part. With held-out training images it is
 * the test split. Each may hold any number of whole records.
 */
#include "data/dataset.h"
#include "text/file_bytes.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, CHANNELS = 3, PIXELS = CHANNELS * PLANE, TRAIN_NAMES = 5 };

typedef struct cifar_label {
    const char *what;
    int classes;
} cifar_label;

typedef struct cifar_format {
    const char *name, *title;
    int labels; /* bytes before the pixels; the last one is the class */
    cifar_label label[2];
    const char *train[TRAIN_NAMES + 1]; /* NULL ends */
    const char *test;
} cifar_format;

static const cifar_format cifar10 = {
    .name = "cifar10",
    .title = "CIFAR-10",
    .labels = 1,
    .label = {{"label", 10}},
    .train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
              "data_batch_5.bin", NULL},
    .test = "test_batch.bin",
};

static const cifar_format cifar100 = {
    .name = "cifar100",
    .title = "CIFAR-100",
    .labels = 2,
    .label = {{"coarse label", 20}, {"fine label", 100}},
    .train = {"train.bin", NULL},
    .test = "test.bin",
};

static size_t record_size(const cifar_format *c) {
    return (size_t)(c->labels + PIXELS);
}

static sr_status check_records(const cifar_format *c, const file_bytes *f, sr_failure *why) {
    const size_t record = record_size(c), rest = f->size % record;
    if (f->size == 0) return sr_fail(why, SR_FORMAT, "%s: byte 0: holds no record", f->path);
    for (size_t at = 0; at < f->size; at += record)
        for (size_t k = 0; k < (size_t)c->labels && at + k < f->size; k++)
            if (f->byte[at + k] >= c->label[k].classes)
                return sr_fail(why, SR_FORMAT, "%s: byte %zu: %s %d of record %zu is not 0..%d",
                               f->path, at + k, c->label[k].what, f->byte[at + k], at / record,
                               c->label[k].classes - 1);
    if (rest)
        return sr_fail(why, SR_FORMAT,
                       "%s: byte %zu: record %zu has %zu bytes instead of %zu, or not %s binary",
                       f->path, f->size - rest, f->size / record, rest, record, c->title);
    return SR_OK;
}

/* Appends the records of DIR/NAME or DIR/NAME.gz, at most `most` (0: all). *found: it exists. */
static sr_status read_batch_file(const cifar_format *c, dataset *d, const data_options *o,
                                 data_split split, const char *name, int64_t most, bool *found,
                                 sr_failure *why) {
    char path[FILE_PATH];
    file_bytes f;
    sr_status status = file_find(o->dir, name, path, found, why);
    if (status != SR_OK || !*found) return status;
    status = file_read_as(path, ACCEPT(KIND_IDX) | ACCEPT(KIND_UTF16), "CIFAR's binary version", &f,
                          why);
    if (status != SR_OK) return status;
    status = check_records(c, &f, why);
    const size_t record = record_size(c);
    image_split *s = &d->images.split[split];
    const int64_t all = (int64_t)(f.size / record), first = s->count;
    const int64_t count = most > 0 && all > most ? most : all;
    if (status == SR_OK) status = image_set_grow(&d->images, split, count, why);
    for (int64_t i = 0; status == SR_OK && i < count; i++) {
        const uint8_t *from = f.byte + (size_t)i * record, *plane = from + c->labels;
        uint8_t *pixel = s->pixel + (first + i) * PIXELS;
        s->label[first + i] = from[c->labels - 1];
        for (int k = 0; k < PIXELS; k++) pixel[k] = plane[k % CHANNELS * PLANE + k / CHANNELS];
    }
    file_free(&f);
    dataset_note(d, " %s", path);
    return status;
}

static sr_status cifar_open(const cifar_format *c, dataset *d, const data_options *o,
                            sr_failure *why) {
    image_set *s = &d->images;
    const bool held_out = o->valid_images > 0;
    const image_size size = {SIDE, SIDE, CHANNELS, c->label[c->labels - 1].classes};
    const int64_t *count = &s->split[SPLIT_TRAIN].count, limit = held_out ? 0 : o->limit;
    bool found, any = false;
    int last = 0;
    sr_status status = image_set_create(s, o, size, why);
    dataset_note(d, "%s: from", c->name);
    for (int i = 0; c->train[i] && status == SR_OK && (limit == 0 || *count < limit); i++) {
        const int64_t most = limit ? limit - *count : 0;
        status = read_batch_file(c, d, o, SPLIT_TRAIN, c->train[i], most, &found, why);
        any = any || found;
    }
    while (c->train[last + 1]) last++;
    if (status == SR_OK && !any)
        status = last ? sr_fail(why, SR_IO, "%s: holds none of %s .. %s, plain or .gz",
                                *o->dir ? o->dir : ".", c->train[0], c->train[last])
                      : sr_fail(why, SR_IO, "%s: holds no %s, plain or .gz", *o->dir ? o->dir : ".",
                                c->train[0]);
    if (status == SR_OK)
        status =
            read_batch_file(c, d, o, held_out ? SPLIT_TEST : SPLIT_VALID, c->test, 0, &found, why);
    if (status == SR_OK)
        status = image_set_divide(s, held_out ? o->valid_images : 0, o->limit, why);
    if (status != SR_OK) return status;
    if (!found)
        dataset_note(d, " (no %s: nothing to %s on)", c->test, held_out ? "test" : "validate");
    return dataset_finish_images(d, why);
}

sr_status cifar10_open(dataset *d, const data_options *o, sr_failure *why) {
    return cifar_open(&cifar10, d, o, why);
}

sr_status cifar100_open(dataset *d, const data_options *o, sr_failure *why) {
    return cifar_open(&cifar100, d, o, why);
}
