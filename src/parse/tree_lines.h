/* tree_lines.h -- shared declarations of the reader of trees. */
#ifndef PARSE_TREE_LINES_H
#define PARSE_TREE_LINES_H

#include "parse/trees.h"

enum { TREE_COLUMNS = 10, TREE_MANY = TREE_COLUMNS + 1 };

/* A line cut at its tabs. */
typedef struct tree_line {
    const char *path; /* for messages */
    int64_t number;   /* from 1 */
    const char *byte;
    size_t size; /* without LF or CR LF */
    int columns; /* TREE_MANY: more than TREE_COLUMNS */
    tree_field column[TREE_COLUMNS];
} tree_line;

/* A walk over the lines of a text; starts as {0}. */
typedef struct tree_walk {
    size_t at;
    int64_t number;
} tree_walk;

/* False at the end. */
bool tree_next_line(const file_bytes *f, tree_walk *w, tree_line *line);
bool tree_line_blank(const tree_line *line); /* only blanks */

/* Lines of conllu that are no words. */
bool tree_is_comment(const tree_line *line);   /* # */
bool tree_is_multiword(const tree_line *line); /* 3-4 */
bool tree_is_empty(const tree_line *line);     /* 8.1 */
/* The format by the lines of the file; *columns: of its words. */
tree_format tree_recognise(const file_bytes *f, int *columns);

/* A sentence while its lines are read. */
typedef struct tree_sentence {
    int32_t words;      /* so far */
    int32_t reach;      /* last word of the multiword tokens so far */
    int32_t empties;    /* empty nodes after the last word */
    int64_t reach_line; /* the line of that token */
} tree_sentence;

/* Reads a line as a word; *skip: it is a multiword token or an empty node. */
sr_status tree_read_word(const treebank *t, const tree_line *line, tree_sentence *s, tree_word *w,
                         bool *skip, sr_failure *why);
/* Checks that heads are in range and, unless any_heads, form a tree. */
sr_status tree_check_sentence(const treebank *t, const tree_word *word, int32_t words,
                              bool any_heads, sr_failure *why);
sr_status tree_fail(const char *path, int64_t line, sr_failure *why, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Bytes of a field for "%.*s", cut to TREE_SHOWN. */
enum { TREE_SHOWN = 60 };
int tree_shown(const tree_field *f);

#endif
