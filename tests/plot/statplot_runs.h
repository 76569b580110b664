/* statplot_runs.h -- runs for statplot, and checks of command lines on them. */
#ifndef TESTS_PLOT_STATPLOT_RUNS_H
#define TESTS_PLOT_STATPLOT_RUNS_H

#include <stdbool.h>

#include "testing/programs.h"

/* For cmocka: writes cv.h5 and nlp.h5, which contain data for every figure, and ln.h5. Also ho*.h5
 * with hostile names that create the files tick, dollar and quote if a shell evaluates them.
 * one.h5, two.h5 and six.h5 are named by their steps. */
int statplot_runs(void **state);

/* Whether the file exists in check_temporary(). */
bool exists(const char *name);
/* Returns whether standard error contains only notes on incomparable runs and on sample runs. */
bool only_warnings(const char *err);
/* Fails unless the command line exits with 0 and prints only_warnings. */
void check_run(const char *command);
/* Fails unless the command ends with this status, this part on standard error, and no standard
 * output. */
void check_fails(const char *command, int status, const char *part);

#endif
