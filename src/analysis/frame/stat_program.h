/* stat_program.h -- main() of a stat-* program: help, options, open runs, table, errors. */
#ifndef ANALYSIS_FRAME_STAT_PROGRAM_H
#define ANALYSIS_FRAME_STAT_PROGRAM_H

#include <stdbool.h>
#include <stdio.h>

#include "analysis/runs/run_set.h"
#include "analysis/series/statistic.h"
#include "base/options/options.h"

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
    const void *self;        /* what print needs beside the settings, or NULL */
    /* Prints the table. Prints nothing if it fails before the first row. */
    sr_status (*print)(const void *self, const void *settings, const run_set *set,
                       const char *command, sr_failure *why);
} stat_program;

int stat_program_main(const stat_program *p, int argc, char **argv);

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
