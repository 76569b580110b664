/* tag_letters.h -- the letters of a scheme, for what reads and what writes tags. */
#ifndef TEXT_TAG_LETTERS_H
#define TEXT_TAG_LETTERS_H

#include "text/tags.h"

/* In the order of tag_part: three of IOB, else five. */
const char *tag_scheme_letters(tag_scheme scheme);

#endif
