/* op_conv2d.c -- two-dimensional convolution (cross-correlation), channels last, no bias.
 *
 * x [N, H, W, Ci], w [Co, kh, kw, Ci], y [N, Ho, Wo, Co], s = stride, x zero outside the image:
 *   y[n,i,j,o]   = sum over a,b,c of x[n, i s + a - pad, j s + b - pad, c] w[o,a,b,c]
 *   dx[n,p,q,c]  = sum over the (i,a), (j,b) with i s + a - pad = p, j s + b - pad = q, and over o,
 *                  of dy[n,i,j,o] w[o,a,b,c]
 *   dw[o,a,b,c] += sum over n,i,j of dy[n,i,j,o] x[n, i s + a - pad, j s + b - pad, c]
 * In bfloat16 (tape.h), r of bf16.h: the same with r(x), r(w) and r(dy), and y rounded. Kept for
 * backward: stride, padding, and whether Winograd is allowed. conv.c computes the sums. */
#include "engine/conv/conv.h"
#include "engine/gemm/bf16.h"
#include "engine/ops/image/image_ops.h"

typedef struct window {
    int stride, pad;
    bool direct;
} window;

static conv_shape shape_of(const tensor *x, const tensor *w, window k) {
    conv_shape s = {x->dim[0], x->dim[1], x->dim[2], x->dim[3], w->dim[0], w->dim[1],
                    w->dim[2], k.stride,  k.pad,     0,         0};
    s.out_height = (s.height + 2 * s.pad - s.kernel_h) / s.stride + 1;
    s.out_width = (s.width + 2 * s.pad - s.kernel_w) / s.stride + 1;
    return s;
}

/* Replaces the operands of the pass by rounded copies in the tape's memory; its result stays. */
static sr_status round_operands(tape *t, conv_pass pass, const conv_shape *s, conv_arrays *a) {
    const struct {
        real **at;
        int64_t count;
        bool operand;
    } part[] = {{&a->x, s->images * s->height * s->width * s->in, pass != CONV_BACKWARD_DATA},
                {&a->w, s->out * s->kernel_h * s->kernel_w * s->in, pass != CONV_BACKWARD_WEIGHTS},
                {&a->y, s->images * s->out_height * s->out_width * s->out, pass != CONV_FORWARD}};
    int64_t count = 0;
    for (int i = 0; i < 3; i++) count += part[i].operand ? part[i].count : 0;
    real *to = scratch_memory_of(&t->operands, (size_t)count * sizeof *to, &t->failure);
    for (int i = 0; to && i < 3; i++) {
        if (!part[i].operand) continue;
        bf16_round(t->threads, part[i].count, *part[i].at, to);
        *part[i].at = to;
        to += part[i].count;
    }
    return to ? SR_OK : SR_MEMORY;
}

static sr_status run(tape *t, conv_pass pass, const conv_shape *s, bool direct, conv_arrays a) {
    if (!t->conv_cache) {
        t->conv_cache = conv_create(&t->failure);
        t->conv_cache_free = conv_free;
    }
    if (!t->conv_cache) return t->failure.status;
    if (t->bf16 && round_operands(t, pass, s, &a) != SR_OK) return SR_MEMORY;
    return conv_run(t->conv_cache, direct, t->threads, pass, s, &a, &t->failure);
}

static void conv2d_backward(tape *t, const tape_node *node) {
    tensor *x = node->in[0], *w = node->in[1];
    real *dy = node->out->grad;
    const window *k = node->kept;
    conv_shape s = shape_of(x, w, *k);
    bool add;
    real *dx = tape_grad(t, x, &add);
    conv_arrays data = {dx, w->value, dy, add};
    if (dx && run(t, CONV_BACKWARD_DATA, &s, k->direct, data) != SR_OK) return;
    real *dw = tape_grad(t, w, &add);
    conv_arrays weights = {x->value, dw, dy, add};
    if (dw) run(t, CONV_BACKWARD_WEIGHTS, &s, k->direct, weights);
}

static bool fits(const tensor *x, const tensor *w, int stride, int pad) {
    return x->rank == 4 && w->rank == 4 && w->dim[3] == x->dim[3] && stride >= 1 && pad >= 0 &&
           x->dim[1] + 2 * pad >= w->dim[1] && x->dim[2] + 2 * pad >= w->dim[2];
}

static tensor *convolve(tape *t, tensor *x, tensor *w, window k) {
    if (!x || !w) return NULL;
    if (!fits(x, w, k.stride, k.pad))
        return tape_fail(t, SR_USAGE,
                         "conv2d: input [%lld, %lld, %lld, %lld], weight [%lld, %lld, %lld, %lld], "
                         "stride %d, padding %d",
                         (long long)x->dim[0], (long long)x->dim[1], (long long)x->dim[2],
                         (long long)x->dim[3], (long long)w->dim[0], (long long)w->dim[1],
                         (long long)w->dim[2], (long long)w->dim[3], k.stride, k.pad);
    window *kept = tape_alloc(t, sizeof *kept);
    if (!kept) return NULL;
    *kept = k;
    conv_shape s = shape_of(x, w, k);
    tensor *y = tape_tensor(t, 4, (int64_t[]){s.images, s.out_height, s.out_width, s.out});
    if (!y) return NULL;
    conv_arrays a = {x->value, w->value, y->value, false};
    if (run(t, CONV_FORWARD, &s, k.direct, a) != SR_OK) return NULL;
    if (t->bf16) bf16_round(t->threads, y->count, y->value, y->value);
    return tape_push_reading(t, "conv2d", conv2d_backward, y, (tensor *[]){x, w, NULL}, kept,
                             READS_INPUTS);
}

tensor *op_conv2d(tape *t, tensor *x, tensor *w, int stride, int pad) {
    return convolve(t, x, w, (window){stride, pad, false});
}

tensor *op_conv2d_direct(tape *t, tensor *x, tensor *w, int stride, int pad) {
    return convolve(t, x, w, (window){stride, pad, true});
}
