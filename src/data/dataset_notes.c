/* dataset_notes.c -- the description and the warnings of a data set while it is opened. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "data/dataset.h"

const char *const dataset_split_titles[] = {
    [SPLIT_TRAIN] = "training", [SPLIT_VALID] = "validation", [SPLIT_TEST] = "test"};

void dataset_note(dataset *d, const char *format, ...) {
    size_t used = strlen(d->describe);
    va_list args;
    va_start(args, format);
    vsnprintf(d->describe + used, sizeof d->describe - used, format, args);
    va_end(args);
}

void dataset_warn(dataset *d, const char *format, ...) {
    size_t used = strlen(d->warnings);
    if (used && used + 1 < sizeof d->warnings) strcpy(d->warnings + used++, "\n");
    va_list args;
    va_start(args, format);
    vsnprintf(d->warnings + used, sizeof d->warnings - used, format, args);
    va_end(args);
}
