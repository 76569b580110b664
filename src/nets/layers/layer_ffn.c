/* layer_ffn.c -- position-wise feed-forward block: W2 drop(relu(W1 x + b1)) + b2. Zero biases.
 * Weights are Xavier (docs/models.md 2.4); in the language models N(deviation) (3.2, 4). */
#include <stdio.h>

#include "nets/layers/layers.h"

ffn_layer ffn_init(params *p, const char *name, int64_t d, int64_t inner, double dropout,
                   double deviation) {
    char in[2 * PARAM_NAME], out[2 * PARAM_NAME];
    snprintf(in, sizeof in, "%s.in", name);
    snprintf(out, sizeof out, "%s.out", name);
    const layer_init zero = {INIT_CONSTANT, 0}, normal = {INIT_NORMAL, deviation};
    const layer_init weight = deviation > 0 ? normal : layer_xavier(d, inner, 1);
    ffn_layer f;
    f.in = linear_init(p, in, d, inner, weight, zero);
    f.out = linear_init(p, out, inner, d, weight, zero);
    f.dropout = dropout;
    return f;
}

tensor *ffn_apply(const ffn_layer *f, tape *t, tensor *x) {
    tensor *h = linear_apply(&f->in, t, x);
    h = tape_release_input(t, h, op_relu(t, h));
    return linear_apply(&f->out, t, tape_release_input(t, h, op_dropout(t, h, f->dropout)));
}
