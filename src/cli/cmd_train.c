/* cmd_train.c -- `statrec train`: trains a model and records it; `statrec resume`: resumes a
 * run.
 *
 * stdout: a table with one row per evaluation, then the result as `#` lines. stderr: notes,
 * warnings, progress.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program/progress.h"
#include "base/program/tool.h"
#include "base/tsv.h"
#include "cli/command_frame.h"
#include "cli/commands.h"
#include "cli/info/cmd_info_parts.h"
#include "ranks/ranks.h"
#include "statrec/runfile.h"
#include "train/train.h"

typedef struct session {
    tool tool;
    char *command; /* as typed */
    train_config config;
    const train_resume *from; /* statrec resume */
    tsv table;
    /* columns: running, batch statistics; of training batches */
    train_metric metric[3][TASK_METRICS];
    bool header_done;
    progress progress;
} session;

/* -- reports of the loop */

static void on_note(void *context, const char *text) {
    session *s = context;
    if (!s->config.quiet) fprintf(stderr, "%s: %s\n", s->tool.name, text);
}

static void on_warn(void *context, const char *text) {
    session *s = context;
    progress_end(&s->progress);
    tool_warn(&s->tool, "%s", text);
}

static void declare_metrics(session *s, const train_eval *e, data_split split, bool of_batch) {
    char text[512];
    const int metrics = of_batch ? task_metrics(e->task) : train_metrics_shown(&s->config, e->task);
    for (int i = 0; i < metrics; i++) {
        train_metric *m = &s->metric[split == SPLIT_TRAIN ? 2 : of_batch][i];
        train_metric_make(e->task, i, split, of_batch, m);
        snprintf(text, sizeof text, "%s (%s)", m->definition, m->unit);
        tsv_column(&s->table, m->name, text);
    }
}

static void begin_table(session *s, const train_eval *e) {
    tsv *t = &s->table;
    char text[80];
    tsv_begin(t, stdout, s->tool.name, s->command);
    tsv_column(t, "epoch", "passes over the training data");
    tsv_column(t, "update", "optimizer updates");
    snprintf(text, sizeof text, "%s since the last row, with smoothing", e->task->metric[0].unit);
    tsv_column(t, "train_loss", text);
    declare_metrics(s, e, e->split, false);
    if (e->both_ways) declare_metrics(s, e, e->split, true);
    if (s->config.validate_train) declare_metrics(s, e, SPLIT_TRAIN, true);
    tsv_column(t, "lr", "learning rate of the last update");
    tsv_column(t, "seconds", "since the start");
    tsv_header(t);
    s->header_done = true;
}

static void print_number(tsv *t, double value) {
    char number[32];
    snprintf(number, sizeof number, "%.6g", isnan(value) ? NAN : value); /* without a sign */
    tsv_text(t, number);
}

static void on_eval(void *context, const train_eval *e) {
    session *s = context;
    tsv *t = &s->table;
    const int metrics = train_metrics_shown(&s->config, e->task);
    progress_end(&s->progress);
    if (!s->header_done) begin_table(s, e);
    tsv_real(t, e->epoch);
    tsv_int(t, e->update);
    print_number(t, e->train_loss);
    for (int i = 0; i < metrics; i++) print_number(t, e->value[i]);
    for (int i = 0; i < task_metrics(e->task) && e->both_ways; i++)
        print_number(t, e->batch_value[i]);
    for (int i = 0; i < task_metrics(e->task) && s->config.validate_train; i++)
        print_number(t, e->train_value[i]);
    print_number(t, e->lr);
    char seconds[32];
    snprintf(seconds, sizeof seconds, "%.1f", e->seconds);
    tsv_text(t, seconds);
    fflush(stdout);
}

static void on_progress(void *context, const train_progress *p) {
    session *s = context;
    if (s->config.quiet) return;
    if (!s->progress.label)
        progress_begin(&s->progress, s->tool.name, "updates", p->updates, false);
    char detail[96];
    snprintf(detail, sizeof detail, "epoch %.2f loss %.4f%s lr %.3g", p->epoch, p->loss,
             isfinite(p->loss) ? "" : " (diverged)", p->lr);
    progress_show(&s->progress, p->update, detail);
}

/* -- the result */

static void print_quality(const train_eval *e, const char *split) {
    char text[TASK_TEXT];
    if (e->sum.tokens == 0) return;
    e->task->describe(&(task_result){&e->sum, split, e->left_out, e->condition}, text);
    printf("# %s\n", text);
    if (*e->decoded) printf("# %s: %s\n", split, e->decoded);
}

static void print_profile(const train_result *r) {
    const train_times *t = &r->times;
    const struct {
        const char *name;
        double seconds;
    } part[] = {{"data", t->data},
                {"forward", t->forward},
                {"backward", t->backward},
                {"optimizer", t->optimizer},
                {"recorder", t->recorder},
                {"validation", t->validation},
                {"checkpoints", t->checkpoints}};
    double steps = r->steps > r->steps_before ? (double)(r->steps - r->steps_before) : 1;
    for (const tape_profile *op = r->profile; op < r->profile + PROFILE_OPS && op->op; op++)
        printf("# time in op %s: %.3f ms forward, %.3f ms backward per step, %.1f calls, %.1f %%\n",
               op->op, 1e3 * op->forward / steps, 1e3 * op->backward / steps,
               (double)op->calls / steps, 100 * (op->forward + op->backward) / t->total);
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
        printf("# time in %s: %.2f s, %.3f ms per step, %.1f %%\n", part[i].name, part[i].seconds,
               1e3 * part[i].seconds / steps, 100 * part[i].seconds / t->total);
}

static void print_result(const session *s, const train_result *r) {
    print_quality(&r->last, "validation");
    print_quality(&r->test, "test");
    double busy = r->times.total - r->times.validation;
    printf("# steps: %lld (%lld updates, %lld skipped for a non-finite gradient), %.2f steps/s\n",
           (long long)r->steps, (long long)r->updates, (long long)r->skipped,
           busy > 0 ? (double)(r->steps - r->steps_before) / busy : 0);
    if (*r->stopped) printf("# early stopping: %s\n", r->stopped);
    if (s->config.profile) print_profile(r);
    printf("# weights_digest: %s\n", r->digest);
}

/* -- the command */

/* The parameter of method i that equals p, or NULL. */
static const norm_param_row *find_param(int i, const norm_param_row *p) {
    for (int k = 0; k < NORM_PARAM_MAX && norm_at(i)->param[k].name; k++) {
        const norm_param_row *a = &norm_at(i)->param[k];
        if (!strcmp(a->name, p->name) && !strcmp(a->help, p->help) &&
            a->default_value == p->default_value)
            return a;
    }
    return NULL;
}

/* "  r_max         brn: limit of the scale correction r (1 to 1000000000; default 3)", once for all
 * its methods. */
static void print_param(int first, const norm_param_row *p) {
    for (int i = 0; i < first; i++)
        if (find_param(i, p)) return;
    printf("  %-14s%s", p->name, norm_at(first)->name);
    for (int i = first + 1; norm_at(i); i++)
        if (find_param(i, p)) printf(", %s", norm_at(i)->name);
    if (p->words)
        printf(": %s (%s)\n", p->help, p->words);
    else
        printf(": %s (%.15g to %.15g; default %.9g)\n", p->help, p->low, p->high, p->default_value);
}

static void print_params(void) {
    printf("\nParameters of normalizations (in --norm 'METHOD(NAME=VALUE;...)'; defaults: statrec "
           "list norms):\n"
           "  eps           added to the variance or mean square (0 to 1)\n"
           "  alpha         methods with running statistics: weight of the OLD value (0 to 1)\n"
           "  layer_scale   groups of a layer scale before the method (1 to 4096)\n");
    for (int i = 0; norm_at(i); i++)
        for (int k = 0; k < NORM_PARAM_MAX && norm_at(i)->param[k].name; k++)
            print_param(i, &norm_at(i)->param[k]);
}

static int help(bool all) {
    const option_table options = train_options();
    printf(
        "usage: statrec train [--key value ...] [-c FILE.conf] -o RUN.h5\n\n"
        "Trains a model and records every normalization site of every step into RUN.h5.\n"
        "Prints a table with one row per evaluation. Ctrl-C ends the run; its file stays valid.\n"
        "The run file contains the options (`statrec info --options RUN.h5`). Models and presets\n"
        "have defaults of their own (`statrec list presets`).\n\n");
    if (all)
        options_help(options, stdout), print_params();
    else
        options_help_common(options, stdout);
    if (!all) printf("\n`statrec train --help all` shows all %d options.\n", options.count);
    printf("\nExit status: 0 done, 1 failed, 2 usage, 3 diverged, 128+n after signal n.\n"
           "A run diverged when its last loss is not finite or its last update was skipped.\n");
    return TOOL_DONE;
}

/* With several processes only the first one reports. If another one exited with an error before, a
 * launcher would end the first. */
static int complain(const session *s, const sr_failure *why) {
    return ranks_launched_rank() == 0 ? tool_report(&s->tool, why) : TOOL_DONE;
}

static int finish(const session *s, sr_status status, const train_result *r,
                  const sr_failure *why) {
    if (r->updates > 0 && status != SR_USAGE) print_result(s, r);
    if (status != SR_OK) return tool_report(&s->tool, why);
    if (*s->config.output && r->steps > 0) printf("# run file: %s\n", s->config.output);
    if (r->diverged) printf("# diverged: %s\n", r->diverged);
    if (r->diverged) return TOOL_DIVERGED;
    if (!r->interrupted) return TOOL_DONE;
    tool_warn(&s->tool, "signal %d: stopped after update %lld", tool_signal(),
              (long long)r->updates);
    return 128 + tool_signal();
}

static int run(session *s) {
    train_events events = {s, on_note, on_warn, on_eval, on_progress, command_stops, NULL};
    train_result result;
    sr_failure why = {0};
    tool_catch_signals();
    ranks *k = ranks_open(s->config.rank_timeout, &why);
    if (!k) return complain(s, &why);
    const bool speaks = ranks_rank(k) == 0;
    if (!speaks) events = (train_events){.context = s, .stop = command_stops};
    events.ranks = k;
    /* A synchronized run has one shard per rank; any other run keeps its number of shards. */
    if (!s->config.shards || s->config.sync_norm) s->config.shards = ranks_count(k);
    sr_status status = train_run(&s->config, s->command, s->from, &events, &result, &why);
    progress_end(&s->progress);
    const int exit_status = speaks ? finish(s, status, &result, &why) : TOOL_DONE;
    if (ranks_count(k) > 1) fflush(stdout); /* a run that failed ends in the next line */
    ranks_close(k, status != SR_OK ? &why : NULL);
    return exit_status;
}

static int parse_and_run(session *s) {
    int positional = 0;
    sr_failure why = {0};
    if (train_config_parse(&s->config, s->tool.argc, s->tool.argv, 2, &positional, &why) != SR_OK)
        return complain(s, &why);
    if (positional > 0) sr_fail(&why, SR_USAGE, "'%s' is not an option", s->tool.argv[2]);
    if (positional > 0) return complain(s, &why);
    return run(s);
}

static int with_session(const tool *t, int (*of)(session *s)) {
    tool_wait_briefly(t);
    session *s = calloc(1, sizeof *s);
    if (!s) return tool_error(t, TOOL_FAILED, "out of memory");
    s->tool = *t;
    s->command = tool_command(t); /* before the parser moves argv */
    int status = s->command ? of(s) : tool_error(t, TOOL_FAILED, "out of memory");
    free(s->command);
    free(s);
    return status;
}

int cmd_train(const tool *t) {
    bool all = false;
    for (int i = 2; i + 1 < t->argc; i++)
        all = all || (!strcmp(t->argv[i], "--help") && !strcmp(t->argv[i + 1], "all"));
    return tool_wants_help(t) ? help(all) : with_session(t, parse_and_run);
}

/* -- resume */

/* Options that may change on resuming. */
static option_table resume_options(void) {
    static option row[256];
    static int count;
    const option_table all = train_options();
    if (count) return (option_table){row, count};
    for (int i = 0; i < all.count && count < 256; i++)
        if (train_resume_may_change(all.row[i].key)) row[count++] = all.row[i];
    return (option_table){row, count};
}

static int help_resume(void) {
    printf(
        "usage: statrec resume RUN.h5 [--key value ...]\n\n"
        "Resumes a run that was killed (RUN.h5.part) or interrupted. Starts from the newest valid\n"
        "checkpoint covered by recorded rows. The result is bit-identical to an uninterrupted\n"
        "run. Rows after the checkpoint are dropped and computed again. The attribute `parent`\n"
        "names the resumed run. --epochs or --max-steps extend a complete run. The run's options\n"
        "apply, without names of outputs: checkpoints are called RUN-UPDATE.ckpt, dumps are not\n"
        "written. These may change (defaults here are not the run's):\n\n");
    options_help(resume_options(), stdout);
    printf("\nExit status: as of statrec train.\n");
    return TOOL_DONE;
}

/* Options of the run first, then those given now. */
static sr_status read_resumed(session *s, train_resume *from, sr_failure *why) {
    int positional = 0;
    train_config given;
    memset(&given, 0, sizeof given);
    options_set_defaults(resume_options(), &given);
    sr_status status =
        options_parse(resume_options(), &given, s->tool.argc, s->tool.argv, 2, &positional, why);
    if (status == SR_OK && positional != 1)
        status = sr_fail(why, SR_USAGE, "one run file expected, %d given", positional);
    char output[OPTION_TEXT_SIZE], part[OPTION_TEXT_SIZE + 8];
    if (status == SR_OK) status = train_resume_names(s->tool.argv[2], output, part, why);
    if (status == SR_OK) {
        /* Another writer's files would get mixed up. Checked before reading: the checkpoints of a
           live run are ahead of its rows. */
        long pid = 0;
        sr_runfile *f = sr_run_open(part, NULL);
        if (f && cmd_info_writer(sr_run_get_info(f), &pid, NULL) == WRITER_ALIVE)
            status = sr_fail(why, SR_STATE, "%s: process %ld is writing it", part, pid);
        sr_run_close(f);
    }
    if (status == SR_OK)
        status = train_resume_find(s->tool.argv[2], given.checkpoint, from, &s->config, why);
    if (status == SR_OK)
        status = options_parse(resume_options(), &s->config, s->tool.argc, s->tool.argv, 3,
                               &positional, why);
    return status == SR_OK ? train_config_check(&s->config, why) : status;
}

/* A kill after a run's last write, before its rename, leaves the complete run in RUN.h5.part. Its
 * checkpoints are complete, too, so the name is all that is left to do. */
static sr_status name_complete(const session *s, train_resume *from, bool *named, sr_failure *why) {
    char output[OPTION_TEXT_SIZE], part[OPTION_TEXT_SIZE + 8];
    sr_status status = train_resume_names(s->tool.argv[2], output, part, why);
    if (status != SR_OK || !from->complete || strcmp(from->rows, part) != 0) return status;
    *named = rename(part, output) == 0;
    if (!*named && errno != ENOENT) /* another rank was faster */
        return sr_fail(why, SR_IO, "%s: rename to %s: %s", part, output, strerror(errno));
    if (*named) fprintf(stderr, "%s: %s is complete; it is %s now\n", s->tool.name, part, output);
    snprintf(from->rows, sizeof from->rows, "%s", output);
    return SR_OK;
}

static int parse_and_resume(session *s) {
    train_resume from = {0};
    sr_failure why = {0};
    int status;
    bool named = false;
    s->from = &from;
    if (read_resumed(s, &from, &why) != SR_OK || name_complete(s, &from, &named, &why) != SR_OK)
        status = complain(s, &why);
    else
        status = named && s->tool.argc == 3 ? TOOL_DONE : run(s);
    train_resume_free(&from);
    return status;
}

int cmd_resume(const tool *t) {
    return tool_wants_help(t) ? help_resume() : with_session(t, parse_and_resume);
}
