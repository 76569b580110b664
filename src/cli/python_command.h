/* python_command.h -- commands written in Python: the program replaces itself by python3. */
#ifndef CLI_PYTHON_COMMAND_H
#define CLI_PYTHON_COMMAND_H

#include "base/program/tool.h"

/* The section of --help on environment variables of such a command. */
#define PYTHON_COMMAND_ENVIRONMENT                                                                 \
    "\nEnvironment: STATREC_PYTHON, the interpreter; python3 unless given. STATREC_PACKAGE, the\n" \
    "directory of the Python package, which comes before those of PYTHONPATH.\n"

/* Runs main() of statrec.NAME.__main__ with these arguments, the package of the checkout first.
   packages: the packages for pip if one is missing. Returns only after a failure, which it has
   reported: the exit status. */
int python_command(const tool *t, const char *name, const char *packages, int argc,
                   const char *const *argv);

#endif
