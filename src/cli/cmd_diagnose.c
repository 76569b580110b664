/* cmd_diagnose.c -- statrec diagnose RUN...: is the normalization of a run healthy, and if not,
   where? */
#include <stdlib.h>
#include <string.h>

#include "base/options/options.h"
#include "base/tsv.h"
#include "cli/commands.h"
#include "diagnose/diagnose.h"
#include "norm/norm_options.h"

typedef struct diagnose_values {
    option_text format, healthy;
} diagnose_values;

#define AT(field) offsetof(diagnose_values, field)
static const option diagnose_rows[] = {
    CHOICE_OPTION(NULL, "format", AT(format), "text", "text|" TSV_FORMATS,
                  "print a page per run, or a table with one row per run and question"),
    CHOICE_OPTION(NULL, "healthy", AT(healthy), "no", "no|vision|text",
                  "print the ranges of these runs as those of healthy runs of this kind"),
};
static const option_table diagnose_options = {diagnose_rows,
                                              sizeof diagnose_rows / sizeof diagnose_rows[0]};

static int print_help(void) {
    printf(
        "usage: statrec diagnose [OPTIONS] RUN.h5...\n"
        "\n"
        "Diagnoses the normalization of a run from its run file alone: what is wrong, where and\n"
        "since when. Each finding has a statistic with its 95 %% interval over steps and the\n"
        "range of healthy runs. It names sites, steps, criterion, source, what to try, and the\n"
        "command that shows it. Questions that the file cannot answer are listed. For runs with\n"
        "observed batch statistics (train --observe batch) the page first answers whether BN\n"
        "would work there. docs/diagnose.md has the formulas.\n"
        "\n"
        "Questions:\n");
    diagnose_list(stdout);
    printf("\n");
    options_help(diagnose_options, stdout);
    printf("\nExit status: 0 diagnosed, healthy or not, 1 a file is not readable, 2 usage.\n");
    return TOOL_DONE;
}

static bool synchronizes(const char *name) {
    const norm_method *m = norm_find(name);
    return m && m->synchronises;
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
    char **paths = t->argv + 2;
    if (status == SR_OK && strcmp(v.healthy, "no") != 0) {
        status = diagnose_healthy(v.healthy, paths, files, stdout, &why);
    } else if (status == SR_OK && strcmp(v.format, "text") == 0) {
        status = diagnose_page(paths, files, synchronizes, stdout, &why);
    } else if (status == SR_OK) {
        tsv_set_format(v.format);
        status = diagnose_table(paths, files, synchronizes, command, stdout, &why);
    }
    if (status == SR_OK) diagnose_warn_mended(t, files, t->argv + 2);
    free(command);
    return status == SR_OK ? TOOL_DONE : tool_report(t, &why);
}
