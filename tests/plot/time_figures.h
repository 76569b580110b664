/* time_figures.h -- what statplot amgm and alpha draw of runs whose vectors are known: gnuplot
 * writes the points of each panel as a table instead of drawing them. */
#ifndef TESTS_PLOT_TIME_FIGURES_H
#define TESTS_PLOT_TIME_FIGURES_H

#include <stdbool.h>

#include "testing/programs.h"

enum { TIME_STEPS = 30, TIME_WIDTH = 2 };

/* Numbers that look random, the same in every run; and a ramp with them, which is feature k of site
   `lags`. */
double time_noise(int step, int k);
double time_ramp(int step, int k);

/* For cmocka: writes the runs
 *   ramp.h5, other.h5, sparse.h5   site `lags` follows a ramp, `rests` is noise about 0; sigma2 of
 *   the second is that
 *                                  of the first doubled; alpha 0.7, 0.5 and 0.7, vectors every 1, 1
 *                                  and 2 steps
 *   waves.h5, watched.h5           site `still`: the same in all features and steps until step 9,
 *   which V = 0 makes
 *                                  infinitely far; `wave` has a spike in steps 12 and 21; bn, and
 *                                  an observed ln
 *   noise.h5                       700 independent batches about 0; psi2_B of one feature is far
 *   away in step 303
 *   one.h5, ln.h5                  a single step; nothing but row counts */
int time_runs_write(void **state);

/* The points of all panels, and the arrows of the last one; figure.svg is there too. */
program_result drawn(const char *arguments);
/* The numbers of a row (from 0) of a curve (from 0, the empty one) of a panel (from 1); how
   many. */
int point(const program_result *r, int panel, int curve, int row, double number[4]);
/* Of drawn: the point is there; panels stand in more rows than one. */
void check_point(const program_result *r, int panel, int curve, int row, double x, double y);
bool in_two_rows(const program_result *r);
/* Whether figure.svg has the text; that a figure is refused with this part of one line and nothing
   is left. */
void check_svg(const char *text, bool there);
void check_refused(const char *arguments, const char *part);

#endif
