/* plot_tsv.h -- reads the tables that analyses print. Names of columns and cells are without the
 * escapes of base/tsv.h: they may hold any byte. */
#ifndef PLOT_PLOT_TSV_H
#define PLOT_PLOT_TSV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "plot/template/plot_sizes.h"
#include "statrec/base.h"

typedef struct plot_tsv {
    FILE *in;
    const char *path;
    char *header, *line;
    size_t header_size, line_size;
    int64_t at; /* line number */
    char *column[PLOT_COLUMNS], *cell[PLOT_COLUMNS];
    int columns;
} plot_tsv;

sr_status plot_tsv_open(plot_tsv *t, const char *path, sr_failure *why);
void plot_tsv_close(plot_tsv *t);
/* Undoes tsv_escape in place: of a line above the header, too. */
void plot_tsv_unescape(char *text);
int plot_tsv_find(const plot_tsv *t, const char *column); /* -1 when absent */
/* *more: cell[] holds the next row. A row with other columns than the header, or a last line
 * without its newline, is a failure. */
sr_status plot_tsv_next(plot_tsv *t, bool *more, sr_failure *why);
/* The number in a cell; a cell without one is a failure. */
sr_status plot_tsv_real(const plot_tsv *t, int column, double *value, sr_failure *why);

#endif
