/* options_internal.h -- shared by options.c, options_read.c and options_help.c. */
#ifndef BASE_OPTIONS_OPTIONS_INTERNAL_H
#define BASE_OPTIONS_OPTIONS_INTERNAL_H

#include "base/options/options.h"

/* The key of the option whose value names a config file. */
#define OPTIONS_CONFIG_KEY "config"

/* The comment in a dump without the options that have no use. */
#define OPTIONS_LEFT_OUT "# options without effect are left out\n"

const option *options_find(option_table table, const char *key);
const option *options_find_letter(option_table table, char letter);
/* The byte of an escape \LETTER, or 0. */
char options_unescape(char letter);
/* The key nearest to a misspelt one, or NULL. */
const char *options_nearest(option_table table, const char *key);
/* "1 to 100 steps", "at least 0", "any value". */
void options_range_text(const option *row, char *text, size_t size);

#endif
