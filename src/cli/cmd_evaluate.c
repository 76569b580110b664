/* cmd_evaluate.c -- statrec evaluate: the metrics of a trained model on a split, and its
 * train-inference discrepancy. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "statnet/options.h"
#include "statnet/trained.h"
#include "statnet/tsv.h"

typedef struct evaluate_values {
    option_text split, data_dir;
    int64_t threads, batches;
    bool batch, tid;
} evaluate_values;

#define AT(field) offsetof(evaluate_values, field)
static const option evaluate_rows[] = {
    CHOICE_OPTION(NULL, "split", AT(split), "valid", "valid|test|train", "what is evaluated"),
    FLAG_OPTION(NULL, "batch-statistics", AT(batch), "no",
                "a second time with the statistics of each batch instead of the running ones"),
    FLAG_OPTION(NULL, "tid", AT(tid), "no",
                "train-inference discrepancy of every site that has one, over training batches"),
    INT_OPTION(NULL, "batches", AT(batches), "0", 1, 1 << 30, "batches",
               "of the discrepancy; 0: all of an epoch"),
    TEXT_OPTION(NULL, "data-dir", AT(data_dir), "", "directory of the data; empty: the run's"),
    INT_OPTION(NULL, "threads", AT(threads), "0", 1, 1024, "threads", "0: every core"),
};
static const option_table evaluate_options = {evaluate_rows,
                                              sizeof evaluate_rows / sizeof evaluate_rows[0]};

static int print_help(void) {
    printf("usage: statrec evaluate RUN.h5|X.ckpt [--split test] [--tid]\n"
           "\n"
           "Evaluates a trained model: X.ckpt, or the newest checkpoint of a run. Prints a table "
           "with\n"
           "one row per number.\n"
           "\n");
    options_help(evaluate_options, stdout);
    printf("\nExit status: 0 done, 1 failed, 2 usage.\n");
    return TOOL_DONE;
}

/* -- the table */

static void begin_table(tsv *t, const tool *from, const char *command, const trained *of) {
    tsv_begin(t, stdout, from->name, command);
    tsv_note(t, "checkpoint", "%s, %lld updates", of->path, (long long)of->updates);
    tsv_column(t, "name", "metric of the split, or statistic of a site");
    tsv_column(t, "site", "normalization site; - for the whole model");
    tsv_column(t, "value", "in its unit");
    tsv_column(t, "unit", "of the value");
    tsv_column(t, "definition", "what it is");
    tsv_header(t);
}

static void print_row(tsv *t, const char *name, const char *site, double value, const char *unit,
                      const char *definition) {
    char number[32];
    snprintf(number, sizeof number, "%.9g", isnan(value) ? NAN : value);
    tsv_text(t, name);
    tsv_text(t, site);
    tsv_text(t, number);
    tsv_text(t, unit);
    tsv_text(t, definition);
}

/* -- numbers */

static data_split split_of(const char *name) {
    return !strcmp(name, "test") ? SPLIT_TEST : !strcmp(name, "train") ? SPLIT_TRAIN : SPLIT_VALID;
}

/* What belongs to the numbers: what was counted, what was left out, what the model saw. */
static void print_result(const trained *t, data_split split, const cross_entropy_report *sum) {
    char text[TASK_TEXT];
    int64_t tokens;
    const char *name = split == SPLIT_VALID ? "validation" : task_split_name(split);
    const int64_t left_out = data_left_out(t->data, split, &tokens);
    t->task->describe(&(task_result){sum, name, left_out, model_condition(t->model)}, text);
    printf("# %s\n", text);
}

static sr_status print_metrics(trained *t, tsv *table, data_split split, bool of_batch,
                               sr_failure *why) {
    cross_entropy_report sum;
    double value[TASK_METRICS];
    train_metric m;
    sr_status status = task_evaluate(t->task, &t->task_options, t->model, t->tape, t->data, split,
                                     of_batch ? NORM_BATCH : NORM_RUNNING, &sum, why);
    if (status != SR_OK) return status;
    t->task->measure(&sum, value);
    for (int i = 0; i < task_metrics(t->task); i++) {
        train_metric_make(t->task, i, split, of_batch, &m);
        print_row(table, m.name, "-", value[i], m.unit, m.definition);
    }
    if (!of_batch) print_result(t, split, &sum);
    return SR_OK;
}

static sr_status print_tid(trained *t, tsv *table, int64_t batches, sr_failure *why) {
    const int sites = t->model->sites;
    double *mean = malloc((size_t)(2 * sites + 1) * sizeof *mean), *var = mean + sites;
    if (!mean) return sr_fail(why, SR_MEMORY, "out of memory for %d sites", sites);
    sr_status status = trained_tid(t, batches, mean, var, why);
    for (int i = 0; i < sites && status == SR_OK; i++) {
        const char *site = t->model->site[i]->name;
        if (isnan(mean[i]) && isnan(var[i])) continue;
        print_row(table, "tid_mean", site, mean[i], "1",
                  "mean over batches of ||mu_B - mu||_2 / ||sigma||_2");
        print_row(table, "tid_var", site, var[i], "1",
                  "mean over batches of ||sigma_B - sigma||_2 / ||sigma||_2");
    }
    free(mean);
    return status;
}

static sr_status evaluate(const tool *from, const char *command, const evaluate_values *v,
                          trained *t, sr_failure *why) {
    tsv table;
    const data_split split = split_of(v->split);
    const trained_options o = {v->data_dir, (int)v->threads};
    sr_status status = trained_open(t, from->argv[2], &o, why);
    if (status == SR_OK) status = trained_open_data(t, why);
    if (status == SR_OK && !data_has_split(t->data, split))
        status = sr_fail(why, SR_USAGE, "--split: %s has no %s split here", t->config.data.name,
                         v->split);
    if (status != SR_OK) return status;
    begin_table(&table, from, command, t);
    status = print_metrics(t, &table, split, false, why);
    if (status == SR_OK && v->batch) status = print_metrics(t, &table, split, true, why);
    return status == SR_OK && v->tid ? print_tid(t, &table, v->batches, why) : status;
}

static int evaluate_and_report(const tool *t, const evaluate_values *v, const char *command) {
    sr_failure why = {0};
    trained *of = calloc(1, sizeof *of);
    if (!of) return tool_error(t, TOOL_FAILED, "out of memory");
    sr_status status = evaluate(t, command, v, of, &why);
    trained_close(of);
    free(of);
    return status == SR_OK ? TOOL_DONE : tool_report(t, &why);
}

int cmd_evaluate(const tool *t) {
    evaluate_values v;
    sr_failure why = {0};
    int files = 0;
    if (tool_wants_help(t)) return print_help();
    char *command = tool_command(t);
    if (!command) return tool_error(t, TOOL_FAILED, "out of memory");
    options_preset(evaluate_options, &v);
    int status = TOOL_USAGE;
    if (options_parse(evaluate_options, &v, t->argc, t->argv, 2, &files, &why) != SR_OK)
        status = tool_report(t, &why);
    else if (files != 1)
        status = tool_error(t, TOOL_USAGE, "one run file or checkpoint expected, %d given", files);
    else if (v.batches && !v.tid)
        status = tool_error(t, TOOL_USAGE, "--batches has no effect without --tid");
    else
        status = evaluate_and_report(t, &v, command);
    free(command);
    return status;
}
