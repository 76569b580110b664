/* regex_search.c -- searching for a regular expression; see pattern.h. Choices are tried in their order,
 * each step at each place once only: what has failed there fails again, wherever the match began. So the
 * time is bounded by length times steps. */
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "text/bpe/pattern_program.h"
#include "text/unicode.h"

typedef struct pattern_place {
    int32_t step;
    size_t at;
} pattern_place;

typedef struct search {
    pattern *p;
    const char *text;
    size_t length;
    int64_t waiting; /* places in p->place */
} search;

/* The character at `at`; its bytes. Of what is no UTF-8 each byte is one. */
static size_t read_at(const search *s, size_t at, uint32_t *code) {
    const unsigned char *c = (const unsigned char *)s->text + at;
    size_t bytes = unicode_decode(c, code);
    if (!bytes) *code = *c;
    return bytes ? bytes : 1;
}

static bool in_class(char class, uint32_t code) {
    switch (class) {
    case 'd':
        return unicode_is_digit(code);
    case 'D':
        return !unicode_is_digit(code);
    case 'w':
        return unicode_is_word(code);
    case 'W':
        return !unicode_is_word(code);
    case 's':
        return unicode_is_blank(code);
    default:
        return !unicode_is_blank(code);
    }
}

static bool fits_set(const search *s, const pattern_step *step, uint32_t code) {
    bool inside = false;
    for (int32_t i = 0; i < step->b && !inside; i++) {
        const pattern_range *r = &s->p->range[step->first + (uint32_t)i];
        inside = r->class ? in_class(r->class, code) : code >= r->first && code <= r->last;
    }
    return inside != (step->a == 1);
}

/* Whether the character at `at` is one that the step takes; then *at moves behind it. */
static bool take(const search *s, const pattern_step *step, size_t *at) {
    uint32_t code;
    if (*at >= s->length) return false;
    size_t bytes = read_at(s, *at, &code);
    bool fits = step->kind == STEP_CHARACTER ? code == step->first
                : step->kind == STEP_ANY     ? code != '\n'
                                             : fits_set(s, step, code);
    if (fits) *at += bytes;
    return fits;
}

static bool add_place(search *s, int32_t step, size_t at) {
    if (!vector_reserve(&s->p->place, &s->p->place_capacity, s->waiting + 1, sizeof *s->p->place))
        return false;
    s->p->place[s->waiting++] = (pattern_place){step, at};
    return true;
}

/* Notes that the place is tried; false: it was before. */
static bool is_new(search *s, pattern_place place) {
    size_t bit = place.at * (size_t)s->p->steps + (size_t)place.step;
    uint8_t mark = (uint8_t)(1u << bit % 8), *byte = &s->p->tried[bit / 8];
    bool found = *byte & mark;
    *byte |= mark;
    return !found;
}

/* Takes one step from a place; *found at the end of a match. False: out of memory. */
static bool advance(search *s, pattern_place from, bool *found) {
    const pattern_step *step = &s->p->step[from.step];
    size_t at = from.at;
    switch (step->kind) {
    case STEP_MATCH:
        *found = true;
        return true;
    case STEP_SPLIT: /* the last one is tried first */
        return add_place(s, from.step + step->b, at) && add_place(s, from.step + step->a, at);
    case STEP_GO:
        return add_place(s, from.step + step->a, at);
    case STEP_BEGIN:
        return at != 0 || add_place(s, from.step + 1, at);
    case STEP_END:
        return at != s->length || add_place(s, from.step + 1, at);
    default:
        return !take(s, step, &at) || add_place(s, from.step + 1, at);
    }
}

static bool make_ready(search *s) {
    size_t bytes = (s->length + 1) * (size_t)s->p->steps / 8 + 1;
    if ((int64_t)bytes > s->p->tried_capacity) {
        free(s->p->tried);
        s->p->tried_capacity = 0;
        if (!(s->p->tried = malloc(2 * bytes))) return false;
        s->p->tried_capacity = 2 * (int64_t)bytes;
    }
    memset(s->p->tried, 0, bytes);
    return true;
}

/* A match from one place. */
static bool match(search *s, size_t start, bool *found, size_t *end) {
    s->waiting = 0;
    if (!add_place(s, 0, start)) return false;
    while (s->waiting && !*found) {
        pattern_place from = s->p->place[--s->waiting];
        *end = from.at;
        if (is_new(s, from) && !advance(s, from, found)) return false;
    }
    return true;
}

sr_status regex_search(pattern *p, const char *text, size_t length, size_t from, bool only_here,
                       bool *found, size_t *start, size_t *end, sr_failure *why) {
    search s = {.p = p, .text = text, .length = length};
    uint32_t code;
    *found = false;
    bool memory = make_ready(&s);
    for (*start = from; memory && *start <= length; *start += read_at(&s, *start, &code)) {
        memory = match(&s, *start, found, end);
        if (*found || only_here || *start == length) break;
    }
    return memory ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
}
