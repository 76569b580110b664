/* layer_basic_block.c -- ResNet's basic block (He et al., CVPR 2016; docs/models.md 1.1, 1.2):
 *
 *   h = relu(norm1(conv1(x)));  y = relu(norm2(conv2(h)) + shortcut(x))
 *
 * norm2 leads directly into the sum. If the shape stays, the shortcut is x. Otherwise it is option
 * A (op_shortcut.c), or option B: a 1x1 convolution with conv1's stride and a normalization. */
#include <stdio.h>
#include <string.h>

#include "engine/ops/image/image_ops.h"
#include "nets/layers/image_layers.h"

conv_norm conv_norm_init(const site_builder *b, const char *conv, const char *norm, int64_t in,
                         int64_t out, int kernel, int stride) {
    conv_norm c = {.stride = stride, .pad = kernel / 2};
    c.direct = !strcmp(b->options->conv, "direct");
    c.w = conv_init(&b->m->params, conv, in, out, kernel,
                    layer_conv_init(in, kernel, !strcmp(b->options->init, "pytorch")));
    c.norm = model_add_site(b->m, b->options, norm, "conv", out, b->options->norm, b->why);
    return c;
}

basic_block basic_block_init(const site_builder *b, const char *name, int64_t in, int64_t out,
                             bool project) {
    char conv[2 * PARAM_NAME], norm[2 * PARAM_NAME];
    const int stride = in == out ? 1 : 2;
    basic_block k = {0};
    snprintf(conv, sizeof conv, "%s.conv1", name);
    snprintf(norm, sizeof norm, "%s.norm1", name);
    k.first = conv_norm_init(b, conv, norm, in, out, 3, stride);
    snprintf(conv, sizeof conv, "%s.conv2", name);
    snprintf(norm, sizeof norm, "%s.norm2", name);
    k.second = conv_norm_init(b, conv, norm, out, out, 3, 1);
    snprintf(norm, sizeof norm, "%s.shortcut", name);
    if (project && in != out) k.around = conv_norm_init(b, norm, norm, in, out, 1, stride);
    return k;
}

/* -- forward */

tensor *image_input(image_pass *p) {
    const batch *b = p->pass->batch;
    const int64_t dim[4] = {b->count, b->height, b->width, b->channels};
    return tape_wrap(p->pass->tape, 4, dim, (real *)b->image);
}

norm_rows *image_rows(image_pass *p, const tensor *y) {
    if (!p->rows || p->rows->rows != tensor_rows(y))
        p->rows = pass_rows(p->pass, y->dim[0], y->dim[1] * y->dim[2], NULL);
    return p->rows;
}

tensor *conv_norm_apply(const conv_norm *c, image_pass *p, tensor *x) {
    tape *t = p->pass->tape;
    tensor *w = norm_weight(c->norm, t, c->w);
    tensor *y = (c->direct ? op_conv2d_direct : op_conv2d)(t, x, w, c->stride, c->pad);
    const norm_rows *rows = y ? image_rows(p, y) : NULL;
    return rows ? norm_apply(c->norm, t, y, rows) : NULL;
}

tensor *basic_block_apply(const basic_block *k, image_pass *p, tensor *x) {
    tape *t = p->pass->tape;
    tensor *h = conv_norm_apply(&k->first, p, x);
    h = tape_release_input(t, h, op_relu(t, h));
    tensor *y = conv_norm_apply(&k->second, p, h);
    if (!y) return NULL;
    tensor *around = k->around.w ? conv_norm_apply(&k->around, p, x)
                                 : op_shortcut(t, x, k->first.stride, tensor_features(y));
    y = tape_release_input(t, y, op_add(t, y, around));
    return tape_release_input(t, y, op_relu(t, y));
}
