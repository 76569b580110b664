/* Compares two or more runs with the first: is a statistic larger, at the median and in the tail?
 *
 * Runs that differ only in the seed form a group (replicates.c). For every site and statistic that
 * the first group shares with another group:
 *
 *     ratio = quantile(other) / quantile(first),   quantile: median, 99 % or maximum over steps;
 *                                                  of a group the mean over its runs
 *
 * with a percentile interval from a bootstrap (bootstrap.c; long series: bootstrap_fixed.c) on two
 * levels. It draws runs from each
 * group, then blocks of steps from each run. Blocks keep the dependence of steps. It draws the two
 * groups independently. Percentiles from few runs are too short. With n runs in the smaller group,
 * each ratio r of a resample becomes ratio (r / ratio)^c, c = bootstrap_widening(n). If the
 * interval contains 1, the verdict is `no difference shown`.
 *
 * A group of one run has no spread between seeds. Its interval covers the steps of this run, and
 * another seed of the method may lie outside. So the verdict is qualified with `in these runs`.
 *
 * Steps are assumed stationary: --burn-in skips the first steps, --phase and --after choose among
 * the others. Sites match by name or by depth (stored in the run file). --match first and last take
 * the site at that end. Models without common names can be compared this way.
 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/bootstrap/bootstrap_fixed.h"
#include "analysis/columns/column_summary.h"
#include "analysis/compare_groups.h"
#include "analysis/frame/stat_program.h"
#include "base/program/progress.h"
#include "base/sort.h"

typedef struct settings {
    option_text site, stat, match, groups, startup, phase;
    double after, level;
    int64_t resamples, block, seed;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    TEXT_OPTION("Choice", "site", AT(site), "*", "use these sites: globs", .value = "SITE,..."),
    TEXT_OPTION("Choice", "stat", AT(stat),
                "dist_mu,dist_sigma2,dist_psi2,tid_mean,tid_var,g_mu,g_sigma2,g_psi2,g_mu_share,"
                "g_sigma2_share,g_psi2_share",
                "compare these statistics: names below /scalars, forms of them, or custom scalars",
                .value = "STAT,..."),
    CHOICE_OPTION("Choice", "match", AT(match), "name", "name|depth|first|last",
                  "match sites of two runs by name or depth, or take the first or last of each"),
    CHOICE_OPTION("Choice", "groups", AT(groups), "seed", "seed|none",
                  "seed: runs that differ only in the seed form one group; none: each run alone"),
    WINDOW_OPTIONS(AT(startup), AT(phase)),
    REAL_OPTION("Steps", "after", AT(after), "0", 0, 99, "percent",
                "skip the first X percent of training"),
    LEVEL_OPTION(AT(level)),
    RESAMPLES_OPTION(AT(resamples)),
    INT_OPTION("Intervals", "block", AT(block), "0", 0, 1000000, "steps",
               "draw blocks of N steps; 0: from the autocorrelation of each series"),
    SEED_OPTION(AT(seed)),
};

static const char *const quantity[BOOTSTRAP_TAILS] = {"median", "q99", "max"};

typedef struct comparison {
    const settings *s;
    tsv *table;
    compare_runs runs;
    compare_pair *pair; /* [pairs] by statistic: a dataset has all sites */
    int64_t pairs;
    group_sample *first; /* [pairs] of the first group, by row, without `drawn` */
    FILE *spool;         /* results */
} comparison;

static const sr_run_site *site_of(const comparison *p, const site_choice *at) {
    return sr_run_get_site(p->runs.set->run[at->run], at->site);
}

/* The first run of the first group that has the site represents the group; with --match first and
 * last only the site at that end. */
static bool represents(const comparison *p, const site_choice *at, int stat) {
    if (p->runs.groups.of[at->run] != 0 || !at->has[stat]) return false;
    const bool end = strcmp(p->s->match, "first") == 0 || strcmp(p->s->match, "last") == 0;
    const compare_pair pair = {at, stat, 0};
    for (int run = 0; run < at->run; run++)
        if (p->runs.groups.of[run] == 0 && compare_match(&p->runs, &pair, run)) return false;
    return !end || at == site_matching_find(&p->runs.places, NULL, at->run, stat);
}

/* -- two groups ------------------------------------------------------------------------------ */

/* Of a ratio y/x: between numbers of other signs it orders nothing. */
static const char *verdict(double y, double x, double low, double high, bool replicated) {
    if (isnan(low) || isnan(high) || !(y >= 0 && x > 0)) return "undefined";
    if (low > 1) return replicated ? "larger" : "larger in these runs";
    if (high < 1) return replicated ? "smaller" : "smaller in these runs";
    return "no difference shown";
}

/* Ratios of both signs have no logarithm: their distance is stretched then. */
static double widen(double drawn, double ratio, double by) {
    if (by == 1) return drawn;
    if (drawn > 0 && ratio > 0) return fmin(ratio * pow(drawn / ratio, by), DBL_MAX);
    return ratio + by * (drawn - ratio);
}

/* Percentile interval of the ratio of independent resamples; NaN when one ratio is undefined. */
static sr_status interval(const settings *s, const group_sample *x, const group_sample *y, int tail,
                          double *low, double *high, sr_failure *why) {
    const double *first = x->drawn + tail * s->resamples, *other = y->drawn + tail * s->resamples;
    const double exact = y->exact[tail] / x->exact[tail];
    const double by = bootstrap_widening(x->runs < y->runs ? x->runs : y->runs, s->level);
    double *ratio = malloc((size_t)s->resamples * sizeof *ratio);
    if (!ratio) return sr_fail(why, SR_MEMORY, "out of memory");
    bool defined = isfinite(exact);
    for (int64_t b = 0; b < s->resamples; b++) {
        defined = defined && isfinite(other[b] / first[b]);
        ratio[b] = widen(other[b] / first[b], exact, by);
    }
    if (defined) {
        const double outside = (100 - s->level) / 200;
        const int64_t n = s->resamples;
        const int64_t rank[] = {quantile_rank(n, outside), quantile_rank_above(n, outside),
                                quantile_rank(n, 1 - outside), quantile_rank_above(n, 1 - outside)};
        quickselect_ranks(ratio, n, rank, 4);
        *low = quantile_between(n, outside, ratio[rank[0]], ratio[rank[1]]);
        *high = quantile_between(n, 1 - outside, ratio[rank[2]], ratio[rank[3]]);
    }
    free(ratio);
    return SR_OK;
}

/* A pair of a group and the first group: values of its rows. */
typedef struct compared {
    int run, runs; /* runs 0: the group has no such series */
    int64_t site, count, nonfinite, block;
    bool enough, few_blocks;
    double exact[BOOTSTRAP_TAILS], low[BOOTSTRAP_TAILS], high[BOOTSTRAP_TAILS];
} compared;

/* Of fewer blocks an interval is too short (docs/definitions.md, Comparison). Intervals over
 * several runs are wide enough. */
enum { FEW_BLOCKS = 20 };

static bool has_few_blocks(const group_sample *g) {
    return g->runs == 1 && g->drawn && g->count < FEW_BLOCKS * g->block;
}

static sr_status compare_group(const comparison *p, const group_sample *x, const group_sample *y,
                               compared *c, sr_failure *why) {
    *c = (compared){.runs = 0};
    if (!y->at) return SR_OK;
    *c = (compared){.run = y->at->run,
                    .site = y->at->site,
                    .runs = y->runs,
                    .count = y->count,
                    .nonfinite = y->nonfinite,
                    .block = y->block,
                    .enough = x->drawn && y->drawn};
    c->few_blocks = c->enough && (has_few_blocks(x) || has_few_blocks(y));
    sr_status status = SR_OK;
    for (int i = 0; i < BOOTSTRAP_TAILS && status == SR_OK; i++) {
        c->exact[i] = y->exact[i], c->low[i] = c->high[i] = NAN;
        if (c->enough) status = interval(p->s, x, y, i, &c->low[i], &c->high[i], why);
    }
    return status;
}

static void print_pair(const comparison *p, const statistic *stat, const group_sample *x,
                       const compared *y) {
    tsv *t = p->table;
    const bool replicated = x->runs > 1 && y->runs > 1;
    for (int i = 0; i < BOOTSTRAP_TAILS; i++) {
        tsv_text(t, p->runs.set->path[y->run]);
        tsv_text(t, sr_run_get_site(p->runs.set->run[y->run], y->site)->name);
        tsv_text(t, p->runs.set->path[x->at->run]);
        tsv_text(t, site_of(p, x->at)->name);
        tsv_text(t, stat->name);
        tsv_int(t, y->runs);
        tsv_int(t, x->runs);
        tsv_int(t, y->count);
        tsv_int(t, y->nonfinite);
        tsv_int(t, x->count);
        tsv_int(t, x->nonfinite);
        tsv_int(t, y->block);
        tsv_int(t, x->block);
        tsv_text(t, quantity[i]);
        tsv_real(t, y->exact[i]);
        tsv_real(t, x->exact[i]);
        tsv_real(t, y->exact[i] / x->exact[i]);
        tsv_real(t, y->low[i]);
        tsv_real(t, y->high[i]);
        tsv_text(t, y->enough ? verdict(y->exact[i], x->exact[i], y->low[i], y->high[i], replicated)
                              : "too few steps");
    }
}

/* -- all of them ------------------------------------------------------------------------------ */

/* Results are computed statistic by statistic and group by group, so that each dataset is read
 * once. They are printed by site; an unnamed temporary file holds them in between. */
static sr_status spool_failed(sr_failure *why) {
    return sr_fail(why, SR_IO, "temporary file of results: %s", strerror(errno));
}

static off_t spool_place(const comparison *p, int64_t row, int group) {
    return (off_t)((row * (p->runs.groups.count - 1) + group - 1) * (int64_t)sizeof(compared));
}

static sr_status spool_group(const comparison *p, const compare_batch *b, int group,
                             const group_sample *x, int spool, sr_failure *why) {
    group_sample *y = calloc((size_t)b->count, sizeof *y);
    if (!y) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = compare_read_group(&p->runs, b, group, y, why);
    for (int64_t j = 0; j < b->count && status == SR_OK; j++) {
        compared c;
        status = compare_group(p, &x[j], &y[j], &c, why);
        const off_t at = spool_place(p, b->pair[j].row, group);
        if (status == SR_OK && pwrite(spool, &c, sizeof c, at) != sizeof c)
            status = spool_failed(why);
    }
    for (int64_t j = 0; j < b->count; j++) free(y[j].drawn);
    free(y);
    return status;
}

static sr_status spool_batch(const comparison *p, const compare_batch *b, int spool,
                             sr_failure *why) {
    group_sample *x = calloc((size_t)b->count, sizeof *x);
    sr_status status =
        !x ? sr_fail(why, SR_MEMORY, "out of memory") : compare_read_group(&p->runs, b, 0, x, why);
    for (int group = 1; group < p->runs.groups.count && status == SR_OK; group++)
        status = spool_group(p, b, group, x, spool, why);
    for (int64_t j = 0; j < b->count && x; j++) {
        free(x[j].drawn);
        p->first[b->pair[j].row] = x[j];
    }
    free(x);
    return status;
}

static sr_status print_spooled(const comparison *p, int spool, sr_failure *why) {
    const compare_pair **of = malloc((size_t)(p->pairs + 1) * sizeof *of); /* by row */
    sr_status status = of ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t j = 0; j < p->pairs && of; j++) of[p->pair[j].row] = &p->pair[j];
    for (int64_t row = 0; row < p->pairs && status == SR_OK; row++)
        for (int g = 1; g < p->runs.groups.count && status == SR_OK; g++) {
            compared c;
            if (pread(spool, &c, sizeof c, spool_place(p, row, g)) != sizeof c)
                status = spool_failed(why);
            else if (c.runs)
                print_pair(p, p->runs.c->wanted[of[row]->stat], &p->first[row], &c);
        }
    free(of);
    return status;
}

static sr_status note_few_blocks(const comparison *p, sr_failure *why) {
    int64_t few = 0;
    for (int64_t row = 0; row < p->pairs; row++)
        for (int g = 1; g < p->runs.groups.count; g++) {
            compared c;
            if (pread(fileno(p->spool), &c, sizeof c, spool_place(p, row, g)) != sizeof c)
                return spool_failed(why);
            few += c.runs && c.few_blocks;
        }
    if (few)
        tsv_note(p->table, "note",
                 "%lld of the intervals come from a single run of less than %d blocks (columns "
                 "steps, block): they are too short",
                 (long long)(BOOTSTRAP_TAILS * few), FEW_BLOCKS);
    return SR_OK;
}

static int64_t longest_run(const comparison *p) {
    int64_t steps = 1;
    for (int r = 0; r < p->runs.set->count; r++) {
        const int64_t here = sr_run_get_info(p->runs.set->run[r])->steps;
        if (here > steps) steps = here;
    }
    return steps;
}

/* Pairs whose resamples of the largest group, and whose values of the longest run, fit. */
static int64_t batch_most(const comparison *p) {
    enum { BYTES = 1 << 26 };
    const int64_t steps = longest_run(p);
    int64_t most = 1;
    for (int g = 0; g < p->runs.groups.count; g++) {
        const int runs = run_groups_size(&p->runs.groups, p->runs.set, g);
        if (runs > most) most = runs;
    }
    const int64_t drawn = 1 + BYTES / (8 * (most + 2) * BOOTSTRAP_TAILS * p->s->resamples);
    const int64_t columns = column_memory_limit() / (8 * steps) - compare_threads(steps);
    return columns < 1 ? 1 : columns < drawn ? columns : drawn;
}

static int64_t pairs_alike(const comparison *p, int64_t at) {
    int64_t n = 0;
    while (at + n < p->pairs && p->pair[at + n].stat == p->pair[at].stat) n++;
    return n;
}

/* As many statistics as fit, or an equal part of one that does not. */
static int64_t batch_size(const comparison *p, int64_t at, int64_t most) {
    int64_t n = pairs_alike(p, at);
    const int64_t turns = (n + most - 1) / most;
    if (turns > 1) return (n + turns - 1) / turns;
    while (at + n < p->pairs && n + pairs_alike(p, at + n) <= most) n += pairs_alike(p, at + n);
    return n;
}

static int by_statistic(const void *a, const void *b) {
    const compare_pair *x = a, *y = b;
    return x->stat != y->stat ? x->stat - y->stat : (x->row > y->row) - (x->row < y->row);
}

/* The pairs that the table is about. NULL with *why, or without any. */
static compare_pair *list_pairs(const comparison *p, int64_t *count, sr_failure *why) {
    compare_pair *all =
        malloc((size_t)(p->runs.c->sites * p->runs.c->statistics + 1) * sizeof *all);
    *count = 0;
    if (!all) sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t k = 0; k < p->runs.c->sites && all; k++)
        for (int i = 0; i < p->runs.c->statistics; i++)
            if (represents(p, &p->runs.c->site[k], i)) {
                all[*count] = (compare_pair){&p->runs.c->site[k], i, *count};
                ++*count;
            }
    if (all) qsort(all, (size_t)*count, sizeof *all, by_statistic);
    return all;
}

/* Whether a run of the group has it. */
static bool group_has(const comparison *p, const compare_pair *of, int group) {
    for (int run = 0; run < p->runs.set->count; run++)
        if (p->runs.groups.of[run] == group && compare_match(&p->runs, of, run)) return true;
    return false;
}

static int64_t count_pairs(const comparison *p, const compare_pair *all, int64_t count) {
    int64_t pairs = 0;
    for (int64_t j = 0; j < count; j++)
        for (int g = 1; g < p->runs.groups.count; g++) pairs += group_has(p, &all[j], g);
    return pairs;
}

/* -- the table ------------------------------------------------------------------------------- */

static void declare_columns(stat_table *table) {
    tsv *t = &table->table;
    tsv_column(t, "run", "run file as given; of a group its first run");
    tsv_column(t, "site", "its normalization site");
    tsv_column(t, "first", "the first run file that has the site; its group divides all others");
    tsv_column(t, "first_site", "its site");
    tsv_column(t, "statistic", "name below /scalars");
    tsv_column(t, "runs", "in the group of `run`: the same configuration, different seeds");
    tsv_column(t, "first_runs", "in the group of `first`");
    tsv_column(t, "steps", "finite values of `run`, of a group of all its runs");
    tsv_column(t, "nonfinite", "steps of `run` with NaN or infinity, left out");
    tsv_column(t, "first_steps", "finite values of `first`");
    tsv_column(t, "first_nonfinite", "steps of `first` with NaN or infinity, left out");
    tsv_column(t, "block",
               "steps in a block of `run`, of a group the longest; 0 without resamples");
    tsv_column(t, "first_block", "steps in a block of `first`");
    tsv_column(t, "quantity", "median, q99 (99 % quantile) or max over the steps of a run");
    tsv_column(t, "value", "quantity of `run`, of a group the mean over its runs");
    tsv_column(t, "first_value", "quantity of `first`");
    tsv_column(t, "ratio", "value / first_value");
    tsv_column(t, "low", "lower end of the interval of the ratio");
    tsv_column(t, "high",
               "upper end. A resample never exceeds the maximum of its series. So the interval of "
               "max shows how much depends on single steps. It is no bound for other runs");
    tsv_column(t, "verdict",
               "larger or smaller: the interval covers other seeds and is above or below 1. larger "
               "or smaller in these runs: one side is a single run. Its interval covers other "
               "steps and does not compare methods. no difference shown: the interval contains 1. "
               "too few steps: a run has fewer than 20. undefined: a ratio is 0/0 or x/0, or "
               "a number is negative");
}

static void note_method(const comparison *p, int64_t pairs, tsv *t) {
    const settings *s = p->s;
    run_groups_describe(&p->runs.groups, p->runs.set, t);
    tsv_note(t, "seed", "%lld", (long long)s->seed);
    tsv_note(t, "intervals", "%g %% percentile intervals from %lld resamples of circular blocks",
             s->level, (long long)s->resamples);
    if (longest_run(p) >= FIXED_LEAST)
        tsv_note(t, "intervals",
                 "of %d values or more: blocks of such a series have fixed ends. Series of a run "
                 "with as many blocks share their resamples",
                 (int)FIXED_LEAST);
    if (p->runs.groups.count < p->runs.set->count)
        tsv_note(t, "intervals",
                 "groups: resamples draw runs, then blocks of each. Few runs widen an interval "
                 "(Student): 2 runs %.3g times, 3: %.3g, 5: %.3g",
                 bootstrap_widening(2, s->level), bootstrap_widening(3, s->level),
                 bootstrap_widening(5, s->level));
    if (s->block)
        tsv_note(t, "block", "%lld steps, as given", (long long)s->block);
    else
        tsv_note(t, "block",
                 "length per series by Politis and White 2004, from the autocorrelation of [value "
                 "> median]");
    /* the coverage of the intervals */
    const int64_t intervals = BOOTSTRAP_TAILS * pairs;
    bool single = false;
    for (int g = 0; g < p->runs.groups.count; g++)
        single = single || run_groups_size(&p->runs.groups, p->runs.set, g) < 2;
    if (single)
        tsv_note(t, "note",
                 "one side is a single run (columns runs, first_runs). Its interval covers other "
                 "steps and no other seeds. Two seeds of one method differ `in these runs` too. To "
                 "compare methods, give three runs or more of each");
    else
        tsv_note(t, "note",
                 "%lld intervals cover other seeds. Without a difference about %.3g at most miss 1",
                 (long long)intervals, (100 - p->s->level) / 100 * (double)intervals);
}

/* Notes runs that declare a number, but in another unit than the first. */
static void note_units(const comparison *p) {
    for (int i = 0; i < p->runs.c->statistics; i++)
        for (int r = 1; r < p->runs.set->count; r++)
            if (declared_named(p->runs.set->run[0], p->runs.c->wanted[i]->name, SR_PER_SITE) &&
                declared_named(p->runs.set->run[r], p->runs.c->wanted[i]->name, SR_PER_SITE) &&
                !compare_same_unit(&p->runs, r, i))
                tsv_note(p->table, "note", "%s: skipped: %s has another unit than in %s",
                         p->runs.set->path[r], p->runs.c->wanted[i]->name, p->runs.set->path[0]);
}

/* Whether a site of the first run has its name in another run, with or without the statistics. */
static bool shares_a_name(const run_set *set) {
    const sr_run_site *site;
    for (int64_t i = 0; (site = sr_run_get_site(set->run[0], i)); i++)
        for (int r = 1; r < set->count; r++)
            if (sr_run_find_site(set->run[r], site->name) >= 0) return true;
    return false;
}

static sr_status no_common_name(const run_set *set, sr_failure *why) {
    char first[160], other[160];
    choice_list_sites(set->run[0], first, sizeof first);
    choice_list_sites(set->run[1], other, sizeof other);
    sr_fail(why, SR_FORMAT, "no site has the same name in %s (%s) and in %s (%s)%s", set->path[0],
            first, set->path[1], other, set->count > 2 ? ", nor in any other run" : "");
    sr_hint(why, "--match depth, first or last compares sites of different names");
    return SR_FORMAT;
}

static sr_status nothing_in_common(const comparison *p, sr_failure *why) {
    if (strcmp(p->s->match, "name") == 0 && !shares_a_name(p->runs.set))
        return no_common_name(p->runs.set, why);
    sr_fail(why, SR_FORMAT, "%s shares no statistic with the others", p->runs.set->path[0]);
    for (int i = 0; i < p->runs.c->statistics; i++)
        for (int r = 1; p->runs.c->own[i] && r < p->runs.set->count; r++)
            if (!compare_same_unit(&p->runs, r, i)) {
                sr_hint(why, "units of %s differ: `statrec info` prints them",
                        p->runs.c->wanted[i]->name);
                return SR_FORMAT;
            }
    return SR_FORMAT;
}

/* Before the table, whose notes depend on the results. */
static sr_status compare_pairs(comparison *p, sr_failure *why) {
    const int64_t most = batch_most(p);
    progress line;
    p->spool = tmpfile();
    sr_status status = p->spool ? SR_OK : spool_failed(why);
    progress_begin(&line, "stat-compare", "series", p->pairs, !isatty(STDERR_FILENO));
    for (int64_t at = 0, n; at < p->pairs && status == SR_OK; at += n) {
        n = batch_size(p, at, most);
        status = spool_batch(p, &(compare_batch){p->pair + at, n}, fileno(p->spool), why);
        progress_show(&line, at + n, NULL);
    }
    progress_end(&line);
    return status == SR_OK ? note_few_blocks(p, why) : status;
}

static sr_status print_pairs(stat_table *t, sr_failure *why) {
    const comparison *p = t->state;
    return print_spooled(p, fileno(p->spool), why);
}

static sr_status choose(stat_table *t, sr_failure *why) {
    comparison *p = t->state;
    const settings *s = t->settings;
    const compare_runs runs = {.set = t->set,
                               .c = &t->chosen,
                               .plan = {s->after, s->resamples, s->block},
                               .seed = (uint64_t)s->seed};
    *p = (comparison){.s = s, .table = &t->table, .runs = runs};
    if (t->set->count < 2) return sr_fail(why, SR_USAGE, "a comparison needs two runs or more");
    sr_status status = choice_set_statistics(&t->chosen, recorded_statistics, RECORDED_STATISTICS,
                                             t->set, s->stat, why);
    if (status == SR_OK)
        status = choice_set_sites(&t->chosen, t->set, s->site, FROM_SCALARS, p->table, why);
    if (status == SR_OK)
        status = site_matching_make(&p->runs.places, p->runs.c, t->set, s->match, why);
    if (status == SR_OK)
        status = run_groups_make(&p->runs.groups, t->set, strcmp(s->groups, "none") == 0, why);
    if (status == SR_OK && p->runs.groups.count == 1) {
        tsv_note(p->table, "note",
                 "the runs differ only in the seed. They are compared one by one: differences show "
                 "the effect of a seed");
        run_groups_free(&p->runs.groups);
        status = run_groups_make(&p->runs.groups, t->set, true, why);
    }
    if (status == SR_OK)
        status = windows_make(&t->window, t->set, s->startup, s->phase, p->table, why);
    if (status != SR_OK) return status;
    p->runs.window = t->window;
    choice_note_own(p->runs.c, t->set, true, p->table);
    note_units(p);
    comparable_warn(p->runs.c, p->table);
    p->pair = list_pairs(p, &p->pairs, why);
    if (!p->pair) return SR_MEMORY;
    p->first = calloc((size_t)p->pairs + 1, sizeof *p->first);
    if (!p->first) return sr_fail(why, SR_MEMORY, "out of memory");
    const int64_t pairs = count_pairs(p, p->pair, p->pairs);
    note_method(p, pairs, p->table);
    return pairs ? compare_pairs(p, why) : nothing_in_common(p, why);
}

static void release(stat_table *t) {
    comparison *p = t->state;
    run_groups_free(&p->runs.groups);
    site_matching_free(&p->runs.places);
    if (p->spool) fclose(p->spool);
    free(p->pair);
    free(p->first);
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-compare",
        .usage = "RUN.h5 RUN.h5... [--match name|depth|first|last]",
        .does = "Ratios of medians and tails, every other run against the first, with bootstrap "
                "intervals.\n"
                "Runs that differ only in the seed form one group: its intervals cover other "
                "seeds. The\n"
                "interval of a single run covers other steps of this run and does not compare "
                "methods: give\n"
                "three seeds or more of each.",
        .options = {rows, sizeof rows / sizeof rows[0]},
        .settings = sizeof(settings),
        .state = sizeof(comparison),
        .head = choose,
        .columns = declare_columns,
        .rows = print_pairs,
        .release = release,
    };
    return stat_program_main(&p, argc, argv);
}
