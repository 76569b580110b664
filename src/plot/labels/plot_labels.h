/* plot_labels.h -- the legend: labels of the runs of a figure. */
#ifndef PLOT_LABELS_PLOT_LABELS_H
#define PLOT_LABELS_PLOT_LABELS_H

#include <stdbool.h>

#include "plot/labels/plot_runs.h"
#include "plot/template/plot_template.h"

typedef struct plot_labels {
    int runs;
    char (*label)[128]; /* [runs] differences between the runs: "resnet20, cifar10" */
    char (*full)[128];  /* [runs] model, norm, data, seed */
    char shared[128];   /* common to all runs: "bn" */
} plot_labels;

/* given: the user's labels separated by commas, or "". */
sr_status plot_labels_make(plot_labels *l, const plot_run *run, int count, const char *given,
                           sr_failure *why);
void plot_labels_free(plot_labels *l);
/* An option that labels leave out: it affects recording or printing, not training, or is a part of
 * every label. */
bool plot_option_tells_nothing(const char *line);
/* plot_observed.c: appends "(observed)" to the labels and full names of runs, if the figure draws
 * batch statistics that their method does not use. given: the labels are the user's, and stay. */
/* The run's site of this name has the statistics of the table from the observer alone. False where
 * the table's statistics are not of batches, or no site has the name. run: from 1. */
bool plot_only_observed(const plot_table *table, const plot_run *p, int run, const char *site);
/* Depth of the site of this name; -1: the run has none. */
int64_t plot_site_depth(const plot_run *p, const char *site);
void plot_labels_mark(plot_labels *l, const plot_template *t, const plot_run *run, bool given);

#endif
