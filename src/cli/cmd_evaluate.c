/* cmd_evaluate.c -- statrec evaluate: metrics of a trained model on a split, with BLEU for
 * translations, and the training-inference discrepancy. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program/progress.h"
#include "base/tsv.h"
#include "cli/batch_options.h"
#include "cli/command_frame.h"
#include "cli/commands.h"
#include "cli/decode_options.h"
#include "cli/text/text_files.h"
#include "train/loaded_model.h"

typedef struct evaluate_values {
    decode_values decode; /* first: DECODE_ROWS */
    option_text split, data_dir, testpref, batching, max_tokens_of, bleu, predictions;
    int64_t threads, batches, bootstrap;
    bool batch, each_site, tid, quiet, force;
} evaluate_values;

#define AT(field) offsetof(evaluate_values, field)
static const option evaluate_rows[] = {
    CHOICE_OPTION(NULL, "split", AT(split), "valid", "valid|test|train", "evaluate this split"),
    FLAG_OPTION(NULL, "batch-statistics", AT(batch), "no",
                "evaluate a second time with batch statistics instead of running ones"),
    FLAG_OPTION(
        NULL, "each-site", AT(each_site), "no",
        "find the cause of a gap: evaluate with batch statistics at one site after another"),
    FLAG_OPTION(NULL, "tid", AT(tid), "no",
                "measure the training-inference discrepancy of every site over training batches"),
    INT_OPTION(NULL, "batches", AT(batches), "0", 1, 1 << 30, "batches",
               "measure it over N batches; 0: all of an epoch"),
    TEXT_OPTION(NULL, "data-dir", AT(data_dir), "",
                "read the data in this directory; empty: the run's", .value = "DIRECTORY"),
    TEXT_OPTION(NULL, "testpref", AT(testpref), "",
                "read test files with this prefix; empty: the run's", .value = "PREFIX"),
    BATCH_ROWS(NULL, AT(batching), AT(max_tokens_of)),
    CHOICE_OPTION(
        NULL, "bleu", AT(bleu), "multi-bleu", "multi-bleu|13a|intl|none|off",
        "sentence pairs: score training words as multi-bleu.perl, or plain text as sacreBLEU"),
    INT_OPTION(NULL, "bootstrap", AT(bootstrap), "1000", 0, 1000000, "resamples",
               "compute the 95 % interval of BLEU from N resamples; 0: none"),
    DECODE_ROWS(NULL),
    TEXT_OPTION(NULL, "predictions", AT(predictions), "",
                "write predictions (tags, trees) in a file that `statrec score` reads",
                .value = "FILE"),
    FLAG_OPTION(NULL, "force", AT(force), "no", "replace an existing file of predictions"),
    FLAG_OPTION(NULL, "quiet", AT(quiet), "no", "print no progress line"),
    INT_OPTION(NULL, "threads", AT(threads), "0", 1, 1024, "threads",
               "use N threads; 0: every core"),
};

static const command_frame frame = {
    "usage: statrec evaluate RUN.h5|X.ckpt [--split test] [--tid]\n"
    "\n"
    "Evaluates a trained model: X.ckpt, or the newest checkpoint of a run.\n"
    "Prints a table with one row per number.\n"
    "\n",
    {evaluate_rows, sizeof evaluate_rows / sizeof evaluate_rows[0]},
    NULL,
    "0 done, 1 failed, 2 usage.",
    2};

/* -- BLEU */

typedef struct decoding {
    progress progress;
    double start;
} decoding;

static void on_progress(void *context, int64_t sentences, int64_t words) {
    decoding *d = context;
    char detail[64];
    snprintf(detail, sizeof detail, "%.0f words/s", (double)words / (progress_clock() - d->start));
    progress_show(&d->progress, sentences, detail);
}

/* Scores the hypotheses; NULL on failure, or (*why untouched) after a signal. */
static bleu_scorer *score(const tool *from, const evaluate_values *v, const loaded_model *t,
                          data_split split, const bleu_form *form, sr_failure *why) {
    translator of = {.model = t->model, .codec = data_codec(t->data)};
    decoding d = {.start = progress_clock()};
    decode_choose(&v->decode, &of);
    of.options.threads = t->threads, of.options.context = &d;
    of.options.progress = on_progress, of.options.stop = command_stops;
    tool_catch_signals();
    progress_begin(&d.progress, from->name, "sentences", data_pairs(t->data, split), v->quiet);
    bleu_scorer *s = translator_bleu(&of, t->data, split, form, why);
    progress_end(&d.progress);
    return s;
}

/* -- the table */

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

static const char *name_of(data_split split) {
    return split == SPLIT_VALID ? "validation" : data_split_name(split);
}

static sr_status measure(loaded_model *t, data_split split, norm_mode mode, task_sums *sum,
                         double value[TASK_METRICS], sr_failure *why) {
    sr_status status =
        task_evaluate(t->task, &t->task_options, t->model, t->tape, t->data, split, mode, sum, why);
    if (status == SR_OK) t->task->measure(sum, value);
    return status;
}

/* site: NULL: all sites use the same statistics. */
static void print_values(const loaded_model *t, tsv *table, data_split split, const char *site,
                         bool of_batch, const double value[TASK_METRICS]) {
    char definition[sizeof(train_metric){0}.definition + 32];
    train_metric m;
    for (int i = 0; i < task_metrics(t->task); i++) {
        train_metric_make(t->task, i, split, of_batch, &m);
        snprintf(definition, sizeof definition, "%s%s", m.definition,
                 site ? " at this site alone" : "");
        print_row(table, m.name, site ? site : "-", value[i], m.unit, definition);
    }
}

/* Names sentences that the score leaves out. */
static void print_coverage(const loaded_model *t, data_split split, const char *score) {
    char text[DATA_COVERAGE];
    data_coverage(t->data, split, text);
    if (*text) printf("# %s: %s\n", score, text);
}

/* Running or batch statistics everywhere. */
static sr_status print_metrics(loaded_model *t, tsv *table, data_split split, bool of_batch,
                               double value[TASK_METRICS], sr_failure *why) {
    task_sums sum;
    const norm_mode mode = of_batch ? NORM_BATCH : NORM_RUNNING;
    sr_status status = measure(t, split, mode, &sum, value, why);
    if (status != SR_OK) return status;
    print_values(t, table, split, NULL, of_batch, value);
    if (of_batch) return SR_OK;
    char text[TASK_TEXT];
    int64_t tokens;
    const int64_t left_out = data_left_out(t->data, split, &tokens);
    t->task->describe(&(task_result){&sum, name_of(split), left_out, model_condition(t->model)},
                      text);
    printf("# %s\n", text);
    print_coverage(t, split, name_of(split));
    return SR_OK;
}

/* Evaluates with batch statistics at one site after another, running statistics at all others.
 * of_running, of_batch: the metrics with the same statistics at all sites. */
static sr_status print_each_site(loaded_model *t, tsv *table, data_split split,
                                 const double of_running[TASK_METRICS],
                                 const double of_batch[TASK_METRICS], sr_failure *why) {
    double value[TASK_METRICS];
    task_sums sum;
    sr_status status = SR_OK;
    for (int i = 0; i < t->model->sites && status == SR_OK && !tool_signal(); i++) {
        norm_site *site = t->model->site[i];
        if (!norm_site_has_running(site)) continue;
        site->never_running = true;
        status = measure(t, split, NORM_RUNNING, &sum, value, why);
        site->never_running = false;
        if (status != SR_OK) return status;
        print_values(t, table, split, site->name, true, value);
        print_row(table, "gap_share", site->name,
                  (of_running[0] - value[0]) / (of_running[0] - of_batch[0]), "1",
                  "(running - this site's)/(running - every site's) of the first metric; fractions "
                  "need not add up to 1");
    }
    return status;
}

/* The score as a row, its line and interval as `#` lines. */
static sr_status print_bleu(const tool *from, const evaluate_values *v, const loaded_model *t,
                            tsv *table, data_split split, sr_failure *why) {
    const bool multi = !strcmp(v->bleu, "multi-bleu");
    bleu_form form = BLEU_FORM;
    if (multi)
        form = (bleu_form)BLEU_MULTI_FORM;
    else
        form.tokenizer = (bleu_tokenizer)text_find_word(BLEU_TOKENIZER_WORDS, v->bleu);
    bleu_interval interval = {.resamples = v->bootstrap, .seed = BLEU_SEED};
    char name[64], signature[BLEU_LINE], line[BLEU_LINE];
    const int64_t tokenized = multi ? 0 : translator_tokenized(t->data, split);
    if (tokenized >= BLEU_TOKENIZED_LINES) {
        snprintf(name, sizeof name, "the %s text", name_of(split));
        tool_warn(from, BLEU_TOKENIZED_WARNING, name, (long long)tokenized);
    }
    bleu_scorer *s = score(from, v, t, split, &form, why);
    if (!s) return why->status;
    const bleu_counts sum = bleu_sum(s);
    sr_status status = v->bootstrap ? bleu_bootstrap(s, &interval, why) : SR_OK;
    bleu_signature(s, NULL, signature, sizeof signature);
    snprintf(name, sizeof name, "%s_bleu", data_split_name(split));
    print_row(table, name, "-", bleu_compute(&form, &sum).bleu, "BLEU", signature);
    if (form.multi)
        bleu_print_multi(&sum, line, sizeof line);
    else
        bleu_print(s, 2, NULL, line, sizeof line);
    printf("# %s\n", line);
    print_coverage(t, split, "BLEU");
    if (v->bootstrap && status == SR_OK) {
        bleu_print_interval(&interval, 2, line, sizeof line);
        printf("# BLEU: %s\n", line);
    }
    bleu_free(s);
    return status;
}

/* True for models that write sentences, on data with reference texts. */
static bool writes(const evaluate_values *v, const loaded_model *t, data_split split) {
    return strcmp(v->bleu, "off") != 0 && t->task->decode_asked && split != SPLIT_TRAIN &&
           data_reference(t->data, split, 0).byte;
}

static task_decoding decoding_of(const loaded_model *t, data_split split) {
    return (task_decoding){.options = &t->task_options,
                           .model = t->model,
                           .tape = t->tape,
                           .data = t->data,
                           .split = split,
                           .stop = command_stops};
}

/* Metrics of decoded output, if the task always decodes. */
static sr_status print_decoded(const loaded_model *t, tsv *table, data_split split,
                               sr_failure *why) {
    double value[TASK_METRICS];
    char text[TASK_DECODED];
    bool stopped = false;
    train_metric m;
    const int first = task_metrics(t->task);
    const task_decoding d = decoding_of(t, split);
    if (!t->task->decode || t->task->decode_asked) return SR_OK;
    tool_catch_signals();
    sr_status status = t->task->decode(&d, value, text, &stopped, why);
    if (status != SR_OK || stopped) return status;
    for (int i = first; i < task_all_metrics(t->task); i++) {
        train_metric_make(t->task, i, split, false, &m);
        print_row(table, m.name, "-", value[i - first], m.unit, m.definition);
    }
    printf("# %s: %s\n", name_of(split), text);
    return SR_OK;
}

static sr_status print_tid(loaded_model *t, tsv *table, int64_t batches, sr_failure *why) {
    const int sites = t->model->sites;
    double *mean = malloc((size_t)(2 * sites + 1) * sizeof *mean), *var = mean + sites;
    if (!mean) return sr_fail(why, SR_MEMORY, "out of memory for %d sites", sites);
    sr_status status = loaded_model_tid(t, batches, mean, var, why);
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

static sr_status open_all(const tool *from, const evaluate_values *v, loaded_model *t,
                          data_split split, sr_failure *why) {
    const loaded_model_options o = {v->data_dir, v->testpref, (int)v->threads, v->batching,
                                    v->max_tokens_of};
    sr_status status = loaded_model_open(t, from->argv[2], &o, why);
    if (status == SR_OK) status = loaded_model_open_data(t, why);
    if (status == SR_OK) command_warn_lines(from, data_warnings(t->data));
    if (status == SR_OK && !data_has_split(t->data, split))
        status = sr_fail(why, SR_USAGE, "--split: %s has no %s split here", t->config.data.name,
                         v->split);
    return status;
}

static sr_status print_all(const tool *from, const char *command, const evaluate_values *v,
                           loaded_model *t, data_split split, sr_failure *why) {
    tsv table;
    double of_running[TASK_METRICS], of_batch[TASK_METRICS];
    tsv_begin(&table, stdout, from->name, command);
    tsv_note(&table, "checkpoint", "%s, %lld updates", t->path, (long long)t->updates);
    tsv_column(&table, "name", "metric of the split, or statistic of a site");
    tsv_column(&table, "site", "normalization site; - for the whole model");
    tsv_column(&table, "value", "in its unit");
    tsv_column(&table, "unit", "of the value");
    tsv_column(&table, "definition", "what it is");
    tsv_header(&table);
    sr_status status = print_metrics(t, &table, split, false, of_running, why);
    if (status == SR_OK && (v->batch || v->each_site))
        status = print_metrics(t, &table, split, true, of_batch, why);
    if (status == SR_OK && v->each_site) {
        tool_catch_signals();
        status = print_each_site(t, &table, split, of_running, of_batch, why);
    }
    if (status == SR_OK) status = print_decoded(t, &table, split, why);
    if (status == SR_OK && writes(v, t, split)) status = print_bleu(from, v, t, &table, split, why);
    return status == SR_OK && v->tid ? print_tid(t, &table, v->batches, why) : status;
}

static sr_status evaluate(const tool *from, const char *command, const evaluate_values *v,
                          loaded_model *t, sr_failure *why) {
    text_output o;
    const data_split split = !strcmp(v->split, "test")    ? SPLIT_TEST
                             : !strcmp(v->split, "train") ? SPLIT_TRAIN
                                                          : SPLIT_VALID;
    sr_status status = open_all(from, v, t, split, why);
    if (status != SR_OK || !*v->predictions)
        return status == SR_OK ? print_all(from, command, v, t, split, why) : status;
    if (!t->task->predict)
        return sr_fail(why, SR_USAGE, "--predictions: task %s writes none", t->task->name);
    /* before anything takes its time */
    status = text_output_open(&o, v->predictions, v->force, why);
    if (status != SR_OK) return status;
    const task_decoding d = decoding_of(t, split);
    status = print_all(from, command, v, t, split, why);
    if (status == SR_OK) status = t->task->predict(&d, o.out, why);
    return text_output_finish(&o, status, why);
}

int cmd_evaluate(const tool *t) {
    evaluate_values v;
    int files = 0, status;
    char *command = tool_command(t);
    if (!command) return tool_error(t, TOOL_FAILED, "out of memory");
    if (command_ends(t, &frame, &v, &files, &status)) {
        free(command);
        return status;
    }
    sr_failure why = {0};
    loaded_model *of = calloc(1, sizeof *of);
    if (files != 1)
        status = tool_error(t, TOOL_USAGE, "one run file or checkpoint expected, %d given", files);
    else if (v.batches && !v.tid)
        status = tool_error(t, TOOL_USAGE, "--batches has no effect without --tid");
    else if (!of)
        status = tool_error(t, TOOL_FAILED, "out of memory");
    else if (evaluate(t, command, &v, of, &why) != SR_OK)
        status = tool_report(t, &why);
    else
        status = tool_signal() ? 128 + tool_signal() : TOOL_DONE;
    if (of) loaded_model_close(of);
    free(of);
    free(command);
    return status;
}
