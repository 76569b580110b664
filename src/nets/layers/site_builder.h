/* site_builder.h -- arguments of the init functions of layers with normalization sites.
 *
 * An init adds parameters and sites to the model while the model is built. Failures stay in *why
 * and in the params of the model. */
#ifndef NETS_LAYERS_SITE_BUILDER_H
#define NETS_LAYERS_SITE_BUILDER_H

#include "nets/models.h"

typedef struct site_builder {
    model *m;
    const model_options *options; /* heads as they are, not 0; key_size and value_size 0: d/heads */
    sr_failure *why;
} site_builder;

#endif
