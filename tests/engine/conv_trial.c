/* conv_trial.c -- see conv_trial.h. */
#include "conv_trial.h"

#include <stdlib.h>

#include "reals.h"
#include "testing/check.h"

conv_shape conv_trial_shape(int64_t images, int64_t height, int64_t width, int64_t in, int64_t out,
                            int64_t kernel, int64_t stride, int64_t pad) {
    return (conv_shape){images,
                        height,
                        width,
                        in,
                        out,
                        kernel,
                        kernel,
                        stride,
                        pad,
                        (height + 2 * pad - kernel) / stride + 1,
                        (width + 2 * pad - kernel) / stride + 1};
}

int64_t conv_trial_x(const conv_shape *s) {
    return s->images * s->height * s->width * s->in;
}
int64_t conv_trial_w(const conv_shape *s) {
    return s->out * s->kernel_h * s->kernel_w * s->in;
}
int64_t conv_trial_y(const conv_shape *s) {
    return s->images * s->out_height * s->out_width * s->out;
}

double *conv_trial_zeros(int64_t count) {
    double *x = calloc(count > 0 ? (size_t)count : 1, sizeof *x);
    assert_non_null(x);
    return x;
}

/* Adds the contribution of one output element. */
static void trial_output(conv_trial *t, int64_t n, int64_t i, int64_t j, int64_t o) {
    const conv_shape *s = &t->s;
    int64_t at = ((n * s->out_height + i) * s->out_width + j) * s->out + o;
    for (int64_t a = 0; a < s->kernel_h; a++)
        for (int64_t b = 0; b < s->kernel_w; b++) {
            int64_t p = i * s->stride + a - s->pad, q = j * s->stride + b - s->pad;
            if (p < 0 || p >= s->height || q < 0 || q >= s->width) continue;
            int64_t x = ((n * s->height + p) * s->width + q) * s->in;
            int64_t w = ((o * s->kernel_h + a) * s->kernel_w + b) * s->in;
            for (int64_t c = 0; c < s->in; c++) {
                t->y[at] += (double)t->x[x + c] * (double)t->w[w + c];
                t->dx[x + c] += (double)t->dy[at] * (double)t->w[w + c];
                t->dw[w + c] += (double)t->dy[at] * (double)t->x[x + c];
            }
        }
}

conv_trial conv_trial_create(conv_shape s) {
    conv_trial t = {.s = s};
    t.x = reals_random(conv_trial_x(&s), 1), t.w = reals_random(conv_trial_w(&s), 2);
    t.dy = reals_random(conv_trial_y(&s), 3);
    t.y = conv_trial_zeros(conv_trial_y(&s)), t.dx = conv_trial_zeros(conv_trial_x(&s)),
    t.dw = conv_trial_zeros(conv_trial_w(&s));
    for (int64_t n = 0; n < s.images; n++)
        for (int64_t i = 0; i < s.out_height; i++)
            for (int64_t j = 0; j < s.out_width; j++)
                for (int64_t o = 0; o < s.out; o++) trial_output(&t, n, i, j, o);
    return t;
}

void conv_trial_free(conv_trial *t) {
    free(t->x), free(t->w), free(t->dy), free(t->y), free(t->dx), free(t->dw);
}
