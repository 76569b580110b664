/* pattern.h -- the regular expressions of glossaries: the part of Python's that PCRE2 reads alike.
 *
 * Characters, . [a-z] [^a-z] \d \w \s \D \W \S, (?:...), |, * + ? {m} {m,} {m,n}, each also with a
 * ? for the shortest match, ^ $. A backslash makes any other ASCII mark a plain character. Other
 * groups, other escapes and possessive quantifiers are rejected.
 */
#ifndef TEXT_BPE_PATTERN_H
#define TEXT_BPE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "statrec/base.h"

typedef struct pattern pattern;

/* Positions that a match may have. */
typedef enum { PATTERN_ANYWHERE, PATTERN_AT_START, PATTERN_WHOLE } pattern_range;

/* text: UTF-8 with a zero byte at the end. edge: "TEXT$" instead, where $ belongs to the last
 * choice alone. NULL on failure: SR_USAGE with the byte of the text. */
pattern *pattern_compile(const char *text, bool edge, sr_failure *why);
void pattern_free(pattern *p);
/* Finds the first match in text [length], from `from` on; only an empty text has an empty match.
 * *found false: none. SR_FORMAT when the search exceeds PATTERN_STEPS. */
sr_status pattern_search(pattern *p, const char *text, size_t length, size_t from,
                         pattern_range range, bool *found, size_t *start, size_t *end,
                         sr_failure *why);

/* Backtracking steps from one start of a match. */
enum { PATTERN_STEPS = 1000000, PATTERN_MEBIBYTES = 256 };

#endif
