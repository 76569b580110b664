/* layer_linear.c -- y = x W^T + b, and convolution weights. */
#include <math.h>

#include "nets/layers/layers.h"

layer_init layer_xavier(int64_t in, int64_t out, double gain) {
    return (layer_init){INIT_UNIFORM, gain * sqrt(6.0 / (double)(in + out))};
}

linear_layer linear_init(params *p, const char *name, int64_t in, int64_t out, layer_init weight,
                         layer_init bias) {
    linear_layer l;
    if (p->fan_in) weight = (layer_init){INIT_UNIFORM, 1 / sqrt((double)in)};
    l.w = params_add_part(p, name, "weight", 2, (int64_t[]){out, in}, weight.kind, weight.a);
    l.b = params_add_part(p, name, "bias", 1, (int64_t[]){out}, bias.kind, bias.a);
    return l;
}

tensor *linear_apply(const linear_layer *l, tape *t, tensor *x) {
    return op_linear(t, x, l->w, l->b);
}

layer_init layer_conv_init(int64_t in, int64_t k, bool pytorch) {
    const double fan_in = (double)(k * k * in);
    return pytorch ? (layer_init){INIT_UNIFORM, 1 / sqrt(fan_in)}
                   : (layer_init){INIT_NORMAL, sqrt(2 / fan_in)};
}

tensor *conv_init(params *p, const char *name, int64_t in, int64_t out, int64_t k,
                  layer_init init) {
    return params_add_part(p, name, "weight", 4, (int64_t[]){out, k, k, in}, init.kind, init.a);
}
