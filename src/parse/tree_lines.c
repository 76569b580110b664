/* tree_lines.c -- lines of a file of trees, their columns, and its format. */
#include "parse/tree_lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *tree_format_name(tree_format format) {
    static const char *const names[] = {"auto", "conllx", "conllu", "malt-tab"};
    return names[format];
}

sr_status tree_fail(const char *path, int64_t line, sr_failure *why, const char *format, ...) {
    char text[SR_FAILURE_TEXT];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return sr_fail(why, SR_FORMAT, "%s:%lld: %s", path, (long long)line, text);
}

/* Cuts between characters. */
int tree_shown(const tree_field *f) {
    if (f->size <= TREE_SHOWN) return f->size;
    int size = TREE_SHOWN;
    while (size > 0 && ((unsigned char)f->byte[size] & 0xc0) == 0x80) size--;
    return size;
}

bool tree_next_line(const file_bytes *f, tree_walk *w, tree_line *line) {
    if (w->at >= f->size) return false;
    const char *from = (const char *)f->byte + w->at;
    const char *newline = memchr(from, '\n', f->size - w->at);
    size_t size = newline ? (size_t)(newline - from) : f->size - w->at;
    w->at += size + (newline != NULL);
    if (size && from[size - 1] == '\r') size--;
    *line = (tree_line){.path = f->path, .number = ++w->number, .byte = from, .size = size};
    for (const char *at = from, *end = from + size; at;) {
        const char *tab = memchr(at, '\t', (size_t)(end - at));
        if (line->columns == TREE_COLUMNS) {
            line->columns = TREE_MANY;
            break;
        }
        line->column[line->columns++] = (tree_field){at, (int32_t)((tab ? tab : end) - at)};
        at = tab ? tab + 1 : NULL;
    }
    return true;
}

bool tree_line_blank(const tree_line *line) {
    for (size_t i = 0; i < line->size; i++)
        if (!strchr(" \t\r", line->byte[i])) return false;
    return true;
}

bool tree_is_comment(const tree_line *line) {
    return line->size && line->byte[0] == '#';
}

/* Digits, the mark, digits: the first column. */
static bool is_pair(const tree_line *line, char mark) {
    const tree_field *id = &line->column[0];
    const char *at = memchr(id->byte, mark, (size_t)id->size);
    if (!at || at == id->byte || at + 1 == id->byte + id->size) return false;
    for (const char *p = id->byte; p < id->byte + id->size; p++)
        if (p != at && (*p < '0' || *p > '9')) return false;
    return true;
}

bool tree_is_multiword(const tree_line *line) {
    return is_pair(line, '-');
}

bool tree_is_empty(const tree_line *line) {
    return is_pair(line, '.');
}

static bool has_end(const char *path, const char *end) {
    const size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0;
}

/* A word of malt-tab may be '#': such a line has tabs. */
tree_format tree_recognise(const file_bytes *f, int *columns) {
    tree_line line;
    bool comments = false;
    *columns = 0;
    for (tree_walk w = {0}; tree_next_line(f, &w, &line);) {
        if (tree_line_blank(&line)) continue;
        if (tree_is_comment(&line) && line.columns != 3 && line.columns != 4) {
            comments = true;
            continue;
        }
        if (*columns == 0) *columns = line.columns;
        if (line.columns == 3 || line.columns == 4) return comments ? TREES_AUTO : TREES_MALT_TAB;
        if (line.columns != TREE_COLUMNS) break;
        if (comments || tree_is_multiword(&line) || tree_is_empty(&line)) return TREES_CONLLU;
    }
    if (*columns != TREE_COLUMNS) return TREES_AUTO;
    return has_end(f->path, ".conllu") || has_end(f->path, ".conllu.gz") ? TREES_CONLLU
                                                                         : TREES_CONLLX;
}
