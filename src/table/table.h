/* table.h -- the papers' result tables from run files: the parts of stat-table --layout.
 *
 * A layout (plots/layouts.tsv) names the rows and columns of a paper's table, published.tsv has its
 * values, runs have theirs. They meet in a grid, which is printed as TSV, LaTeX or Markdown.
 */
#ifndef TABLE_TABLE_H
#define TABLE_TABLE_H

#include "analysis/frame/step_range.h"
#include "analysis/runs/run_identity.h"

/* The norm that the papers compare with. */
#define TABLE_AGAINST "ln"

enum {
    TABLE_PATH = 2048,
    TABLE_TEXT = 256, /* titles, lists of globs */
    TABLE_CELLS = 16, /* cells of a line of a data file */
};

typedef char table_text[TABLE_TEXT];
typedef char table_settings[1024];

/* -- lines of data files: table_lines.c ------------------------------------------------------ */

typedef struct table_lines {
    FILE *in;
    const char *path;
    char *line;
    size_t size;
    int64_t number; /* number of the line, from 1 */
    char *cell[TABLE_CELLS];
    int cells;
} table_lines;

/* given: a path, or "" for the file of this name in plots/. path receives the opened file. */
sr_status table_lines_open(table_lines *l, const char *given, const char *name,
                           char path[TABLE_PATH], sr_failure *why);
void table_lines_close(table_lines *l);
/* The next line that is neither empty nor a comment; *more false at the end. */
sr_status table_lines_next(table_lines *l, bool *more, sr_failure *why);
/* `path:line: text`, SR_FORMAT. */
sr_status table_lines_wrong(const table_lines *l, sr_failure *why, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* -- published values: table_published.c ----------------------------------------------------- */

typedef struct published_value {
    run_word table, norm, metric, text; /* text: as printed, "Div." if the paper diverged */
    table_text source, note;            /* note: a doubt about it, or "" */
    double number;                      /* NaN where the paper diverged */
} published_value;

typedef struct published_values {
    char path[TABLE_PATH];
    published_value *value;
    int count;
    int64_t capacity;
} published_values;

sr_status published_read(published_values *p, const char *given, sr_failure *why);
void published_free(published_values *p);
bool published_has_table(const published_values *p, const char *table);
/* metric "": the first of this table and norm. NULL without one. */
const published_value *published_find(const published_values *p, const char *table,
                                      const char *norm, const char *metric);

/* -- layouts: table_layout.c ----------------------------------------------------------------- */

typedef enum {
    SHOW_METRIC, /* the metric of the column */
    SHOW_TID_MEAN,
    SHOW_TID_VAR,
    SHOW_TID_TOTAL,
    SHOW_GAP,
} table_quantity;

const char *table_quantity_name(table_quantity q);

typedef struct layout_row {
    run_word label, norm, placement, suffix;
    run_word against; /* norm of the references of a gap, in any form; default TABLE_AGAINST */
    table_text also;  /* other forms of the norm in this row */
    table_quantity quantity;
} layout_row;

typedef struct layout_column {
    run_word label, table, metric;
    run_word better;            /* direction of the published metric: "less", "more", "": unknown */
    table_text measured, tasks; /* names and globs, separated by commas */
    table_quantity quantity;
} layout_column;

typedef struct layout {
    char path[TABLE_PATH];
    run_word name;
    table_text title, source, samples;
    run_word decoder, placement;
    layout_row *row;
    layout_column *column;
    int rows, columns;
    int64_t row_capacity, column_capacity;
} layout;

/* given: a file of layouts, or "" for plots/layouts.tsv. An unknown name is a failure. */
sr_status layout_read(layout *l, const char *given, const char *name, sr_failure *why);
void layout_free(layout *l);
/* Calls visit for each layout of the file, without its rows and columns. */
typedef void layout_visit_fn(void *context, const layout *l);
sr_status layout_each(const char *given, layout_visit_fn *visit, void *context, sr_failure *why);
/* True when a run's task belongs to this column of the layout; -1: to none of them. */
bool layout_takes_run(const layout *l, const run_identity *r, int column);
/* Prints name, samples and title of every layout. */
sr_status layout_list(const char *given, const char *command, sr_failure *why);

/* -- measured values of a run: table_measure.c ----------------------------------------------- */

/* The evaluation that represents a run: docs/definitions.md, "Which evaluation". */
typedef enum { PICK_BEST, PICK_LAST } table_pick;
typedef enum { MEASURED_NONE, MEASURED_VALUE, MEASURED_DIVERGED } measured_state;

typedef struct measurement {
    measured_state state;
    double value;
} measurement;

/* The first of the names, separated by commas, that the run has; "" when it has none of them. */
sr_status table_run_metric(const run_identity *r, const char *names, run_word metric,
                           sr_failure *why);
/* metric: a name below /evals, or bpc. */
sr_status table_run_measure(const run_identity *r, const char *metric, table_pick pick,
                            measurement *m, sr_failure *why);
/* A declared metric at the evaluation that represents a run; NaN: none has a finite value. */
sr_status table_picked_value(const sr_runfile *run, const sr_run_metric *metric, table_pick pick,
                             double *value, sr_failure *why);
/* The last finite value among the evaluations of the last evaluated step (validation and test
 * splits); NaN without. */
sr_status table_last_value(const sr_runfile *run, const char *name, double *value, sr_failure *why);
/* Mean and variance TID in percent. */
sr_status table_run_tid(const run_identity *r, measurement m[2], sr_failure *why);
/* True when a run's metric is the paper's column: valid_ppl of its ppl, any of `metric`. */
bool table_metric_agrees(const char *metric, const char *papers);
/* The first metric, in the order of declaration, that has a finite value; "" without any. */
sr_status table_run_leading_metric(const run_identity *r, run_word metric, sr_failure *why);
/* The run's declaration of a metric; for bpc, of valid_nll, from which bpc follows. NULL:
 * nothing. */
const sr_run_metric *table_run_find_metric(const run_identity *r, const char *metric);
/* Recorded steps of the last tenth, at least one. */
int64_t table_last_tenth(int64_t steps);
/* `# steps:` lines: which steps losses and discrepancies are means over. */
void table_note_steps(const run_set *set, tsv *table);
/* Whether the last tenth of the steps includes some of the burn-in. */
bool table_has_startup(const sr_runfile *run);
/* The last site with a discrepancy; last_bn: as --site last-bn, the one that the tables of the RBN
 * paper mean. -1 without one. */
sr_status table_tid_site(const sr_runfile *run, bool last_bn, int64_t *site, sr_failure *why);
/* Mean and variance TID of a site in percent, over the steps of a window or the last tenth of all
 * steps. NaN at site -1 and without steps. */
sr_status table_tid_of_window(const sr_runfile *run, int64_t site, const step_window *w,
                              double value[2], const char **from, sr_failure *why);
sr_status table_tid_of_steps(const sr_runfile *run, int64_t site, double value[2], sr_failure *why);
/* TID of the final pass, else of steps; *from: "final", "steps", or "-" at site -1. */
sr_status table_tid(const sr_runfile *run, int64_t site, double value[2], const char **from,
                    sr_failure *why);

/* -- rows and columns: table_grid.c, table_cells.c ------------------------------------------- */

/* Published values of a column of the layout, or values of its runs of one task and metric. */
typedef struct grid_column {
    int of; /* column of the layout, -1: a task that the layout has not */
    bool published;
    bool other;            /* after the columns of the paper: another task or metric */
    run_word task, metric; /* task and metric of the runs */
    table_quantity quantity;
} grid_column;

typedef struct grid_row {
    int of;                  /* row of the layout, -1: a method that the layout has not */
    bool first;              /* first line of its row, with the published values */
    table_text label;        /* "PN"; "pn+ls, post-norm" for a method that the paper lacks */
    table_settings settings; /* settings that differ between its runs and others of the label */
    table_quantity quantity;
    int *member; /* [members] numbers of its runs */
    int members;
} grid_row;

typedef struct grid_cell {
    const char *published;  /* as printed; NULL: none, or a measured column */
    const char *note;       /* on the published value; NULL: none */
    char difference[24];    /* backing of a published gap that the paper's values give */
    double mean, deviation; /* over the runs; deviation (n-1) NaN unless there are several */
    int runs, diverged;     /* with a value; without, since they diverged */
} grid_cell;

typedef struct grid {
    layout layout;
    published_values published;
    run_identity *run; /* [runs] */
    int runs;
    table_pick pick;
    grid_row *row;
    grid_column *column;
    grid_cell *cell; /* [rows, columns] */
    int rows, columns;
    int64_t row_capacity, column_capacity;
} grid;

/* layout, published and pick are filled by the caller; grid_free frees those too. */
sr_status grid_make(grid *g, const run_set *set, sr_failure *why);
void grid_free(grid *g);
const grid_cell *grid_at(const grid *g, int row, int column);
/* How the first run in a measured column declares its metric; NULL for tid_* and gaps of none. */
const sr_run_metric *grid_metric(const grid *g, const grid_column *c);
/* Fills cell [rows, columns] of a grid with rows and columns. */
sr_status grid_fill(grid *g, sr_failure *why);

/* -- printing: table_print.c, table_text.c --------------------------------------------------- */

/* Prints the grid: "tsv", "latex" or "markdown". */
sr_status grid_print(const grid *g, const char *format, const run_set *set, const char *command,
                     sr_failure *why);
/* Text of any origin so that LaTeX or Markdown shows it; control bytes become spaces. */
void table_latex(FILE *out, const char *text);
void table_markdown(FILE *out, const char *text);

#endif
