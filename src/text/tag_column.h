/* tag_column.h -- reads the tags of a file and finds their scheme. */
#ifndef TEXT_TAG_COLUMN_H
#define TEXT_TAG_COLUMN_H

#include "base/containers/map.h"
#include "statrec/base.h"
#include "text/tags.h"

/* Types, numbered in order of first appearance; starts as {0}. */
typedef struct tag_types {
    map names;
    int32_t trained; /* the first N, which precede the others in a dictionary of tags */
} tag_types;
/* The number of a name, which is added if absent; -1: out of memory. */
int32_t tag_types_add(tag_types *t, const char *name, size_t length);
void tag_types_free(tag_types *t);
static inline const char *tag_types_name(const tag_types *t, int64_t type) {
    return map_text(&t->names, type, NULL);
}

/* The tags of a file so far, and their possible schemes. */
typedef struct tag_column {
    const char *path;             /* for messages */
    unsigned possible;            /* schemes that have all letters so far, a bit each */
    bool named;                   /* by the user */
    int64_t tags;                 /* read */
    int64_t illegal[TAG_SCHEMES]; /* tags against the grammar */
    bool within;                  /* a sentence */
    tag_mark before;
} tag_column;

/* scheme TAG_ANY: recognize it. */
tag_column tag_column_start(const char *path, int scheme);
/* SR_FORMAT ("PATH:LINE: tag 'X-PER': ...") unless a scheme has this tag and all tags before it. */
sr_status tag_column_add(tag_column *c, tag_types *types, int64_t line, const char *text,
                         size_t length, tag_mark *mark, sr_failure *why);
void tag_column_end_sentence(tag_column *c);
/* The possible scheme with the fewest illegal tags. */
tag_scheme tag_column_scheme(const tag_column *c);

#endif
