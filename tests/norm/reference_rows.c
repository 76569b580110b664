/* reference_rows.c -- reference_norms.h's methods that normalize rows or samples, from
 * docs/norms.md 3 to 9. */
#include "reference_methods.h"

#include <math.h>

/* Use of the statistics of a set of values. */
typedef struct row_form {
    bool mean, unbiased, outside; /* mean: subtracted */
    bool mean_constant, deviation_constant;
    double C, k; /* phi = C (1 - k xhat) */
} row_form;

static bool in_set(const reference_call *c, int64_t i, int64_t sample) {
    return reference_valid(c, i) && (!c->sample || c->sample[i] == sample);
}

/* Without sample numbers each row is a sample. */
#define EACH_VALUE(c, sample, first, width, at)                                                    \
    for (int64_t i = (c)->sample ? 0 : (sample); i < ((c)->sample ? (c)->rows : (sample) + 1);     \
         i++)                                                                                      \
        if (in_set(c, i, sample))                                                                  \
            for (int64_t at = i * (c)->d + (first); at < i * (c)->d + (first) + (width); at++)

/* The values of one sample and the features first .. first + width - 1 form a "row" of section
 * 3. */
static void normalize_set(reference_call *c, const row_form *f, int64_t sample, int64_t first,
                          int64_t width) {
    double count = 0, begin = 0, mean = 0, squares = 0, mean_q = 0, sum_qu = 0;
    EACH_VALUE(c, sample, first, width, at) {
        if (count++ == 0) begin = c->u[at];
        mean += c->u[at] - begin;
    }
    mean = f->mean ? begin + mean / count : 0;
    EACH_VALUE(c, sample, first, width, at) squares += square(c->u[at] - mean);
    const double freedom = count - f->unbiased, deviation = sqrt(squares / freedom);
    const double eps = c->options->eps;
    const double s = f->outside ? deviation + eps : sqrt(squares / freedom + eps);
    EACH_VALUE(c, sample, first, width, at) {
        const int64_t k = at % c->d;
        const double u = c->u[at] - mean, phi = f->C * (1 - f->k * u / s);
        c->y[at] = c->gamma[k] * phi * u / s + c->beta[k];
        c->dbeta[k] += c->g[at];
        c->dgamma[k] += c->g[at] * phi * u / s;
        mean_q += c->gamma[k] * phi * c->g[at] / count;
        sum_qu += c->gamma[k] * phi * c->g[at] * u;
    }
    /* ds/dx_j = u_j/(freedom * root); root: s with eps inside, else the standard deviation */
    const double root = f->outside ? deviation : s;
    const double slope = root == 0 || f->deviation_constant ? 0 : sum_qu / (s * s * freedom * root);
    EACH_VALUE(c, sample, first, width, at) {
        const double u = c->u[at] - mean, phi = f->C * (1 - f->k * u / s);
        const double q = c->gamma[at % c->d] * phi * c->g[at];
        c->du[at] = (q - (f->mean && !f->mean_constant ? mean_q : 0)) / s - slope * u;
    }
}

static void normalize_sets(reference_call *c, const row_form *f, int64_t samples, int64_t groups) {
    const int64_t width = c->d / groups;
    EACH(sample, samples) EACH(group, groups) normalize_set(c, f, sample, group * width, width);
    EACH(k, c->d) {
        c->stat[NORM_gamma][k] = c->gamma[k];
        c->stat[NORM_sum_g][k] = c->dbeta[k];
        c->stat[NORM_sum_gx][k] = c->dgamma[k];
    }
}

static void of_rows(reference_call *c, row_form f) {
    const int32_t *sample = c->sample;
    c->sample = NULL;
    normalize_sets(c, &f, c->rows, 1);
    c->sample = sample;
}

void reference_ln(reference_call *c) {
    of_rows(c, (row_form){.mean = true, .unbiased = reference_option(c, "unbiased") != 0, .C = 1});
}

/* Section 4 with the changes of its release. */
static row_form simple(const reference_call *c) {
    return (row_form){.mean = true,
                      .unbiased = reference_option(c, "unbiased") != 0,
                      .outside = reference_option(c, "placement") != 0,
                      .C = 1};
}

void reference_ln_simple(reference_call *c) {
    of_rows(c, simple(c));
}

void reference_detach_mean(reference_call *c) {
    row_form f = simple(c);
    f.mean_constant = true;
    of_rows(c, f);
}

void reference_detach_std(reference_call *c) {
    row_form f = simple(c);
    f.deviation_constant = true;
    of_rows(c, f);
}

void reference_detach_both(reference_call *c) {
    row_form f = simple(c);
    f.mean_constant = f.deviation_constant = true;
    of_rows(c, f);
}

void reference_adanorm(reference_call *c) {
    row_form f = simple(c);
    f.C = reference_option(c, "C");
    f.k = reference_option(c, "k");
    of_rows(c, f);
}

void reference_rmsnorm(reference_call *c) {
    of_rows(c, (row_form){.outside = reference_option(c, "placement") != 0, .C = 1});
}

/* Section 23: divides by the root of the row's sum of squares. p is learned, s = p ratio. */
void reference_unit(reference_call *c) {
    const double scale = reference_option(c, "s_scale");
    const double ratio =
        reference_option(c, "s_init") / (scale > 0 ? scale : pow((double)c->d, -0.5));
    EACH(k, c->d) {
        c->stat[NORM_gamma][k] = c->own[0][k] * ratio;
        c->stat[NORM_sum_g][k] = c->stat[NORM_sum_gx][k] = 0;
    }
    EACH_VALID(c, i) {
        const double *u = c->u + i * c->d, *g = c->g + i * c->d;
        double square = c->options->eps, along = 0;
        EACH(k, c->d) square += u[k] * u[k];
        const double r = sqrt(square);
        EACH(k, c->d) along += c->own[0][k] * ratio * g[k] * u[k] / r;
        EACH(k, c->d) {
            const double s = c->own[0][k] * ratio;
            c->y[i * c->d + k] = s * u[k] / r;
            c->du[i * c->d + k] = s * g[k] / r - u[k] / (r * r) * along;
            c->stat[NORM_sum_g][k] += g[k];
            c->stat[NORM_sum_gx][k] += g[k] * u[k] / r;
            c->own_grad[0][k] += ratio * g[k] * u[k] / r;
        }
    }
}

void reference_groupnorm(reference_call *c) {
    normalize_sets(c, &(row_form){.mean = true, .C = 1}, c->sample ? c->samples : c->rows,
                   (int64_t)reference_option(c, "groups"));
}

void reference_instancenorm(reference_call *c) {
    normalize_sets(c, &(row_form){.mean = true, .C = 1}, c->sample ? c->samples : c->rows, c->d);
}
