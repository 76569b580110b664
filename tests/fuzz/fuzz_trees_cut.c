/* Dependency trees of one file.
 * Readers: src/data/readers/read_trees.c src/parse/treebank.c */
#include "fuzz_data.h"

static void vary(data_options *o, unsigned bits) {
    static const char *const format[] = {"", "conllx", "conllu", "malt-tab"};
    static const char *const punctuation[] = {"", "unicode", "ptb-tags", "upos"};
    strcpy(o->tree_format, format[bits & 3]);
    strcpy(o->punctuation, punctuation[bits >> 2 & 3]);
    strcpy(o->pos_column, bits & 16 ? "coarse" : "");
    strcpy(o->file, "bank");
    o->valid_count = 1, o->test_count = 1;
}

static const fuzz_reader reader = {"trees-cut", vary, {"bank"}};

FUZZ_DATA(reader)
