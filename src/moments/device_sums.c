/* device_sums.c -- sums that a device has added up, as the recorder takes them.
 *
 * A host in Python could do the same with its tensors. It would hold the interpreter's lock
 * meanwhile, which the training thread waits for.
 *
 * With n rows, sums over them and s = sqrt(variance + eps):
 *
 *   mean = sum x / n                    mean_square = sum x^2 / n
 *   variance = mean_square - mean^2     sum_gc = sum g x - mean sum g
 *   of a batch norm's node:             variance = 1/(1/s)^2 - eps       sum_gc = s sum g xhat
 *
 * The variance loses the digits of (mean/deviation)^2, of the 53 bits that the device adds up.
 */
#include <math.h>
#include <string.h>

#include "statrec/moments.h"

enum { MEAN, VARIANCE, MEAN_SQUARE, SUM_G, SUM_GC, SUM_GG, GAIN, TO_ROWS };
enum { X, XX, G, GX, GG };                  /* rows of sums */
enum { NODE_MEAN, INVERSE, NODE_G, GXHAT }; /* rows of vectors */
enum { DX, DIRECT, LEAST_VARIANCE, LARGEST_MEAN, FOUND };

static const void *at(const void *buffer, int64_t offset) {
    return (const char *)buffer + offset;
}

static double not_negative(double x) {
    return x < 0 ? 0 : x; /* NaN stays */
}

/* Rows of one pass in `to`. */
typedef struct pass_rows {
    double *row[TO_ROWS];
} pass_rows;

static void read_sums(const sr_device_place *p, const double *sums, double n, double scale,
                      const pass_rows *to) {
    for (int64_t c = 0; c < p->channels; c++) {
        const double *s = sums + c;
        const int64_t stride = p->sums_stride;
        const double mean = s[X * stride] / n, square = s[XX * stride] / n;
        to->row[MEAN][c] = mean, to->row[MEAN_SQUARE][c] = square;
        to->row[VARIANCE][c] = not_negative(square - mean * mean);
        to->row[SUM_G][c] = s[G * stride] / scale;
        to->row[SUM_GC][c] = (s[GX * stride] - mean * s[G * stride]) / scale;
        to->row[SUM_GG][c] = s[GG * stride] / (scale * scale);
    }
}

static void read_node(const sr_device_place *p, const float *vectors, const double *squares,
                      double scale, const pass_rows *to) {
    for (int64_t c = 0; c < p->channels; c++) {
        const float *v = vectors + c;
        const int64_t stride = p->vectors_stride;
        const double mean = v[NODE_MEAN * stride], inverse = v[INVERSE * stride];
        const double variance = not_negative(1 / (inverse * inverse) - p->eps);
        to->row[MEAN][c] = mean, to->row[VARIANCE][c] = variance;
        to->row[MEAN_SQUARE][c] = variance + mean * mean;
        to->row[SUM_G][c] = v[NODE_G * stride] / scale;
        to->row[SUM_GC][c] = v[GXHAT * stride] / inverse / scale;
        to->row[SUM_GG][c] = squares[c] / (scale * scale);
    }
}

static double lesser(double a, double b) {
    return b < a || isnan(b) ? b : a; /* NaN stays */
}

static void bounds_of(const pass_rows *to, int64_t channels, double *found) {
    double least = INFINITY, largest = 0;
    for (int64_t c = 0; c < channels; c++) {
        const double mean = to->row[MEAN][c], variance = to->row[VARIANCE][c];
        least = lesser(least, variance);
        largest = -lesser(-largest, -(mean * mean / variance));
    }
    found[LEAST_VARIANCE] = least, found[LARGEST_MEAN] = largest;
}

void sr_read_device_sums(const sr_device_place *places, int64_t count, const void *buffer,
                         double scale, int64_t *rows, double *to, double *found) {
    int64_t width = 0, start = 0;
    for (int64_t i = 0; i < count; i++) width += places[i].channels;
    for (int64_t i = 0; i < count; i++, found += FOUND) {
        const sr_device_place *p = &places[i];
        const double *sums = at(buffer, p->sums), *more = at(buffer, p->more);
        pass_rows here;
        for (int r = 0; r < TO_ROWS; r++) here.row[r] = to + r * width + start;
        if (rows[i] < 0) rows[i] = llround(more[2]);
        if (p->vectors < 0)
            read_sums(p, sums, rows[i] > 0 ? (double)rows[i] : 1, scale, &here);
        else
            read_node(p, at(buffer, p->vectors), sums, scale, &here);
        if (p->gain >= 0)
            sr_read_vectors(&(const void *){at(buffer, p->gain)}, &p->channels, 1, SR_FLOAT32,
                            here.row[GAIN]);
        for (int64_t c = 0; c < p->channels && p->gain < 0; c++) here.row[GAIN][c] = 1;
        found[DX] = more[DX] / (scale * scale), found[DIRECT] = more[DIRECT] / (scale * scale);
        bounds_of(&here, p->channels, found);
        start += p->channels;
    }
}

/* The vectors of a batch norm's node, as sr_sum_pass has filled them, become moments and sums. */
static void join_node(const sr_pass_block *p, const pass_rows *to) {
    for (int64_t c = 0; c < p->channels; c++) {
        const double inverse = to->row[VARIANCE][c];
        to->row[VARIANCE][c] = not_negative(1 / (inverse * inverse) - p->eps);
        to->row[SUM_GC][c] /= inverse;
    }
}

static void join_pass(const sr_pass_block *p, double scale, const pass_rows *to) {
    static const int row[] = {MEAN, VARIANCE, SUM_G, SUM_GC, SUM_GG, GAIN};
    for (int r = 0; r < 6; r++)
        memcpy(to->row[row[r]], p->values + r * p->channels, (size_t)p->channels * sizeof(double));
    if (p->eps >= 0) join_node(p, to);
    for (int64_t c = 0; c < p->channels; c++) { /* rounded before it is added: no FMA */
        to->row[MEAN_SQUARE][c] = to->row[MEAN][c] * to->row[MEAN][c];
        to->row[SUM_G][c] /= scale, to->row[SUM_GC][c] /= scale;
        to->row[SUM_GG][c] /= scale * scale;
    }
    for (int64_t c = 0; c < p->channels; c++) to->row[MEAN_SQUARE][c] += to->row[VARIANCE][c];
}

void sr_join_passes(const sr_pass_block *passes, int64_t count, double scale, double *to,
                    double *bounds) {
    int64_t width = 0, start = 0;
    for (int64_t i = 0; i < count; i++) width += passes[i].channels;
    for (int64_t i = 0; i < count; start += passes[i].channels, i++) {
        pass_rows here;
        double found[FOUND];
        for (int r = 0; r < TO_ROWS; r++) here.row[r] = to + r * width + start;
        join_pass(&passes[i], scale, &here);
        bounds_of(&here, passes[i].channels, found);
        bounds[2 * i] = found[LEAST_VARIANCE], bounds[2 * i + 1] = found[LARGEST_MEAN];
    }
}

void sr_sum_moves(int64_t sites, const int64_t *width, const double *const *batch,
                  const double *const *before, const double *const *after, double *moved,
                  double *apart) {
    for (int64_t s = 0; s < sites; s++) {
        moved[s] = apart[s] = 0;
        for (int64_t c = 0; c < width[s]; c++) {
            const double d = batch[s][c] - before[s][c];
            moved[s] += (after[s][c] - before[s][c]) * d, apart[s] += d * d;
        }
    }
}
