/* layer_basic_block.c -- ResNet's basic block with option-A shortcuts (He et al., CVPR 2016;
 * docs/models.md 1.1):
 *
 *   h = relu(norm1(conv1(x)));  y = relu(norm2(conv2(h)) + shortcut(x))
 *
 * Nothing stands between norm2 and the sum.
 */
#include <stdio.h>
#include <string.h>

#include "site_layers.h"

conv_norm conv_norm_init(const site_builder *b, const char *conv, const char *norm, int64_t in,
                         int64_t out, int stride) {
    char name[2 * PARAM_NAME];
    snprintf(name, sizeof name, "%s.weight", conv);
    conv_norm c = {.stride = stride};
    c.w = conv_init(&b->m->params, name, in, out, 3,
                    layer_conv_init(in, 3, !strcmp(b->options->init, "pytorch")));
    c.norm = model_add_site(b->m, b->options, norm, "conv", out, b->options->norm, b->why);
    return c;
}

basic_block basic_block_init(const site_builder *b, const char *name, int64_t in, int64_t out) {
    char conv[2 * PARAM_NAME], norm[2 * PARAM_NAME];
    basic_block k;
    snprintf(conv, sizeof conv, "%s.conv1", name);
    snprintf(norm, sizeof norm, "%s.norm1", name);
    k.first = conv_norm_init(b, conv, norm, in, out, in == out ? 1 : 2);
    snprintf(conv, sizeof conv, "%s.conv2", name);
    snprintf(norm, sizeof norm, "%s.norm2", name);
    k.second = conv_norm_init(b, conv, norm, out, out, 1);
    return k;
}

/* -- forward */

/* All positions are valid, one sample per image. */
static norm_rows *image_rows(pass *p, const tensor *x) {
    return pass_rows(p, x->dim[0], x->dim[1] * x->dim[2], NULL);
}

tensor *conv_norm_apply(const conv_norm *c, image_pass *p, tensor *x) {
    tape *t = p->pass->tape;
    tensor *y = op_conv2d(t, x, norm_weight(c->norm, t, c->w), c->stride, 1);
    if (!y) return NULL;
    if (!p->rows || p->rows->rows != tensor_rows(y)) p->rows = image_rows(p->pass, y);
    return p->rows ? norm_apply(c->norm, t, y, p->rows) : NULL;
}

tensor *basic_block_apply(const basic_block *k, image_pass *p, tensor *x) {
    tape *t = p->pass->tape;
    tensor *h = op_relu(t, conv_norm_apply(&k->first, p, x));
    tensor *y = conv_norm_apply(&k->second, p, h);
    tensor *around = y ? op_shortcut(t, x, k->first.stride, tensor_features(y)) : NULL;
    return op_relu(t, op_add(t, y, around));
}
