/* reference_methods.h -- declarations shared by the files of reference_norms.h. */
#ifndef TESTS_NORM_REFERENCE_METHODS_H
#define TESTS_NORM_REFERENCE_METHODS_H

#include "reference_norms.h"

#define EACH(k, count)   for (int64_t k = 0; k < (count); k++)
#define EACH_VALID(c, i) EACH(i, (c)->rows) if (reference_valid(c, i))

static inline double square(double v) {
    return v * v;
}

static inline bool reference_valid(const reference_call *c, int64_t i) {
    return !c->mask || c->mask[i];
}

double reference_option(const reference_call *c, const char *name);

/* reference_rows.c */
void reference_ln(reference_call *c);
void reference_ln_simple(reference_call *c);
void reference_detach_mean(reference_call *c);
void reference_detach_std(reference_call *c);
void reference_detach_both(reference_call *c);
void reference_adanorm(reference_call *c);
void reference_rmsnorm(reference_call *c);
void reference_groupnorm(reference_call *c);
void reference_instancenorm(reference_call *c);
void reference_unit(reference_call *c);

/* reference_norms.c */
typedef struct moments {
    double mean, variance, square;
} moments;
double reference_count(const reference_call *c); /* n */
/* Statistics of column k of this batch, also written to stat. */
moments reference_moments(reference_call *c, int64_t k);
/* Updates a running statistic in NORM_TRAIN. */
void reference_advance(const reference_call *c, double *running, double batch);
/* Writes y = gamma xhat + beta with xhat = (u - center)/s. Sums g and g xhat over valid rows;
 * padded: over all rows. */
void reference_affine(reference_call *c, int64_t k, double center, double s, bool padded);
/* du = a g + b + slope (u - center) in valid rows. */
void reference_gradient(reference_call *c, int64_t k, double a, double b, double slope,
                        double center);

/* reference_later.c */
void reference_un(reference_call *c);
void reference_repbn(reference_call *c);
void reference_dyt(reference_call *c);
void reference_derf(reference_call *c);

#endif
