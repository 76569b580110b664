/* step_range.h -- the steps that a table is about: --burn-in, --phase and --parts. */
#ifndef ANALYSIS_FRAME_STEP_RANGE_H
#define ANALYSIS_FRAME_STEP_RANGE_H

#include "analysis/columns/column_summary.h"
#include "analysis/runs/run_set.h"
#include "analysis/series/series.h"
#include "base/options/options.h"

/* Steps first .. last, both included; none if first > last. */
typedef struct step_window {
    int64_t first, last, end; /* end: last step of the run */
    int64_t begin;            /* first recorded step; 1 in an empty run */
    int64_t startup;          /* number of steps left out at the beginning: the burn-in */
    int64_t startup_end;      /* the last of them */
    bool cut;                 /* the window would include steps of the burn-in */
    bool given;               /* the user gave the number of those steps */
    const char *no_alpha;     /* no burn-in is known: a site whose alpha is not; else NULL */
    char what[160];           /* "second half", "" for all of training */
} step_window;

/* The first step of the second half of a training that ends with step `last`. */
int64_t second_half_from(int64_t last);
/* startup: "auto" or a number of recorded steps. phase: "all", "first-half", "second-half", steps
 * "FROM:TO", or a phase of the learning rate: its number from 1, or "last". */
sr_status window_make(step_window *w, const sr_runfile *run, const char *path, const char *startup,
                      const char *phase, sr_failure *why);
/* Writes a `# steps:` line: every table lists the steps it used. */
void window_describe(const step_window *w, const char *path, tsv *table);
/* Part `number`, from 0, of `cuts` equal parts. Each step is in one part; parts of a short window
 * may be empty. */
step_window window_part(const step_window *w, int64_t cuts, int64_t number);
/* Rows of a series in the window. */
sr_status window_rows(const step_window *w, const series *s, int64_t *first, int64_t *count,
                      sr_failure *why);
/* Steps between two rows, NaN for fewer than two rows: 1 where every step is recorded. */
sr_status window_spacing(const step_window *w, const series *s, double *spacing, sr_failure *why);
/* A window for each run of the set, described in the table (NULL: not). Free *windows, after a
 * failure too. */
sr_status windows_make(step_window **windows, const run_set *set, const char *startup,
                       const char *phase, tsv *table, sr_failure *why);
/* Summary of /steps/tokens, as summary_range, and the number of passes with less than half of the
 * median. */
sr_status run_tokens(const sr_runfile *run, summary *result, int64_t *few, sr_failure *why);

#define WINDOW_STARTUP_HELP                                                                        \
    "skip the first N steps; auto: while running values hold over 1 % of initial ones"
#define WINDOW_PHASE_HELP                                                                          \
    "use these steps: all, first-half, second-half, FROM:TO, or learning-rate phase N or last"
#define PARTS_OPTION(parts, usual)                                                                 \
    INT_OPTION("Output", "parts", parts, usual, 1, 1000, "",                                       \
               "print a row for each of N equal parts of the steps")
/* Two columns, and their cells. */
void window_part_columns(tsv *t);
void window_part_cells(tsv *t, int64_t cuts, int64_t number);
/* Two option rows. */
#define PHASE_OPTION(phase)                                                                        \
    TEXT_OPTION("Steps", "phase", phase, "all", WINDOW_PHASE_HELP, .value = "PHASE")
#define WINDOW_OPTIONS(startup, phase)                                                             \
    TEXT_OPTION("Steps", "burn-in", startup, "auto", WINDOW_STARTUP_HELP, .value = "STEPS"),       \
        PHASE_OPTION(phase)

#endif
