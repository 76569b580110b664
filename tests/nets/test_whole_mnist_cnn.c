/* The complete network for MNIST against its definition (docs/models.md 7) in double. Layer
 * normalization is on the hidden layer, or also after the convolutions. Compares logits, and the
 * gradient with differences at some weights. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "task/task.h"
#include "testing/check.h"

enum { HEIGHT = 20, WIDTH = 16, CHANNELS = 2, CLASSES = 7, IMAGES = 3, LARGEST = 16 * 12 * 20 };

/* [height, width, channels] of one image */
typedef struct picture {
    int height, width, channels;
    double x[LARGEST];
} picture;

static model *create(bool conv_norms) {
    model_options o = {.name = "mnist_cnn",
                       .norm = "ln",
                       .norm_eps = NAN,
                       .norm_alpha = NAN,
                       .init = "pytorch",
                       .conv_norms = conv_norms,
                       .seed = 3};
    data_shape shape = {.task = TASK_IMAGES,
                        .height = HEIGHT,
                        .width = WIDTH,
                        .channels = CHANNELS,
                        .classes = CLASSES};
    sr_failure why = {0};
    model *m = model_create(&o, &shape, &why);
    if (!m) fail_msg("%s", why.text);
    for (int i = 0; i < m->params.count; i++) { /* gains and biases with a visible effect */
        param *p = m->params.item[i];
        if (!strstr(p->name, "gamma") && !strstr(p->name, "beta")) continue;
        for (int64_t k = 0; k < p->t.count; k++)
            p->t.value[k] += (real)(0.3 * sin((double)(k + i)));
    }
    return m;
}

static tensor *weight(const model *m, const char *name, const char *part) {
    char full[2 * PARAM_NAME];
    snprintf(full, sizeof full, "%s.%s", name, part);
    param *p = params_find(&m->params, full);
    return p ? &p->t : NULL;
}

/* -- the definition */

static void convolve(const model *m, const char *name, const picture *from, picture *to) {
    const tensor *w = weight(m, name, "weight"), *b = weight(m, name, "bias");
    to->height = from->height - 4, to->width = from->width - 4, to->channels = (int)w->dim[0];
    for (int y = 0; y < to->height; y++)
        for (int x = 0; x < to->width; x++)
            for (int o = 0; o < to->channels; o++) {
                double sum = (double)b->value[o];
                for (int p = 0; p < 25; p++)
                    for (int i = 0; i < from->channels; i++)
                        sum +=
                            (double)w->value[(o * 25 + p) * from->channels + i] *
                            from->x[((y + p / 5) * from->width + x + p % 5) * from->channels + i];
                to->x[(y * to->width + x) * to->channels + o] = sum;
            }
}

/* Normalizes rows of `d` numbers by layer normalization, if the model uses it, then relu. */
static void normalize(const model *m, const char *name, double *x, int rows, int d) {
    const tensor *gamma = weight(m, name, "gamma"), *beta = weight(m, name, "beta");
    for (int r = 0; r < rows; r++, x += d) {
        double mean = 0, square = 0;
        for (int i = 0; i < d; i++) mean += x[i] / d;
        for (int i = 0; i < d; i++) square += (x[i] - mean) * (x[i] - mean) / d;
        for (int i = 0; gamma && i < d; i++)
            x[i] = (double)gamma->value[i] * (x[i] - mean) / sqrt(square + 1e-5) +
                   (double)beta->value[i];
        for (int i = 0; i < d; i++) x[i] = fmax(0, x[i]);
    }
}

static void halve(picture *p) {
    const int c = p->channels, width = p->width;
    p->height /= 2, p->width /= 2;
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++)
            for (int i = 0; i < c; i++) {
                const double *at = p->x + (2 * y * width + 2 * x) * c + i;
                p->x[(y * p->width + x) * c + i] =
                    fmax(fmax(at[0], at[c]), fmax(at[width * c], at[width * c + c]));
            }
}

static void multiply(const model *m, const char *name, const double *x, int in, double *y) {
    const tensor *w = weight(m, name, "weight"), *b = weight(m, name, "bias");
    assert_int_equal(w->dim[1], in);
    for (int o = 0; o < w->dim[0]; o++) {
        y[o] = (double)b->value[o];
        for (int i = 0; i < in; i++) y[o] += (double)w->value[o * in + i] * x[i];
    }
}

/* Cross entropy of one image. */
static double defined(const model *m, const batch *b, int n) {
    static picture x, y;
    double hidden[500], logits[CLASSES], sum = 0;
    x.height = HEIGHT, x.width = WIDTH, x.channels = CHANNELS;
    for (int i = 0; i < HEIGHT * WIDTH * CHANNELS; i++)
        x.x[i] = (double)b->image[n * HEIGHT * WIDTH * CHANNELS + i];
    for (int k = 1; k <= 2; k++) {
        const char *name = k == 1 ? "conv1" : "conv2";
        convolve(m, name, &x, &y);
        normalize(m, name, y.x, y.height * y.width, y.channels);
        halve(&y);
        x = y;
    }
    assert_true(x.height == 2 && x.width == 1 && x.channels == 50);
    multiply(m, "hidden", x.x, 100, hidden);
    normalize(m, "hidden", hidden, 1, 500);
    multiply(m, "classify", hidden, 500, logits);
    for (int v = 0; v < CLASSES; v++) sum += exp(logits[v]);
    return log(sum) - logits[b->label[n]];
}

static double defined_sum(const model *m, const batch *b) {
    double sum = 0;
    for (int n = 0; n < IMAGES; n++) sum += defined(m, b, n);
    return sum;
}

/* -- against the model */

static batch make_batch(void) {
    static real image[IMAGES * HEIGHT * WIDTH * CHANNELS];
    static int32_t label[IMAGES] = {6, 0, 3};
    rng r = rng_create(5);
    for (size_t i = 0; i < sizeof image / sizeof *image; i++) image[i] = (real)rng_normal(&r);
    return (batch){.task = TASK_IMAGES,
                   .count = IMAGES,
                   .height = HEIGHT,
                   .width = WIDTH,
                   .channels = CHANNELS,
                   .image = image,
                   .label = label,
                   .tokens = IMAGES};
}

static double computed(model *m, const batch *b) {
    sr_failure why = {0};
    tape *t = tape_create(2, &why);
    assert_non_null(t);
    tape_reset(t, rng_create(1), true, true);
    params_zero_grad(&m->params);
    pass p = {.tape = t, .batch = b, .mode = NORM_TRAIN};
    const task_options o = {.label_smoothing = 0};
    tensor *loss = task_loss(task_of(TASK_IMAGES), &o, m, &p, NULL);
    if (!loss) fail_msg("%s", tape_failure(t)->text);
    tape_backward(t, loss, 1);
    const double value = (double)loss->value[0];
    tape_free(t);
    return value;
}

/* Moves one weight up and down: the first from i on that has a gradient. */
static void check_gradient(const model *m, const batch *b, const char *name, const char *part,
                           int64_t i) {
    tensor *w = weight(m, name, part);
    if (!w) fail_msg("no %s of %s", part, name);
    while (fabs((double)w->grad[i]) < 1e-3) assert_true(++i < w->count);
    const real value = w->value[i];
    const real up = value + (real)1e-5, down = value - (real)1e-5;
    w->value[i] = up;
    double change = defined_sum(m, b);
    w->value[i] = down;
    change -= defined_sum(m, b);
    w->value[i] = value;
    const double want = change / ((double)up - (double)down), got = (double)w->grad[i];
    check_near_double(name, &got, &want, 1, 2e-3, 1e-5);
}

static void against_the_definition(void **state) {
    (void)state;
    for (int conv_norms = 0; conv_norms < 2; conv_norms++) {
        model *m = create(conv_norms);
        const batch b = make_batch();
        const double got = computed(m, &b), want = defined_sum(m, &b);
        check_near_double("loss", &got, &want, 1, 1e-5, 0);
        check_gradient(m, &b, "conv1", "weight", 7);
        check_gradient(m, &b, "conv1", "bias", 3);
        check_gradient(m, &b, "conv2", "weight", 12345);
        check_gradient(m, &b, "conv2", "bias", 20);
        check_gradient(m, &b, "hidden", "weight", 4321);
        check_gradient(m, &b, "hidden", "beta", 5);
        check_gradient(m, &b, "classify", "bias", 2);
        if (conv_norms) check_gradient(m, &b, "conv2", "gamma", 11);
        model_free(m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
