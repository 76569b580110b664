/* plot_report.h -- data that the parts of a report share: the runs, the findings of diagnose, the
 * page. */
#ifndef PLOT_REPORT_PLOT_REPORT_H
#define PLOT_REPORT_PLOT_REPORT_H

#include "plot/labels/plot_labels.h"
#include "plot/labels/plot_runs.h"
#include "plot/plot_figure.h"
#include "plot/plot_table_cache.h"
#include "plot/template/plot_scratch.h"
#include "plot/template/plot_sizes.h"
#include "plot/template/plot_template.h"

/* -- findings of diagnose: plot_report_diagnosis.c ------------------------------------------- */

#define REPORT_INTERACTIVE "interactive.html"

enum { REPORT_WORD = 192 };

/* A row of its table. */
typedef struct report_finding {
    int run, weight, rank; /* weight: 3 severe, 2 notable, 1 minor; rank: 1 for the run's first */
    char question[REPORT_WORD], severity[REPORT_WORD], statistic[REPORT_WORD], site[REPORT_WORD];
    char value[32], low[32], high[32], limit[32];
    char figure[REPORT_WORD]; /* command, without the run file, that shows it */
} report_finding;

typedef struct report_verdict {
    char conclusion[REPORT_WORD]; /* as its page prints it; "" where the run was not diagnosed */
    int weight;                   /* weight of the worst finding, 0: none */
    sr_failure failure;           /* why it was not */
} report_verdict;

typedef struct report {
    const plot_request *request;
    plot_labels labels;
    const char *folder;      /* that is being made */
    const char *earlier;     /* which it will replace, or which is not there */
    plot_scratch scratch;    /* files that do not belong in the folder */
    plot_table_cache kept;   /* tables of this report and of the one before */
    report_verdict *verdict; /* [report_own] */
    report_finding *finding; /* [findings] of all these runs, the weightiest first */
    int findings;
    int64_t capacity; /* capacity of finding */
    FILE *page;
    int drawn;
    bool interactive;              /* REPORT_INTERACTIVE exists */
    char lacking[SR_FAILURE_TEXT]; /* why a figure has no picture */
} report;

/* Runs statrec diagnose for each run with its own figures, into diagnosis.N.tsv. */
sr_status report_diagnose(report *r, sr_failure *why);

/* -- parts of the page: plot_report_page.c ---------------------------------------------------- */

/* A heading with an anchor; a run's heading; the reason why something is missing, without an
 * analysis's list after a semicolon. */
void report_title(report *r, int level, const char *id, const char *text);
void report_run_title(report *r, int run);
void report_missing(FILE *out, const char *what, const sr_failure *one);
/* The name of the run's file, with its folders where another run has that name too. */
const char *report_run_name(const report *r, int run);
/* The number of runs with their own figures, and a line on the others. */
int report_own(const report *r);
void report_others(report *r);
/* True for failures with another cause than missing data of the runs. */
bool report_is_fatal(sr_status status);

/* -- figures: plot_report_figures.c ----------------------------------------------------------- */

/* A drawing of some runs, by their numbers in the report. */
typedef struct report_drawing {
    plot_template *template;
    const int *run; /* [runs] */
    int runs;
    const char *name; /* name of the file */
    plot_choice choice;
    plot_controls controls;
    plot_warnings warnings;
    sr_failure *refusal; /* as in plot_request */
} report_drawing;
sr_status report_draw(report *r, const report_drawing *d, sr_failure *why);
/* The part of a figure; r->lacking where nothing was drawn. */
sr_status report_figure(report *r, plot_template *t, sr_failure *why);

/* -- the other parts of the page -------------------------------------------------------------- */

/* plot_report_sections.c: all of them, in their order. */
sr_status report_write_sections(report *r, sr_failure *why);

/* plot_report_answer.c: the first screen. */
sr_status report_answer(report *r, sr_failure *why);

/* plot_report_differences.c: the differences between the runs. all: also settings without effect on
 * the result. */
void report_differences(report *r, bool all);

/* plot_report_interactive.c: the panels of statrec view, in a file beside the page. */
sr_status report_interactive(report *r, sr_failure *why);

/* plot_report_tables.c */
sr_status report_findings(report *r, sr_failure *why);
sr_status report_sites(report *r, sr_failure *why);
sr_status report_ends(report *r, sr_failure *why);
sr_status report_ratios(report *r, sr_failure *why);
sr_status report_settings(report *r, sr_failure *why);

#endif
