/* line_transform.h -- steps on a line of text before its words are counted: tokenizing, splitting
 * into subwords. */
#ifndef TEXT_LINE_TRANSFORM_H
#define TEXT_LINE_TRANSFORM_H

#include "base/containers/byte_buffer.h"
#include "text/file_bytes.h"

/* Bytes of a line without its end, a newline or CR and newline. */
size_t line_content(const char *line, size_t length);

/* A walk over the lines of a text; starts as {.file = f}. */
typedef struct line_walk {
    const file_bytes *file;
    size_t at;
    const char *line; /* without its end */
    size_t length;
    int64_t number; /* from 1 */
} line_walk;
bool line_walk_next(line_walk *w); /* false after the last line */

/* A step that transforms one line. apply depends on the line, the side and the training text of
 * begin. */
typedef struct line_transform {
    const char *name; /* for descriptions: "13a" */
    /* Learns from the training text after the steps before: text [sides], `lines` lines of each.
     * NULL: nothing to learn. */
    sr_status (*begin)(void *self, const file_bytes *text, int sides, int64_t lines,
                       sr_failure *why);
    /* Appends the next form of a line to `out`, without a newline. The line is UTF-8 without its
     * end; one readable byte follows. side: 0 source, 1 target. */
    sr_status (*apply)(void *self, int side, const char *line, size_t length, byte_buffer *out,
                       sr_failure *why);
    void (*free)(void *self); /* NULL: nothing */
    void *self;
} line_transform;

/* Applies all steps; replaces *out. Without steps it is a copy. */
sr_status line_steps_apply(const line_transform *step, int steps, int side, const char *line,
                           size_t length, byte_buffer *out, sr_failure *why);
/* Applies one step to every line of a text; *to has its path. */
sr_status line_transform_text(const line_transform *step, int side, const file_bytes *from,
                              file_bytes *to, sr_failure *why);

/* The "basic_english" tokenizer of torchtext: small letters, quotation marks gone, punctuation cut
 * off, `<br />` a blank (basic_english.c). */
#define BASIC_ENGLISH "basic_english"
line_transform basic_english_step(void);
/* Small letters as Python's str.lower; every other character stays. */
line_transform lowercase_step(void);

#endif
