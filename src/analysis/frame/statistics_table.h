/* statistics_table.h -- the stat-* programs whose numbers are statistics of one site at one step.
 *
 * Such a program is a table of `statistic` rows and a call of analysis_main. Other programs use
 * stat_program.h and the rest of the frame. docs/adding/ shows both.
 */
#ifndef ANALYSIS_FRAME_STATISTICS_TABLE_H
#define ANALYSIS_FRAME_STATISTICS_TABLE_H

#include "analysis/frame/per_step_table.h"

enum { ANALYSIS_FORMS = 4 };

/* One form of an analysis' statistics. */
typedef struct analysis_form {
    const char *word;
    const statistic *stat;
    bool from_vectors; /* always computed from /vectors */
} analysis_form;

/* A request for the spread between the shards of a batch: `--ranks`. */
typedef struct shards_request {
    const char *program, *sites, *startup, *phase; /* words as choice_set_sites and windows_make */
    bool per_step;
    int64_t buckets; /* rows of per_step; 0: every step */
} shards_request;

/* A request for values of single features: `--per-feature`, `--quantiles` or `--histogram N`. */
typedef struct features_request {
    const char *program, *hint, *sites, *startup, *phase; /* as of shards_request */
    const char *stat;                                     /* "": those that the table is for */
    const char *step;                                     /* "": the steps of startup and phase */
    const char *order, *spacing;                          /* words of --order and --spacing */
    bool quantiles;
    int64_t bins;    /* bins of a histogram; 0: none */
    int64_t buckets; /* rows for each step; 0: every step */
} features_request;

/* An analysis of statistics: summary per run, site and statistic, or --per-step. */
typedef struct analysis {
    const char *program, *does; /* "stat-distance", one line for --help */
    const statistic *stat;
    int statistics;
    bool custom;              /* --stat accepts custom scalars too, as with recorded_statistics */
    const char *default_stat; /* default of --stat */
    const char *site;         /* default of --site */
    series_source source;     /* default of --from */
    const char *hint;         /* if no run has any of the statistics, or NULL */
    /* For several forms of the statistics: an option of this name with the words of `form`.
     * form[i].stat [statistics] replaces `stat`, word for word. */
    const char *form_option, *form_help;
    analysis_form form[ANALYSIS_FORMS]; /* word NULL ends; the first has `stat` */
    /* Not NULL: `--final`, which prints results of a last pass instead of the steps. */
    sr_status (*print_final)(const run_set *set, const char *sites, const char *command,
                             sr_failure *why);
    /* Not NULL: `--ranks`. */
    sr_status (*print_shards)(const shards_request *q, const run_set *set, const char *command,
                              sr_failure *why);
    /* Not NULL: `--per-feature` and its relatives; and their part of --help. */
    sr_status (*print_features)(const features_request *q, const run_set *set, const char *command,
                                sr_failure *why);
    void (*features_help)(void);
    /* Not NULL: prints columns and rows in place of the summary if --stat has its default value.
     * Then it is chosen->wanted. */
    sr_status (*print_sites)(const step_table *j, sr_failure *why);
} analysis;

int analysis_main(const analysis *a, int argc, char **argv);

#endif
