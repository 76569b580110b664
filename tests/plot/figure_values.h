/* figure_values.h -- compares a figure's drawing with the table of its analysis. */
#ifndef TESTS_PLOT_FIGURE_VALUES_H
#define TESTS_PLOT_FIGURE_VALUES_H

#include "drawing.h"

/* One of two programs has a test named after every figure. */
#define FIGURES_OF_TRAINING(X)                                                                     \
    X(tid)                                                                                         \
    X(fig2)                                                                                        \
    X(fig3)                                                                                        \
    X(fig4)                                                                                        \
    X(fair)                                                                                        \
    X(compare)                                                                                     \
    X(tidloss)                                                                                     \
    X(theorem1) X(layers) X(overview) X(features) X(ranks) X(amgm) X(curves) X(converge) X(modes)
#define FIGURES_OF_RUNS(X)                                                                         \
    X(tiddepth)                                                                                    \
    X(depth)                                                                                       \
    X(condition)                                                                                   \
    X(heatmap)                                                                                     \
    X(histogram)                                                                                   \
    X(quantiles)                                                                                   \
    X(fig5)                                                                                        \
    X(fig6)                                                                                        \
    X(fig7)                                                                                        \
    X(pairs) X(batchmix) X(alpha) X(results) X(ablation) X(replaced) X(tidgap) X(gap) X(parts)

#define SAMPLE(name) "\"$STATREC_SAMPLES\"/" name ".h5"

/* For cmocka: writes few.h5, other.h5 and pnv.h5, and single.h5 with one site (few_runs.h). */
int figure_runs(void **state);

/* Returns a program's output; the test fails if the program does. */
program_result table_of(const char *command);

/* A number of a row: times its cell, plus. */
typedef struct reading {
    const char *column; /* "#": the row's number among the selected rows, from 1 */
    double times, plus;
} reading;
reading cell(const char *column);
reading percent_of(const char *column); /* for a fraction */
reading place_plus(double plus);

/* Fails unless every selected row with finite numbers has a mark, and at least one such row exists.
 * Conditions on the row in `where`: "site=stem p=0.2"; "": all rows. */
void check_rows(const drawing *d, int panel, mark_kind kind, int look, const program_result *t,
                const char *where, reading x, reading y);
/* Checks a line of `times` times the column over the percent of training. */
void check_course(const drawing *d, int panel, int look, const program_result *t, const char *where,
                  double times, const char *column);

/* Percent of training that stat-tid skips in this run. */
double burn_in(const char *run);

#endif
