/* residual_net.h -- residual networks for small images (residual_net.c). */
#ifndef NETS_MODELS_RESIDUAL_NET_H
#define NETS_MODELS_RESIDUAL_NET_H

#include "nets/layers/image_layers.h"

enum { RESIDUAL_STAGES = 4, RESIDUAL_BLOCKS = 18 };

typedef struct residual_plan {
    int stages, blocks; /* blocks of each stage */
    int64_t filters[RESIDUAL_STAGES];
    bool project; /* option-B shortcuts, else option A */
} residual_plan;

typedef struct residual_net {
    residual_plan plan;
    conv_norm stem;
    basic_block block[RESIDUAL_STAGES][RESIDUAL_BLOCKS];
    linear_layer classify;
} residual_net;

/* model_row.build and forward of a model whose `self` is a residual_net. */
sr_status residual_net_build(model *m, const model_options *o, const data_shape *shape,
                             const residual_plan *plan, sr_failure *why);
tensor *residual_net_forward(model *m, pass *p);

#endif
