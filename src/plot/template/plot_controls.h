/* plot_controls.h -- options that change any figure: title, size, ranges, steps, smoothing. */
#ifndef PLOT_TEMPLATE_PLOT_CONTROLS_H
#define PLOT_TEMPLATE_PLOT_CONTROLS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "plot/template/plot_template.h"

/* As the options, "" and 0 for the figure's own. */
typedef struct plot_controls {
    const char *title, *size, *xrange, *yrange, *steps;
    bool log, linear;
    int64_t smooth;
    const char *samples; /* not an option: names of the sample runs that are drawn, or "" */
} plot_controls;

/* The words of a `controls` line; false when one of them is unknown. */
bool plot_controls_read(plot_template *t, const char *text);
/* The first option that the user gave, without its dashes; NULL without any. */
const char *plot_controls_first(const plot_controls *c);
/* Rejects options that the figure does not take and values that cannot be read; size, steps and
 * smoothing go into the template. Before the words of commands are filled in. */
sr_status plot_controls_choose(plot_template *t, const plot_controls *c, sr_failure *why);
/* As variables of gnuplot. */
void plot_controls_write(FILE *out, const plot_template *t, const plot_controls *c);

/* Run files of sample_runs/. */
typedef struct plot_samples {
    char text[PLOT_SAMPLES][2 * PLOT_PATH];
    char *path[PLOT_SAMPLES];
    int runs;
} plot_samples;

/* names: those that a figure shows without run files, separated by blanks; may be empty. */
sr_status plot_samples_find(const char *names, plot_samples *s, sr_failure *why);

#endif
