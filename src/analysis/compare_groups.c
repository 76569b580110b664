/* compare_groups.c -- reads the runs of a group, and joins their samples. */
#include "analysis/compare_groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/containers/hash.h"

bool compare_same_unit(const compare_runs *p, int run, int stat) {
    const own_statistic *own = p->c->own[stat];
    if (!own) return true;
    const char *name = own->stat.name;
    const sr_run_declared *a = declared_named(p->set->run[0], name, SR_PER_SITE);
    const sr_run_declared *b = declared_named(p->set->run[run], name, SR_PER_SITE);
    return a && b && strcmp(a->unit, b->unit) == 0;
}

const site_choice *compare_match(const compare_runs *p, const compare_pair *of, int run) {
    if (!compare_same_unit(p, run, of->stat)) return NULL;
    return run == of->first->run ? of->first
                                 : site_matching_find(&p->places, of->first, run, of->stat);
}

/* A stream for every run, site and statistic: the intervals do not depend on what else is asked. */
static rng stream(const compare_runs *p, const site_choice *at, int64_t number) {
    const rng root = rng_create(p->seed);
    const rng run = rng_split(&root, (uint64_t)at->run);
    const rng site = rng_split(&run, (uint64_t)at->site);
    return rng_split(&site, (uint64_t)number);
}

/* Which stream a statistic has; a number of the runs' own: by its name. */
static int64_t stream_number(const compare_runs *p, const statistic *stat, bool joined) {
    for (int i = 0; i < p->c->statistics; i++)
        if (p->c->own[i] && &p->c->own[i]->stat == stat)
            return (int64_t)((hash_bytes(stat->name, strlen(stat->name)) >> 2) * 2 + joined);
    return (joined ? RECORDED_STATISTICS : 0) + (stat - recorded_statistics);
}

/* one [g->runs] */
static sr_status join_samples(const compare_runs *p, const statistic *stat,
                              const sample *const *one, group_sample *g, sr_failure *why) {
    bool enough = g->runs > 0;
    double **drawn = malloc((size_t)(g->runs + 1) * sizeof *drawn);
    if (!drawn) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int k = 0; k < g->runs; k++) {
        g->count += one[k]->count;
        g->nonfinite += one[k]->nonfinite;
        g->block = one[k]->block > g->block ? one[k]->block : g->block;
        enough = enough && one[k]->drawn;
        drawn[k] = one[k]->drawn;
        for (int i = 0; i < BOOTSTRAP_TAILS; i++) g->exact[i] += one[k]->exact[i] / g->runs;
    }
    if (enough) g->drawn = malloc((size_t)(BOOTSTRAP_TAILS * p->plan.resamples) * sizeof *g->drawn);
    if (g->drawn)
        bootstrap_runs(drawn, g->runs, stream(p, g->at, stream_number(p, stat, true)),
                       p->plan.resamples, g->drawn);
    free(drawn);
    return enough && !g->drawn ? sr_fail(why, SR_MEMORY, "out of memory") : SR_OK;
}

/* One run of a group, by pair. */
typedef struct member {
    const site_choice **at; /* NULL: the run has no such series */
    sample *one;
} member;

static sr_status member_create(member *m, const compare_runs *p, const compare_batch *b, int run,
                               sr_failure *why) {
    *m = (member){calloc((size_t)b->count + 1, sizeof *m->at),
                  calloc((size_t)b->count + 1, sizeof *m->one)};
    if (!m->at || !m->one) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t j = 0; j < b->count; j++) m->at[j] = compare_match(p, &b->pair[j], run);
    return SR_OK;
}

static void member_free(member *m, int64_t count) {
    for (int64_t j = 0; j < count && m->one; j++) sample_free(&m->one[j]);
    free(m->at), free(m->one);
}

enum { MANY = 16 }; /* series for which threads are worth it */

/* Threads take one series after the other: each has its own stream of random numbers. */
static sr_status make_samples(member *m, const compare_runs *p, const compare_batch *b,
                              double *const *value, int64_t length, sr_failure *why) {
    sr_failure first = {0};
#pragma omp parallel for schedule(dynamic) if (b->count >= MANY)
    for (int64_t j = 0; j < b->count; j++) {
        sr_failure own = {0};
        if (!m->at[j]) continue;
        const int64_t number = stream_number(p, p->c->wanted[b->pair[j].stat], false);
        if (sample_make(&m->one[j], &p->plan, value[j], length, stream(p, m->at[j], number),
                        &own) == SR_OK)
            continue;
#pragma omp critical
        first = own;
    }
    if (first.status != SR_OK) *why = first;
    return first.status;
}

static sr_status member_read(member *m, const compare_runs *p, const compare_batch *b, int run,
                             sr_failure *why) {
    int64_t first = 0, length = 0;
    int count = 0;
    series *s = malloc((size_t)(b->count + 1) * sizeof *s);
    double **value = calloc((size_t)(2 * b->count + 1), sizeof *value), *memory = NULL;
    sr_status status = s && value ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t j = 0; j < b->count && status == SR_OK; j++)
        if (m->at[j])
            s[count++] = (series){p->set->run[run], m->at[j]->site, p->c->wanted[b->pair[j].stat],
                                  FROM_SCALARS};
    if (count) status = sample_rows(s, &p->window[run], p->plan.after, &first, &length, why);
    if (count && status == SR_OK) {
        memory = malloc((size_t)(count * length + 1) * sizeof *memory);
        if (!memory) status = sr_fail(why, SR_MEMORY, "out of memory");
    }
    double **of = value + b->count; /* [count] without those that the run lacks */
    for (int64_t j = 0, k = 0; j < b->count && memory; j++)
        if (m->at[j]) value[j] = of[k] = memory + k * length, k++;
    if (memory) status = series_read_all(s, count, first, length, of, NULL, why);
    if (memory && status == SR_OK) status = make_samples(m, p, b, value, length, why);
    free(s), free(value), free(memory);
    return status;
}

static sr_status join_members(const compare_runs *p, const compare_batch *b, const member *m,
                              int members, group_sample *g, sr_failure *why) {
    sr_status status = SR_OK;
    const sample **one = malloc((size_t)(members + 1) * sizeof *one);
    if (!one) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t j = 0; j < b->count && status == SR_OK; j++) {
        for (int k = 0; k < members; k++) {
            if (!m[k].at[j]) continue;
            if (!g[j].at) g[j].at = m[k].at[j];
            one[g[j].runs++] = &m[k].one[j];
        }
        status = join_samples(p, p->c->wanted[b->pair[j].stat], one, &g[j], why);
    }
    free(one);
    return status;
}

sr_status compare_read_group(const compare_runs *p, const compare_batch *b, int group,
                             group_sample *g, sr_failure *why) {
    int members = 0;
    member *m = calloc((size_t)run_groups_size(&p->groups, p->set, group) + 1, sizeof *m);
    sr_status status = m ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int run = 0; run < p->set->count && status == SR_OK; run++) {
        if (p->groups.of[run] != group) continue;
        status = member_create(&m[members++], p, b, run, why);
        if (status == SR_OK) status = member_read(&m[members - 1], p, b, run, why);
    }
    if (status == SR_OK) status = join_members(p, b, m, members, g, why);
    for (int k = 0; k < members; k++) member_free(&m[k], b->count);
    free(m);
    return status;
}
