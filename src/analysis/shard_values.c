/* Distances between the batch statistics of the shards of a batch, step by step. Formulas:
 * shard_spread.c. */

#include "analysis/shard_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frame/site_selection.h"
#include "base/globs.h"

enum { PIECE_BYTES = 4 << 20 }; /* size of the rows read at once */

/* -- which sites ----------------------------------------------------------------------------- */

/* A site has batch statistics where this has a value. */
static const statistic batch_statistics = {"mu_B",       "mu_B", "", NEEDS(mu_B) | NEEDS(sigma2_B),
                                           first_values, NULL};

/* The number of shard k of the site; -1 without one. */
static int64_t share_of(const sr_runfile *run, int64_t site, int k) {
    char name[SR_NAME_SIZE + 16];
    snprintf(name, sizeof name, "%s@%d", sr_run_get_site(run, site)->name, k);
    return k ? sr_run_find_site(run, name) : site;
}

static sr_status add_site(shared_run *r, int64_t number, sr_failure *why) {
    shared_site *s = &r->site[r->sites++];
    const int64_t width = sr_run_get_site(r->run, number)->width;
    *s = (shared_site){.number = number};
    while (share_of(r->run, number, s->shares) >= 0) s->shares++;
    s->of = malloc((size_t)s->shares * sizeof *s->of);
    if (!s->of) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int k = 0; k < s->shares; k++) {
        s->of[k] = share_of(r->run, number, k);
        const sr_run_site *share = sr_run_get_site(r->run, s->of[k]);
        if (share->width != width)
            return sr_fail(why, SR_FORMAT, "%s: site %s has %lld features, not %lld as %s", r->path,
                           share->name, (long long)share->width, (long long)width,
                           sr_run_get_site(r->run, number)->name);
    }
    return SR_OK;
}

sr_status shared_choose_sites(shared_run *r, const char *list, sr_failure *why) {
    const int64_t count = sr_run_get_info(r->run)->sites;
    char unused[GLOBS_WORD]; /* find_sites reports a run without any */
    bool *chosen = calloc((size_t)count + 1, sizeof *chosen);
    bool *shared = calloc((size_t)count + 1, sizeof *shared);
    r->site = calloc((size_t)count + 1, sizeof *r->site);
    sr_status status = chosen && shared && r->site
                           ? series_recorded(r->run, &batch_statistics, FROM_VECTORS, shared, why)
                           : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; i < count && status == SR_OK; i++) {
        shared[i] = shared[i] && share_of(r->run, i, 1) >= 0;
        r->replicas += globs_is_replica(sr_run_get_site(r->run, i)->name);
    }
    if (status == SR_OK) choice_match(r->run, shared, list, chosen, unused);
    for (int64_t i = 0; i < count && status == SR_OK; i++)
        if (chosen[i] && shared[i]) status = add_site(r, i, why);
    free(chosen);
    free(shared);
    return status;
}

void shared_free(shared_run *r) {
    for (int64_t i = 0; i < r->sites; i++) free(r->site[i].of);
    free(r->site);
}

/* -- rows ------------------------------------------------------------------------------------ */

/* rows [sites of the run] of the step of row i of the values. */
static void take_rows(const shared_site *s, const float *rows, double *const *value, int64_t i) {
    const double shares = s->shares;
    double sum = 0, inverse = 0;
    for (int k = 0; k < s->shares; k++) {
        const double n = (double)rows[s->of[k]];
        sum += n > 0 ? n : NAN;
        inverse += 1 / n;
    }
    if (isnan(sum)) return;
    value[ROWS][i] = sum / shares;
    value[EXPECTED][i] = sqrt((1 - 1 / shares) * inverse / shares);
}

/* Row counts of the steps wanted [count] into value [count of sites, VALUES]. */
static sr_status take_steps(const shared_run *r, const shared_site *site, int64_t site_count,
                            const int64_t *wanted, int64_t count, double *const *value,
                            sr_failure *why) {
    const int64_t sites = sr_run_get_info(r->run)->sites, block = 1 + PIECE_BYTES / (4 * sites);
    int64_t *step = malloc((size_t)block * sizeof *step), at = 0, from = 0, steps = 0;
    float *rows = malloc((size_t)(block * sites) * sizeof *rows);
    const series all = {r->run, 0, &batch_statistics, FROM_SCALARS};
    const int64_t last = wanted[count - 1] < r->last ? wanted[count - 1] : r->last;
    const step_window of = {.first = wanted[0], .last = last}; /* rows of /steps: more of them */
    sr_status status = step && rows ? window_rows(&of, &all, &from, &steps, why)
                                    : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t done = 0; done < steps && at < count && status == SR_OK; done += block) {
        const int64_t m = steps - done < block ? steps - done : block;
        status = sr_run_step_ints(r->run, "step", from + done, m, step, why);
        if (status == SR_OK) status = sr_run_scalar(r->run, "rows", -1, from + done, m, rows, why);
        for (int64_t i = 0; i < m && status == SR_OK; i++) {
            while (at < count && wanted[at] < step[i]) at++;
            if (at == count || wanted[at] != step[i]) continue;
            for (int64_t k = 0; k < site_count; k++)
                take_rows(&site[k], rows + i * sites, value + k * VALUES, at);
        }
    }
    free(step);
    free(rows);
    return status;
}

/* -- scatter --------------------------------------------------------------------------------- */

/* About their mean: sum of the squares of the deviations. */
static double scatter(const double *value, int shares, double mean) {
    double sum = 0;
    for (int k = 0; k < shares; k++) sum += (value[k] - mean) * (value[k] - mean);
    return sum;
}

/* raw [mu_B, sigma2_B][share]: from + 0 .. width - 1 of each is one row; one [shares]; value
 * [VALUES]; fills row i. */
static void measure_row(const shared_site *s, float *const *raw, int64_t from, int64_t width,
                        double *one, double *const *value, int64_t i) {
    double means = 0, deviations = 0, length = 0;
    for (int64_t j = from; j < from + width; j++) {
        for (int k = 0; k < s->shares; k++) one[k] = (double)raw[k][j];
        means += scatter(one, s->shares, column_mean(one, s->shares));
        for (int k = 0; k < s->shares; k++) one[k] = sqrt((double)raw[s->shares + k][j]);
        const double bar = column_mean(one, s->shares);
        deviations += scatter(one, s->shares, bar);
        length += bar * bar;
    }
    value[SPREAD_MEAN][i] = sqrt(means / s->shares) / sqrt(length);
    value[SPREAD_STD][i] = sqrt(deviations / s->shares) / sqrt(length);
    value[RATIO][i] = value[SPREAD_MEAN][i] / value[EXPECTED][i];
}

/* Rows first .. first + count - 1; value [VALUES]. */
static sr_status measure_site(const shared_run *r, const shared_site *s, int64_t first,
                              int64_t count, double *const *value, sr_failure *why) {
    const int64_t width = sr_run_get_site(r->run, s->number)->width;
    const int64_t fit = PIECE_BYTES / (8 * s->shares * width), most = fit < 1 ? 1 : fit;
    const int64_t block = most < count ? most : count;
    float *memory = malloc((size_t)(2 * s->shares * block * width) * sizeof *memory);
    float **raw = malloc(2 * (size_t)s->shares * sizeof *raw);
    double *one = malloc((size_t)s->shares * sizeof *one);
    sr_status status = memory && raw && one ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int k = 0; k < 2 * s->shares && status == SR_OK; k++) raw[k] = memory + k * block * width;
    for (int64_t at = 0; at < count && status == SR_OK; at += block) {
        const int64_t m = count - at < block ? count - at : block;
        for (int k = 0; k < 2 * s->shares && status == SR_OK; k++)
            status = sr_run_vector(r->run, k < s->shares ? "mu_B" : "sigma2_B",
                                   s->of[k % s->shares], r->first + first + at, m, raw[k], why);
        for (int64_t i = 0; i < m && status == SR_OK; i++)
            measure_row(s, raw, i * width, width, one, value, at + i);
    }
    free(memory);
    free(raw);
    free(one);
    return status;
}

/* -- columns --------------------------------------------------------------------------------- */

sr_status shared_measure(const shared_run *r, int64_t site, int64_t sites, int64_t first,
                         int64_t count, double *const *value, sr_failure *why) {
    for (int64_t c = 0; c < VALUES * sites; c++)
        for (int64_t i = 0; i < count; i++) value[c][i] = NAN;
    if (!count) return SR_OK;
    int64_t *wanted = malloc((size_t)count * sizeof *wanted);
    sr_status status = wanted ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = sr_run_vector_steps(r->run, r->first + first, count, wanted, why);
    if (status == SR_OK && sr_run_has_scalar(r->run, "rows"))
        status = take_steps(r, &r->site[site], sites, wanted, count, value, why);
    free(wanted);
    for (int64_t k = 0; k < sites && status == SR_OK; k++)
        status = measure_site(r, &r->site[site + k], first, count, value + k * VALUES, why);
    return status;
}

sr_status shared_find_rows(shared_run *r, const step_window *w, sr_failure *why) {
    const series all = {r->run, 0, &batch_statistics, FROM_VECTORS};
    sr_status status = run_last_step(r->run, &r->last, why);
    return status == SR_OK ? window_rows(w, &all, &r->first, &r->count, why) : status;
}
