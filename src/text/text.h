/* text.h -- UTF-8 text in memory: lines and the words between blanks. */
#ifndef TEXT_TEXT_H
#define TEXT_TEXT_H

#include "text/file_bytes.h"

/* Lines of the text; a last line without a newline counts. SR_FORMAT ("PATH:LINE: ...") for a NUL
 * byte and for bytes that are not UTF-8 (utf8.h). */
sr_status text_check(const file_bytes *f, int64_t *lines, sr_failure *why);

/* The same of a text that was read, and takes a byte order mark off its front. */
sr_status text_tidy(file_bytes *f, int64_t *lines, sr_failure *why);

/* Reads a whole text, plain or gzip, and checks it. A byte order mark in front of it is taken
 * off. */
sr_status text_read(const char *path, file_bytes *f, int64_t *lines, sr_failure *why);

/* What the bytes of a file are characters of. */
typedef enum {
    ENCODING_AUTO, /* UTF-8, or Windows-1252 where the bytes are no UTF-8 */
    ENCODING_UTF8,
    ENCODING_LATIN1 /* Windows-1252, which has Latin-1's characters and more */
} text_encoding;
/* The words "auto|utf-8|latin-1" of the three; "" is the first. -1: none of them. */
#define ENCODING_WORDS "auto|utf-8|latin-1"
int text_encoding_find(const char *word);
/* text_read of a file in this encoding; *recoded: it was not UTF-8. */
sr_status text_read_as(const char *path, text_encoding encoding, file_bytes *f, int64_t *lines,
                       bool *recoded, sr_failure *why);

/* A place in a checked text; begins as {f, 0}. */
typedef struct text_walk {
    const file_bytes *file;
    size_t at;
} text_walk;

/* Returns the next word of the line; false at its end, from where the walk continues with the next
 * line. Blanks are what Unicode calls white space, so a CR before the newline is none of the
 * word. */
bool text_word(text_walk *w, const char **word, size_t *length);

#endif
