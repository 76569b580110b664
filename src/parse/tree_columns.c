/* tree_columns.c -- reads a line of each format as a word; reports its faults. */
#include <string.h>

#include "parse/tree_lines.h"

enum { MOST_WORDS = 1 << 24 };

/* Columns of a format; -1: none. */
typedef struct tree_layout {
    int id, form, coarse, fine, head, label;
} tree_layout;

static const tree_layout conll = {0, 1, 3, 4, 6, 7}, malt_tab = {-1, 0, 1, 1, 2, 3};

static const char *const conllx_names[] = {"ID",    "FORM", "LEMMA",  "CPOSTAG", "POSTAG",
                                           "FEATS", "HEAD", "DEPREL", "PHEAD",   "PDEPREL"};
static const char *const conllu_names[] = {"ID",    "FORM", "LEMMA",  "UPOS", "XPOS",
                                           "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"};
static const char *const malt_names[] = {"FORM", "POSTAG", "HEAD", "DEPREL"};

static const char *column_name(tree_format format, int column) {
    return format == TREES_MALT_TAB ? malt_names[column]
           : format == TREES_CONLLU ? conllu_names[column]
                                    : conllx_names[column];
}

/* A number of at most MOST_WORDS from digits only; -1: none. */
static int32_t whole_number(const char *byte, size_t size) {
    int32_t value = 0;
    if (size == 0) return -1;
    for (size_t i = 0; i < size; i++) {
        if (byte[i] < '0' || byte[i] > '9') return -1;
        value = value * 10 + (byte[i] - '0');
        if (value > MOST_WORDS) return -1;
    }
    return value;
}

static sr_status check_columns(const treebank *t, const tree_line *line, sr_failure *why) {
    if (line->columns != t->columns) {
        const sr_status status =
            line->columns == TREE_MANY
                ? tree_fail(line->path, line->number, why, "more than %d columns where %s has %d",
                            TREE_COLUMNS, tree_format_name(t->format), t->columns)
                : tree_fail(line->path, line->number, why, "%d column%s where %s has %d",
                            line->columns, line->columns == 1 ? "" : "s",
                            tree_format_name(t->format), t->columns);
        sr_hint(why, "tabs separate columns");
        return status;
    }
    for (int i = 0; i < line->columns; i++)
        if (line->column[i].size == 0)
            return tree_fail(line->path, line->number, why, "column %d, %s, is empty", i + 1,
                             column_name(t->format, i));
    return SR_OK;
}

/* first-last, of words that follow; tokens do not overlap. */
static sr_status read_multiword(const tree_line *line, tree_sentence *s, sr_failure *why) {
    const tree_field *id = &line->column[0];
    const char *dash = memchr(id->byte, '-', (size_t)id->size);
    const int32_t first = whole_number(id->byte, (size_t)(dash - id->byte));
    const int32_t last =
        whole_number(dash + 1, (size_t)(id->size - (int32_t)(dash + 1 - id->byte)));
    if (first != s->words + 1 || last < first)
        return tree_fail(line->path, line->number, why,
                         "multiword token %.*s does not begin with %d", tree_shown(id), id->byte,
                         s->words + 1);
    if (s->reach > s->words)
        return tree_fail(line->path, line->number, why,
                         "multiword token %.*s within the one of line %lld", tree_shown(id),
                         id->byte, (long long)s->reach_line);
    s->reach = last;
    s->reach_line = line->number;
    return SR_OK;
}

static sr_status read_empty(const tree_line *line, tree_sentence *s, sr_failure *why) {
    const tree_field *id = &line->column[0];
    const char *dot = memchr(id->byte, '.', (size_t)id->size);
    const int32_t word = whole_number(id->byte, (size_t)(dot - id->byte));
    const int32_t place = whole_number(dot + 1, (size_t)(id->size - (int32_t)(dot + 1 - id->byte)));
    if (word != s->words || place != s->empties + 1)
        return tree_fail(line->path, line->number, why, "empty node %.*s where %d.%d is due",
                         tree_shown(id), id->byte, s->words, s->empties + 1);
    s->empties++;
    return SR_OK;
}

sr_status tree_read_word(const treebank *t, const tree_line *line, tree_sentence *s, tree_word *w,
                         bool *skip, sr_failure *why) {
    static const tree_field no_label = {"_", 1};
    const tree_layout *l = t->format == TREES_MALT_TAB ? &malt_tab : &conll;
    const bool multiword = t->format == TREES_CONLLU && tree_is_multiword(line);
    const bool empty = t->format == TREES_CONLLU && tree_is_empty(line);
    sr_status status = check_columns(t, line, why);
    *skip = multiword || empty;
    if (status != SR_OK) return status;
    if (*skip) return multiword ? read_multiword(line, s, why) : read_empty(line, s, why);
    const tree_field *id = &line->column[l->id < 0 ? 0 : l->id];
    if (s->words == MOST_WORDS)
        return tree_fail(line->path, line->number, why, "a sentence of more than %d words",
                         MOST_WORDS);
    if (l->id >= 0 && whole_number(id->byte, (size_t)id->size) != s->words + 1)
        return tree_fail(line->path, line->number, why, "id '%.*s' where %d is due", tree_shown(id),
                         id->byte, s->words + 1);
    *w = (tree_word){.form = line->column[l->form],
                     .coarse = line->column[l->coarse],
                     .fine = line->column[l->fine],
                     .label = l->label < line->columns ? line->column[l->label] : no_label,
                     .line = line->number,
                     .at = 0,
                     .size = line->size};
    s->words++;
    s->empties = 0;
    const tree_field *head = &line->column[l->head];
    w->head = whole_number(head->byte, (size_t)head->size);
    if (w->head >= 0) return SR_OK;
    return tree_fail(line->path, line->number, why, "head '%.*s' of '%.*s' is not a word number",
                     tree_shown(head), head->byte, tree_shown(&w->form), w->form.byte);
}
