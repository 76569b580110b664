/* plot_template.h -- a figure's template: its `#:` lines
 * (docs/adding/template-reference.md), and the words that a user may set. */
#ifndef PLOT_TEMPLATE_PLOT_TEMPLATE_H
#define PLOT_TEMPLATE_PLOT_TEMPLATE_H

#include <stdbool.h>
#include <stdio.h>

#include "plot/template/plot_sizes.h"
#include "statrec/base.h"

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
    int smooth; /* running medians over N buckets; 0: none */
} plot_table;

/* A word that the template declares: a choice of the user's, or one that follows a choice. */
typedef struct plot_word {
    plot_name name;
    int choice;            /* place of the choice that it follows; its own for a choice */
    char texts[PLOT_PART]; /* one for each of the choice's words, separated by | */
    char value[PLOT_PART]; /* replacement of {NAME} */
    const char *help;
} plot_word;

/* Words of a figure's `controls` line (plot_controls.c). */
typedef enum { PLOT_X, PLOT_Y, PLOT_SCALE, PLOT_SMOOTH, PLOT_STEPS, PLOT_CONTROLS } plot_control;

/* The question that a figure answers: the parts of a report, in their order. */
typedef struct plot_question {
    const char *word, *asks; /* word: in `question` lines */
} plot_question;
enum { PLOT_QUESTIONS = 7 };
extern const plot_question plot_questions[PLOT_QUESTIONS];

typedef struct plot_template {
    char path[PLOT_PATH], name[PLOT_PATH], title[256], takes[256], samples[256];
    int question;              /* index in plot_questions; the last without a line */
    int least_runs, most_runs; /* most_runs 0: any number */
    double width, height;      /* inches */
    /* values of {site}, {stat}, {metric} and {step}, "" when the figure takes none */
    char site[256], stat[256], metric[256], step[256];
    bool stat_own;       /* the runs declare the statistic (plot_custom_stat.c) */
    char stat_unit[160]; /* and its unit, else "" */
    bool takes_control[PLOT_CONTROLS];
    /* its axes are not for runs of several models and data sets: a report has one each */
    bool one_task;
    /* each run has its own line, though its tables cover all runs: a report draws few */
    bool lines_of_runs;
    char steps[64];               /* replacement of {steps}: "all", or the user's FROM:TO */
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

/* figure: name of a template, or path of a .gp file. */
sr_status plot_template_find(const char *figure, plot_template *t, sr_failure *why);
sr_status plot_template_read(const char *path, plot_template *t, sr_failure *why);
/* The user's values for the words of a template; "" keeps the template's. */
typedef struct plot_choice {
    const char *site, *stat, *metric, *step;
    bool published;               /* the papers' values too */
    const char *published_tables; /* which, instead of the template's; "" not given */
    struct {
        const char *name, *value;
    } word[PLOT_CHOICES]; /* words of the choices that the template declares */
    int words;
} plot_choice;
/* Nothing chosen. */
#define PLOT_NO_CHOICE                                                                             \
    (plot_choice) {                                                                                \
        .site = "", .stat = "", .metric = "", .step = "", .published_tables = ""                   \
    }

/* Fills the user's words in: into commands, columns and published metrics ({metric} there without
 * its `valid_`). */
sr_status plot_template_choose(plot_template *t, const plot_choice *choice, sr_failure *why);
void plot_template_free(plot_template *t);
/* "BN.h5 PNV.h5 [--reading=squares|roots]" */
void plot_template_takes(const plot_template *t, char *text, size_t size);

/* Calls visit with every template, in the order of names; the first failure ends it. */
sr_status plot_template_each(sr_status (*visit)(plot_template *t, void *self, sr_failure *why),
                             void *self, sr_failure *why);
/* Writes "name <tab> runs <tab> title" of every template. */
sr_status plot_template_list(FILE *out, sr_failure *why);

/* -- plot_placeholders.c: words that a template leaves open ------------------------------------ */

/* The fault of the declaration, or NULL. help must outlive t. */
const char *plot_placeholders_choice(plot_template *t, const char *name, const char *texts,
                                     const char *help);
const char *plot_placeholders_follow(plot_template *t, const char *name, const char *choice,
                                     const char *texts);
const plot_word *plot_placeholders_find(const plot_template *t, const char *name, size_t length);
/* True when the figure has this choice, and this word in it. */
bool plot_placeholders_take(const plot_template *t, const char *name, const char *value);
sr_status plot_placeholders_choose(plot_template *t, const plot_choice *choice, sr_failure *why);
/* Replaces every {NAME} of the template in `text`; false when the result does not fit. */
bool plot_placeholders_fill(const plot_template *t, const char *text, char *filled, size_t size);
sr_status plot_placeholders_fill_commands(plot_template *t, sr_failure *why);

#endif
