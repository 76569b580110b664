/* time_figures.h -- points that statplot amgm and alpha draw of runs with known vectors. gnuplot
 * writes each panel's points as a table instead of drawing them. */
#ifndef TESTS_PLOT_TIME_FIGURES_H
#define TESTS_PLOT_TIME_FIGURES_H

#include <stdbool.h>

#include "testing/programs.h"

enum { TIME_STEPS = 30, TIME_WIDTH = 2 };

/* Pseudo-random numbers, equal in every call; and a ramp with such noise, which is feature k of
 * site `lags`. */
double time_noise(int step, int k);
double time_ramp(int step, int k);

/* For cmocka: writes the runs
 *   ramp.h5, other.h5, sparse.h5   site `lags` follows a ramp, `rests` is noise about 0; the second
 *                                  run has twice the first one's sigma2; alpha 0.7, 0.5 and 0.7;
 *                                  vectors every 1, 1 and 2 steps
 *   waves.h5, watched.h5           site `still` is constant over features and steps until step 9,
 *                                  which V = 0 makes infinitely far; `wave` has a spike in steps 12
 *                                  and 21; bn, and an observed ln
 *   noise.h5                       700 independent batches about 0; psi2_B of one feature is far
 *                                  away in step 303
 *   one.h5, ln.h5                  a single step; only row counts */
int time_runs_write(void **state);

/* Returns the points of all panels and the arrows of the last one; also draws figure.svg. */
program_result drawn(const char *arguments);
/* Reads a row (from 0) of a curve (from 0, the empty one) of a panel (from 1). Returns its number
 * of values. */
int point(const program_result *r, int panel, int curve, int row, double number[4]);
/* Checks drawn's output: it contains the point; its panels are in several rows. */
void check_point(const program_result *r, int panel, int curve, int row, double x, double y);
bool in_two_rows(const program_result *r);
/* Checks that figure.svg contains the text or not. Checks that a figure is rejected with this part
 * in one line and leaves no file. */
void check_svg(const char *text, bool there);
void check_refused(const char *arguments, const char *part);

#endif
