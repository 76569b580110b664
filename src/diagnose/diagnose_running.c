/* diagnose_running.c -- is the running average too slow or too fast?
 *
 * Too slow for the run: after its N passes the initial values still weigh alpha^N, more than the
 * fraction that ends the burn-in. It follows from alpha and N alone. A step of k updates is k
 * passes, and over a step the old value has the weight alpha^k (running_updates).
 *
 * Else the method of stat-alpha: the batch means mu_B of the recorded steps are averaged again with
 * other weights alpha of the old value, r <- alpha r + (1 - alpha) mu_B. The average starts at the
 * run's own running mean at the first step of the window. d(alpha) = ||mu_B - r||_2, r from before
 * the update. The best alpha has the least median distance after the first LEAST_STEPS steps, and
 *
 *     lag = median over steps of d(run's alpha) / d(best alpha)
 *
 * with its bootstrap interval. A best alpha below the run's: the mean moves, and the average is too
 * slow (lag). Above: it follows single batches (noise), which cannot exceed sqrt 2. Alpha 0 is not
 * tried: it is no average. The best of several is best by chance too, hence the limits. Needs
 * vectors at every step: the average counts recorded steps. Training is not repeated (that BN does
 * not use these values in training makes it exact for BN).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/runs/running_updates.h"
#include "diagnose/diagnosis.h"

/* weights over a step */
static const double grid[] = {NAN, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999};
/* sqrt(2/(1 + alpha)) at alpha 0.8: with independent batches, an average over (1 + alpha)/(1 -
 * alpha) = 9 of them adds this to the distance. */
#define FAST_LIMIT 1.054
enum { ALPHAS = sizeof grid / sizeof grid[0] }; /* the first is the run's own */

typedef struct averages {
    int64_t width, count;
    float *batch;     /* [width] */
    double *running;  /* [ALPHAS, width] */
    double *distance; /* [ALPHAS, count] */
} averages;

static void averages_free(averages *v) {
    free(v->batch);
    free(v->running);
    free(v->distance);
}

static void step_on(averages *v, double own, int64_t row) {
    for (int i = 0; i < ALPHAS; i++) {
        const double alpha = i ? grid[i] : own;
        double *r = v->running + i * v->width, sum = 0;
        for (int64_t k = 0; k < v->width; k++) {
            const double delta = v->batch[k] - r[k];
            sum += delta * delta;
            r[k] += (1 - alpha) * delta;
        }
        v->distance[i * v->count + row] = sqrt(sum);
    }
}

static sr_status average_again(averages *v, const subject *s, int64_t site, double own,
                               int64_t first, sr_failure *why) {
    const sr_run_site *at = sr_run_get_site(s->run, site);
    v->width = at->width;
    v->batch = malloc((size_t)v->width * sizeof *v->batch);
    v->running = malloc(ALPHAS * (size_t)v->width * sizeof *v->running);
    v->distance = malloc(ALPHAS * (size_t)v->count * sizeof *v->distance);
    if (!v->batch || !v->running || !v->distance) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = sr_run_vector(s->run, "mu", site, first, 1, v->batch, why);
    for (int64_t i = 0; i < ALPHAS * v->width && status == SR_OK; i++)
        v->running[i] = v->batch[i % v->width];
    for (int64_t row = 0; row < v->count && status == SR_OK; row++) {
        status = sr_run_vector(s->run, "mu_B", site, first + row, 1, v->batch, why);
        if (status == SR_OK) step_on(v, own, row);
    }
    return status;
}

/* The median, which single batches do not move. scratch [count]. */
static double usual_distance(const averages *v, int i, double *scratch) {
    summary s;
    memcpy(scratch, v->distance + i * v->count, (size_t)v->count * sizeof *scratch);
    summary_range(scratch + LEAST_STEPS, v->count - LEAST_STEPS, &s);
    return s.median;
}

/* e: of the ratio, step by step; the number of the best weight. */
static sr_status compare(const averages *v, estimate *e, int *best, sr_failure *why) {
    double *scratch = malloc((size_t)v->count * sizeof *scratch);
    if (!scratch) return sr_fail(why, SR_MEMORY, "out of memory");
    double least = usual_distance(v, 0, scratch);
    *best = 0;
    for (int i = 1; i < ALPHAS; i++) {
        const double here = usual_distance(v, i, scratch);
        if (here < least) least = here, *best = i;
    }
    for (int64_t row = 0; row < v->count; row++)
        scratch[row] = v->distance[row] / v->distance[*best * v->count + row];
    sr_status status = estimate_median(scratch + LEAST_STEPS, v->count - LEAST_STEPS, e, why);
    free(scratch);
    return status;
}

/* own, best: weights over a step, the run's and the best. */
static sr_status measure_lag(const subject *s, int64_t site, estimate *e, double *own, double *best,
                             sr_failure *why) {
    averages v = {0};
    int64_t first = 0;
    int chosen = 0;
    *e = NO_ESTIMATE;
    *own = *best = sr_run_get_site(s->run, site)->alpha;
    if (!isfinite(*own) || !sr_run_has_vector(s->run, "mu_B") || !sr_run_has_vector(s->run, "mu"))
        return SR_OK;
    sr_status status = subject_vectors(s, &first, &v.count, why);
    if (status != SR_OK || v.count == 0 || v.count != s->count) return status;
    status = running_step_alpha(s->run, site, own, why);
    *best = *own;
    if (status == SR_OK) status = average_again(&v, s, site, *own, first, why);
    if (status == SR_OK && v.count > LEAST_STEPS) {
        status = compare(&v, e, &chosen, why);
        if (chosen) *best = grid[chosen];
    }
    averages_free(&v);
    return status;
}

/* Sites whose best alpha is on the other side have no lag: 1. */
static sr_status measure_way(const subject *s, int64_t site, bool slow, estimate *e,
                             sr_failure *why) {
    double own, best;
    sr_status status = measure_lag(s, site, e, &own, &best, why);
    if (isfinite(e->low) && (slow ? best >= own : best <= own)) *e = (estimate){1, 1, 1, e->steps};
    return status;
}

sr_status measure_slow(const subject *s, int64_t site, const void *what, estimate *e,
                       sr_failure *why) {
    (void)what;
    return measure_way(s, site, true, e, why);
}

static sr_status measure_fast(const subject *s, int64_t site, const void *what, estimate *e,
                              sr_failure *why) {
    (void)what;
    return measure_way(s, site, false, e, why);
}

/* "alpha 0.9", and of a step of several updates its weight over the step too. */
static void alpha_words(double alpha, double updates, char text[64]) {
    const int used = snprintf(text, 64, "alpha %.3g", alpha);
    if (updates > 1)
        snprintf(text + used, 64 - (size_t)used, " (%.3g over a step)", pow(alpha, updates));
}

static sr_status tell_lag(const subject *s, answer *a, sr_failure *why) {
    double own, best, k;
    char here[64], there[64];
    estimate e;
    const int64_t site = a->top[0].site;
    sr_status status = measure_lag(s, site, &e, &own, &best, why);
    if (status == SR_OK) status = running_updates(s->run, site, &k, why);
    if (status != SR_OK) return status;
    alpha_words(sr_run_get_site(s->run, site)->alpha, k, here);
    alpha_words(pow(best, 1 / k), k, there);
    answer_says(a,
                "At %s the running mean with %s is %.3g times as far from the batch mean as "
                "one with %s would be: it is too %s.",
                answer_site(s, a, 0), here, a->e.value, there, best < own ? "slow" : "fast");
    return status;
}

/* Exact: the interval is a point. Not asked: a run that loaded running values, or that is still
   running. */
static sr_status measure_start(const subject *s, int64_t site, const void *what, estimate *e,
                               sr_failure *why) {
    const sr_run_site *at = sr_run_get_site(s->run, site);
    (void)what;
    *e = NO_ESTIMATE;
    if (strcmp(s->info->status, "running") == 0) return SR_OK;
    if (s->window.end < LEAST_STEPS) return SR_OK; /* a trial */
    if (!sr_run_over_batch(at) || !(at->alpha >= 0 && at->alpha < 1)) return SR_OK;
    bool mean = true, square = true;
    double alpha;
    sr_status status = running_step_alpha(s->run, site, &alpha, why);
    if (status == SR_OK) status = subject_begins_with(s, site, "mu", 0, &mean, why);
    if (status == SR_OK) status = subject_begins_with(s, site, "psi2", 1, &square, why);
    const double left = pow(alpha, (double)s->window.end);
    if (status == SR_OK && mean && square) *e = (estimate){left, left, left, s->window.end};
    return status;
}

static sr_status tell_start(const subject *s, answer *a, sr_failure *why) {
    const int64_t site = a->top[0].site;
    double updates;
    const sr_status status = running_updates(s->run, site, &updates, why);
    const double passes = round(updates * (double)s->window.end),
                 alpha = sr_run_get_site(s->run, site)->alpha;
    a->severity = a->e.value > 0.1 ? NOTABLE : MINOR;
    a->at[a->steps_shown++] = s->window.end;
    answer_figure(a, "statplot overview");
    answer_says(
        a,
        "After %g passes %.2g of the running values of %s is still what they began with, and "
        "evaluation uses them: alpha %g forgets it in %lld passes, %.2f in this run's.",
        passes, a->e.value, answer_site(s, a, 0), alpha, (long long)sr_startup_of(alpha),
        floor(100 * pow(SR_STARTUP_LEFT, 1 / passes)) / 100);
    return status;
}

static sr_status look_at_start(const subject *s, answer *a, sr_failure *why) {
    *a = (answer){.statistic = "weight of the start", .limit = SR_STARTUP_LEFT, .once = true};
    sr_status status = answer_rank(s, measure_start, NULL, a, why);
    return status == SR_OK && a->verdict == FOUND ? tell_start(s, a, why) : status;
}

static bool has_running_mean(const subject *s) {
    const sr_run_site *at;
    bool any = false;
    for (int64_t i = 0; (at = sr_run_get_site(s->run, i)); i++)
        any = any || at->observed || (sr_run_over_batch(at) && sr_run_uses(at, "mu"));
    return any;
}

sr_status look_alpha(const subject *s, answer *a, sr_failure *why) {
    sr_status begun = look_at_start(s, a, why);
    if (begun != SR_OK || a->verdict == FOUND) return begun;
    healthy_range healthy;
    const bool known = healthy_find(s, "lag", &healthy);
    answer fast = {.statistic = "noise", .limit = FAST_LIMIT, .severity = NOTABLE};
    *a = (answer){.statistic = "lag", .range_of = "lag", .severity = NOTABLE};
    /* 1 is the least possible value: the margin applies to the part above it */
    a->limit = known ? 1 + HEALTHY_MARGIN * (healthy.high - 1) : NAN;
    sr_status status = answer_rank(s, measure_slow, NULL, a, why);
    if (status == SR_OK) status = answer_rank(s, measure_fast, NULL, &fast, why);
    if (status != SR_OK || a->reason[0]) return status;
    if (!a->asked && !has_running_mean(s))
        return answer_not_asked(a, "no site with a running mean");
    if (!a->asked)
        return answer_not_asked(a, "no mu_B and mu at every step after the burn-in%s",
                                subject_how(s, " (--vectors-every 1)"));
    if (fast.verdict == FOUND && a->verdict != FOUND) *a = fast;
    return a->verdict == FOUND ? tell_lag(s, a, why) : SR_OK;
}
