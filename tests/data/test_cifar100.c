/* CIFAR-100: tiny files written here; validation images held out from both CIFARs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data_files.h"

enum { PIXELS = 3072, MOST = 32 };

/* Record i: labels of `bytes` bytes, the last one 7 i % 100 (two bytes) or i % 10 (one byte). The
 * pixels distinguish record and position. */
static void write_records(const char *dir, const char *name, int bytes, int count, int first) {
    static unsigned char file[MOST * (PIXELS + 2)];
    unsigned char *to = file;
    assert_true(count <= MOST);
    for (int i = first; i < first + count; i++) {
        if (bytes == 2) *to++ = (unsigned char)(i % 20);
        *to++ = (unsigned char)(bytes == 2 ? 7 * i % 100 : i % 10);
        for (int p = 0; p < PIXELS; p++)
            *to++ = (unsigned char)(i * 3 + (p % 1024 ? p % 3 : 60 + p / 1024));
    }
    write_bytes(dir, name, file, (size_t)(to - file));
}

static batch get(dataset *d, data_split split, int64_t index) {
    batch b;
    sr_failure why = {0};
    check_ok(data_batch(d, split, 0, index, &b, &why), &why);
    return b;
}

static void reads_fine_labels(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_records(dir, "train.bin.gz", 2, 20, 0);
    write_records(dir, "test.bin", 2, 11, 40);
    data_options o = default_options("cifar100", dir);
    o.augment = false;
    dataset *d = open_data(&o);
    const data_shape *shape = data_get_shape(d);
    assert_true(shape->classes == 100 && shape->channels == 3 && shape->height == 32);
    assert_int_equal(get(d, SPLIT_TRAIN, 0).count, 20);
    const batch b = get(d, SPLIT_VALID, 0);
    assert_int_equal(b.count, 11);
    for (int i = 0; i < 11; i++) assert_int_equal(b.label[i], 7 * (40 + i) % 100);
    /* Only the first pixel differs from the others, in each channel. Pixels 4 and 7 have the same
     * byte, pixel 5 has 1 more. Image 3 has 3 more than image 2. */
    const real *third = b.image + 3 * PIXELS, *second = b.image + 2 * PIXELS;
    for (int i = 3; i < PIXELS; i++) check_below(second[i], second[i % 3]);
    check_equals(second[4 * 3], second[7 * 3]);
    check_differs(second[4 * 3], second[5 * 3]);
    const double image = (double)(third[4 * 3] - second[4 * 3]);
    const double place = (double)(second[5 * 3] - second[4 * 3]);
    check_within(image / place, 3, 1e-4);
    assert_false(data_has_split(d, SPLIT_TEST));
    assert_non_null(strstr(data_describe(d), "cifar100: from "));
    data_close(d);
    o.limit = 6;
    d = open_data(&o);
    assert_int_equal(get(d, SPLIT_TRAIN, 0).count, 6);
    data_close(d);
}

/* The test batch is the test split as soon as training images are held out. */
static void holds_out(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_records(dir, "train.bin", 2, 20, 0);
    write_records(dir, "test.bin", 2, 11, 40);
    write_records(dir, "data_batch_1.bin", 1, 6, 0);
    write_records(dir, "data_batch_3.bin", 1, 6, 6);
    write_records(dir, "test_batch.bin", 1, 11, 13);
    for (int k = 0; k < 2; k++) {
        data_options o = default_options(k ? "cifar10" : "cifar100", dir);
        const int count = k ? 12 : 20;
        o.valid_images = 8, o.limit = k ? 3 : 0;
        dataset *d = open_data(&o);
        const batch b = get(d, SPLIT_VALID, 0);
        assert_int_equal(b.count, 8);
        for (int i = 0; i < 8; i++)
            assert_int_equal(b.label[i], k ? (count - 8 + i) % 10 : 7 * (count - 8 + i) % 100);
        assert_int_equal(get(d, SPLIT_TRAIN, 0).count, k ? 3 : 12);
        assert_int_equal(get(d, SPLIT_TEST, 0).label[0], k ? 3 : 80);
        assert_int_equal(get(d, SPLIT_TEST, 0).count, 11);
        data_close(d);
        o.valid_images = count;
        refuse_data(&o, SR_USAGE, "valid-images");
    }
}

static void says_what_is_missing(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = default_options("cifar100", dir);
    refuse_data(&o, SR_IO, "holds no train.bin, plain or .gz");
    write_records(dir, "train.bin", 2, 3, 0);
    dataset *d = open_data(&o);
    assert_non_null(strstr(data_describe(d), "(no test.bin: nothing to validate on)"));
    data_close(d);
    o.valid_images = 1;
    d = open_data(&o);
    assert_non_null(strstr(data_describe(d), "(no test.bin: nothing to test on)"));
    data_close(d);
}

static void refuses_damaged_files(void **state) {
    (void)state;
    static unsigned char file[4 * (PIXELS + 2)];
    const char *dir = make_folder();
    data_options o = default_options("cifar100", dir);
    write_raw(dir, "train.bin", file, sizeof file - 1);
    refuse_data(
        &o, SR_FORMAT,
        "train.bin: byte 9222: record 3 has 3073 bytes instead of 3074, or not CIFAR-100 binary");
    write_raw(dir, "train.bin", file, 0);
    refuse_data(&o, SR_FORMAT, "train.bin: byte 0: holds no record");
    file[2 * (PIXELS + 2) + 1] = 100;
    write_raw(dir, "train.bin", file, sizeof file);
    refuse_data(&o, SR_FORMAT, "train.bin: byte 6149: fine label 100 of record 2 is not 0..99");
    file[PIXELS + 2] = 20;
    write_raw(dir, "train.bin", file, sizeof file);
    refuse_data(&o, SR_FORMAT, "train.bin: byte 3074: coarse label 20 of record 1 is not 0..19");
    write_raw(dir, "train.bin", file, 1);
    refuse_data(&o, SR_FORMAT, "train.bin: byte 0: record 0 has 1 bytes");
    memset(file, 0, sizeof file);
    file[0] = 19, file[1] = 99;
    write_raw(dir, "train.bin", file, sizeof file);
    data_close(open_data(&o));
    write_raw(dir, "test.bin.gz", file, sizeof file);
    refuse_data(&o, SR_FORMAT, "test.bin.gz: byte 0: not a gzip file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_fine_labels),
        cmocka_unit_test(holds_out),
        cmocka_unit_test(says_what_is_missing),
        cmocka_unit_test(refuses_damaged_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
