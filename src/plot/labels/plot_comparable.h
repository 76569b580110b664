/* plot_comparable.h -- warnings about statistics that may not be compared between the runs. */
#ifndef PLOT_LABELS_PLOT_COMPARABLE_H
#define PLOT_LABELS_PLOT_COMPARABLE_H

#include "plot/labels/plot_runs.h"
#include "plot/plot_curves.h"

/* Receiver of a figure's warnings; tell NULL: stderr. */
typedef struct plot_warnings {
    void (*tell)(void *context, const char *line);
    void *context;
} plot_warnings;

/* One line for each drawn statistic that may not be compared between these runs, and for each
 * `# warning:` of the figure's tables in `directory`. */
void plot_comparable_warn(const plot_template *t, const plot_data *data, const char *directory,
                          const plot_run *run, int runs, plot_warnings to);

#endif
