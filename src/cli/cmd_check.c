/* cmd_check.c -- statrec check RUN...: verifies complete run files. */
#include "base/tsv.h"
#include "cli/command_frame.h"
#include "cli/commands.h"
#include "statrec/runfile.h"
#include "train/loaded_model.h"

static const command_frame frame = {
    "usage: statrec check RUN.h5|X.ckpt...\n"
    "\n"
    "Reads every value of each file and verifies every checksum. Checks the types and shapes\n"
    "of all datasets, the order of steps and singular values, the counts of rows, and the\n"
    "status \"complete\". Reports files that have no checksums. Checks that sizes, model,\n"
    "dictionaries and weights of a checkpoint fit each other. Prints one line per file, or one\n"
    "line per fault.\n",
    {NULL, 0},
    NULL,
    "0 all are complete, 1 at least one is damaged or incomplete, 2 usage.",
    2};

static void report_fault(void *context, const sr_failure *fault) {
    sr_failure line = *fault;
    line.hint[0] = 0; /* once, after all of them */
    tool_report(context, &line);
}

/* Without checksums altered values go unnoticed; the output mentions that. */
static sr_status print_complete(const char *path, sr_failure *why) {
    sr_runfile *run = sr_run_open(path, why);
    if (!run) return why->status;
    tsv_escape(stdout, path);
    puts(sr_run_has_checksums(run) ? ": complete" : ": complete, but without checksums");
    sr_run_close(run);
    return SR_OK;
}

/* Prints "FILE: complete" to standard output, or faults to standard error. */
static int check_file(const tool *t, const char *path) {
    sr_failure why = {0};
    tool named = *t;
    if (checkpoint_is_name(path)) {
        checkpoint_card card;
        sr_status status = checkpoint_info_read(path, &card, &why);
        checkpoint_info_free(&card);
        bool weights_only = false;
        if (status == SR_OK) status = loaded_model_check(path, &weights_only, &why);
        if (status != SR_OK) return tool_report(t, &why);
        tsv_escape(stdout, path);
        puts(weights_only ? ": whole, but only its weights can be read" : ": whole");
        return TOOL_DONE;
    }
    if (sr_run_check_all(path, report_fault, &named, &why) != SR_OK) {
        if (why.hint[0]) tool_hint(t, why.hint);
        return TOOL_FAILED;
    }
    return print_complete(path, &why) == SR_OK ? TOOL_DONE : tool_report(t, &why);
}

int cmd_check(const tool *t) {
    int files = 0, status = TOOL_DONE;
    if (command_ends(t, &frame, NULL, &files, &status)) return status;
    if (files == 0) return tool_error(t, TOOL_USAGE, "no run file given");
    for (int i = 0; i < files; i++)
        if (check_file(t, t->argv[2 + i]) != TOOL_DONE) status = TOOL_FAILED;
    return status;
}
