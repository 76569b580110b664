/* plot.h -- the parts of statplot: templates, tables, curves, gnuplot.
 * docs/adding/template-reference.md has the syntax of a template's `#:` lines. */
#ifndef PLOT_PLOT_H
#define PLOT_PLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buckets.h"
#include "statrec/base.h"

enum {
    PLOT_PATH = 1024,
    PLOT_NAME = 64, /* as SR_NAME_SIZE */
    PLOT_COLUMNS = 256,
    PLOT_TABLES = 12,
    PLOT_WORDS = 24,
    PLOT_KEYS = 4,
    PLOT_VALUES = 12,
    PLOT_SAMPLES = 8,
    PLOT_CHOICES = 16,
    PLOT_PART = 256,
    PLOT_BUCKETS = 400, /* about two for each point of a panel three inches wide */
};

/* -- plot_template.c: a figure's `#:` lines -------------------------------------------------- */

typedef char plot_name[PLOT_NAME];

typedef struct plot_table {
    plot_name name;
    bool optional;          /* `table?`: a failing command gives no curves instead of a failure */
    char *word[PLOT_WORDS]; /* the command, as in the template */
    int words;
    bool curves; /* has a `curves` line */
    plot_name key[PLOT_KEYS], x, y[PLOT_VALUES];
    bool open[PLOT_VALUES]; /* y[i] is the user's word */
    int keys, values, buckets;
    int smooth; /* running medians over so many buckets; 0: none */
} plot_table;

/* A word that the template declares: a choice of the user's, or one that follows a choice. */
typedef struct plot_word {
    plot_name name;
    int choice;            /* place of the choice that it follows; its own for a choice */
    char texts[PLOT_PART]; /* one for each of the choice's words, separated by | */
    char value[PLOT_PART]; /* what {NAME} stands for */
    const char *help;
} plot_word;

/* What a figure's `controls` line names (plot_controls.c). */
typedef enum { PLOT_X, PLOT_Y, PLOT_SCALE, PLOT_SMOOTH, PLOT_STEPS, PLOT_CONTROLS } plot_control;

typedef struct plot_template {
    char path[PLOT_PATH], name[PLOT_PATH], title[256], takes[256], samples[256];
    int least_runs, most_runs; /* most_runs 0: any number */
    double width, height;      /* inches */
    /* values of {site}, {stat} and {metric}, "" when the figure takes none */
    char site[256], stat[256], metric[256];
    bool stat_own;       /* the runs declare the statistic (plot_custom_stat.c) */
    char stat_unit[160]; /* and its unit, else "" */
    bool takes_control[PLOT_CONTROLS];
    /* its axes are not for runs of several models and data sets: a report has one each */
    bool one_task;
    char steps[64];               /* what {steps} stands for: "all", or the user's FROM:TO */
    char published[256];          /* tables of published.tsv: globs; "" without `published` */
    plot_name print[PLOT_VALUES]; /* their metrics that the figure shows */
    int prints;
    plot_table table[PLOT_TABLES];
    int tables;
    plot_word word[PLOT_CHOICES];
    int words;
    char *text;                             /* backing of the words */
    char *filled[PLOT_TABLES * PLOT_WORDS]; /* words of commands that had a {NAME} in them */
    int fills;
} plot_template;

/* Directories that may hold templates, best first; NULL past the end. */
const char *plot_directory(int i, char path[PLOT_PATH]);
/* figure: name of a template, or path of a .gp file. */
sr_status plot_template_find(const char *figure, plot_template *t, sr_failure *why);
sr_status plot_template_read(const char *path, plot_template *t, sr_failure *why);
/* What the user chose for the words of a template; "" keeps the template's. */
typedef struct plot_choice {
    const char *site, *stat, *metric;
    bool published;               /* the papers' values too */
    const char *published_tables; /* which, instead of the template's; "" not given */
    struct {
        const char *name, *value;
    } word[PLOT_CHOICES]; /* of the choices that the template declares */
    int words;
} plot_choice;

/* Fills the user's words in: into commands, columns and published metrics ({metric} there without
 * its `valid_`). */
sr_status plot_template_choose(plot_template *t, const plot_choice *choice, sr_failure *why);
void plot_template_free(plot_template *t);
/* "BN.h5 PNV.h5 [--reading=squares|roots]" */
void plot_template_takes(const plot_template *t, char *text, size_t size);

/* -- plot_placeholders.c: words that a template leaves open ------------------------------------ */

/* What is wrong with the declaration, or NULL. help must outlive t. */
const char *plot_placeholders_choice(plot_template *t, const char *name, const char *texts,
                                     const char *help);
const char *plot_placeholders_follow(plot_template *t, const char *name, const char *choice,
                                     const char *texts);
const plot_word *plot_placeholders_find(const plot_template *t, const char *name, size_t length);
/* True when the figure has this choice, and this word in it. */
bool plot_placeholders_take(const plot_template *t, const char *name, const char *value);
sr_status plot_placeholders_choose(plot_template *t, const plot_choice *choice, sr_failure *why);
/* text with every {NAME} replaced that the template knows; false when that does not fit. */
bool plot_placeholders_fill(const plot_template *t, const char *text, char *filled, size_t size);
sr_status plot_placeholders_fill_commands(plot_template *t, sr_failure *why);

/* -- plot_controls.c: what users change about any figure --------------------------------------- */

/* As the options, "" and 0 for the figure's own. */
typedef struct plot_controls {
    const char *title, *size, *xrange, *yrange, *steps;
    bool log, linear;
    int64_t smooth;
    const char *samples; /* not an option: names of the sample runs that are drawn, or "" */
} plot_controls;

/* The words of a `controls` line; false when one of them is none. */
bool plot_controls_read(plot_template *t, const char *text);
/* The first option that the user gave, without its dashes; NULL without any. */
const char *plot_controls_first(const plot_controls *c);
/* Refuses what the figure does not take and what cannot be read; size, steps and smoothing go into
 * the template. Before the words of commands are filled in. */
sr_status plot_controls_choose(plot_template *t, const plot_controls *c, sr_failure *why);
/* As variables of gnuplot. */
void plot_controls_write(FILE *out, const plot_template *t, const plot_controls *c);

/* Run files of sample_runs/. */
typedef struct plot_samples {
    char text[PLOT_SAMPLES][2 * PLOT_PATH];
    char *path[PLOT_SAMPLES];
    int runs;
} plot_samples;

/* names: those that a figure shows without run files, separated by blanks; may be empty. */
sr_status plot_samples_find(const char *names, plot_samples *s, sr_failure *why);
/* Calls visit with every template, in the order of names; the first failure ends it. */
sr_status plot_template_each(sr_status (*visit)(plot_template *t, void *self, sr_failure *why),
                             void *self, sr_failure *why);
/* Writes "name <tab> runs <tab> title" of every template. */
sr_status plot_template_list(FILE *out, sr_failure *why);

/* -- plot_process.c: running analyses and gnuplot without a shell ---------------------------- */

typedef struct plot_process {
    char *const *argv;           /* argv[0]: found beside statplot, else on PATH */
    int (*call)(void *context);  /* in place of a program, with argv NULL: its exit status */
    void *context;               /* what call leaves stands in files or in shared memory */
    const char *directory;       /* working directory, or NULL */
    const char *output, *errors; /* files that take stdout and stderr; NULL output: ours */
    double seconds;              /* after which it is killed; 0: it takes what it takes */
} plot_process;

/* A program whose main() is part of ours: its process is forked and no more. Everything of it must
 * fit into a process that has opened runs (run_open) and started no threads. */
typedef struct plot_program {
    const char *name;
    int (*main)(int argc, char **argv);
} plot_program;

/* programs[count], borrowed, stand for those of the same names in every plot_process from now
   on. */
void plot_process_link(const plot_program *programs, int count);
/* SR_OK when the process exited with 0; else its first line on stderr is the failure's text. It
 * does not outlive us. */
sr_status plot_process_run(const plot_process *p, sr_failure *why);
/* All of p[count], as many at a time as there are processors. each NULL: none is begun after a
 * failure; *why is that of the first in the list. Otherwise failures stand in each[count], whose
 * rest is not touched, and only a signal to us ends the list. */
sr_status plot_process_run_all(const plot_process *p, int count, sr_failure *each, sr_failure *why);
/* plot_table_cache.c: the same for programs whose words alone decide what they print. directory:
 * what was run with it before, by any process, is not run again: p[i].output is the table of then,
 * each[i] its failure. NULL: all are run. each is zeroed. */
sr_status plot_table_cache_run(const char *directory, const plot_process *p, int count,
                               sr_failure *each, sr_failure *why);
/* The line of a program's errors that says what is wrong, without its newline, control bytes
 * replaced: gnuplot's `"FILE" line N: ...`, else the first that is not empty; "" without any. */
void plot_error_line(const char *path, char *line, size_t size);

/* -- plot_tsv.c: reading the tables that analyses print -------------------------------------- */

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
int plot_tsv_find(const plot_tsv *t, const char *column); /* -1 when absent */
/* *more: cell[] holds the next row. A row with other columns than the header, or a last line
 * without its newline, is a failure. */
sr_status plot_tsv_next(plot_tsv *t, bool *more, sr_failure *why);
/* The number in a cell; a cell that is none is a failure. */
sr_status plot_tsv_real(const plot_tsv *t, int column, double *value, sr_failure *why);

/* -- plot_curves.c: tables to data files of gnuplot ------------------------------------------ */

typedef struct plot_curve {
    int run;       /* from 1; 0 when the table is of all runs */
    char key[256]; /* cells of the key columns, joined with a space */
    int64_t rows;
    double low, high; /* of x */
} plot_curve;

typedef struct plot_data {
    const plot_table *table;
    plot_curve *curve;
    int curves;
    int finite[PLOT_VALUES]; /* curves with a finite value of y[i] */
    double least[PLOT_VALUES], positive[PLOT_VALUES], largest[PLOT_VALUES]; /* finite; or NaN */
    char *column[PLOT_COLUMNS]; /* of the data file of a table without a `curves` line */
    int columns;
} plot_data;

/* Reads DIRECTORY/NAME.RUN.tsv of runs first_run .. last_run (those that exist) and writes
 * DIRECTORY/NAME.dat: one block per curve, x and (low, median, high) of every value per bucket. */
sr_status plot_data_make(plot_data *d, const plot_table *table, const char *directory,
                         int first_run, int last_run, sr_failure *why);
void plot_data_free(plot_data *d);

/* -- plot_command.c -------------------------------------------------------------------------- */

typedef struct plot_sources {
    plot_template *template;
    char **path; /* [runs] */
    int runs;
    const char *directory; /* for tables and data files */
    const char *answers;   /* directory of what analyses have said before, or NULL */
    int failed_run;        /* from 1: the run that an analysis refused; 0: none */
} plot_sources;

/* A run as a word of a command, malloc'd: it stands beside options, so a name that begins with a
 * dash gets a path in front. */
char *plot_run_word(const char *path);
/* Whether the table has an analysis for each run, and none of all at once. */
bool plot_table_of_each(const plot_table *t);
/* Runs the analyses of all tables of the template, side by side, and makes their data files; data
   [tables], zeroed. */
sr_status plot_tables_make(plot_sources *from, plot_data *data, sr_failure *why);

/* -- plot_run_info.c: what labels are made of, one for each run -------------------------------- */

typedef struct plot_run_info plot_run_info;

/* *facts [count], to be given to plot_run_info_free; NULL after a failure. */
sr_status plot_run_info_read(plot_run_info **facts, char **paths, int count, sr_failure *why);
void plot_run_info_free(plot_run_info *facts, int count);
/* [count] those of runs place[0] .. place[count - 1], to be given to free() while `facts` stay;
 * NULL when out of memory. */
plot_run_info *plot_run_info_choose(const plot_run_info *facts, const int *place, int count);

/* -- plot_labels.c: what the legend says ----------------------------------------------------- */

typedef struct plot_labels {
    int runs;
    char (*label)[128]; /* [runs] what tells the runs apart: "resnet20, cifar10" */
    char (*full)[128];  /* [runs] model, norm, data, seed */
    char (*norm)[80];   /* [runs] its first normalization */
    char (*task)[168];  /* [runs] model, data */
    char (*uses)[16];   /* [runs] "mu,sigma2": what that normalization uses of the batch, or "" */
    /* [runs] percent of training until running values have forgotten their start */
    double *startup;
    char shared[128]; /* what all runs have in common: "bn" */
} plot_labels;

/* given: the user's labels separated by commas, or "". */
sr_status plot_labels_make(plot_labels *l, const plot_run_info *facts, char **paths, int count,
                           const char *given, sr_failure *why);
void plot_labels_free(plot_labels *l);
/* plot_observed.c: "(observed)" behind the labels and full names of runs of which the figure draws
 * batch statistics that their method does not use. given: the labels are the user's, and stay. */
void plot_labels_mark(plot_labels *l, const plot_template *t, const plot_run_info *facts,
                      bool given);

/* -- plot_custom_stat.c: numbers that the runs declare ----------------------------------------- */

/* Whether a run declares a statistic, and in which unit; several as "s or percent". */
bool plot_custom_stat_unit(const char *stat, const plot_run_info *facts, int runs, char *unit,
                           size_t size);
/* Whether a statistic is a column of steps, of the format or declared by a run. */
bool plot_is_of_steps(const char *stat, const plot_run_info *facts, int runs);
/* A vector of format.h, as what figures of averages draw. */
bool plot_is_vector(const char *stat);

/* -- plot_comparable.c ----------------------------------------------------------------------- */

/* Where a figure's warnings go; tell NULL: to stderr. */
typedef struct plot_warnings {
    void (*tell)(void *context, const char *line);
    void *context;
} plot_warnings;

/* One line for each drawn statistic that may not be compared between these runs, and for each
 * `# warning:` of the figure's tables in `directory`. */
void plot_comparable_warn(const plot_template *t, const plot_data *data, const char *directory,
                          char **paths, int runs, plot_warnings to);

/* -- plot_published.c: what the papers print, from published.tsv ----------------------------- */

typedef struct plot_published_row {
    char table[96], source[256], norm[96];
    double value[PLOT_VALUES]; /* of template->print[i]; NaN: none, or diverged */
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

/* -- plot_gnuplot.c: script, gnuplot, output file -------------------------------------------- */

typedef enum { PLOT_PDF, PLOT_SVG, PLOT_PNG, PLOT_SCREEN } plot_format;

typedef struct plot_job {
    const plot_template *template;
    const plot_labels *labels;
    const plot_data *data; /* [template->tables] */
    const plot_published *published;
    const plot_controls *controls;
    const int *place;      /* [runs] look of each run, from 0; NULL: in their order */
    const char *directory; /* with the data files */
    plot_format format;
    const char *output;
} plot_job;

/* Writes text between single quotes for gnuplot, control bytes as spaces. A quote becomes a string
 * of its own: gnuplot 5.4 reads the second of two doubled quotes in a row as the end. */
void plot_quote(FILE *out, const char *text);
sr_status plot_draw(const plot_job *job, sr_failure *why);

/* Copies to a temporary name beside the output, then renames: a file is whole or not there. */
sr_status plot_place_output(const char *from, const char *output, sr_failure *why);

/* -- plot_figure.c, plot_report.c ------------------------------------------------------------ */

typedef struct plot_request {
    char **path; /* [runs] run files */
    int runs;
    const int *place;           /* [runs] look of each run, from 0; NULL: in their order */
    const plot_run_info *facts; /* with place: of all runs that it counts; NULL: to be read */
    const char *answers;        /* as in plot_sources */
    int *failed_run; /* NULL, or set to the run (from 1) that an analysis refused, else to 0 */
    const char *output, *labels; /* as the options; "" for the default */
    plot_warnings warnings;
    plot_choice choice;
    plot_controls controls;
    bool keep, force; /* force: a report may replace a page that is not one */
    int each; /* report: runs with figures and tables of their own, or a line in a figure; from 1 */
} plot_request;

sr_status plot_figure(plot_template *t, const plot_request *request, sr_failure *why);
/* Draws every figure of the templates that these runs allow into the directory request->output,
 * figures of one run once for each of the first request->each runs, with tables, and an index.html
 * that holds it all together. */
sr_status plot_report(const plot_request *request, sr_failure *why);

/* -- plot_html.c: parts of the report's page -------------------------------------------------- */

void plot_html_text(FILE *out, const char *text);
/* The table file `path` without the columns in `omit` (words), and its definitions; link: its name
 * as seen from the page. */
sr_status plot_html_table(FILE *page, const char *path, const char *link, const char *omit,
                          sr_failure *why);
/* What the run was asked for. */
sr_status plot_html_settings(FILE *page, const char *path, sr_failure *why);

/* A directory for everything in between. */
sr_status plot_scratch_create(char path[PLOT_PATH], sr_failure *why);
void plot_scratch_remove(const char *path);

/* -- plot_layout.c: result tables ------------------------------------------------------------ */

typedef struct plot_layout {
    char name[96], title[256], samples[256];
} plot_layout;

/* False when no layout of plots/layouts.tsv has this name. */
bool plot_layout_find(const char *name, plot_layout *l);
/* Writes "name <tab> runs <tab> title" of every layout. */
void plot_layout_list(FILE *out);
/* Runs stat-table; the request's output, NAME.tex by default, is whole or not there. */
sr_status plot_layout_write(const plot_layout *l, const plot_request *request, sr_failure *why);

#endif
