/* diagnose_features.c -- dead features, and features that explode; from /vectors.
 *
 * v_k is sigma2_B of feature k; psi2_B at sites that use the batch's psi2, and in files without
 * sigma2_B. Values that are not finite are skipped (`stat-features` has NaN there).
 *
 *     dead    fraction of the features with v_k < eps: the root mean square of xhat is then below
 *             0.71 instead of 1; median over the recorded steps
 *     growth  largest v_k over features: its median over the last third of the recorded steps
 *             divided by its median over the first third, ends from the two intervals
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/diagnosis.h"

/* dead, largest [count] of the recorded rows of a site. */
static sr_status read_features(const subject *s, int64_t site, const char *name, int64_t first,
                               int64_t count, double *dead, double *largest, sr_failure *why) {
    const sr_run_site *at = sr_run_get_site(s->run, site);
    float *raw = malloc((size_t)at->width * sizeof *raw);
    sr_status status = raw ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; i < count && status == SR_OK; i++) {
        int64_t under = 0, finite = 0;
        largest[i] = NAN;
        status = sr_run_vector(s->run, name, site, first + i, 1, raw, why);
        for (int64_t k = 0; k < at->width && status == SR_OK; k++) {
            const double v = (double)raw[k];
            if (!isfinite(v)) continue;
            finite++;
            under += v < at->eps;
            if (!(v <= largest[i])) largest[i] = v;
        }
        dead[i] = finite ? (double)under / (double)finite : NAN;
    }
    free(raw);
    return status;
}

static bool is_power(const subject *s, int64_t site) {
    const sr_run_site *at = sr_run_get_site(s->run, site);
    return !sr_run_has_vector(s->run, "sigma2_B") ||
           (sr_run_over_batch(at) && sr_run_uses(at, "psi2"));
}

typedef struct features {
    int64_t count;
    double *dead, *largest; /* [count] */
} features;

/* memory dead NULL: no such vectors. */
static sr_status features_read(const subject *s, int64_t site, features *f, sr_failure *why) {
    int64_t first = 0;
    const char *name = is_power(s, site) ? "psi2_B" : "sigma2_B";
    *f = (features){0};
    if (!sr_run_has_vector(s->run, name)) return SR_OK;
    sr_status status = subject_vectors(s, &first, &f->count, why);
    if (status != SR_OK || f->count == 0) return status;
    f->dead = malloc(2 * (size_t)f->count * sizeof *f->dead);
    if (!f->dead) return sr_fail(why, SR_MEMORY, "out of memory");
    f->largest = f->dead + f->count;
    return read_features(s, site, name, first, f->count, f->dead, f->largest, why);
}

sr_status measure_dead(const subject *s, int64_t site, const void *what, estimate *e,
                       sr_failure *why) {
    features f;
    (void)what;
    *e = NO_ESTIMATE;
    sr_status status = features_read(s, site, &f, why);
    if (status == SR_OK && f.dead) status = estimate_median(f.dead, f.count, e, why);
    free(f.dead);
    return status;
}

sr_status measure_growth(const subject *s, int64_t site, const void *what, estimate *e,
                         sr_failure *why) {
    features f;
    estimate begin = NO_ESTIMATE, end = NO_ESTIMATE;
    (void)what;
    *e = NO_ESTIMATE;
    sr_status status = features_read(s, site, &f, why);
    const int64_t third = f.count / 3;
    if (status == SR_OK && f.dead) {
        status = estimate_median(f.largest, third, &begin, why);
        if (status == SR_OK)
            status = estimate_median(f.largest + f.count - third, third, &end, why);
        *e = estimate_quotient(&end, &begin);
        if (isnan(e->low)) e->steps = f.count; /* a third of them is too short */
    }
    free(f.dead);
    return status;
}

/* Draws power if it alone is recorded; variance is a part of it. */
static void figure_of_features(const subject *s, answer *a) {
    if (!sr_run_has_vector(s->run, "sigma2_B"))
        answer_figure(a, "statplot features --quantity power");
}

static const char none[] = "no sigma2_B or psi2_B among the vectors after the burn-in";

sr_status look_dead(const subject *s, answer *a, sr_failure *why) {
    *a = (answer){.statistic = "fraction below eps",
                  .range_of = "dead",
                  .severity = NOTABLE,
                  .vectors = true};
    a->limit = fmax(0, healthy_limit(s, "dead")); /* 0 without a range */
    sr_status status = answer_rank(s, measure_dead, NULL, a, why);
    if (status != SR_OK || a->reason[0]) return status;
    if (!a->asked) return answer_not_asked(a, "%s", none);
    const sr_run_site *at = a->shown ? sr_run_get_site(s->run, a->top[0].site) : NULL;
    figure_of_features(s, a);
    if (a->verdict == FOUND)
        answer_says(a,
                    "%.3g of %lld features of %s have a %s over the batch below eps = %g: eps is "
                    "most of their divisor, and they leave the site smaller than the others.",
                    a->e.value * (double)at->width, (long long)at->width, at->name,
                    is_power(s, a->top[0].site) ? "mean square" : "variance", at->eps);
    return SR_OK;
}

sr_status look_growth(const subject *s, answer *a, sr_failure *why) {
    *a = (answer){.statistic = "variance growth", .range_of = "growth"};
    a->severity = NOTABLE;
    a->limit = healthy_limit(s, "growth");
    sr_status status = answer_rank(s, measure_growth, NULL, a, why);
    if (a->reason[0] && s->count)
        return answer_not_asked(a, "needs vectors of %d steps after the burn-in", 3 * LEAST_STEPS);
    if (status != SR_OK || a->reason[0]) return status;
    if (!a->asked) return answer_not_asked(a, "%s", none);
    figure_of_features(s, a);
    if (a->verdict == FOUND)
        answer_says(a,
                    "The largest %s of a feature at %s is %.3g times what it was in the first "
                    "third of the steps.",
                    is_power(s, a->top[0].site) ? "mean square" : "variance", answer_site(s, a, 0),
                    a->e.value);
    return SR_OK;
}
