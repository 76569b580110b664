/* layer_head_norm.c -- normalization of the queries or keys of an attention, QK norm
 * (docs/models.md 2.9).
 *
 * In x [..., heads dh] the dh features of each head are one row: [rows heads, dh]. All heads share
 * gain and bias [dh]. The heads of a padded token are padded rows. The heads of a token belong to
 * its sample. */
#include "nets/layers/layers.h"
#include "nets/models.h"

/* NULL when out of memory. */
static const norm_rows *rows_of_heads(tape *t, const norm_rows *rows, int heads) {
    const int64_t n = rows->rows * heads;
    norm_rows *r = tape_alloc(t, sizeof *r), own;
    uint8_t *mask = rows->mask ? tape_alloc(t, (size_t)n) : NULL;
    int32_t *sample = rows->sample ? tape_alloc(t, (size_t)n * sizeof *sample) : NULL;
    if (!r || !mask != !rows->mask || !sample != !rows->sample) return NULL;
    for (int64_t i = 0; mask && i < n; i++) mask[i] = rows->mask[i / heads];
    for (int64_t i = 0; sample && i < n; i++) sample[i] = rows->sample[i / heads];
    if (norm_rows_init(&own, t, n, mask, rows->mode) != SR_OK) return NULL;
    *r = *rows;
    r->rows = own.rows;
    r->valid = own.valid;
    r->mask = own.mask;
    r->index = own.index;
    r->sample = sample;
    r->position_mean = NULL;
    return r;
}

tensor *attention_normalize_heads(norm_site *n, tape *t, tensor *x, int heads,
                                  const norm_rows *rows) {
    if (!n || !x) return x;
    const norm_rows *own = rows_of_heads(t, rows, heads);
    if (own) own = model_rows_for(n, t, own);
    if (!own) return NULL;
    const int64_t dim[2] = {own->rows, n->features};
    tensor *y = norm_apply(n, t, tape_reshape(t, x, 2, dim), own);
    return y ? tape_reshape(t, y, x->rank, x->dim) : NULL;
}
