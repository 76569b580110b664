/* text_lines.h -- a text read line by line from a file, plain or gzip, or from a descriptor. */
#ifndef TEXT_TEXT_LINES_H
#define TEXT_TEXT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "statrec/base.h"

typedef struct text_lines text_lines;

/* Path "-" is standard input. A name ending in .gz must be gzip. NULL on failure. */
text_lines *text_lines_open(const char *path, sr_failure *why);
void text_lines_close(text_lines *t);
/* Returns the next line with its '\n', if any, and a zero byte after it. A byte order mark at the
 * beginning of the text is left out. *line is NULL at the end.
 * Valid until the next call. SR_FORMAT ("PATH:LINE: ...") for bytes that are not UTF-8 and for
 * lines over a gibibyte or, in gzip, over file_most_inflated. */
sr_status text_lines_next(text_lines *t, const char **line, size_t *length, sr_failure *why);
/* A warning about lone CR in the lines so far (line_ends_warning). */
void text_lines_warning(const text_lines *t, char *text, size_t size);
/* Fails with "PATH:LINE: text" for the last line. */
sr_status text_lines_fail(const text_lines *t, sr_status status, const char *text, sr_failure *why);
/* The same for another line, from 1. */
sr_status text_lines_fail_at(const text_lines *t, int64_t line, sr_status status, const char *text,
                             sr_failure *why);

/* Bytes of the first line with its end, as Python's str.splitlines cuts. Line ends are LF, CR, CR
 * LF, VT, FF, U+001C to U+001E, U+0085, U+2028 and U+2029. */
size_t text_first_line(const char *text, size_t length);

#endif
