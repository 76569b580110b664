/* group_stats.c -- statistics over the rows of one sample and a group of features (docs/norms.md 8,
 * 9).
 *
 * d features are cut into G consecutive groups of w = d/G. For one sample with r valid rows and one
 * group, m = r w values, g = dL/dy, q = gamma g:
 *
 *     forward   mu = mean[x]  v = mean[(x - mu)^2]  s = sqrt(v + eps)  xhat = (x - mu)/s
 *               y = gamma xhat + beta
 *     backward  dx = (q - mean[q] - xhat mean[q xhat]) / s
 *               sum_g = sum over all rows of g    sum_gx = sum over all rows of g xhat
 *
 * Column statistics of the sample's rows (column_passes.c) are merged over a group's columns: mean
 * of the means, m2 = sum m2_k + r (mean_k - mu)^2. No state, biased, the same in training and
 * inference. Without sample numbers every row is a sample. Kept: the rows by sample, mean and 1/s
 * [samples, d].
 *
 * Samples are processed in fixed chunks; sums over samples are merged in order. */
#include "norm/kernels/group_stats.h"

#include <math.h>
#include <string.h>

#include "norm/kernels/batch_stats.h"

enum { CHUNKS = 32, ARRAYS = 8 };

typedef struct group_stats_kept {
    int64_t samples;
    int64_t most;    /* rows of the largest sample */
    int64_t *start;  /* [samples + 1] offsets in row */
    int32_t *row;    /* [valid] row numbers, sample after sample */
    double *center;  /* [samples, d] */
    double *inverse; /* [samples, d] */
} group_stats_kept;

size_t group_stats_kept_bytes(const norm_call *c) {
    (void)c;
    return sizeof(group_stats_kept);
}

/* Sorts valid rows by sample, in order within each. */
static sr_status sort_rows(const norm_call *c, group_stats_kept *k) {
    const norm_rows *r = c->rows;
    k->samples = r->sample ? r->samples : r->valid;
    size_t sample_bytes = (size_t)(k->samples + 2) * sizeof *k->start;
    size_t bytes = (size_t)(k->samples * c->features) * sizeof *k->center;
    k->start = tape_alloc(c->tape, sample_bytes);
    k->row = tape_alloc(c->tape, (size_t)r->valid * sizeof *k->row);
    k->center = tape_alloc(c->tape, bytes);
    k->inverse = tape_alloc(c->tape, bytes);
    if (!k->start || !k->row || !k->center || !k->inverse) return SR_MEMORY;
    memset(k->start, 0, sample_bytes);
    for (int64_t i = 0; i < r->valid; i++) {
        int64_t s = r->sample ? r->sample[norm_row_number(r, i)] : i;
        if (s < 0 || s >= k->samples)
            return tape_fail(c->tape, SR_USAGE, "row %lld is of sample %lld of %lld",
                             (long long)norm_row_number(r, i), (long long)s, (long long)k->samples),
                   SR_USAGE;
        k->start[s + 2]++;
    }
    for (int64_t s = 0; s < k->samples; s++) {
        if (k->start[s + 2] > k->most) k->most = k->start[s + 2];
        k->start[s + 2] += k->start[s + 1];
    }
    for (int64_t i = 0; i < r->valid; i++) {
        int64_t s = r->sample ? r->sample[norm_row_number(r, i)] : i;
        k->row[k->start[s + 1]++] = (int32_t)norm_row_number(r, i);
    }
    return SR_OK;
}

static column_passes rows_of(const norm_call *c, const group_stats_kept *k, int64_t s,
                             double *scratch) {
    return (column_passes){.rows = k->start[s + 1] - k->start[s],
                           .features = c->features,
                           .index = k->row + k->start[s],
                           .threads = 1,
                           .tape = c->tape,
                           .scratch = scratch};
}

/* Doubles of one chunk: ARRAYS arrays [d] and scratch memory of the column passes. */
static int64_t scratch_width(const norm_call *c, const group_stats_kept *k) {
    return ARRAYS * c->features + column_passes_scratch_count(k->most, c->features);
}

static double *make_scratch(const norm_call *c, const group_stats_kept *k) {
    return tape_alloc(c->tape, (size_t)(CHUNKS * scratch_width(c, k)) * sizeof(double));
}

/* Merges column means and m2 into the group's center and 1/s, for every column of the group. */
static void merge_groups(const norm_call *c, int64_t groups, int64_t rows, const double *mean,
                         const double *m2, double *center, double *inverse) {
    int64_t w = c->features / groups;
    for (int64_t j = 0; j < groups; j++) {
        double mu = 0, square = 0;
        for (int64_t k = j * w; k < (j + 1) * w; k++) mu += mean[k];
        mu /= (double)w;
        for (int64_t k = j * w; k < (j + 1) * w; k++)
            square += m2[k] + (double)rows * (mean[k] - mu) * (mean[k] - mu);
        double s = sqrt(square / (double)(rows * w) + c->options->eps);
        for (int64_t k = j * w; k < (j + 1) * w; k++) {
            center[k] = mu;
            inverse[k] = 1 / s;
        }
    }
}

static void sample_forward(const norm_call *c, const group_stats_kept *k, int64_t groups, int64_t s,
                           double *scratch, const real *x, real *y) {
    int64_t d = c->features;
    double *mean = scratch, *m2 = mean + d, *scale = m2 + d, *shift = scale + d;
    double *center = k->center + s * d, *inverse = k->inverse + s * d;
    column_passes m = rows_of(c, k, s, scratch + ARRAYS * d);
    if (!m.rows) return;
    column_passes_moments(&m, x, mean, m2);
    merge_groups(c, groups, m.rows, mean, m2, center, inverse);
    for (int64_t j = 0; j < d; j++) {
        scale[j] = (double)c->gamma[j] * inverse[j];
        shift[j] = (double)c->beta[j];
    }
    column_passes_scale(&m, x, center, scale, shift, y);
}

sr_status group_stats_forward(norm_call *c, int64_t groups, const real *x, real *y) {
    group_stats_kept *k = c->kept;
    sr_status status = sort_rows(c, k);
    if (status != SR_OK) return status;
    double *scratch = make_scratch(c, k);
    if (!scratch) return SR_MEMORY;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < CHUNKS; i++)
        for (int64_t s = k->samples * i / CHUNKS; s < k->samples * (i + 1) / CHUNKS; s++)
            sample_forward(c, k, groups, s, scratch + i * scratch_width(c, k), x, y);
    return SR_OK;
}

/* b and c of dx = a g + b + c (x - center), group by group. */
static void group_terms(const norm_call *c, int64_t groups, int64_t rows, const double *sum_g,
                        const double *sum_gx, const double *inverse, double *a, double *b,
                        double *slope) {
    int64_t w = c->features / groups;
    for (int64_t j = 0; j < groups; j++) {
        double q = 0, qx = 0, m = (double)(rows * w);
        for (int64_t k = j * w; k < (j + 1) * w; k++) {
            q += (double)c->gamma[k] * sum_g[k];
            qx += (double)c->gamma[k] * sum_gx[k];
        }
        for (int64_t k = j * w; k < (j + 1) * w; k++) {
            a[k] = (double)c->gamma[k] * inverse[k];
            b[k] = -inverse[k] * (q / m);
            slope[k] = -inverse[k] * (qx / m) * inverse[k];
        }
    }
}

/* Adds the sample's sums to total_g and total_gx (scratch arrays 0 and 1). With a hook, also adds
 * the squares of dx and of its direct part to square [2]. */
static void sample_backward(const norm_call *c, const group_stats_kept *k, int64_t groups,
                            int64_t s, double *scratch, const real *x, const real *dy, real *dx,
                            double *square) {
    int64_t d = c->features;
    double *total_g = scratch, *total_gx = total_g + d, *sum_g = total_gx + d, *sum_gx = sum_g + d;
    double *a = sum_gx + d, *b = a + d, *slope = b + d;
    const double *center = k->center + s * d, *inverse = k->inverse + s * d;
    column_passes m = rows_of(c, k, s, scratch + ARRAYS * d);
    if (!m.rows) return;
    column_passes_gradient_sums(&m, x, dy, center, inverse, sum_g, sum_gx);
    for (int64_t j = 0; j < d; j++) {
        total_g[j] += sum_g[j];
        total_gx[j] += sum_gx[j];
    }
    group_terms(c, groups, m.rows, sum_g, sum_gx, inverse, a, b, slope);
    column_passes_line line = {center, a, b, slope};
    dx_norms norms = {0};
    column_passes_combine(&m, x, dy, &line, dx, c->has_hook ? &norms : NULL);
    square[0] += norms.dx2;
    square[1] += norms.direct2;
}

sr_status group_stats_backward(norm_call *c, int64_t groups, const real *x, const real *dy,
                               real *dx) {
    const group_stats_kept *k = c->kept;
    int64_t d = c->features, width = scratch_width(c, k);
    double *scratch = make_scratch(c, k), square[CHUNKS][2] = {{0}};
    if (!scratch) return SR_MEMORY;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < CHUNKS; i++) {
        memset(scratch + i * width, 0, (size_t)(2 * d) * sizeof *scratch);
        for (int64_t s = k->samples * i / CHUNKS; s < k->samples * (i + 1) / CHUNKS; s++)
            sample_backward(c, k, groups, s, scratch + i * width, x, dy, dx, square[i]);
    }
    double *sum_g = c->stat[NORM_sum_g], *sum_gx = c->stat[NORM_sum_gx];
    for (int64_t j = 0; j < d; j++) sum_g[j] = sum_gx[j] = 0;
    for (int64_t i = 0; i < CHUNKS; i++) {
        for (int64_t j = 0; j < d; j++) {
            sum_g[j] += scratch[i * width + j];
            sum_gx[j] += scratch[i * width + d + j];
        }
    }
    dx_norms norms = {0};
    for (int i = 0; i < CHUNKS; i++) norms.dx2 += square[i][0], norms.direct2 += square[i][1];
    batch_record_norms(c, &norms);
    return SR_OK;
}
