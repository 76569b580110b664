/* cmd_view.c -- statrec view: replaces itself by python3 with the package statrec.viewer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command_frame.h"
#include "cli/commands.h"
#include "cli/python_command.h"

typedef struct view_values {
    int64_t port;
    bool browser;
    option_text export;
} view_values;

#define AT(field) offsetof(view_values, field)
static const option view_rows[] = {
    INT_OPTION(NULL, "port", AT(port), "0", 1, 65535, "", "listen on this port; 0: a free one"),
    FLAG_OPTION(NULL, "browser", AT(browser), "yes", "open the page in a browser"),
    {.key = "export",
     .letter = 'o',
     .type = OPTION_TEXT,
     .offset = AT(export),
     .default_text = "",
     .unit = "",
     .help = "write the page into one file, and serve nothing",
     .value = "FILE.html"},
};

static const command_frame frame = {
    "usage: statrec view RUN.h5|DIRECTORY... [--port N] [--no-browser]\n"
    "       statrec view RUN.h5|DIRECTORY... -o FILE.html\n"
    "\n"
    "Opens an interactive page of runs, finished or growing, and prints its address. It is\n"
    "served on 127.0.0.1 alone, and the address contains a secret. DIRECTORY stands for the\n"
    "*.h5 below it. Ctrl-C ends the server. docs/look-at-a-run.md describes the page.\n"
    "\n"
    "It needs Python 3.9 or newer with the package: pip install \"statrec[view]\".\n"
    "\n",
    {view_rows, sizeof view_rows / sizeof view_rows[0]},
    PYTHON_COMMAND_ENVIRONMENT,
    "0 ended, 1 failed, 2 usage.",
    2};

int cmd_view(const tool *t) {
    view_values v;
    int paths = 0, code;
    char port[32];
    if (command_ends(t, &frame, &v, &paths, &code)) return code;
    if (paths < 1) return tool_error(t, TOOL_USAGE, "no run file or directory given");
    const char **argv = calloc((size_t)paths + 6, sizeof *argv);
    if (!argv) return tool_error(t, TOOL_FAILED, "out of memory");
    int n = 0;
    snprintf(port, sizeof port, "%lld", (long long)v.port);
    argv[n++] = "--port", argv[n++] = port;
    if (!v.browser) argv[n++] = "--no-browser";
    if (v.export[0]) argv[n++] = "--export", argv[n++] = v.export;
    argv[n++] = "--";
    memcpy(argv + n, t->argv + 2, (size_t)paths * sizeof *argv);
    code = python_command(t, "viewer", "statrec[view]", n + paths, argv);
    free(argv);
    return code;
}
