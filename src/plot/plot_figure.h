/* plot_figure.h -- draws a figure, or a report of all figures. */
#ifndef PLOT_PLOT_FIGURE_H
#define PLOT_PLOT_FIGURE_H

#include <stdbool.h>

#include "plot/labels/plot_comparable.h"
#include "plot/labels/plot_runs.h"
#include "plot/template/plot_controls.h"

typedef struct plot_request {
    const plot_run *run; /* [runs] */
    int runs;
    sr_failure *refusal;                 /* as in plot_sources */
    const struct plot_table_cache *kept; /* as in plot_sources */
    const char *output, *labels;         /* as the options; "" for the default */
    const char *earlier;                 /* as in plot_job */
    plot_warnings warnings;
    plot_choice choice;
    plot_controls controls;
    bool keep, force; /* force: a report may replace a page that is not one */
    bool interactive; /* report: with the panels of statrec view in a separate file */
    int each; /* report: runs with separate figures and tables, or a line in a figure; from 1 */
} plot_request;

/* Fills in the request's options. Fails on options and on a number of runs that the figure does not
 * take. The request needs no runs yet. */
sr_status plot_figure_choose(plot_template *t, const plot_request *request, int runs,
                             sr_failure *why);
/* Draws the figure; after plot_figure_choose. */
sr_status plot_figure(plot_template *t, const plot_request *request, sr_failure *why);
/* Draws every figure of the templates that these runs allow into the directory request->output.
 * Figures of one run are drawn once for each of the first request->each runs, with tables. An
 * index.html shows all of it. */
sr_status plot_report(const plot_request *request, sr_failure *why);

#endif
