/* Dependency trees.
 * Readers: src/data/readers/read_trees.c src/parse/tree_columns.c src/parse/tree_lines.c
 *   src/parse/treebank.c src/parse/tree_check.c */
#include "fuzz_data.h"

static void vary(data_options *o, unsigned bits) {
    static const char *const format[] = {"", "conllx", "conllu", "malt-tab"};
    static const char *const punctuation[] = {"", "unicode", "ptb-tags", "upos"};
    strcpy(o->tree_format, format[bits & 3]);
    strcpy(o->punctuation, punctuation[bits >> 2 & 3]);
    strcpy(o->pos_column, bits & 16 ? "coarse" : "");
}

static const fuzz_reader reader = {"trees", vary, {"train", "valid", "test"}};

FUZZ_DATA(reader)
