/* globs.c -- finds the sites that a list of globs names; see globs.h. */
#include "base/globs.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* Without sign and leading zeros: NAME@01 and @1 are names like others. */
bool globs_is_replica(const char *name) {
    const char *at = strrchr(name, '@');
    return at && at > name && at[1] != '0' && at[1] && !at[1 + strspn(at + 1, "0123456789")];
}

/* The next word that is not empty, and *at after it; false at the end. A word longer than
 * GLOBS_WORD fits no name of a run file and is skipped. */
static bool next_word(const char **at, char word[GLOBS_WORD]) {
    for (;;) {
        *at += strspn(*at, ",");
        const size_t length = strcspn(*at, ",");
        if (length == 0) return false;
        snprintf(word, GLOBS_WORD, "%.*s", (int)(length < GLOBS_WORD ? length : 0), *at);
        *at += length;
        if (length < GLOBS_WORD) return true;
    }
}

bool globs_match(const char *globs, const char *name) {
    char glob[GLOBS_WORD];
    while (next_word(&globs, glob))
        if (fnmatch(glob, name, 0) == 0) return true;
    return false;
}

bool globs_is_place(const char *word) {
    return !strcmp(word, "first") || !strcmp(word, "middle") || !strcmp(word, "last") ||
           !strcmp(word, "last-bn");
}

bool globs_is_final(const char *name) {
    const char *dot = strrchr(name, '.');
    return strcmp(dot ? dot + 1 : name, "final") == 0;
}

static bool may_be_place(const globs_sites *s, int64_t i, bool bn) {
    const char *name = s->name(s->context, i);
    return !globs_is_replica(name) && s->may(s->context, i, bn) && !(bn && globs_is_final(name));
}

/* The middle of 2n is the n-th. */
static bool choose_place(const char *word, const globs_sites *s, bool *chosen) {
    const bool bn = !strcmp(word, "last-bn");
    int64_t places = 0;
    for (int64_t i = 0; i < s->count; i++) places += may_be_place(s, i, bn);
    int64_t before = !strcmp(word, "first")    ? 0
                     : !strcmp(word, "middle") ? (places - 1) / 2
                                               : places - 1;
    for (int64_t i = 0; i < s->count && places; i++)
        if (may_be_place(s, i, bn) && before-- == 0) chosen[i] = true;
    return places > 0;
}

static bool choose_glob(const char *glob, const globs_sites *s, bool *chosen) {
    const bool replicas = strchr(glob, '@');
    bool any = false;
    for (int64_t i = 0; i < s->count; i++) {
        const char *name = s->name(s->context, i);
        if (!replicas && globs_is_replica(name)) continue;
        if (fnmatch(glob, name, 0) == 0) chosen[i] = any = true;
    }
    return any;
}

bool globs_choose(const char *list, const globs_sites *sites, bool *chosen,
                  char missed[GLOBS_WORD]) {
    char word[GLOBS_WORD];
    bool any = false, glob_missed = false;
    missed[0] = 0;
    while (next_word(&list, word)) {
        const bool place = globs_is_place(word);
        const bool met =
            place ? choose_place(word, sites, chosen) : choose_glob(word, sites, chosen);
        any = true;
        if (met || glob_missed || (place && missed[0])) continue;
        glob_missed = !place;
        memcpy(missed, word, sizeof word);
    }
    return any && !missed[0];
}
