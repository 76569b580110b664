/* line_transform.h -- steps on a line of text before its words are counted: tokenizing, splitting
 * into subwords. */
#ifndef TEXT_LINE_TRANSFORM_H
#define TEXT_LINE_TRANSFORM_H

#include "base/containers/byte_buffer.h"
#include "text/file_bytes.h"

/* Bytes of a line without its end, a newline or CR and newline. */
size_t line_content(const char *line, size_t length);

/* A step of one line to the next form of it. The result of apply depends on the line, the side and
 * what begin has learnt alone. */
typedef struct line_transform {
    const char *name; /* for descriptions: "13a" */
    /* Learns from the training text as the steps before left it: text [sides], so many lines of
     * each. NULL: nothing to learn. */
    sr_status (*begin)(void *self, const file_bytes *text, int sides, int64_t lines,
                       sr_failure *why);
    /* Appends the next form of a line to `out`, without a newline. The line is UTF-8 without its
     * end; one readable byte follows. side: 0 source, 1 target. */
    sr_status (*apply)(void *self, int side, const char *line, size_t length, byte_buffer *out,
                       sr_failure *why);
    void (*free)(void *self); /* NULL: nothing */
    void *self;
} line_transform;

/* All steps one after the other; *out is replaced. Without steps it is a copy. */
sr_status line_steps_apply(const line_transform *step, int steps, int side, const char *line,
                           size_t length, byte_buffer *out, sr_failure *why);
/* One step on every line of a text; *to has its path. */
sr_status line_transform_text(const line_transform *step, int side, const file_bytes *from,
                              file_bytes *to, sr_failure *why);

/* The "basic_english" tokenizer of torchtext: small letters, quotation marks gone, punctuation cut
 * off, `<br />` a blank (basic_english.c). */
#define BASIC_ENGLISH "basic_english"
line_transform basic_english_step(void);

#endif
