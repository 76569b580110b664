/* vocab_file.c -- dictionaries in fairseq's text form, read (docs/models.md 10.4). */
#include <string.h>

#include "batch/batch.h"
#include "text/line_transform.h"
#include "text/text.h"
#include "text/vocab.h"

enum { FIELDS = 3, SHOWN = 40 /* bytes of a word in a message */ };

/* The fields of a line, separated by spaces or tabs, as a word may have other blanks in it; count
 * may exceed FIELDS. */
typedef struct line_fields {
    const char *at[FIELDS];
    size_t length[FIELDS];
    int count;
} line_fields;

static int shown(size_t length) {
    return length < SHOWN ? (int)length : SHOWN;
}

static bool is_overwrite(const line_fields *l) {
    static const char flag[] = "#fairseq:overwrite";
    return l->count == FIELDS && l->length[2] == sizeof flag - 1 &&
           memcmp(l->at[2], flag, sizeof flag - 1) == 0;
}

static sr_status check_fields(const line_fields *l, const char *path, int64_t line, int64_t *count,
                              sr_failure *why) {
    long long n = (long long)line;
    if (l->count == 0) return sr_fail(why, SR_FORMAT, "%s:%lld: no word in this line", path, n);
    if (l->count == 1)
        return sr_fail(why, SR_FORMAT, "%s:%lld: no count after '%.*s'", path, n,
                       shown(l->length[0]), l->at[0]);
    if (l->count > 2 && !is_overwrite(l))
        return sr_fail(why, SR_FORMAT, "%s:%lld: '%.*s' after word and count", path, n,
                       shown(l->length[2]), l->at[2]);
    bool digits = true;
    *count = 0;
    for (size_t i = 0; i < l->length[1] && digits; i++) {
        const char c = l->at[1][i];
        digits = c >= '0' && c <= '9' && *count <= (INT64_MAX - 9) / 10;
        if (digits) *count = *count * 10 + (c - '0');
    }
    if (digits) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s:%lld: '%.*s' is not a count", path, n, shown(l->length[1]),
                   l->at[1]);
}

/* Every line before this one is a word, so an id gives its line. */
static sr_status check_word(const vocab *v, const line_fields *l, const char *path, int64_t line,
                            sr_failure *why) {
    const char *word = l->at[0];
    const size_t length = l->length[0];
    if (vocab_is_special(word, length) && !is_overwrite(l))
        return sr_fail(why, SR_FORMAT, "%s:%lld: %.*s is a special of every dictionary", path,
                       (long long)line, (int)length, word);
    const int32_t id = vocab_id(v, word, length);
    if (id == TOKEN_UNK || is_overwrite(l)) return SR_OK;
    sr_fail(why, SR_FORMAT, "%s:%lld: '%.*s' is already in line %d", path, (long long)line,
            shown(length), word, id - TOKEN_FIRST_WORD + 1);
    sr_hint(why, "append #fairseq:overwrite to take the later place");
    return SR_FORMAT;
}

static line_fields fields_of(const char *line, size_t length) {
    line_fields l = {.count = 0};
    for (size_t at = 0; l.count <= FIELDS; l.count++) {
        while (at < length && text_separates(line[at])) at++;
        const size_t from = at;
        while (at < length && !text_separates(line[at])) at++;
        if (at == from) break;
        if (l.count < FIELDS) l.at[l.count] = line + from, l.length[l.count] = at - from;
    }
    return l;
}

static sr_status read_words(vocab *v, const file_bytes *f, sr_failure *why) {
    line_walk w = {.file = f};
    sr_status status = SR_OK;
    while (status == SR_OK && line_walk_next(&w)) {
        int64_t count = 0;
        const line_fields l = fields_of(w.line, w.length);
        status = check_fields(&l, f->path, w.number, &count, why);
        if (status == SR_OK) status = check_word(v, &l, f->path, w.number, why);
        if (status == SR_OK && !vocab_append(v, l.at[0], l.length[0], count))
            status = sr_fail(why, SR_MEMORY, "%s: out of memory for the dictionary", f->path);
    }
    if (status == SR_OK && vocab_words(v) == 0)
        status = sr_fail(why, SR_FORMAT, "%s:1: holds no word", f->path);
    return status;
}

vocab *vocab_parse(const file_bytes *f, sr_failure *why) {
    vocab *v = vocab_create();
    if (!v) {
        sr_fail(why, SR_MEMORY, "%s: out of memory for a dictionary", f->path);
        return NULL;
    }
    if (read_words(v, f, why) == SR_OK) return v;
    vocab_free(v);
    return NULL;
}

vocab *vocab_read(const char *path, sr_failure *why) {
    file_bytes f;
    int64_t lines;
    if (text_read(path, &f, &lines, why) != SR_OK) return NULL;
    vocab *v = vocab_parse(&f, why);
    file_free(&f);
    return v;
}
