/* plot_curves.h -- turns tables into data files of gnuplot. */
#ifndef PLOT_PLOT_CURVES_H
#define PLOT_PLOT_CURVES_H

#include <stdint.h>

#include "plot/labels/plot_runs.h"
#include "plot/template/plot_template.h"

enum { PLOT_LEFT_OUT = 200 };

typedef struct plot_curve {
    int run;                 /* from 1; 0 when the table covers all runs */
    char key[256];           /* cells of the key columns, joined with a space */
    char site[SR_NAME_SIZE]; /* its cell of the key column `site`; "" without one */
    int64_t rows;
    double low, high; /* range of x */
} plot_curve;

typedef struct plot_data {
    const plot_table *table;
    const plot_run *run; /* for a table of each run; NULL: it covers all runs */
    const char *x;       /* column of x: the table's; "step" in place of missing epochs */
    plot_curve *curve;
    int curves;
    int64_t capacity;        /* capacity of curve */
    int finite[PLOT_VALUES]; /* curves with a finite value of y[i] */
    double least[PLOT_VALUES], positive[PLOT_VALUES], largest[PLOT_VALUES]; /* finite; or NaN */
    /* columns of the data file of a table without a `curves` line. A table with sites of one run
     * has their depth as the last one. */
    char *column[PLOT_COLUMNS];
    int columns;
    char (*left_out)[PLOT_LEFT_OUT]; /* [runs + 1] names of sites without a row */
} plot_data;

/* *lacks: a row of the table has no epoch, which its x is. The figure is then over steps. */
sr_status plot_data_lacks_epochs(const plot_table *table, const char *directory, int first_run,
                                 int last_run, bool *lacks, sr_failure *why);
/* Reads DIRECTORY/NAME.RUN.tsv of runs first_run .. last_run (those that exist) and writes
 * DIRECTORY/NAME.dat: one block per curve, x and (low, median, high) of every value per bucket.
 * run [last_run]: of a table of each run; NULL: of all of them. */
sr_status plot_data_make(plot_data *d, const plot_table *table, const char *directory,
                         const plot_run *run, int first_run, int last_run, bool over_steps,
                         sr_failure *why);
void plot_data_free(plot_data *d);

#endif
