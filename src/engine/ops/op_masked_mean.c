/* op_masked_mean.c -- the mean over the words of each sentence, without padding.
 *
 * x [B, T, d], mask m [B, T] of 0 and 1, n_b = sum over i of m[b,i]:
 *   y[b,c]    = 1/n_b sum over i of m[b,i] x[b,i,c]      (sum in double); 0 where n_b is 0
 *   dx[b,i,c] = m[b,i] dy[b,c]/n_b
 * Masked rows are not read, so their NaN does not spread. Kept: the mask and n_b. */
#include "engine/ops/ops.h"

enum { FEATURES = 64 }; /* features summed at a time, on the stack */

typedef struct masked_mean {
    const uint8_t *mask; /* NULL: all ones */
    int64_t *valid;      /* [B] */
} masked_mean;

static bool is_valid(const uint8_t *mask, int64_t i) {
    return !mask || mask[i];
}

/* Means of `count` features from `from` on, of one sentence x [T, d]. */
static void mean_of(const real *x, const uint8_t *mask, int64_t T, int64_t d, int64_t from,
                    int64_t count, int64_t valid, real *y) {
    double sum[FEATURES] = {0};
    for (int64_t i = 0; i < T; i++)
        for (int64_t c = 0; is_valid(mask, i) && c < count; c++)
            sum[c] += (double)x[i * d + from + c];
    for (int64_t c = 0; c < count; c++) y[from + c] = valid ? (real)(sum[c] / (double)valid) : 0;
}

static void spread(const real *dy, const uint8_t *mask, int64_t T, int64_t d, int64_t valid,
                   bool add, real *dx) {
    const real factor = valid ? (real)1 / (real)valid : 0;
    for (int64_t i = 0; i < T; i++, dx += d)
        for (int64_t c = 0; c < d; c++)
            dx[c] = (is_valid(mask, i) ? dy[c] * factor : 0) + (add ? dx[c] : 0);
}

static void masked_mean_backward(tape *t, const tape_node *node) {
    const masked_mean *m = node->kept;
    tensor *x = node->in[0];
    const real *dy = node->out->grad;
    const int64_t T = x->dim[1], d = x->dim[2];
    bool add;
    real *dx = tape_grad(t, x, &add);
    if (!dx) return;
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t b = 0; b < x->dim[0]; b++)
        spread(dy + b * d, m->mask ? m->mask + b * T : NULL, T, d, m->valid[b], add,
               dx + b * T * d);
}

tensor *op_masked_mean(tape *t, tensor *x, const uint8_t *mask) {
    if (!x) return NULL;
    if (x->rank != 3) return tape_fail(t, SR_USAGE, "masked_mean: rank %d is not 3", x->rank);
    const int64_t B = x->dim[0], T = x->dim[1], d = x->dim[2];
    tensor *y = tape_tensor(t, 2, (int64_t[]){B, d});
    masked_mean *m = tape_alloc(t, sizeof *m);
    int64_t *valid = m ? tape_alloc(t, (size_t)B * sizeof *valid) : NULL;
    if (!y || !valid) return NULL;
    *m = (masked_mean){mask, valid};
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t b = 0; b < B; b++) {
        const uint8_t *own = mask ? mask + b * T : NULL;
        valid[b] = 0;
        for (int64_t i = 0; i < T; i++) valid[b] += is_valid(own, i);
        for (int64_t c = 0; c < d; c += FEATURES)
            mean_of(x->value + b * T * d, own, T, d, c, d - c < FEATURES ? d - c : FEATURES,
                    valid[b], y->value + b * d);
    }
    return tape_push(t, "masked_mean", masked_mean_backward, y, (tensor *[]){x, NULL}, m);
}
