/* cmd_average.c -- statrec average: averages checkpoints and recomputes running statistics. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tsv.h"
#include "cli/batch_options.h"
#include "cli/command_frame.h"
#include "cli/commands.h"
#include "train/loaded_model.h"

typedef struct average_values {
    option_text output, data_dir, batching, max_tokens_of;
    int64_t threads, batches;
    bool force, recompute;
} average_values;

#define AT(field) offsetof(average_values, field)
static const option average_rows[] = {
    OUTPUT_OPTION(AT(output), "write this checkpoint"),
    FLAG_OPTION(NULL, "recompute-stats", AT(recompute), "no",
                "recompute running statistics as means over training batches"),
    INT_OPTION(NULL, "batches", AT(batches), "0", 1, 1 << 30, "batches",
               "recompute over N batches; 0: all of an epoch"),
    TEXT_OPTION(NULL, "data-dir", AT(data_dir), "",
                "read the training data in this directory; empty: the run's", .value = "DIRECTORY"),
    BATCH_ROWS(NULL, AT(batching), AT(max_tokens_of)),
    INT_OPTION(NULL, "threads", AT(threads), "0", 1, 1024, "threads",
               "use N threads; 0: every core"),
    FLAG_OPTION(NULL, "force", AT(force), "no", "replace the new checkpoint if it exists"),
};

static const command_frame frame = {
    "usage: statrec average X.ckpt... -o NEW.ckpt [--recompute-stats]\n"
    "\n"
    "Averages the weights and running statistics of checkpoints of one run, or of runs with\n"
    "one configuration. The mean of running variances is not the variance under the mean\n"
    "weights; --recompute-stats measures that. With one checkpoint only its running\n"
    "statistics change. NEW.ckpt cannot be resumed. It serves evaluate, translate, export and\n"
    "train --weights.\n"
    "\n",
    {average_rows, sizeof average_rows / sizeof average_rows[0]},
    NULL,
    "0 written, 1 failed, 2 usage.",
    2};

/* "mean of a.ckpt b.ckpt; running statistics recomputed, batching random" */
static char *origin_of(const average_values *v, char *const *name, int count) {
    size_t size = 128;
    for (int i = 0; i < count; i++) size += strlen(name[i]) + 1;
    char *text = malloc(size);
    if (!text) return NULL;
    size_t used = (size_t)snprintf(text, size, "mean of");
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, size - used, " %s", name[i]);
    if (v->recompute)
        used += (size_t)snprintf(text + used, size - used, "; running statistics made anew");
    if (*v->batching)
        used += (size_t)snprintf(text + used, size - used, ", batching %s", v->batching);
    if (*v->max_tokens_of)
        snprintf(text + used, size - used, ", max-tokens-of %s", v->max_tokens_of);
    return text;
}

static sr_status average(const average_values *v, char *const *name, int count, sr_failure *why) {
    loaded_model *t = calloc(1, sizeof *t);
    char *origin = origin_of(v, name, count);
    const loaded_model_options o = {v->data_dir, NULL, (int)v->threads, v->batching,
                                    v->max_tokens_of};
    sr_status status = t && origin ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = loaded_model_open(t, name[count - 1], &o, why);
    if (status == SR_OK) status = loaded_model_average(t, name, count, why);
    if (status == SR_OK && v->recompute) status = loaded_model_recompute(t, v->batches, why);
    if (status == SR_OK) status = loaded_model_write(t, v->output, origin, v->force, why);
    if (t) loaded_model_close(t);
    free(t), free(origin);
    return status;
}

int cmd_average(const tool *t) {
    average_values v;
    sr_failure why = {0};
    int files = 0, code;
    if (command_ends(t, &frame, &v, &files, &code)) return code;
    if (files < 1) return tool_error(t, TOOL_USAGE, "checkpoints to average are missing");
    if (!v.output[0]) return tool_error(t, TOOL_USAGE, "-o NEW.ckpt is missing");
    if (v.batches && !v.recompute)
        return tool_error(t, TOOL_USAGE, "--batches has no effect without --recompute-stats");
    if ((*v.batching || *v.max_tokens_of) && !v.recompute)
        return tool_error(t, TOOL_USAGE, "--%s has no effect without --recompute-stats",
                          *v.batching ? "batching" : "max-tokens-of");
    if (average(&v, t->argv + 2, files, &why) != SR_OK) return tool_report(t, &why);
    tsv_escape(stdout, v.output);
    puts(": written");
    return TOOL_DONE;
}
