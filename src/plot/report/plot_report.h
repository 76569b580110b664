/* plot_report.h -- what the parts of a report share: the page, its headings, what is missing. */
#ifndef PLOT_REPORT_PLOT_REPORT_H
#define PLOT_REPORT_PLOT_REPORT_H

#include "plot/labels/plot_labels.h"
#include "plot/labels/plot_runs.h"
#include "plot/plot_figure.h"
#include "plot/template/plot_sizes.h"
#include "plot/template/plot_template.h"

typedef struct report {
    const plot_request *request;
    plot_labels labels;
    char scratch[PLOT_PATH]; /* a directory for what is not whole yet */
    bool created;            /* the directory of the report was not there */
    FILE *page;
    int drawn;
} report;

/* A heading; a section that the table of contents leads to; a run's heading; why something is not
 * there, without what an analysis lists behind a semicolon. */
void report_title(report *r, int level, const char *text);
void report_section(report *r, const char *id, const char *text);
void report_run_title(report *r, int run);
void report_missing(FILE *out, const char *what, const sr_failure *one);
/* The runs that get things of their own, and a line on the others. */
int report_own(const report *r);
void report_others(report *r);
/* Not for want of data in the runs. */
bool report_is_fatal(sr_status status);

/* Before a file of the report is put in its place: it goes with a report that ends early in a
   directory of its own. */
sr_status report_note_file(const report *r, const char *name, sr_failure *why);

/* plot_report_figures.c: the section of a figure. */
sr_status report_figure(report *r, plot_template *t, sr_failure *why);

/* plot_report_sections.c: all of them, in their order. */
sr_status report_write_sections(report *r, sr_failure *why);

/* plot_report_tables.c: each a section of the page. */
sr_status report_settings(report *r, sr_failure *why);
#define REPORT_ENDS      "The ends of the runs"
#define REPORT_DIAGNOSIS "Diagnosis"
#define REPORT_SITES     "Statistics per site"
#define REPORT_RATIOS    "Ratios to the first run, sites of the same name"
sr_status report_ends(report *r, sr_failure *why);
sr_status report_diagnosis(report *r, sr_failure *why);
sr_status report_sites(report *r, sr_failure *why);
sr_status report_ratios(report *r, sr_failure *why);

#endif
