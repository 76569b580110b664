/* read_idx.c -- images and labels in the format of MNIST (LeCun, Cortes and Burges,
 * http://yann.lecun.com/exdb/mnist): MNIST, Fashion-MNIST, EMNIST, Kuzushiji-MNIST ...
 *
 * Numbers have four bytes, the highest first. Images: 0x00000803, count, rows, columns, then a byte
 * for each pixel, row by row, 0 the background. Labels: 0x00000801, count, then a byte each.
 * QMNIST's labels are 0x00000c02, count, 8, then eight numbers each; the first is the class (Yadav
 * and Bottou, NeurIPS 2019). A file ends with its last element. EMNIST's images are transposed: its
 * rows are columns.
 *
 * The smallest label of the training file is class 0; EMNIST's letters are 1..26. Every number up
 * to the largest has an image, unless the number of classes is given. The last training images
 * become the validation split: a twelfth, or the number that the option sets (docs/models.md 7).
 * t10k is the test split.
 */
#include <stdio.h>
#include <string.h>

#include "data/dataset.h"
#include "text/file_bytes.h"

enum { IMAGES_MAGIC = 0x803, LABELS_MAGIC = 0x801, IMAGES_HEADER = 16, LABELS_HEADER = 8 };
enum { QMNIST_MAGIC = 0xc02, QMNIST_HEADER = 12 };
enum { SIDE_MOST = 4096, LABELS = 256, HELD_OUT_PART = 12 };

/* A file of images and its file of labels. */
typedef struct idx_pair {
    file_bytes image, label;
    int64_t count, rows, columns;
} idx_pair;

typedef struct idx_labels {
    int low;
    int64_t classes;
} idx_labels;

static uint32_t word_at(const file_bytes *f, size_t at) {
    const uint8_t *p = f->byte + at;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static sr_status check_header(const file_bytes *f, uint32_t magic, size_t header, sr_failure *why) {
    const uint32_t found = f->size >= 4 ? word_at(f, 0) : 0;
    const char *what = found == IMAGES_MAGIC   ? ": a file of images"
                       : found == LABELS_MAGIC ? ": a file of labels"
                                               : "";
    if (f->size >= 4 && found != magic)
        return sr_fail(why, SR_FORMAT, "%s: byte 0: magic number 0x%08x is not 0x%08x%s", f->path,
                       found, magic, what);
    if (f->size < header)
        return sr_fail(why, SR_FORMAT, "%s: byte %zu: header of %zu bytes is truncated", f->path,
                       f->size, header);
    if (word_at(f, 4) == 0)
        return sr_fail(why, SR_FORMAT, "%s: byte 4: it has 0 %s", f->path,
                       magic == IMAGES_MAGIC ? "images" : "labels");
    return SR_OK;
}

/* Checks that `count` elements of `size` bytes follow the header. */
static sr_status check_size(const file_bytes *f, size_t header, uint64_t count, uint64_t size,
                            sr_failure *why) {
    const uint64_t have = f->size - header;
    const char *what = header == IMAGES_HEADER ? "images" : "labels";
    if (count > have / size)
        return sr_fail(why, SR_FORMAT, "%s: byte %zu: cut off after %llu of %llu %s", f->path,
                       f->size, (unsigned long long)(have / size), (unsigned long long)count, what);
    if (have > count * size)
        return sr_fail(why, SR_FORMAT, "%s: byte %llu: %llu bytes after the last of %llu %s",
                       f->path, (unsigned long long)(header + count * size),
                       (unsigned long long)(have - count * size), (unsigned long long)count, what);
    return SR_OK;
}

/* Names of a file in archives of the same data: with a dot for the hyphen, QMNIST's. */
static sr_status find_named(const char *dir, const char *name, char path[FILE_PATH], bool *found,
                            sr_failure *why) {
    static const char *const others[][2] = {
        {"train-images-idx3-ubyte", "qmnist-train-images-idx3-ubyte"},
        {"train-labels-idx1-ubyte", "qmnist-train-labels-idx2-int"},
        {"t10k-images-idx3-ubyte", "qmnist-test-images-idx3-ubyte"},
        {"t10k-labels-idx1-ubyte", "qmnist-test-labels-idx2-int"}};
    char other[DATA_TEXT], kept[FILE_PATH];
    sr_status status = file_find(dir, name, path, found, why);
    if (status != SR_OK || *found) return status;
    snprintf(other, sizeof other, "%s", name);
    char *idx = strstr(other, "-idx");
    if (idx) *idx = '.';
    if (idx) status = file_find(dir, other, kept, found, why);
    for (size_t i = 0; status == SR_OK && !*found && i < sizeof others / sizeof *others; i++)
        if (!strcmp(name, others[i][0])) status = file_find(dir, others[i][1], kept, found, why);
    if (*found) memcpy(path, kept, sizeof kept);
    return status;
}

/* Reads DIR/NAME or DIR/NAME.gz; *found: it exists. */
static sr_status read_named(dataset *d, const char *dir, const char *name, file_bytes *f,
                            bool *found, sr_failure *why) {
    char path[FILE_PATH];
    sr_status status = find_named(dir, name, path, found, why);
    if (status == SR_OK && *found)
        status = file_read_as(path, ACCEPT(KIND_IDX) | ACCEPT(KIND_UTF16),
                              "an IDX file (MNIST's format)", f, why);
    if (status == SR_OK && *found) dataset_note(d, " %s", path);
    return status;
}

/* Turns QMNIST's labels into MNIST's: the class of each, a byte. */
static sr_status shorten_labels(file_bytes *f, sr_failure *why) {
    if (f->size < QMNIST_HEADER || word_at(f, 0) != QMNIST_MAGIC) return SR_OK;
    const uint64_t count = word_at(f, 4), width = word_at(f, 8);
    if (width < 1 || width > SIDE_MOST || f->size - QMNIST_HEADER != count * width * 4)
        return sr_fail(why, SR_FORMAT, "%s: byte %zu: %llu labels of %llu numbers do not end here",
                       f->path, f->size, (unsigned long long)count, (unsigned long long)width);
    for (uint64_t i = 0; i < count; i++) {
        const size_t at = QMNIST_HEADER + i * width * 4;
        const uint32_t label = word_at(f, at);
        if (label >= LABELS)
            return sr_fail(why, SR_FORMAT, "%s: byte %zu: label %u is over %d", f->path, at, label,
                           LABELS - 1);
        f->byte[LABELS_HEADER + i] = (uint8_t)label; /* never beyond the bytes read */
    }
    f->byte[2] = LABELS_MAGIC >> 8, f->byte[3] = LABELS_MAGIC & 0xff;
    f->size = LABELS_HEADER + count;
    return SR_OK;
}

/* Reads and checks both files. *found false: there are no images, which is no failure. */
static sr_status read_pair(dataset *d, const char *dir, const char *images, const char *labels,
                           idx_pair *p, bool *found, sr_failure *why) {
    bool labelled;
    *found = false;
    if (!*images) return SR_OK;
    sr_status status = read_named(d, dir, images, &p->image, found, why);
    if (status != SR_OK || !*found) return status;
    const file_bytes *f = &p->image;
    status = check_header(f, IMAGES_MAGIC, IMAGES_HEADER, why);
    if (status != SR_OK) return status;
    p->count = word_at(f, 4), p->rows = word_at(f, 8), p->columns = word_at(f, 12);
    if (p->rows < 1 || p->rows > SIDE_MOST || p->columns < 1 || p->columns > SIDE_MOST)
        return sr_fail(why, SR_FORMAT, "%s: byte 8: images of %lld x %lld pixels, sides are 1..%d",
                       f->path, (long long)p->rows, (long long)p->columns, SIDE_MOST);
    const uint64_t size = (uint64_t)(p->rows * p->columns);
    status = check_size(f, IMAGES_HEADER, (uint64_t)p->count, size, why);
    if (status == SR_OK) status = read_named(d, dir, labels, &p->label, &labelled, why);
    if (status == SR_OK && !labelled)
        return sr_fail(why, SR_IO, "%s: holds no %s, plain or .gz, to %s", *dir ? dir : ".", labels,
                       p->image.path);
    if (status != SR_OK) return status;
    f = &p->label;
    status = shorten_labels(&p->label, why);
    if (status != SR_OK) return status;
    status = check_header(f, LABELS_MAGIC, LABELS_HEADER, why);
    if (status == SR_OK) status = check_size(f, LABELS_HEADER, word_at(f, 4), 1, why);
    if (status == SR_OK && word_at(f, 4) != p->count)
        return sr_fail(why, SR_FORMAT, "%s: byte 4: %u labels, but %s has %lld images", f->path,
                       word_at(f, 4), p->image.path, (long long)p->count);
    return status;
}

/* -- classes */

static sr_status check_range(const idx_pair *p, const idx_labels *l, sr_failure *why) {
    for (int64_t i = 0; i < p->count; i++) {
        const int64_t label = p->label.byte[LABELS_HEADER + i];
        if (label < l->low || label >= l->low + l->classes)
            return sr_fail(why, SR_FORMAT,
                           "%s: byte %lld: label %lld of image %lld is not %d..%lld", p->label.path,
                           (long long)(LABELS_HEADER + i), (long long)label, (long long)i, l->low,
                           (long long)(l->low + l->classes - 1));
    }
    return SR_OK;
}

/* A missing label usually means a damaged larger one. */
static sr_status check_gaps(const idx_pair *p, const bool seen[LABELS], int low, int high,
                            sr_failure *why) {
    int missing = low, next;
    while (missing <= high && seen[missing]) missing++;
    if (missing > high) return SR_OK;
    for (next = missing; !seen[next]; next++) {
    }
    int64_t image = 0;
    while (p->label.byte[LABELS_HEADER + image] != next) image++;
    sr_status status = sr_fail(why, SR_FORMAT,
                               "%s: byte %lld: label %d of image %lld, but none of %lld images has "
                               "label %d",
                               p->label.path, (long long)(LABELS_HEADER + image), next,
                               (long long)image, (long long)p->count, missing);
    sr_hint(why, "--idx-classes sets the number of classes");
    return status;
}

/* Finds the classes from all training labels. given: the number of classes; 0: count them. */
static sr_status count_classes(const idx_pair *p, int64_t given, idx_labels *l, sr_failure *why) {
    bool seen[LABELS] = {false};
    int low = 0, high = LABELS - 1;
    for (int64_t i = 0; i < p->count; i++) seen[p->label.byte[LABELS_HEADER + i]] = true;
    while (!seen[low]) low++;
    while (!seen[high]) high--;
    *l = (idx_labels){low, given ? given : high - low + 1};
    if (given) return check_range(p, l, why);
    if (low == high)
        return sr_fail(why, SR_FORMAT, "%s: byte %d: every label is %d", p->label.path,
                       LABELS_HEADER, low);
    return check_gaps(p, seen, low, high, why);
}

/* -- into the set */

static sr_status append_pair(image_set *s, data_split split, const idx_pair *p, const idx_labels *l,
                             bool transpose, sr_failure *why) {
    sr_status status = image_set_grow(s, split, p->count, why);
    const int64_t size = p->rows * p->columns;
    for (int64_t i = 0; status == SR_OK && i < p->count; i++) {
        const uint8_t *from = p->image.byte + IMAGES_HEADER + i * size;
        uint8_t *to = s->split[split].pixel + i * size;
        for (int64_t y = 0; y < p->rows; y++)
            for (int64_t x = 0; x < p->columns; x++)
                to[transpose ? x * p->rows + y : y * p->columns + x] = from[y * p->columns + x];
        s->split[split].label[i] = (uint8_t)(p->label.byte[LABELS_HEADER + i] - l->low);
    }
    return status;
}

static sr_status add_training(dataset *d, const data_options *o, const idx_pair *p, idx_labels *l,
                              sr_failure *why) {
    sr_status status = count_classes(p, o->idx_classes, l, why);
    if (status != SR_OK) return status;
    const bool turn = o->idx_transpose;
    const image_size size = {turn ? p->columns : p->rows, turn ? p->rows : p->columns, 1,
                             l->classes};
    status = image_set_create(&d->images, o, size, why);
    if (status == SR_OK) status = append_pair(&d->images, SPLIT_TRAIN, p, l, turn, why);
    const int64_t held_out = o->valid_images < 0 ? p->count / HELD_OUT_PART : o->valid_images;
    return status == SR_OK ? image_set_divide(&d->images, held_out, o->limit, why) : status;
}

static sr_status open_pairs(dataset *d, const data_options *o, idx_pair *train, idx_pair *test,
                            sr_failure *why) {
    idx_labels labels;
    bool found;
    sr_status status =
        read_pair(d, o->dir, o->idx_train_images, o->idx_train_labels, train, &found, why);
    if (status == SR_OK && !found)
        return sr_fail(why, SR_IO, "%s: holds no '%s', plain or .gz", *o->dir ? o->dir : ".",
                       o->idx_train_images);
    if (status == SR_OK) status = add_training(d, o, train, &labels, why);
    if (status == SR_OK)
        status = read_pair(d, o->dir, o->idx_test_images, o->idx_test_labels, test, &found, why);
    if (status != SR_OK) return status;
    if (found && (test->rows != train->rows || test->columns != train->columns))
        return sr_fail(why, SR_FORMAT,
                       "%s: byte 8: images of %lld x %lld pixels, those of %s have %lld x %lld",
                       test->image.path, (long long)test->rows, (long long)test->columns,
                       train->image.path, (long long)train->rows, (long long)train->columns);
    if (found) status = check_range(test, &labels, why);
    if (found && status == SR_OK)
        status = append_pair(&d->images, SPLIT_TEST, test, &labels, o->idx_transpose, why);
    if (status != SR_OK) return status;
    dataset_note(d, "%s; labels %d..%lld in %lld classes", o->idx_transpose ? ", transposed" : "",
                 labels.low, (long long)(labels.low + labels.classes - 1),
                 (long long)labels.classes);
    return dataset_finish_images(d, why);
}

sr_status idx_open(dataset *d, const data_options *o, sr_failure *why) {
    idx_pair train = {0}, test = {0};
    dataset_note(d, "idx: from");
    sr_status status = open_pairs(d, o, &train, &test, why);
    file_free(&train.image), file_free(&train.label);
    file_free(&test.image), file_free(&test.label);
    return status;
}
