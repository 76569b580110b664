/* moments.c -- mean, biased variance and mean square per feature over the valid rows; the three
 * sums of the backward pass; norms of the gradient of a row normalization.
 *
 *   mean[c] = sum_i x[i,c] / n      variance[c] = sum_i (x[i,c] - mean[c])^2 / n
 *   mean_square[c] = sum_i x[i,c]^2 / n
 *   sum_g[c] = sum_i g[i,c]         sum_gc[c] = sum_i g[i,c] (x[i,c] - center[c])
 *   sum_gg[c] = sum_i g[i,c]^2
 *
 * x, g: element (o, c, i) of [outer, channels, inner]; a row is one (o, i), valid [outer * inner]
 * or NULL. Memory is read once. A block of n_b valid values is added by its deviations from the
 * mean of the n_a earlier values. This is the pairwise update of Chan, Golub and LeVeque (1979) in
 * another form:
 *
 *   S = sum (x - mean), Q = sum (x - mean)^2, n = n_a + n_b:   mean += S / n;  M2 += Q - S^2 / n
 *
 * S^2 <= n_b Q, so at most n_b / n of Q cancels: half of it for n_a = n_b. The first
 * block has no earlier mean. It uses deviations from its first row if it has ROWS rows, and from
 * its own mean if it is longer. mean_square = M2 / n + mean^2 is a sum of positive terms. All sums
 * are in double, for any type of element.
 */
#include "statrec/moments.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "moments/simd_load.h"

/* A block has ROWS rows, or PAIRS of gradients and inputs of at most TILE features, or RUN values
 * of one feature. Later rows and values are prefetched the last two numbers of bytes ahead. */
enum { ROWS = 8, PAIRS = 4, TILE = 512, RUN = 2048, AHEAD_BYTES = 16384, PLANE_AHEAD = 4096 };

/* The sums of the backward pass: g, g (x - center), g^2, each [channels]. */
typedef struct gradient_sums {
    double *g, *gc, *gg;
} gradient_sums;

/* Rows of gradients and inputs, and later rows to prefetch. */
typedef struct row_pairs {
    const void *g[PAIRS], *x[PAIRS], *g_later[PAIRS], *x_later[PAIRS];
} row_pairs;

/* The inner loops for elements of one type. */
typedef struct kernels {
    size_t size; /* size of an element */
    void (*read)(const void *x, int64_t n, double *to);
    void (*merge_rows)(const void *const *rows, const void *const *later, int n, int64_t width,
                       double share, double *mean, double *m2);
    void (*add_pairs)(const row_pairs *rows, int n, int64_t width, const double *center,
                      gradient_sums to);
    void (*sum_values)(const void *x, int64_t n, double pivot, double *sum, double *square);
    void (*sum_gradients)(const void *g, const void *x, int64_t n, double center, double sums[3]);
    void (*sum_products)(const void *g, const void *x, const double *gamma, int64_t n, double pivot,
                         double sums[5]);
    int64_t (*keep_valid)(const void *x, int64_t n, const uint8_t *valid, void *kept);
} kernels;

#define ELEMENT float
#define NAME(x) x##_float
#include "moments/moments_kernels.h"
#define ELEMENT double
#define NAME(x) x##_double
#include "moments/moments_kernels.h"
#define ELEMENT uint16_t
#define NAME(x) x##_bfloat16
#include "moments/moments_kernels.h"
#define ELEMENT uint16_t
#define NAME(x) x##_half
#include "moments/moments_kernels.h"

static const kernels *kernels_of(sr_element element) {
    static const kernels *const of[] = {
        [SR_FLOAT32] = &kernels_float,
        [SR_FLOAT64] = &kernels_double,
        [SR_BFLOAT16] = &kernels_bfloat16,
        [SR_FLOAT16] = &kernels_half,
    };
    return of[element];
}

static const void *element_at(const sr_tensor *t, int64_t i) {
    return (const char *)t->data + (size_t)i * kernels_of(t->element)->size;
}

/* -- features innermost (inner = 1) ------------------------------------------------------------ */

/* Valid rows in their order, and the rows AHEAD_BYTES later. */
typedef struct row_cursor {
    const sr_tensor *t;
    int most; /* rows at once */
    int64_t at, later_at, row[ROWS], later[ROWS];
} row_cursor;

/* The next valid rows from *at on, at most `most`. */
static int next_rows(const sr_tensor *t, int64_t *at, int most, int64_t *row) {
    int n = 0;
    for (; *at < t->outer && n < most; ++*at)
        if (!t->valid || t->valid[*at]) row[n++] = *at;
    return n;
}

static row_cursor open_rows(const sr_tensor *t, int most) {
    row_cursor w = {.t = t, .most = most};
    const int64_t bytes = t->channels * (int64_t)kernels_of(t->element)->size;
    for (int64_t ahead = 0; ahead < AHEAD_BYTES && w.later_at < t->outer; ahead += most * bytes)
        next_rows(t, &w.later_at, most, w.later);
    return w;
}

static int advance(row_cursor *w) {
    const int n = next_rows(w->t, &w->at, w->most, w->row);
    const int later = next_rows(w->t, &w->later_at, w->most, w->later);
    for (int r = later; r < n; r++) w->later[r] = w->row[r];
    return n;
}

static const void *row_at(const sr_tensor *t, int64_t row, int64_t c) {
    return element_at(t, row * t->channels + c);
}

static int64_t moments_of_columns(const sr_tensor *t, double *mean, double *m2) {
    const kernels *kernel = kernels_of(t->element);
    const void *x[ROWS], *later[ROWS];
    row_cursor w = open_rows(t, ROWS);
    int64_t before = 0;
    for (int n; (n = advance(&w)) > 0; before += n) {
        for (int r = 0; r < n; r++)
            x[r] = row_at(t, w.row[r], 0), later[r] = row_at(t, w.later[r], 0);
        if (before == 0) kernel->read(x[0], t->channels, mean);
        kernel->merge_rows(x, later, n, t->channels, 1 / (double)(before + n), mean, m2);
    }
    return before;
}

/* -- features outermost or in the middle (inner > 1) ------------------------------------------- */

/* At most RUN neighbouring positions, n of them valid. at: index of the first, in the first
   feature. */
typedef struct run {
    int64_t at, length, n;
    const uint8_t *valid;
} run;

static run run_of(const sr_tensor *t, int64_t o, int64_t i) {
    run r = {.at = o * t->channels * t->inner + i,
             .length = t->inner - i < RUN ? t->inner - i : RUN,
             .valid = t->valid ? t->valid + o * t->inner + i : NULL};
    r.n = r.valid ? 0 : r.length;
    for (int64_t k = 0; k < r.length && r.valid; k++) r.n += r.valid[k] != 0;
    return r;
}

/* The run's valid values of a feature, in the tensor or in scratch. */
static const void *valid_of(const sr_tensor *t, const run *r, int64_t c, double *scratch) {
    const void *x = element_at(t, r->at + c * t->inner);
    if (!r->valid) return x;
    kernels_of(t->element)->keep_valid(x, r->length, r->valid, scratch);
    return scratch;
}

/* Merges a run into the moments of `before` earlier values. */
static void merge_run(const sr_tensor *t, const run *r, int64_t before, double *mean, double *m2) {
    double scratch[RUN], sum, square;
    const kernels *kernel = kernels_of(t->element);
    const double share = 1 / (double)(before + r->n);
    for (int64_t c = 0; c < t->channels && r->n > 0; c++) {
        const void *x = valid_of(t, r, c, scratch);
        if (before == 0) { /* the mean of these values, by deviations from the first */
            kernel->read(x, 1, &mean[c]);
            kernel->sum_values(x, r->n, mean[c], &sum, &square);
            mean[c] += sum / (double)r->n;
        }
        kernel->sum_values(x, r->n, mean[c], &sum, &square);
        const double step = sum * share;
        mean[c] += step, m2[c] += square - sum * step;
    }
}

static int64_t moments_of_planes(const sr_tensor *t, double *mean, double *m2) {
    int64_t before = 0;
    for (int64_t o = 0; o < t->outer; o++)
        for (int64_t i = 0; i < t->inner; i += RUN) {
            const run r = run_of(t, o, i);
            merge_run(t, &r, before, mean, m2);
            before += r.n;
        }
    return before;
}

int64_t sr_moments(const sr_tensor *x, double *mean, double *variance, double *mean_square) {
    const size_t bytes = (size_t)x->channels * sizeof *mean;
    memset(mean, 0, bytes), memset(variance, 0, bytes);
    const int64_t n = (x->inner == 1 ? moments_of_columns : moments_of_planes)(x, mean, variance);
    for (int64_t c = 0; c < x->channels; c++) {
        if (n == 0) mean[c] = NAN;
        variance[c] = n ? variance[c] / (double)n : NAN;
        mean_square[c] = variance[c] + mean[c] * mean[c];
    }
    return n;
}

/* -- backward ---------------------------------------------------------------------------------- */

/* Gradients and inputs. Equal types are read as stored, two types as double. */
typedef struct pair {
    const sr_tensor *g, *x;
    bool alike;
    const kernels *kernel;
    const double *center;
    gradient_sums to;
} pair;

/* n elements of t from x on, in the type of the pair's kernels. */
static const void *as_alike(const pair *p, const sr_tensor *t, const void *x, int64_t n,
                            double *scratch) {
    if (p->alike) return x;
    kernels_of(t->element)->read(x, n, scratch);
    return scratch;
}

static void add_tile(const pair *p, const row_cursor *w, int n, int64_t c, int64_t width) {
    double of_g[PAIRS][TILE], of_x[PAIRS][TILE];
    const gradient_sums to = {p->to.g + c, p->to.gc + c, p->to.gg + c};
    row_pairs rows;
    for (int r = 0; r < n; r++) {
        rows.g[r] = as_alike(p, p->g, row_at(p->g, w->row[r], c), width, of_g[r]);
        rows.x[r] = as_alike(p, p->x, row_at(p->x, w->row[r], c), width, of_x[r]);
        rows.g_later[r] = row_at(p->g, w->later[r], c);
        rows.x_later[r] = row_at(p->x, w->later[r], c);
    }
    p->kernel->add_pairs(&rows, n, width, p->center + c, to);
}

static void sums_of_columns(const pair *p) {
    row_cursor w = open_rows(p->x, PAIRS);
    for (int n; (n = advance(&w)) > 0;)
        for (int64_t c = 0; c < p->x->channels; c += TILE) {
            const int64_t left = p->x->channels - c;
            add_tile(p, &w, n, c, left < TILE ? left : TILE);
        }
}

static void sums_of_run(const pair *p, const run *r) {
    double of_g[RUN], of_x[RUN], alike_g[RUN], alike_x[RUN], sums[3];
    for (int64_t c = 0; c < p->x->channels; c++) {
        const void *g = as_alike(p, p->g, valid_of(p->g, r, c, of_g), r->n, alike_g);
        const void *x = as_alike(p, p->x, valid_of(p->x, r, c, of_x), r->n, alike_x);
        p->kernel->sum_gradients(g, x, r->n, p->center[c], sums);
        p->to.g[c] += sums[0], p->to.gc[c] += sums[1], p->to.gg[c] += sums[2];
    }
}

static void sums_of_planes(const pair *p) {
    for (int64_t o = 0; o < p->x->outer; o++)
        for (int64_t i = 0; i < p->x->inner; i += RUN) {
            const run r = run_of(p->x, o, i);
            sums_of_run(p, &r);
        }
}

void sr_gradient_sums(const sr_tensor *g, const sr_tensor *x, const double *center, double *sum_g,
                      double *sum_gc, double *sum_gg) {
    const size_t bytes = (size_t)x->channels * sizeof *sum_g;
    const bool alike = g->element == x->element;
    const pair p = {.g = g,
                    .x = x,
                    .alike = alike,
                    .kernel = alike ? kernels_of(x->element) : &kernels_double,
                    .center = center,
                    .to = {sum_g, sum_gc, sum_gg}};
    memset(sum_g, 0, bytes), memset(sum_gc, 0, bytes), memset(sum_gg, 0, bytes);
    (x->inner == 1 ? sums_of_columns : sums_of_planes)(&p);
}

/* -- gradient of a row normalization ----------------------------------------------------------- */

/* Adds the sums of one row: of x - pivot, its square, q = gamma g, q^2 and q (x - pivot). */
static void add_row(const sr_tensor *g, const sr_tensor *x, int64_t row, const double *gamma,
                    double pivot, double sums[5]) {
    const int64_t d = x->channels;
    if (g->element == x->element) {
        kernels_of(x->element)
            ->sum_products(row_at(g, row, 0), row_at(x, row, 0), gamma, d, pivot, sums);
        return;
    }
    double of_g[TILE], of_x[TILE];
    for (int64_t c = 0; c < d; c += TILE) {
        const int64_t n = d - c < TILE ? d - c : TILE;
        kernels_of(g->element)->read(row_at(g, row, c), n, of_g);
        kernels_of(x->element)->read(row_at(x, row, c), n, of_x);
        kernels_double.sum_products(of_g, of_x, gamma ? gamma + c : NULL, n, pivot, sums);
    }
}

/* With d features, xhat = (x - mean) / s and q = gamma g:
 *
 *   dx = (q - mean(q) - xhat mean(q xhat)) / s
 *   s^2 |dx|^2 = |q|^2 - d mean(q)^2 - (2 - variance / s^2) d mean(q xhat)^2
 *
 * The root mean square alone leaves out both means. */
void sr_row_norms(const sr_tensor *g, const sr_tensor *x, const double *gamma, double eps,
                  bool root, double square[2]) {
    const double d = (double)x->channels;
    square[0] = square[1] = 0;
    for (int64_t r = 0; r < x->outer; r++) {
        if (x->valid && !x->valid[r]) continue;
        double pivot = 0, sums[5] = {0};
        if (!root) kernels_of(x->element)->read(row_at(x, r, 0), 1, &pivot);
        add_row(g, x, r, gamma, pivot, sums);
        const double mean = root ? 0 : sums[0] / d, mean_q = root ? 0 : sums[2] / d;
        const double spread = sums[1] / d - mean * mean, variance = spread < 0 ? 0 : spread;
        const double s2 = variance + eps, share = (sums[4] - mean * sums[2]) / d;
        const double dx =
            sums[3] - d * (mean_q * mean_q + (2 - variance / s2) * share * share / s2);
        square[0] += (dx < 0 ? 0 : dx) / s2, square[1] += sums[3] / s2; /* NaN stays */
    }
}

/* -- a whole pass ------------------------------------------------------------------------------ */

/* sum_gg[c] of g^2 alone; scratch [2, channels]. */
static void squares_of(const sr_tensor *g, double *scratch, double *sum_gg) {
    const kernels *kernel = kernels_of(g->element);
    if (g->inner == 1) {
        const int64_t n = sr_moments(g, scratch, scratch + g->channels, sum_gg);
        for (int64_t c = 0; c < g->channels; c++) sum_gg[c] *= (double)n;
        return;
    }
    memset(sum_gg, 0, (size_t)g->channels * sizeof *sum_gg);
    for (int64_t o = 0; o < g->outer; o++)
        for (int64_t i = 0; i < g->inner; i += RUN) {
            const run r = run_of(g, o, i);
            for (int64_t c = 0; c < g->channels; c++) {
                double sum, square;
                kernel->sum_values(element_at(g, r.at + c * g->inner), r.n, 0, &sum, &square);
                sum_gg[c] += square;
            }
        }
}

void sr_sum_pass(const sr_pass_sums *p) {
    enum { MEAN, VARIANCE, SUM_G, SUM_GC, SUM_GG, GAIN };
    const int64_t d = p->channels;
    const sr_tensor g = SR_INIT(sr_tensor, p->g, p->element, p->outer, d, p->inner, NULL, 0);
    const sr_tensor x = SR_INIT(sr_tensor, p->x, p->element, p->outer, d, p->inner, NULL, 0);
    double *row[6];
    for (int i = 0; i < 6; i++) row[i] = p->to + i * d;
    if (p->vector[MEAN]) {
        if (p->g) squares_of(&g, row[MEAN], row[SUM_GG]); /* two rows that are filled below */
    } else {
        sr_moments(&x, row[MEAN], row[VARIANCE], row[SUM_GG]);
        sr_gradient_sums(&g, &x, row[MEAN], row[SUM_G], row[SUM_GC], row[SUM_GG]);
    }
    for (int i = 0; i < 5; i++)
        if (p->vector[i])
            kernels_of(p->vector_element)->read(p->vector[i], d, row[i < 4 ? i : GAIN]);
    for (int64_t c = 0; c < d && !p->vector[4]; c++) row[GAIN][c] = 1;
    if (p->square)
        sr_row_norms(&g, &x, p->vector[4] ? row[GAIN] : NULL, p->eps, p->root, p->square);
}

void sr_read_vectors(const void *const *from, const int64_t *n, int64_t count, sr_element element,
                     double *to) {
    for (int64_t i = 0; i < count; to += n[i], i++) kernels_of(element)->read(from[i], n[i], to);
}
