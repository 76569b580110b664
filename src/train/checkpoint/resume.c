/* resume.c -- finds the run to resume and its checkpoint.
 *
 * Rows are in RUN.h5.part after a kill, in RUN.h5 after a signal or at the end. The run resumes
 * from the newest valid checkpoint covered by recorded rows. The configuration is the run file's,
 * except for names of outputs: the file may come from a stranger (docs/reliability.md).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/checkpoint/checkpoint.h"
#include "train/loaded_model.h"

bool train_resume_may_change(const char *key) {
    static const char *const keys[] = {
        "threads",   "data-dir",       "epochs",       "max-steps",     "checkpoint-every",
        "keep",      "on-write-error", "quiet",        "profile",       "test",
        "final-tid", "final-batches",  "flush-steps",  "flush-seconds", "patience",
        "sync",      "shards",         "rank-timeout", "pairs",         "checkpoint",
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!strcmp(keys[i], key)) return true;
    return false;
}

/* Paths, which may change when a run is moved. */
static bool says_where(const char *key) {
    return !strcmp(key, "output") || !strcmp(key, "config") || !strcmp(key, "force") ||
           !strcmp(key, "dump-weights") || !strcmp(key, "dump-batches") ||
           !strcmp(key, "weights") || !strcmp(key, "word-vectors");
}

void train_resume_free(train_resume *from) {
    free(from->command);
    free(from->parent);
    *from = (train_resume){0};
}

/* SR_USAGE names the first option that the checkpoint was made with otherwise. */
static sr_status compare_options(const char *path, const train_config *of, const train_config *c,
                                 sr_failure *why) {
    const option_table all = train_options();
    for (int i = 0; i < all.count; i++) {
        const option *row = &all.row[i];
        char theirs[OPTION_TEXT_SIZE], ours[OPTION_TEXT_SIZE];
        if (train_resume_may_change(row->key) || says_where(row->key)) continue;
        options_format(row, of, theirs, sizeof theirs);
        options_format(row, c, ours, sizeof ours);
        if (!strcmp(theirs, ours)) continue;
        sr_fail(why, SR_USAGE,
                "%s: --%s was '%.99s', the run has '%.99s': another run's checkpoint", path,
                row->key, theirs, ours);
        return SR_USAGE;
    }
    return SR_OK;
}

/* The newest checkpoint with at most `steps` steps. */
static sr_status choose_checkpoint(const char *prefix, int64_t steps, const train_config *c,
                                   train_resume *from, sr_failure *why) {
    int64_t *update;
    int count;
    sr_failure first = {0};
    sr_status status = checkpoint_list(prefix, &update, &count, why);
    for (int i = 0; i < count && !*from->checkpoint; i++) {
        char path[CHECKPOINT_PATH];
        checkpoint_card card;
        sr_failure own = {0};
        checkpoint_path(prefix, update[i], path);
        if (checkpoint_info_read(path, &card, &own) == SR_OK && card.steps > steps)
            sr_fail(&own, SR_FORMAT, "%s: after step %lld, but %s ends at step %lld", path,
                    (long long)card.steps, from->rows, (long long)steps);
        train_config *of = own.status == SR_OK ? malloc(sizeof *of) : NULL;
        if (of && train_config_read(of, card.config, path, &own) == SR_OK)
            compare_options(path, of, c, &own);
        else if (!of && own.status == SR_OK)
            sr_fail(&own, SR_MEMORY, "%s: out of memory for its options", path);
        free(of);
        if (own.status == SR_OK) {
            snprintf(from->checkpoint, sizeof from->checkpoint, "%.*s", TRAIN_CHECKPOINT_PATH - 1,
                     path);
            from->steps = card.steps, from->updates = card.updates;
        } else if (first.status == SR_OK) {
            first = own;
        }
        checkpoint_info_free(&card);
    }
    free(update);
    if (first.status != SR_OK)
        snprintf(from->passed_over, sizeof from->passed_over, "%s", first.text);
    if (status != SR_OK || *from->checkpoint) return status;
    if (first.status != SR_OK) return sr_fail(why, first.status, "%s", first.text);
    sr_fail(why, SR_USAGE, "%s: there is no checkpoint %s-*.ckpt", from->rows, prefix);
    if (*from->stored_checkpoint && !*c->checkpoint)
        sr_hint(why, "the run wrote %.200s-*.ckpt: name that file, or resume with --checkpoint",
                from->stored_checkpoint);
    else
        sr_hint(why, "`statrec train --checkpoint-every 500` writes them");
    return SR_USAGE;
}

/* A run file may name no file to write, and may not remove more than the default does. `force` has
 * no effect on a resumed run, which replaces its own file alone. */
static void forget_outputs(train_config *c, const char *output, const char *checkpoint,
                           train_resume *from) {
    enum { KEEP_DEFAULT = 2 }; /* default in config_recording.c */
    snprintf(from->stored_checkpoint, sizeof from->stored_checkpoint, "%s", c->checkpoint);
    snprintf(from->stored_dumps, sizeof from->stored_dumps, "%s%s%s", c->dump_weights,
             *c->dump_weights && *c->dump_batches ? ", " : "", c->dump_batches);
    snprintf(c->output, sizeof c->output, "%.511s", output);
    snprintf(c->checkpoint, sizeof c->checkpoint, "%.511s", checkpoint);
    *c->dump_weights = *c->dump_batches = *c->conf = 0;
    if (c->keep < KEEP_DEFAULT) c->keep = KEEP_DEFAULT;
}

/* Reads one of the files that the rows may be in. */
static sr_status try_rows(const char *rows, const char *output, const char *checkpoint,
                          train_resume *from, train_config *c, sr_failure *why) {
    char prefix[CHECKPOINT_PATH];
    run_record_info look;
    *from = (train_resume){0};
    snprintf(from->rows, sizeof from->rows, "%.511s", rows);
    sr_status status = run_record_open_look(rows, &look, why);
    if (status == SR_OK) status = train_config_read(c, look.config, rows, why);
    if (status == SR_OK) {
        forget_outputs(c, output, checkpoint, from);
        checkpoint_prefix(c, prefix);
        status = choose_checkpoint(prefix, look.last_step, c, from, why);
    }
    if (status == SR_OK) { /* "run.h5 step 500; run.h5.part step 700" */
        const char *slash = strrchr(from->rows, '/'), *name = slash ? slash + 1 : from->rows;
        const size_t size = strlen(look.parent) + strlen(name) + 64;
        from->parent = malloc(size);
        if (from->parent)
            snprintf(from->parent, size, "%s%s%s step %lld", look.parent, *look.parent ? "; " : "",
                     name, (long long)from->steps);
        else
            status = sr_fail(why, SR_MEMORY, "%s: out of memory for its lineage", from->rows);
    }
    from->complete = look.complete;
    from->command = look.command;
    look.command = NULL;
    run_record_close_look(&look);
    return status;
}

sr_status train_resume_names(const char *run, char output[OPTION_TEXT_SIZE],
                             char part[OPTION_TEXT_SIZE + 8], sr_failure *why) {
    const size_t length = strlen(run), tail = sizeof ".part" - 1;
    const bool is_part = length > tail && !strcmp(run + length - tail, ".part");
    if (length >= OPTION_TEXT_SIZE)
        return sr_fail(why, SR_USAGE, "%.80s...: the path is too long", run);
    snprintf(output, OPTION_TEXT_SIZE, "%.*s", (int)(is_part ? length - tail : length), run);
    snprintf(part, OPTION_TEXT_SIZE + 8, "%s.part", output);
    return SR_OK;
}

sr_status train_resume_find(const char *run, const char *checkpoint, train_resume *from,
                            train_config *c, sr_failure *why) {
    char output[OPTION_TEXT_SIZE], part[OPTION_TEXT_SIZE + 8];
    *from = (train_resume){0};
    if (train_resume_names(run, output, part, why) != SR_OK) return why->status;
    const bool both = access(part, F_OK) == 0;
    sr_failure own = {0};
    if (both && try_rows(part, output, checkpoint, from, c, &own) == SR_OK) return SR_OK;
    train_resume_free(from);
    if (both && access(output, F_OK) != 0) return *why = own, own.status;
    return try_rows(output, output, checkpoint, from, c, why);
}
