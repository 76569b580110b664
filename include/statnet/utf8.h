/* utf8.h -- what is a character of UTF-8 (RFC 3629). */
#ifndef STATNET_UTF8_H
#define STATNET_UTF8_H

/* Bytes of the character that text begins with, 1 for every byte below 0x80; 0: none begins here. */
int utf8_bytes(const char *text);

#endif
