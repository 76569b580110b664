/* shard_stats.c -- see shard_stats.h.
 *
 * A site's numbers: rows, samples, padded, the scalars, the moves of its running mean, then its
 * vectors [features] in the order of NORM_VECTORS. Last comes the mean of the position encoding,
 * if the input contains one. A site that is not recorded has no numbers.
 */
#include "observe/shard_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIXED = 3 + NORM_SCALAR_COUNT + MOVES };

typedef struct parcel_place {
    int64_t first, features;
    uint32_t vectors;
    bool chosen, positions;
} parcel_place;

struct shard_stats {
    int passes, sites;
    int64_t each;        /* numbers of a pass */
    parcel_place *place; /* [sites] */
    double *numbers;     /* [passes, each] */
};

shard_stats *shard_stats_create(const model *m, const bool *chosen, int passes, bool vectors,
                                sr_failure *why) {
    shard_stats *p = calloc(1, sizeof *p);
    if (p) *p = (shard_stats){.passes = passes, .sites = m->sites};
    if (p) p->place = calloc((size_t)m->sites + 1, sizeof *p->place);
    for (int i = 0; p && p->place && i < m->sites; i++) {
        const norm_site *s = m->site[i];
        const uint32_t sent = vectors ? norm_site_vectors(s) : 0;
        p->place[i] = (parcel_place){p->each, s->features, sent, chosen[i], s->takes_positions};
        const int rows = __builtin_popcount(sent) + s->takes_positions;
        if (chosen[i]) p->each += FIXED + rows * s->features;
    }
    if (p && p->place) p->numbers = malloc((size_t)(p->passes * p->each + 1) * sizeof *p->numbers);
    if (p && p->numbers) return shard_stats_clear(p), p;
    sr_fail(why, SR_MEMORY, "out of memory for statistics of %d passes", passes);
    shard_stats_free(p);
    return NULL;
}

void shard_stats_free(shard_stats *p) {
    if (!p) return;
    free(p->place);
    free(p->numbers);
    free(p);
}

void shard_stats_clear(shard_stats *p) {
    for (int64_t i = 0; i < p->passes * p->each; i++) p->numbers[i] = NAN;
}

void shard_stats_take(shard_stats *p, int number, int site, const norm_view *o) {
    const parcel_place *at = &p->place[site];
    const norm_rows *rows = o->call->rows;
    double *to = p->numbers + number * p->each + at->first;
    if (!at->chosen) return;
    *to++ = (double)rows->valid;
    *to++ = (double)(rows->sample ? rows->samples : rows->valid);
    *to++ = (double)(rows->rows - rows->valid);
    for (int s = 0; s < NORM_SCALAR_COUNT; s++) *to++ = o->call->scalar[s];
    running_moves_take(o, to);
    to += MOVES;
    for (int v = 0; v < NORM_VECTOR_COUNT; v++) {
        if (!(at->vectors >> v & 1)) continue;
        memcpy(to, o->call->stat[v], (size_t)at->features * sizeof *to);
        to += at->features;
    }
    if (at->positions && rows->position_mean)
        memcpy(to, rows->position_mean, (size_t)at->features * sizeof *to);
}

const double *shard_stats_numbers(const shard_stats *p) {
    return p->numbers;
}

int64_t shard_stats_each(const shard_stats *p) {
    return p->each;
}

parcel shard_stats_at(const shard_stats *p, const double *numbers, int number, int site) {
    const parcel_place *at = &p->place[site];
    const double *from = numbers + number * p->each + at->first;
    parcel of = {.rows = from[0], .samples = from[1], .padded = from[2]};
    memcpy(of.scalar, from + 3, sizeof of.scalar);
    memcpy(of.move, from + 3 + NORM_SCALAR_COUNT, sizeof of.move);
    from += FIXED;
    for (int v = 0; v < NORM_VECTOR_COUNT; v++) {
        if (!(at->vectors >> v & 1)) continue;
        of.vector[v] = from;
        from += at->features;
    }
    of.position = at->positions ? from : NULL;
    return of;
}

/* -- merging ----------------------------------------------------------------------------------- */

/* Computes a scalar of all rows from scalars of parts. Mean: over rows. */
typedef enum { MERGE_MEAN, MERGE_ROOT_MEAN, MERGE_ROOT_SUM, MERGE_MOST } merging;

static const merging merging_of[NORM_SCALAR_COUNT] = {
    [NORM_SCALAR_Gamma_max] = MERGE_MOST,          [NORM_SCALAR_dx_norm] = MERGE_ROOT_SUM,
    [NORM_SCALAR_direct_norm] = MERGE_ROOT_SUM,    [NORM_SCALAR_dx_norm_bn] = MERGE_ROOT_SUM,
    [NORM_SCALAR_direct_norm_bn] = MERGE_ROOT_SUM, [NORM_SCALAR_g_mu] = MERGE_ROOT_MEAN,
    [NORM_SCALAR_g_sigma2] = MERGE_ROOT_MEAN,      [NORM_SCALAR_g_psi2] = MERGE_ROOT_MEAN,
}; /* all others are means over rows */

static double merge_scalar(const parcel *part, int count, int s) {
    const merging how = merging_of[s];
    double sum = 0, rows = 0, most = -INFINITY;
    for (int i = 0; i < count; i++) {
        const double x = part[i].scalar[s], n = part[i].rows;
        if (!(n > 0)) continue;
        rows += n;
        if (x > most || isnan(x)) most = x; /* NaN stays: nothing is larger */
        sum += how == MERGE_MEAN ? n * x : how == MERGE_ROOT_MEAN ? n * x * x : x * fabs(x);
    }
    if (!(rows > 0)) return NAN;
    if (how == MERGE_MOST) return most;
    if (how == MERGE_MEAN) return sum / rows;
    return sum < 0 ? 0 : sqrt(how == MERGE_ROOT_MEAN ? sum / rows : sum); /* NaN stays */
}

parcel shard_stats_merge(const parcel *part, int count) {
    parcel all = {.rows = 0};
    for (int i = 0; i < count; i++) {
        if (!(part[i].rows > 0)) continue; /* skips ranks without rows */
        all.rows += part[i].rows;
        all.samples += part[i].samples;
        all.padded += part[i].padded;
    }
    for (int s = 0; s < NORM_SCALAR_COUNT; s++) all.scalar[s] = merge_scalar(part, count, s);
    memcpy(all.move, part[0].move, sizeof all.move);
    return all;
}

void shard_stats_merge_positions(const parcel *part, int count, int64_t features, double *mean) {
    double rows = 0;
    for (int i = 0; i < count; i++) rows += part[i].rows > 0 ? part[i].rows : 0;
    for (int64_t k = 0; k < features; k++) mean[k] = 0;
    for (int i = 0; i < count; i++)
        for (int64_t k = 0; part[i].rows > 0 && k < features; k++)
            mean[k] += part[i].position[k] * (part[i].rows / rows);
}
