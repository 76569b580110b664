/* tag_set.c -- dictionaries of tags. */
#include <stdlib.h>
#include <string.h>

#include "text/tag_set.h"
#include "text/tags.h"

static int parts_of(tag_scheme scheme) {
    return (int)strlen(tag_scheme_letters(scheme)) - 1; /* without O */
}

static int32_t tags_of(const tag_set *s, int32_t types) {
    return 1 + parts_of(s->scheme) * types;
}

/* -- types */

/* Sorts types by name. Types of tests come last, so that every test keeps the numbers of
   training. */
static bool sort_types(tag_set *s, const tag_types *t, int32_t *number) {
    s->all_types = (int32_t)t->names.count;
    s->types = t->trained;
    s->type = calloc((size_t)t->names.count + 1, sizeof *s->type);
    for (int32_t i = 0; s->type && i < t->names.count; i++) {
        int32_t place = 0;
        for (int32_t k = 0; k < t->names.count; k++) {
            const bool trained = k < t->trained, other = i < t->trained;
            const int order = strcmp(tag_types_name(t, k), tag_types_name(t, i));
            place += trained != other ? trained : order < 0;
        }
        s->type[place] = strdup(tag_types_name(t, i));
        if (!s->type[place]) return false;
        if (number) number[i] = place;
    }
    return s->type;
}

/* -- tags */

static bool make_tags(tag_set *s) {
    const int parts = parts_of(s->scheme);
    const int32_t all = tags_of(s, s->all_types);
    s->count = tags_of(s, s->types);
    s->mark = calloc((size_t)all, sizeof *s->mark);
    s->name = calloc((size_t)all, sizeof *s->name);
    if (!s->mark || !s->name) return false;
    for (int32_t id = 0; id < all; id++) {
        char text[TAG_NAME];
        const int32_t type = id ? (id - 1) / parts : -1;
        s->mark[id] = (tag_mark){id ? (tag_part)(1 + (id - 1) % parts) : TAG_OUTSIDE, type};
        tag_format(s->scheme, s->mark[id].part, id ? s->type[type] : NULL, text);
        s->name[id] = strdup(text);
        if (!s->name[id]) return false;
    }
    return true;
}

static bool make_grammar(tag_set *s) {
    const size_t n = (size_t)s->count, side = n + 2;
    s->allowed = calloc(side * side, 1);
    if (!s->allowed) return false;
    for (size_t i = 0; i <= n; i++) {
        const tag_mark *from = i < n ? &s->mark[i] : NULL;
        uint8_t *row = s->allowed + i * side;
        for (size_t k = 0; k < n; k++) row[k] = tag_follows(s->scheme, from, &s->mark[k]);
        row[n + 1] = tag_follows(s->scheme, from, NULL);
    }
    return true;
}

tag_set *tag_set_create(tag_scheme scheme, const tag_types *types, int32_t *number) {
    tag_set *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->scheme = scheme;
    if (sort_types(s, types, number) && make_tags(s) && make_grammar(s)) return s;
    tag_set_free(s);
    return NULL;
}

void tag_set_free(tag_set *s) {
    if (!s) return;
    for (int32_t i = 0; s->type && i < s->all_types; i++) free(s->type[i]);
    const int32_t all = tags_of(s, s->all_types);
    for (int32_t i = 0; s->name && i < all; i++) free(s->name[i]);
    free(s->type);
    free(s->name);
    free(s->mark);
    free(s->allowed);
    free(s);
}

int32_t tag_set_id(const tag_set *s, tag_mark mark) {
    const int parts = parts_of(s->scheme);
    if (mark.part == TAG_OUTSIDE) return 0;
    if ((int)mark.part > parts || mark.type < 0 || mark.type >= s->all_types) return -1;
    return 1 + mark.type * parts + (int)mark.part - 1;
}

int64_t tag_set_spans(const tag_set *s, const int32_t *id, int64_t count, tag_span *span) {
    int64_t spans = 0;
    const int32_t all = tags_of(s, s->all_types);
    tag_mark before = {TAG_OUTSIDE, -1};
    for (int64_t i = 0; i < count; i++) {
        const bool known = id[i] >= 0 && id[i] < all;
        const tag_mark m = known ? s->mark[id[i]] : (tag_mark){TAG_OUTSIDE, -1};
        spans += tag_starts(&before, &m);
        if (span && tag_starts(&before, &m)) span[spans - 1] = (tag_span){m.type, (int32_t)i, 0};
        if (span && m.part != TAG_OUTSIDE) span[spans - 1].last = (int32_t)i;
        before = m;
    }
    return spans;
}

int64_t tag_spans_matching(const tag_span *a, int64_t as, const tag_span *b, int64_t bs) {
    int64_t matching = 0, k = 0;
    for (int64_t i = 0; i < as; i++) {
        while (k < bs && b[k].first < a[i].first) k++;
        matching +=
            k < bs && b[k].first == a[i].first && b[k].last == a[i].last && b[k].type == a[i].type;
    }
    return matching;
}

static double percent(int64_t part, int64_t whole) {
    return whole > 0 ? 100. * (double)part / (double)whole : 0;
}

entity_scores entity_scores_of(int64_t right, int64_t predicted, int64_t gold) {
    entity_scores s = {percent(right, predicted), percent(right, gold), 0};
    const double sum = s.precision + s.recall;
    if (sum > 0) s.f1 = 2 * s.precision * s.recall / sum;
    return s;
}
