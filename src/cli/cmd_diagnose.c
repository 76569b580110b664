/* cmd_diagnose.c -- statrec diagnose RUN...: is the normalization of a run healthy, and if not, where? */
#include <stdlib.h>
#include <string.h>

#include "base/options/options.h"
#include "base/tsv.h"
#include "cli/commands.h"
#include "diagnose/diagnose.h"

typedef struct diagnose_values {
    option_text format, healthy;
} diagnose_values;

#define AT(field) offsetof(diagnose_values, field)
static const option diagnose_rows[] = {
    CHOICE_OPTION(NULL, "format", AT(format), "text", "text|" TSV_FORMATS,
                  "a page of text for each run, or a table with a row for each run and question"),
    CHOICE_OPTION(NULL, "healthy", AT(healthy), "no", "no|vision|text",
                  "print instead what these runs span, as ranges of healthy runs of that kind"),
};
static const option_table diagnose_options = {diagnose_rows,
                                              sizeof diagnose_rows / sizeof diagnose_rows[0]};

static int print_help(void) {
    printf(
        "usage: statrec diagnose [OPTIONS] RUN.h5...\n"
        "\n"
        "Says whether the normalization of a run is healthy, and if not, why, where and since\n"
        "when, from the run file alone. Each finding has its statistic with a 95 %% interval over\n"
        "steps, the range that healthy runs span, sites, steps, criterion and source, what to try\n"
        "in this run and the command that shows it. What the file cannot answer is named. Of\n"
        "runs that observe batch statistics which they do not use (train --observe batch) the\n"
        "page begins with whether BN would work there. docs/diagnose.md has the formulas.\n"
        "\n"
        "Questions:\n");
    diagnose_list(stdout);
    printf("\n");
    options_help(diagnose_options, stdout);
    printf("\nExit status: 0 diagnosed, whatever was found, 1 a file is not readable, 2 usage.\n");
    return TOOL_DONE;
}

static sr_status run(const diagnose_values *v, char **paths, int files, const char *command,
                     sr_failure *why) {
    if (strcmp(v->healthy, "no") != 0)
        return diagnose_healthy(v->healthy, paths, files, stdout, why);
    if (strcmp(v->format, "text") == 0) return diagnose_page(paths, files, stdout, why);
    tsv_set_format(v->format);
    return diagnose_table(paths, files, command, stdout, why);
}

int cmd_diagnose(const tool *t) {
    diagnose_values v;
    sr_failure why = {0};
    int files = 0;
    if (tool_wants_help(t)) return print_help();
    char *command = tool_command(t);
    if (!command) return tool_error(t, TOOL_FAILED, "out of memory");
    options_set_defaults(diagnose_options, &v);
    sr_status status = options_parse(diagnose_options, &v, t->argc, t->argv, 2, &files, &why);
    if (status == SR_OK) status = run(&v, t->argv + 2, files, command, &why);
    if (status == SR_OK) diagnose_warn_mended(t, files, t->argv + 2);
    free(command);
    return status == SR_OK ? TOOL_DONE : tool_report(t, &why);
}
