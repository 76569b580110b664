/* Least squares of many features at once, judged out of sample.
 *
 * Rows y_t [d] and terms z_t [k], no constant. The rows are in folds; the coefficients for the rows
 * of a fold come from all other folds:
 *
 *     B_f = (sum_{t not in f} z_t z_t')^-1 sum_{t not in f} z_t y_t'        [k, d]
 *     left = sum_f sum_{t in f} ||y_t - B_f' z_t||^2
 *
 * In the rows that B was fitted to, the squares would shrink with every term, even with noise. Both
 * sums over t follow from the sums of each fold, so y is needed once and not kept. Normal equations
 * by Cholesky's method in double suffice: k is small, and the terms have a mean square of 1. A term
 * that is linear in earlier ones, to 1e-9 of its square, gets no coefficient.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/batchmix/batchmix.h"

#define DEPENDENT 1e-9

enum { ALL_TERMS = 2 * MIX_TERMS };

sr_status mix_fit_create(mix_fit *f, int terms, int targets, int64_t width, sr_failure *why) {
    *f = (mix_fit){.terms = terms, .targets = targets, .width = width};
    f->zz = calloc((size_t)(MIX_FOLDS * terms * terms) + 1, sizeof *f->zz);
    f->zy = calloc((size_t)(MIX_FOLDS * targets * terms * width) + 1, sizeof *f->zy);
    f->yy = calloc((size_t)(MIX_FOLDS * targets) + 1, sizeof *f->yy);
    return f->zz && f->zy && f->yy ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
}

void mix_fit_free(mix_fit *f) {
    free(f->zz);
    free(f->zy);
    free(f->yy);
    *f = (mix_fit){0};
}

static double *products_with(const mix_fit *f, int fold, int target) {
    return f->zy + (fold * f->targets + target) * f->terms * f->width;
}

void mix_fit_add(mix_fit *f, int fold, const double *z, const double *const *y) {
    double *zz = f->zz + fold * f->terms * f->terms;
    for (int i = 0; i < f->terms; i++)
        for (int j = 0; j < f->terms; j++) zz[i * f->terms + j] += z[i] * z[j];
    for (int target = 0; target < f->targets; target++) {
        double *zy = products_with(f, fold, target), sum = 0;
        for (int i = 0; i < f->terms; i++)
            for (int64_t k = 0; k < f->width; k++) zy[i * f->width + k] += z[i] * y[target][k];
        for (int64_t k = 0; k < f->width; k++) sum += y[target][k] * y[target][k];
        f->yy[fold * f->targets + target] += sum;
    }
}

/* a [count, count] becomes L with L L' = a; a zero on the diagonal marks a dependent term. */
static void factor(double *a, int count) {
    for (int j = 0; j < count; j++) {
        double rest = a[j * count + j];
        for (int m = 0; m < j; m++) rest -= a[j * count + m] * a[j * count + m];
        const bool dependent = !(rest > DEPENDENT * a[j * count + j]);
        const double root = dependent ? 0 : sqrt(rest);
        for (int i = j + 1; i < count; i++) {
            double sum = a[i * count + j];
            for (int m = 0; m < j; m++) sum -= a[i * count + m] * a[j * count + m];
            a[i * count + j] = dependent ? 0 : sum / root;
        }
        a[j * count + j] = root;
    }
}

/* b [count, width] from right-hand sides to coefficients. */
static void substitute(const double *lower, int count, double *b, int64_t width) {
    for (int pass = 0; pass < 2; pass++)
        for (int at = 0; at < count; at++) {
            const int j = pass ? count - 1 - at : at;
            const double root = lower[j * count + j];
            for (int m = pass ? j + 1 : 0; m < (pass ? count : j); m++) {
                const double l = pass ? lower[m * count + j] : lower[j * count + m];
                for (int64_t k = 0; k < width; k++) b[j * width + k] -= l * b[m * width + k];
            }
            for (int64_t k = 0; k < width; k++)
                b[j * width + k] = root > 0 ? b[j * width + k] / root : 0;
        }
}

void mix_fit_solve(const mix_fit *f, int fold, const mix_model *m, double *b) {
    double a[ALL_TERMS * ALL_TERMS] = {0};
    memset(b, 0, (size_t)(m->count * f->width) * sizeof *b);
    for (int other = 0; other < MIX_FOLDS; other++) {
        if (other == fold) continue;
        const double *zz = f->zz + other * f->terms * f->terms;
        const double *zy = products_with(f, other, m->target) + m->first * f->width;
        for (int i = 0; i < m->count; i++)
            for (int j = 0; j < m->count; j++)
                a[i * m->count + j] += zz[(m->first + i) * f->terms + m->first + j];
        for (int64_t k = 0; k < m->count * f->width; k++) b[k] += zy[k];
    }
    factor(a, m->count);
    substitute(a, m->count, b, f->width);
}

/* ||y - B'z||^2 over a fold: yy - 2 <B, zy> + <B, zz B>. */
static double left_in_fold(const mix_fit *f, int fold, const mix_model *m, const double *b) {
    const double *zz = f->zz + fold * f->terms * f->terms;
    const double *zy = products_with(f, fold, m->target) + m->first * f->width;
    double sum = f->yy[fold * f->targets + m->target];
    for (int64_t k = 0; k < m->count * f->width; k++) sum -= 2 * b[k] * zy[k];
    for (int i = 0; i < m->count; i++)
        for (int j = 0; j < m->count; j++) {
            double product = 0;
            for (int64_t k = 0; k < f->width; k++)
                product += b[i * f->width + k] * b[j * f->width + k];
            sum += product * zz[(m->first + i) * f->terms + m->first + j];
        }
    return sum;
}

double mix_fit_left(const mix_fit *f, const mix_model *m, double *b) {
    double sum = 0;
    for (int fold = 0; fold < MIX_FOLDS; fold++) {
        mix_fit_solve(f, fold, m, b);
        sum += left_in_fold(f, fold, m, b);
    }
    return sum;
}
