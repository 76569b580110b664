/* tag_column.c -- the tags of a file: parts, types and scheme. */
#include <stdio.h>
#include <string.h>

#include "text/tag_column.h"
#include "text/tags.h"

/* -- types */

int32_t tag_types_add(tag_types *t, const char *name, size_t length) {
    /* a zero byte ends a name, here as in messages */
    return (int32_t)map_add(&t->names, name, strnlen(name, length));
}

void tag_types_free(tag_types *t) {
    map_free(&t->names);
}

/* -- schemes */

tag_column tag_column_start(const char *path, int scheme) {
    return (tag_column){
        .path = path,
        .possible = scheme == TAG_ANY ? (1u << TAG_SCHEMES) - 1 : 1u << scheme,
        .named = scheme != TAG_ANY,
    };
}

/* "iob2 (O B I), bioes (O B I E S)" */
static void list_schemes(unsigned of, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (int s = 0; s < TAG_SCHEMES; s++) {
        if (!(of & 1u << s)) continue;
        char spaced[16] = "";
        const char *letters = tag_scheme_letters((tag_scheme)s);
        for (size_t i = 0; letters[i]; i++) {
            if (i) spaced[2 * i - 1] = ' ';
            spaced[2 * i] = letters[i];
        }
        const int n = snprintf(text + used, size - used, "%s%s (%s)", used ? ", " : "",
                               tag_scheme_name((tag_scheme)s), spaced);
        if (n < 0 || (size_t)n >= size - used) return;
        used += (size_t)n;
    }
}

static sr_status refuse(const tag_column *c, int64_t line, const char *text, size_t length,
                        bool known, sr_failure *why) {
    char allowed[256];
    const int shown = length > 60 ? 60 : (int)length;
    list_schemes(c->possible, allowed, sizeof allowed);
    if (c->named)
        sr_fail(why, SR_FORMAT, "%s:%lld: tag '%.*s' is not of %s, '-' and a type", c->path,
                (long long)line, shown, text, allowed);
    else if (!known)
        sr_fail(why, SR_FORMAT, "%s:%lld: tag '%.*s' is of no scheme: %s, '-', type", c->path,
                (long long)line, shown, text, allowed);
    else
        sr_fail(why, SR_FORMAT, "%s:%lld: tag '%.*s' contradicts earlier tags: %s", c->path,
                (long long)line, shown, text, allowed);
    return SR_FORMAT;
}

static void count_illegal(tag_column *c, const tag_mark *m) {
    for (int s = 0; s < TAG_SCHEMES; s++)
        c->illegal[s] += !tag_follows((tag_scheme)s, c->within ? &c->before : NULL, m);
}

/* A column of numbers or of words is not one of tags. */
enum { TYPES_MOST = 250 };

sr_status tag_column_add(tag_column *c, tag_types *types, int64_t line, const char *text,
                         size_t length, tag_mark *mark, sr_failure *why) {
    tag_part part = TAG_OUTSIDE;
    const bool shaped = length == 1 || (length > 2 && text[1] == '-');
    unsigned with = 0; /* schemes with the letter */
    for (int s = 0; shaped && text[0] && s < TAG_SCHEMES; s++) {
        const char *letters = tag_scheme_letters((tag_scheme)s), *at = strchr(letters, text[0]);
        if (!at) continue;
        part = (tag_part)(at - letters);
        with |= 1u << s;
    }
    if ((part == TAG_OUTSIDE && length > 1) || length >= TAG_NAME) with = 0;
    if (!(with & c->possible)) return refuse(c, line, text, length, with != 0, why);
    *mark = (tag_mark){part, -1};
    if (part != TAG_OUTSIDE) {
        const size_t cut = length > 1 ? 2 : 1;
        mark->type = tag_types_add(types, text + cut, length - cut);
        if (mark->type < 0) return sr_fail(why, SR_MEMORY, "%s: out of memory for types", c->path);
        if (types->names.count > TYPES_MOST)
            return sr_fail(why, SR_FORMAT, "%s:%lld: tag '%.*s' is of a further type than %d",
                           c->path, (long long)line, (int)length, text, TYPES_MOST);
    }
    c->possible &= with;
    c->tags++;
    count_illegal(c, mark);
    c->before = *mark;
    c->within = true;
    return SR_OK;
}

void tag_column_end_sentence(tag_column *c) {
    if (c->within) count_illegal(c, NULL);
    c->within = false;
}

tag_scheme tag_column_scheme(const tag_column *c) {
    int best = TAG_ANY;
    for (int s = 0; s < TAG_SCHEMES; s++)
        if (c->possible & 1u << s && (best == TAG_ANY || c->illegal[s] < c->illegal[best]))
            best = s;
    return (tag_scheme)best;
}
