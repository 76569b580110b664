/* parallel_layouts.c -- takes the sentences out of markup; see parallel_layouts.h. */
#include "data/readers/parallel_layouts.h"

#include <stdlib.h>
#include <string.h>

#include "text/line_transform.h"

/* Bytes of a line without its end. */
typedef struct marked_line {
    const char *byte;
    size_t length;
} marked_line;

/* A line begins with one of these, without its blanks: <doc docid="1">. */
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

sr_status parallel_strip_markup(file_bytes *f, int64_t *lines, int64_t **number, int64_t *left_out,
                                sr_failure *why) {
    line_walk w = {.file = f};
    size_t size = 0;
    *left_out = 0;
    if (!line_walk_next(&w)) return SR_OK;
    const marked_line first = {w.line, w.length};
    const bool set = begins_with_tag(first, set_tags);
    if (!set && !begins_with_tag(first, talk_tags)) return SR_OK;
    *number = malloc((size_t)(*lines + 1) * sizeof **number);
    if (!*number) return sr_fail(why, SR_MEMORY, "%s: out of memory for its lines", f->path);
    *lines = 0;
    for (w = (line_walk){.file = f}; line_walk_next(&w);) {
        marked_line keep = {w.line, w.length};
        const char *wrong = set ? find_segment(w.line, w.length, &keep) : NULL;
        if (wrong)
            return sr_fail(why, SR_FORMAT, "%s:%lld: %s", f->path, (long long)w.number, wrong);
        if (!keep.byte || (!set && begins_with_tag(keep, talk_tags))) {
            ++*left_out;
            continue;
        }
        memmove(f->byte + size, keep.byte, keep.length); /* never beyond the line */
        size += keep.length;
        f->byte[size++] = '\n'; /* the tag of the first line left room for it */
        (*number)[(*lines)++] = w.number;
    }
    f->size = size;
    f->byte[size] = 0;
    return SR_OK;
}
