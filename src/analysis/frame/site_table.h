/* site_table.h -- a table about sites and steps: head, choice of both, rows. */
#ifndef ANALYSIS_FRAME_SITE_TABLE_H
#define ANALYSIS_FRAME_SITE_TABLE_H

#include "analysis/frame/site_selection.h"
#include "analysis/frame/step_range.h"

typedef struct site_table {
    const char *program;
    const void *settings; /* of the program */
    const run_set *set;
    choice chosen; /* the program sets `wanted` or calls choice_set_statistics */
    series_source source;
    const char *site;            /* words of --site */
    const char *startup, *phase; /* words of choice of steps; phase NULL: no windows */
    const char *hint;            /* if no run has any of the statistics, or NULL */
    bool compares;               /* warns about statistics that may not be compared */
    /* Notes in the head before the sites are chosen; checks after; either may be NULL. */
    void (*note)(struct site_table *t);
    sr_status (*check)(const struct site_table *t, sr_failure *why);
    /* Declares columns and prints rows. */
    sr_status (*rows)(struct site_table *t, sr_failure *why);

    tsv table;
    step_window *window; /* [runs] */
} site_table;

/* Prints the table and frees t->chosen, after a failure too. */
sr_status site_table_print(site_table *t, const char *command, sr_failure *why);

#endif
