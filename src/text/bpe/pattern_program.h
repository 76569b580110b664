/* pattern_program.h -- what a regular expression is compiled to. */
#ifndef TEXT_BPE_PATTERN_PROGRAM_H
#define TEXT_BPE_PATTERN_PROGRAM_H

#include "text/bpe/pattern.h"

typedef enum {
    STEP_CHARACTER, /* first: its code point */
    STEP_ANY,       /* but a line feed */
    STEP_SET,       /* first, count: ranges in `range`; a: 1 of [^...] */
    STEP_SPLIT,     /* go on at +a; if nothing comes of it, at +b */
    STEP_GO,        /* at +a */
    STEP_BEGIN,
    STEP_END,
    STEP_MATCH,
} step_kind;

typedef struct pattern_step {
    step_kind kind;
    int32_t a, b;
    uint32_t first;
} pattern_step;

/* Code points first to last, or a class: 'd', 'w', 's', capital: all others. */
typedef struct pattern_range {
    uint32_t first, last;
    char class;
} pattern_range;

enum { PATTERN_STEPS = 10000, PATTERN_DEPTH = 100 };

struct pattern {
    pattern_step *step; /* [steps] */
    int64_t steps, step_capacity;
    pattern_range *range; /* [ranges] */
    int64_t ranges, range_capacity;
    /* for a search: places tried, and those still to be tried */
    uint8_t *tried;
    struct pattern_place *place;
    int64_t tried_capacity, place_capacity;
};

#endif
