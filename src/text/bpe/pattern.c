/* pattern.c -- glossary expressions by PCRE2; see pattern.h. The only file that calls PCRE2.
 *
 * PCRE2 accepts more than Python's re, and some of it with another meaning. check_syntax rejects
 * that, so that a glossary means the same here and in subword-nmt. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/bpe/pattern.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pattern {
    char *text; /* for messages */
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
};

static sr_status reject(const char *text, size_t at, const char *reason, sr_failure *why) {
    return sr_fail(why, SR_USAGE, "glossary '%.200s', byte %zu: %s", text, at, reason);
}

static sr_status out_of_memory(sr_failure *why) {
    return sr_fail(why, SR_MEMORY, "out of memory for a glossary");
}

static bool is_letter_or_digit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static sr_status check_syntax(const char *text, sr_failure *why) {
    bool in_set = false;
    for (size_t i = 0; text[i]; i++) {
        const char *at = text + i;
        if (*at == '\\') {
            i++;
            if (is_letter_or_digit(at[1]) && !strchr("dDwWsS", at[1]))
                return reject(text, i - 1, "this escape is not supported", why);
            if (!at[1]) return reject(text, i - 1, "a backslash at the end", why);
        } else if (in_set) {
            in_set = *at != ']';
            if (*at == '[' && (at[1] == ':' || at[1] == '.' || at[1] == '='))
                return reject(text, i, "a class of characters; write \\[", why);
        } else if (*at == '[') {
            in_set = true;
            i += at[1] == '^';
            i += text[i + 1] == ']'; /* the first one is a plain character */
        } else if (*at == '(' && (at[1] != '?' || at[2] != ':')) {
            reject(text, i, "only groups of the form (?:...) are supported", why);
            sr_hint(why, "a plain parenthesis is written \\(");
            return SR_USAGE;
        } else if (strchr("*+?}", *at) && at[1] == '+') {
            return reject(text, i + 1, "a repetition of a repetition", why);
        } else if (*at == '{' && at[1] == ',') {
            return reject(text, i, "a repetition without its least number", why);
        }
    }
    return SR_OK;
}

static sr_status compile(pattern *p, const char *text, sr_failure *why) {
    static const uint32_t options =
        PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_DOLLAR_ENDONLY;
    int error = PCRE2_ERROR_HEAP_FAILED;
    PCRE2_SIZE at;
    pcre2_compile_context *lines = pcre2_compile_context_create(NULL);
    if (lines) {
        pcre2_set_newline(lines, PCRE2_NEWLINE_LF);
        p->code =
            pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, options, &error, &at, lines);
        pcre2_compile_context_free(lines);
    }
    if (!p->code && error != PCRE2_ERROR_HEAP_FAILED) {
        PCRE2_UCHAR reason[128];
        pcre2_get_error_message(error, reason, sizeof reason);
        return reject(text, at, (const char *)reason, why);
    }
    p->limits = pcre2_match_context_create(NULL);
    if (p->code) p->match = pcre2_match_data_create(1, NULL);
    if (!p->match || !p->limits) return out_of_memory(why);
    pcre2_set_match_limit(p->limits, PATTERN_STEPS);
    pcre2_set_heap_limit(p->limits, PATTERN_MEBIBYTES << 10);
    return SR_OK;
}

pattern *pattern_compile(const char *text, bool edge, sr_failure *why) {
    if (check_syntax(text, why) != SR_OK) return NULL;
    pattern *p = calloc(1, sizeof *p);
    const size_t size = strlen(text) + 2;
    char *whole = malloc(size); /* "TEXT$" or "TEXT" */
    if (whole) snprintf(whole, size, "%s%s", text, edge ? "$" : "");
    if (p) p->text = strdup(text);
    sr_status status = p && whole && p->text ? compile(p, whole, why) : out_of_memory(why);
    free(whole);
    if (status == SR_OK) return p;
    pattern_free(p);
    return NULL;
}

void pattern_free(pattern *p) {
    if (!p) return;
    pcre2_match_data_free(p->match);
    pcre2_match_context_free(p->limits);
    pcre2_code_free(p->code);
    free(p->text);
    free(p);
}

sr_status pattern_search(pattern *p, const char *text, size_t length, size_t from,
                         pattern_range range, bool *found, size_t *start, size_t *end,
                         sr_failure *why) {
    const uint32_t anchors = range == PATTERN_WHOLE      ? PCRE2_ANCHORED | PCRE2_ENDANCHORED
                             : range == PATTERN_AT_START ? PCRE2_ANCHORED
                                                         : 0;
    const int pairs = pcre2_match(p->code, (PCRE2_SPTR)text, length, from,
                                  anchors | (length ? PCRE2_NOTEMPTY : 0), p->match, p->limits);
    *found = pairs >= 0;
    if (pairs < 0 && pairs != PCRE2_ERROR_NOMATCH) {
        if (pairs == PCRE2_ERROR_NOMEMORY) return out_of_memory(why);
        const int shown = length < 40 ? (int)length : 40;
        return sr_fail(why, SR_FORMAT, "glossary '%.200s' takes more than %d steps on '%.*s%s'",
                       p->text, PATTERN_STEPS, shown, text, length > 40 ? "..." : "");
    }
    if (!*found) return SR_OK;
    const PCRE2_SIZE *place = pcre2_get_ovector_pointer(p->match);
    *start = place[0];
    *end = place[1];
    return SR_OK;
}
