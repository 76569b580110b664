/* model_resnet20.c -- ResNet20 for 32x32 images (He et al., CVPR 2016; models.md 1.1).
 *
 *   stem: conv 3x3 -> 16, norm, relu
 *   3 stages x 3 blocks, 16/32/64 filters, first block of stages 2 and 3 with stride 2:
 *     h = relu(norm1(conv1(x)));  y = relu(norm2(conv2(h)) + shortcut(x))     (option A)
 *   mean over positions, linear -> classes, softmax cross entropy
 *
 * 269,722 parameters for 3 channels and 10 classes, 19 normalization sites. Convolutions
 * N(sqrt(2/fan_in)); linear U(1/sqrt(64)), PyTorch's default, with zero bias: He's rule for it,
 * N(sqrt(2/64)), starts with a loss of 2.9 nats and costs a point or two of accuracy after ten
 * epochs. --init pytorch: the defaults of its layers, U(1/sqrt(fan_in)) for all weights and the bias.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_rows.h"
#include "statnet/layers.h"

enum { STAGES = 3, BLOCKS = 3 };

static const int64_t stage_filters[STAGES] = {16, 32, 64};

/* A convolution and the normalization behind it. */
typedef struct conv_norm {
    tensor *w;
    norm_site *norm;
    int stride;
} conv_norm;

typedef struct block {
    conv_norm first, second;
} block;

typedef struct resnet {
    conv_norm stem;
    block block[STAGES][BLOCKS];
    linear_layer classify;
    double smoothing;
    smoothing_form form;
} resnet;

/* What the builder hands from layer to layer. */
typedef struct builder {
    model *m;
    const model_options *options;
    bool pytorch; /* its default initialisation */
    sr_failure *why;
} builder;

static conv_norm build_conv_norm(builder *b, const char *conv, const char *norm, int64_t in,
                                 int64_t out, int stride) {
    char name[2 * PARAM_NAME];
    snprintf(name, sizeof name, "%s.weight", conv);
    conv_norm c = {.stride = stride};
    c.w = conv_init(&b->m->params, name, in, out, 3, layer_conv_init(in, 3, b->pytorch));
    c.norm = model_add_site(b->m, b->options, norm, "conv", out, b->options->norm, b->why);
    return c;
}

static block build_block(builder *b, int stage, int i, int64_t in) {
    char conv[PARAM_NAME], norm[PARAM_NAME];
    int64_t out = stage_filters[stage];
    block k;
    snprintf(conv, sizeof conv, "stage%d.%d.conv1", stage + 1, i);
    snprintf(norm, sizeof norm, "stage%d.%d.norm1", stage + 1, i);
    k.first = build_conv_norm(b, conv, norm, in, out, in == out ? 1 : 2);
    snprintf(conv, sizeof conv, "stage%d.%d.conv2", stage + 1, i);
    snprintf(norm, sizeof norm, "stage%d.%d.norm2", stage + 1, i);
    k.second = build_conv_norm(b, conv, norm, out, out, 1);
    return k;
}

static sr_status resnet_build(model *m, const model_options *o, const data_shape *shape,
                              sr_failure *why) {
    builder b = {m, o, !strcmp(o->init, "pytorch"), why};
    resnet *net = m->self = calloc(1, sizeof *net);
    if (!net) return sr_fail(why, SR_MEMORY, "out of memory for model resnet20");
    if (shape->height % 4 || shape->width % 4)
        return sr_fail(why, SR_USAGE, "resnet20 wants image sides divisible by 4, not %lld x %lld",
                       (long long)shape->height, (long long)shape->width);
    net->smoothing = model_default(o->label_smoothing, 0);
    net->form = o->smoothing;
    net->stem = build_conv_norm(&b, "stem", "stem", shape->channels, stage_filters[0], 1);
    int64_t in = stage_filters[0];
    for (int s = 0; s < STAGES; s++) {
        for (int i = 0; i < BLOCKS; i++) {
            net->block[s][i] = build_block(&b, s, i, in);
            in = stage_filters[s];
        }
    }
    net->classify = linear_init(&m->params, "classify", in, shape->classes,
                                (layer_init){INIT_UNIFORM, 1 / sqrt((double)in)},
                                b.pytorch ? (layer_init){INIT_UNIFORM, 1 / sqrt((double)in)}
                                          : (layer_init){INIT_CONSTANT, 0});
    return why && why->status != SR_OK ? why->status : m->params.failure.status;
}

static void resnet_free(model *m) {
    free(m->self);
}

/* -- forward */

/* The rows of a tensor of images: all valid, one sample per image. */
static norm_rows *image_rows(tape *t, const tensor *x, norm_mode mode, double *penalty) {
    int64_t rows = tensor_rows(x), positions = rows / x->dim[0];
    norm_rows *r = tape_alloc(t, sizeof *r);
    int32_t *sample = tape_alloc(t, (size_t)rows * sizeof *sample);
    if (!r || !sample || norm_rows_init(r, t, rows, NULL, mode) != SR_OK) return NULL;
    for (int64_t i = 0; i < rows; i++) sample[i] = (int32_t)(i / positions);
    r->sample = sample;
    r->samples = x->dim[0];
    r->tokens = (double)x->dim[0];
    r->penalty = penalty;
    return r;
}

/* One pass: what every layer needs. `rows` of the previous layer serve again while the size stays.
 */
typedef struct pass {
    tape *t;
    norm_mode mode;
    norm_rows *rows;
    double penalty; /* of the normalizations, part of the loss */
} pass;

static tensor *conv_norm_apply(const conv_norm *c, pass *p, tensor *x) {
    tensor *y = op_conv2d(p->t, x, norm_weight(c->norm, p->t, c->w), c->stride, 1);
    if (!y) return NULL;
    if (!p->rows || p->rows->rows != tensor_rows(y))
        p->rows = image_rows(p->t, y, p->mode, &p->penalty);
    return p->rows ? norm_apply(c->norm, p->t, y, p->rows) : NULL;
}

static tensor *block_apply(const block *k, pass *p, tensor *x) {
    tensor *h = op_relu(p->t, conv_norm_apply(&k->first, p, x));
    tensor *y = conv_norm_apply(&k->second, p, h);
    tensor *around = y ? op_shortcut(p->t, x, k->first.stride, tensor_features(y)) : NULL;
    return op_relu(p->t, op_add(p->t, y, around));
}

static tensor *resnet_loss(model *m, tape *t, const batch *b, norm_mode mode,
                           cross_entropy_report *report) {
    const resnet *net = m->self;
    pass p = {.t = t, .mode = mode};
    int64_t dim[4] = {b->count, b->height, b->width, b->channels};
    tensor *x = tape_wrap(t, 4, dim, (real *)b->image);
    x = op_relu(t, conv_norm_apply(&net->stem, &p, x));
    for (int s = 0; s < STAGES; s++)
        for (int i = 0; i < BLOCKS; i++) x = block_apply(&net->block[s][i], &p, x);
    tensor *logits = linear_apply(&net->classify, t, op_average_pool(t, x));
    tensor *loss = op_cross_entropy(t, logits, b->label, -1, -1, net->smoothing, net->form, report);
    if (loss && report) report->loss += p.penalty;
    return loss;
}

const model_row model_resnet20 = {
    .name = "resnet20",
    .citation = "He et al., CVPR 2016",
    .summary = "residual network of 20 layers for small images, option-A shortcuts",
    .task = TASK_IMAGES,
    .presets = "",
    .build = resnet_build,
    .loss = resnet_loss,
    .free = resnet_free,
};
