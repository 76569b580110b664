/* share.h -- files that belong to the programs: plots/ and sample_runs/, in a checkout or
 * installed.
 */
#ifndef BASE_PROGRAM_SHARE_H
#define BASE_PROGRAM_SHARE_H

#include "statrec/base.h"

enum { SHARE_PATH = 1024 };

/* Directory of the running program, with a slash at its end; "" when it cannot be told. */
void share_program_directory(char path[SHARE_PATH]);

/* i-th directory that may be `name`, best first: what the environment variable says, beside the
 * program, in the checkout of its build tree, installed. NULL past the end. */
const char *share_directory(const char *variable, const char *name, int i, char path[SHARE_PATH]);

/* First directory/file that can be read. */
sr_status share_find(const char *variable, const char *name, const char *file,
                     char path[2 * SHARE_PATH], sr_failure *why);

/* A small file that somebody names: SR_OK when there is one and it ends; else it is not opened, since a pipe
 * would wait for its writer and a device has no end. */
sr_status share_check_file(const char *path, sr_failure *why);

#endif
