/* model_resnet20.c -- ResNet20 for 32x32 images, and its deeper forms of 6 n + 2 layers (He et al.,
 * CVPR 2016; docs/models.md 1.1).
 *
 * residual_net.c with 3 stages of n blocks, 16/32/64 filters and option-A shortcuts. n = 3: 269,722
 * parameters for 3 channels and 10 classes, 19 normalization sites. */
#include "nets/model_rows.h"
#include "nets/models/residual_net.h"

static sr_status resnet20_build(model *m, const model_options *o, const data_shape *shape,
                                sr_failure *why) {
    static const int depths[] = {20, 32, 44, 56, 110}; /* depths in the paper */
    residual_plan plan = {.stages = 3, .filters = {16, 32, 64}};
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++)
        if (model_size(o->layers, 20) == depths[i]) plan.blocks = (depths[i] - 2) / 6;
    if (plan.blocks == 0)
        return sr_fail(why, SR_USAGE, "layers %lld of resnet20 is not one of 20, 32, 44, 56, 110",
                       (long long)o->layers);
    return residual_net_build(m, o, shape, &plan, why);
}

const model_row model_resnet20 = {
    .name = "resnet20",
    .citation = "He et al., CVPR 2016",
    .summary = "residual network of 20 to 110 layers for small images, option-A shortcuts",
    .task = TASK_IMAGES,
    .presets = "",
    .options = "init layers conv",
    .build = resnet20_build,
    .forward = residual_net_forward,
    .alpha = 0.9, /* PyTorch's for images (docs/norms.md 2) */
    .size = sizeof(residual_net),
};
