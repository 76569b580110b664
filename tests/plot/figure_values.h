/* figure_values.h -- compares what a figure draws with the table of its analysis. */
#ifndef TESTS_PLOT_FIGURE_VALUES_H
#define TESTS_PLOT_FIGURE_VALUES_H

#include "drawing.h"

/* Every figure has a test of its name in one of two programs. */
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

/* What a program prints; the test fails where the program does. */
program_result table_of(const char *command);

/* A number of a row: times its cell, plus. */
typedef struct reading {
    const char *column; /* "#": the place of the row among those that are taken, from 1 */
    double times, plus;
} reading;
reading cell(const char *column);
reading percent_of(const char *column); /* of a fraction */
reading place_plus(double plus);

/* Fails unless there is a mark for each row with finite numbers, and one such row at least. where:
 * conditions that the row meets, "site=stem p=0.2"; "" takes every row. */
void check_rows(const drawing *d, int panel, mark_kind kind, int look, const program_result *t,
                const char *where, reading x, reading y);
/* The same of a line of times the column over the percent of training. */
void check_course(const drawing *d, int panel, int look, const program_result *t, const char *where,
                  double times, const char *column);

/* Percent of training that stat-tid leaves out of this run. */
double burn_in(const char *run);

#endif
