/* plot_command.h -- runs the analyses of a template. */
#ifndef PLOT_PLOT_COMMAND_H
#define PLOT_PLOT_COMMAND_H

#include <stdbool.h>

#include "plot/labels/plot_runs.h"
#include "plot/plot_curves.h"

typedef struct plot_sources {
    plot_template *template;
    const plot_run *run; /* [runs] */
    int runs;
    const char *directory;               /* for tables and data files */
    const struct plot_table_cache *kept; /* NULL: none */
    sr_failure *refusal; /* [runs] zeroed: set for runs that an analysis rejected; or NULL */
} plot_sources;

/* Whether the table has an analysis for each run, and none of all at once. */
bool plot_table_of_each(const plot_table *t);
/* Runs the analyses of all tables of the template, side by side, and makes their data files; data
   [tables], zeroed. */
sr_status plot_tables_make(const plot_sources *from, plot_data *data, sr_failure *why);

#endif
