/* text_looks.c -- guesses which reader fits a text; see text_looks.h. */
#include "data/find/text_looks.h"

#include <stdio.h>
#include <string.h>

#include "base/containers/map.h"
#include "text/line_transform.h"
#include "text/text.h"

enum { LINES_LOOKED_AT = 2000, COLUMNS_MOST = 64, LABEL_MOST = 64 };

typedef struct part {
    const char *byte;
    size_t length;
} part;

static bool is_number(part p, bool real) {
    const size_t sign = p.length > 1 && (*p.byte == '-' || (real && *p.byte == '+'));
    for (size_t i = sign; i < p.length; i++)
        if (!strchr(real ? "0123456789.eE+-" : "0123456789", p.byte[i]) || !p.byte[i]) return false;
    return p.length > sign;
}

static bool begins(part p, const char *word) {
    const size_t length = strlen(word);
    return p.length >= length && !memcmp(p.byte, word, length);
}

/* Columns of a line between tabs, or between blanks of any number; at most COLUMNS_MOST are in
 * column[], the last of all in *last. */
static int cut(part line, bool tabs, part column[COLUMNS_MOST], part *last) {
    int n = 0;
    *last = (part){line.byte, 0};
    for (size_t at = 0; at <= line.length;) {
        while (!tabs && at < line.length && text_separates(line.byte[at])) at++;
        const size_t from = at;
        while (at < line.length && (tabs ? line.byte[at] != '\t' : !text_separates(line.byte[at])))
            at++;
        if (!tabs && at == from) break;
        *last = (part){line.byte + from, at - from};
        if (n < COLUMNS_MOST) column[n] = *last;
        n++, at++;
    }
    return n;
}

/* A walk over the lines that are examined, without blank ones. */
typedef struct look {
    line_walk at;
    part line;
    int lines, blank;
} look;

static bool next_line(look *l) {
    part column[COLUMNS_MOST], last;
    while (l->lines + l->blank < LINES_LOOKED_AT && line_walk_next(&l->at)) {
        l->line = (part){l->at.line, l->at.length};
        if (cut(l->line, false, column, &last) > 0) {
            l->lines++;
            return true;
        }
        l->blank++;
    }
    return false;
}

/* -- kinds of text */

static bool is_tree_line(part line) {
    part c[COLUMNS_MOST], last;
    const int n = cut(line, true, c, &last);
    if (n == 10) return *c[0].byte >= '0' && *c[0].byte <= '9';
    return (n == 3 || n == 4) && is_number(c[2], false);
}

static bool looks_trees(const file_bytes *f) {
    look l = {.at = {.file = f}};
    int words = 0;
    while (next_line(&l)) {
        if (*l.line.byte == '#') continue;
        if (!is_tree_line(l.line)) return false;
        words++;
    }
    return words > 0 && l.blank > 0;
}

/* True for a tag of some scheme. */
static bool is_tag(part p) {
    if (p.length == 1) return *p.byte == 'O';
    return p.length > 2 && strchr("BIESMLUW", *p.byte) && strchr("-_", p.byte[1]);
}

/* Lines with -DOCSTART- and # have other columns. */
static bool looks_tagged(const file_bytes *f, bool tabs, text_looks *looks) {
    look l = {.at = {.file = f}};
    int columns = 0, entities = 0, at = 0, blank = 0;
    bool from_0 = true, from_1 = true;
    while (next_line(&l)) {
        part c[COLUMNS_MOST], last;
        const int n = cut(l.line, tabs, c, &last);
        if (l.blank != blank) at = 0, blank = l.blank;
        if (*l.line.byte == '#' || begins(l.line, "-DOCSTART-")) continue;
        if (n < 2 || (columns && n != columns) || !is_tag(last)) return false;
        columns = n;
        entities += last.length > 1;
        char number[24];
        const part word = c[0];
        snprintf(number, sizeof number, "%d", at);
        from_0 = from_0 && word.length == strlen(number) && begins(word, number);
        snprintf(number, sizeof number, "%d", at + 1);
        from_1 = from_1 && word.length == strlen(number) && begins(word, number);
        at++;
    }
    looks->numbered = columns > 2 && (from_0 || from_1) && l.lines > 1;
    looks->tabs = tabs;
    return entities > 0;
}

static bool looks_csv(const file_bytes *f, bool named) {
    look l = {.at = {.file = f}};
    while (next_line(&l)) {
        const bool quoted = *l.line.byte == '"';
        if (!named && !quoted) return false;
        if (!memchr(l.line.byte, ',', l.line.length)) return false;
    }
    return l.lines > 0;
}

/* Line 1 is "(3 (2 ...". */
static bool looks_like_sentiment(const file_bytes *f) {
    look l = {.at = {.file = f}};
    /* unreached: a text without a line, which text_look has returned before */
    if (!next_line(&l) || l.line.length < 5 || *l.line.byte != '(') return false;
    const size_t digits = strspn(l.line.byte + 1, "0123456789");
    return digits > 0 && l.line.byte[1 + digits] == ' ';
}

/* Most of these first words of lines occur later in other lines, too: no labels. *done false: out
 * of memory. */
static bool are_words(const file_bytes *f, const map *firsts, bool *done) {
    look l = {.at = {.file = f}};
    map inside = {0};
    while (*done && next_line(&l)) {
        part c[COLUMNS_MOST], last;
        const int n = cut(l.line, false, c, &last);
        for (int i = 1; *done && i < n && i < COLUMNS_MOST; i++)
            if (map_find(firsts, c[i].byte, c[i].length) >= 0)
                *done = map_add(&inside, c[i].byte, c[i].length) >= 0;
    }
    const bool most = 2 * inside.count > firsts->count;
    map_free(&inside);
    return most;
}

/* Labels: few different words, or all of them integers or of fastText. The first line may be a
 * header. */
static bool looks_labelled(const file_bytes *f, text_looks *looks) {
    look l = {.at = {.file = f}};
    map labels = {0};
    bool fits = true, tabs = true, integers = true, fast = true;
    while (fits && next_line(&l)) {
        part blanks[COLUMNS_MOST], column[COLUMNS_MOST], last;
        const int words = cut(l.line, false, blanks, &last);
        const int columns = cut(l.line, true, column, &last);
        const part label = blanks[0];
        fits = !text_separates(*l.line.byte) && label.length < LABEL_MOST && columns <= 2;
        tabs = tabs && columns == 2 && column[0].length == label.length;
        integers = integers && (is_number(label, false) || l.lines == 1);
        fast = fast && begins(label, "__label__");
        looks->several = looks->several || (words > 1 && fast && begins(blanks[1], "__label__"));
        fits = fits && map_add(&labels, label.byte, label.length) >= 0;
    }
    enum { FEW = 20 }; /* in running text more words begin lines */
    const int64_t different = labels.count;
    const bool words = fits && !integers && different > FEW && are_words(f, &labels, &fits);
    map_free(&labels);
    if (!fits || words || l.lines < 2) return false;
    if (fast) return true;
    if (integers) return 2 * different <= l.lines + 1 || different <= 10;
    return different > 1 && (tabs ? 2 * different <= l.lines : 10 * different <= l.lines);
}

static bool looks_tabbed(const file_bytes *f, text_looks *looks) {
    look l = {.at = {.file = f}};
    bool export4 = true;
    while (next_line(&l)) {
        part c[COLUMNS_MOST], last;
        const int n = cut(l.line, true, c, &last);
        if (n < 2) return false;
        export4 = export4 && n >= 4 && is_number(c[0], false) && is_number(c[2], false);
    }
    looks->export4 = export4;
    return l.lines > 0;
}

/* A word and numbers in every line but the first, which may count them. */
static bool looks_vectors(const file_bytes *f) {
    look l = {.at = {.file = f}};
    while (next_line(&l)) {
        part c[COLUMNS_MOST], last;
        const int n = cut(l.line, false, c, &last);
        if (n == 2 && l.lines == 1 && is_number(c[0], false) && is_number(c[1], false)) continue;
        if (n < 4) return false;
        for (int i = n < COLUMNS_MOST ? 1 : COLUMNS_MOST - 2; i < n && i < COLUMNS_MOST; i++)
            if (!is_number(c[i], true)) return false;
    }
    return l.lines > 1;
}

static bool has_controls(const file_bytes *f) {
    const size_t most = f->size < 65536 ? f->size : 65536;
    for (size_t i = 0; i < most; i++)
        if (f->byte[i] < 32 && !strchr("\t\n\r\f\v\x1c\x1d\x1e", f->byte[i])) return true;
    return memchr(f->byte, 0, most) != NULL;
}

/* An SVG, XML or HTML file. Texts may begin with another tag; those of IWSLT do. */
static bool is_markup(part line) {
    return begins(line, "<?xml") || begins(line, "<svg") || begins(line, "<!DOCTYPE") ||
           begins(line, "<!doctype") || begins(line, "<html");
}

text_looks text_look(const file_bytes *f, bool csv) {
    text_looks looks = {0};
    file_bytes own = *f; /* a view */
    static const char mark[] = "\xef\xbb\xbf";
    const bool marked = f->size >= 3 && !memcmp(f->byte, mark, 3);
    own.byte += marked ? 3 : 0, own.size -= marked ? 3 : 0;
    look l = {.at = {.file = &own}};
    if (has_controls(&own) || !next_line(&l) || is_markup(l.line)) return looks;
    looks.kind = begins(l.line, "#version:")         ? LOOKS_MERGES
                 : looks_like_sentiment(&own)        ? LOOKS_LABELLED
                 : looks_trees(&own)                 ? LOOKS_TREES
                 : looks_tagged(&own, false, &looks) ? LOOKS_TAGGED
                 : looks_tagged(&own, true, &looks)  ? LOOKS_TAGGED
                 : looks_vectors(&own)               ? LOOKS_VECTORS
                 : looks_csv(&own, csv)              ? LOOKS_CSV
                 : looks_labelled(&own, &looks)      ? LOOKS_LABELLED
                 : looks_tabbed(&own, &looks)        ? LOOKS_TABBED
                                                     : LOOKS_TEXT;
    return looks;
}
