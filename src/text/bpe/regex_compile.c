/* regex_compile.c -- from a regular expression to steps; see pattern.h. Jumps are relative, so that
 * steps can be moved and, for {m,n}, copied. */
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "text/bpe/pattern_program.h"
#include "text/unicode.h"

enum { NO_LIMIT = -1, REPEATS = 1000 };

typedef struct reader {
    pattern *p;
    const char *text, *at;
    int depth;
    bool empty; /* what was read last fits the empty text */
    sr_failure *why;
} reader;

static sr_status read_choice(reader *r);

static sr_status refuse(const reader *r, const char *at, const char *what) {
    return sr_fail(r->why, SR_USAGE, "glossary '%.200s', byte %td: %s", r->text, at - r->text,
                   what);
}

/* -- steps ------------------------------------------------------------------------------------- */

static sr_status add_step(reader *r, pattern_step step) {
    pattern *p = r->p;
    if (p->steps == PATTERN_STEPS) return refuse(r, r->at, "the expression is too long");
    if (!vector_reserve(&p->step, &p->step_capacity, p->steps + 1, sizeof *p->step))
        return sr_fail(r->why, SR_MEMORY, "out of memory");
    p->step[p->steps++] = step;
    return SR_OK;
}

/* Before the steps from `start` on. */
static sr_status insert_step(reader *r, int64_t start, pattern_step step) {
    sr_status status = add_step(r, step);
    if (status != SR_OK) return status;
    pattern_step *s = r->p->step + start;
    memmove(s + 1, s, (size_t)(r->p->steps - 1 - start) * sizeof *s);
    *s = step;
    return SR_OK;
}

static sr_status copy_steps(reader *r, int64_t start, int64_t end) {
    sr_status status = SR_OK;
    for (int64_t i = start; status == SR_OK && i < end; i++) status = add_step(r, r->p->step[i]);
    return status;
}

/* A choice between what stands `near` and what stands `far`, the former first unless lazy. */
static pattern_step split(int64_t near, int64_t far, bool lazy) {
    return (pattern_step){
        .kind = STEP_SPLIT, .a = (int32_t)(lazy ? far : near), .b = (int32_t)(lazy ? near : far)};
}

/* -- characters and sets ----------------------------------------------------------------------- */

static uint32_t read_character(reader *r) {
    uint32_t code;
    size_t bytes = unicode_decode((const uint8_t *)r->at, &code);
    if (!bytes) code = (unsigned char)*r->at;
    r->at += bytes ? bytes : 1;
    return code;
}

static bool is_letter_or_digit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* What stands behind a backslash, or a plain character: a range of one, or a class. */
static sr_status read_element(reader *r, pattern_range *range) {
    *range = (pattern_range){0};
    if (*r->at == '\\') {
        const char c = *++r->at;
        if (!c) return refuse(r, r->at - 1, "a backslash at the end");
        if (strchr("dDwWsS", c)) {
            range->class = c;
            r->at++;
            return SR_OK;
        }
        if (is_letter_or_digit(c)) return refuse(r, r->at - 1, "this escape is not supported");
    }
    range->first = range->last = read_character(r);
    return SR_OK;
}

static sr_status add_range(reader *r, pattern_range range) {
    pattern *p = r->p;
    if (!vector_reserve(&p->range, &p->range_capacity, p->ranges + 1, sizeof *p->range))
        return sr_fail(r->why, SR_MEMORY, "out of memory");
    p->range[p->ranges++] = range;
    return SR_OK;
}

/* One element of [...], as "a-z". */
static sr_status read_range(reader *r) {
    const char *start = r->at;
    pattern_range range, last;
    sr_status status = read_element(r, &range);
    if (status == SR_OK && r->at[0] == '-' && r->at[1] && r->at[1] != ']') {
        r->at++;
        if ((status = read_element(r, &last)) != SR_OK) return status;
        if (range.class || last.class || last.first < range.first)
            return refuse(r, start, "not a range of characters");
        range.last = last.first;
    }
    return status == SR_OK ? add_range(r, range) : status;
}

static sr_status read_set(reader *r) {
    const char *start = r->at++;
    pattern_step step = {.kind = STEP_SET, .first = (uint32_t)r->p->ranges};
    if (*r->at == '^') step.a = 1, r->at++;
    sr_status status = SR_OK;
    for (bool first = true; status == SR_OK && (first || *r->at != ']'); first = false) {
        if (!*r->at) return refuse(r, start, "the ] is missing");
        status = read_range(r);
    }
    r->at++;
    step.b = (int32_t)(r->p->ranges - step.first);
    return status == SR_OK ? add_step(r, step) : status;
}

static sr_status read_single(reader *r) {
    pattern_range range;
    sr_status status = read_element(r, &range);
    if (status != SR_OK) return status;
    if (!range.class)
        return add_step(r, (pattern_step){.kind = STEP_CHARACTER, .first = range.first});
    pattern_step step = {.kind = STEP_SET, .b = 1, .first = (uint32_t)r->p->ranges};
    status = add_range(r, range);
    return status == SR_OK ? add_step(r, step) : status;
}

/* -- the expression ---------------------------------------------------------------------------- */

static sr_status read_group(reader *r) {
    const char *start = r->at;
    if (strncmp(r->at, "(?:", 3) != 0) {
        refuse(r, start, "only groups of the form (?:...) are supported");
        sr_hint(r->why, "a plain parenthesis is written \\(");
        return SR_USAGE;
    }
    if (++r->depth > PATTERN_DEPTH) return refuse(r, start, "too many groups in each other");
    r->at += 3;
    sr_status status = read_choice(r);
    if (status == SR_OK && *r->at != ')') return refuse(r, start, "the ) is missing");
    r->at++;
    r->depth--;
    return status;
}

/* The numbers of {m}, {m,}, {,n}, {m,n} at the place; false: the brace is a plain character. */
static bool read_braces(const char *at, int *least, int *most, const char **end) {
    int number[2] = {0, 0}, digits[2] = {0, 0}, side = 0;
    for (at++; *at && *at != '}'; at++) {
        if (*at == ',' && side == 0)
            side = 1;
        else if (*at < '0' || *at > '9')
            return false;
        else if (number[side] <= REPEATS)
            number[side] = number[side] * 10 + (*at - '0'), digits[side]++;
    }
    if (!*at || (side == 0 && !digits[0])) return false;
    *least = number[0];
    *most = side == 0 ? number[0] : digits[1] ? number[1] : NO_LIMIT;
    *end = at + 1;
    return true;
}

static bool read_repeat(reader *r, int *least, int *most) {
    *least = *r->at == '+', *most = *r->at == '?' ? 1 : NO_LIMIT;
    if (*r->at == '{') return read_braces(r->at, least, most, &r->at);
    if (!*r->at || !strchr("*+?", *r->at)) return false;
    r->at++;
    return true;
}

/* The steps from `start` on once more, to be taken or not; `all`: as often as they fit. */
static sr_status add_optional(reader *r, int64_t start, int64_t end, bool all, bool lazy) {
    int64_t length = end - start, at = r->p->steps;
    sr_status status = add_step(r, split(1, length + 1 + all, lazy));
    if (status == SR_OK) status = copy_steps(r, start, end);
    if (status == SR_OK && all)
        status = add_step(r, (pattern_step){.kind = STEP_GO, .a = (int32_t)(at - r->p->steps)});
    return status;
}

/* Repeats the steps [start, end): copies them behind, then takes the originals away. */
static sr_status repeat(reader *r, int64_t start, int least, int most, bool lazy) {
    int64_t end = r->p->steps, length = end - start;
    sr_status status = SR_OK;
    for (int i = 0; status == SR_OK && i < least; i++) status = copy_steps(r, start, end);
    if (status == SR_OK && most == NO_LIMIT) status = add_optional(r, start, end, true, lazy);
    for (int i = least; status == SR_OK && i < most; i++)
        status = add_optional(r, start, end, false, lazy);
    if (status != SR_OK) return status;
    pattern_step *s = r->p->step + start;
    r->p->steps -= length;
    memmove(s, s + length, (size_t)(r->p->steps - start) * sizeof *s);
    return SR_OK;
}

static sr_status read_item(reader *r) {
    r->empty = *r->at == '^' || *r->at == '$';
    switch (*r->at) {
    case '(':
        return read_group(r);
    case '[':
        return read_set(r);
    case '.':
        r->at++;
        return add_step(r, (pattern_step){.kind = STEP_ANY});
    case '^':
    case '$':
        return add_step(r, (pattern_step){.kind = *r->at++ == '^' ? STEP_BEGIN : STEP_END});
    default:
        return read_single(r);
    }
}

/* The steps from `start` on, read at `item`, as often as what follows says. */
static sr_status read_repeated(reader *r, int64_t start, const char *item) {
    int least, most, other;
    const char *at = r->at;
    if (!read_repeat(r, &least, &most)) return SR_OK;
    if (*item == '^' || *item == '$') return refuse(r, at, "nothing to repeat");
    if (least > REPEATS || most > REPEATS || (most != NO_LIMIT && most < least))
        return refuse(r, at, "numbers of repetitions that are too large or in the wrong order");
    /* Python has rules of its own for this */
    if (r->empty && most != 1) return refuse(r, at, "a repetition of what fits the empty text");
    bool lazy = *r->at == '?';
    r->at += lazy;
    at = r->at;
    if (read_repeat(r, &other, &other)) return refuse(r, at, "a repetition of a repetition");
    r->empty |= least == 0;
    return repeat(r, start, least, most, lazy);
}

static sr_status read_sequence(reader *r) {
    sr_status status = SR_OK;
    bool empty = true;
    while (status == SR_OK && *r->at && *r->at != '|' && *r->at != ')') {
        int64_t start = r->p->steps;
        int least, most;
        const char *item = r->at;
        if (read_repeat(r, &least, &most)) return refuse(r, item, "nothing to repeat");
        status = read_item(r);
        if (status == SR_OK) status = read_repeated(r, start, item);
        empty &= r->empty;
    }
    r->empty = empty;
    return status;
}

static sr_status read_choice(reader *r) {
    int64_t start = r->p->steps;
    sr_status status = read_sequence(r);
    if (status != SR_OK || *r->at != '|') return status;
    r->at++;
    status = insert_step(r, start, split(1, r->p->steps - start + 2, false));
    int64_t go = r->p->steps;
    bool empty = r->empty;
    if (status == SR_OK) status = add_step(r, (pattern_step){.kind = STEP_GO});
    if (status == SR_OK) status = read_choice(r);
    r->empty |= empty;
    if (status == SR_OK) r->p->step[go].a = (int32_t)(r->p->steps - go);
    return status;
}

static sr_status compile(reader *r, bool whole) {
    sr_status status = SR_OK;
    if (whole) status = add_step(r, (pattern_step){.kind = STEP_BEGIN});
    if (status == SR_OK) status = read_choice(r);
    if (status == SR_OK && *r->at) return refuse(r, r->at, "a ) without its (");
    if (status == SR_OK && whole) status = add_step(r, (pattern_step){.kind = STEP_END});
    return status == SR_OK ? add_step(r, (pattern_step){.kind = STEP_MATCH}) : status;
}

pattern *regex_compile(const char *text, bool whole, sr_failure *why) {
    pattern *p = calloc(1, sizeof *p);
    reader r = {.p = p, .text = text, .at = text, .why = why};
    sr_status status = p ? compile(&r, whole) : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) return p;
    pattern_free(p);
    return NULL;
}

void pattern_free(pattern *p) {
    if (!p) return;
    free(p->step);
    free(p->range);
    free(p->tried);
    free(p->place);
    free(p);
}
