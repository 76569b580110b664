/* analysis.h -- the frame of the stat-* programs: open run files, choose sites, print tables.
 *
 * A stat-*.c file is one program. When its numbers are statistics of one site at one step (a
 * dataset of /scalars, or something that follows from one row of /vectors) it is a table of
 * `statistic` rows and a call of analysis_main; else it uses the pieces below. docs/adding/ shows
 * both.
 */
#ifndef ANALYSIS_ANALYSIS_H
#define ANALYSIS_ANALYSIS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/analysis_forms.h"
#include "analysis/column_summary.h"
#include "base/options/options.h"
#include "base/program/tool.h"
#include "base/rng.h"
#include "base/sort.h"
#include "base/tsv.h"
#include "statrec/format.h"
#include "statrec/runfile.h"

/* -- runs ------------------------------------------------------------------------------------ */

typedef struct run_set {
    int count;
    sr_runfile **run; /* [count] */
    char **path;      /* [count], as the user gave them; borrowed from argv */
} run_set;

/* sr_run_open_beside and sr_run_close, but after run_cache_enable a run that nobody writes any more stays open for those who
 * ask for it later, in this process or one that was forked from it. One at a time has it; a file that has been
 * replaced is opened. */
void run_cache_enable(void);
sr_runfile *run_open(const char *path, const sr_runfile *beside, sr_failure *why);
void run_close(sr_runfile *run);
/* Opens paths[count]; a RUN.h5 that exists only as RUN.h5.part is read too. */
sr_status run_set_open(run_set *set, int count, char **paths, sr_failure *why);
void run_set_close(run_set *set);
/* A line on standard error where something was read from its second copy: the numbers are right, and the file
 * is about to be lost. _paths: of files that are not open; those that cannot be opened tell elsewhere. */
void run_warn_mended(const tool *t, const sr_runfile *run);
void run_warn_mended_paths(const tool *t, int count, char **paths);
/* `# run:` lines, and a `# note:` for every run that is not complete. */
void run_set_describe(const run_set *set, tsv *table);

/* Last step of the run: percent of training is 100 * step / last step. 0 for an empty run. */
sr_status run_last_step(const sr_runfile *run, int64_t *last, sr_failure *why);

/* -- statistics ------------------------------------------------------------------------------ */

/* One row of /vectors at one site. */
typedef struct vector_row {
    int64_t width;
    double eps;
    const double *v[SR_VECTOR_COUNT]; /* [width]; NULL where the file has none */
    double rows;                      /* valid rows n of that step, NaN when not recorded */
    double alpha;                     /* weight of the OLD running value */
} vector_row;

typedef struct statistic {
    const char *word;                           /* as in --stat: "mu" */
    const char *name;                           /* column, and dataset below /scalars: "dist_mu" */
    const char *definition;                     /* NULL: that of format.h */
    unsigned needs;                             /* vectors of recompute: NEEDS(mu_B) | NEEDS(mu) */
    double (*recompute)(const vector_row *row); /* NULL: needs more than /vectors holds */
    const char
        *family; /* recompute holds where sr_family is this alone: "sigma"; NULL: everywhere */
} statistic;

#define NEEDS(vector) (1u << SR_##vector)
#define NEEDS_ROWS    (1u << 31)
enum { ANALYSIS_STATISTICS = 64 };
const char *statistic_definition(const statistic *stat);

/* Every scalar of format.h and every form of one (analysis_forms.c), by its own name. */
#define COUNT_STATISTIC(name, ...) +1
enum { RECORDED_STATISTICS = 0 SR_SCALARS(COUNT_STATISTIC) FORM_NAMES(COUNT_STATISTIC) };
extern const statistic recorded_statistics[RECORDED_STATISTICS];
_Static_assert(ANALYSIS_STATISTICS >= (int)RECORDED_STATISTICS, "all may be asked for at once");

/* analysis_features.c: of the power of a site's input over its features, from /vectors. */
enum { FEATURE_STATISTICS = 6 };
extern const statistic feature_statistics[FEATURE_STATISTICS];

/* Where the values of a statistic come from. */
typedef enum { FROM_SCALARS, FROM_VECTORS } series_source;

typedef struct series {
    const sr_runfile *run;
    int64_t site;
    const statistic *stat;
    series_source source;
} series;

/* Recorded rows: T for scalars, V for vectors. */
int64_t series_length(const series *s);
/* Values and steps of rows first .. first + count - 1; step may be NULL. */
sr_status series_read(const series *s, int64_t first, int64_t count, double *value, int64_t *step,
                      sr_failure *why);
/* The same for several series of one run and source, those of a site side by side, sites in forward
 * order; value [series]. They are read together, in one pass as far as memory allows. */
sr_status series_read_all(const series *s, int series_count, int64_t first, int64_t count,
                          double *const *value, int64_t *step, sr_failure *why);
/* Steps alone. */
sr_status series_read_steps(const series *s, int64_t first, int64_t count, int64_t *step,
                            sr_failure *why);
/* First row whose step is at or behind `step`, series_length when there is none; steps rise. Looks at one row for each
 * halving of the length. */
sr_status series_find_row(const series *s, int64_t step, int64_t *row, sr_failure *why);
/* recorded [S]: the run has a value of the statistic at this site (not NaN at every step). */
sr_status series_recorded(const sr_runfile *run, const statistic *stat, series_source source,
                          bool *recorded, sr_failure *why);

/* analysis_vectors.c: series_read_all from /vectors. */
extern const char *const vector_names[SR_VECTOR_COUNT];
sr_status vectors_read(const series *s, int series_count, int64_t first, int64_t count,
                       double *const *value, sr_failure *why);

/* -- numbers of the runs' own: custom_statistics.c -------------------------------------------- */

/* What the program of a run declared of this name (sr_declare_scalar); NULL when it did not. And what
 * the first of the runs that has it did. */
const sr_run_declared *declared_named(const sr_runfile *run, const char *name, sr_scope scope);
const sr_run_declared *declared_find(const run_set *set, const char *name, sr_scope scope);
/* Their names, each once, in the order of the runs; how many of the `most` there are. */
int declared_list(const run_set *set, sr_scope scope, const char **names, int most);
enum { DECLARED_TEXT = SR_DEFINITION_SIZE + SR_NAME_SIZE + 8 };
/* "definition (unit)" */
void declared_text(const sr_run_declared *d, char text[DECLARED_TEXT]);
/* A `# warning:` line when runs declare one name with different units, a `# note:` line for each that
 * defines it otherwise than the first. */
void declared_warn(const run_set *set, const char *name, sr_scope scope, tsv *table);

/* A statistic that is a number of the runs' own, one per site. */
typedef struct own_statistic {
    statistic stat;
    const sr_run_declared *of; /* as the first run with it declares it */
    char definition[DECLARED_TEXT];
} own_statistic;

/* -- choice of sites ------------------------------------------------------------------------- */

/* One site of one run, and which of the wanted statistics it has. */
typedef struct site_choice {
    int run;
    int64_t site;
    bool has[ANALYSIS_STATISTICS]; /* by position in `wanted` */
} site_choice;

typedef struct choice {
    const statistic *wanted[ANALYSIS_STATISTICS];
    own_statistic *own[ANALYSIS_STATISTICS]; /* of wanted[i], which is in it; NULL: the format's */
    int statistics;
    site_choice *site; /* [sites], runs in their order, sites in forward order */
    int64_t sites;
} choice;

/* words: comma-separated `word`s of stats[count], or numbers per site that a run of the set declares
 * (NULL: none). */
sr_status choice_set_statistics(choice *c, const statistic *stats, int count, const run_set *set,
                                const char *words, sr_failure *why);
/* What must be said of the numbers among them that runs declare: declared_warn, and where a run has a
 * number of its own under the name of another statistic. define: a `# statistic:` line of each too. */
void choice_note_own(const choice *c, const run_set *set, bool define, tsv *table);
/* A site that "last-bn" may mean: batch statistics, and no final norm of a stack (NAME.final), which
 * the models of the RBN paper do not have as BN. */
bool choice_is_bn_layer(const sr_run_site *site);
/* Sites of one run that such a pattern means, whatever they have, [sites], to be freed; a word that means
 * none is passed over. NULL without memory. */
bool *choice_in_run(const sr_runfile *run, const char *pattern);
/* pattern: comma-separated words, each a glob of site names, or "first", "middle", "last" or "last-bn" (site with
 * any of the wanted statistics). A glob that matches no site of a run is a failure; so is a run set where nothing is
 * left. Sites left out are told in `# note:` lines of the table. */
sr_status choice_set_sites(choice *c, const run_set *set, const char *pattern, series_source source,
                           tsv *table, sr_failure *why);
void choice_free(choice *c);

/* -- choice of steps: step_range.c -------------------------------------------------------- */

/* What a run's summaries are about: steps first .. last, both included; none when first > last. */
typedef struct step_window {
    int64_t first, last, end; /* end: last step of the run */
    int64_t startup;          /* steps at the beginning that are left out */
    bool cut, given;          /* and would be in the window otherwise; their number was given */
    char what[160];           /* "second half", "" for all of training */
} step_window;

/* startup: "auto" or a number of steps; phase: "all", "first-half", "second-half", steps "FROM:TO",
 * "last" or the number, from 1, of a phase of the learning rate. */
sr_status window_make(step_window *w, const sr_runfile *run, const char *path, const char *startup,
                      const char *phase, sr_failure *why);
/* A `# steps:` line: every table says which steps it used. */
void window_describe(const step_window *w, const char *path, tsv *table);
/* Part number, from 0, of so many equal ones of its steps. A step is in one part alone; of few steps
 * some parts have none. */
step_window window_part(const step_window *w, int64_t cuts, int64_t number);
/* The rows of a series that lie in the window. */
sr_status window_rows(const step_window *w, const series *s, int64_t *first, int64_t *count,
                      sr_failure *why);
/* Steps from one of these rows to the next, NaN of fewer than two: 1 where every step is recorded. */
sr_status window_spacing(const step_window *w, const series *s, double *spacing, sr_failure *why);
/* One for each run of the set, described in the table (NULL: not); free *windows, after a failure
 * too. */
sr_status windows_make(step_window **windows, const run_set *set, const char *startup,
                       const char *phase, tsv *table, sr_failure *why);

#define WINDOW_STARTUP_HELP                                                                        \
    "leave out so many steps at the beginning; auto: until running values hold less than 1 % of "  \
    "what they began with"
#define WINDOW_PHASE_HELP                                                                          \
    "only these steps: all, first-half, second-half, FROM:TO, or a phase of the learning rate: "   \
    "its number from 1, or last"
#define PARTS_OPTION(parts, usual)                                                                 \
    INT_OPTION("Output", "parts", parts, usual, 1, 1000, "",                                       \
               "equal parts of the steps, a row for each and site")
/* Two columns, and their cells. */
void window_part_columns(tsv *t);
void window_part_cells(tsv *t, int64_t cuts, int64_t number);
/* Two option rows. */
#define PHASE_OPTION(phase)                                                                        \
    TEXT_OPTION("Steps", "phase", phase, "all", WINDOW_PHASE_HELP, .value = "PHASE")
#define WINDOW_OPTIONS(startup, phase)                                                             \
    TEXT_OPTION("Steps", "burn-in", startup, "auto", WINDOW_STARTUP_HELP, .value = "STEPS"),       \
        PHASE_OPTION(phase)

/* -- what may be compared: analysis_comparable.c --------------------------------------------- */

/* A `# warning:` line for each wanted statistic that depends on something in which a run differs from
 * the first one that has it, naming what may be compared instead. */
void comparable_warn(const choice *c, const run_set *set, tsv *table);

/* -- summaries of runs: column_summary.h has those of columns -------------------------------------- */

/* Columns steps, nonfinite, median, mean, quantiles, max; and one row's cells of them. */
void summary_columns(tsv *table);
void summary_cells(tsv *table, const summary *s);

/* Of /steps/tokens, as summary_range. */
sr_status run_tokens(sr_runfile *run, summary *result, sr_failure *why);

/* Rows of one series as a column, from memory where they fit (column_keep). s must stay. */
typedef struct series_column {
    const series *s;
    int64_t first;
    column_source source;
    column_space space;
} series_column;

/* x must stay where it is; series_column_close after a failure too. */
sr_status series_column_open(series_column *x, const series *s, int64_t first, int64_t rows,
                             sr_failure *why);
void series_column_close(series_column *x);

/* Summaries of series of one run and source, rows first .. first + rows - 1 of each; sites in forward
 * order (analysis_columns.c). result [count] */
sr_status series_summaries(const series *s, int count, int64_t first, int64_t rows, bool range,
                           summary *result, sr_failure *why);

/* -- one row per step: per_step_table.c -------------------------------------------------------- */

typedef struct step_table {
    const run_set *set;
    const choice *chosen;
    series_source source;
    tsv *table;
    int64_t buckets;           /* 0: every step */
    const step_window *window; /* [runs] */
    bool intervals;            /* of a summary's medians */
    int64_t parts;             /* of training, a summary of each; 1: of all of it */
} step_table;

sr_status step_table_print(const step_table *t, sr_failure *why);

/* -- metrics: analysis_metric.c ------------------------------------------------------------- */

/* The word for the metric that a run declares first, that of its task, among those with values. */
#define METRIC_LEADING "leading"
/* The metric of a run that a word stands for; NULL when it declares none such. */
const sr_run_metric *metric_named(const sr_runfile *run, const char *word, size_t length);
/* As the first of the runs that has it declares it; NULL when none does. */
const sr_run_metric *metric_find(const run_set *set, const char *word, size_t length);
/* "less is better", "more is better" or ""; the word alone, - for neither. */
const char *metric_direction(const sr_run_metric *m);
const char *metric_better(const sr_run_metric *m);
/* For --help. */
void metrics_help(FILE *out);
/* words: names separated by commas, of which the runs must declare one; the others are noted. Warns
 * as metric_warn of each. */
sr_status metric_check(const run_set *set, const char *words, tsv *table, sr_failure *why);
/* A `# warning:` line when runs declare one name with different units or directions. */
void metric_warn(const run_set *set, const char *word, size_t length, tsv *table);
/* The last finite value; NaN when the run has none. */
sr_status metric_read_last(const sr_runfile *run, const char *name, double *value, sr_failure *why);

/* -- intervals: analysis_bootstrap.c, bootstrap_block_length.c, bootstrap_resample.c -------------------- */

enum { BOOTSTRAP_TAILS = 3 }; /* median, 99 % quantile, maximum */

/* Both are of the finite values of the one column of c, in the order of steps, n >= 1 of them, which are asked for
 * several times; they keep little more than a byte for each. */
/* Length of the blocks that keep the dependence of neighbouring values; 0 and *why on failure. */
int64_t bootstrap_block(const column_source *c, int64_t n, double median, sr_failure *why);
/* result [BOOTSTRAP_TAILS, resamples] */
sr_status bootstrap_tails(const column_source *c, int64_t n, int64_t block, rng random,
                          int64_t resamples, double *result, sr_failure *why);
/* Percentile interval (95 %) of the median from a block bootstrap; NaN below 20 finite values. `finite` and `median`
 * are those of the one column of c. */
sr_status summary_interval(const column_source *c, int64_t finite, double median, double *low,
                           double *high, sr_failure *why);
/* Two levels: result [BOOTSTRAP_TAILS, resamples] are means over as many runs as there are, drawn
 * with replacement, each with one of its resamples, drawn[r] [BOOTSTRAP_TAILS, resamples]. */
void bootstrap_runs(double *const *drawn, int runs, rng random, int64_t resamples, double *result);
/* By what an interval from so few runs is too short; 1 for one run, which has no spread. */
double bootstrap_widening(int runs, double level);
/* Student's 95 % interval of the mean: mean -+ t_{n-1} s / sqrt(n). NaN for n < 2 or a value that is
 * not finite. */
void student_interval(const double *value, int n, double *low, double *high);

enum { RUN_WORD = 96 }; /* names and labels */
typedef char run_word[RUN_WORD];

/* -- what a run says of itself: analysis_config.c ---------------------------------------------- */

/* What /steps/tokens counts, as the units of the metrics say: "image" where the first loss is in nats
 * per image; "" where no metric tells. */
void run_counts(const sr_runfile *run, run_word what);
/* Whether the run had this option and it had a use. */
bool run_has_option(const sr_runfile *run, const char *key);
/* Its value without quotes and escapes, cut to size; "" where the run has none. */
void run_option(const sr_runfile *run, const char *key, char *value, size_t size);
double run_option_number(const sr_runfile *run, const char *key); /* NaN where there is none */
/* The name of the data set as readers know it: the last part of data-dir, with the direction where
 * the run translates, "multi30k-de-en"; else `data`. */
void run_data_name(const sr_runfile *run, char *name, size_t size);

/* -- what a run is: analysis_identity.c ------------------------------------------------------- */

typedef struct run_identity {
    const sr_runfile *run;
    const sr_run_info *info;
    const char *path;
    run_word norm;      /* "bn", "pn+ls", "ln/unbiased"; of a transformer, its encoder's */
    run_word decoder;   /* the decoder's, "" without one */
    run_word placement; /* of --placement, "?" when it cannot be told, "" of models without */
    run_word task;      /* "multi30k-de-en", "cifar10" */
} run_identity;

void run_identify(run_identity *r, const sr_runfile *run, const char *path);
/* "key=value" of the settings in which runs[count] of the same place differ from each other, but
 * for those that change nothing in the result's meaning (seed, output, threads, recording). */
void run_settings(const run_identity *r, const run_identity *const *runs, int count, char *text,
                  size_t size);
/* How many such settings two runs have in which they differ. */
int run_distance(const run_identity *a, const run_identity *b);

/* -- replicates: replicates.c ----------------------------------------------------------- */

/* Runs of one configuration with different seeds are a group. */
typedef struct run_groups {
    int count;
    int *of; /* [runs of the set] the group of each, groups in the order of their first runs */
} run_groups;

/* alone: every run is a group. To be freed after a failure too. */
sr_status run_groups_make(run_groups *g, const run_set *set, bool alone, sr_failure *why);
int run_groups_size(const run_groups *g, const run_set *set, int group);
/* `# group:` lines of those with several runs. */
void run_groups_describe(const run_groups *g, const run_set *set, tsv *table);
void run_groups_free(run_groups *g);

/* -- scatter between the shares of a batch: shard_spread.c ------------------------------------ */

typedef struct shares_request {
    const char *program, *sites, *startup, *phase; /* words as choice_set_sites and windows_make */
    bool per_step;
    int64_t buckets; /* of per_step; 0: every step */
} shares_request;

/* A whole table: a row for each run and site, or for each of their steps. */
sr_status shares_print(const shares_request *q, const run_set *set, const char *command,
                       sr_failure *why);

/* -- the whole program ----------------------------------------------------------------------- */

/* What differs between the programs. */
typedef struct analysis_program {
    const char *name;
    void (*help)(const void *self);
    option_table options;
    void *settings;   /* struct that `options` fills */
    const void *self; /* passed back to help and print */
    /* Prints the table. A failure before the first row must leave stdout empty. */
    sr_status (*print)(const void *self, const run_set *set, const char *command, sr_failure *why);
} analysis_program;

/* main(): help, options, opening the runs, print, errors. */
int analysis_program_main(const analysis_program *p, int argc, char **argv);
/* The same for programs that have something to say without run files: print decides. */
int analysis_program_main_any(const analysis_program *p, int argc, char **argv);

/* Lines above the header of a table, kept back until it is known that there will be rows. */
typedef struct table_head {
    FILE *out;
    char *text;
    size_t size;
} table_head;

/* Begins the table with provenance; then tsv_note as usual; then one of the two. */
sr_status table_head_begin(table_head *head, tsv *table, const char *program, const char *command,
                           const run_set *set, sr_failure *why);
/* Prints what was kept back, the table goes on to stdout. */
sr_status table_head_print(table_head *head, tsv *table, sr_failure *why);
void table_head_drop(table_head *head);

enum { ANALYSIS_FORMS = 4 };

/* One form of an analysis' statistics. */
typedef struct analysis_form {
    const char *word;
    const statistic *stat;
    bool from_vectors; /* always computed from /vectors */
} analysis_form;

/* An analysis of statistics: summary per run, site and statistic, or --per-step. */
typedef struct analysis {
    const char *program, *does; /* "stat-distance", one line for --help */
    const statistic *stat;
    int statistics;
    const char *default_stat; /* default of --stat */
    const char *site;         /* default of --site */
    series_source source;     /* default of --from */
    const char *hint;         /* when no run has any of the statistics, or NULL */
    /* Where there are several forms of the same statistics: an option of this name, whose words are
     * those of `form`; form[i].stat [statistics] stands for `stat`, word for word. */
    const char *form_option, *form_help;
    analysis_form form[ANALYSIS_FORMS]; /* word NULL ends; the first has `stat` */
    /* Not NULL: `--final`, which prints what a last pass found instead of what the steps did. */
    sr_status (*print_final)(const run_set *set, const char *sites, const char *command,
                             sr_failure *why);
    bool ranks; /* has `--ranks`: shares_print */
    /* Not NULL: prints columns and rows in place of the summary while --stat is what it is by
     * default; chosen->wanted is that list then. */
    sr_status (*print_sites)(const step_table *j, sr_failure *why);
} analysis;

int analysis_main(const analysis *a, int argc, char **argv);

#endif
