/* compare_groups.c -- reads the runs of a group, and joins their samples. */
#include "analysis/compare_groups.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap_fixed.h"
#include "base/containers/hash.h"
#include "base/large_pages.h"

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

/* A stream for every run, site and statistic: the intervals do not depend on the other requested
 * ones. */
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

/* Number of series, or of rows, from which threads pay; and rows from which a few threads at most
 * each keep a column. */
enum { MANY = 16, MANY_ROWS = 1 << 16 };

int compare_threads(int64_t rows) {
    const int most = omp_get_max_threads();
    return rows > MANY_ROWS && most > COMPARE_THREADS ? COMPARE_THREADS : most;
}

/* The series of a run that are resampled together. */
typedef struct resampling {
    const compare_runs *p;
    const compare_batch *b;
    member *m;
    double *const *value; /* [b->count][rows] */
    int64_t rows;
    sr_failure why;
} resampling;

/* One step of series j; its failure. */
typedef sr_status series_step(const resampling *r, int64_t j, const block_draws *d, int64_t first,
                              sr_failure *why);

/* Threads take one series after the other. */
static sr_status each_series(resampling *r, series_step *step, const block_draws *d,
                             int64_t first) {
    const bool worth = r->b->count >= MANY || r->rows > MANY_ROWS;
#pragma omp parallel for schedule(dynamic) num_threads(worth ? compare_threads(r->rows) : 1)
    for (int64_t j = 0; j < r->b->count; j++) {
        sr_failure own = {0};
        if (!r->m->at[j] || step(r, j, d, first, &own) == SR_OK) continue;
#pragma omp critical
        r->why = own;
    }
    return r->why.status;
}

static sr_status measure(const resampling *r, int64_t j, const block_draws *d, int64_t first,
                         sr_failure *why) {
    (void)d, (void)first;
    return sample_measure(&r->m->one[j], &r->p->plan, r->value[j], r->rows, why);
}

static int64_t blocks_of(const sample *x) {
    return x->drawn ? fixed_blocks(x->count, x->block) : 0;
}

/* Each series has its own stream of random numbers. */
static sr_status draw_alone(const resampling *r, int64_t j, const block_draws *d, int64_t first,
                            sr_failure *why) {
    (void)d, (void)first;
    sample *x = &r->m->one[j];
    const int64_t number = stream_number(r->p, r->p->c->wanted[r->b->pair[j].stat], false);
    if (!x->drawn || blocks_of(x)) return SR_OK;
    return sample_draw(x, &r->p->plan, r->value[j], stream(r->p, r->m->at[j], number), why);
}

static sr_status draw_fixed(const resampling *r, int64_t j, const block_draws *d, int64_t first,
                            sr_failure *why) {
    sample *x = &r->m->one[j];
    if (blocks_of(x) != d->blocks) return SR_OK;
    return bootstrap_fixed(r->value[j], x->count, d, r->p->plan.resamples, x->drawn + first, why);
}

/* A stream for every run and number of blocks: long series of a run share their resamples. */
static rng fixed_stream(const compare_runs *p, int run, int64_t blocks) {
    const rng root = rng_create(p->seed);
    const rng of = rng_split(&root, (uint64_t)run);
    return rng_split(&of, UINT64_MAX - (uint64_t)blocks);
}

static sr_status draw_blocks(resampling *r, int run, int64_t blocks) {
    const int64_t all = r->p->plan.resamples;
    const rng random = fixed_stream(r->p, run, blocks);
    sr_status status = SR_OK;
    for (int64_t at = 0; at < all && status == SR_OK; at += DRAWS_MOST) {
        block_draws d;
        const int64_t n = all - at < DRAWS_MOST ? all - at : DRAWS_MOST;
        status = block_draws_make(&d, blocks, random, at, n, &r->why);
        if (status == SR_OK) status = each_series(r, draw_fixed, &d, at);
        block_draws_free(&d);
    }
    return status;
}

/* Series with the same number of fixed blocks follow each other. */
static sr_status make_samples(resampling *r, int run) {
    sr_status status = each_series(r, measure, NULL, 0);
    if (status == SR_OK) status = each_series(r, draw_alone, NULL, 0);
    for (int64_t j = 0; j < r->b->count && status == SR_OK; j++) {
        const int64_t blocks = blocks_of(&r->m->one[j]);
        bool drawn = !blocks;
        for (int64_t i = 0; i < j && !drawn; i++) drawn = blocks_of(&r->m->one[i]) == blocks;
        if (!drawn) status = draw_blocks(r, run, blocks);
    }
    return status;
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
        memory = large_pages_alloc((size_t)(count * length + 1) * sizeof *memory);
        if (!memory) status = sr_fail(why, SR_MEMORY, "out of memory");
    }
    double **of = value + b->count; /* [count] without those that the run lacks */
    for (int64_t j = 0, k = 0; j < b->count && memory; j++)
        if (m->at[j]) value[j] = of[k] = memory + k * length, k++;
    if (memory) status = series_read_all(s, count, first, length, of, NULL, why);
    if (memory && status == SR_OK) {
        resampling r = {.p = p, .b = b, .m = m, .value = value, .rows = length};
        status = make_samples(&r, run);
        if (status != SR_OK) *why = r.why;
    }
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
