/* pattern.h -- regular expressions as glossaries use them: a part of Python's, with the same
 * matches.
 *
 * Characters, . [a-z] [^a-z] \d \w \s \D \W \S, (?:...), |, * + ? {m} {m,n} and these with a ? behind
 * (the shortest first), ^ $; a backslash makes any other ASCII mark a plain character. What else Python knows
 * is refused: groups that remember, assertions, references, flags. Of several matches at one place
 * the one counts that the expression tries first, not the longest.
 */
#ifndef TEXT_BPE_PATTERN_H
#define TEXT_BPE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "statrec/base.h"

typedef struct pattern pattern;

/* Text is UTF-8, a zero byte ends it. whole: only what fits from end to end is a match. SR_USAGE for what is
 * not understood, with the place in the text. NULL on failure. */
pattern *regex_compile(const char *text, bool whole, sr_failure *why);
void pattern_free(pattern *p);
/* The first match in text [length] that begins at `from` or later (only_here: at `from`); its place in
 * *start and *end, *found false when there is none. */
sr_status regex_search(pattern *p, const char *text, size_t length, size_t from, bool only_here,
                       bool *found, size_t *start, size_t *end, sr_failure *why);

#endif
