/* model_resnet18.c -- ResNet18 in its form for 32x32 images (He et al., CVPR 2016;
 * docs/models.md 1.2).
 *
 * residual_net.c with 4 stages of 2 blocks, 64/128/256/512 filters and option-B shortcuts, without
 * max pooling after the stem. It has 11,173,962 parameters for 3 channels and 10 classes, and 20
 * normalization sites, including the shortcuts'. Preset "mini" has a quarter of the filters
 * (701,466 parameters), for two cores. */
#include "nets/model_rows.h"
#include "nets/models/residual_net.h"

typedef struct preset {
    const char *name;
    residual_plan plan;
} preset;

static const preset presets[] = {
    {"resnet18", {4, 2, {64, 128, 256, 512}, true}},
    {"mini", {4, 2, {16, 32, 64, 128}, true}},
};

static sr_status resnet18_build(model *m, const model_options *o, const data_shape *shape,
                                sr_failure *why) {
    const preset *base = MODEL_PRESET(model_resnet18, o->preset, presets, why);
    return base ? residual_net_build(m, o, shape, &base->plan, why) : SR_USAGE;
}

const model_row model_resnet18 = {
    .name = "resnet18",
    .citation = "He et al., CVPR 2016",
    .summary = "residual network of 18 layers for small images, option-B shortcuts",
    .task = TASK_IMAGES,
    .presets = "resnet18|mini",
    .options = "init conv",
    .build = resnet18_build,
    .forward = residual_net_forward,
    .alpha = 0.9, /* PyTorch's for images (docs/norms.md 2) */
    .size = sizeof(residual_net),
};
