/* conv_im2col.c -- convolution by im2col and matrix products, channels last.
 *
 * Used by the double build, by `make DNNL=0`, and for shapes without fast code in oneDNN. With K =
 * kernel_h kernel_w in and P = out_height out_width positions of an image:
 *   col [P, K]   row p holds the patch of x under output position p, zero outside the image
 *   y  = col w^T                     per image
 *   dx = scatter-add of dy w [P, K]  per image
 *   dw = sum over images of dy^T col
 * A chunk of work is one image in the first two. For dw it is CONV_CHUNK images, whose sums are
 * added in the order of the chunks. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "engine/conv/conv.h"
#include "engine/gemm/gemm.h"

/* Sizes of one image, and the memory of the call. */
typedef struct work {
    conv_shape s;
    int64_t x_size, y_size, w_size; /* x and y of one image, w */
    int64_t positions, patch;       /* P, K */
    real *col;                      /* [threads, P, K] */
    real *partial;                  /* [chunks, w_size], weights pass only */
} work;

/* Whether pixel (i, j) is inside the image, not padding. */
static bool inside(const conv_shape *s, int64_t i, int64_t j) {
    return i >= 0 && i < s->height && j >= 0 && j < s->width;
}

static void image_to_col(const conv_shape *s, const real *x, real *col) {
    size_t bytes = (size_t)s->in * sizeof *x;
    for (int64_t p = 0; p < s->out_height * s->out_width; p++) {
        int64_t top = p / s->out_width * s->stride - s->pad;
        int64_t left = p % s->out_width * s->stride - s->pad;
        for (int64_t i = top; i < top + s->kernel_h; i++)
            for (int64_t j = left; j < left + s->kernel_w; j++, col += s->in)
                if (inside(s, i, j))
                    memcpy(col, x + (i * s->width + j) * s->in, bytes);
                else
                    memset(col, 0, bytes);
    }
}

static void add_col_to_image(const conv_shape *s, const real *col, real *dx) {
    for (int64_t p = 0; p < s->out_height * s->out_width; p++) {
        int64_t top = p / s->out_width * s->stride - s->pad;
        int64_t left = p % s->out_width * s->stride - s->pad;
        for (int64_t i = top; i < top + s->kernel_h; i++)
            for (int64_t j = left; j < left + s->kernel_w; j++, col += s->in) {
                if (!inside(s, i, j)) continue;
                real *to = dx + (i * s->width + j) * s->in;
                for (int64_t c = 0; c < s->in; c++) to[c] += col[c];
            }
    }
}

static void run_images(const work *k, int threads, conv_pass pass, const conv_arrays *a) {
    const int64_t P = k->positions, K = k->patch, out = k->s.out;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t n = 0; n < k->s.images; n++) {
        real *col = k->col + omp_get_thread_num() * P * K;
        real *x = a->x + n * k->x_size, *y = a->y + n * k->y_size;
        if (pass == CONV_FORWARD) {
            image_to_col(&k->s, x, col);
            gemm_chunk(false, true, P, out, K, 1, col, K, a->w, K, 0, y, out);
        } else {
            gemm_chunk(false, false, P, K, out, 1, y, out, a->w, K, 0, col, K);
            if (!a->add) memset(x, 0, (size_t)k->x_size * sizeof *x);
            add_col_to_image(&k->s, col, x);
        }
    }
}

static void run_weights(const work *k, int threads, const conv_arrays *a) {
    const int64_t chunks = conv_chunks(&k->s), P = k->positions, K = k->patch, out = k->s.out;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < chunks; i++) {
        real *col = k->col + omp_get_thread_num() * P * K;
        const int64_t from = i * CONV_CHUNK, end = from + CONV_CHUNK;
        for (int64_t n = from; n < end && n < k->s.images; n++) {
            image_to_col(&k->s, a->x + n * k->x_size, col);
            gemm_chunk(true, false, out, K, P, 1, a->y + n * k->y_size, out, col, K, n > from,
                       k->partial + i * k->w_size, K);
        }
    }
    for (int64_t j = 0; j < k->w_size; j++) {
        real sum = a->add ? a->w[j] : 0;
        for (int64_t i = 0; i < chunks; i++) sum += k->partial[i * k->w_size + j];
        a->w[j] = sum;
    }
}

sr_status conv_im2col(int threads, conv_pass pass, const conv_shape *s, const conv_arrays *a,
                      sr_failure *why) {
    work k = {.s = *s};
    k.x_size = s->height * s->width * s->in;
    k.positions = s->out_height * s->out_width;
    k.y_size = k.positions * s->out;
    k.patch = s->kernel_h * s->kernel_w * s->in;
    k.w_size = s->out * k.patch;
    k.col = malloc((size_t)(threads * k.positions * k.patch) * sizeof *k.col);
    if (pass == CONV_BACKWARD_WEIGHTS)
        k.partial = malloc((size_t)(conv_chunks(s) * k.w_size) * sizeof *k.partial);
    bool enough = k.col && (k.partial || pass != CONV_BACKWARD_WEIGHTS);
    if (enough && pass == CONV_BACKWARD_WEIGHTS)
        run_weights(&k, threads, a);
    else if (enough)
        run_images(&k, threads, pass, a);
    free(k.col);
    free(k.partial);
    return enough ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for a convolution");
}
