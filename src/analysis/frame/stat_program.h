/* stat_program.h -- main() of a stat-* program: help, options, open runs, table, errors. */
#ifndef ANALYSIS_FRAME_STAT_PROGRAM_H
#define ANALYSIS_FRAME_STAT_PROGRAM_H

#include <stdbool.h>
#include <stdio.h>

#include "analysis/frame/site_selection.h"
#include "analysis/frame/step_range.h"
#include "base/options/options.h"

/* A table between its first note and its last row. */
typedef struct stat_table {
    const struct stat_program *program;
    const void *settings; /* the options */
    const run_set *set;
    tsv table;
    void *state;         /* the program's own, zero at first */
    choice chosen;       /* the program sets `wanted` or calls choice_set_statistics */
    step_window *window; /* [runs] */
} stat_table;

/* Declares one program. */
typedef struct stat_program {
    const char *name;
    const char *usage; /* its arguments, a line for each form */
    const char *does;  /* paragraph of --help */
    option_table options;
    size_t settings;       /* size of the struct that `options` fills */
    const statistic *stat; /* [statistics] listed by --help; NULL: none */
    int statistics;
    bool custom;             /* adds a line on custom scalars to that list */
    bool metrics;            /* --help explains the names of metrics */
    void (*more_help)(void); /* prints more above the options; NULL: nothing */
    const char *environment; /* paragraph after the options; NULL: none */
    bool without_runs;       /* accepts a command line without run files */
    const void *self;        /* data of the functions besides the settings, or NULL */
    size_t state;            /* size of the struct that t->state points to */
    /* Prints another table and sets *done; NULL: no other table. */
    sr_status (*other)(stat_table *t, const char *command, bool *done, sr_failure *why);
    /* Reads the table's data of run `r` while its file is open: with many runs, each later pass
     * opens all files again. Called before `other` and `head`; NULL: nothing. */
    sr_status (*opened)(stat_table *t, int r, sr_failure *why);
    /* Chooses, checks, and writes the notes above the header. */
    sr_status (*head)(stat_table *t, sr_failure *why);
    /* Declares the columns; NULL: `rows` does. */
    void (*columns)(stat_table *t);
    /* Prints all rows, or those of one chosen site. */
    sr_status (*rows)(stat_table *t, sr_failure *why);
    sr_status (*site)(stat_table *t, const site_choice *at, sr_failure *why);
    void (*release)(stat_table *t); /* frees the memory of t->state, or NULL */
} stat_program;

int stat_program_main(const stat_program *p, int argc, char **argv);

/* The sites and steps of a table. */
typedef struct table_choice {
    series_source source;
    const char *site;            /* words of --site */
    const char *startup, *phase; /* words of --burn-in and --phase; phase NULL: no windows */
    const char *hint;            /* if no run has any of the statistics, or NULL */
    bool compares;               /* warns about statistics that may not be compared */
} table_choice;
/* Chooses the sites with a wanted statistic, and the steps, with notes on both. */
sr_status table_choose(stat_table *t, const table_choice *c, sr_failure *why);

/* The columns run and site, and their cells. */
void site_columns(tsv *table);
void site_cells(stat_table *t, const site_choice *at);

/* Numbers of a comma-separated list, at most `most`; returns how many, -1 if it is no such list. */
int numbers_of_list(const char *list, double *value, int most);

/* Rows of options that several programs have. */
#define SITE_OPTION(site)                                                                          \
    TEXT_OPTION("Choice", "site", site, "*",                                                       \
                "use these sites: globs, first, middle, last, last-bn (no final norm of a stack)", \
                .value = "SITE,...")
#define SEED_OPTION(seed)                                                                          \
    INT_OPTION("Intervals", "seed", seed, "1", 0, 1e15, "", "seed the resamples with N")
#define LEVEL_OPTION(level)                                                                        \
    REAL_OPTION("Intervals", "level", level, "95", 50, 99.9, "percent", "set their level to X")
#define RESAMPLES_OPTION(resamples)                                                                \
    INT_OPTION("Intervals", "resamples", resamples, "1000", 100, 1000000, "", "draw N resamples")

/* Buffers the lines above the header of a table until the first row is certain. */
typedef struct table_head {
    FILE *out;
    char *text;
    size_t size;
} table_head;

/* Begins the table with provenance; then call tsv_note as usual; then one of the two below. */
sr_status table_head_begin(table_head *head, tsv *table, const char *program, const char *command,
                           const run_set *set, sr_failure *why);
/* Prints the buffered lines if status is SR_OK, and drops them otherwise; the table continues on
   stdout. */
sr_status table_head_end(table_head *head, tsv *table, sr_status status, sr_failure *why);

#endif
