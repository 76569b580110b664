/* read_cifar10.c -- CIFAR-10 in its binary version (Krizhevsky 2009).
 *
 * A record is 1 label byte (0..9), then 1024 red, 1024 green and 1024 blue bytes, row by row. Read
 * are those of data_batch_1.bin .. data_batch_5.bin that exist, plain or .gz (plain preferred), in
 * that order, as training images, and test_batch.bin as validation images: the data set has no
 * third part. Each may hold any number of whole records.
 */
#include "dataset.h"
#include "statnet/file_bytes.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, RECORD = 1 + IMAGE_CHANNELS * PLANE, CLASSES = 10 };

static const char *const train_names[] = {"data_batch_1.bin", "data_batch_2.bin",
                                          "data_batch_3.bin", "data_batch_4.bin",
                                          "data_batch_5.bin"};
enum { TRAIN_NAMES = sizeof train_names / sizeof train_names[0] };

static sr_status check_records(const file_bytes *f, sr_failure *why) {
    size_t rest = f->size % RECORD;
    if (f->size == 0) return sr_fail(why, SR_FORMAT, "%s: byte 0: holds no record", f->path);
    for (size_t at = 0; at < f->size; at += RECORD)
        if (f->byte[at] >= CLASSES)
            return sr_fail(why, SR_FORMAT, "%s: byte %zu: label %d of record %zu is not 0..%d",
                           f->path, at, f->byte[at], at / RECORD, CLASSES - 1);
    if (rest)
        return sr_fail(why, SR_FORMAT,
                       "%s: byte %zu: record %zu has %zu bytes instead of %d: cut off or not "
                       "CIFAR-10 binary",
                       f->path, f->size - rest, f->size / RECORD, rest, RECORD);
    return SR_OK;
}

/* Three planes into pixels of three channels. */
static void unpack_record(const uint8_t *record, uint8_t *label, uint8_t *pixel) {
    *label = record[0];
    for (int i = 0; i < PLANE; i++)
        for (int c = 0; c < IMAGE_CHANNELS; c++)
            pixel[i * IMAGE_CHANNELS + c] = record[1 + c * PLANE + i];
}

/* Appends the records of one file, at most `most` of them (0: all). */
static sr_status append_file(image_set *s, data_split split, const file_bytes *f, int64_t most,
                             sr_failure *why) {
    sr_status status = check_records(f, why);
    if (status != SR_OK) return status;
    int64_t count = (int64_t)(f->size / RECORD), first = s->split[split].count;
    if (most > 0 && count > most) count = most;
    status = image_set_grow(s, split, count, why);
    for (int64_t i = 0; status == SR_OK && i < count; i++)
        unpack_record(f->byte + i * RECORD, s->split[split].label + first + i,
                      s->split[split].pixel + (first + i) * (RECORD - 1));
    return status;
}

/* Reads DIR/NAME or DIR/NAME.gz when there is one; *found says so. */
static sr_status read_batch_file(dataset *d, const data_options *o, data_split split,
                                 const char *name, int64_t most, bool *found, sr_failure *why) {
    char path[FILE_PATH];
    file_bytes f;
    sr_status status = file_find(o->dir, name, path, found, why);
    if (status != SR_OK || !*found) return status;
    status = file_read(path, &f, why);
    if (status != SR_OK) return status;
    status = append_file(&d->images, split, &f, most, why);
    file_free(&f);
    dataset_note(d, " %s", path);
    return status;
}

static sr_status read_training(dataset *d, const data_options *o, sr_failure *why) {
    bool any = false;
    int64_t *count = &d->images.split[SPLIT_TRAIN].count;
    for (int i = 0; i < TRAIN_NAMES && (o->limit == 0 || *count < o->limit); i++) {
        bool found;
        int64_t most = o->limit ? o->limit - *count : 0;
        sr_status status = read_batch_file(d, o, SPLIT_TRAIN, train_names[i], most, &found, why);
        if (status != SR_OK) return status;
        any = any || found;
    }
    if (any) return SR_OK;
    return sr_fail(why, SR_IO, "%s: holds none of %s .. %s, plain or .gz", *o->dir ? o->dir : ".",
                   train_names[0], train_names[TRAIN_NAMES - 1]);
}

sr_status cifar10_open(dataset *d, const data_options *o, sr_failure *why) {
    image_set *s = &d->images;
    bool found;
    sr_status status = image_set_create(s, o, SIDE, SIDE, CLASSES, why);
    dataset_note(d, "cifar10: from");
    if (status == SR_OK) status = read_training(d, o, why);
    if (status == SR_OK)
        status = read_batch_file(d, o, SPLIT_VALID, "test_batch.bin", 0, &found, why);
    if (status != SR_OK) return status;
    if (!found) dataset_note(d, " (no test_batch.bin: nothing to validate on)");
    return dataset_finish_images(d, why);
}
