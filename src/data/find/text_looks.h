/* text_looks.h -- guesses which reader fits a text, by its first lines. This only chooses the
 * reader to try; the reader decides. */
#ifndef DATA_FIND_TEXT_LOOKS_H
#define DATA_FIND_TEXT_LOOKS_H

#include <stdbool.h>

#include "text/file_bytes.h"

typedef enum {
    LOOKS_NOTHING, /* not read, empty, or no text */
    LOOKS_TEXT,    /* none of the others */
    LOOKS_LABELLED,
    LOOKS_CSV,
    LOOKS_TAGGED,
    LOOKS_TREES,
    LOOKS_TABBED,
    LOOKS_VECTORS, /* word vectors */
    LOOKS_MERGES,  /* merges of byte-pair encoding */
} text_kind;

typedef struct text_looks {
    text_kind kind;
    bool numbered; /* tagged: the first column numbers the words */
    bool tabs;     /* tagged: only tabs separate columns */
    bool export4;  /* tabbed: Tatoeba's four columns, the first and third numbers */
    bool several;  /* labelled: several labels of fastText in a line */
} text_looks;

/* The text may be in any encoding. csv: its name ends so. */
text_looks text_look(const file_bytes *f, bool csv);

#endif
