/* CIFAR-10: tiny files written here, and the shared batches if present. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data_files.h"

enum { RECORD = 3073, PLANE = 1024 };

/* count records: label i % 10, bytes that distinguish channel, row and column. */
static unsigned char *make_records(int count, int first) {
    unsigned char *bytes = malloc((size_t)count * RECORD);
    assert_non_null(bytes);
    for (int i = 0; i < count; i++) {
        unsigned char *r = bytes + i * RECORD;
        r[0] = (unsigned char)((i + first) % 10);
        for (int c = 0; c < 3; c++)
            for (int p = 0; p < PLANE; p++)
                r[1 + c * PLANE + p] = (unsigned char)((i + first) * 31 + c * 83 + p * 7 + p / 32);
    }
    return bytes;
}

static void write_records(const char *dir, const char *name, int count, int first) {
    unsigned char *bytes = make_records(count, first);
    write_bytes(dir, name, bytes, (size_t)count * RECORD);
    free(bytes);
}

static batch get(dataset *d, data_split split, int64_t epoch, int64_t index) {
    batch b;
    sr_failure why = {0};
    check_ok(data_batch(d, split, epoch, index, &b, &why), &why);
    return b;
}

static void reads_any_subset(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_records(dir, "data_batch_2.bin.gz", 7, 0);
    write_records(dir, "data_batch_5.bin", 4, 7);
    data_options o = default_options("cifar10", dir);
    dataset *d = open_data(&o);
    assert_int_equal(data_batches(d, SPLIT_TRAIN), 1);
    assert_int_equal(get(d, SPLIT_TRAIN, 0, 0).count, 11);
    assert_false(data_has_split(d, SPLIT_VALID));
    assert_false(data_has_split(d, SPLIT_TEST));
    assert_non_null(strstr(data_describe(d), "data_batch_2.bin.gz"));
    assert_non_null(strstr(data_describe(d), "no test_batch.bin"));
    assert_true(isnan(data_unknown_share(d, SPLIT_TRAIN)) && isnan(data_entropy(d)));
    data_close(d);
    write_records(dir, "test_batch.bin", 3, 0);
    o.limit = 9, o.batch_size = 4;
    d = open_data(&o);
    const data_shape *shape = data_get_shape(d);
    assert_int_equal(shape->height * shape->width * shape->channels, 3 * PLANE);
    assert_int_equal(shape->classes, 10);
    assert_int_equal(data_batches(d, SPLIT_TRAIN), 3);
    assert_int_equal(get(d, SPLIT_TRAIN, 0, 2).count, 1);
    assert_int_equal(get(d, SPLIT_VALID, 0, 0).count, 3);
    assert_non_null(strstr(data_describe(d), "9 training and 3 validation"));
    data_close(d);
}

/* Mean and standard deviation of a channel over the first `count` records, by a plain loop. */
static void measure(const unsigned char *bytes, int count, int c, double *mean, double *deviation) {
    double sum = 0, squares = 0, n = (double)count * PLANE;
    for (int i = 0; i < count; i++)
        for (int p = 0; p < PLANE; p++) sum += bytes[i * RECORD + 1 + c * PLANE + p] / 255.0;
    *mean = sum / n;
    for (int i = 0; i < count; i++)
        for (int p = 0; p < PLANE; p++)
            squares += pow(bytes[i * RECORD + 1 + c * PLANE + p] / 255.0 - *mean, 2);
    *deviation = sqrt(squares / n);
}

static void normalizes_channels_last(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_records(dir, "data_batch_1.bin", 6, 0);
    write_records(dir, "test_batch.bin", 5, 3);
    data_options o = default_options("cifar10", dir);
    dataset *d = open_data(&o);
    unsigned char *train = make_records(6, 0), *test = make_records(5, 3);
    batch b = get(d, SPLIT_VALID, 0, 0);
    double mean[3], deviation[3];
    for (int c = 0; c < 3; c++) measure(train, 6, c, &mean[c], &deviation[c]);
    double *want = malloc(5 * 3072 * sizeof *want), *got = malloc(5 * 3072 * sizeof *got);
    assert_true(want && got);
    for (int i = 0; i < 5 * 3072; i++) {
        int c = i % 3, p = i / 3 % PLANE;
        want[i] = (test[i / 3072 * RECORD + 1 + c * PLANE + p] / 255.0 - mean[c]) / deviation[c];
        got[i] = (double)b.image[i];
    }
    check_near_double("pixels", got, want, 5 * 3072, 1e-6, 1e-6);
    for (int i = 0; i < 5; i++) assert_int_equal(b.label[i], test[i * RECORD]);
    free(want), free(got), free(train), free(test);
    data_close(d);
}

static real value_at(const batch *b, int i, int y, int x, int c) {
    return b->image[((i * 32 + y) * 32 + x) * 3 + c];
}

/* Is image i of the augmented batch the plain picture moved by (dy, dx) and possibly mirrored?
 * `black`, the value of a zero pixel, must surround it. */
static bool is_moved(const batch *a, int i, const real *plain, int dy, int dx, bool mirror,
                     const double *black) {
    for (int y = 0; y < 32; y++)
        for (int x = 0; x < 32; x++) {
            int v = y + dy, u = (mirror ? 31 - x : x) + dx;
            bool inside = v >= 0 && v < 32 && u >= 0 && u < 32;
            for (int c = 0; c < 3; c++) {
                double want = inside ? (double)plain[(v * 32 + u) * 3 + c] : black[c];
                if (fabs((double)value_at(a, i, y, x, c) - want) > 1e-6) return false;
            }
        }
    return true;
}

/* The only (dy, dx, mirror) that gives image i, as a number 0..161; -1: none. */
static int find_move(const batch *a, int i, const real *plain, const double *black) {
    int found = -1;
    for (int dy = -4; dy <= 4; dy++)
        for (int dx = -4; dx <= 4; dx++)
            for (int m = 0; m < 2; m++)
                if (is_moved(a, i, plain, dy, dx, m, black)) {
                    assert_int_equal(found, -1);
                    found = ((dy + 4) * 9 + dx + 4) * 2 + m;
                }
    return found;
}

static void augments_by_crop_and_mirror(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_records(dir, "data_batch_1.bin", 10, 0);
    write_records(dir, "test_batch.bin", 10, 0); /* the same pictures, unchanged */
    data_options o = default_options("cifar10", dir);
    dataset *d = open_data(&o), *plain = open_data(&o);
    unsigned char *bytes = make_records(10, 0);
    double black[3];
    for (int c = 0; c < 3; c++) {
        double mean, deviation;
        measure(bytes, 10, c, &mean, &deviation);
        black[c] = -mean / deviation;
    }
    batch want = get(plain, SPLIT_VALID, 0, 0);
    int seen[162] = {0}, kinds = 0, mirrored = 0;
    for (int epoch = 0; epoch < 20; epoch++) {
        batch a = get(d, SPLIT_TRAIN, epoch, 0);
        for (int i = 0; i < 10; i++) {
            int move = find_move(&a, i, want.image + a.label[i] * 3072, black);
            assert_true(move >= 0);
            kinds += seen[move]++ == 0, mirrored += move % 2;
        }
    }
    assert_true(kinds > 80 && kinds <= 162);
    assert_in_range(mirrored, 70, 130);
    free(bytes);
    data_close(d), data_close(plain);
}

/* The pictures of an epoch by their labels: one number from all bytes of each. */
static void draw_epoch(const data_options *o, int64_t epoch, uint64_t picture[10]) {
    dataset *d = open_data(o);
    for (int64_t k = 0; k < data_batches(d, SPLIT_TRAIN); k++) {
        batch b = get(d, SPLIT_TRAIN, epoch, k);
        for (int i = 0; i < b.count; i++) {
            batch one = b;
            one.image = b.image + (int64_t)i * 3072, one.label = b.label + i;
            one.count = one.tokens = 1;
            picture[b.label[i]] = digest_batch(&one);
        }
    }
    data_close(d);
}

/* An image's draw depends on (seed, epoch, image), not on its position in a batch. */
static void augments_by_seed_epoch_image(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_records(dir, "data_batch_1.bin", 10, 0);
    data_options o = default_options("cifar10", dir), small = o, seeded = o;
    uint64_t a[10], b[10], c[10], d[10];
    int of_epoch = 0, of_seed = 0;
    small.batch_size = 3;
    seeded.seed = 2;
    draw_epoch(&o, 0, a), draw_epoch(&small, 0, b);
    draw_epoch(&o, 1, c), draw_epoch(&seeded, 0, d);
    for (int i = 0; i < 10; i++) {
        assert_true(a[i] == b[i]);
        of_epoch += a[i] != c[i], of_seed += a[i] != d[i];
    }
    assert_true(of_epoch > 5 && of_seed > 5);
}

static void visits_every_image_once(void **state) {
    (void)state;
    const char *dir = make_folder();
    unsigned char *bytes = make_records(50, 0);
    for (int i = 0; i < 50; i++) memset(bytes + i * RECORD + 1, i * 5, 3072);
    write_bytes(dir, "data_batch_1.bin", bytes, 50 * RECORD);
    data_options o = default_options("cifar10", dir);
    o.augment = false, o.batch_size = 8;
    dataset *d = open_data(&o);
    uint64_t orders[2] = {0};
    for (int epoch = 0; epoch < 2; epoch++) {
        real seen[50];
        int count = 0;
        for (int64_t k = 0; k < data_batches(d, SPLIT_TRAIN); k++) {
            batch b = get(d, SPLIT_TRAIN, epoch, k);
            assert_int_equal(b.tokens, b.count);
            for (int i = 0; i < b.count; i++) seen[count++] = b.image[i * 3072];
            orders[epoch] = orders[epoch] * 31 + digest_batch(&b);
        }
        assert_int_equal(count, 50);
        for (int i = 0; i < 50; i++)
            for (int j = 0; j < i; j++) check_differs(seen[i], seen[j]);
    }
    assert_true(orders[0] != orders[1]);
    free(bytes);
    data_close(d);
}

static void is_a_pure_function(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_records(dir, "data_batch_1.bin", 40, 0);
    write_records(dir, "test_batch.bin", 20, 0);
    data_options o = default_options("cifar10", dir);
    o.batch_size = 16;
    check_pure(&o, SPLIT_TRAIN);
    check_pure(&o, SPLIT_VALID);
    dataset *d = open_data(&o);
    o.seed = 2;
    dataset *other = open_data(&o);
    batch a = get(d, SPLIT_TRAIN, 0, 0), b = get(other, SPLIT_TRAIN, 0, 0);
    assert_true(digest_batch(&a) != digest_batch(&b));
    data_close(d), data_close(other);
}

static void refuses_damaged_files(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = default_options("cifar10", dir);
    unsigned char *bytes = make_records(10, 0);
    static const size_t sizes[] = {1, 3072, 3074, 6145, 30729, 30000};
    for (int i = 0; i < 6; i++) {
        char part[128];
        write_raw(dir, "data_batch_3.bin", bytes, sizes[i]);
        snprintf(part, sizeof part, "data_batch_3.bin: byte %zu: record %zu has %zu bytes",
                 sizes[i] / RECORD * RECORD, sizes[i] / RECORD, sizes[i] % RECORD);
        refuse_data(&o, SR_FORMAT, part);
    }
    write_raw(dir, "data_batch_3.bin", bytes, 0);
    refuse_data(&o, SR_FORMAT, "holds no record");
    bytes[2 * RECORD] = 137;
    write_raw(dir, "data_batch_3.bin", bytes, 5 * RECORD);
    refuse_data(&o, SR_FORMAT, "data_batch_3.bin: byte 6146: label 137 of record 2");
    bytes[2 * RECORD] = 2;
    write_raw(dir, "data_batch_3.bin", bytes, 5 * RECORD);
    write_raw(dir, "test_batch.bin.gz", bytes, RECORD);
    refuse_data(&o, SR_FORMAT, "test_batch.bin.gz: byte 0: not a gzip file");
    free(bytes);
}

static void refuses_missing_data(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = default_options("cifar10", dir);
    refuse_data(&o, SR_IO, "holds none of data_batch_1.bin .. data_batch_5.bin");
    write_records(dir, "test_batch.bin", 2, 0);
    refuse_data(&o, SR_IO, "holds none of");
    write_records(dir, "data_batch_1.bin", 2, 0);
    o.batch_size = 0;
    refuse_data(&o, SR_USAGE, "batch-size 0");
    o.batch_size = 1, o.limit = -1;
    refuse_data(&o, SR_USAGE, "limit -1");
    o = default_options("cifar11", dir);
    refuse_data(&o, SR_USAGE, "no data set is called 'cifar11'");
    o = default_options("cifar10", "/nonexistent");
    refuse_data(&o, SR_IO, "/nonexistent");
}

static void refuses_a_batch_past_the_end(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_records(dir, "data_batch_1.bin", 2, 0);
    data_options o = default_options("cifar10", dir);
    dataset *d = open_data(&o);
    batch b;
    assert_int_equal(data_batch(d, SPLIT_TRAIN, 0, 1, &b, NULL), SR_USAGE);
    assert_int_equal(data_batch(d, SPLIT_TRAIN, 0, -1, &b, NULL), SR_USAGE);
    assert_int_equal(data_batch(d, SPLIT_TEST, 0, 0, &b, NULL), SR_USAGE);
    data_close(d);
}

static void reads_the_shared_batches(void **state) {
    (void)state;
    const char *dir = check_shared("data/cifar10");
    if (!dir) skip();
    static const int want[10] = {1989, 1981, 2042, 2011, 2009, 1925, 2038, 2027, 2012, 1966};
    data_options o = default_options("cifar10", dir);
    dataset *d = open_data(&o);
    int count[2][10] = {{0}};
    for (int s = 0; s < 2; s++)
        for (int64_t k = 0; k < data_batches(d, (data_split)s); k++) {
            batch b = get(d, (data_split)s, 0, k);
            for (int i = 0; i < b.count; i++) count[s][b.label[i]]++;
        }
    for (int c = 0; c < 10; c++) {
        assert_int_equal(count[SPLIT_TRAIN][c], want[c]);
        assert_int_equal(count[SPLIT_VALID][c], 1000);
    }
    print_message("%s\n", data_describe(d));
    assert_non_null(strstr(data_describe(d), "training mean 0.49"));
    data_close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_any_subset),
        cmocka_unit_test(normalizes_channels_last),
        cmocka_unit_test(augments_by_crop_and_mirror),
        cmocka_unit_test(augments_by_seed_epoch_image),
        cmocka_unit_test(visits_every_image_once),
        cmocka_unit_test(is_a_pure_function),
        cmocka_unit_test(refuses_damaged_files),
        cmocka_unit_test(refuses_missing_data),
        cmocka_unit_test(refuses_a_batch_past_the_end),
        cmocka_unit_test(reads_the_shared_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
