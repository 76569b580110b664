/* tag_set.h -- a dictionary of tags: O, then for each type the letters of the scheme. Types that
 * training lacks come last: entities have them, a model has no class for them. */
#ifndef TEXT_TAG_SET_H
#define TEXT_TAG_SET_H

#include "text/tag_column.h"

typedef struct tag_set {
    tag_scheme scheme;
    int32_t count, types; /* numbers in training: classes of a model */
    int32_t all_types;
    char **type;    /* [all_types], bytes ascending in each part */
    char **name;    /* by id, of all types */
    tag_mark *mark; /* the same */
    /* [(count + 2) * (count + 2)] from row to column: 1: the grammar allows it; row `count` is the
       start, column count + 1 the end */
    uint8_t *allowed;
} tag_set;

/* NULL when out of memory. number [types->count] (may be NULL): the new number of each type. Types
 * are sorted, trained types first. */
tag_set *tag_set_create(tag_scheme scheme, const tag_types *types, int32_t *number);
void tag_set_free(tag_set *s);
/* -1: the scheme has no such part, or the set no such type. count or more: a type that training
 * lacks. */
int32_t tag_set_id(const tag_set *s, tag_mark mark);
/* Writes the entities of a sentence of tag ids to span [count] (may be NULL); returns their number.
 * Ids outside the set count as O. */
int64_t tag_set_spans(const tag_set *s, const int32_t *id, int64_t count, tag_span *span);
/* Number of common entities of two sorted lists. */
int64_t tag_spans_matching(const tag_span *a, int64_t as, const tag_span *b, int64_t bs);

/* Percent, 0 for 0/0. */
typedef struct entity_scores {
    double precision, recall, f1;
} entity_scores;
entity_scores entity_scores_of(int64_t right, int64_t predicted, int64_t gold);

#endif
