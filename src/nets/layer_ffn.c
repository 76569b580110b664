/* layer_ffn.c -- position-wise feed-forward block: W2 drop(relu(W1 x + b1)) + b2. Xavier weights,
 * zero biases (docs/models.md 2.4). */
#include <stdio.h>

#include "statnet/layers.h"

ffn_layer ffn_init(params *p, const char *name, int64_t d, int64_t inner, double dropout) {
    char in[2 * PARAM_NAME], out[2 * PARAM_NAME];
    snprintf(in, sizeof in, "%s.in", name);
    snprintf(out, sizeof out, "%s.out", name);
    layer_init zero = {INIT_CONSTANT, 0};
    ffn_layer f;
    f.in = linear_init(p, in, d, inner, layer_xavier(d, inner, 1), zero);
    f.out = linear_init(p, out, inner, d, layer_xavier(inner, d, 1), zero);
    f.dropout = dropout;
    return f;
}

tensor *ffn_apply(const ffn_layer *f, tape *t, tensor *x) {
    tensor *h = op_relu(t, linear_apply(&f->in, t, x));
    return linear_apply(&f->out, t, op_dropout(t, h, f->dropout));
}
