/* install_files.h -- files that belong to the programs: plots/, sample_runs/ and share/presets/, in
 * a checkout or installed. */
#ifndef BASE_PROGRAM_INSTALL_FILES_H
#define BASE_PROGRAM_INSTALL_FILES_H

#include "statrec/base.h"

enum { INSTALL_FILES_PATH = 1024 };

/* Directory of the running program, with a slash at its end; "" when unknown. */
void install_files_program_directory(char path[INSTALL_FILES_PATH]);

/* i-th candidate for the directory `name`: from the environment variable, beside the program, in
   its checkout, installed. NULL past the end. */
const char *install_files_directory(const char *variable, const char *name, int i,
                                    char path[INSTALL_FILES_PATH]);

/* First directory/file that can be read. */
sr_status install_files_find(const char *variable, const char *name, const char *file,
                             char path[2 * INSTALL_FILES_PATH], sr_failure *why);

/* SR_OK for a small regular file. Others must not be opened: a pipe waits for its writer, a device
   has no end. */
sr_status install_files_check_file(const char *path, sr_failure *why);

#endif
