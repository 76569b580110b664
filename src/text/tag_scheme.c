/* tag_scheme.c -- schemes of tags: letters, grammars, entities of a sequence, conversion to another
 * scheme (docs/models.md 10.2). */
#include <stdio.h>
#include <string.h>

#include "text/tags.h"

/* In the order of tag_part. */
static const struct {
    const char *name, *letters;
} schemes[TAG_SCHEMES] = {
    [TAG_IOB2] = {"iob2", "OBI"},     [TAG_IOB1] = {"iob1", "OBI"},
    [TAG_BIOES] = {"bioes", "OBIES"}, [TAG_BMES] = {"bmes", "OBMES"},
    [TAG_BMEWO] = {"bmewo", "OBMEW"}, [TAG_BILOU] = {"bilou", "OBILU"},
};

const char *tag_scheme_name(tag_scheme scheme) {
    return schemes[scheme].name;
}

const char *tag_scheme_letters(tag_scheme scheme) {
    return schemes[scheme].letters;
}

int tag_scheme_find(const char *name) {
    for (int s = 0; s < TAG_SCHEMES; s++)
        if (strcmp(schemes[s].name, name) == 0) return s;
    return TAG_ANY;
}

/* -- sequences */

static bool same_entity(const tag_mark *before, const tag_mark *m) {
    return before && (before->part == TAG_BEGIN || before->part == TAG_INSIDE) &&
           before->type == m->type;
}

bool tag_follows(tag_scheme scheme, const tag_mark *before, const tag_mark *after) {
    const bool iob = scheme == TAG_IOB1 || scheme == TAG_IOB2;
    const bool open = before && (before->part == TAG_BEGIN || before->part == TAG_INSIDE);
    if (iob && (!after || after->part == TAG_OUTSIDE)) return true;
    if (iob && after->part == TAG_BEGIN) return scheme == TAG_IOB2 || same_entity(before, after);
    if (iob) return after->part == TAG_INSIDE && (scheme == TAG_IOB1 || same_entity(before, after));
    if (!after || after->part == TAG_OUTSIDE) return !open;
    if (after->part == TAG_BEGIN || after->part == TAG_SINGLE) return !open;
    return same_entity(before, after);
}

bool tag_starts(const tag_mark *before, const tag_mark *m) {
    if (m->part == TAG_OUTSIDE) return false;
    return m->part == TAG_BEGIN || m->part == TAG_SINGLE || !same_entity(before, m);
}

void tag_convert(tag_scheme scheme, const tag_mark *from, int64_t count, tag_mark *to) {
    tag_mark before = {TAG_OUTSIDE, -1};
    for (int64_t i = 0; i < count; i++) {
        const tag_mark m = from[i];
        const bool first = tag_starts(&before, &m);
        const tag_mark *next = i + 1 < count ? &from[i + 1] : NULL;
        const bool last = !next || next->part == TAG_OUTSIDE || tag_starts(&m, next);
        const bool beside = before.part != TAG_OUTSIDE && before.type == m.type;
        to[i] = m;
        before = m;
        if (m.part == TAG_OUTSIDE) continue;
        if (scheme == TAG_IOB1)
            to[i].part = first && beside ? TAG_BEGIN : TAG_INSIDE;
        else if (scheme == TAG_IOB2)
            to[i].part = first ? TAG_BEGIN : TAG_INSIDE;
        else
            to[i].part = first ? (last ? TAG_SINGLE : TAG_BEGIN) : (last ? TAG_END : TAG_INSIDE);
    }
}

void tag_format(tag_scheme scheme, tag_part part, const char *type, char text[TAG_NAME]) {
    const char letter = schemes[scheme].letters[part];
    if (part == TAG_OUTSIDE || !type || !*type)
        snprintf(text, TAG_NAME, "%c", letter);
    else
        snprintf(text, TAG_NAME, "%c-%s", letter, type);
}
