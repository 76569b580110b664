/* pass.c -- rows of normalization sites come from the pass: its mode, its tokens, its penalty. */
#include "nets/pass.h"

#include <string.h>

static const uint8_t *nothing_valid(tape *t, int64_t rows) {
    uint8_t *mask = tape_alloc(t, (size_t)rows);
    return mask ? memset(mask, 0, (size_t)rows) : NULL;
}

norm_rows *pass_rows(pass *p, int64_t samples, int64_t length, const uint8_t *mask) {
    const int64_t rows = samples * length;
    norm_rows *r = tape_alloc(p->tape, sizeof *r);
    int32_t *sample = tape_alloc(p->tape, (size_t)rows * sizeof *sample);
    if (p->absent) mask = nothing_valid(p->tape, rows);
    if (!r || !sample || (p->absent && !mask)) return NULL;
    if (norm_rows_init(r, p->tape, rows, mask, p->mode) != SR_OK) return NULL;
    for (int64_t i = 0; i < rows; i++) sample[i] = (int32_t)(i / length);
    r->sample = sample;
    r->samples = samples;
    r->tokens = (double)(p->tokens ? p->tokens : p->batch->tokens);
    r->penalty = &p->penalty;
    r->gather = p->gather;
    r->gather_context = p->gather_context;
    r->rank = p->rank;
    r->ranks = p->ranks;
    return r;
}

norm_rows *pass_rows_outside(pass *p, int64_t samples, int64_t length) {
    norm_rows *r = pass_rows(p, samples, length, NULL);
    if (!r) return NULL;
    r->mode = NORM_RUNNING;
    r->outside = true;
    r->gather = NULL; /* the gradient of gain and bias is a sum of this process alone */
    return r;
}
