/* tags.h -- tags of the words of named entities or other phrases: schemes, sequences, conversion
 * (docs/models.md 10.2).
 *
 * A tag is a letter, or a letter, '-' and a type: "O", "B-PER". Each letter means the same in every
 * scheme. B begins an entity, I and M continue it, E and L end it. S, U and W are a whole entity, O
 * is outside. Schemes differ in their letters and the order of these. The entities of a
 * sequence, legal or not, do not depend on the scheme (tag_starts).
 */
#ifndef TEXT_TAGS_H
#define TEXT_TAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { TAG_OUTSIDE, TAG_BEGIN, TAG_INSIDE, TAG_END, TAG_SINGLE, TAG_PARTS } tag_part;

/* If several schemes fit a file, the first one is assumed. */
typedef enum {
    TAG_IOB2,  /* B I O: every entity starts with B */
    TAG_IOB1,  /* B I O: B only between two adjacent entities of one type */
    TAG_BIOES, /* B I O E S */
    TAG_BMES,  /* B M E S O, of the Chinese sets; O may be missing, as in word segmentation */
    TAG_BMEWO, /* B M E W O */
    TAG_BILOU, /* B I L O U */
    TAG_SCHEMES
} tag_scheme;
#define TAG_SCHEME_WORDS "iob2|iob1|bioes|bmes|bmewo|bilou"
enum { TAG_ANY = -1, TAG_NAME = 256 };

const char *tag_scheme_name(tag_scheme scheme);
/* The letters of a scheme in the order of tag_part: three of IOB, else five. */
const char *tag_scheme_letters(tag_scheme scheme);
/* TAG_ANY: unknown name. */
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

/* True if the grammar of the scheme allows `after`. */
bool tag_follows(tag_scheme scheme, const tag_mark *before, const tag_mark *after);
/* True if an entity starts with m: B and S always, I and E after O, E, S or another type. */
bool tag_starts(const tag_mark *before, const tag_mark *m);
/* The same entities in the tags of a scheme; `to` may be `from`. */
void tag_convert(tag_scheme scheme, const tag_mark *from, int64_t count, tag_mark *to);
/* The tag as text; type NULL or "": the letter alone. */
void tag_format(tag_scheme scheme, tag_part part, const char *type, char text[TAG_NAME]);

#endif
