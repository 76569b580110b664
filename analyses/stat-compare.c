/* Two or more runs against the first one: is a statistic larger, at the median and in its tail?
 *
 * For every site and statistic that the first run and another one share:
 *
 *     ratio = quantile(other) / quantile(first),   quantile = median, 99 %, maximum over steps
 *
 * with a percentile interval from a block bootstrap (analysis_bootstrap.c): the steps of a run
 * follow from each other, so blocks of steps are drawn, not steps, and the two runs independently.
 * An interval that contains 1 is `no difference shown`. What the interval covers is the spread over
 * the steps of these very runs; another seed of the same method is another run, which only more
 * runs can tell. Steps are taken as stationary: --after leaves out the beginning.
 *
 * Sites are matched by name, by depth (the number stored in the run file), or the first or the last
 * site with the statistic: models without a common name can be compared by place.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"

typedef struct settings {
    option_text site, stat, match;
    double after, level;
    int64_t resamples, block, seed;
} settings;

#define AT(field) offsetof(settings, field)

static const option rows[] = {
    TEXT_OPTION("Choice", "site", AT(site), "*", "sites: globs separated by commas"),
    TEXT_OPTION("Choice", "stat", AT(stat),
                "dist_mu,dist_sigma2,dist_psi2,tid_mean,tid_var,g_mu,g_sigma2,g_psi2",
                "statistics separated by commas: any name below /scalars"),
    CHOICE_OPTION("Choice", "match", AT(match), "name", "name|depth|first|last",
                  "which sites of two runs belong together"),
    REAL_OPTION("Choice", "after", AT(after), "0", 0, 99, "percent",
                "leave out the steps before this part of training"),
    REAL_OPTION("Intervals", "level", AT(level), "95", 50, 99.9, "percent", "of the intervals"),
    INT_OPTION("Intervals", "resamples", AT(resamples), "1000", 100, 1000000, "",
               "resamples of every series"),
    INT_OPTION("Intervals", "block", AT(block), "0", 0, 1000000, "steps",
               "length of a block; 0: from the autocorrelation of each series"),
    INT_OPTION("Intervals", "seed", AT(seed), "1", 0, 1e15, "",
               "of the resamples; the same seed gives the same table"),
};
static const option_table options = {rows, sizeof rows / sizeof rows[0]};

#define SCALAR(name, definition) {#name, #name, NULL, 0, NULL, NULL},
static const statistic scalars[] = {SR_SCALARS(SCALAR)};
enum { SCALARS = sizeof scalars / sizeof scalars[0], LEAST_STEPS = 20 };

static const char *const quantity[BOOTSTRAP_TAILS] = {"median", "q99", "max"};

static void print_help(const void *self) {
    (void)self;
    printf("usage: stat-compare RUN.h5 RUN.h5... [--match name|depth|first|last]\n\n"
           "Ratios of medians and tails, every other run against the first, with bootstrap "
           "intervals.\n"
           "Writes a tab-separated table with its definitions in `#` lines.\n\n");
    options_help(options, stdout);
}

/* -- one series ------------------------------------------------------------------------------ */

typedef struct sample {
    int64_t count, nonfinite, block;
    double *value;                 /* [count] finite, in the order of steps */
    double *drawn;                 /* [BOOTSTRAP_TAILS, resamples] */
    double exact[BOOTSTRAP_TAILS]; /* of the series itself */
} sample;

static void sample_free(sample *x) {
    free(x->value);
    free(x->drawn);
    *x = (sample){0};
}

/* Rows whose step is at or behind --after; the others are left out. */
static sr_status sample_read(sample *x, const series *of, double after, sr_failure *why) {
    const int64_t rows_here = series_length(of);
    int64_t last, *step = malloc((size_t)(rows_here + 1) * sizeof *step);
    x->value = malloc((size_t)(rows_here + 1) * sizeof *x->value);
    sr_status status = step && x->value ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = run_last_step(of->run, &last, why);
    if (status == SR_OK) status = series_read(of, 0, rows_here, x->value, step, why);
    for (int64_t i = 0; i < rows_here && status == SR_OK; i++) {
        if (100 * (double)step[i] < after * (double)last) continue;
        if (isfinite(x->value[i]))
            x->value[x->count++] = x->value[i];
        else
            x->nonfinite++;
    }
    free(step);
    return status;
}

static sr_status sample_exact(sample *x, sr_failure *why) {
    double *sorted = malloc((size_t)(x->count + 1) * sizeof *sorted);
    if (!sorted) return sr_fail(why, SR_MEMORY, "out of memory");
    memcpy(sorted, x->value, (size_t)x->count * sizeof *sorted);
    summary s;
    summary_make(sorted, x->count, &s);
    x->exact[0] = s.median;
    x->exact[1] = s.q99;
    x->exact[2] = s.max;
    free(sorted);
    return SR_OK;
}

static sr_status sample_make(sample *x, const settings *s, const series *of, rng random,
                             sr_failure *why) {
    *x = (sample){0};
    sr_status status = sample_read(x, of, s->after, why);
    if (status == SR_OK) status = sample_exact(x, why);
    if (status != SR_OK || x->count < LEAST_STEPS) return status;
    x->block = s->block ? s->block : bootstrap_block(x->value, x->count, x->exact[0], why);
    if (!x->block) return SR_MEMORY;
    if (x->block > x->count) x->block = x->count;
    x->drawn = malloc((size_t)(BOOTSTRAP_TAILS * s->resamples) * sizeof *x->drawn);
    if (!x->drawn) return sr_fail(why, SR_MEMORY, "out of memory");
    return bootstrap_tails(x->value, x->count, x->block, random, s->resamples, x->drawn, why);
}

/* -- pairs ----------------------------------------------------------------------------------- */

typedef struct comparison {
    const settings *s;
    const run_set *set;
    const choice *c;
    tsv *table;
} comparison;

static const sr_run_site *site_of(const comparison *p, const site_choice *at) {
    return sr_run_get_site(p->set->run[at->run], at->site);
}

static bool same_place(const comparison *p, const site_choice *a, const site_choice *b) {
    const sr_run_site *x = site_of(p, a), *y = site_of(p, b);
    if (strcmp(p->s->match, "name") == 0) return strcmp(x->name, y->name) == 0;
    return strcmp(p->s->match, "depth") != 0 || x->depth == y->depth;
}

/* The chosen site of `run` with this statistic that belongs to `first`; with --match first and last
 * the one at that end. NULL when there is none. */
static const site_choice *partner(const comparison *p, const site_choice *first, int run,
                                  int stat) {
    const bool last = strcmp(p->s->match, "last") == 0;
    const site_choice *found = NULL;
    for (int64_t k = 0; k < p->c->sites; k++) {
        const site_choice *at = &p->c->site[k];
        if (at->run != run || !at->has[stat] || (first && !same_place(p, first, at))) continue;
        if (!found || last) found = at;
    }
    return found;
}

/* With --match first and last only the site at that end stands for the first run. */
static bool stands(const comparison *p, const site_choice *at, int stat) {
    if (at->run != 0 || !at->has[stat]) return false;
    const bool end = strcmp(p->s->match, "first") == 0 || strcmp(p->s->match, "last") == 0;
    return !end || at == partner(p, NULL, 0, stat);
}

static const char *verdict(double low, double high) {
    if (isnan(low) || isnan(high)) return "undefined";
    if (low > 1) return "larger";
    return high < 1 ? "smaller" : "no difference shown";
}

/* Percentile interval of the ratio of independent resamples; NaN when one ratio is undefined. */
static sr_status interval(const settings *s, const double *first, const double *other, double *low,
                          double *high, sr_failure *why) {
    double *ratio = malloc((size_t)s->resamples * sizeof *ratio);
    if (!ratio) return sr_fail(why, SR_MEMORY, "out of memory");
    bool defined = true;
    for (int64_t b = 0; b < s->resamples; b++) {
        ratio[b] = other[b] / first[b];
        defined = defined && isfinite(ratio[b]);
    }
    *low = *high = NAN;
    if (defined) {
        const double outside = (100 - s->level) / 200;
        sort_reals(ratio, s->resamples);
        *low = quantile_of_sorted(ratio, s->resamples, outside);
        *high = quantile_of_sorted(ratio, s->resamples, 1 - outside);
    }
    free(ratio);
    return SR_OK;
}

static void print_names(const comparison *p, const site_choice *a, const site_choice *b,
                        const statistic *stat, const sample *x, const sample *y) {
    tsv *t = p->table;
    tsv_text(t, p->set->path[b->run]);
    tsv_text(t, site_of(p, b)->name);
    tsv_text(t, p->set->path[a->run]);
    tsv_text(t, site_of(p, a)->name);
    tsv_text(t, stat->name);
    tsv_int(t, y->count);
    tsv_int(t, y->nonfinite);
    tsv_int(t, x->count);
    tsv_int(t, x->nonfinite);
    tsv_int(t, y->block);
    tsv_int(t, x->block);
}

static sr_status print_pair(const comparison *p, const site_choice *a, const site_choice *b,
                            const statistic *stat, const sample *x, const sample *y,
                            sr_failure *why) {
    const int64_t n = p->s->resamples;
    for (int i = 0; i < BOOTSTRAP_TAILS; i++) {
        double low = NAN, high = NAN;
        const bool enough = x->drawn && y->drawn;
        sr_status status = SR_OK;
        if (enough) status = interval(p->s, x->drawn + i * n, y->drawn + i * n, &low, &high, why);
        if (status != SR_OK) return status;
        print_names(p, a, b, stat, x, y);
        tsv_text(p->table, quantity[i]);
        tsv_real(p->table, y->exact[i]);
        tsv_real(p->table, x->exact[i]);
        tsv_real(p->table, y->exact[i] / x->exact[i]);
        tsv_real(p->table, low);
        tsv_real(p->table, high);
        tsv_text(p->table, enough ? verdict(low, high) : "too few steps");
    }
    return SR_OK;
}

/* A stream for every run, site and statistic: the intervals do not depend on what else is asked. */
static sr_status read_sample(const comparison *p, const site_choice *at, const statistic *stat,
                             sample *x, sr_failure *why) {
    const series of = {p->set->run[at->run], at->site, stat, FROM_SCALARS};
    const rng root = rng_create((uint64_t)p->s->seed);
    const rng run = rng_split(&root, (uint64_t)at->run);
    const rng site = rng_split(&run, (uint64_t)at->site);
    return sample_make(x, p->s, &of, rng_split(&site, (uint64_t)(stat - scalars)), why);
}

static sr_status compare_site(const comparison *p, const site_choice *first, int stat,
                              sr_failure *why) {
    const statistic *of = p->c->wanted[stat];
    sample x = {0}, y = {0};
    sr_status status = read_sample(p, first, of, &x, why);
    for (int run = 1; run < p->set->count && status == SR_OK; run++) {
        const site_choice *other = partner(p, first, run, stat);
        if (!other) continue;
        status = read_sample(p, other, of, &y, why);
        if (status == SR_OK) status = print_pair(p, first, other, of, &x, &y, why);
        sample_free(&y);
    }
    sample_free(&x);
    return status;
}

static int64_t count_pairs(const comparison *p) {
    int64_t pairs = 0;
    for (int64_t k = 0; k < p->c->sites; k++)
        for (int i = 0; i < p->c->statistics; i++)
            for (int run = 1; run < p->set->count && stands(p, &p->c->site[k], i); run++)
                pairs += partner(p, &p->c->site[k], run, i) != NULL;
    return pairs;
}

/* -- the table ------------------------------------------------------------------------------- */

static void declare_columns(tsv *t) {
    tsv_column(t, "run", "run file as given");
    tsv_column(t, "site", "its normalization site");
    tsv_column(t, "first", "the first run file, which all others are divided by");
    tsv_column(t, "first_site", "its site");
    tsv_column(t, "statistic", "name below /scalars");
    tsv_column(t, "steps", "finite values of `run`");
    tsv_column(t, "nonfinite", "steps of `run` with NaN or infinity, left out");
    tsv_column(t, "first_steps", "finite values of `first`");
    tsv_column(t, "first_nonfinite", "steps of `first` with NaN or infinity, left out");
    tsv_column(t, "block", "steps in a block of `run`, 0 without resamples");
    tsv_column(t, "first_block", "steps in a block of `first`");
    tsv_column(t, "quantity", "median, q99 (99 % quantile) or max over the steps");
    tsv_column(t, "value", "quantity of `run`");
    tsv_column(t, "first_value", "quantity of `first`");
    tsv_column(t, "ratio", "value / first_value");
    tsv_column(t, "low", "lower end of the interval of the ratio");
    tsv_column(t, "high",
               "upper end; a maximum of a resample is never above the series' own, so the interval "
               "of max tells how much hangs on single steps and is no bound for other runs");
    tsv_column(t, "verdict",
               "larger or smaller: the interval is above or below 1; no difference shown: it "
               "contains 1; too few steps: fewer than 20; undefined: a ratio is 0/0 or x/0");
    tsv_header(t);
}

static void note_method(const settings *s, int64_t pairs, tsv *t) {
    const double wrong = (100 - s->level) / 100;
    tsv_note(t, "seed", "%lld", (long long)s->seed);
    tsv_note(t, "intervals", "%g %% percentile intervals from %lld resamples of circular blocks",
             s->level, (long long)s->resamples);
    if (s->block)
        tsv_note(t, "block", "%lld steps, as given", (long long)s->block);
    else
        tsv_note(t, "block",
                 "length per series by Politis and White 2004, from the autocorrelation of "
                 "[value > median]: neighbouring steps are alike, and single steps drawn one by "
                 "one would make the intervals too short");
    tsv_note(t, "note", "%lld intervals: without any difference about %.3g of them miss 1",
             (long long)(BOOTSTRAP_TAILS * pairs), wrong * (double)(BOOTSTRAP_TAILS * pairs));
}

static sr_status nothing_in_common(const comparison *p, sr_failure *why) {
    sr_fail(why, SR_FORMAT, "%s and the other run%s have no statistic at a common site",
            p->set->path[0], p->set->count > 2 ? "s" : "");
    if (strcmp(p->s->match, "name") == 0)
        sr_hint(why, "--match depth, first or last compares sites of different names");
    return SR_FORMAT;
}

static sr_status print_pairs(const comparison *p, sr_failure *why) {
    for (int64_t k = 0; k < p->c->sites; k++) {
        for (int i = 0; i < p->c->statistics; i++) {
            if (!stands(p, &p->c->site[k], i)) continue;
            sr_status status = compare_site(p, &p->c->site[k], i, why);
            if (status != SR_OK) return status;
        }
    }
    return SR_OK;
}

static sr_status print_table(const void *self, const run_set *set, const char *command,
                             sr_failure *why) {
    const settings *s = self;
    tsv table;
    table_head head;
    choice c = {0};
    if (set->count < 2) return sr_fail(why, SR_USAGE, "a comparison needs two runs or more");
    sr_status status = choice_set_statistics(&c, scalars, SCALARS, s->stat, why);
    if (status == SR_OK)
        status = table_head_begin(&head, &table, "stat-compare", command, set, why);
    if (status != SR_OK) return status;
    const comparison p = {s, set, &c, &table};
    status = choice_set_sites(&c, set, s->site, FROM_SCALARS, &table, why);
    const int64_t pairs = status == SR_OK ? count_pairs(&p) : 0;
    if (status == SR_OK && !pairs) status = nothing_in_common(&p, why);
    note_method(s, pairs, &table);
    if (status == SR_OK)
        status = table_head_print(&head, &table, why);
    else
        table_head_drop(&head);
    if (status == SR_OK) {
        declare_columns(&table);
        status = print_pairs(&p, why);
    }
    choice_free(&c);
    return status;
}

int main(int argc, char **argv) {
    settings s;
    const analysis_program p = {"stat-compare", print_help, options, &s, &s, print_table};
    return analysis_program_main(&p, argc, argv);
}
