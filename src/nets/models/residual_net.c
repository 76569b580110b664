/* residual_net.c -- residual networks for small images (He et al., CVPR 2016; docs/models.md 1.1,
 * 1.2):
 *
 *   stem: conv 3x3, norm, relu
 *   stages of basic blocks (layer_basic_block.c); every stage but the first starts with stride 2
 *   mean over positions, linear -> classes
 *
 * Convolutions are initialized with N(sqrt(2/fan_in)). The linear layer has PyTorch's default,
 * U(1/sqrt(in)), and zero bias. He's rule, N(sqrt(2/in)), starts ResNet20 with a loss of 2.9 nats
 * there and costs a point or two of accuracy after ten epochs. --init pytorch: U(1/sqrt(fan_in))
 * for all weights and the bias, the defaults of its layers. */
#include "nets/models/residual_net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/image/image_ops.h"
#include "engine/ops/ops.h"

static void build_blocks(residual_net *net, const site_builder *b) {
    int64_t in = net->plan.filters[0];
    for (int s = 0; s < net->plan.stages; s++)
        for (int i = 0; i < net->plan.blocks; i++) {
            char name[PARAM_NAME];
            snprintf(name, sizeof name, "stage%d.%d", s + 1, i);
            net->block[s][i] =
                basic_block_init(b, name, in, net->plan.filters[s], net->plan.project);
            in = net->plan.filters[s];
        }
}

sr_status residual_net_build(model *m, const model_options *o, const data_shape *shape,
                             const residual_plan *plan, sr_failure *why) {
    const site_builder b = {m, o, why};
    const int64_t in = plan->filters[plan->stages - 1];
    const layer_init narrow = {INIT_UNIFORM, 1 / sqrt((double)in)};
    const int64_t part = (int64_t)1 << (plan->stages - 1); /* all stages but one halve the sides */
    if (shape->height % part || shape->width % part)
        return sr_fail(why, SR_USAGE, "images of %lld x %lld; %s needs multiples of %lld",
                       (long long)shape->height, (long long)shape->width, m->row->name,
                       (long long)part);
    residual_net *net = m->self;
    net->plan = *plan;
    net->stem = conv_norm_init(&b, "stem", "stem", shape->channels, plan->filters[0], 3, 1);
    build_blocks(net, &b);
    net->classify =
        linear_init(&m->params, "classify", in, shape->classes, narrow,
                    !strcmp(o->init, "pytorch") ? narrow : (layer_init){INIT_CONSTANT, 0});
    return why && why->status != SR_OK ? why->status : m->params.failure.status;
}

/* [count, classes] */
tensor *residual_net_forward(model *m, pass *p) {
    const residual_net *net = m->self;
    image_pass images = {.pass = p};
    tensor *x = conv_norm_apply(&net->stem, &images, image_input(&images));
    x = tape_release_input(p->tape, x, op_relu(p->tape, x));
    for (int s = 0; s < net->plan.stages; s++)
        for (int i = 0; i < net->plan.blocks; i++)
            x = basic_block_apply(&net->block[s][i], &images, x);
    return linear_apply(&net->classify, p->tape, op_average_pool(p->tape, x));
}
