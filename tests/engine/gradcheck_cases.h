/* gradcheck_cases.h -- the table of operations that test_cases.c checks. */
#ifndef TESTS_ENGINE_GRADCHECK_CASES_H
#define TESTS_ENGINE_GRADCHECK_CASES_H

#include "engine/ops/ops.h"
#include "testing/gradcheck.h"

enum { CASE_INPUTS = 7 };

typedef struct case_input {
    int rank; /* 0: the op lacks this input */
    int64_t dim[4];
    bool optional; /* the op accepts NULL for it */
} case_input;

typedef struct engine_case {
    const char *name;
    gradcheck_fn *build; /* context: the row itself */
    case_input input[CASE_INPUTS];
    bool large; /* several chunks of work: too slow for numeric differences */
    int a, b;   /* settings that build reads: heads, stride, smoothing ... */
    double p;
    const void *extra; /* tokens, targets, masks */
} engine_case;

extern const engine_case engine_cases[];
extern const int engine_case_count;

static inline int case_inputs(const engine_case *c) {
    int n = 0;
    while (n < CASE_INPUTS && c->input[n].rank) n++;
    return n;
}

#endif
