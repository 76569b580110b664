/* globs.h -- names against lists of words, as in `--site 'first,encoder.*'`: the one syntax of
 * every option that takes sites. */
#ifndef BASE_GLOBS_H
#define BASE_GLOBS_H

#include <stdbool.h>
#include <stdint.h>

/* True when the name fits one of the globs (fnmatch: * ? [...]), which commas separate. Empty ones
 * fit nothing. */
bool globs_match(const char *globs, const char *name);

/* The sites that a list is about, in forward order. */
typedef struct globs_sites {
    int64_t count;
    const void *context;
    const char *(*name)(const void *context, int64_t i);
    /* Whether "first", "middle" and "last" may mean site i; with bn: "last-bn". */
    bool (*may)(const void *context, int64_t i, bool bn);
} globs_sites;

enum { GLOBS_WORD = 1024 };

/* Sets chosen[i] where a word of the list means site i. A word is a glob, "first", "middle", "last"
 * or "last-bn"; only a glob with an @ matches replicas. False when a word means none: it is in
 * missed, a glob before the others. */
bool globs_choose(const char *list, const globs_sites *sites, bool *chosen,
                  char missed[GLOBS_WORD]);
/* True of "first", "middle", "last" and "last-bn". */
bool globs_is_place(const char *word);

/* True of NAME@K, K from 1: site NAME as shard K of the batch saw it. Shard 0 is NAME itself. A
 * replica is no site of the model: loops over sites skip it, and only a glob with an @ matches
 * it. */
bool globs_is_replica(const char *name);

/* True for NAME.final, the norm after a stack, which "last-bn" never matches. */
bool globs_is_final(const char *name);

#endif
