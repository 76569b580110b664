/* image_layers.h -- convolutions with normalization, ResNet's basic block. */
#ifndef NETS_LAYERS_IMAGE_LAYERS_H
#define NETS_LAYERS_IMAGE_LAYERS_H

#include "nets/layers/layers.h"
#include "nets/layers/site_builder.h"
#include "nets/pass.h"

/* A convolution, padded to keep the size at stride 1, and the normalization after it. */
typedef struct conv_norm {
    tensor *w;
    norm_site *norm;
    int stride, pad;
    bool direct; /* never by Winograd */
} conv_norm;

typedef struct basic_block {
    conv_norm first, second;
    conv_norm around; /* w NULL: option A */
} basic_block;

/* Names of the convolution and of the site; kernel x kernel. */
conv_norm conv_norm_init(const site_builder *b, const char *conv, const char *norm, int64_t in,
                         int64_t out, int kernel, int stride);
/* NAME.conv1, NAME.norm1, NAME.conv2, NAME.norm2; stride 2 where out is not in, and there with
 * `project` an option-B shortcut NAME.shortcut. */
basic_block basic_block_init(const site_builder *b, const char *name, int64_t in, int64_t out,
                             bool project);

/* Arguments of every convolution in a pass; reuses `rows` while the size stays. */
typedef struct image_pass {
    pass *pass;
    norm_rows *rows;
} image_pass;

tensor *conv_norm_apply(const conv_norm *c, image_pass *p, tensor *x);
tensor *basic_block_apply(const basic_block *k, image_pass *p, tensor *x);
/* The batch's images [count, height, width, channels]. */
tensor *image_input(image_pass *p);
/* rows of y's positions, all of them valid, one sample an image. NULL when out of memory. */
norm_rows *image_rows(image_pass *p, const tensor *y);

#endif
