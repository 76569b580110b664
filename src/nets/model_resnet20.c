/* model_resnet20.c -- ResNet20 for 32x32 images (He et al., CVPR 2016; docs/models.md 1.1).
 *
 *   stem: conv 3x3 -> 16, norm, relu
 *   3 stages x 3 blocks, 16/32/64 filters, first block of stages 2 and 3 with stride 2
 *   (layer_basic_block.c)
 *   mean over positions, linear -> classes
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
#include "site_layers.h"

enum { STAGES = 3, BLOCKS = 3 };

static const int64_t stage_filters[STAGES] = {16, 32, 64};

typedef struct resnet {
    conv_norm stem;
    basic_block block[STAGES][BLOCKS];
    linear_layer classify;
} resnet;

static sr_status resnet_build(model *m, const model_options *o, const data_shape *shape,
                              sr_failure *why) {
    site_builder b = {m, o, why};
    const bool pytorch = !strcmp(o->init, "pytorch");
    resnet *net = m->self = calloc(1, sizeof *net);
    if (!net) return sr_fail(why, SR_MEMORY, "out of memory for model resnet20");
    if (shape->height % 4 || shape->width % 4)
        return sr_fail(why, SR_USAGE, "resnet20 wants image sides divisible by 4, not %lld x %lld",
                       (long long)shape->height, (long long)shape->width);
    net->stem = conv_norm_init(&b, "stem", "stem", shape->channels, stage_filters[0], 1);
    int64_t in = stage_filters[0];
    for (int s = 0; s < STAGES; s++) {
        for (int i = 0; i < BLOCKS; i++) {
            char name[PARAM_NAME];
            snprintf(name, sizeof name, "stage%d.%d", s + 1, i);
            net->block[s][i] = basic_block_init(&b, name, in, stage_filters[s]);
            in = stage_filters[s];
        }
    }
    net->classify = linear_init(&m->params, "classify", in, shape->classes,
                                (layer_init){INIT_UNIFORM, 1 / sqrt((double)in)},
                                pytorch ? (layer_init){INIT_UNIFORM, 1 / sqrt((double)in)}
                                        : (layer_init){INIT_CONSTANT, 0});
    return why && why->status != SR_OK ? why->status : m->params.failure.status;
}

static void resnet_free(model *m) {
    free(m->self);
}

/* -- forward */

/* [count, classes] */
static tensor *resnet_forward(model *m, pass *p) {
    const resnet *net = m->self;
    const batch *b = p->batch;
    image_pass images = {.pass = p};
    int64_t dim[4] = {b->count, b->height, b->width, b->channels};
    tensor *x = tape_wrap(p->tape, 4, dim, (real *)b->image);
    x = op_relu(p->tape, conv_norm_apply(&net->stem, &images, x));
    for (int s = 0; s < STAGES; s++)
        for (int i = 0; i < BLOCKS; i++) x = basic_block_apply(&net->block[s][i], &images, x);
    return linear_apply(&net->classify, p->tape, op_average_pool(p->tape, x));
}

const model_row model_resnet20 = {
    .name = "resnet20",
    .citation = "He et al., CVPR 2016",
    .summary = "residual network of 20 layers for small images, option-A shortcuts",
    .task = TASK_IMAGES,
    .presets = "",
    .options = "init",
    .build = resnet_build,
    .forward = resnet_forward,
    .alpha = 0.9, /* PyTorch's for images (docs/norms.md 2) */
    .free = resnet_free,
};
