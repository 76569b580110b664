/* run_messages.c -- messages for the user, passed to callbacks; the loop never prints. */
#include <stdarg.h>
#include <stdio.h>

#include "train/trainer.h"

void trainer_note(const trainer *r, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (r->events->note) r->events->note(r->events->context, text);
}

void trainer_warn(const trainer *r, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (r->events->warn) r->events->warn(r->events->context, text);
}
