/* plot_html.h -- parts of a report's page. */
#ifndef PLOT_REPORT_PLOT_HTML_H
#define PLOT_REPORT_PLOT_HTML_H

#include <stdio.h>

#include "plot/labels/plot_runs.h"
#include "statrec/base.h"

void plot_html_text(FILE *out, const char *text);
/* The table file `path` without the columns in `omit` (words), and its definitions; link: its name
 * as seen from the page. */
sr_status plot_html_table(FILE *page, const char *path, const char *link, const char *omit,
                          sr_failure *why);
/* Settings, sites and configuration of the run. */
void plot_html_settings(FILE *page, const plot_run *run);

#endif
