/* layer_embedding.c -- word embedding with sinusoidal positions (docs/models.md 2.1):
 *
 *   x[s, i] = sqrt(d) E[token[s, i]] + P[position i]      padding has no position
 *
 * E ~ N(0, std^2), std = 1/sqrt(d) unless the params set it. The row of <pad> is zero. E may also
 * be the output matrix. */
#include <math.h>
#include <stdlib.h>

#include "nets/layers/text_layers.h"

sr_status embedding_build(const site_builder *b, embedding_layer *e, const char *name,
                          int64_t vocabulary, int64_t longest, int64_t d, int32_t pad) {
    params *p = &b->m->params;
    const double std = p->embed_std > 0 ? p->embed_std : 1 / sqrt((double)d);
    *e = (embedding_layer){.pad = pad};
    e->weight = params_add(p, name, 2, (int64_t[]){vocabulary, d}, INIT_NORMAL, std);
    if (!e->weight)
        return sr_fail(b->why, SR_MEMORY, "out of memory for an embedding of %lld x %lld",
                       (long long)vocabulary, (long long)d);
    for (int64_t k = 0; pad >= 0 && k < d; k++) e->weight->value[pad * d + k] = 0;
    if (embedding_reach(e, longest, b->why) != SR_OK) return SR_MEMORY;
    b->m->embedding = b->m->target_embedding = e->weight;
    return SR_OK;
}

sr_status embedding_reach(embedding_layer *e, int64_t longest, sr_failure *why) {
    /* positions start after the number of <pad> */
    const int64_t count = longest + e->pad + 2, d = e->weight->dim[1];
    if (count <= e->positions.dim[0]) return SR_OK;
    real *value = malloc((size_t)(count * d) * sizeof *value);
    if (!value)
        return sr_fail(why, SR_MEMORY, "out of memory for %lld positions", (long long)count);
    op_embedding_positions(value, count, d, e->pad);
    free(e->positions.value);
    e->positions = (tensor){.rank = 2, .dim = {count, d, 1, 1}, .count = count * d, .value = value};
    return SR_OK;
}

void embedding_free(embedding_layer *e) {
    free(e->positions.value);
    e->positions.value = NULL;
}

tensor *embedding_apply(const embedding_layer *e, tape *t, const int32_t *token, int64_t count,
                        int64_t length) {
    const double scale = sqrt((double)e->positions.dim[1]);
    return op_embedding(t, e->weight, token, count, length, scale, &e->positions, e->pad);
}

/* [d] mean over n rows of P[position]; the words of a sentence come first, its padding has none. */
static double *mean_position(const embedding_layer *e, tape *t, int64_t count, int64_t length,
                             const uint8_t *mask, int64_t n) {
    const int64_t d = e->positions.dim[1];
    double *mean = tape_alloc(t, (size_t)d * sizeof *mean);
    for (int64_t k = 0; mean && k < d; k++) mean[k] = 0;
    for (int64_t i = 0; mean && i < length; i++) {
        const real *here = e->positions.value + (e->pad + 1 + i) * d;
        int64_t words = mask ? 0 : count;
        for (int64_t s = 0; mask && s < count; s++) words += mask[s * length + i] != 0;
        for (int64_t k = 0; k < d; k++) mean[k] += (double)words / (double)n * (double)here[k];
    }
    return mean;
}

norm_rows *embedding_rows(const embedding_layer *e, pass *p, int64_t count, int64_t length,
                          const uint8_t *mask, bool count_padding) {
    norm_rows *r = pass_rows(p, count, length, count_padding ? NULL : mask);
    if (!r) return NULL;
    r->position_mean = mean_position(e, p->tape, count, length, mask, r->valid ? r->valid : 1);
    return r->position_mean ? r : NULL;
}
