/* plot_html.h -- parts of a report's page. */
#ifndef PLOT_REPORT_PLOT_HTML_H
#define PLOT_REPORT_PLOT_HTML_H

#include <stdbool.h>
#include <stdio.h>

#include "plot/labels/plot_runs.h"
#include "statrec/base.h"

/* Without markup, also between double quotes. */
void plot_html_text(FILE *out, const char *text);
/* A cell with the text; tag: "td", or "th" with its attributes. A long word may break anywhere, as
 * a table shall fit its page. */
void plot_html_cell(FILE *out, const char *tag, const char *class, const char *text);
bool plot_html_has_long_word(const char *text);
/* As an argument of a shell. */
void plot_html_path(FILE *out, const char *path);

/* Cells of a table: a number with the digits that readers compare; "0.21 [0.15, 0.27]"; and ":
 * tid_var 0.21 [0.15, 0.27] at norm1 (limit 0.1)". "nan": no value. */
void plot_html_number(FILE *page, const char *cell);
void plot_html_estimate(FILE *page, const char *value, const char *low, const char *high);
void plot_html_finding(FILE *page, const char *statistic, const char *value, const char *low,
                       const char *high, const char *limit, const char *site);

/* A link to a table of the report. */
void plot_html_link(FILE *page, const char *name);
/* The `# column NAME: TEXT` and `# note: TEXT` lines of a table. */
sr_status plot_html_definitions(FILE *page, const char *path, sr_failure *why);
/* The table file `path` without the columns in `omit` (words), and its definitions; link: its name
 * as seen from the page. */
sr_status plot_html_table(FILE *page, const char *path, const char *link, const char *omit,
                          sr_failure *why);
/* Settings, sites and configuration of the run. */
void plot_html_settings(FILE *page, const plot_run *run);

#endif
