/* norm_weight.c -- weight centralization (Yan et al., ICLR 2020: part of MABN; docs/norms.md 16).
 *
 * w [outputs, ...] with m numbers per output unit:
 *
 *     forward   v_kj = w_kj - mean_j[w_kj]
 *     backward  dw_kj = dv_kj - mean_j[dv_kj]     (the projection is its own transpose)
 */
#include "norm/norm_site.h"

static double mean(const real *x, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)x[i];
    return sum / (double)count;
}

static void centralize_backward(tape *t, const tape_node *node) {
    bool add;
    real *dw = tape_grad(t, node->in[0], &add);
    if (!dw) return;
    int64_t units = node->out->dim[0], m = node->out->count / units;
    for (int64_t k = 0; k < units; k++) {
        const real *dv = node->out->grad + k * m;
        double middle = mean(dv, m);
        for (int64_t j = 0; j < m; j++) {
            double g = (double)dv[j] - middle;
            dw[k * m + j] = (real)(add ? (double)dw[k * m + j] + g : g);
        }
    }
}

tensor *norm_weight(const norm_site *s, tape *t, tensor *w) {
    if (!w || !s->method->centralize) return w;
    tensor *v = tape_like(t, w);
    if (!v) return NULL;
    int64_t units = w->dim[0], m = w->count / units;
    for (int64_t k = 0; k < units; k++) {
        double middle = mean(w->value + k * m, m);
        for (int64_t j = 0; j < m; j++)
            v->value[k * m + j] = (real)((double)w->value[k * m + j] - middle);
    }
    return tape_push(t, "norm_weight", centralize_backward, v, (tensor *[]){w, NULL}, NULL);
}
