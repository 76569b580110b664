#include "testing/child_complaint.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void complain(const char *after, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", after);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    _exit(1);
}

void complain_unless_told(const char *after, const char *name, const sr_failure *why) {
    if (strlen(why->text) < 10 || strchr(why->text, '\n'))
        complain(after, "%s without a reason: '%s'", sr_status_name(why->status), why->text);
    if (!strstr(why->text, name)) complain(after, "names no file: '%s'", why->text);
}
