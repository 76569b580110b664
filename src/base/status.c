/* status.c -- failures: a status, a line of text and a hint; see statrec/base.h. */
#include "statrec/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int sr_abi_version(void) {
    return SR_ABI_VERSION;
}

const char *sr_version(void) {
    return STATREC_VERSION;
}

/* Whatever the memory was for: users must not think that a file is faulty. */
static void say_memory(char *text, size_t size) {
    static const char words[] = ": out of memory";
    size_t used = strlen(text);
    if (strstr(text, "memory")) return;
    if (used > size - sizeof words) used = size - sizeof words;
    memcpy(text + used, words, sizeof words);
}

sr_status sr_fail(sr_failure *why, sr_status status, const char *format, ...) {
    if (!why || why->status != SR_OK) return status;
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    if (status == SR_MEMORY) say_memory(why->text, sizeof why->text);
    /* Names and lines of files may hold anything. C1, U+0080 to U+009F, is 0xc2 and one more
       byte. */
    for (unsigned char *c = (unsigned char *)why->text; *c; c++) {
        if ((*c < ' ' && *c != '\t') || *c == 0x7f) *c = '?';
        if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) c[0] = c[1] = '?';
    }
    why->status = status;
    return status;
}

void sr_hint(sr_failure *why, const char *format, ...) {
    if (!why || why->status == SR_OK || why->hint[0]) return;
    va_list args;
    va_start(args, format);
    vsnprintf(why->hint, sizeof why->hint, format, args);
    va_end(args);
}

const char *sr_status_name(sr_status status) {
    static const char *const names[] = {"ok",     "usage",  "memory", "io",
                                        "format", "exists", "state",  "library"};
    if ((unsigned)status >= sizeof names / sizeof names[0]) return "unknown";
    return names[status];
}
