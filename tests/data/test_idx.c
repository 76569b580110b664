/* MNIST's format: tiny files written here, damaged ones too, and the shared MNIST if present. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/sets/image_set.h"
#include "data_files.h"

enum { ROWS = 5, COLUMNS = 3, PIXELS = ROWS * COLUMNS, ROOM = 4096 };
#define IMAGES     "train-images-idx3-ubyte"
#define LABELS     "train-labels-idx1-ubyte"
#define TEST       "t10k-images-idx3-ubyte"
#define TEST_LABEL "t10k-labels-idx1-ubyte"

static size_t put_word(unsigned char *to, unsigned long v) {
    for (int i = 0; i < 4; i++) to[i] = (unsigned char)(v >> (24 - 8 * i));
    return 4;
}

/* A byte that distinguishes image and pixel. */
static unsigned char pixel_of(int image, int p) {
    return (unsigned char)(image * 37 + p * 11);
}

/* Writes the bytes of `count` images, starting with image `first`; returns their number. */
static size_t make_images(unsigned char *to, int count, int first) {
    size_t n = put_word(to, 0x803);
    n += put_word(to + n, (unsigned long)count);
    n += put_word(to + n, ROWS);
    n += put_word(to + n, COLUMNS);
    for (int i = 0; i < count; i++)
        for (int p = 0; p < PIXELS; p++) to[n++] = pixel_of(first + i, p);
    return n;
}

/* Labels low, low + 1 .. low + classes - 1, repeated. */
static size_t make_labels(unsigned char *to, int count, int low, int classes) {
    size_t n = put_word(to, 0x801);
    n += put_word(to + n, (unsigned long)count);
    for (int i = 0; i < count; i++) to[n++] = (unsigned char)(low + i % classes);
    return n;
}

static void write_images(const char *dir, const char *name, int count, int first) {
    unsigned char bytes[ROOM];
    write_bytes(dir, name, bytes, make_images(bytes, count, first));
}

static void write_labels(const char *dir, const char *name, int count, int low, int classes) {
    unsigned char bytes[ROOM];
    write_bytes(dir, name, bytes, make_labels(bytes, count, low, classes));
}

/* 24 training images of four classes, 6 test images. */
static data_options small_set(const char *dir, int low) {
    write_images(dir, IMAGES ".gz", 24, 0);
    write_labels(dir, LABELS, 24, low, 4);
    write_images(dir, TEST, 6, 100);
    write_labels(dir, TEST_LABEL ".gz", 6, low, 4);
    data_options o = default_options("idx", dir);
    o.valid_images = -1;
    o.augment = false;
    return o;
}

static batch get(dataset *d, data_split split, int64_t epoch, int64_t index) {
    batch b;
    sr_failure why = {0};
    check_ok(data_batch(d, split, epoch, index, &b, &why), &why);
    return b;
}

/* Mean and standard deviation of the first `count` images. */
static void measure(int count, double *mean, double *deviation) {
    double sum = 0, squares = 0;
    const double n = (double)count * PIXELS;
    for (int i = 0; i < count * PIXELS; i++) sum += pixel_of(i / PIXELS, i % PIXELS) / 255.0;
    *mean = sum / n;
    for (int i = 0; i < count * PIXELS; i++)
        squares += pow(pixel_of(i / PIXELS, i % PIXELS) / 255.0 - *mean, 2);
    *deviation = sqrt(squares / n);
}

/* Checks that image i of a batch is image `number` of the files. */
static void check_image(const batch *b, int i, int number, bool transposed, int train) {
    double mean, deviation;
    measure(train, &mean, &deviation);
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < COLUMNS; x++) {
            const double want = (pixel_of(number, y * COLUMNS + x) / 255.0 - mean) / deviation;
            const int at = transposed ? x * ROWS + y : y * COLUMNS + x;
            check_within((double)b->image[i * PIXELS + at], want, 1e-5);
        }
}

static void reads_the_format(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = small_set(dir, 0);
    dataset *d = open_data(&o);
    const data_shape *shape = data_get_shape(d);
    assert_true(shape->height == ROWS && shape->width == COLUMNS);
    assert_true(shape->channels == 1 && shape->classes == 4);
    batch b = get(d, SPLIT_VALID, 0, 0);
    assert_int_equal(b.count, 2); /* a twelfth: the last two */
    assert_int_equal(b.channels, 1);
    for (int i = 0; i < 2; i++) {
        check_image(&b, i, 22 + i, false, 22);
        assert_int_equal(b.label[i], 2 + i);
    }
    b = get(d, SPLIT_TEST, 0, 0);
    assert_int_equal(b.count, 6);
    for (int i = 0; i < 6; i++) {
        check_image(&b, i, 100 + i, false, 22);
        assert_int_equal(b.label[i], i % 4);
    }
    assert_int_equal(get(d, SPLIT_TRAIN, 0, 0).count, 22);
    assert_non_null(strstr(data_describe(d), IMAGES ".gz "));
    assert_non_null(strstr(data_describe(d), "; labels 0..3 in 4 classes; 22 training and 2 "
                                             "validation images, 6 test images; training mean 0."));
    data_close(d);
}

/* The training images are the remaining ones, each once. */
static void holds_out_the_last(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = small_set(dir, 0);
    o.valid_images = 7, o.batch_size = 5;
    dataset *d = open_data(&o);
    int seen[24] = {0};
    for (int64_t k = 0; k < data_batches(d, SPLIT_TRAIN); k++) {
        batch b = get(d, SPLIT_TRAIN, 0, k);
        for (int i = 0; i < b.count; i++)
            for (int n = 0; n < 24; n++) {
                double mean, deviation;
                measure(17, &mean, &deviation);
                const double want = (pixel_of(n, 0) / 255.0 - mean) / deviation;
                if (fabs((double)b.image[i * PIXELS] - want) < 1e-6) seen[n]++;
            }
    }
    for (int n = 0; n < 24; n++) assert_int_equal(seen[n], n < 17);
    batch b = get(d, SPLIT_VALID, 0, 1);
    assert_int_equal(b.count, 2);
    check_image(&b, 1, 23, false, 17);
    data_close(d);
    o.limit = 3; /* the same images are held out */
    d = open_data(&o);
    assert_int_equal(get(d, SPLIT_TRAIN, 0, 0).count, 3);
    b = get(d, SPLIT_VALID, 0, 1);
    check_image(&b, 1, 23, false, 3);
    data_close(d);
    o.limit = 0, o.valid_images = 0;
    d = open_data(&o);
    assert_false(data_has_split(d, SPLIT_VALID));
    assert_true(data_has_split(d, SPLIT_TEST));
    data_close(d);
    o.valid_images = 24;
    refuse_data(&o, SR_USAGE, "valid-images 24: there are 24 training images");
}

/* As in EMNIST letters: labels start at 1, rows are columns. */
static void counts_labels_and_transposes(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = small_set(dir, 1);
    o.idx_transpose = true;
    dataset *d = open_data(&o);
    assert_int_equal(data_get_shape(d)->height, COLUMNS);
    assert_int_equal(data_get_shape(d)->width, ROWS);
    assert_int_equal(data_get_shape(d)->classes, 4);
    batch b = get(d, SPLIT_TEST, 0, 0);
    for (int i = 0; i < 6; i++) {
        check_image(&b, i, 100 + i, true, 22);
        assert_int_equal(b.label[i], i % 4);
    }
    assert_non_null(strstr(data_describe(d), ", transposed; labels 1..4 in 4 classes"));
    data_close(d);
    o.idx_classes = 9; /* more than exist */
    d = open_data(&o);
    assert_int_equal(data_get_shape(d)->classes, 9);
    data_close(d);
}

static void other_names(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_images(dir, "letters", 12, 0);
    write_labels(dir, "names", 12, 0, 3);
    data_options o = default_options("idx", dir);
    strcpy(o.idx_train_images, "letters"), strcpy(o.idx_train_labels, "names");
    dataset *d = open_data(&o); /* no test images */
    assert_false(data_has_split(d, SPLIT_TEST));
    assert_non_null(strstr(data_describe(d), "no test split"));
    data_close(d);
    write_images(dir, TEST, 6, 100);
    refuse_data(&o, SR_IO, "holds no t10k-labels-idx1-ubyte, plain or .gz, to ");
    *o.idx_test_images = 0;
    d = open_data(&o);
    assert_false(data_has_split(d, SPLIT_TEST));
    data_close(d);
    strcpy(o.idx_train_labels, "nomes");
    refuse_data(&o, SR_IO, "holds no nomes, plain or .gz, to ");
    strcpy(o.idx_train_images, "lotters");
    refuse_data(&o, SR_IO, "holds no 'lotters', plain or .gz");
}

/* Augmentation also moves grey images, over a black background. */
static void augments_grey_images(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = small_set(dir, 0);
    o.augment = true;
    dataset *d = open_data(&o);
    double mean, deviation;
    measure(22, &mean, &deviation);
    int black = 0;
    batch b = get(d, SPLIT_TRAIN, 0, 0);
    for (int i = 0; i < b.count * PIXELS; i++)
        black += fabs((double)b.image[i] + mean / deviation) < 1e-6;
    assert_true(black > 22 * PIXELS / 4 && black < 22 * PIXELS);
    data_close(d);
    o.batch_size = 8;
    check_pure(&o, SPLIT_TRAIN);
    o.batch_size = 1;
    check_pure(&o, SPLIT_VALID);
}

/* -- rejected files */

/* Writes the training images with `word` at byte `at`, cut or extended to `size` (0: unchanged). */
static void damage(const char *dir, const char *name, bool images, size_t at, unsigned long word,
                   size_t size) {
    unsigned char bytes[ROOM] = {0};
    size_t n = images ? make_images(bytes, 24, 0) : make_labels(bytes, 24, 0, 4);
    put_word(bytes + at, word);
    write_raw(dir, name, bytes, size ? size : n);
}

static void refuses_headers(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = small_set(dir, 0);
    const struct {
        size_t at;
        unsigned long word;
        const char *part;
    } wrong[] = {
        {0, 0x804, IMAGES ": byte 0: magic number 0x00000804 is not 0x00000803"},
        {0, 0x801, "0x00000801 is not 0x00000803: a file of labels"},
        {0, 0x03080000, "byte 0: magic number 0x03080000"},
        {4, 0, "byte 4: it has 0 images"},
        {4, 25, "byte 376: cut off after 24 of 25 images"},
        {4, 0xffffffff, "byte 376: cut off after 24 of 4294967295 images"},
        {4, 23, "byte 361: 15 bytes after the last of 23 images"},
        {8, 0, "byte 8: images of 0 x 3 pixels"},
        {8, 0xffffffff, "byte 8: images of 4294967295 x 3 pixels, sides are 1..4096"},
        {12, 5000, "byte 8: images of 5 x 5000 pixels"},
        {12, 0, "byte 8: images of 5 x 0 pixels"},
        {12, 4000, "byte 376: cut off after 0 of 24 images"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        damage(dir, IMAGES, true, wrong[i].at, wrong[i].word, 0); /* preferred to its .gz */
        refuse_data(&o, SR_FORMAT, wrong[i].part);
    }
    damage(dir, IMAGES, true, 0, 0x803, 3);
    refuse_data(&o, SR_FORMAT, IMAGES ": byte 3: header of 16 bytes is truncated");
    damage(dir, IMAGES, true, 0, 0x803, 15);
    refuse_data(&o, SR_FORMAT, "byte 15: header of 16 bytes is truncated");
    damage(dir, IMAGES, true, 0, 0x803, 300);
    refuse_data(&o, SR_FORMAT, "byte 300: cut off after 18 of 24 images");
    damage(dir, IMAGES ".gz", true, 0, 0x803, 0); /* ignored: the plain file is preferred */
    damage(dir, IMAGES, true, 0, 0x803, 0);
    data_close(open_data(&o));
}

static void refuses_labels(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = small_set(dir, 0);
    damage(dir, LABELS, false, 0, 0x803, 0);
    refuse_data(&o, SR_FORMAT,
                LABELS ": byte 0: magic number 0x00000803 is not 0x00000801: a file "
                       "of images");
    damage(dir, LABELS, false, 4, 0, 0);
    refuse_data(&o, SR_FORMAT, "byte 4: it has 0 labels");
    damage(dir, LABELS, false, 4, 24, 31);
    refuse_data(&o, SR_FORMAT, LABELS ": byte 31: cut off after 23 of 24 labels");
    damage(dir, LABELS, false, 4, 24, 40);
    refuse_data(&o, SR_FORMAT, "byte 32: 8 bytes after the last of 24 labels");
    write_labels(dir, LABELS, 20, 0, 4);
    refuse_data(&o, SR_FORMAT, LABELS ": byte 4: 20 labels, but ");
    write_labels(dir, LABELS, 24, 7, 1);
    refuse_data(&o, SR_FORMAT, "byte 8: every label is 7");
    damage(dir, LABELS, false, 11, 0x03000188, 0); /* label 6 is 136 */
    refuse_data(&o, SR_FORMAT,
                LABELS ": byte 14: label 136 of image 6, but none of 24 images has "
                       "label 4");
    o.idx_classes = 4;
    refuse_data(&o, SR_FORMAT, LABELS ": byte 14: label 136 of image 6 is not 0..3");
    o.idx_classes = 137;
    data_close(open_data(&o));
}

static void refuses_test_files(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = small_set(dir, 1);
    write_labels(dir, TEST_LABEL, 6, 0, 4);
    refuse_data(&o, SR_FORMAT, TEST_LABEL ": byte 8: label 0 of image 0 is not 1..4");
    write_labels(dir, TEST_LABEL, 6, 2, 4);
    refuse_data(&o, SR_FORMAT, TEST_LABEL ": byte 11: label 5 of image 3 is not 1..4");
    write_labels(dir, TEST_LABEL, 5, 1, 4);
    refuse_data(&o, SR_FORMAT, TEST_LABEL ": byte 4: 5 labels, but ");
    write_labels(dir, TEST_LABEL, 6, 1, 4);
    unsigned char bytes[ROOM];
    const size_t n = make_images(bytes, 6, 0);
    put_word(bytes + 8, COLUMNS), put_word(bytes + 12, ROWS);
    write_bytes(dir, TEST, bytes, n);
    refuse_data(&o, SR_FORMAT, TEST ": byte 8: images of 3 x 5 pixels, those of ");
    put_word(bytes + 8, ROWS), put_word(bytes + 12, 2 * COLUMNS), put_word(bytes + 4, 3);
    write_bytes(dir, TEST, bytes, n), write_labels(dir, TEST_LABEL, 3, 1, 3);
    refuse_data(&o, SR_FORMAT, TEST ": byte 8: images of 5 x 6 pixels, those of ");
    o.batch_size = 0;
    refuse_data(&o, SR_USAGE, "batch-size 0 is below 1");
}

/* QMNIST's labels consist of several numbers each. */
static void refuses_wide_labels(void **state) {
    (void)state;
    static const struct {
        unsigned long count, width, label;
        size_t size;
        const char *part;
    } wrong[] = {{24, 0, 0, 12, "byte 12: 24 labels of 0 numbers do not end here"},
                 {1, 4097, 0, 12 + 4 * 4097, "1 labels of 4097 numbers do not end here"},
                 {24, 2, 0, 12 + 191, "byte 203: 24 labels of 2 numbers do not end here"},
                 {24, 2, 256, 12 + 192, "byte 12: label 256 is over 255"},
                 {24, 2, 3, 11, "magic number 0x00000c02 is not 0x00000801"}};
    const char *dir = make_folder();
    data_options o = small_set(dir, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        static unsigned char bytes[5 * ROOM];
        memset(bytes, 0, sizeof bytes);
        put_word(bytes, 0xc02), put_word(bytes + 4, wrong[i].count);
        put_word(bytes + 8, wrong[i].width), put_word(bytes + 12, wrong[i].label);
        write_bytes(dir, LABELS, bytes, wrong[i].size);
        refuse_data(&o, SR_FORMAT, wrong[i].part);
    }
}

/* Without a folder, the files are in the current one. */
static void names_the_current_folder(void **state) {
    (void)state;
    char here[4096];
    const char *dir = make_folder();
    data_options o = default_options("idx", "");
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(dir), 0);
    refuse_data(&o, SR_IO, ".: holds no 'train-images-idx3-ubyte', plain or .gz");
    write_images(dir, IMAGES, 24, 0);
    refuse_data(&o, SR_IO, ".: holds no train-labels-idx1-ubyte, plain or .gz, to train-images");
    o = default_options("cifar10", ""), refuse_data(&o, SR_IO, ".: holds none of data_batch_1.bin");
    o = default_options("cifar100", ""), refuse_data(&o, SR_IO, ".: holds no train.bin");
    assert_int_equal(chdir(here), 0);
}

static void refuses_damaged_gzip(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = small_set(dir, 0);
    char path[1024];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", dir, IMAGES ".gz");
    unsigned char *bytes = read_raw(path, &size);
    write_raw(dir, IMAGES ".gz", bytes, size / 2);
    refuse_data(&o, SR_FORMAT, IMAGES ".gz: byte ");
    refuse_data(&o, SR_FORMAT, "truncated gzip data");
    bytes[size - 6] ^= 1; /* checksum */
    write_raw(dir, IMAGES ".gz", bytes, size);
    refuse_data(&o, SR_FORMAT, "corrupt gzip data");
    write_raw(dir, IMAGES ".gz", "not gzip", 8);
    refuse_data(&o, SR_FORMAT, "byte 0: not a gzip file");
    free(bytes);
}

static void reads_the_shared_mnist(void **state) {
    (void)state;
    const char *dir = check_shared("data/mnist");
    if (!dir) skip();
    data_options o = default_options("idx", dir);
    o.valid_images = -1;
    dataset *d = open_data(&o);
    /* the digits of the last 5,000 training and of all test images */
    static const int test[10] = {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009};
    int count[10] = {0};
    for (int64_t k = 0; k < data_batches(d, SPLIT_TEST); k++) {
        batch b = get(d, SPLIT_TEST, 0, k);
        for (int i = 0; i < b.count; i++) count[b.label[i]]++;
    }
    for (int c = 0; c < 10; c++) assert_int_equal(count[c], test[c]);
    assert_non_null(strstr(data_describe(d), "55000 training and 5000 validation images, 10000 "
                                             "test images; training mean 0.1307; standard "
                                             "deviation 0.308"));
    assert_int_equal(get(d, SPLIT_TEST, 0, 0).label[0], 7);
    print_message("%s\n", data_describe(d));
    data_close(d);
}

/* A set without images has no mean. */
static void no_images(void **state) {
    (void)state;
    const data_options o = default_options("idx", "");
    image_set s;
    sr_failure why = {0};
    check_ok(image_set_create(&s, &o, (image_size){.height = 1, .width = 1, .channels = 1}, &why),
             &why);
    check_ok(image_set_divide(&s, 0, 0, &why), &why);
    assert_int_equal(image_set_finish(&s, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "no training images");
    image_set_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_images),
        cmocka_unit_test(reads_the_format),
        cmocka_unit_test(holds_out_the_last),
        cmocka_unit_test(other_names),
        cmocka_unit_test(counts_labels_and_transposes),
        cmocka_unit_test(augments_grey_images),
        cmocka_unit_test(refuses_headers),
        cmocka_unit_test(refuses_labels),
        cmocka_unit_test(refuses_test_files),
        cmocka_unit_test(refuses_wide_labels),
        cmocka_unit_test(names_the_current_folder),
        cmocka_unit_test(refuses_damaged_gzip),
        cmocka_unit_test(reads_the_shared_mnist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
