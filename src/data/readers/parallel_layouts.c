/* parallel_layouts.c -- takes the sentences out of markup; see parallel_layouts.h. */
#include "data/readers/parallel_layouts.h"

#include <stdlib.h>
#include <string.h>

#include "base/containers/hash.h"
#include "text/line_transform.h"

/* Bytes of a line without its end. */
typedef struct marked_line {
    const char *byte;
    size_t length;
} marked_line;

/* A line of markup starts with one of these, without its blanks: <doc docid="1">. */
static const char *const set_tags[] = {"?xml", "mteval", "srcset", "refset", "tstset", NULL};
static const char *const talk_tags[] = {"url",     "title",    "description", "keywords", "talkid",
                                        "speaker", "reviewer", "translator",  "doc",      NULL};

static bool begins_with_tag(marked_line line, const char *const tag[]) {
    size_t at = 0;
    while (at < line.length && (line.byte[at] == ' ' || line.byte[at] == '\t')) at++;
    if (at == line.length || line.byte[at++] != '<') return false;
    if (at < line.length && line.byte[at] == '/') at++;
    for (; *tag; tag++) {
        const size_t length = strlen(*tag);
        if (line.length - at > length && !memcmp(line.byte + at, *tag, length) &&
            strchr(" >", line.byte[at + length]))
            return true;
    }
    return false;
}

/* The text of a segment; byte NULL: the line has none. Returns the fault, or NULL. */
static const char *find_segment(const char *line, size_t length, marked_line *found) {
    static const char open[] = "<seg", close[] = "</seg>";
    const size_t opens = sizeof open - 1, closes = sizeof close - 1;
    size_t from = 0;
    *found = (marked_line){0};
    while (from + opens < length && memcmp(line + from, open, opens) != 0) from++;
    if (from + opens >= length || !strchr(" >", line[from + opens])) return NULL;
    const char *end = memchr(line + from, '>', length - from);
    if (!end) return "<seg without its >";
    from = (size_t)(end - line) + 1;
    for (size_t to = from; to + closes <= length; to++)
        if (!memcmp(line + to, close, closes)) {
            *found = (marked_line){line + from, to - from};
            return NULL;
        }
    return "<seg> without </seg> on its line";
}

/* A walk over the sentences of a text with markup. */
typedef struct sentence_walk {
    line_walk at;
    marked_line sentence;
    bool set, marked; /* a set of segments; the line before was markup */
    /* equal on both sides: of the segment's id, 0 without one; markup seen, runs of lines as one */
    uint64_t key;
    const char *wrong; /* fault of the line */
} sentence_walk;

/* False: a text without markup. */
static bool begin_sentences(sentence_walk *s, const file_bytes *f) {
    *s = (sentence_walk){.at = {.file = f}};
    if (!line_walk_next(&s->at)) return false;
    const marked_line first = {s->at.line, s->at.length};
    s->at = (line_walk){.file = f};
    s->set = begins_with_tag(first, set_tags);
    return s->set || begins_with_tag(first, talk_tags);
}

/* Hash of the attribute id in <seg ...>; 0: none. */
static uint64_t hash_id(const char *line, const char *text) {
    static const char name[] = " id=";
    const char *tag = text;
    while (tag > line && *tag != '<') tag--;
    while (tag + sizeof name < text && memcmp(tag, name, sizeof name - 1) != 0) tag++;
    if (tag + sizeof name >= text) return 0;
    tag += sizeof name - 1;
    tag += *tag == '"' || *tag == '\'';
    return hash_bytes(tag, strcspn(tag, "\"' \t>"));
}

/* False at the end, and at a fault. */
static bool next_sentence(sentence_walk *s) {
    while (line_walk_next(&s->at)) {
        s->sentence = (marked_line){s->at.line, s->at.length};
        if (s->set) s->wrong = find_segment(s->at.line, s->at.length, &s->sentence);
        if (s->wrong) return false;
        const bool markup = s->set ? !s->sentence.byte : begins_with_tag(s->sentence, talk_tags);
        if (!s->set) s->key += markup && !s->marked;
        if (s->set && !markup) s->key = hash_id(s->at.line, s->sentence.byte);
        s->marked = markup;
        if (!markup) return true;
    }
    return false;
}

sr_status parallel_match_sides(const file_bytes side[SIDES], sr_failure *why) {
    sentence_walk w[SIDES];
    if (!begin_sentences(&w[0], &side[0]) || !begin_sentences(&w[1], &side[1])) return SR_OK;
    while (next_sentence(&w[0]) && next_sentence(&w[1])) {
        const bool known = w[0].set == w[1].set && (!w[0].set || (w[0].key && w[1].key));
        if (!known || w[0].key == w[1].key) continue;
        return sr_fail(why, SR_FORMAT, "%s:%lld and %s:%lld would be one pair, but %s",
                       side[0].path, (long long)w[0].at.number, side[1].path,
                       (long long)w[1].at.number,
                       w[0].set ? "the ids of their segments differ"
                                : "the lines of markup before them do not match");
    }
    return SR_OK;
}

sr_status parallel_strip_markup(file_bytes *f, int64_t *lines, int64_t **number, int64_t *left_out,
                                sr_failure *why) {
    sentence_walk w;
    size_t size = 0;
    *left_out = 0;
    if (!begin_sentences(&w, f)) return SR_OK;
    *number = malloc((size_t)(*lines + 1) * sizeof **number);
    if (!*number) return sr_fail(why, SR_MEMORY, "%s: out of memory for its lines", f->path);
    const int64_t all = *lines;
    *lines = 0;
    while (next_sentence(&w)) {
        memmove(f->byte + size, w.sentence.byte, w.sentence.length); /* never beyond the line */
        size += w.sentence.length;
        f->byte[size++] = '\n'; /* the tag of the first line left space for it */
        (*number)[(*lines)++] = w.at.number;
    }
    if (w.wrong)
        return sr_fail(why, SR_FORMAT, "%s:%lld: %s", f->path, (long long)w.at.number, w.wrong);
    *left_out = all - *lines;
    f->size = size;
    f->byte[size] = 0;
    return SR_OK;
}
