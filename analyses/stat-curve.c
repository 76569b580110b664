/* Training and validation curves: columns of /steps, with custom scalars, or columns of /evals.
 *
 *     percent = 100 * step / last step of the run
 *
 * Losses of steps are nats per token or image; metrics have the units that the runs declare. lr and
 * grad_norm are NaN except in the last pass of an optimizer update. With --buckets a run is cut
 * into parts of equal steps (downsample.c).
 *
 * --gap adds the loss from running statistics in evaluation, for metrics that a run validated both
 * ways:
 *
 *     NAME_gap       = NAME - NAME_batch, its sign turned where more is better
 *     NAME_gap_mean  = its mean over the evaluations of the second half of training that have both
 *     NAME_gap_low, NAME_gap_high: Student's 95 % interval of that mean, as in statrec diagnose
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/downsample.h"
#include "analysis/evaluations.h"
#include "analysis/frame/stat_program.h"
#include "analysis/frame/step_range.h"
#include "analysis/runs/run_config.h"
#include "analysis/runs/run_metrics.h"
#include "analysis/series/custom_statistics.h"
#include "base/containers/vector.h"

typedef struct settings {
    bool evals, gap;
    int64_t buckets;
    option_text metric, stat, phase;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    FLAG_OPTION("Output", "evals", AT(evals), "no",
                "print a row for each evaluation instead of each step"),
    TEXT_OPTION("Output", "metric", AT(metric), "",
                "with --evals: print these metrics; one must be declared; default: all that the "
                "runs declare",
                .value = "METRIC"),
    FLAG_OPTION("Output", "gap", AT(gap), "no",
                "with --evals: add NAME less NAME_batch of these metrics, with the interval of "
                "its mean"),
    TEXT_OPTION("Output", "stat", AT(stat), "",
                "without --evals: print step, epoch and these columns; default: all",
                .value = "STAT,..."),
    INT_OPTION("Output", "buckets", AT(buckets), "0", 1, 1000000, "",
               "print smallest, median and largest value of N parts of the steps; 0: every row"),
    PHASE_OPTION(AT(phase)),
};

/* The part of a metric in a column. */
typedef enum { ITSELF, GAP, GAP_MEAN, GAP_LOW, GAP_HIGH, GAP_END } gap_part;

typedef struct column {
    const char *name, *definition;
    bool whole;
    const sr_run_metric *metric; /* NULL: none */
    const sr_run_declared *own;  /* a number per step that the runs declare; NULL: the format's */
    gap_part gap;
    char *of; /* for a gap: the name of its metric, then of the column; malloc'd */
} column;

#define WHOLE(column, text)      {.name = #column, .definition = text, .whole = true},
#define REAL(column, unit, text) {.name = #column, .definition = text},
static const column step_column[] = {SR_STEP_INTS(WHOLE) SR_STEP_REALS(REAL)};
static const column eval_column[] = {
    {.name = "step", .definition = "step after which the evaluation was made", .whole = true},
    {.name = "epoch", .definition = "passes over the training data at this evaluation"}};
enum {
    STEP_COLUMNS = sizeof step_column / sizeof step_column[0],
    EVAL_COLUMNS = sizeof eval_column / sizeof eval_column[0], /* before the metrics */
    STEP = 0,                                                  /* the first column of each group */
    BLOCK = 4096,
};

/* One of the two groups of a run file, and the chosen columns of it. */
typedef struct group {
    column *column; /* [columns] */
    int columns;
    int64_t capacity;
    char *names; /* chosen ones, cut at their commas */
    bool gap;    /* with columns of the gap */
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

/* -- the gap --------------------------------------------------------------------------------- */

/* The evaluation of a step; -1: none that has both. */
static int evaluation_at(const evaluations *e, double step) {
    int i = 0;
    while (i < e->count && e->step[i] < step) i++;
    return i < e->count && e->step[i] == step ? i : -1;
}

static double gap_value(const running_gap *g, gap_part part, int i, bool second_half) {
    if (part == GAP) return i < 0 ? NAN : g->at.value[2][i];
    if (!second_half) return NAN;
    return part == GAP_MEAN ? g->mean : part == GAP_LOW ? g->low : g->high;
}

static sr_status read_gap(const sr_runfile *run, const column *c, int64_t first, int64_t count,
                          double *value, sr_failure *why) {
    const sr_run_metric *m = sr_run_find_metric(run, c->of);
    int64_t last = 0;
    running_gap g;
    sr_status status = running_gap_read(&g, run, c->of, m ? m->better : SR_BETTER_NEITHER, why);
    if (status == SR_OK) status = run_last_step(run, &last, why);
    if (status == SR_OK) status = read_eval(run, "step", first, count, value, why);
    for (int64_t i = 0; i < count && status == SR_OK; i++)
        value[i] = gap_value(&g, c->gap, evaluation_at(&g.at, value[i]),
                             value[i] >= (double)second_half_from(last));
    evaluations_free(&g.at);
    return status;
}

static const column *format_column(const char *name) {
    for (int i = 0; i < STEP_COLUMNS; i++)
        if (strcmp(step_column[i].name, name) == 0) return &step_column[i];
    return NULL;
}

static sr_status read_step(const sr_runfile *run, const char *name, int64_t first, int64_t count,
                           double *value, sr_failure *why) {
    if (format_column(name) || declared_named(run, name, SR_PER_STEP))
        return sr_run_step_reals(run, name, first, count, value, why);
    for (int64_t i = 0; i < count; i++) value[i] = NAN;
    return SR_OK;
}

/* -- columns --------------------------------------------------------------------------------- */

static sr_status add_column(group *e, column c, sr_failure *why) {
    for (int i = 0; i < e->columns; i++)
        if (strcmp(e->column[i].name, c.name) == 0) return SR_OK;
    if (!vector_reserve(&e->column, &e->capacity, e->columns + 1, sizeof *e->column))
        return sr_fail(why, SR_MEMORY, "out of memory");
    e->column[e->columns++] = c;
    return SR_OK;
}

/* Adds the columns of a gap after the metrics. */
static sr_status add_gaps(group *e, const run_set *set, bool named, sr_failure *why) {
    static const struct {
        const char *suffix, *definition;
    } of[GAP_END] = {
        [GAP] = {"gap", "what running statistics cost: the metric less that with batch statistics, "
                        "the other way where more is better"},
        [GAP_MEAN] = {"gap_mean", "mean gap of the evaluations in the second half of training; NaN "
                                  "in the first"},
        [GAP_LOW] = {"gap_low", "lower end of Student's 95 % interval of that mean; NaN for fewer "
                                "than 3"},
        [GAP_HIGH] = {"gap_high", "its upper end"}};
    const int metrics = e->columns;
    sr_status status = SR_OK;
    for (int i = EVAL_COLUMNS; i < metrics; i++) {
        char other[2 * SR_NAME_SIZE];
        const char *name = e->column[i].name;
        const size_t length = strlen(name);
        snprintf(other, sizeof other, "%.*s_batch", SR_NAME_SIZE, name);
        if (length > 6 && strcmp(name + length - 6, "_batch") == 0) continue;
        if (!named && !metric_find(set, other, strlen(other))) continue;
        for (gap_part part = GAP; part < GAP_END && status == SR_OK; part++) {
            char *memory = malloc(2 * length + 16);
            const int before = e->columns;
            if (!memory) return sr_fail(why, SR_MEMORY, "out of memory");
            sprintf(memory, "%s", name);
            sprintf(memory + length + 1, "%s_%s", name, of[part].suffix);
            status = add_column(e,
                                (column){.name = memory + length + 1,
                                         .definition = of[part].definition,
                                         .metric = e->column[i].metric,
                                         .gap = part,
                                         .of = memory},
                                why);
            if (e->columns == before) free(memory); /* a metric has this name */
        }
    }
    return status;
}

static sr_status eval_columns_make(group *e, const run_set *set, const char *words,
                                   sr_failure *why) {
    const sr_run_metric *m;
    bool any = !*words;
    sr_status status = SR_OK;
    for (int i = 0; i < EVAL_COLUMNS && status == SR_OK; i++)
        status = add_column(e, eval_column[i], why);
    for (int r = 0; r < set->count && !*words; r++)
        for (int64_t i = 0; status == SR_OK && (m = sr_run_get_metric(set->run[r], i)); i++)
            status = add_column(
                e, (column){.name = m->name, .definition = m->definition, .metric = m}, why);
    for (char *at = *words ? e->names : NULL, *end; at && status == SR_OK; at = end) {
        if ((end = strchr(at, ','))) *end++ = 0;
        if (!*at) return sr_fail(why, SR_USAGE, "--metric: an empty name in '%s'", words);
        m = metric_find(set, at, strlen(at)), any = any || m;
        const char *definition = m ? m->definition : "declared by no run";
        status = add_column(e, (column){.name = at, .definition = definition, .metric = m}, why);
    }
    if (!any && status == SR_OK) return metric_check(set, words, "", NULL, why);
    if (e->gap && status == SR_OK) status = add_gaps(e, set, *words, why);
    if (status == SR_OK && 2 + e->columns > TSV_COLUMNS)
        status = sr_fail(why, SR_USAGE, "%d metrics are too many for one table: --metric chooses",
                         e->columns - EVAL_COLUMNS);
    return status;
}

static sr_status refuse_step(const run_set *set, const char *name, sr_failure *why) {
    enum { SHOWN = 32 };
    const char *names[STEP_COLUMNS + SHOWN];
    char text[512] = "";
    if (declared_find(set, name, SR_PER_SITE)) {
        sr_fail(why, SR_USAGE, "--stat: '%.80s' is a number per site, not per step", name);
        sr_hint(why, "stat-scalar prints it");
        return SR_USAGE;
    }
    for (int i = 0; i < STEP_COLUMNS; i++) names[i] = step_column[i].name;
    const int count = STEP_COLUMNS + declared_list(set, SR_PER_STEP, names + STEP_COLUMNS, SHOWN);
    const char *nearest = tool_nearest(name, names, count);
    for (int i = 0; i < count; i++) text_append(text, sizeof text, ", ", names[i]);
    sr_fail(why, SR_USAGE, "--stat: no column '%.80s' of steps; there are %s", name, text);
    if (nearest) sr_hint(why, "did you mean '%s'?", nearest);
    return SR_USAGE;
}

/* missing: whether a name that no run has makes a column without values. */
static sr_status add_step(group *e, const run_set *set, const char *name, bool missing,
                          sr_failure *why) {
    const column *format = format_column(name);
    if (format) return add_column(e, *format, why);
    const sr_run_declared *own = declared_find(set, name, SR_PER_STEP);
    const bool site = !own && declared_find(set, name, SR_PER_SITE);
    if (!own && !missing) return refuse_step(set, name, why);
    if (!own)
        return add_column(
            e,
            (column){.name = name, .definition = site ? "a number per site" : "declared by no run"},
            why);
    return add_column(e, (column){.name = own->name, .definition = own->definition, .own = own},
                      why);
}

static bool has_step(const run_set *set, const char *words) {
    char name[SR_NAME_SIZE];
    for (const char *at = words; *at; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (format_column(name) || declared_find(set, name, SR_PER_STEP)) return true;
        at += length;
    }
    return false;
}

/* Among several words one must be a column; the others are columns without values, as for
 * metrics. */
static sr_status step_columns_make(group *e, const run_set *set, const char *words,
                                   sr_failure *why) {
    const bool any = has_step(set, words);
    const char *own[TSV_COLUMNS];
    const int declared = *words ? 0 : declared_list(set, SR_PER_STEP, own, TSV_COLUMNS);
    sr_status status = add_column(e, *format_column("step"), why);
    for (int i = 0; i < STEP_COLUMNS && !*words && status == SR_OK; i++)
        status = add_column(e, step_column[i], why);
    for (int i = 0; i < declared && status == SR_OK; i++)
        status = add_step(e, set, own[i], false, why);
    if (status == SR_OK) status = add_column(e, *format_column("epoch"), why);
    for (char *at = *words ? e->names : NULL, *end; at && status == SR_OK; at = end) {
        if ((end = strchr(at, ','))) *end++ = 0;
        if (!*at) return sr_fail(why, SR_USAGE, "--stat: an empty name in '%s'", words);
        status = add_step(e, set, at, any, why);
    }
    if (status == SR_OK && 2 + e->columns > TSV_COLUMNS)
        status = sr_fail(why, SR_USAGE, "%d columns are too many for one table: --stat chooses",
                         2 + e->columns);
    return status;
}

/* -- the table ------------------------------------------------------------------------------- */

static void declare_columns(stat_table *t) {
    const group *g = t->state;
    tsv *table = &t->table;
    tsv_column(table, "run", "run file as given");
    tsv_column(table, "percent", "percent of training: 100 step / last step of the run");
    for (int i = 0; i < g->columns; i++) {
        const column *c = &g->column[i];
        const char *direction = c->metric && !c->gap ? metric_direction(c->metric) : "";
        char text[2 * SR_DEFINITION_SIZE];
        if (c->own)
            declared_text(c->own, text);
        else
            snprintf(text, sizeof text, "%s%s%s%s%s%s", c->definition, c->metric ? " (" : "",
                     c->metric ? c->metric->unit : "", c->metric ? ")" : "", *direction ? "; " : "",
                     direction);
        tsv_column(table, c->name, text);
    }
}

/* One group of one run on its way into the table; rows are percent, then the group's columns. */
typedef struct curve {
    const group *g;
    const sr_runfile *run;
    const char *path;
    tsv *table;
    int64_t first, rows;     /* that the table is about */
    int64_t last;            /* step of the run's last row */
    double *memory, **value; /* [1 + columns][BLOCK] */
} curve;

/* Reads rows of the table into c->value. */
static sr_status curve_read(const curve *c, int64_t first, int64_t count, sr_failure *why) {
    double *const *value = c->value;
    sr_status status = SR_OK;
    for (int i = 0; i < c->g->columns && status == SR_OK; i++)
        status = c->g->column[i].gap ? read_gap(c->run, &c->g->column[i], c->first + first, count,
                                                value[1 + i], why)
                                     : c->g->read(c->run, c->g->column[i].name, c->first + first,
                                                  count, value[1 + i], why);
    for (int64_t i = 0; i < count && status == SR_OK; i++)
        value[0][i] = c->last ? 100 * value[1][i] / (double)c->last : NAN;
    return status;
}

/* Prints the rows that p has so far. */
static void curve_print(const curve *c, parts *p) {
    for (int64_t i = 0; i < p->rows; i++) {
        const double *row = p->row + i * p->columns;
        tsv_text(c->table, c->path);
        tsv_real(c->table, row[0]);
        for (int k = 0; k < c->g->columns; k++)
            (c->g->column[k].whole ? tsv_count : tsv_real)(c->table, row[1 + k]);
    }
    p->rows = 0;
}

/* buckets 0: every row */
static sr_status curve_rows(curve *c, int64_t buckets, sr_failure *why) {
    double low = 0, high = 0;
    parts p;
    sr_status status = SR_OK;
    if (buckets) status = c->g->read(c->run, "step", c->first, 1, &low, why);
    if (buckets && status == SR_OK)
        status = c->g->read(c->run, "step", c->first + c->rows - 1, 1, &high, why);
    parts_begin(&p, 1 + c->g->columns, buckets, low, high);
    for (int64_t done = 0; done < c->rows && status == SR_OK; done += BLOCK) {
        const int64_t count = c->rows - done < BLOCK ? c->rows - done : BLOCK;
        status = curve_read(c, done, count, why);
        if (status == SR_OK)
            status = parts_add(&p, c->value[1 + STEP], (const double *const *)c->value, count, why);
        if (status == SR_OK) curve_print(c, &p);
    }
    if (status == SR_OK) status = parts_end(&p, why);
    if (status == SR_OK) curve_print(c, &p);
    parts_free(&p);
    return status;
}

/* window: NULL for all rows. Evaluations from before the first step, step 0, go with it. */
static sr_status rows_of_window(const group *g, const sr_runfile *run, const step_window *window,
                                int64_t *first, int64_t *count, sr_failure *why) {
    const series steps = {.run = run, .source = FROM_SCALARS};
    const int64_t all = g->rows(sr_run_get_info(run));
    sr_status status = SR_OK;
    *first = 0, *count = all;
    if (!window) return SR_OK;
    if (g->rows == step_rows) return window_rows(window, &steps, first, count, why);
    *count = 0;
    for (int64_t i = 0; i < all && status == SR_OK; i++) {
        double step = 0;
        status = g->read(run, "step", i, 1, &step, why);
        if (window->first > window->begin && step < (double)window->first)
            ++*first;
        else
            *count += step <= (double)window->last;
    }
    return status;
}

static sr_status print_curves(curve *c, const stat_table *t, sr_failure *why) {
    const int64_t buckets = ((const settings *)t->settings)->buckets;
    sr_status status = SR_OK;
    for (int r = 0; r < t->set->count && status == SR_OK; r++) {
        c->run = t->set->run[r], c->path = t->set->path[r];
        status = rows_of_window(c->g, c->run, t->window ? &t->window[r] : NULL, &c->first, &c->rows,
                                why);
        if (status == SR_OK) status = run_last_step(c->run, &c->last, why);
        if (status != SR_OK) break;
        const bool reduced = buckets && c->rows > 3 * buckets;
        status = curve_rows(c, reduced ? buckets : 0, why);
    }
    return status;
}

static sr_status print_runs(stat_table *t, sr_failure *why) {
    const group *g = t->state;
    const size_t columns = 1 + (size_t)g->columns;
    curve c = {.g = g, .table = &t->table};
    c.memory = malloc(columns * BLOCK * sizeof *c.memory);
    c.value = malloc(columns * sizeof *c.value);
    sr_status status = c.memory && c.value ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (size_t k = 0; k < columns && status == SR_OK; k++) c.value[k] = c.memory + k * BLOCK;
    if (status == SR_OK) status = print_curves(&c, t, why);
    free(c.memory), free(c.value);
    return status;
}

static sr_status check_rows(const stat_table *t, const group *g, sr_failure *why) {
    const settings *s = t->settings;
    int64_t length = 0, first, count;
    for (int r = 0; r < t->set->count; r++) {
        const step_window *w = t->window ? &t->window[r] : NULL;
        sr_status status = rows_of_window(g, t->set->run[r], w, &first, &count, why);
        if (status != SR_OK) return status;
        length += count;
    }
    if (length) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s%s has no %s%s%s", t->set->path[0],
                   t->set->count > 1 ? " (and no other run)" : "",
                   s->evals ? "evaluations" : "steps", t->window ? " in --phase " : "",
                   t->window ? s->phase : "");
}

/* Keeps the burn-in: losses do not depend on running values. */
static sr_status choose(stat_table *t, sr_failure *why) {
    const settings *s = t->settings;
    const char *words = s->evals ? s->metric : s->stat;
    group *g = t->state;
    if (!s->evals && s->metric[0])
        return sr_fail(why, SR_USAGE, "--metric '%s' goes with --evals only", s->metric);
    if (s->evals && s->stat[0])
        return sr_fail(why, SR_USAGE, "--stat '%s' does not go with --evals", s->stat);
    if (!s->evals && s->gap) return sr_fail(why, SR_USAGE, "--gap goes with --evals only");
    *g = (group){.names = strdup(words),
                 .gap = s->gap,
                 .rows = s->evals ? eval_rows : step_rows,
                 .read = s->evals ? read_eval : read_step};
    if (!g->names) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = (s->evals ? eval_columns_make : step_columns_make)(g, t->set, words, why);
    if (status == SR_OK && strcmp(s->phase, "all") != 0)
        status = windows_make(&t->window, t->set, "0", s->phase, NULL, why);
    if (status == SR_OK) status = check_rows(t, g, why);
    if (status != SR_OK) return status;
    for (int r = 0; r < t->set->count && t->window; r++)
        window_describe(&t->window[r], t->set->path[r], &t->table);
    if (s->buckets)
        tsv_note(&t->table, "note",
                 "three rows for each 1/%lld of these steps: smallest, median, largest; of at most "
                 "%lld rows every row",
                 (long long)s->buckets, 3 * (long long)s->buckets);
    for (int i = 0; i < g->columns; i++) {
        const column *c = &g->column[i];
        if (c->metric && !c->gap) metric_warn(t->set, c->name, strlen(c->name), &t->table);
        if (!c->own) continue;
        declared_warn(t->set, c->name, SR_PER_STEP, &t->table);
        for (int r = 0; r < t->set->count; r++)
            if (!declared_named(t->set->run[r], c->name, SR_PER_STEP))
                tsv_note(&t->table, "note", "%s does not declare %s", t->set->path[r], c->name);
    }
    return SR_OK;
}

static void release(stat_table *t) {
    group *g = t->state;
    for (int i = 0; i < g->columns; i++) free(g->column[i].of);
    free(g->column);
    free(g->names);
}

static void print_columns_help(void) {
    printf("Columns per step:\n");
    for (int i = 0; i < STEP_COLUMNS; i++)
        printf("  %-16s %s\n", step_column[i].name, step_column[i].definition);
    printf("  and the custom scalars per step, which statrec info lists\n");
    printf("\nColumns per evaluation:\n");
    for (int i = 0; i < EVAL_COLUMNS; i++)
        printf("  %-16s %s\n", eval_column[i].name, eval_column[i].definition);
    printf("  and the metrics\n\n");
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-curve",
        .usage = "RUN.h5... [--stat NAME[,NAME...]] [--buckets N] [--phase PHASE]\n"
                 "RUN.h5... --evals [--metric NAME[,NAME...]] [--gap] [--buckets N]\n"
                 " [--phase PHASE]",
        .does = "Training curves (one row per step), or with --evals validation curves.",
        .options = {rows, sizeof rows / sizeof rows[0]},
        .settings = sizeof(settings),
        .metrics = true,
        .more_help = print_columns_help,
        .state = sizeof(group),
        .head = choose,
        .columns = declare_columns,
        .rows = print_runs,
        .release = release,
    };
    return stat_program_main(&p, argc, argv);
}
