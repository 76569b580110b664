/* text.h -- UTF-8 text in memory: lines and the words between blanks. */
#ifndef TEXT_TEXT_H
#define TEXT_TEXT_H

#include "text/file_bytes.h"

/* Lines of the text; a last line without a newline counts. SR_FORMAT ("PATH:LINE: ...") for a NUL
 * byte and for bytes that are not UTF-8 (utf8.h). */
sr_status text_check(const file_bytes *f, int64_t *lines, sr_failure *why);

/* Removes a byte order mark at the beginning. */
void text_strip_mark(file_bytes *f);

/* Carriage returns of a text. Lines end at LF: a CR before it belongs to the end, another one ends
 * no line. */
typedef struct line_ends {
    int64_t crlf, lone;
} line_ends;
/* Adds the line ends of a text, or of one line with its end. */
void line_ends_add(line_ends *e, const char *text, size_t length);
/* A warning about lone CR of the text `path`, at most `size` bytes; "" without any. */
void line_ends_warning(const line_ends *e, const char *path, char *text, size_t size);

/* Checks a text that was read, and removes a byte order mark. */
sr_status text_tidy(file_bytes *f, int64_t *lines, sr_failure *why);

/* Reads a whole text, plain or gzip, checks it and removes a byte order mark. */
sr_status text_read(const char *path, file_bytes *f, int64_t *lines, sr_failure *why);

/* The encoding of a file. */
typedef enum {
    ENCODING_AUTO, /* UTF-8, or Windows-1252 if the bytes are not UTF-8 */
    ENCODING_UTF8,
    ENCODING_LATIN1 /* Windows-1252, a superset of Latin-1 */
} text_encoding;
/* Words of the encodings; "" is the first. -1: unknown. */
#define ENCODING_WORDS "auto|utf-8|latin-1"
int text_encoding_find(const char *word);
/* How a file was decoded. */
typedef struct text_decoding {
    bool recoded;         /* it was not UTF-8, and was read as Windows-1252 */
    int64_t letters, bad; /* characters of several bytes in UTF-8, bytes that are not UTF-8 */
    char fault[SR_FAILURE_TEXT]; /* the first of these bytes: "FILE:LINE: byte ..."; "" */
} text_decoding;
/* text_read of a file in this encoding. The counts of *how are 0 for ENCODING_LATIN1. */
sr_status text_read_as(const char *path, text_encoding encoding, file_bytes *f, int64_t *lines,
                       text_decoding *how, sr_failure *why);

/* The number of `word` in "first|second|..."; -1: not in it. */
int text_find_word(const char *words, const char *word);

/* Separator of columns: no other blank is. */
static inline bool text_separates(char c) {
    return c == ' ' || c == '\t';
}

/* A position in a checked text; starts as {f, 0}. */
typedef struct text_walk {
    const file_bytes *file;
    size_t at;
} text_walk;

/* Returns the next word of the line; false at its end, then the walk continues with the next line.
 * Unicode white space separates words, so a CR before the newline belongs to no word. */
bool text_word(text_walk *w, const char **word, size_t *length);

#endif
