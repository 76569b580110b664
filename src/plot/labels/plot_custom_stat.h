/* plot_custom_stat.h -- statistics that the runs declare themselves. */
#ifndef PLOT_LABELS_PLOT_CUSTOM_STAT_H
#define PLOT_LABELS_PLOT_CUSTOM_STAT_H

#include <stdbool.h>
#include <stddef.h>

#include "plot/labels/plot_runs.h"

/* Whether a run declares a statistic, and its unit; several as "s or percent". */
bool plot_custom_stat_unit(const char *stat, const plot_run *run, int runs, char *unit,
                           size_t size);
/* Whether a statistic is a column of steps, of the format or declared by a run. */
bool plot_is_of_steps(const char *stat, const plot_run *run, int runs);
/* A vector of format.h, drawn in figures of averages. */
bool plot_is_vector(const char *stat);

#endif
