/* cmd_diagnose.c -- statrec diagnose RUN...: is the normalization of a run healthy, and if not,
   where? */
#include <stdlib.h>
#include <string.h>

#include "base/options/options.h"
#include "base/tsv.h"
#include "cli/cmd_diagnose_follow.h"
#include "cli/commands.h"
#include "diagnose/diagnose.h"
#include "norm/norm_options.h"

typedef struct diagnose_values {
    option_text format, healthy, fail_on, on_finding;
    double every;
    bool harm, follow;
} diagnose_values;

static bool follows(const void *values) {
    return ((const diagnose_values *)values)->follow;
}
static const option_use of_follow = {"follow", follows, NULL, NULL};

#define AT(field) offsetof(diagnose_values, field)
static const option diagnose_rows[] = {
    CHOICE_OPTION(NULL, "format", AT(format), "text", "text|" TSV_FORMATS,
                  "print a page per run, or a table with one row per run and question"),
    CHOICE_OPTION(NULL, "healthy", AT(healthy), "no", "no|vision|text|watched",
                  "print the ranges of these runs as the usual ones of this kind"),
    FLAG_OPTION(NULL, "harm", AT(harm), "no",
                "print the statistics of these runs beside what evaluation loses in them"),
    CHOICE_OPTION(NULL, "fail-on", AT(fail_on), "no", "no|notable|severe",
                  "exit with status 4 after a finding of this severity or a worse one"),
    FLAG_OPTION(NULL, "follow", AT(follow), "no",
                "diagnose a growing file again and again, and print each new finding once"),
    REAL_OPTION(NULL, "every", AT(every), "30", 0.1, 86400, "s", "pause between two diagnoses",
                .use = &of_follow),
    TEXT_OPTION(NULL, "on-finding", AT(on_finding), "",
                "run this command once for each new finding; it reads a line of input",
                .use = &of_follow, .value = "COMMAND"),
};
static const option_table diagnose_options = {diagnose_rows,
                                              sizeof diagnose_rows / sizeof diagnose_rows[0]};

static int print_help(void) {
    printf(
        "usage: statrec diagnose [OPTIONS] RUN.h5...\n"
        "\n"
        "Diagnoses the normalization of a run from its run file alone: what is wrong, where and\n"
        "since when. Each finding has a statistic with its 95 %% interval and the usual range.\n"
        "It names sites, steps, criterion, source, what to try, and the command that shows it.\n"
        "What running statistics cost in evaluation is judged where the run validated both ways\n"
        "(train --validate-batch), and held against a second run. Questions that the file cannot\n"
        "answer are listed. For runs with observed batch statistics (train --observe batch) the\n"
        "page first answers whether BN would work there. docs/diagnose.md has the formulas.\n"
        "\n"
        "--follow ends with the run, or when its writer is gone. The command of --on-finding is\n"
        "run by the shell; STATREC_FINDING has the same line, STATREC_QUESTION, STATREC_SEVERITY\n"
        "and STATREC_RUN its parts.\n"
        "\n"
        "Questions:\n");
    diagnose_list(stdout);
    printf("\n");
    options_help(diagnose_options, stdout);
    printf("\nExit status: 0 diagnosed, healthy or not, 1 a file is not readable or (--follow)\n"
           "its writer ended, 2 usage, 4 found what --fail-on names.\n");
    return TOOL_DONE;
}

static bool synchronizes(const char *name) {
    const norm_method *m = norm_find(name);
    return m && m->synchronises;
}

/* worst: as diagnose_page counts it. */
static int status_of(const diagnose_values *v, int worst) {
    const int least = strcmp(v->fail_on, "severe") == 0 ? 3 : 2;
    return strcmp(v->fail_on, "no") != 0 && worst >= least ? TOOL_FOUND : TOOL_DONE;
}

/* Options that go together. */
static sr_status read_options(const tool *t, diagnose_values *v, int *files, sr_failure *why) {
    option_origin origin[sizeof diagnose_rows / sizeof diagnose_rows[0]] = {OPTION_PRESET};
    options_set_defaults(diagnose_options, v);
    sr_status status =
        options_parse_noting(diagnose_options, v, origin, t->argc, t->argv, 2, files, why);
    if (status == SR_OK) status = options_check_use(diagnose_options, v, v, origin, why);
    if (status != SR_OK || !v->follow) return status;
    if (strcmp(v->format, "text") != 0 || strcmp(v->healthy, "no") != 0 || v->harm)
        return sr_fail(why, SR_USAGE, "--follow goes with none of --format, --healthy and --harm");
    return *files == 1
               ? SR_OK
               : sr_fail(why, SR_USAGE, "--follow: one run file expected, %d given", *files);
}

static int follow(const tool *t, const diagnose_values *v) {
    diagnose_follow f = {.path = t->argv[2],
                         .command = v->on_finding,
                         .every = v->every,
                         .synchronizes = synchronizes};
    const int ended = cmd_diagnose_follow(t, &f);
    return ended == TOOL_DONE ? status_of(v, f.worst) : ended;
}

int cmd_diagnose(const tool *t) {
    diagnose_values v;
    sr_failure why = {0};
    int files = 0, worst = 0;
    if (tool_wants_help(t)) return print_help();
    char *command = tool_command(t);
    if (!command) return tool_error(t, TOOL_FAILED, "out of memory");
    sr_status status = read_options(t, &v, &files, &why);
    char **paths = t->argv + 2;
    if (status == SR_OK && v.follow) return free(command), follow(t, &v);
    if (status == SR_OK && strcmp(v.healthy, "no") != 0) {
        status = diagnose_healthy(v.healthy, paths, files, stdout, &why);
    } else if (status == SR_OK && v.harm) {
        status = diagnose_harm(paths, files, stdout, &why);
    } else if (status == SR_OK && strcmp(v.format, "text") == 0) {
        status = diagnose_page(paths, files, synchronizes, stdout, &worst, &why);
    } else if (status == SR_OK) {
        tsv_set_format(v.format);
        status = diagnose_table(paths, files, synchronizes, command, stdout, &worst, &why);
    }
    if (status == SR_OK) diagnose_warn_damage(t, files, t->argv + 2);
    free(command);
    return status == SR_OK ? status_of(&v, worst) : tool_report(t, &why);
}
