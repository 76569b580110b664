/* pass.c -- rows of normalization sites come from the pass: its mode, its tokens, its penalty. */
#include "statnet/pass.h"

norm_rows *pass_rows(pass *p, int64_t samples, int64_t length, const uint8_t *mask) {
    const int64_t rows = samples * length;
    norm_rows *r = tape_alloc(p->tape, sizeof *r);
    int32_t *sample = tape_alloc(p->tape, (size_t)rows * sizeof *sample);
    if (!r || !sample || norm_rows_init(r, p->tape, rows, mask, p->mode) != SR_OK) return NULL;
    for (int64_t i = 0; i < rows; i++) sample[i] = (int32_t)(i / length);
    r->sample = sample;
    r->samples = samples;
    r->tokens = (double)p->batch->tokens;
    r->penalty = &p->penalty;
    r->reduce = p->reduce;
    r->reduce_context = p->reduce_context;
    r->rank = p->rank;
    r->ranks = p->ranks;
    return r;
}
