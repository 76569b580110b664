/* reference_methods.h -- what the files of reference_norms.h have in common. */
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

#endif
