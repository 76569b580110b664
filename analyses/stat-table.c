/* Runs side by side: one row per run with its last results. With --layout, a result table of a
 * paper with values of the runs beside the printed ones (table.h, plots/layouts.tsv).
 *
 * Loss and discrepancy are means over the last tenth of the recorded steps (at least one step). The
 * discrepancy is in percent, at the last of all sites that have one, final norms of stacks
 * included. Layouts use the last BN layer (--site last-bn), as the tables of Regularized BN do.
 * Validation numbers come from the last evaluation, and from the one with the smallest valid_loss.
 * Other declared metrics have a column each if a run has a value.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frame/stat_program.h"
#include "analysis/runs/run_metrics.h"
#include "base/containers/vector.h"
#include "base/globs.h"
#include "table/table.h"

enum { OWN_COLUMNS = 24 }; /* at most, without metrics */

typedef struct settings {
    option_text layout, layouts, format, pick, published, published_table;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    TEXT_OPTION("Tables of the papers", "layout", AT(layout), "",
                "print this table: pn-table1, rbn-table1, ...; list: name them", .value = "TABLE"),
    CHOICE_OPTION("Tables of the papers", "format", AT(format), "tsv",
                  TSV_FORMATS "|latex|markdown",
                  "print in this format; latex (needs booktabs) and markdown need --layout"),
    CHOICE_OPTION(
        "Tables of the papers", "pick", AT(pick), "best", "best|last",
        "take the metric at the evaluation with the smallest valid_loss, or at the last one"),
    TEXT_OPTION("Tables of the papers", "layouts", AT(layouts), "",
                "read layouts from FILE; default: plots/layouts.tsv, which explains its syntax",
                .value = "FILE"),
    TEXT_OPTION("Published values", "published", AT(published), "",
                "read the papers' values from FILE; default: plots/published.tsv", .value = "FILE"),
    TEXT_OPTION("Published values", "published-table", AT(published_table), "",
                "without --layout: add the values of this table, as rbn-iwslt14-pre, by norm",
                .value = "PUBLISHED"),
};

/* -- metrics beside the usual ones ------------------------------------------------------------ */

/* Other metrics that the runs declared and measured, besides the columns of every table. */
typedef struct other_metrics {
    const sr_run_metric **metric; /* [count], of the first run that has a value */
    int64_t capacity;
    int count;
} other_metrics;

static bool is_usual(const sr_run_metric *m) {
    return globs_match("valid_loss,valid_ppl,valid_accuracy", m->name);
}

static sr_status add_other(other_metrics *o, const sr_runfile *run, const sr_run_metric *m,
                           sr_failure *why) {
    double value;
    if (is_usual(m)) return SR_OK;
    for (int i = 0; i < o->count; i++)
        if (strcmp(o->metric[i]->name, m->name) == 0) return SR_OK;
    sr_status status = metric_read_last(run, m->name, &value, why);
    if (status != SR_OK || !isfinite(value)) return status;
    if (!vector_reserve(&o->metric, &o->capacity, o->count + 1, sizeof *o->metric))
        return sr_fail(why, SR_MEMORY, "out of memory");
    o->metric[o->count++] = m;
    return SR_OK;
}

typedef struct evaluations {
    double loss, ppl, accuracy, best, best_step;
} evaluations;

/* Values in a run's row, read while its file was open. */
typedef struct row {
    double epoch, seconds, loss, discrepancy[2];
    evaluations e;
    int64_t site;  /* site of the discrepancy; -1: none */
    double *other; /* [metrics of the run] of the last evaluation */
} row;

/* Columns besides the usual ones. */
typedef struct columns {
    other_metrics others;
    published_values published; /* empty without --published-table */
    row *row;                   /* [rows] in the order of the runs */
    int64_t rows, capacity;
} columns;

/* -- columns --------------------------------------------------------------------------------- */

/* Declares a column of losses in the unit of valid_loss, if the runs declare it. The training loss
 * of such a program has no unit. */
static void declare_loss(stat_table *table, const char *name, const char *what, const char *more) {
    const sr_run_metric *m = metric_find(table->set, "valid_loss", strlen("valid_loss"));
    const bool nats = !m || strncmp(m->unit, "nats", 4) == 0, train = strcmp(name, "loss") == 0;
    char text[2 * SR_DEFINITION_SIZE];
    snprintf(text, sizeof text, "%s%s%s%s", what, nats || !train ? ", " : "",
             nats    ? "nats"
             : train ? ""
                     : m->unit,
             more);
    tsv_column(&table->table, name, text);
}

static void declare_columns(stat_table *table) {
    const settings *s = table->settings;
    const other_metrics *o = &((const columns *)table->state)->others;
    tsv *t = &table->table;
    tsv_column(t, "run", "run file as given");
    tsv_column(t, "model", "model");
    tsv_column(t, "norm", "normalizations of its sites, in forward order");
    tsv_column(t, "data", "data set");
    tsv_column(t, "seed", "seed");
    tsv_column(
        t, "status",
        "running (or killed: statrec info says which), complete, diverged, interrupted or failed");
    tsv_column(t, "steps", "recorded steps");
    tsv_column(t, "epoch", "passes over the training data");
    tsv_column(t, "seconds", "wall time up to the last recorded step");
    declare_loss(table, "loss", "mean training loss of the last tenth of the steps", "");
    declare_loss(table, "valid_loss", "of the last evaluation", "; nan: the run has none");
    tsv_column(t, "valid_ppl", "of the last evaluation");
    tsv_column(t, "valid_accuracy", "of the last evaluation, percent");
    declare_loss(table, "best_valid_loss", "smallest of all evaluations", "");
    tsv_column(t, "best_step", "its step; -1 without evaluations");
    tsv_column(t, "tid_mean",
               "mean of tid_mean over the last tenth of the steps at tid_site, percent");
    tsv_column(t, "tid_var", "the same of tid_var");
    tsv_column(t, "tid_site", "last site with a discrepancy, - without one");
    for (int i = 0; i < o->count; i++) {
        const sr_run_metric *m = o->metric[i];
        const char *direction = metric_direction(m);
        char text[2 * SR_DEFINITION_SIZE];
        snprintf(text, sizeof text, "of the last evaluation: %s (%s)%s%s", m->definition, m->unit,
                 *direction ? "; " : "", direction);
        tsv_column(t, m->name, text);
    }
    if (s->published_table[0]) {
        tsv_column(t, "published", "the papers' value for this norm, nan: none, Div.: diverged");
        tsv_column(t, "published_metric", "what it measures");
        tsv_column(t, "published_source", "where it stands; the paper's data and model size");
    }
}

static sr_status end_of_steps(const sr_runfile *run, double *epoch, double *seconds, double *loss,
                              sr_failure *why) {
    const int64_t steps = sr_run_get_info(run)->steps, count = table_last_tenth(steps);
    *epoch = *seconds = *loss = NAN;
    if (!steps) return SR_OK;
    double *value = malloc((size_t)count * sizeof *value);
    if (!value) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = sr_run_step_reals(run, "epoch", steps - 1, 1, epoch, why);
    if (status == SR_OK) status = sr_run_step_reals(run, "seconds", steps - 1, 1, seconds, why);
    if (status == SR_OK) status = sr_run_step_reals(run, "loss", steps - count, count, value, why);
    summary s;
    if (status == SR_OK) summary_make(value, count, &s), *loss = s.mean;
    free(value);
    return status;
}

static sr_status find_best(const sr_runfile *run, evaluations *e, sr_failure *why) {
    const int64_t evals = sr_run_get_info(run)->evals;
    int64_t best = -1;
    e->best = NAN;
    e->best_step = -1;
    if (!sr_run_has_eval(run, "valid_loss")) return SR_OK;
    double *loss = malloc((size_t)(evals + 1) * sizeof *loss);
    if (!loss) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = sr_run_eval(run, "valid_loss", 0, evals, loss, why);
    for (int64_t i = 0; i < evals && status == SR_OK; i++)
        if (best < 0 ? isfinite(loss[i]) : loss[i] < loss[best]) best = i;
    if (status == SR_OK && best >= 0) {
        e->best = loss[best];
        status = sr_run_eval(run, "step", best, 1, &e->best_step, why);
    }
    free(loss);
    return status;
}

/* -- rows ------------------------------------------------------------------------------------ */

/* "bn", or "bn,ln" in the order of their first sites. */
static void list_norms(const sr_runfile *run, char *text, size_t size) {
    const sr_run_site *site, *before;
    text[0] = 0;
    for (int64_t i = 0; (site = sr_run_get_site(run, i)); i++) {
        bool seen = false;
        for (int64_t k = 0; k < i && (before = sr_run_get_site(run, k)); k++)
            seen = seen || strcmp(before->called, site->called) == 0;
        if (!seen) text_append(text, size, ",", site->called);
    }
}

/* Runs of a Transformer may have their norm in the encoder only: that one counts. */
static void published_cells(const settings *s, const published_values *p, const sr_runfile *run,
                            tsv *t) {
    if (!s->published_table[0]) return;
    const char *called = sr_run_main_norm(run);
    const published_value *v = published_find(p, s->published_table, called, "");
    char plain[SR_NAME_SIZE];
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(called, "+"), called);
    if (!v) v = published_find(p, s->published_table, plain, ""); /* PN's tables have no +ls */
    tsv_text(t, v ? v->text : "nan");
    tsv_text(t, v ? v->metric : "-");
    tsv_text(t, v ? v->source : "-");
}

static sr_status read_others(other_metrics *o, const sr_runfile *run, double **value,
                             sr_failure *why) {
    const sr_run_metric *m;
    int64_t count = 0;
    sr_status status = SR_OK;
    while (sr_run_get_metric(run, count)) count++;
    *value = malloc((size_t)(count + 1) * sizeof **value);
    if (!*value) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; status == SR_OK && (m = sr_run_get_metric(run, i)); i++) {
        status = add_other(o, run, m, why);
        if (status == SR_OK) status = table_last_value(run, m->name, &(*value)[i], why);
    }
    return status;
}

static sr_status read_run(stat_table *table, int r, sr_failure *why) {
    columns *c = table->state;
    const settings *s = table->settings;
    const sr_runfile *run = table->set->run[r];
    if (s->layout[0]) return SR_OK;
    if (!vector_reserve(&c->row, &c->capacity, c->rows + 1, sizeof *c->row))
        return sr_fail(why, SR_MEMORY, "out of memory");
    row *at = &c->row[c->rows++];
    evaluations *e = &at->e;
    *at = (row){.site = -1};
    sr_status status = end_of_steps(run, &at->epoch, &at->seconds, &at->loss, why);
    if (status == SR_OK) status = table_last_value(run, "valid_loss", &e->loss, why);
    if (status == SR_OK) status = table_last_value(run, "valid_ppl", &e->ppl, why);
    if (status == SR_OK) status = table_last_value(run, "valid_accuracy", &e->accuracy, why);
    if (status == SR_OK) status = find_best(run, e, why);
    if (status == SR_OK) status = table_tid_site(run, false, &at->site, why);
    if (status == SR_OK) status = table_tid_of_steps(run, at->site, at->discrepancy, why);
    return status == SR_OK ? read_others(&c->others, run, &at->other, why) : status;
}

static double other_value(const sr_runfile *run, const row *at, const char *name) {
    const sr_run_metric *m;
    for (int64_t i = 0; (m = sr_run_get_metric(run, i)); i++)
        if (strcmp(m->name, name) == 0) return at->other[i];
    return NAN;
}

static void print_run(stat_table *table, int r) {
    const columns *c = table->state;
    const sr_runfile *run = table->set->run[r];
    const row *at = &c->row[r];
    const evaluations *e = &at->e;
    tsv *t = &table->table;
    const sr_run_info *info = sr_run_get_info(run);
    char norms[256];
    list_norms(run, norms, sizeof norms);
    tsv_text(t, table->set->path[r]);
    tsv_text(t, info->model);
    tsv_text(t, norms);
    tsv_text(t, info->data);
    tsv_uint(t, info->seed);
    tsv_text(t, info->status);
    tsv_int(t, info->steps);
    const double real[] = {at->epoch, at->seconds, at->loss, e->loss, e->ppl, e->accuracy, e->best};
    for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) tsv_real(t, real[i]);
    tsv_int(t, (int64_t)e->best_step);
    tsv_real(t, at->discrepancy[0]);
    tsv_real(t, at->discrepancy[1]);
    tsv_text(t, at->site >= 0 ? sr_run_get_site(run, at->site)->name : "-");
    for (int i = 0; i < c->others.count; i++)
        tsv_real(t, other_value(run, at, c->others.metric[i]->name));
    published_cells(table->settings, &c->published, run, t);
}

static sr_status print_rows(stat_table *t, sr_failure *why) {
    (void)why;
    for (int r = 0; r < t->set->count; r++) print_run(t, r);
    return SR_OK;
}

static sr_status find_columns(stat_table *t, sr_failure *why) {
    static const char *const usual[] = {"valid_loss", "valid_ppl", "valid_accuracy"};
    const settings *s = t->settings;
    columns *c = t->state;
    sr_status status = SR_OK;
    if (!s->published_table[0] && s->published[0])
        return sr_fail(why, SR_USAGE, "--published needs --published-table or --layout");
    if (s->published_table[0]) status = published_read(&c->published, s->published, why);
    if (status == SR_OK && s->published_table[0] &&
        !published_has_table(&c->published, s->published_table))
        return sr_fail(why, SR_FORMAT, "%s has no table %s", c->published.path, s->published_table);
    if (status == SR_OK && OWN_COLUMNS + c->others.count > TSV_COLUMNS)
        status = sr_fail(why, SR_FORMAT, "%d metrics are too many for one table", c->others.count);
    if (status != SR_OK) return status;
    table_note_steps(t->set, &t->table);
    for (int i = 0; i < 3; i++) metric_warn(t->set, usual[i], strlen(usual[i]), &t->table);
    for (int i = 0; i < c->others.count; i++)
        metric_warn(t->set, c->others.metric[i]->name, strlen(c->others.metric[i]->name),
                    &t->table);
    return SR_OK;
}

static void release(stat_table *t) {
    columns *c = t->state;
    for (int64_t i = 0; i < c->rows; i++) free(c->row[i].other);
    free(c->row);
    free(c->others.metric);
    published_free(&c->published);
}

static sr_status print_other(stat_table *t, const char *command, bool *done, sr_failure *why) {
    const settings *s = t->settings;
    const bool text = !strcmp(s->format, "latex") || !strcmp(s->format, "markdown");
    tsv_set_format(s->format);
    *done = s->layout[0] != 0;
    if (!*done && (text || s->layouts[0]))
        return sr_fail(why, SR_USAGE, "--format and --layouts need --layout");
    run_set none;
    if (!*done) return t->set->count ? SR_OK : run_set_open(&none, 0, NULL, why);
    if (s->published_table[0])
        return sr_fail(why, SR_USAGE, "--published-table does not go with --layout");
    if (strcmp(s->layout, "list") == 0) return layout_list(s->layouts, command, why);
    grid g = {.pick = strcmp(s->pick, "last") == 0 ? PICK_LAST : PICK_BEST};
    sr_status status = layout_read(&g.layout, s->layouts, s->layout, why);
    if (status == SR_OK) status = published_read(&g.published, s->published, why);
    if (status == SR_OK) status = grid_make(&g, t->set, why);
    if (status == SR_OK) status = grid_print(&g, s->format, t->set, command, why);
    grid_free(&g);
    return status;
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-table",
        .usage = "RUN.h5... [--published-table NAME]\n"
                 "[RUN.h5...] --layout NAME [--format WORD]\n"
                 "--layout list",
        .does =
            "One row per run: its settings, how it ended, its last and best validation, and the\n"
            "training-inference discrepancy of its last site. --layout prints a result table of a\n"
            "paper: what the runs measured beside the published values. Runs that differ only in "
            "the\n"
            "seed are averaged.",
        .options = {rows, sizeof rows / sizeof rows[0]},
        .settings = sizeof(settings),
        .environment = "STATREC_PLOTS, directory of layouts.tsv and published.tsv that is\n"
                       "searched first.",
        .without_runs = true,
        .state = sizeof(columns),
        .opened = read_run,
        .other = print_other,
        .head = find_columns,
        .columns = declare_columns,
        .rows = print_rows,
        .release = release,
    };
    return stat_program_main(&p, argc, argv);
}
