/* pass.c -- rows of normalization sites come from the pass: its mode, its tokens, its penalty. */
#include "nets/pass.h"

#include <string.h>

norm_rows *pass_rows(pass *p, int64_t samples, int64_t length, const uint8_t *mask) {
    const int64_t rows = samples * length;
    norm_rows *r = tape_alloc(p->tape, sizeof *r);
    int32_t *sample = tape_alloc(p->tape, (size_t)rows * sizeof *sample);
    uint8_t *none = p->absent ? tape_alloc(p->tape, (size_t)rows) : NULL;
    if (!r || !sample || (p->absent && !none)) return NULL;
    if (none) mask = memset(none, 0, (size_t)rows);
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
