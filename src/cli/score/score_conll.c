/* score_conll.c -- `statrec score conll`: the output of conlleval.pl. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "cli/command_frame.h"
#include "cli/score/scores.h"
#include "score/conll_score.h"
#include "text/line_transform.h"
#include "text/tag_column.h"
#include "text/text.h"

enum { FIRST = 3 };
#define AS_IT_STANDS "conlleval"
#define RECOGNISED   "any"

typedef struct conll_options {
    option_text delimiter, outside, scheme;
    bool raw, latex;
} conll_options;

static bool is_raw(const void *values) {
    return ((const conll_options *)values)->raw;
}

static bool has_parts(const void *values) {
    return !is_raw(values);
}

static const option_use of_raw = {.with = "raw", .holds = is_raw};
static const option_use of_parts = {.with = "raw", .holds = has_parts};

#define AT(field) offsetof(conll_options, field)
/* Letters are the script's. */
#define LETTER_OPTION(key, letter, type, at, default_text, help_line, ...)                         \
    { NULL, key, letter, type, at, default_text, 0, 0, "", "", .help = help_line, __VA_ARGS__ }
static const option rows[] = {
    LETTER_OPTION("delimiter", 'd', OPTION_TEXT, AT(delimiter), "",
                  "separate columns by this, \\t is a tab; empty: blanks and tabs, any number"),
    LETTER_OPTION("raw", 'r', OPTION_FLAG, AT(raw), "no",
                  "read tags without prefix; each word is one phrase"),
    LETTER_OPTION("outside", 'o', OPTION_TEXT, AT(outside), "O",
                  "set the tag of words in no phrase", .use = &of_raw),
    LETTER_OPTION("latex", 'l', OPTION_FLAG, AT(latex), "no", "print rows of a LaTeX table"),
    CHOICE_OPTION(NULL, "scheme", AT(scheme), AS_IT_STANDS,
                  AS_IT_STANDS "|" RECOGNISED "|" TAG_SCHEME_WORDS,
                  "convert tags from this scheme to IOB2; conlleval: do not", .use = &of_parts),
};

static const command_frame frame = {
    "usage: statrec score conll [OPTIONS] < FILE\n"
    "       statrec score conll [OPTIONS] FILE\n\n"
    "Scores the phrases of each type as conlleval.pl (2004-01-26) does. The last two\n"
    "columns of a line are the gold and the predicted tag. Blank lines or lines of '-X-'\n"
    "separate sentences. I-X after O or after another type begins a phrase. Like the\n"
    "script, it ignores S and counts a line of -DOCSTART- as a word. FILE may be gzip\n"
    "(.gz).\n\n",
    {rows, sizeof rows / sizeof rows[0]},
    NULL,
    "0 done, 1 failed, 2 usage.",
    FIRST};

/* -- lines ------------------------------------------------------------------------------------- */

enum { SIDE_GOLD, SIDE_FOUND, SIDES };

typedef struct columns {
    int64_t count; /* without empty ones at the end, as in Perl */
    conll_tag first, last[SIDES];
} columns;

static void take(columns *c, const char *from, const char *to, int64_t *seen) {
    const conll_tag field = {from, (size_t)(to - from)};
    if (!(*seen)++) c->first = field;
    c->last[SIDE_GOLD] = c->last[SIDE_FOUND];
    c->last[SIDE_FOUND] = field;
}

static bool is_blank(char byte) {
    return byte == ' ' || byte == '\t';
}

static columns split_at_blanks(const char *at, const char *end) {
    columns c = {0};
    while (at < end) {
        while (at < end && is_blank(*at)) at++;
        const char *from = at;
        while (at < end && !is_blank(*at)) at++;
        if (at > from) take(&c, from, at, &c.count);
    }
    return c;
}

static columns split_at(const char *at, const char *end, const char *delimiter) {
    const size_t length = strlen(delimiter);
    columns c = {0};
    while ((size_t)(end - at) >= length && memcmp(end - length, delimiter, length) == 0)
        end -= length;
    for (const char *from = at; from < end;) {
        const char *to = from;
        while (to < end && ((size_t)(end - to) < length || memcmp(to, delimiter, length) != 0))
            to++;
        take(&c, from, to, &c.count);
        from = to < end ? to + length : end;
    }
    return c;
}

/* -- phrases ----------------------------------------------------------------------------------- */

typedef struct reading {
    const conll_options *o;
    const char *path;
    conll_scorer *scorer;
    int64_t line, columns; /* columns of the lines so far; 0: none */
    /* with a scheme: a sentence to convert */
    bool convert;
    tag_types types;
    tag_column column[SIDES];
    tag_mark *mark[SIDES]; /* [words] */
    int64_t words, capacity[SIDES];
} reading;

static sr_status keep_word(reading *r, const columns *c, sr_failure *why) {
    for (int k = 0; k < SIDES; k++) {
        if (!vector_reserve(&r->mark[k], &r->capacity[k], r->words + 1, sizeof *r->mark[k]))
            return sr_fail(why, SR_MEMORY, "%s: out of memory for a sentence", r->path);
        sr_status status = tag_column_add(&r->column[k], &r->types, r->line, c->last[k].byte,
                                          c->last[k].size, &r->mark[k][r->words], why);
        if (status != SR_OK) return status;
    }
    r->words++;
    return SR_OK;
}

static conll_tag format(const reading *r, int side, int64_t i, char text[TAG_NAME]) {
    const tag_mark m = r->mark[side][i];
    tag_format(TAG_IOB2, m.part, m.part == TAG_OUTSIDE ? NULL : tag_types_name(&r->types, m.type),
               text);
    return (conll_tag){text, strlen(text)};
}

static sr_status end_sentence(reading *r, sr_failure *why) {
    sr_status status = SR_OK;
    for (int k = 0; k < SIDES; k++) {
        tag_column_end_sentence(&r->column[k]);
        tag_convert(TAG_IOB2, r->mark[k], r->words, r->mark[k]);
    }
    for (int64_t i = 0; status == SR_OK && i < r->words; i++) {
        char gold[TAG_NAME], found[TAG_NAME];
        status = conll_add(r->scorer, format(r, SIDE_GOLD, i, gold),
                           format(r, SIDE_FOUND, i, found), why);
    }
    r->words = 0;
    conll_end_sentence(r->scorer);
    return status;
}

static bool same_text(conll_tag tag, const char *text) {
    return tag.size == strlen(text) && (!tag.size || memcmp(tag.byte, text, tag.size) == 0);
}

/* Each type is a phrase: B-TYPE, or O. malloc'd. */
static char *raw_tag(const conll_options *o, conll_tag *tag) {
    char *text = malloc(tag->size + 3);
    if (!text) return NULL;
    const bool outside = same_text(*tag, o->outside) || same_text(*tag, "O");
    const int n = outside ? snprintf(text, 2, "O")
                          : snprintf(text, tag->size + 3, "B-%.*s", (int)tag->size, tag->byte);
    *tag = (conll_tag){text, (size_t)n};
    return text;
}

static sr_status check_columns(reading *r, int64_t count, bool tabs, sr_failure *why) {
    if (!r->columns) r->columns = count;
    if (r->columns != count) {
        sr_fail(why, SR_FORMAT, "%s:%lld: %lld columns, the lines before have %lld", r->path,
                (long long)r->line, (long long)count, (long long)r->columns);
        if (tabs && !*r->o->delimiter)
            sr_hint(why,
                    "-d '\\t' separates columns at tabs alone, if words have blanks or are empty");
        return SR_FORMAT;
    }
    if (count >= SIDES) return SR_OK;
    sr_fail(why, SR_FORMAT, "%s:%lld: one column; the last two are the gold and the predicted tag",
            r->path, (long long)r->line);
    sr_hint(why, "--delimiter sets the separator of columns");
    return SR_FORMAT;
}

static sr_status read_line(reading *r, const char *line, size_t length, sr_failure *why) {
    const char *delimiter = strcmp(r->o->delimiter, "\\t") ? r->o->delimiter : "\t";
    columns c = *delimiter ? split_at(line, line + length, delimiter)
                           : split_at_blanks(line, line + length);
    if (!c.count) return end_sentence(r, why);
    const sr_status status = check_columns(r, c.count, memchr(line, '\t', length) != NULL, why);
    if (status != SR_OK) return status;
    if (same_text(c.first, "-X-")) return end_sentence(r, why);
    if (r->convert) return keep_word(r, &c, why);
    if (!r->o->raw) return conll_add(r->scorer, c.last[SIDE_GOLD], c.last[SIDE_FOUND], why);
    char *gold = raw_tag(r->o, &c.last[SIDE_GOLD]), *found = raw_tag(r->o, &c.last[SIDE_FOUND]);
    const sr_status added = gold && found
                                ? conll_add(r->scorer, c.last[SIDE_GOLD], c.last[SIDE_FOUND], why)
                                : sr_fail(why, SR_MEMORY, "%s: out of memory for a tag", r->path);
    free(gold);
    free(found);
    return added;
}

/* -- output ------------------------------------------------------------------------------------ */

/* Prints how tags were interpreted. */
static void tell_reading(const tool *t, const reading *r) {
    const conll_counts sum = conll_sum(r->scorer);
    if (r->o->raw) return;
    if (r->convert)
        fprintf(stderr,
                "%s: gold tags read as %s, predicted ones as %s; I or E after O or another type "
                "begins a phrase\n",
                t->name, tag_scheme_name(tag_column_scheme(&r->column[SIDE_GOLD])),
                tag_scheme_name(tag_column_scheme(&r->column[SIDE_FOUND])));
    else
        fprintf(stderr,
                "%s: I-X after O or another type begins a phrase, as in conlleval.pl: %lld gold, "
                "%lld predicted ones do\n",
                t->name, (long long)sum.stray_gold, (long long)sum.stray_found);
    if (sum.unknown)
        tool_warn(t,
                  "%lld tags begin with none of B I O E: conlleval.pl does not know them; "
                  "--scheme any does",
                  (long long)sum.unknown);
}

static sr_status score(const tool *t, const conll_options *o, const char *path, sr_failure *why) {
    file_bytes f = {0};
    reading r = {.o = o, .path = path ? path : "standard input"};
    sr_status status = file_read(path ? path : "/dev/stdin", &f, why);
    if (status == SR_OK) text_strip_mark(&f);
    r.convert = !o->raw && strcmp(o->scheme, AS_IT_STANDS) != 0;
    for (int k = 0; k < SIDES; k++)
        r.column[k] = tag_column_start(r.path, tag_scheme_find(o->scheme)); /* "any": none */
    r.scorer = conll_create();
    if (status == SR_OK && !r.scorer) status = sr_fail(why, SR_MEMORY, "out of memory");
    for (line_walk w = {.file = &f}; status == SR_OK && line_walk_next(&w);) {
        r.line++;
        status = read_line(&r, w.line, w.length, why);
    }
    if (status == SR_OK && r.words) status = end_sentence(&r, why);
    if (status == SR_OK) status = conll_print(r.scorer, o->latex, stdout, why);
    if (status == SR_OK) {
        fflush(stdout); /* keeps the order in one file; tool_finish reports failures */
        tell_reading(t, &r);
    }
    conll_free(r.scorer);
    tag_types_free(&r.types);
    for (int k = 0; k < SIDES; k++) free(r.mark[k]);
    file_free(&f);
    return status;
}

int score_conll(const tool *t) {
    conll_options o = {0};
    sr_failure why = {0};
    int files = 0, code;
    if (command_ends(t, &frame, &o, &files, &code)) return code;
    if (files > 1) return tool_error(t, TOOL_USAGE, "one file expected, %d given", files);
    if (score(t, &o, files ? t->argv[FIRST] : NULL, &why) != SR_OK) return tool_report(t, &why);
    return TOOL_DONE;
}
