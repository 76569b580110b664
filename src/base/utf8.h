/* utf8.h -- what is a character of UTF-8 (RFC 3629). */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

/* Bytes of the character that text begins with, 1 for every byte below 0x80; 0: none begins here. */
int utf8_bytes(const char *text);

/* The same, and 0 for what drives a terminal or turns the text round it: controls (C0, DEL and C1, U+0080 to
 * U+009F), ends of lines and paragraphs (U+2028, U+2029), and marks, embeddings, overrides and isolates of
 * direction (Unicode's Bidi_Control). A text from a file is shown without these. */
int utf8_shown(const char *text);

#endif
