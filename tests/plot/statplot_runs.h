/* statplot_runs.h -- runs that statplot draws, and command lines on them. */
#ifndef TESTS_PLOT_STATPLOT_RUNS_H
#define TESTS_PLOT_STATPLOT_RUNS_H

#include <stdbool.h>

#include "testing/programs.h"

/* For cmocka: writes cv.h5 and nlp.h5, of which figures may ask for everything; one with hostile
 * names, ho*.h5, which make the files tick, dollar and quote where a shell sees them; ln.h5;
 * one.h5, two.h5 and six.h5, called by their steps. */
int statplot_runs(void **state);

/* In check_temporary(). */
bool exists(const char *name);
/* Nothing on standard error but what may not be compared between the runs, and that they are sample
   runs. */
bool only_warnings(const char *err);
/* Fails unless the command line ends with 0 and only_warnings. */
void check_run(const char *command);
/* Fails unless it ends with this status, this part on standard error, and nothing on standard
   output. */
void check_fails(const char *command, int status, const char *part);

#endif
