/* Words with tags of entities, in columns.
 * Readers: src/data/readers/read_conll.c src/text/tag_column.c src/text/tag_scheme.c
 *   src/text/tag_set.c */
#include "fuzz_data.h"

static void vary(data_options *o, unsigned bits) {
    static const char *const scheme[] = {"", "iob1", "bmes", "bilou"};
    strcpy(o->file_tag_scheme, scheme[bits & 3]);
    strcpy(o->tag_scheme, bits & 4 ? "bmewo" : "");
    o->zero_digits = bits & 8;
    if (bits & 16) o->word_column = 2, o->tag_column = 4;
}

static const fuzz_reader reader = {"conll", vary, {"train", "valid", "test"}};

FUZZ_DATA(reader)
