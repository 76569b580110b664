/* plot_published.h -- values that the papers print, from published.tsv. */
#ifndef PLOT_TEMPLATE_PLOT_PUBLISHED_H
#define PLOT_TEMPLATE_PLOT_PUBLISHED_H

#include <stdbool.h>
#include <stdio.h>

#include "plot/template/plot_template.h"

typedef struct plot_published_row {
    char table[96], source[256], norm[96];
    double value[PLOT_VALUES]; /* values of template->print[i]; NaN: none, or diverged */
    int group;                 /* number of its table among those here, from 1 */
} plot_published_row;

/* One row per table and norm that have one of the template's metrics. */
typedef struct plot_published {
    plot_published_row *row;
    int rows, groups;
} plot_published;

/* Nothing unless the user asked for it; a failure when there is nothing that fits. */
sr_status plot_published_read(plot_published *p, const plot_template *t, bool wanted,
                              sr_failure *why);
void plot_published_free(plot_published *p);
/* As variables of gnuplot. */
void plot_published_write(const plot_published *p, const plot_template *t, FILE *out);

#endif
