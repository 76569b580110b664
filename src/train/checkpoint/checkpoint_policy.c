/* checkpoint_policy.c -- when a run writes a checkpoint, and which of its checkpoints stay.
 *
 * Always between two updates, so that nothing is accumulated. The run file is flushed before, so
 * that it reaches at least as far as every checkpoint. The new one is whole before an older one
 * goes.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/program/progress.h"
#include "train/checkpoint/checkpoint.h"
#include "train/shards.h"

sr_status train_interval_read(const char *text, train_interval *every, sr_failure *why) {
    char *end;
    *every = (train_interval){EVERY_NONE, 0};
    if (!strcmp(text, "none")) return SR_OK;
    every->unit = EVERY_END;
    if (!strcmp(text, "end")) return SR_OK;
    errno = 0;
    every->count = strtoll(text, &end, 10);
    const bool number = end != text && errno == 0 && every->count > 0 && *text != '+';
    every->unit = !strcmp(end, "s")   ? EVERY_SECONDS
                  : !strcmp(end, "e") ? EVERY_EPOCHS
                                      : EVERY_UPDATES;
    if (number && (!*end || every->unit != EVERY_UPDATES)) return SR_OK;
    return sr_fail(
        why, SR_USAGE,
        "--checkpoint-every: '%s' is none of none, end, 500 (updates), 600s (seconds) and "
        "1e (epochs)",
        text);
}

/* -- opening */

static sr_status find_best_metric(trainer *r, sr_failure *why) {
    const char *name = r->config->keep_best;
    train_metric m;
    r->best_metric.index = -1;
    if (!*name) return SR_OK;
    if (train_metric_find(r->config, r->task, name, &r->best_metric)) {
        if (r->best_metric.better != BETTER_NEITHER) return SR_OK;
        return sr_fail(why, SR_USAGE, "--keep-best: neither less nor more %s is better", name);
    }
    train_metric_make(r->task, r->task->leading, SPLIT_VALID, false, &m);
    sr_fail(why, SR_USAGE, "--keep-best: '%s' is no metric of a validation of task %s", name,
            r->task->name);
    train_metric_hint(r->task, name, why);
    sr_hint(why, "as in --keep-best %s", m.name);
    return SR_USAGE;
}

/* Removes all but the `keep` newest and the one of update `covered`. */
static sr_status prune(const char *prefix, int64_t keep, int64_t covered, sr_failure *why) {
    int64_t *update;
    int count;
    char path[CHECKPOINT_PATH];
    sr_status status = checkpoint_list(prefix, &update, &count, why);
    for (int64_t i = keep; i < count && status == SR_OK; i++) {
        checkpoint_path(prefix, update[i], path);
        /* unreached: a file that goes after the list was made */
        if (update[i] != covered && unlink(path) != 0 && errno != ENOENT)
            status = sr_fail(why, SR_IO, "%s: remove: %s", path, strerror(errno));
    }
    free(update);
    return status;
}

/* The newest update of a file with this prefix; -1: none, and after a failure. */
static sr_status find_newest(const char *prefix, int64_t *newest, sr_failure *why) {
    int64_t *update;
    int count;
    sr_status status = checkpoint_list(prefix, &update, &count, why);
    *newest = count > 0 ? update[0] : -1;
    free(update);
    return status;
}

/* Checkpoints of another run with this name would be treated as ours. */
static sr_status check_others(trainer *r, const char *prefix, sr_failure *why) {
    int64_t newest;
    char path[CHECKPOINT_PATH];
    if (r->config->force) {
        const sr_status swept = checkpoint_sweep(prefix, why);
        r->checkpoints_aside = swept == SR_OK;
        return swept == SR_OK ? checkpoint_set_aside(prefix, why) : swept;
    }
    const sr_status status = find_newest(prefix, &newest, why);
    if (newest < 0) return status;
    checkpoint_path(prefix, newest, path);
    sr_fail(why, SR_EXISTS, "%s: exists", path);
    sr_hint(why,
            "give another name, --force to replace the checkpoints, or `statrec resume` the run");
    return SR_EXISTS;
}

/* Ours are written in order: a newer one belongs to another training with the same prefix. */
static sr_status check_alone(const trainer *r, const char *prefix, sr_failure *why) {
    int64_t newest;
    char path[CHECKPOINT_PATH];
    sr_status status = find_newest(prefix, &newest, why);
    if (newest <= r->checkpoint_newest) return status;
    checkpoint_path(prefix, newest, path);
    sr_fail(why, SR_EXISTS, "%s: another training writes checkpoints of this name", path);
    sr_hint(why, "give each its own --checkpoint");
    return SR_EXISTS;
}

sr_status trainer_checkpoints_open(trainer *r, sr_failure *why) {
    char prefix[CHECKPOINT_PATH], path[CHECKPOINT_PATH];
    r->checkpoint_update = r->checkpoint_covered = r->checkpoint_newest = -1;
    r->checkpoint_clock = progress_clock();
    r->checkpoints_aside = false;
    r->best = NAN;
    sr_status status = train_interval_read(r->config->checkpoint_every, &r->checkpoint_every, why);
    if (status == SR_OK) status = find_best_metric(r, why);
    checkpoint_prefix(r->config, prefix);
    if (status != SR_OK || !*prefix || !trainer_writes(r)) return status;
    const char *slash = strrchr(prefix, '/');
    snprintf(path, sizeof path, "%.*s", slash ? (int)(slash - prefix) + 1 : 1,
             slash ? prefix : ".");
    if (access(path, W_OK | X_OK) != 0) /* now, not hours later */
        return sr_fail(why, SR_IO, "--checkpoint: folder of %s: %s", prefix, strerror(errno));
    if (!r->from) return check_others(r, prefix, why);
    r->checkpoints_aside = true; /* perhaps, by a run that was killed */
    status = find_newest(prefix, &r->checkpoint_newest, why);
    return status == SR_OK ? checkpoint_sweep(prefix, why) : status;
}

/* -- writing */

/* Rows reach as far as the checkpoint that is written next. A run file that failed costs rows, and
 * no checkpoint: under --on-write-error continue the two are independent. */
static sr_status flush_rows(trainer *r, sr_failure *why) {
    sr_failure own = {0};
    if (run_record_flush(r->record, &own) == SR_OK) return SR_OK;
    return trainer_check_record(r, why);
}

/* The first rank writes; all get its status. */
static sr_status write_one(trainer *r, const char *path, sr_failure *why) {
    sr_failure own = {0};
    sr_status status = shards_keep_replicas(r, &own);
    if (status != SR_OK) {
        shards_forget_replicas(r);
        return sr_fail(why, status, "%s: %s", path, own.text);
    }
    if (trainer_writes(r)) status = flush_rows(r, why);
    if (trainer_writes(r) && status == SR_OK) status = checkpoint_write(r, path, why);
    shards_forget_replicas(r);
    return ranks_agree(r->ranks, status, why);
}

static sr_status write_newest(trainer *r, const char *prefix, sr_failure *why) {
    char path[CHECKPOINT_PATH];
    checkpoint_path(prefix, r->result->updates, path);
    sr_status status = trainer_writes(r) ? check_alone(r, prefix, why) : SR_OK;
    status = ranks_agree(r->ranks, status, why);
    if (status == SR_OK) status = write_one(r, path, why);
    if (status != SR_OK) return status;
    if (r->result->updates > r->checkpoint_newest) r->checkpoint_newest = r->result->updates;
    r->checkpoint_update = r->result->updates;
    r->checkpoint_clock = progress_clock();
    if (!trainer_writes(r)) return SR_OK;
    if (!run_record_failed(r->record)) r->checkpoint_covered = r->checkpoint_update;
    return prune(prefix, r->config->keep, r->checkpoint_covered, why);
}

/* A checkpoint that cannot be written stops the run unless the user wants otherwise. */
static sr_status or_go_on(trainer *r, sr_status status, const sr_failure *own, sr_failure *why) {
    if (status == SR_OK) return SR_OK;
    if (strcmp(r->config->on_write_error, "continue") != 0) {
        *why = *own;
        return status;
    }
    trainer_warn(r, "%s; the run continues", own->text);
    if (r->checkpoint_lost.status == SR_OK) r->checkpoint_lost = *own;
    return SR_OK;
}

sr_status trainer_checkpoints_close(const trainer *r, bool named, bool began, sr_failure *why) {
    char prefix[CHECKPOINT_PATH];
    checkpoint_prefix(r->config, prefix);
    if (!r->checkpoints_aside) return SR_OK;
    if (named) return checkpoint_drop_old(prefix, why);
    return began || r->from ? SR_OK : checkpoint_put_back(prefix, why);
}

void trainer_checkpoint_evaluated(trainer *r, const train_eval *e) {
    if (r->best_metric.index < 0 || e->split != SPLIT_VALID) return;
    const double value = train_metric_value(e, &r->best_metric);
    const int better = (int)r->best_metric.better;
    r->better = !isnan(value) && (isnan(r->best) || (value - r->best) * better > 0);
    if (r->better) r->best = value;
}

static bool is_due(const trainer *r, bool epoch_ends) {
    const train_interval *every = &r->checkpoint_every;
    const int64_t u = r->result->updates;
    if (every->unit == EVERY_NONE || u == r->checkpoint_update) return false;
    if (u == r->updates || trainer_out_of_patience(r)) return true;
    if (every->unit == EVERY_UPDATES) return u % every->count == 0;
    if (every->unit == EVERY_EPOCHS) return epoch_ends && r->data_epoch % every->count == 0;
    return every->unit == EVERY_SECONDS && shards_due(r);
}

sr_status trainer_checkpoint_between(trainer *r, bool epoch_ends, sr_failure *why) {
    char prefix[CHECKPOINT_PATH], best[CHECKPOINT_PATH + 16];
    sr_failure own = {0};
    sr_status status = SR_OK;
    checkpoint_prefix(r->config, prefix);
    if (!*prefix) return SR_OK;
    const double start = progress_clock();
    snprintf(best, sizeof best, "%s" CHECKPOINT_BEST, prefix);
    if (r->better) status = write_one(r, best, &own);
    r->better = false;
    if (status == SR_OK && is_due(r, epoch_ends)) status = write_newest(r, prefix, &own);
    r->result->times.checkpoints += progress_clock() - start;
    return or_go_on(r, status, &own, why);
}

sr_status trainer_checkpoint_last(trainer *r, sr_failure *why) {
    char prefix[CHECKPOINT_PATH];
    sr_failure own = {0};
    checkpoint_prefix(r->config, prefix);
    if (!*prefix || r->result->updates == 0 || r->checkpoint_update == r->result->updates)
        return SR_OK;
    return or_go_on(r, write_newest(r, prefix, &own), &own, why);
}
