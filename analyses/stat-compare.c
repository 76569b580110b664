/* Compares two or more runs with the first: is a statistic larger, at the median and in the tail?
 *
 * Runs that differ only in the seed form a group (replicates.c). For every site and statistic that
 * the first group shares with another group:
 *
 *     ratio = quantile(other) / quantile(first),   quantile: median, 99 % or maximum over steps;
 *                                                  of a group the mean over its runs
 *
 * with a percentile interval from a bootstrap (bootstrap.c) on two levels. It draws runs from each
 * group, then blocks of steps from each run. Blocks keep the dependence of steps. It draws the two
 * groups independently. Percentiles from few runs are too short. With n runs in the smaller group,
 * each ratio r of a resample becomes ratio (r / ratio)^c, c = bootstrap_widening(n). If the
 * interval contains 1, the verdict is `no difference shown`.
 *
 * A group of one run has no spread between seeds. Its interval covers the steps of this run, and
 * another seed of the method may lie outside. So the verdict says `in these runs`.
 *
 * Steps are assumed stationary: --burn-in skips the first steps, --phase and --after choose among
 * the others. Sites match by name or by depth (stored in the run file). --match first and last take
 * the site at that end. Models without common names can be compared this way.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare_sample.h"
#include "analysis/frame/stat_program.h"
#include "analysis/runs/replicates.h"
#include "base/containers/hash.h"
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
    const run_set *set;
    const choice *c;
    const step_window *window; /* [runs] */
    tsv *table;
    run_groups groups;
    compare_places places;
} comparison;

static const sr_run_site *site_of(const comparison *p, const site_choice *at) {
    return sr_run_get_site(p->set->run[at->run], at->site);
}

/* With --match first and last only the site at that end represents the first run. */
static bool represents(const comparison *p, const site_choice *at, int stat) {
    if (at->run != 0 || !at->has[stat]) return false;
    const bool end = strcmp(p->s->match, "first") == 0 || strcmp(p->s->match, "last") == 0;
    return !end || at == site_matching_find(&p->places, NULL, 0, stat);
}

/* A ratio of numbers in different units means nothing. */
static bool same_unit(const comparison *p, int run, int stat) {
    const own_statistic *own = p->c->own[stat];
    if (!own) return true;
    const char *name = own->stat.name;
    const sr_run_declared *a = declared_named(p->set->run[0], name, SR_PER_SITE);
    const sr_run_declared *b = declared_named(p->set->run[run], name, SR_PER_SITE);
    return a && b && strcmp(a->unit, b->unit) == 0;
}

/* The site that matches `first` in the next run of the group, searched from *run, which becomes
 * the run after it. NULL after the last. */
static const site_choice *next_member(const comparison *p, const site_choice *first, int group,
                                      int stat, int *run) {
    while (*run < p->set->count) {
        const int at = (*run)++;
        if (p->groups.of[at] != group || !same_unit(p, at, stat)) continue;
        const site_choice *found =
            at == first->run ? first : site_matching_find(&p->places, first, at, stat);
        if (found) return found;
    }
    return NULL;
}

/* -- one group ------------------------------------------------------------------------------- */

typedef struct group_sample {
    const site_choice *at; /* of its first run; NULL: no run has it */
    int runs;
    int64_t count, nonfinite, block; /* sums over the runs; the longest block */
    double *drawn;                   /* [BOOTSTRAP_TAILS, resamples]; NULL: too few steps */
    double exact[BOOTSTRAP_TAILS];
} group_sample;

/* A stream for every run, site and statistic: the intervals do not depend on what else is asked. */
static rng stream(const comparison *p, const site_choice *at, int64_t number) {
    const rng root = rng_create((uint64_t)p->s->seed);
    const rng run = rng_split(&root, (uint64_t)at->run);
    const rng site = rng_split(&run, (uint64_t)at->site);
    return rng_split(&site, (uint64_t)number);
}

/* Which stream a statistic has; a number of the runs' own: by its name. */
static int64_t stream_number(const comparison *p, const statistic *stat, bool joined) {
    for (int i = 0; i < p->c->statistics; i++)
        if (p->c->own[i] && &p->c->own[i]->stat == stat)
            return (int64_t)((hash_bytes(stat->name, strlen(stat->name)) >> 2) * 2 + joined);
    return (joined ? RECORDED_STATISTICS : 0) + (stat - recorded_statistics);
}

static sr_status join_samples(const comparison *p, const statistic *stat, const sample *one,
                              double **drawn, group_sample *g, sr_failure *why) {
    bool enough = g->runs > 0;
    for (int k = 0; k < g->runs; k++) {
        g->count += one[k].count;
        g->nonfinite += one[k].nonfinite;
        g->block = one[k].block > g->block ? one[k].block : g->block;
        enough = enough && one[k].drawn;
        drawn[k] = one[k].drawn;
        for (int i = 0; i < BOOTSTRAP_TAILS; i++) g->exact[i] += one[k].exact[i] / g->runs;
    }
    if (!enough) return SR_OK;
    g->drawn = malloc((size_t)(BOOTSTRAP_TAILS * p->s->resamples) * sizeof *g->drawn);
    if (!g->drawn) return sr_fail(why, SR_MEMORY, "out of memory");
    const rng random = stream(p, g->at, stream_number(p, stat, true));
    bootstrap_runs(drawn, g->runs, random, p->s->resamples, g->drawn);
    return SR_OK;
}

/* drawn of *g is to be freed, after a failure too. */
static sr_status read_group(const comparison *p, const site_choice *first, int group, int stat,
                            group_sample *g, sr_failure *why) {
    const int most = p->set->count;
    const statistic *of = p->c->wanted[stat];
    const sample_plan plan = {p->s->after, p->s->resamples, p->s->block};
    const site_choice *at;
    *g = (group_sample){0};
    sample *one = calloc((size_t)most, sizeof *one);
    double **drawn = calloc((size_t)most, sizeof *drawn);
    sr_status status = one && drawn ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int run = 0; status == SR_OK && (at = next_member(p, first, group, stat, &run)) != NULL;) {
        const series values = {p->set->run[at->run], at->site, of, FROM_SCALARS};
        if (!g->at) g->at = at;
        status = sample_make(&one[g->runs++], &plan, &values, &p->window[at->run],
                             stream(p, at, stream_number(p, of, false)), why);
    }
    if (status == SR_OK) status = join_samples(p, of, one, drawn, g, why);
    for (int k = 0; k < most && one; k++) sample_free(&one[k]);
    free(one);
    free(drawn);
    return status;
}

/* -- two groups ------------------------------------------------------------------------------ */

static const char *verdict(double low, double high, bool replicated) {
    if (isnan(low) || isnan(high)) return "undefined";
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
        sort_reals(ratio, s->resamples);
        *low = quantile_of_sorted(ratio, s->resamples, outside);
        *high = quantile_of_sorted(ratio, s->resamples, 1 - outside);
    }
    free(ratio);
    return SR_OK;
}

static sr_status print_pair(const comparison *p, const statistic *stat, const group_sample *x,
                            const group_sample *y, sr_failure *why) {
    tsv *t = p->table;
    const bool enough = x->drawn && y->drawn, replicated = x->runs > 1 && y->runs > 1;
    for (int i = 0; i < BOOTSTRAP_TAILS; i++) {
        double low = NAN, high = NAN;
        sr_status status = enough ? interval(p->s, x, y, i, &low, &high, why) : SR_OK;
        if (status != SR_OK) return status;
        tsv_text(t, p->set->path[y->at->run]);
        tsv_text(t, site_of(p, y->at)->name);
        tsv_text(t, p->set->path[x->at->run]);
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
        tsv_real(t, low);
        tsv_real(t, high);
        tsv_text(t, enough ? verdict(low, high, replicated) : "too few steps");
    }
    return SR_OK;
}

static sr_status compare_site(const comparison *p, const site_choice *first, int stat,
                              sr_failure *why) {
    group_sample x, y;
    sr_status status = read_group(p, first, 0, stat, &x, why);
    for (int group = 1; group < p->groups.count && status == SR_OK; group++) {
        status = read_group(p, first, group, stat, &y, why);
        if (status == SR_OK && y.at) status = print_pair(p, p->c->wanted[stat], &x, &y, why);
        free(y.drawn);
    }
    free(x.drawn);
    return status;
}

static int64_t count_pairs(const comparison *p) {
    int64_t pairs = 0;
    for (int64_t k = 0; k < p->c->sites; k++)
        for (int i = 0; i < p->c->statistics; i++)
            for (int g = 1; g < p->groups.count && represents(p, &p->c->site[k], i); g++)
                pairs += next_member(p, &p->c->site[k], g, i, &(int){0}) != NULL;
    return pairs;
}

/* -- the table ------------------------------------------------------------------------------- */

static void declare_columns(stat_table *table) {
    tsv *t = &table->table;
    tsv_column(t, "run", "run file as given; of a group its first run");
    tsv_column(t, "site", "its normalization site");
    tsv_column(t, "first", "the first run file; its group is what all others are divided by");
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
               "too few steps: a run has fewer than 20. undefined: a ratio is 0/0 or x/0");
}

static void note_method(const comparison *p, int64_t pairs, tsv *t) {
    const settings *s = p->s;
    run_groups_describe(&p->groups, p->set, t);
    tsv_note(t, "seed", "%lld", (long long)s->seed);
    tsv_note(t, "intervals", "%g %% percentile intervals from %lld resamples of circular blocks",
             s->level, (long long)s->resamples);
    if (p->groups.count < p->set->count)
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
    for (int g = 0; g < p->groups.count; g++)
        single = single || run_groups_size(&p->groups, p->set, g) < 2;
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

/* Of runs that declare a number, but in another unit than the first. */
static void note_units(const comparison *p) {
    for (int i = 0; i < p->c->statistics; i++)
        for (int r = 1; r < p->set->count; r++)
            if (declared_named(p->set->run[0], p->c->wanted[i]->name, SR_PER_SITE) &&
                declared_named(p->set->run[r], p->c->wanted[i]->name, SR_PER_SITE) &&
                !same_unit(p, r, i))
                tsv_note(p->table, "note", "%s: skipped: %s has another unit than in %s",
                         p->set->path[r], p->c->wanted[i]->name, p->set->path[0]);
}

static sr_status nothing_in_common(const comparison *p, sr_failure *why) {
    sr_fail(why, SR_FORMAT, "%s shares no statistic with the others", p->set->path[0]);
    for (int i = 0; i < p->c->statistics; i++)
        for (int r = 1; p->c->own[i] && r < p->set->count; r++)
            if (!same_unit(p, r, i)) {
                sr_hint(why, "units of %s differ: `statrec info` prints them",
                        p->c->wanted[i]->name);
                return SR_FORMAT;
            }
    if (strcmp(p->s->match, "name") == 0)
        sr_hint(why, "--match depth, first or last compares sites of different names");
    return SR_FORMAT;
}

static sr_status print_pairs(stat_table *t, sr_failure *why) {
    const comparison *p = t->state;
    sr_status status = SR_OK;
    for (int64_t k = 0; k < p->c->sites; k++)
        for (int i = 0; i < p->c->statistics && status == SR_OK; i++)
            if (represents(p, &p->c->site[k], i)) status = compare_site(p, &p->c->site[k], i, why);
    return status;
}

static sr_status choose(stat_table *t, sr_failure *why) {
    comparison *p = t->state;
    *p = (comparison){.s = t->settings, .set = t->set, .c = &t->chosen, .table = &t->table};
    const settings *s = p->s;
    if (t->set->count < 2) return sr_fail(why, SR_USAGE, "a comparison needs two runs or more");
    sr_status status = choice_set_statistics(&t->chosen, recorded_statistics, RECORDED_STATISTICS,
                                             t->set, s->stat, why);
    if (status == SR_OK)
        status = choice_set_sites(&t->chosen, t->set, s->site, FROM_SCALARS, p->table, why);
    if (status == SR_OK) status = site_matching_make(&p->places, p->c, t->set, s->match, why);
    if (status == SR_OK)
        status = run_groups_make(&p->groups, t->set, strcmp(s->groups, "none") == 0, why);
    if (status == SR_OK && p->groups.count == 1) {
        tsv_note(p->table, "note",
                 "the runs differ only in the seed. They are compared one by one: differences show "
                 "the effect of a seed");
        run_groups_free(&p->groups);
        status = run_groups_make(&p->groups, t->set, true, why);
    }
    if (status == SR_OK)
        status = windows_make(&t->window, t->set, s->startup, s->phase, p->table, why);
    if (status != SR_OK) return status;
    p->window = t->window;
    choice_note_own(p->c, t->set, true, p->table);
    note_units(p);
    comparable_warn(p->c, t->set, p->table);
    const int64_t pairs = count_pairs(p);
    note_method(p, pairs, p->table);
    return pairs ? SR_OK : nothing_in_common(p, why);
}

static void release(stat_table *t) {
    comparison *p = t->state;
    run_groups_free(&p->groups);
    site_matching_free(&p->places);
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
