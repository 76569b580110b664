/* plot_layout.h -- result tables of plots/layouts.tsv. */
#ifndef PLOT_PLOT_LAYOUT_H
#define PLOT_PLOT_LAYOUT_H

#include <stdbool.h>
#include <stdio.h>

#include "plot/plot_figure.h"

typedef struct plot_layout {
    char name[96], title[256], samples[256];
} plot_layout;

/* False when no layout of plots/layouts.tsv has this name. unread: why the file could not be read
 * to its end; may be NULL. */
bool plot_layout_find(const char *name, plot_layout *l, sr_failure *unread);
/* Writes "name <tab> runs <tab> title" of every layout. */
sr_status plot_layout_list(FILE *out, sr_failure *why);
/* Runs stat-table; the request's output, NAME.tex by default, is whole or not there. */
sr_status plot_layout_write(const plot_layout *l, const plot_request *request, sr_failure *why);

#endif
