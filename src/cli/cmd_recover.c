/* cmd_recover.c -- statrec recover BROKEN -o NEW: copies readable rows into a new file. */
#include <stddef.h>
#include <string.h>

#include "base/tsv.h"
#include "cli/command_frame.h"
#include "cli/commands.h"
#include "diagnose/diagnose.h"
#include "statrec/runfile.h"

typedef struct recover_values {
    option_text output;
    int64_t up_to_step;
    bool force;
} recover_values;

#define AT(field) offsetof(recover_values, field)
static const option recover_rows[] = {
    OUTPUT_OPTION(offsetof(recover_values, output), "write this file"),
    INT_OPTION(NULL, "up-to-step", AT(up_to_step), "-1", -1, 9e15, "steps",
               "drop rows after step N; -1: none"),
    FLAG_OPTION(NULL, "force", AT(force), "no", "replace the new file if it exists"),
};

static const command_frame frame = {
    "usage: statrec recover BROKEN.h5 -o NEW.h5 [OPTIONS]\n"
    "\n"
    "Copies readable datasets and rows of a damaged or unfinished run file into a new file.\n"
    "Its status is \"interrupted\". Reports lost rows, which have an unreadable step, and lost\n"
    "values of other damaged datasets, which stay empty. Without BROKEN.h5 it reads\n"
    "BROKEN.h5.part. Does not change the broken file.\n"
    "\n",
    {recover_rows, sizeof recover_rows / sizeof recover_rows[0]},
    NULL,
    "0 a new file was written, 1 failed, 2 usage.",
    2};

static void print_count(const char *what, int64_t copied, int64_t lost) {
    printf("%-12s %lld copied, %lld lost\n", what, (long long)copied, (long long)lost);
}

/* "/steps/loss   20 rows unreadable: FILE: /steps/loss: damaged: ..." */
static void print_lost(void *context, const char *dataset, int64_t rows, const char *reason) {
    (void)context;
    tsv_escape(stdout, dataset);
    if (rows >= 0)
        printf("  %lld row%s unreadable: ", (long long)rows, rows == 1 ? "" : "s");
    else
        printf("  unreadable: ");
    tsv_escape(stdout, reason);
    putchar('\n');
}

int cmd_recover(const tool *t) {
    recover_values values;
    sr_failure why = {0};
    sr_recovery count = SR_INIT(sr_recovery, .steps = 0);
    int files = 0, code;
    if (command_ends(t, &frame, &values, &files, &code)) return code;
    if (files != 1) return tool_error(t, TOOL_USAGE, "one broken file expected, %d given", files);
    if (!values.output[0]) return tool_error(t, TOOL_USAGE, "-o NEW.h5 is missing");
    if (sr_run_recover_report(t->argv[2], values.output, values.force, values.up_to_step, &count,
                              print_lost, NULL, &why) != SR_OK) {
        if (strstr(why.hint, "`statrec recover`")) /* that is this */
            snprintf(why.hint, sizeof why.hint, "%s",
                     why.status == SR_EXISTS ? "left by a killed program: --force replaces it"
                                             : "");
        return tool_report(t, &why);
    }
    diagnose_warn_damage(t, 1, t->argv + 2);
    print_count("steps", count.steps, count.lost_steps);
    print_count("vectors", count.vectors, count.lost_vectors);
    print_count("evaluations", count.evals, count.lost_evals);
    tsv_escape(stdout, values.output);
    puts(": written");
    return TOOL_DONE;
}
