/* plot_gnuplot.h -- script, gnuplot, output file. */
#ifndef PLOT_PLOT_GNUPLOT_H
#define PLOT_PLOT_GNUPLOT_H

#include <stdio.h>

#include "plot/labels/plot_labels.h"
#include "plot/labels/plot_runs.h"
#include "plot/plot_curves.h"
#include "plot/template/plot_controls.h"
#include "plot/template/plot_published.h"

typedef enum { PLOT_PDF, PLOT_SVG, PLOT_PNG, PLOT_SCREEN } plot_format;

typedef struct plot_job {
    const plot_template *template;
    const plot_run *run; /* [labels->runs] */
    const plot_labels *labels;
    const plot_data *data; /* [template->tables] */
    const plot_published *published;
    const plot_controls *controls;
    const char *directory; /* with the data files */
    plot_format format;
    const char *output;
    const char *earlier; /* a report: the drawing that had this name; else "" (plot_reuse.h) */
} plot_job;

/* Writes text between single quotes for gnuplot, control bytes as spaces. A quote becomes a
 * separate string: gnuplot 5.4 reads the second of two doubled quotes in a row as the end. */
void plot_quote(FILE *out, const char *text);
/* Writes a line VARIABLE = 'text'; the format makes the variable. */
__attribute__((format(printf, 3, 4))) void plot_assign(FILE *out, const char *text,
                                                       const char *format, ...);
sr_status plot_draw(const plot_job *job, sr_failure *why);

#endif
