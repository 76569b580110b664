/* plot_labels.h -- the legend: labels of the runs of a figure. */
#ifndef PLOT_LABELS_PLOT_LABELS_H
#define PLOT_LABELS_PLOT_LABELS_H

#include <stdbool.h>

#include "plot/labels/plot_run_info.h"
#include "plot/template/plot_template.h"

typedef struct plot_labels {
    int runs;
    char (*label)[128]; /* [runs] what tells the runs apart: "resnet20, cifar10" */
    char (*full)[128];  /* [runs] model, norm, data, seed */
    char (*norm)[80];   /* [runs] its first normalization */
    char (*task)[168];  /* [runs] model, data */
    char (*uses)[16];   /* [runs] "mu,sigma2": what that normalization uses of the batch, or "" */
    /* [runs] percent of training until running values have forgotten their start */
    double *startup;
    char shared[128]; /* what all runs have in common: "bn" */
} plot_labels;

/* given: the user's labels separated by commas, or "". */
sr_status plot_labels_make(plot_labels *l, const plot_run_info *facts, char **paths, int count,
                           const char *given, sr_failure *why);
void plot_labels_free(plot_labels *l);
/* plot_observed.c: "(observed)" behind the labels and full names of runs of which the figure draws
 * batch statistics that their method does not use. given: the labels are the user's, and stay. */
void plot_labels_mark(plot_labels *l, const plot_template *t, const plot_run_info *facts,
                      bool given);

#endif
