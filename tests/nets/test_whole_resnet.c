/* The complete ResNet20 and ResNet18 (mini) without normalization against their definitions
 * (docs/models.md 1.1, 1.2) in double. Compares loss, nll, correct answers, and the gradient with
 * differences at some weights. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/loss/loss_ops.h"
#include "task/task.h"
#include "testing/check.h"

enum { SIDE = 8, CHANNELS = 3, CLASSES = 10, IMAGES = 4, WIDEST = 128 };

/* [side, side, channels] of one image */
typedef struct picture {
    int side, channels;
    double x[SIDE * SIDE * WIDEST];
} picture;

/* a, b, c: weights whose gradients are checked. */
typedef struct net {
    const char *name, *preset;
    int stages, blocks;
    const char *a, *b, *c;
} net;

static const net nets[] = {
    {"resnet20", "", 3, 3, "stem.weight", "stage2.0.conv1.weight", "stage3.2.conv2.weight"},
    {"resnet18", "mini", 4, 2, "stage1.1.conv1.weight", "stage2.0.shortcut.weight",
     "stage4.0.shortcut.weight"},
};

static model *create(const net *n, const char *conv) {
    model_options o = {
        .norm = "none", .norm_eps = NAN, .norm_alpha = NAN, .init = "pytorch", .seed = 3};
    strcpy(o.name, n->name);
    strcpy(o.preset, n->preset);
    strcpy(o.conv, conv);
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

/* k x k, k/2 rows and columns of zeros around. w [out, k, k, in] */
static void convolve(const picture *from, const tensor *w, int stride, picture *to) {
    const int in = from->channels, k = (int)w->dim[1];
    to->side = from->side / stride;
    to->channels = (int)w->dim[0];
    for (int p = 0; p < to->side * to->side; p++)
        for (int c = 0; c < to->channels; c++) {
            double sum = 0;
            for (int at = 0; at < k * k; at++) {
                int y = p / to->side * stride + at / k - k / 2;
                int x = p % to->side * stride + at % k - k / 2;
                if (y < 0 || x < 0 || y >= from->side || x >= from->side) continue;
                for (int i = 0; i < in; i++)
                    sum += (double)w->value[(c * k * k + at) * in + i] *
                           from->x[(y * from->side + x) * in + i];
            }
            to->x[p * to->channels + c] = sum;
        }
}

static void rectify(picture *p) {
    for (int i = 0; i < p->side * p->side * p->channels; i++) p->x[i] = fmax(0, p->x[i]);
}

/* Adds every stride-th pixel of `from`; half of the new channels are before its channels, half
 * after. */
static void add_shortcut(const picture *from, int stride, picture *to) {
    int front = (to->channels - from->channels) / 2;
    for (int p = 0; p < to->side * to->side; p++) {
        int y = p / to->side * stride, x = p % to->side * stride;
        for (int c = 0; c < from->channels; c++)
            to->x[p * to->channels + front + c] +=
                from->x[(y * from->side + x) * from->channels + c];
    }
}

/* Option B of the shortcut. */
static void add_projection(const picture *from, const tensor *w, int stride, picture *to) {
    static picture around;
    convolve(from, w, stride, &around);
    assert_true(around.side == to->side && around.channels == to->channels);
    for (int i = 0; i < to->side * to->side * to->channels; i++) to->x[i] += around.x[i];
}

static void pass_block(const model *m, int stage, int block, picture *x) {
    static picture h, y;
    int stride = stage > 1 && block == 0 ? 2 : 1;
    convolve(x, conv_weight(m, stage, block, 1), stride, &h);
    rectify(&h);
    convolve(&h, conv_weight(m, stage, block, 2), 1, &y);
    char name[PARAM_NAME];
    snprintf(name, sizeof name, "stage%d.%d.shortcut.weight", stage, block);
    if (params_find(&m->params, name))
        add_projection(x, weight(m, name), stride, &y);
    else
        add_shortcut(x, stride, &y);
    rectify(&y);
    *x = y;
}

static void classify(const model *m, const picture *x, double logits[CLASSES]) {
    const tensor *w = weight(m, "classify.weight"), *b = weight(m, "classify.bias");
    const int places = x->side * x->side, width = x->channels;
    for (int v = 0; v < CLASSES; v++) {
        logits[v] = (double)b->value[v];
        for (int i = 0; i < places * width; i++)
            logits[v] += (double)w->value[v * width + i % width] * x->x[i] / places;
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

static task_sums defined(const net *of, const model *m, const batch *b, double smoothing,
                         smoothing_form form) {
    static picture x, y;
    task_sums r = {0};
    for (int n = 0; n < IMAGES; n++) {
        double logits[CLASSES];
        x.side = SIDE, x.channels = CHANNELS;
        for (int i = 0; i < SIDE * SIDE * CHANNELS; i++)
            x.x[i] = (double)b->image[n * SIDE * SIDE * CHANNELS + i];
        convolve(&x, weight(m, "stem.weight"), 1, &y);
        rectify(&y);
        for (int stage = 1; stage <= of->stages; stage++)
            for (int block = 0; block < of->blocks; block++) pass_block(m, stage, block, &y);
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

/* Moves one weight up and down. */
static void check_gradient(const net *of, model *m, const batch *b, tensor *w, int64_t i,
                           double smoothing) {
    const real value = w->value[i];
    const real up = value + (real)1e-5, down = value - (real)1e-5;
    w->value[i] = up;
    double change = defined(of, m, b, smoothing, SMOOTHING_ALL).loss;
    w->value[i] = down;
    change -= defined(of, m, b, smoothing, SMOOTHING_ALL).loss;
    w->value[i] = value;
    double want = change / ((double)up - (double)down), got = (double)w->grad[i];
    check_near_double("gradient", &got, &want, 1, 1e-3, 1e-4);
}

static void check_net(const net *of, double smoothing, smoothing_form form) {
    const task_options o = {.label_smoothing = smoothing, .smoothing = form};
    const batch b = make_batch();
    model *m = create(of, "");
    tensor *last = weight(m, "classify.weight");
    for (int64_t k = 0; k < last->count; k++) last->value[k] *= 50; /* logits that differ */
    task_sums got = computed(m, &o, &b), want = defined(of, m, &b, smoothing, form);
    check_near_double("loss", &got.loss, &want.loss, 1, 1e-5, 0);
    check_near_double("nll", &got.nll, &want.nll, 1, 1e-5, 0);
    assert_int_equal(got.correct, want.correct);
    assert_int_equal(got.tokens, IMAGES);
    if (form == SMOOTHING_ALL) {
        check_gradient(of, m, &b, weight(m, of->a), 100, smoothing);
        check_gradient(of, m, &b, weight(m, of->b), 9, smoothing);
        check_gradient(of, m, &b, weight(m, of->c), 9, smoothing);
    }
    model_free(m);
}

static void against_the_definition(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        check_net(&nets[i], 0, SMOOTHING_ALL);
        check_net(&nets[i], 0.2, SMOOTHING_ALL);
        check_net(&nets[i], 0.2, SMOOTHING_OTHERS);
    }
}

/* The first layer's gradient, through every other one. */
static void stem_gradient(const net *of, const char *conv, real *to) {
    const task_options o = {0};
    const batch b = make_batch();
    model *m = create(of, conv);
    computed(m, &o, &b);
    const tensor *stem = weight(m, "stem.weight");
    assert_int_equal(stem->count, 16 * 9 * CHANNELS);
    memcpy(to, stem->grad, (size_t)stem->count * sizeof *to);
    model_free(m);
}

/* The two kernels sum in different orders, if the build has vector code for both. */
static void direct_or_by_minimal_filtering(void **state) {
    (void)state;
    static real by_default[16 * 9 * CHANNELS], winograd[16 * 9 * CHANNELS],
        direct[16 * 9 * CHANNELS];
    stem_gradient(&nets[0], "", by_default);
    stem_gradient(&nets[0], "winograd", winograd);
    stem_gradient(&nets[0], "direct", direct);
    assert_memory_equal(by_default, winograd, sizeof winograd);
#ifdef __AVX__
    assert_memory_not_equal(winograd, direct, sizeof direct);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_definition),
                                       cmocka_unit_test(direct_or_by_minimal_filtering)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
