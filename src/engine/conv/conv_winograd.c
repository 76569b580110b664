/* conv_winograd.c -- 3 x 3 convolutions of stride 1 and padding 1 by Winograd (winograd.h).
 *
 * Tiles of 4 x 4 pixels cover an image. Pixels beyond the image are zeros, which are not stored.
 * For each of the 36 points f and tiles t, with K channels read and N written:
 *   forward  V_f [t, K] from x,   M_f = V_f U_f,        y from M_f,   U_f [K, N] from w
 *   dx       the same from dy, with the taps of w reversed and in and out exchanged
 *   dw       V_f [t, in] from x, W_f [t, out] from dy,  dw from the sum over t of W_f^T V_f
 * A thread transforms, multiplies and transforms back one block of tile rows at a time, in its
 * scratch memory. It copies whole tile rows in and out: memory is then read line by line, in half
 * the time of single tiles. Blocks and chunks (CONV_CHUNK images, whose sums of dw are added in
 * order) depend on the shape alone, and so do the results. */
#include <omp.h>

#include "engine/conv/conv.h"
#include "engine/conv/winograd.h"

/* Tiles of a block, unless a tile row has more. 16 to 64 take the same time. */
enum { BLOCK = 32 };

typedef struct work {
    conv_pass pass;
    conv_arrays a;
    int threads;
    int64_t images, height, width;
    int64_t in, out;               /* channels of the weights */
    int64_t read, written;         /* K and N; for dw: out, in */
    int64_t across, tile_rows;     /* tiles of a tile row, tile rows of an image */
    int64_t block;                 /* tile rows */
    int64_t read_step, write_step; /* numbers of a point in a block, read and written */
    real *u;                       /* [36, K, N] */
    real *taps;    /* forward: w as [9, K, N]; dw: sums of the chunks [chunks, out, 3, 3, in] */
    real *scratch; /* [threads, scratch_size] */
    int64_t scratch_size;
} work;

/* Scratch memory of a thread. */
typedef struct thread_scratch {
    real *pixels;         /* [6, 4 across + 2, channels] */
    real *read, *written; /* [36, read_step], [36, write_step] */
    real *u;              /* dw: [36, out, in] */
} thread_scratch;

static int64_t pixels_across(const work *k) {
    return k->across * WINO_OUT + 2;
}

static int64_t scratch_layout(const work *k, real *memory, thread_scratch *l) {
    int64_t channels = k->read > k->written ? k->read : k->written;
    l->pixels = memory;
    l->read = l->pixels + WINO_IN * pixels_across(k) * channels;
    l->written = l->read + WINO_POINTS * k->read_step;
    l->u = l->written + WINO_POINTS * k->write_step;
    return l->u - memory + (k->pass == CONV_BACKWARD_WEIGHTS ? WINO_POINTS * k->in * k->out : 0);
}

static thread_scratch scratch_of(const work *k) {
    thread_scratch l;
    scratch_layout(k, k->scratch + omp_get_thread_num() * k->scratch_size, &l);
    return l;
}

/* -- tile rows --------------------------------------------------------------------------------- */

/* Tile rows are numbered through all images. */
typedef struct tile_row {
    int64_t image, row; /* first row of the output */
} tile_row;

static tile_row tile_row_at(const work *k, int64_t number) {
    return (tile_row){number / k->tile_rows, number % k->tile_rows * WINO_OUT};
}

/* Copies row `row` of an image with zeros around it: `before` pixels, the image row, then up to the
 * end. */
static void copy_row(const work *k, const real *image, int64_t channels, int64_t row,
                     int64_t before, real *to) {
    const int64_t all = pixels_across(k) * channels, length = k->width * channels;
    if (row < 0 || row >= k->height) {
        memset(to, 0, (size_t)all * sizeof *to);
        return;
    }
    before *= channels;
    memset(to, 0, (size_t)before * sizeof *to);
    memcpy(to + before, image + row * length, (size_t)length * sizeof *to);
    memset(to + before + length, 0, (size_t)(all - before - length) * sizeof *to);
}

static void copy_tile_row(const work *k, const real *x, int64_t channels, int64_t number,
                          int64_t before, int rows, real *to) {
    tile_row p = tile_row_at(k, number);
    const real *image = x + p.image * k->height * k->width * channels;
    for (int r = 0; r < rows; r++)
        copy_row(k, image, channels, p.row - before + r, before,
                 to + r * pixels_across(k) * channels);
}

/* Tile t of a tile row. */
static wino_grid tile_of(const work *k, real *pixels, int64_t channels, int64_t t) {
    return (wino_grid){pixels + t * WINO_OUT * channels, pixels_across(k) * channels, channels};
}

/* B^T d B of a block of tile rows. */
static void read_inputs(const work *k, const real *x, int64_t channels, int64_t first,
                        int64_t count, real *pixels, real *points, int64_t step) {
    for (int64_t s = 0; s < count; s++) {
        copy_tile_row(k, x, channels, first + s, 1, WINO_IN, pixels);
        for (int64_t t = 0; t < k->across; t++, points += channels)
            wino_channels(wino_input, WINO_IN, WINO_IN, channels, tile_of(k, pixels, channels, t),
                          wino_points(points, step));
    }
}

/* A dY A^T of a block of tile rows. */
static void read_gradients(const work *k, int64_t first, int64_t count, real *pixels, real *points,
                           int64_t step) {
    for (int64_t s = 0; s < count; s++) {
        copy_tile_row(k, k->a.y, k->out, first + s, 0, WINO_OUT, pixels);
        for (int64_t t = 0; t < k->across; t++, points += k->out)
            wino_channels(wino_output_gradient, WINO_OUT, WINO_IN, k->out,
                          tile_of(k, pixels, k->out, t), wino_points(points, step));
    }
}

static void store_tile_row(const work *k, real *y, int64_t channels, int64_t number,
                           const real *from) {
    const int64_t length = k->width * channels;
    tile_row p = tile_row_at(k, number);
    y += p.image * k->height * length;
    for (int64_t i = p.row; i < p.row + WINO_OUT && i < k->height; i++) {
        real *restrict to = y + i * length;
        if (k->a.add)
            for (int64_t c = 0; c < length; c++) to[c] += from[c];
        else
            memcpy(to, from, (size_t)length * sizeof *to);
        from += pixels_across(k) * channels;
    }
}

/* A^T m A of a block of tile rows. */
static void write_outputs(const work *k, real *y, int64_t first, int64_t count,
                          const thread_scratch *l) {
    real *points = l->written;
    for (int64_t s = 0; s < count; s++) {
        for (int64_t t = 0; t < k->across; t++, points += k->written)
            wino_channels(wino_output, WINO_IN, WINO_OUT, k->written,
                          wino_points(points, k->write_step), tile_of(k, l->pixels, k->written, t));
        store_tile_row(k, y, k->written, first + s, l->pixels);
    }
}

/* Prefetches one of 36 parts of the next block, so that memory works during the products. */
static void prefetch_next(const work *k, const real *x, int64_t channels, int64_t next, int f) {
    const int64_t all = k->images * k->height * k->width * channels;
    const int64_t count = k->block * WINO_OUT * k->width * channels / WINO_POINTS + 1;
    tile_row p = tile_row_at(k, next);
    int64_t from = (p.image * k->height + p.row) * k->width * channels + f * count;
    int64_t to = from + count < all ? from + count : all;
    for (; from < to; from += TILE_LANES) __builtin_prefetch(x + from, 0, 2);
}

/* -- forward and dx ---------------------------------------------------------------------------- */

/* U of one input channel. dx reads w itself, its last tap first. */
static void transform_weights(const work *k, int64_t row) {
    const int64_t size = k->read * k->written;
    wino_grid from = {k->taps + row * k->written, 3 * size, size};
    if (k->pass == CONV_BACKWARD_DATA)
        from = (wino_grid){k->a.w + (9 * row + 8) * k->written, -3 * k->written, -k->written};
    wino_channels(wino_taps, WINO_TAPS, WINO_IN, k->written, from,
                  wino_points(k->u + row * k->written, size));
}

static void run_block(const work *k, int64_t first, int64_t count, const thread_scratch *l) {
    const bool forward = k->pass == CONV_FORWARD;
    const real *x = forward ? k->a.x : k->a.y;
    read_inputs(k, x, k->read, first, count, l->pixels, l->read, k->read_step);
    for (int f = 0; f < WINO_POINTS; f++) {
        prefetch_next(k, x, k->read, first + count, f);
        small_gemm_product(count * k->across, k->written, k->read,
                           (small_gemm_left){l->read + f * k->read_step, k->read, 1},
                           k->u + f * k->read * k->written, k->written, false,
                           l->written + f * k->write_step, k->written);
    }
    write_outputs(k, forward ? k->a.y : k->a.x, first, count, l);
}

static void run_blocks(const work *k) {
    const int64_t tile_rows = k->images * k->tile_rows;
    for (int64_t tap = 0; k->pass == CONV_FORWARD && tap < 9;
         tap++) /* [out, 9, in] -> [9, in, out] */
        small_transpose(k->out, k->in, k->a.w + tap * k->in, 9 * k->in,
                        k->taps + tap * k->in * k->out, k->out);
#pragma omp parallel num_threads(k->threads)
    {
        thread_scratch l = scratch_of(k);
#pragma omp for schedule(static)
        for (int64_t row = 0; row < k->read; row++) transform_weights(k, row);
#pragma omp for schedule(static)
        for (int64_t s = 0; s < tile_rows; s += k->block)
            run_block(k, s, tile_rows - s < k->block ? tile_rows - s : k->block, &l);
    }
}

/* -- dw ---------------------------------------------------------------------------------------- */

/* u (+=) the sum over a block of tile rows. */
static void add_block(const work *k, int64_t first, int64_t count, bool add,
                      const thread_scratch *l) {
    const int64_t size = k->out * k->in;
    read_gradients(k, first, count, l->pixels, l->read, k->read_step);
    read_inputs(k, k->a.x, k->in, first, count, l->pixels, l->written, k->write_step);
    for (int f = 0; f < WINO_POINTS; f++) {
        prefetch_next(k, k->a.y, k->out, first + count, f);
        prefetch_next(k, k->a.x, k->in, first + count, f);
        small_gemm_product(k->out, k->in, count * k->across,
                           (small_gemm_left){l->read + f * k->read_step, 1, k->out},
                           l->written + f * k->write_step, k->in, add, l->u + f * size, k->in);
    }
}

static void weights_chunk(const work *k, int64_t chunk, const thread_scratch *l) {
    const int64_t size = k->out * k->in;
    int64_t first = chunk * CONV_CHUNK * k->tile_rows, end = first + CONV_CHUNK * k->tile_rows;
    if (end > k->images * k->tile_rows) end = k->images * k->tile_rows;
    for (int64_t s = first; s < end; s += k->block)
        add_block(k, s, end - s < k->block ? end - s : k->block, s > first, l);
    real *dw = k->taps + chunk * 9 * size;
    for (int64_t o = 0; o < k->out; o++)
        wino_channels(wino_taps_gradient, WINO_IN, WINO_TAPS, k->in,
                      wino_points(l->u + o * k->in, size),
                      (wino_grid){dw + 9 * o * k->in, 3 * k->in, k->in});
}

/* Row `row` of dw: each number is the sum of the chunks in order. */
static void merge(const work *k, int64_t chunks, int64_t row) {
    const int64_t length = 9 * k->in, size = k->out * length;
    real *restrict dw = k->a.w + row * length;
    const real *part = k->taps + row * length;
    for (int64_t c = 0; c < length; c++) dw[c] = k->a.add ? dw[c] + part[c] : part[c];
    for (int64_t p = 1; p < chunks; p++)
        for (int64_t c = 0; c < length; c++) dw[c] += part[p * size + c];
}

static void run_weights(const work *k, int64_t chunks) {
#pragma omp parallel num_threads(k->threads)
    {
        thread_scratch l = scratch_of(k);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < chunks; i++) weights_chunk(k, i, &l);
#pragma omp for schedule(static)
        for (int64_t o = 0; o < k->out; o++) merge(k, chunks, o);
    }
}

/* -- a call ------------------------------------------------------------------------------------ */

bool conv_winograd_fits(const conv_shape *s) {
    return s->kernel_h == 3 && s->kernel_w == 3 && s->stride == 1 && s->pad == 1 &&
           s->in % TILE_LANES == 0 && s->out % TILE_LANES == 0;
}

/* Milliseconds of oneDNN's direct code and of Winograd, forward (dx takes as long) and dw, for 128
 * images on one thread with AVX-512:
 *   32 x 32, 16 channels    5.7  4.4    5.2  3.7       32 x 32,  64 channels    170  60    185  59
 *   16 x 16, 32             5.1  2.3    5.2  2.4       16 x 16, 128             161  52    175  62
 *    8 x  8, 64             4.5  1.8    4.9  2.1        8 x  8, 256             148  66    173  80
 *    7 x  7, 64             3.4  1.8    3.7  2.1        4 x  4, 512             170  90    274 192
 *    5 x  5, 64             1.6  1.7    1.9  2.0        2 x  2,  64             0.26 0.44  0.42
 *    0.77
 *
 * Winograd pays when the image is more than half of the tiles that cover it. With AVX2 and FMA it
 * takes a tenth longer. Vectors of 16 bytes at least double its time, while oneDNN uses all vector
 * widths of the CPU. */
bool conv_winograd_pays(const conv_shape *s) {
    int64_t covered = wino_tiles(s->height) * wino_tiles(s->width) * WINO_OUT * WINO_OUT;
    return conv_winograd_fits(s) && TILE_VECTOR_BYTES > 16 && 2 * s->height * s->width > covered;
}

/* Points are not a power of two apart, because a cache has few lines for such addresses. */
static int64_t point_step(const work *k, int64_t channels) {
    return k->block * k->across * channels + TILE_LANES;
}

static work work_of(conv_pass pass, int threads, const conv_shape *s, const conv_arrays *a) {
    work k = {.pass = pass, .a = *a, .threads = threads, .images = s->images};
    k.height = s->height, k.width = s->width, k.in = s->in, k.out = s->out;
    k.read = pass == CONV_FORWARD ? s->in : s->out;
    k.written = pass == CONV_FORWARD ? s->out : s->in;
    k.across = wino_tiles(s->width);
    k.tile_rows = wino_tiles(s->height);
    k.block = k.across < BLOCK ? BLOCK / k.across : 1;
    k.read_step = point_step(&k, k.read), k.write_step = point_step(&k, k.written);
    return k;
}

sr_status conv_winograd(scratch_memory *memory, int threads, conv_pass pass, const conv_shape *s,
                        const conv_arrays *a, sr_failure *why) {
    const bool weights = pass == CONV_BACKWARD_WEIGHTS;
    static real none;
    thread_scratch l;
    work k = work_of(pass, threads, s, a);
    k.scratch_size = scratch_layout(&k, &none, &l);
    int64_t chunks = conv_chunks(s), u = weights ? 0 : WINO_POINTS * s->in * s->out;
    int64_t taps = (weights ? chunks : 1) * 9 * s->in * s->out;
    k.u =
        scratch_memory_of(memory, (size_t)(u + taps + threads * k.scratch_size) * sizeof *k.u, why);
    if (!k.u) return SR_MEMORY;
    k.taps = k.u + u;
    k.scratch = k.taps + taps;
    if (weights)
        run_weights(&k, chunks);
    else
        run_blocks(&k);
    return SR_OK;
}
