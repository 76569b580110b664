/* Runs side by side: one row per run with its end.
 *
 * Loss and discrepancy are means over the last tenth of the recorded steps (at least one step), the
 * discrepancy at the last site that has it, in percent: the `last BN layer` of the tables in
 * Regularized BN. Validation numbers are those of the last evaluation, and of the one with the
 * smallest valid_loss.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"

typedef struct settings {
    option_text published, published_table;
} settings;

static const option rows[] = {
    {.group = "Published values",
     .key = "published",
     .type = OPTION_TEXT,
     .offset = offsetof(settings, published),
     .preset = "",
     .unit = "",
     .help = "file with the papers' values (plots/published.tsv)"},
    {.group = "Published values",
     .key = "published-table",
     .type = OPTION_TEXT,
     .offset = offsetof(settings, published_table),
     .preset = "",
     .unit = "",
     .help = "its table that stands beside the runs, as in rbn-iwslt14-pre; matched by norm"},
};
static const option_table options = {rows, sizeof rows / sizeof rows[0]};

static void print_help(const void *self) {
    (void)self;
    printf("usage: stat-table RUN.h5... [--published FILE --published-table NAME]\n\n"
           "One row per run: what it was, how it ended, its last and best validation, and the\n"
           "training-inference discrepancy of its last site.\n"
           "Writes a tab-separated table with its definitions in `#` lines.\n\n");
    options_help(options, stdout);
}

static void declare_columns(const settings *s, tsv *t) {
    tsv_column(t, "run", "run file as given");
    tsv_column(t, "model", "model");
    tsv_column(t, "norm", "normalizations of its sites, in forward order");
    tsv_column(t, "data", "data set");
    tsv_column(t, "seed", "seed");
    tsv_column(t, "status", "running, complete, interrupted or failed");
    tsv_column(t, "steps", "recorded steps");
    tsv_column(t, "epoch", "passes over the training data");
    tsv_column(t, "seconds", "wall time up to the last recorded step");
    tsv_column(t, "loss", "mean training loss of the last tenth of the steps, nats");
    tsv_column(t, "valid_loss", "of the last evaluation, nats");
    tsv_column(t, "valid_ppl", "of the last evaluation");
    tsv_column(t, "valid_accuracy", "of the last evaluation, percent");
    tsv_column(t, "best_valid_loss", "smallest of all evaluations, nats");
    tsv_column(t, "best_step", "its step; -1 without evaluations");
    tsv_column(t, "tid_mean",
               "mean of tid_mean over the last tenth of the steps at tid_site, percent");
    tsv_column(t, "tid_var", "the same of tid_var");
    tsv_column(t, "tid_site", "last site with a discrepancy, - without one");
    if (s->published[0]) {
        tsv_column(t, "published", "the papers' value for this norm, nan: none or diverged");
        tsv_column(t, "published_metric", "what it measures");
        tsv_column(t, "published_source", "where it stands; the paper's data and model size");
    }
    tsv_header(t);
}

static int64_t last_tenth(int64_t steps) {
    return steps < 10 ? 1 : steps / 10;
}

static double mean_of(double *value, int64_t count) {
    summary s;
    summary_make(value, count, &s);
    return s.mean;
}

static sr_status end_of_steps(const sr_runfile *run, double *epoch, double *seconds, double *loss,
                              sr_failure *why) {
    const int64_t steps = sr_run_get_info(run)->steps, count = last_tenth(steps);
    *epoch = *seconds = *loss = NAN;
    if (!steps) return SR_OK;
    double *value = malloc((size_t)count * sizeof *value);
    if (!value) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = sr_run_step_reals(run, "epoch", steps - 1, 1, epoch, why);
    if (status == SR_OK) status = sr_run_step_reals(run, "seconds", steps - 1, 1, seconds, why);
    if (status == SR_OK) status = sr_run_step_reals(run, "loss", steps - count, count, value, why);
    if (status == SR_OK) *loss = mean_of(value, count);
    free(value);
    return status;
}

typedef struct evaluations {
    double loss, ppl, accuracy, best, best_step;
} evaluations;

static sr_status read_last(const sr_runfile *run, const char *name, double *value,
                           sr_failure *why) {
    const int64_t evals = sr_run_get_info(run)->evals;
    *value = NAN;
    if (!evals || !sr_run_has_eval(run, name)) return SR_OK;
    return sr_run_eval(run, name, evals - 1, 1, value, why);
}

static sr_status find_best(const sr_runfile *run, evaluations *e, sr_failure *why) {
    const int64_t evals = sr_run_get_info(run)->evals;
    sr_status status = SR_OK;
    e->best = NAN;
    e->best_step = -1;
    for (int64_t i = 0; i < evals && status == SR_OK; i++) {
        double loss;
        status = sr_run_eval(run, "valid_loss", i, 1, &loss, why);
        if (status != SR_OK || !(isnan(e->best) ? isfinite(loss) : loss < e->best)) continue;
        e->best = loss;
        status = sr_run_eval(run, "step", i, 1, &e->best_step, why);
    }
    return status;
}

static sr_status read_evaluations(const sr_runfile *run, evaluations *e, sr_failure *why) {
    sr_status status = read_last(run, "valid_loss", &e->loss, why);
    if (status == SR_OK) status = read_last(run, "valid_ppl", &e->ppl, why);
    if (status == SR_OK) status = read_last(run, "valid_accuracy", &e->accuracy, why);
    return status == SR_OK ? find_best(run, e, why) : status;
}

static const statistic tid[] = {{"mean", "tid_mean", NULL, 0, NULL, NULL},
                                {"var", "tid_var", NULL, 0, NULL, NULL}};

/* value[2]: percent. site -1 when no site has it. */
static sr_status read_tid(const sr_runfile *run, double value[2], int64_t *site, sr_failure *why) {
    const sr_run_info *info = sr_run_get_info(run);
    const int64_t count = last_tenth(info->steps);
    bool *recorded = calloc((size_t)info->sites + 1, sizeof *recorded);
    double *column = malloc((size_t)count * sizeof *column);
    sr_status status = recorded && column ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = series_recorded(run, &tid[0], FROM_SCALARS, recorded, why);
    value[0] = value[1] = NAN;
    *site = -1;
    for (int64_t i = 0; i < info->sites && status == SR_OK; i++)
        if (recorded[i]) *site = i;
    for (int k = 0; k < 2 && *site >= 0 && status == SR_OK; k++) {
        const series s = {run, *site, &tid[k], FROM_SCALARS};
        status = series_read(&s, info->steps - count, count, column, NULL, why);
        if (status == SR_OK) value[k] = 100 * mean_of(column, count);
    }
    free(recorded);
    free(column);
    return status;
}

/* -- published values ------------------------------------------------------------------------ */

enum { PUBLISHED_CELLS = 5 };

typedef struct published {
    char *text;                  /* of the line that `cell` points into */
    char *cell[PUBLISHED_CELLS]; /* table, source, norm, metric, value */
} published;

static bool split_line(char *line, char *cell[PUBLISHED_CELLS]) {
    int count = 0;
    line[strcspn(line, "\n")] = 0;
    for (char *at = line; at && count < PUBLISHED_CELLS; count++) {
        char *tab = strchr(at, '\t');
        if (tab) *tab++ = 0;
        cell[count] = at;
        at = tab;
    }
    return count == PUBLISHED_CELLS;
}

/* The row of this table and norm; text NULL when the table has none. *known: the table is there. */
static sr_status find_published(const settings *s, const char *norm, published *found, bool *known,
                                sr_failure *why) {
    size_t size = 0;
    FILE *in = fopen(s->published, "r");
    if (!in) return sr_fail(why, SR_IO, "--published %s: %s", s->published, strerror(errno));
    *found = (published){0};
    *known = false;
    bool hit = false;
    while (!hit && getline(&found->text, &size, in) >= 0) {
        if (found->text[0] == '#' || !split_line(found->text, found->cell)) continue;
        if (strcmp(found->cell[0], s->published_table) != 0) continue;
        *known = true;
        hit = strcmp(found->cell[2], norm) == 0;
    }
    if (!hit) {
        free(found->text);
        found->text = NULL;
    }
    fclose(in);
    return SR_OK;
}

static sr_status check_published(const settings *s, sr_failure *why) {
    published p;
    bool known;
    if (!s->published[0] && !s->published_table[0]) return SR_OK;
    if (!s->published[0] || !s->published_table[0])
        return sr_fail(why, SR_USAGE, "--published and --published-table go together");
    sr_status status = find_published(s, "", &p, &known, why);
    if (status != SR_OK) return status;
    free(p.text);
    if (known) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s has no table %s", s->published, s->published_table);
}

static const char *first_norm(const sr_runfile *run) {
    const sr_run_site *site;
    for (int64_t i = 0; (site = sr_run_get_site(run, i)); i++)
        if (strcmp(site->norm, "none") != 0) return site->norm;
    return "none";
}

/* Runs of a Transformer may have their norm in the encoder only: that one counts. */
static sr_status published_cells(const settings *s, const sr_runfile *run, tsv *t,
                                 sr_failure *why) {
    published p;
    bool known;
    if (!s->published[0]) return SR_OK;
    sr_status status = find_published(s, first_norm(run), &p, &known, why);
    if (status != SR_OK) return status;
    tsv_real(t, p.text ? strtod(p.cell[4], NULL) : NAN);
    tsv_text(t, p.text ? p.cell[3] : "-");
    tsv_text(t, p.text ? p.cell[1] : "-");
    free(p.text);
    return SR_OK;
}

/* -- rows ------------------------------------------------------------------------------------ */

/* "bn", or "bn,ln" in the order of their first sites. */
static void list_norms(const sr_runfile *run, char *text, size_t size) {
    const sr_run_site *site, *before;
    text[0] = 0;
    for (int64_t i = 0; (site = sr_run_get_site(run, i)); i++) {
        bool seen = false;
        for (int64_t k = 0; k < i && (before = sr_run_get_site(run, k)); k++)
            seen = seen || strcmp(before->norm, site->norm) == 0;
        const size_t used = strlen(text);
        if (!seen) snprintf(text + used, size - used, "%s%s", used ? "," : "", site->norm);
    }
}

static void name_cells(tsv *t, const run_set *set, int r) {
    const sr_run_info *info = sr_run_get_info(set->run[r]);
    char norms[256];
    list_norms(set->run[r], norms, sizeof norms);
    tsv_text(t, set->path[r]);
    tsv_text(t, info->model);
    tsv_text(t, norms);
    tsv_text(t, info->data);
    tsv_int(t, (int64_t)info->seed);
    tsv_text(t, info->status);
    tsv_int(t, info->steps);
}

static sr_status print_run(const settings *s, const run_set *set, int r, tsv *t, sr_failure *why) {
    const sr_runfile *run = set->run[r];
    double epoch, seconds, loss, discrepancy[2];
    evaluations e;
    int64_t site;
    sr_status status = end_of_steps(run, &epoch, &seconds, &loss, why);
    if (status == SR_OK) status = read_evaluations(run, &e, why);
    if (status == SR_OK) status = read_tid(run, discrepancy, &site, why);
    if (status != SR_OK) return status;
    name_cells(t, set, r);
    const double real[] = {epoch, seconds, loss, e.loss, e.ppl, e.accuracy, e.best};
    for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) tsv_real(t, real[i]);
    tsv_int(t, (int64_t)e.best_step);
    tsv_real(t, discrepancy[0]);
    tsv_real(t, discrepancy[1]);
    tsv_text(t, site >= 0 ? sr_run_get_site(run, site)->name : "-");
    return published_cells(s, run, t, why);
}

static sr_status print_table(const void *self, const run_set *set, const char *command,
                             sr_failure *why) {
    const settings *s = self;
    tsv table;
    table_head head;
    sr_status status = check_published(s, why);
    if (status != SR_OK) return status;
    status = table_head_begin(&head, &table, "stat-table", command, set, why);
    if (status == SR_OK) status = table_head_print(&head, &table, why);
    if (status != SR_OK) return status;
    declare_columns(s, &table);
    for (int r = 0; r < set->count && status == SR_OK; r++)
        status = print_run(s, set, r, &table, why);
    return status;
}

int main(int argc, char **argv) {
    settings s;
    const analysis_program p = {"stat-table", print_help, options, &s, &s, print_table};
    return analysis_program_main(&p, argc, argv);
}
