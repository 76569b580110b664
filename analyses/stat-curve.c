/* Training and validation curves: the columns of /steps, or of /evals, with epoch and percent.
 *
 *     percent = 100 * step / last step of the run
 *
 * Losses are nats per token or image. lr and grad_norm are NaN except in the last pass of an
 * optimizer update.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"

typedef struct settings {
    bool evals;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    FLAG_OPTION("Output", "evals", AT(evals), "no",
                "one row per evaluation instead of one per step"),
};
static const option_table options = {rows, sizeof rows / sizeof rows[0]};

typedef struct column {
    const char *name, *unit, *definition;
} column;

#define WHOLE(name, definition)      {#name, "", definition},
#define REAL(name, unit, definition) {#name, unit, definition},
static const column step_column[] = {SR_STEP_INTS(WHOLE) SR_STEP_REALS(REAL)};
static const column eval_column[] = {{"step", "", "step after which the evaluation was made"},
                                     SR_EVALS(REAL)};
enum {
    STEP_COLUMNS = sizeof step_column / sizeof step_column[0],
    EVAL_COLUMNS = sizeof eval_column / sizeof eval_column[0],
    MOST_COLUMNS = 16,
    BLOCK = 4096,
};

/* One of the two groups of a run file. */
typedef struct group {
    const column *column;
    int columns;
    int64_t (*rows)(const sr_run_info *info);
    sr_status (*read)(const sr_runfile *run, const char *name, int64_t first, int64_t count,
                      double *value, sr_failure *why);
} group;

static int64_t step_rows(const sr_run_info *info) {
    return info->steps;
}
static int64_t eval_rows(const sr_run_info *info) {
    return info->evals;
}
static sr_status read_eval(const sr_runfile *run, const char *name, int64_t first, int64_t count,
                           double *value, sr_failure *why) {
    if (strcmp(name, "step") == 0 || sr_run_has_eval(run, name))
        return sr_run_eval(run, name, first, count, value, why);
    for (int64_t i = 0; i < count; i++) value[i] = NAN;
    return SR_OK;
}

static const group steps = {step_column, STEP_COLUMNS, step_rows, sr_run_step_reals};
static const group evals = {eval_column, EVAL_COLUMNS, eval_rows, read_eval};

static void print_help(const void *self) {
    (void)self;
    printf(
        "usage: stat-curve RUN.h5... [--evals]\n\n"
        "Training curves (one row per step), or with --evals validation curves.\n"
        "Writes a tab-separated table with its definitions in `#` lines.\n\nColumns per step:\n");
    for (int i = 0; i < STEP_COLUMNS; i++)
        printf("  %-16s %s\n", step_column[i].name, step_column[i].definition);
    printf("\nColumns per evaluation:\n");
    for (int i = 0; i < EVAL_COLUMNS; i++)
        printf("  %-16s %s\n", eval_column[i].name, eval_column[i].definition);
    printf("\n");
    options_help(options, stdout);
}

static void declare_columns(const group *g, tsv *table) {
    tsv_column(table, "run", "run file as given");
    tsv_column(table, "percent", "percent of training: 100 step / last step of the run");
    for (int i = 0; i < g->columns; i++) {
        const column *c = &g->column[i];
        tsv_column(table, c->name, c->definition);
    }
    tsv_header(table);
}

static sr_status print_block(const group *g, const run_set *set, int r, int64_t first,
                             int64_t count, double (*value)[BLOCK], tsv *table, sr_failure *why) {
    int64_t last;
    sr_status status = run_last_step(set->run[r], &last, why);
    for (int c = 0; c < g->columns && status == SR_OK; c++)
        status = g->read(set->run[r], g->column[c].name, first, count, value[c], why);
    for (int64_t i = 0; i < count && status == SR_OK; i++) {
        tsv_text(table, set->path[r]);
        tsv_real(table, last ? 100 * value[0][i] / (double)last : NAN);
        for (int c = 0; c < g->columns; c++) {
            if (g->column[c].unit[0])
                tsv_real(table, value[c][i]);
            else
                tsv_int(table, (int64_t)value[c][i]);
        }
    }
    return status;
}

static sr_status print_runs(const group *g, const run_set *set, tsv *table, sr_failure *why) {
    double(*value)[BLOCK] = malloc(MOST_COLUMNS * sizeof *value);
    if (!value) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = SR_OK;
    for (int r = 0; r < set->count; r++) {
        const int64_t length = g->rows(sr_run_get_info(set->run[r]));
        for (int64_t first = 0; first < length && status == SR_OK; first += BLOCK) {
            const int64_t count = length - first < BLOCK ? length - first : BLOCK;
            status = print_block(g, set, r, first, count, value, table, why);
        }
    }
    free(value);
    return status;
}

static sr_status print_table(const void *self, const run_set *set, const char *command,
                             sr_failure *why) {
    const settings *s = self;
    const group *g = s->evals ? &evals : &steps;
    tsv table;
    table_head head;
    int64_t length = 0;
    for (int r = 0; r < set->count; r++) length += g->rows(sr_run_get_info(set->run[r]));
    if (!length)
        return sr_fail(why, SR_FORMAT, "%s%s has no %s", set->path[0],
                       set->count > 1 ? " (and no other run)" : "",
                       s->evals ? "evaluations" : "steps");
    sr_status status = table_head_begin(&head, &table, "stat-curve", command, set, why);
    if (status == SR_OK) status = table_head_print(&head, &table, why);
    if (status != SR_OK) return status;
    declare_columns(g, &table);
    return print_runs(g, set, &table, why);
}

int main(int argc, char **argv) {
    settings s;
    const analysis_program p = {.name = "stat-curve",
                                .help = print_help,
                                .options = options,
                                .settings = &s,
                                .self = &s,
                                .print = print_table};
    return analysis_program_main(&p, argc, argv);
}
