/* cmd_study.c -- statrec study: replaces itself by python3 with the package statrec.study. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command_frame.h"
#include "cli/commands.h"
#include "cli/python_command.h"

typedef struct study_values {
    int64_t jobs;
    option_text out, data, samples, published;
} study_values;

#define AT(field) offsetof(study_values, field)
static const option study_rows[] = {
    INT_OPTION(NULL, "jobs", AT(jobs), "1", 1, 1024, "runs", "make N runs at a time"),
    TEXT_OPTION(NULL, "out", AT(out), "study", "write run files and logs into this directory",
                .value = "DIR"),
    TEXT_OPTION(NULL, "data", AT(data), "",
                "replace the directory of each data-dir by DIR; empty: keep it", .value = "DIR"),
    TEXT_OPTION(NULL, "samples", AT(samples), "",
                "report: DIR of the run files that samples= names", .value = "DIR"),
    TEXT_OPTION(NULL, "published", AT(published), "",
                "report: FILE of the values that published= names", .value = "FILE"),
};

static const command_frame frame = {
    "usage: statrec study plan|run|report [OPTIONS] FILE.conf|DIRECTORY... [PAGE.md...]\n"
    "\n"
    "FILE.conf describes an experiment: options of statrec train, or another program, and the\n"
    "values of which every combination is a run. DIRECTORY stands for its *.conf.\n"
    "\n"
    "  plan    print what there is to run, and how long it takes\n"
    "  run     make the runs that are not done, resume interrupted ones, and keep done ones\n"
    "          in runs/NAME.tar.xz beside FILE.conf\n"
    "  report  print tables of the runs, or write those that PAGE.md asks for\n"
    "\n"
    "A difference is \"too short to tell\" until it has settled. docs/studies.md has an example.\n"
    "\n"
    "It needs Python 3.9 or newer with the package: pip install statrec.\n"
    "\n",
    {study_rows, sizeof study_rows / sizeof study_rows[0]},
    PYTHON_COMMAND_ENVIRONMENT,
    "0 done, 1 a run failed, 2 usage, 128+n after signal n.",
    2};

static bool is_action(const char *word) {
    return strcmp(word, "plan") == 0 || strcmp(word, "run") == 0 || strcmp(word, "report") == 0;
}

int cmd_study(const tool *t) {
    study_values v;
    int words = 0, code;
    char jobs[32];
    if (command_ends(t, &frame, &v, &words, &code)) return code;
    const char *const *word = (const char *const *)t->argv + 2;
    if (words < 1 || !is_action(word[0]))
        return tool_error(t, TOOL_USAGE, "plan, run or report is wanted%s%s", words ? ", got " : "",
                          words ? word[0] : "");
    if (words < 2)
        return tool_error(t, TOOL_USAGE, "no experiment given, FILE.conf or a directory");
    const char **argv = calloc((size_t)words + 11, sizeof *argv);
    if (!argv) return tool_error(t, TOOL_FAILED, "out of memory");
    snprintf(jobs, sizeof jobs, "%lld", (long long)v.jobs);
    const char *const options[] = {"--jobs",      jobs,        "--out",     v.out,
                                   "--data",      v.data,      "--samples", v.samples,
                                   "--published", v.published, "--"};
    memcpy(argv, options, sizeof options);
    memcpy(argv + 11, word, (size_t)words * sizeof *word);
    code = python_command(t, "study", "statrec", words + 11, argv);
    free(argv);
    return code;
}
