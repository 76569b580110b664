/* cmd_view.c -- statrec view: replaces itself by python3 with the package statrec.viewer. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/program/install_files.h"
#include "cli/command_frame.h"
#include "cli/commands.h"

typedef struct view_values {
    int64_t port;
    bool browser;
    option_text export;
} view_values;

#define AT(field) offsetof(view_values, field)
static const option view_rows[] = {
    INT_OPTION(NULL, "port", AT(port), "0", 1, 65535, "", "listen on this port; 0: a free one"),
    FLAG_OPTION(NULL, "browser", AT(browser), "yes", "open the page in a browser"),
    TEXT_OPTION(NULL, "export", AT(export), "", "write the page into one file, and serve nothing",
                .value = "FILE.html"),
};

static const command_frame frame = {
    "usage: statrec view RUN.h5|DIRECTORY... [--port N] [--no-browser]\n"
    "       statrec view RUN.h5|DIRECTORY... --export FILE.html\n"
    "\n"
    "Opens an interactive page of runs, finished or growing, and prints its address. It is\n"
    "served on 127.0.0.1 alone, and the address contains a secret. DIRECTORY stands for the\n"
    "*.h5 below it. Ctrl-C ends the server. docs/look-at-a-run.md describes the page.\n"
    "\n"
    "It needs Python 3.9 or newer with the package: pip install \"statrec[view]\".\n"
    "\n",
    {view_rows, sizeof view_rows / sizeof view_rows[0]},
    "\nEnvironment: STATREC_PYTHON, the interpreter; python3 unless given. STATREC_PACKAGE, the\n"
    "directory of the Python package, which comes before those of PYTHONPATH.\n",
    "0 ended, 1 failed, 2 usage.",
    2};

/* As `python3 -m statrec.viewer`, with a line on what to install where that is missing, and without
   modules of the current directory, which may be a stranger's. */
static const char start[] =
    "import sys\n"
    "sys.path[:] = [place for place in sys.path if place]\n"
    "try:\n"
    "    from statrec.viewer.__main__ import main\n"
    "except ImportError as why:\n"
    "    sys.exit(f'statrec view: {sys.executable}: {why}: pip install \"statrec[view]\"')\n"
    "sys.exit(main())\n";

/* Puts the package of the checkout first, and lets it call the programs beside this one. */
static void set_environment(void) {
    char package[2 * INSTALL_FILES_PATH], all[2 * INSTALL_FILES_PATH + 4096];
    char programs[INSTALL_FILES_PATH];
    static const char file[] = "statrec/viewer/__main__.py";
    sr_failure none = {0};
    install_files_program_directory(programs);
    if (programs[0]) setenv("STATREC_BIN", programs, 0);
    if (install_files_find("STATREC_PACKAGE", "python", file, package, &none) != SR_OK) return;
    package[strlen(package) - strlen(file) - 1] = 0;
    const char *old = getenv("PYTHONPATH");
    const int length =
        snprintf(all, sizeof all, "%s%s%s", package, old && *old ? ":" : "", old ? old : "");
    if (length > 0 && (size_t)length < sizeof all) setenv("PYTHONPATH", all, 1);
}

int cmd_view(const tool *t) {
    view_values v;
    int paths = 0, code;
    char port[32];
    if (command_ends(t, &frame, &v, &paths, &code)) return code;
    if (paths < 1) return tool_error(t, TOOL_USAGE, "no run file or directory given");
    const char *python = getenv("STATREC_PYTHON");
    if (!python || !*python) python = "python3";
    const char **argv = calloc((size_t)paths + 10, sizeof *argv);
    if (!argv) return tool_error(t, TOOL_FAILED, "out of memory");
    int n = 0;
    snprintf(port, sizeof port, "%lld", (long long)v.port);
    argv[n++] = python, argv[n++] = "-c", argv[n++] = start;
    argv[n++] = "--port", argv[n++] = port;
    if (!v.browser) argv[n++] = "--no-browser";
    if (v.export[0]) argv[n++] = "--export", argv[n++] = v.export;
    argv[n++] = "--";
    memcpy(argv + n, t->argv + 2, (size_t)paths * sizeof *argv);
    set_environment();
    execvp(python, (char *const *)(uintptr_t)argv);
    code = tool_error(t, TOOL_FAILED,
                      "%s: %s; install Python 3.9 or newer, and pip install \"statrec[view]\"",
                      python, strerror(errno));
    free(argv);
    return code;
}
