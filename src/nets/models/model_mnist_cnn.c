/* model_mnist_cnn.c -- the convolutional network for MNIST of the AdaNorm paper (Xu et al., NeurIPS
 * 2019; docs/models.md 7), completed after PyTorch's public example:
 *
 *   conv 5x5 -> 20, bias, relu, max pool 2x2
 *   conv 5x5 -> 50, bias, relu, max pool 2x2
 *   linear -> 500, norm, relu
 *   linear -> classes
 *
 * It has 431,080 parameters for 28x28 grey images of ten classes, and 1,000 of the norm's gain and
 * bias. The convolutions have no padding. --conv-norms adds norms before their relus. He:
 * convolutions and hidden layer N(sqrt(2/fan_in)), the last layer U(1/sqrt(500)), biases 0. PyTorch
 * (the preset's): U(1/sqrt(fan_in)) for all weights and biases. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/image/image_ops.h"
#include "nets/layers/image_layers.h"
#include "nets/model_rows.h"

enum { KERNEL = 5, POOL = 2, CONVS = 2, HIDDEN = 500, SIDE_PART = 4, SIDE_LEAST = 16 };

static const int64_t conv_filters[CONVS] = {20, 50};

typedef struct biased_conv {
    tensor *w, *b;
    norm_site *norm; /* NULL: none */
} biased_conv;

typedef struct mnist_cnn {
    biased_conv conv[CONVS];
    linear_layer hidden, classify;
    norm_site *hidden_norm;
} mnist_cnn;

static layer_init biases(const site_builder *b, int64_t fan_in) {
    if (strcmp(b->options->init, "pytorch")) return (layer_init){INIT_CONSTANT, 0};
    return (layer_init){INIT_UNIFORM, 1 / sqrt((double)fan_in)};
}

static biased_conv biased_conv_init(const site_builder *b, int number, int64_t in) {
    const int64_t out = conv_filters[number - 1], fan_in = KERNEL * KERNEL * in;
    const layer_init zero = biases(b, fan_in);
    char name[PARAM_NAME];
    biased_conv c = {0};
    snprintf(name, sizeof name, "conv%d", number);
    c.w = conv_init(&b->m->params, name, in, out, KERNEL,
                    layer_conv_init(in, KERNEL, !strcmp(b->options->init, "pytorch")));
    c.b = params_add_part(&b->m->params, name, "bias", 1, (int64_t[]){out}, zero.kind, zero.a);
    if (b->options->conv_norms)
        c.norm = model_add_site(b->m, b->options, name, "conv", out, b->options->norm, b->why);
    return c;
}

static sr_status mnist_cnn_build(model *m, const model_options *o, const data_shape *shape,
                                 sr_failure *why) {
    const site_builder b = {m, o, why};
    int64_t in = shape->channels, side[2] = {shape->height, shape->width};
    if (side[0] % SIDE_PART || side[0] < SIDE_LEAST || side[1] % SIDE_PART || side[1] < SIDE_LEAST)
        return sr_fail(why, SR_USAGE,
                       "images of %lld x %lld; mnist_cnn needs multiples of %d, at least %d",
                       (long long)side[0], (long long)side[1], SIDE_PART, SIDE_LEAST);
    mnist_cnn *net = m->self;
    for (int i = 0; i < CONVS; i++) {
        net->conv[i] = biased_conv_init(&b, i + 1, in);
        in = conv_filters[i];
        for (int j = 0; j < 2; j++) side[j] = (side[j] - KERNEL + 1) / POOL;
    }
    in *= side[0] * side[1];
    /* a linear layer is a 1x1 convolution */
    net->hidden = linear_init(&m->params, "hidden", in, HIDDEN,
                              layer_conv_init(in, 1, !strcmp(o->init, "pytorch")), biases(&b, in));
    net->hidden_norm = model_add_site(m, o, "hidden", "linear", HIDDEN, o->norm, why);
    net->classify =
        linear_init(&m->params, "classify", HIDDEN, shape->classes,
                    (layer_init){INIT_UNIFORM, 1 / sqrt((double)HIDDEN)}, biases(&b, HIDDEN));
    return why && why->status != SR_OK ? why->status : m->params.failure.status;
}

/* -- forward */

static tensor *biased_conv_apply(const biased_conv *c, image_pass *p, tensor *x) {
    tape *t = p->pass->tape;
    tensor *w = c->norm ? norm_weight(c->norm, t, c->w) : c->w;
    tensor *y = op_add_bias(t, op_conv2d(t, x, w, 1, 0), c->b);
    if (c->norm) {
        const norm_rows *rows = y ? image_rows(p, y) : NULL;
        y = rows ? norm_apply(c->norm, t, y, rows) : NULL;
    }
    return op_max_pool(t, op_relu(t, y), POOL, POOL);
}

/* One row an image. */
static tensor *hidden_apply(const mnist_cnn *net, pass *p, tensor *x) {
    if (!x) return NULL;
    tensor *flat = tape_reshape(p->tape, x, 2, (int64_t[]){x->dim[0], x->count / x->dim[0]});
    tensor *w = norm_weight(net->hidden_norm, p->tape, net->hidden.w);
    tensor *h = op_linear(p->tape, flat, w, net->hidden.b);
    const norm_rows *rows = h ? pass_rows(p, x->dim[0], 1, NULL) : NULL;
    return rows ? op_relu(p->tape, norm_apply(net->hidden_norm, p->tape, h, rows)) : NULL;
}

/* [count, classes] */
static tensor *mnist_cnn_forward(model *m, pass *p) {
    const mnist_cnn *net = m->self;
    image_pass images = {.pass = p};
    tensor *x = image_input(&images);
    for (int i = 0; i < CONVS; i++) x = biased_conv_apply(&net->conv[i], &images, x);
    return linear_apply(&net->classify, p->tape, hidden_apply(net, p, x));
}

const model_row model_mnist_cnn = {
    .name = "mnist_cnn",
    .citation = "Xu et al., NeurIPS 2019",
    .summary = "convolutional network of the AdaNorm paper for MNIST",
    .task = TASK_IMAGES,
    .presets = "",
    .options = "init conv-norms",
    .build = mnist_cnn_build,
    .forward = mnist_cnn_forward,
    .alpha = 0.9, /* PyTorch's for images (docs/norms.md 2) */
    .size = sizeof(mnist_cnn),
};
