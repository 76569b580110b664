/* statistic_forms.h -- forms of recorded statistics: another unit, divisor or reference. */
#ifndef ANALYSIS_SERIES_STATISTIC_FORMS_H
#define ANALYSIS_SERIES_STATISTIC_FORMS_H

#include <stdbool.h>
#include <stdint.h>

#include "statrec/runfile.h"

enum { FORM_TERMS = 4 };

#define FORM_NAMES(X)                                                                              \
    X(tid_total)                                                                                   \
    X(dist_mu_per_root)                                                                            \
    X(dist_sigma_per_root)                                                                         \
    X(dist_sigma2_per_root)                                                                        \
    X(dist_psi_per_root)                                                                           \
    X(dist_psi2_per_root)                                                                          \
    X(dist_mu_relative)                                                                            \
    X(dist_sigma_relative)                                                                         \
    X(dist_sigma2_relative)                                                                        \
    X(dist_psi_relative)                                                                           \
    X(dist_psi2_relative)                                                                          \
    X(g_mu_sum)                                                                                    \
    X(g_mu_mean)                                                                                   \
    X(g_sigma2_sum)                                                                                \
    X(g_sigma2_mean)                                                                               \
    X(g_psi2_sum)                                                                                  \
    X(g_psi2_mean)                                                                                 \
    X(g_sigma2_rowmean_sum)                                                                        \
    X(g_sigma2_rowmean_mean)                                                                       \
    X(g_psi2_rowmean_sum)                                                                          \
    X(g_psi2_rowmean_mean)                                                                         \
    X(g_mu_share)                                                                                  \
    X(g_sigma2_share)                                                                              \
    X(g_psi2_share)                                                                                \
    X(g_sigma2_rowmean_share)                                                                      \
    X(g_psi2_rowmean_share)                                                                        \
    X(dist_mu_excess)                                                                              \
    X(dist_sigma_excess)                                                                           \
    X(g_mu_excess)                                                                                 \
    X(g_sigma2_excess)

/* The properties of a site that formulas use. */
typedef struct form_site {
    int64_t width;
    double alpha;      /* weight of the OLD running value */
    bool observed;     /* the first term is only the observer's there */
    bool loss_is_mean; /* gradients belong to the mean loss */
} form_site;

typedef struct stat_form {
    const char *name, *definition;
    const char *term[FORM_TERMS]; /* datasets of /scalars, or "tokens" of /steps; NULL ends */
    double (*combine)(const double *term, const form_site *at);
} stat_form;

const stat_form *form_find(const char *name); /* NULL: the statistic is recorded as it is */
int form_terms(const stat_form *f);
form_site form_site_of(const sr_runfile *run, int64_t site, const stat_form *f);

#endif
