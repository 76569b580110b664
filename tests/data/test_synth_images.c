/* Generated images: reproducible, balanced; linear classifiers and nearest neighbours fail. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data_files.h"

enum { SIZE = 3072, TRAIN = 2000, VALID = 1000, CLASSES = 10 };

typedef struct pictures {
    float *x; /* [count, SIZE] */
    int *label;
    int count;
} pictures;

static pictures read_split(dataset *d, data_split split, int most) {
    pictures p = {malloc((size_t)most * SIZE * sizeof(float)), malloc((size_t)most * sizeof(int)),
                  0};
    assert_true(p.x && p.label);
    for (int64_t k = 0; k < data_batches(d, split); k++) {
        batch b;
        sr_failure why = {0};
        check_ok(data_batch(d, split, 0, k, &b, &why), &why);
        for (int i = 0; i < b.count && p.count < most; i++, p.count++) {
            p.label[p.count] = b.label[i];
            for (int j = 0; j < SIZE; j++) p.x[p.count * SIZE + j] = (float)b.image[i * SIZE + j];
        }
    }
    return p;
}

static void free_pictures(pictures *p) {
    free(p->x), free(p->label);
}

static data_options plain_options(int64_t limit) {
    data_options o = default_options("synth-images", "");
    o.limit = limit, o.augment = false;
    return o;
}

static void has_its_default_sizes(void **state) {
    (void)state;
    data_options o = plain_options(0);
    dataset *d = open_data(&o);
    pictures p = read_split(d, SPLIT_TRAIN, 10000);
    int seen[CLASSES] = {0};
    for (int i = 0; i < p.count; i++) seen[p.label[i]]++;
    assert_int_equal(p.count, 6400);
    for (int c = 0; c < CLASSES; c++) assert_in_range(seen[c], 500, 800);
    assert_int_equal(data_batches(d, SPLIT_VALID), 8);
    assert_false(data_has_split(d, SPLIT_TEST));
    assert_int_equal(data_get_shape(d)->classes, CLASSES);
    free_pictures(&p);
    data_close(d);
}

static void is_a_pure_function(void **state) {
    (void)state;
    data_options o = plain_options(300);
    o.augment = true;
    check_pure(&o, SPLIT_TRAIN);
    check_pure(&o, SPLIT_VALID);
}

/* The bytes of picture i up to an affine map of each channel: equal if and only if the pictures
 * are. */
static bool same_picture(const float *a, const float *b) {
    for (int c = 0; c < 3; c++) {
        double scale = 0, from = (double)a[c], to = (double)b[c];
        for (int j = c + 3; j < SIZE; j += 3)
            if (scale == 0 && (double)a[j] != from)
                scale = ((double)b[j] - to) / ((double)a[j] - from);
        for (int j = c; j < SIZE; j += 3)
            if (fabs(to + scale * ((double)a[j] - from) - (double)b[j]) > 1e-2) return false;
    }
    return true;
}

static void fewer_are_the_first_of_more(void **state) {
    (void)state;
    data_options few = plain_options(5), more = plain_options(40);
    dataset *a = open_data(&few), *b = open_data(&more);
    pictures p = read_split(a, SPLIT_TRAIN, 5), q = read_split(b, SPLIT_TRAIN, 40);
    for (int i = 0; i < 5; i++) {
        int found = 0;
        for (int j = 0; j < 40; j++) found += same_picture(p.x + i * SIZE, q.x + j * SIZE);
        assert_int_equal(found, 1);
    }
    free_pictures(&p), free_pictures(&q);
    data_close(a), data_close(b);
}

static void depends_on_the_seed(void **state) {
    (void)state;
    data_options o = plain_options(10);
    dataset *a = open_data(&o);
    o.seed = 2;
    dataset *b = open_data(&o);
    pictures p = read_split(a, SPLIT_VALID, 10), q = read_split(b, SPLIT_VALID, 10);
    assert_memory_not_equal(p.x, q.x, SIZE * sizeof(float));
    free_pictures(&p), free_pictures(&q);
    data_close(a), data_close(b);
}

/* weight [CLASSES, SIZE + 1]; class scores of one picture. */
static void score(const float *weight, const float *x, double out[CLASSES]) {
    for (int c = 0; c < CLASSES; c++) {
        const float *w = weight + c * (SIZE + 1);
        float sum = w[SIZE];
        for (int j = 0; j < SIZE; j++) sum += w[j] * x[j];
        out[c] = (double)sum;
    }
}

static int best_of(const double s[CLASSES]) {
    int best = 0;
    for (int c = 1; c < CLASSES; c++)
        if (s[c] > s[best]) best = c;
    return best;
}

static double linear_accuracy(const float *weight, const pictures *p) {
    int right = 0;
    for (int i = 0; i < p->count; i++) {
        double s[CLASSES];
        score(weight, p->x + i * SIZE, s);
        right += best_of(s) == p->label[i];
    }
    return (double)right / p->count;
}

/* Softmax regression by stochastic gradient descent with weight decay. Returns the best validation
 * accuracy over the epochs, which favours the linear classifier. *fitted: the final training
 * accuracy. */
static double train_linear(const pictures *train, const pictures *valid, int epochs,
                           double *fitted) {
    float *weight = calloc(CLASSES * (SIZE + 1), sizeof *weight);
    double best = 0;
    assert_non_null(weight);
    for (int e = 0; e < epochs; e++) {
        float rate = 1e-3f / (float)(1 + e);
        for (int i = 0; i < train->count; i++) {
            const float *x = train->x + i * SIZE;
            double s[CLASSES], total = 0, top;
            score(weight, x, s);
            top = s[best_of(s)];
            for (int c = 0; c < CLASSES; c++) total += s[c] = exp(s[c] - top);
            for (int c = 0; c < CLASSES; c++) {
                float g = rate * (float)(s[c] / total - (c == train->label[i]));
                float *w = weight + c * (SIZE + 1);
                for (int j = 0; j < SIZE; j++) w[j] -= g * x[j];
                w[SIZE] -= g;
            }
        }
        best = fmax(best, linear_accuracy(weight, valid));
    }
    *fitted = linear_accuracy(weight, train);
    free(weight);
    return best;
}

static double neighbour_accuracy(const pictures *train, const pictures *valid) {
    int right = 0;
    for (int i = 0; i < valid->count; i++) {
        float nearest = INFINITY;
        int label = -1;
        for (int k = 0; k < train->count; k++) {
            const float *a = valid->x + i * SIZE, *b = train->x + k * SIZE;
            float distance = 0;
            for (int j = 0; j < SIZE && distance < nearest; j += 64)
                for (int n = j; n < j + 64; n++) distance += (a[n] - b[n]) * (a[n] - b[n]);
            if (distance < nearest) nearest = distance, label = train->label[k];
        }
        right += label == valid->label[i];
    }
    return (double)right / valid->count;
}

/* Chance is 0.1; a ResNet20 reaches 0.9 and more within a few epochs. */
static void is_not_linear(void **state) {
    (void)state;
    data_options o = plain_options(TRAIN);
    dataset *d = open_data(&o);
    pictures train = read_split(d, SPLIT_TRAIN, TRAIN), valid = read_split(d, SPLIT_VALID, VALID);
    double fitted, linear = train_linear(&train, &valid, 6, &fitted);
    print_message("linear classifier on pixels: %.3f (training %.3f)\n", linear, fitted);
    check_above(fitted, 0.6); /* it does fit its training data */
    check_below(linear, 0.25);
    free_pictures(&train), free_pictures(&valid);
    data_close(d);
}

static void is_not_a_matter_of_neighbours(void **state) {
    (void)state;
    data_options o = plain_options(TRAIN);
    dataset *d = open_data(&o);
    pictures train = read_split(d, SPLIT_TRAIN, TRAIN), valid = read_split(d, SPLIT_VALID, 300);
    double neighbour = neighbour_accuracy(&train, &valid);
    print_message("nearest neighbour: %.3f\n", neighbour);
    check_below(neighbour, 0.25);
    free_pictures(&train), free_pictures(&valid);
    data_close(d);
}

/* Energy of differences between pixels `step` apart, in the rows and in the columns. */
static double stripe_ratio(const float *x) {
    double across = 0, down = 0;
    for (int y = 0; y < 31; y++)
        for (int i = 0; i < 31 * 3; i++) {
            double here = (double)x[y * 96 + i];
            across += pow((double)x[y * 96 + i + 3] - here, 2);
            down += pow((double)x[(y + 1) * 96 + i] - here, 2);
        }
    return across / down;
}

/* One local feature, quadratic in the pixels, gives half of the label: convolutions can compute
 * it. */
static void is_told_by_local_contrast(void **state) {
    (void)state;
    data_options o = plain_options(1);
    dataset *d = open_data(&o);
    pictures p = read_split(d, SPLIT_VALID, VALID);
    int right = 0;
    for (int i = 0; i < p.count; i++) right += (stripe_ratio(p.x + i * SIZE) > 1) == p.label[i] % 2;
    print_message("direction of stripes from differences of neighbours: %.3f\n",
                  (double)right / p.count);
    check_above(right, 0.9 * p.count);
    free_pictures(&p);
    data_close(d);
}

static void refuses_impossible_sizes(void **state) {
    (void)state;
    data_options o = plain_options(INT64_MAX / 100);
    refuse_data(&o, SR_MEMORY, "out of memory for");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_its_default_sizes),
        cmocka_unit_test(is_a_pure_function),
        cmocka_unit_test(fewer_are_the_first_of_more),
        cmocka_unit_test(depends_on_the_seed),
        cmocka_unit_test(is_not_linear),
        cmocka_unit_test(is_not_a_matter_of_neighbours),
        cmocka_unit_test(is_told_by_local_contrast),
        cmocka_unit_test(refuses_impossible_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
