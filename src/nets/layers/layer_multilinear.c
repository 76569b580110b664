/* layer_multilinear.c -- multi-linear attention of the tensorized transformer (docs/models.md 3.1):
 *
 *   q = x Wq^T, k = m Wk^T, v = m Wv^T, r = P Wr^T       P: positions of the keys
 *   y = op_multilinear(q, k, v, r, core, u, z) Wo^T
 *
 * Initial values of the release (3.2): weights N(0.02). The release computes the cores as the
 * softmax of memory that it never wrote. Here they are the softmax of zeros, 1/R. */
#include "engine/ops/attention/attention_ops.h"
#include "nets/layers/layers.h"

static tensor *projection(params *p, const char *name, const char *which, int64_t out, int64_t in) {
    return params_add_part(p, name, which, 2, (int64_t[]){out, in}, INIT_NORMAL, 0.02);
}

multilinear_layer multilinear_init(params *p, const char *name, int64_t d, int64_t R, int64_t K,
                                   int64_t cores) {
    return (multilinear_layer){
        .q = projection(p, name, "q.weight", R, d),
        .k = projection(p, name, "k.weight", R, d),
        .v = projection(p, name, "v.weight", R, d),
        .r = projection(p, name, "r.weight", R, d),
        .o = projection(p, name, "o.weight", d, K * K),
        .core = params_add_part(p, name, "core", 2, (int64_t[]){cores, R}, INIT_CONSTANT,
                                1 / (double)R),
    };
}

tensor *multilinear_apply(const multilinear_layer *l, tape *t, tensor *x, tensor *keys,
                          tensor *positions, tensor *u, tensor *z, bool causal) {
    const multilinear_inputs in = {
        .q = op_linear(t, x, l->q, NULL),
        .k = op_linear(t, keys, l->k, NULL),
        .v = op_linear(t, keys, l->v, NULL),
        .r = op_linear(t, positions, l->r, NULL),
        .core = l->core,
        .u = u,
        .z = z,
    };
    return op_linear(t, op_multilinear(t, &in, causal), l->o, NULL);
}
