/* The whole ResNet20 without normalization against its definition (docs/models.md 1.1) in double: loss,
 * nll, right answers, and the gradient by differences at some weights. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "statnet/task.h"

enum { SIDE = 8, CHANNELS = 3, CLASSES = 10, IMAGES = 4, WIDEST = 64 };

/* [side, side, channels] of one image */
typedef struct picture {
    int side, channels;
    double x[SIDE * SIDE * WIDEST];
} picture;

static model *create(void) {
    model_options o = {.name = "resnet20",
                       .norm = "none",
                       .norm_eps = NAN,
                       .norm_alpha = NAN,
                       .init = "pytorch",
                       .seed = 3};
    data_shape shape = {.task = TASK_IMAGES,
                        .height = SIDE,
                        .width = SIDE,
                        .channels = CHANNELS,
                        .classes = CLASSES};
    sr_failure why = {0};
    model *m = model_create(&o, &shape, &why);
    if (!m) fail_msg("%s", why.text);
    return m;
}

static tensor *weight(const model *m, const char *name) {
    param *p = params_find(&m->params, name);
    if (!p) fail_msg("no parameter %s", name);
    return &p->t;
}

static const tensor *conv_weight(const model *m, int stage, int block, int conv) {
    char name[PARAM_NAME];
    snprintf(name, sizeof name, "stage%d.%d.conv%d.weight", stage, block, conv);
    return weight(m, name);
}

/* -- the definition */

/* 3x3, one row and column of zeros around. w [out, 3, 3, in] */
static void convolve(const picture *from, const tensor *w, int stride, picture *to) {
    int in = from->channels;
    to->side = from->side / stride;
    to->channels = (int)w->dim[0];
    for (int p = 0; p < to->side * to->side; p++)
        for (int c = 0; c < to->channels; c++) {
            double sum = 0;
            for (int k = 0; k < 9; k++) {
                int y = p / to->side * stride + k / 3 - 1, x = p % to->side * stride + k % 3 - 1;
                if (y < 0 || x < 0 || y >= from->side || x >= from->side) continue;
                for (int i = 0; i < in; i++)
                    sum += (double)w->value[(c * 9 + k) * in + i] *
                           from->x[(y * from->side + x) * in + i];
            }
            to->x[p * to->channels + c] = sum;
        }
}

static void rectify(picture *p) {
    for (int i = 0; i < p->side * p->side * p->channels; i++) p->x[i] = fmax(0, p->x[i]);
}

/* Adds every stride-th pixel of `from`; new channels get nothing, half in front and half behind. */
static void add_shortcut(const picture *from, int stride, picture *to) {
    int front = (to->channels - from->channels) / 2;
    for (int p = 0; p < to->side * to->side; p++) {
        int y = p / to->side * stride, x = p % to->side * stride;
        for (int c = 0; c < from->channels; c++)
            to->x[p * to->channels + front + c] +=
                from->x[(y * from->side + x) * from->channels + c];
    }
}

static void pass_block(const model *m, int stage, int block, picture *x) {
    static picture h, y;
    int stride = stage > 1 && block == 0 ? 2 : 1;
    convolve(x, conv_weight(m, stage, block, 1), stride, &h);
    rectify(&h);
    convolve(&h, conv_weight(m, stage, block, 2), 1, &y);
    add_shortcut(x, stride, &y);
    rectify(&y);
    *x = y;
}

static void classify(const model *m, const picture *x, double logits[CLASSES]) {
    const tensor *w = weight(m, "classify.weight"), *b = weight(m, "classify.bias");
    int places = x->side * x->side;
    for (int v = 0; v < CLASSES; v++) {
        logits[v] = (double)b->value[v];
        for (int i = 0; i < places * WIDEST; i++)
            logits[v] += (double)w->value[v * WIDEST + i % WIDEST] * x->x[i] / places;
    }
}

static void add_loss(const double *logits, int label, double smoothing, smoothing_form form,
                     task_sums *r) {
    double sum = 0, others = 0;
    int best = 0;
    for (int v = 0; v < CLASSES; v++) {
        sum += exp(logits[v]);
        if (logits[v] > logits[best]) best = v;
    }
    double nll = log(sum) - logits[label];
    for (int v = 0; v < CLASSES; v++)
        if (form == SMOOTHING_ALL || v != label) others += log(sum) - logits[v];
    r->loss += (1 - smoothing) * nll +
               smoothing * others / (form == SMOOTHING_ALL ? CLASSES : CLASSES - 1);
    r->nll += nll;
    r->correct += best == label;
}

static task_sums defined(const model *m, const batch *b, double smoothing, smoothing_form form) {
    static picture x, y;
    task_sums r = {0};
    for (int n = 0; n < IMAGES; n++) {
        double logits[CLASSES];
        x.side = SIDE, x.channels = CHANNELS;
        for (int i = 0; i < SIDE * SIDE * CHANNELS; i++)
            x.x[i] = (double)b->image[n * SIDE * SIDE * CHANNELS + i];
        convolve(&x, weight(m, "stem.weight"), 1, &y);
        rectify(&y);
        for (int stage = 1; stage <= 3; stage++)
            for (int block = 0; block < 3; block++) pass_block(m, stage, block, &y);
        classify(m, &y, logits);
        add_loss(logits, b->label[n], smoothing, form, &r);
    }
    return r;
}

/* -- against the model */

static batch make_batch(void) {
    static real image[IMAGES * SIDE * SIDE * CHANNELS];
    static int32_t label[IMAGES];
    rng r = rng_create(5);
    for (size_t i = 0; i < sizeof image / sizeof *image; i++) image[i] = (real)rng_normal(&r);
    for (int i = 0; i < IMAGES; i++) label[i] = (3 * i + 1) % CLASSES;
    return (batch){.task = TASK_IMAGES,
                   .count = IMAGES,
                   .height = SIDE,
                   .width = SIDE,
                   .channels = CHANNELS,
                   .image = image,
                   .label = label,
                   .tokens = IMAGES};
}

static task_sums computed(model *m, const task_options *o, const batch *b) {
    sr_failure why = {0};
    task_sums r = {0};
    tape *t = tape_create(2, &why);
    assert_non_null(t);
    tape_reset(t, rng_create(1), true, true);
    params_zero_grad(&m->params);
    pass p = {.tape = t, .batch = b, .mode = NORM_TRAIN};
    tape_backward(t, task_loss(task_of(TASK_IMAGES), o, m, &p, &r), 1);
    if (tape_failure(t)) fail_msg("%s", tape_failure(t)->text);
    tape_free(t);
    return r;
}

/* One weight moved up and down. */
static void check_gradient(model *m, const batch *b, tensor *w, int64_t i, double smoothing) {
    const real value = w->value[i];
    const real up = value + (real)1e-5, down = value - (real)1e-5;
    w->value[i] = up;
    double change = defined(m, b, smoothing, SMOOTHING_ALL).loss;
    w->value[i] = down;
    change -= defined(m, b, smoothing, SMOOTHING_ALL).loss;
    w->value[i] = value;
    double want = change / ((double)up - (double)down), got = (double)w->grad[i];
    check_near_double("gradient", &got, &want, 1, 1e-3, 1e-4);
}

static void against_the_definition(void **state) {
    (void)state;
    const double smoothing[] = {0, 0.2, 0.2};
    const smoothing_form form[] = {SMOOTHING_ALL, SMOOTHING_ALL, SMOOTHING_OTHERS};
    const batch b = make_batch();
    for (int i = 0; i < 3; i++) {
        const task_options o = {.label_smoothing = smoothing[i], .smoothing = form[i]};
        model *m = create();
        for (int64_t k = 0; k < 10 * WIDEST; k++) /* logits that differ */
            weight(m, "classify.weight")->value[k] *= 50;
        task_sums got = computed(m, &o, &b), want = defined(m, &b, smoothing[i], form[i]);
        check_near_double("loss", &got.loss, &want.loss, 1, 1e-5, 0);
        check_near_double("nll", &got.nll, &want.nll, 1, 1e-5, 0);
        assert_int_equal(got.correct, want.correct);
        assert_int_equal(got.tokens, IMAGES);
        if (form[i] == SMOOTHING_ALL) {
            check_gradient(m, &b, weight(m, "stem.weight"), 100, smoothing[i]);
            check_gradient(m, &b, weight(m, "stage2.0.conv1.weight"), 9, smoothing[i]);
            check_gradient(m, &b, weight(m, "stage3.2.conv2.weight"), 9, smoothing[i]);
        }
        model_free(m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
