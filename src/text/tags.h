/* tags.h -- tags that say which words of a sentence are a named entity (or another phrase) of which
 * type: schemes, entities, conversion, dictionaries of tags (docs/models.md 10.2).
 *
 * A tag is a letter, or a letter, '-' and a type: "O", "B-PER". Each letter means the same in every
 * scheme: B begins an entity, I and M are inside, E and L end one, S, U and W are a whole one, O is
 * outside. What the schemes differ in is which letters they have and where they may stand; what a
 * sequence of tags says, legal or not, does not depend on the scheme (tag_starts).
 */
#ifndef TEXT_TAGS_H
#define TEXT_TAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "statrec/base.h"

typedef enum { TAG_OUTSIDE, TAG_BEGIN, TAG_INSIDE, TAG_END, TAG_SINGLE, TAG_PARTS } tag_part;

/* Of two schemes that fit a file as well the first is taken for its own. */
typedef enum {
    TAG_IOB2,  /* B I O: every entity begins with B */
    TAG_IOB1,  /* B I O: B only between two entities of a type that stand side by side */
    TAG_BIOES, /* B I O E S */
    TAG_BMES,  /* B M E S O, of the Chinese sets; O may be missing, as in word segmentation */
    TAG_BMEWO, /* B M E W O */
    TAG_BILOU, /* B I L O U */
    TAG_SCHEMES
} tag_scheme;
#define TAG_SCHEME_WORDS "iob2|iob1|bioes|bmes|bmewo|bilou"
enum { TAG_ANY = -1, TAG_NAME = 256 };

const char *tag_scheme_name(tag_scheme scheme);
/* TAG_ANY: none is called so. */
int tag_scheme_find(const char *name);

/* A tag whose type has a number; OUTSIDE has -1. */
typedef struct tag_mark {
    tag_part part;
    int32_t type;
} tag_mark;

/* An entity: its first and last word. */
typedef struct tag_span {
    int32_t type, first, last;
} tag_span;

/* -- sequences. before or after NULL: start or end of the sentence */

/* Whether the grammar of the scheme lets `after` follow. */
bool tag_follows(tag_scheme scheme, const tag_mark *before, const tag_mark *after);
/* Whether an entity begins with m: B and S always, I and E behind O, E, S or another type. */
bool tag_starts(const tag_mark *before, const tag_mark *m);
/* The entities of a sentence, in order, into span [count] (may be NULL); their number. */
int64_t tag_spans(const tag_mark *mark, int64_t count, tag_span *span);
/* The same entities in the tags of a scheme; `to` may be `from`. */
void tag_convert(tag_scheme scheme, const tag_mark *from, int64_t count, tag_mark *to);
/* The tag as text; type NULL or "": the letter alone. */
void tag_format(tag_scheme scheme, tag_part part, const char *type, char text[TAG_NAME]);

/* -- reading tags */

/* Types, numbered in order of first appearance; zero at first. */
typedef struct tag_types {
    map names;
    int32_t trained; /* the first N, which precede the others in a dictionary of tags */
} tag_types;
/* The number of a name, a new one where it is absent; -1: out of memory. */
int32_t tag_types_add(tag_types *t, const char *name, size_t length);
void tag_types_free(tag_types *t);
static inline const char *tag_types_name(const tag_types *t, int64_t type) {
    return map_text(&t->names, type, NULL);
}

/* The tags of a file, one after the other: which schemes they may be of. */
typedef struct tag_column {
    const char *path;             /* for messages */
    unsigned possible;            /* schemes that have all letters so far, a bit each */
    bool named;                   /* by the user */
    int64_t tags;                 /* read */
    int64_t illegal[TAG_SCHEMES]; /* tags that the grammar would not have let stand where they do */
    bool within;                  /* a sentence */
    tag_mark before;
} tag_column;

/* scheme TAG_ANY: to be recognised. */
tag_column tag_column_start(const char *path, int scheme);
/* SR_FORMAT ("PATH:LINE: tag 'X-PER': ...") for what is no tag of a scheme, or not of the one that
 * the letters before it belong to. */
sr_status tag_column_add(tag_column *c, tag_types *types, int64_t line, const char *text,
                         size_t length, tag_mark *mark, sr_failure *why);
void tag_column_end_sentence(tag_column *c);
/* The scheme with the fewest illegal tags of those that have the letters. */
tag_scheme tag_column_scheme(const tag_column *c);

/* -- a dictionary of tags: O, then for each type the letters of the scheme */

typedef struct tag_set {
    tag_scheme scheme;
    int32_t count, types;
    char **type;    /* [types], bytes ascending */
    char **name;    /* [count] */
    tag_mark *mark; /* [count] */
    uint8_t
        *allowed; /* [(count + 2) * (count + 2)], from row to column: 1 where the grammar lets the
                         one follow; row `count` is the start, column count + 1 the end */
} tag_set;

/* NULL when out of memory. number [types->count] (may be NULL) becomes the place of each type among
 * the sorted ones, the trained ones in front, which is its number in the marks of the set. */
tag_set *tag_set_create(tag_scheme scheme, const tag_types *types, int32_t *number);
void tag_set_free(tag_set *s);
/* -1: the scheme has no such part, or the set no such type. */
int32_t tag_set_id(const tag_set *s, tag_mark mark);
/* tag_spans of ids, span may be NULL; ids that are none count as O. */
int64_t tag_set_spans(const tag_set *s, const int32_t *id, int64_t count, tag_span *span);
/* Entities of two lists, each in order, that are the same. */
int64_t tag_spans_matching(const tag_span *a, int64_t as, const tag_span *b, int64_t bs);

/* Percent, 0 for 0/0. */
typedef struct entity_scores {
    double precision, recall, f1;
} entity_scores;
entity_scores entity_scores_of(int64_t right, int64_t predicted, int64_t gold);

#endif
