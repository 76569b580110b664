/* python_command.c -- replaces the program by python3 with a part of the package statrec. */
#define _POSIX_C_SOURCE 200809L
#include "cli/python_command.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/program/install_files.h"

/* Runs as `python3 -m statrec.NAME`; a line says which package to install if one is missing.
   Modules of the current directory, which may be a stranger's, are not imported. */
static const char start[] =
    "import sys\n"
    "title, name, packages = sys.argv[1:4]\n"
    "del sys.argv[1:4]\n"
    "sys.path[:] = [place for place in sys.path if place]\n"
    "try:\n"
    "    from importlib import import_module\n"
    "    main = import_module(f'statrec.{name}.__main__').main\n"
    "except ImportError as why:\n"
    "    sys.exit(f'{title}: {sys.executable}: {why}: pip install \"{packages}\"')\n"
    "sys.exit(main())\n";

/* Puts the package of the checkout first, and lets it call the programs beside this one. */
static void set_environment(const char *file) {
    char package[2 * INSTALL_FILES_PATH], all[2 * INSTALL_FILES_PATH + 4096];
    char programs[INSTALL_FILES_PATH];
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

int python_command(const tool *t, const char *name, const char *packages, int argc,
                   const char *const *argv) {
    const char *python = getenv("STATREC_PYTHON");
    if (!python || !*python) python = "python3";
    const char **all = calloc((size_t)argc + 7, sizeof *all);
    if (!all) return tool_error(t, TOOL_FAILED, "out of memory");
    char file[64];
    snprintf(file, sizeof file, "statrec/%s/__main__.py", name);
    const char *const first[] = {python, "-c", start, t->name, name, packages};
    memcpy(all, first, sizeof first);
    memcpy(all + 6, argv, (size_t)argc * sizeof *argv);
    set_environment(file);
    execvp(python, (char *const *)(uintptr_t)all);
    free(all);
    return tool_error(t, TOOL_FAILED, "%s: %s; install Python 3.9 or newer, and pip install \"%s\"",
                      python, strerror(errno), packages);
}
