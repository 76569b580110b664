/* text_files.h -- commands that read texts and write one. */
#ifndef CLI_TEXT_TEXT_FILES_H
#define CLI_TEXT_TEXT_FILES_H

#include <stdbool.h>
#include <stdio.h>

#include "base/program/tool.h"

/* Takes one line of a text; the reader adds file and line to an SR_FORMAT failure. */
typedef sr_status (*text_taker)(void *context, const char *line, size_t length, sr_failure *why);

/* Passes every line of the files, or of standard input without files, to `take`
   (text_first_line). */
sr_status text_files_read(char *const *path, int files, text_taker take, void *context,
                          sr_failure *why);

/* Standard output, or a file that gets its name when it is complete. */
typedef struct text_output {
    const char *path; /* "": standard output */
    char *part;       /* NULL: written in place */
    FILE *out;
} text_output;

/* SR_EXISTS for an existing file, unless forced. */
sr_status text_output_open(text_output *o, const char *path, bool force, sr_failure *why);
/* Names the file if `status` is SR_OK, else removes it. Returns `status`, or its own failure when
 * that was SR_OK. */
sr_status text_output_finish(text_output *o, sr_status status, sr_failure *why);
/* The same; standard output stays open. Reports a failure, except of standard output, which
 * tool_finish reports. Returns the exit status. */
int text_output_close(text_output *o, const tool *t, sr_status status, sr_failure *why);

#endif
