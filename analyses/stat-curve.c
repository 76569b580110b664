/* Training and validation curves: the columns of /steps, or of /evals, with epoch and percent.
 *
 *     percent = 100 * step / last step of the run
 *
 * Losses are nats per token or image. lr and grad_norm are NaN except in the last pass of an
 * optimizer update.
 *
 * Reduced (--buckets, analysis_parts.c), a run is cut into parts of equal epochs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "statnet/analysis.h"

typedef struct settings {
    bool evals;
    int64_t buckets;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    FLAG_OPTION("Output", "evals", AT(evals), "no",
                "one row per evaluation instead of one per step"),
    INT_OPTION(
        "Output", "buckets", AT(buckets), "0", 1, 1000000, "",
        "of each of so many parts of the epochs only the smallest, the median and the largest "
        "value of every column; 0: every row"),
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
_Static_assert((int)STEP_COLUMNS <= (int)MOST_COLUMNS && (int)EVAL_COLUMNS <= (int)MOST_COLUMNS,
               "a row has room for the columns of either group");

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
        "usage: stat-curve RUN.h5... [--evals] [--buckets N]\n\n"
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

/* One group of one run on its way into the table; rows are percent, then the group's columns. */
typedef struct curve {
    const group *g;
    const sr_runfile *run;
    const char *path;
    tsv *table;
    int64_t rows, last; /* last: step of the run's last row */
    int epoch;          /* its column */
    double (*value)[BLOCK];
} curve;

static sr_status curve_read(const curve *c, int64_t first, int64_t count, sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; i < c->g->columns && status == SR_OK; i++)
        status = c->g->read(c->run, c->g->column[i].name, first, count, c->value[i], why);
    return status;
}

static void curve_row(const curve *c, int64_t i, double *row) {
    row[0] = c->last ? 100 * c->value[0][i] / (double)c->last : NAN;
    for (int k = 0; k < c->g->columns; k++) row[1 + k] = c->value[k][i];
}

/* The median of two whole numbers may be none. */
static void curve_print(const curve *c, const double *row) {
    tsv_text(c->table, c->path);
    tsv_real(c->table, row[0]);
    for (int k = 0; k < c->g->columns; k++) {
        if (c->g->column[k].unit[0] || row[1 + k] != floor(row[1 + k]))
            tsv_real(c->table, row[1 + k]);
        else
            tsv_int(c->table, (int64_t)row[1 + k]);
    }
}

static sr_status curve_all(const curve *c, sr_failure *why) {
    double row[1 + MOST_COLUMNS];
    sr_status status = SR_OK;
    for (int64_t first = 0; first < c->rows && status == SR_OK; first += BLOCK) {
        const int64_t count = c->rows - first < BLOCK ? c->rows - first : BLOCK;
        status = curve_read(c, first, count, why);
        for (int64_t i = 0; i < count && status == SR_OK; i++) {
            curve_row(c, i, row);
            curve_print(c, row);
        }
    }
    return status;
}

static sr_status curve_reduce(const curve *c, parts *p, sr_failure *why) {
    double row[1 + MOST_COLUMNS];
    sr_status status = SR_OK;
    for (int64_t first = 0; first < c->rows && status == SR_OK; first += BLOCK) {
        const int64_t count = c->rows - first < BLOCK ? c->rows - first : BLOCK;
        status = curve_read(c, first, count, why);
        for (int64_t i = 0; i < count && status == SR_OK; i++) {
            curve_row(c, i, row);
            status = parts_add(p, row[1 + c->epoch], row, why);
        }
    }
    return status == SR_OK ? parts_end(p, why) : status;
}

static sr_status curve_parts(const curve *c, int64_t buckets, sr_failure *why) {
    double low, high;
    parts p;
    sr_status status = c->g->read(c->run, "epoch", 0, 1, &low, why);
    if (status == SR_OK) status = c->g->read(c->run, "epoch", c->rows - 1, 1, &high, why);
    if (status != SR_OK) return status;
    parts_begin(&p, 1 + c->g->columns, buckets, low, high);
    status = curve_reduce(c, &p, why);
    for (int64_t i = 0; i < p.rows && status == SR_OK; i++) curve_print(c, p.row + i * p.columns);
    parts_free(&p);
    return status;
}

static sr_status print_runs(const group *g, const run_set *set, int64_t buckets, tsv *table,
                            sr_failure *why) {
    curve c = {.g = g, .table = table, .value = malloc(MOST_COLUMNS * sizeof *c.value)};
    if (!c.value) return sr_fail(why, SR_MEMORY, "out of memory");
    while (c.epoch + 1 < g->columns && strcmp(g->column[c.epoch].name, "epoch") != 0) c.epoch++;
    sr_status status = SR_OK;
    for (int r = 0; r < set->count && status == SR_OK; r++) {
        c.run = set->run[r], c.path = set->path[r];
        c.rows = g->rows(sr_run_get_info(c.run));
        status = run_last_step(c.run, &c.last, why);
        if (status != SR_OK) break;
        const bool reduced = buckets && c.rows > 3 * buckets;
        status = reduced ? curve_parts(&c, buckets, why) : curve_all(&c, why);
    }
    free(c.value);
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
    if (status == SR_OK && s->buckets)
        tsv_note(
            &table, "note",
            "three rows for each 1/%lld of the epochs where there are more: smallest, median and "
            "largest value",
            (long long)s->buckets);
    if (status == SR_OK) status = table_head_print(&head, &table, why);
    if (status != SR_OK) return status;
    declare_columns(g, &table);
    return print_runs(g, set, s->buckets, &table, why);
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
