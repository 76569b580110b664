/* transformer_step.c -- the decoder's layers at one position: the formulas of layer_decoder.c for
 * one row per hypothesis (docs/models.md 2.3, 2.8).
 *
 *   q = (h Wq^T + bq)/sqrt(dh) for the new position; its k and v join those of earlier positions
 *   y = Attention(q, k, v) Wo^T + bo       h as in layer_residual.c; q and k with their norms
 */
#include "nets/models/transformer_step.h"

#include <math.h>
#include <string.h>

tensor *step_tensor(const one_step *p, int64_t features) {
    tensor *y = tape_tensor(p->s->tape, 2, (int64_t[]){p->padded, features});
    const int64_t used = p->rows * features;
    if (y) memset(y->value + used, 0, (size_t)(y->count - used) * sizeof *y->value);
    return y;
}

static tensor *step_linear(const one_step *p, const tensor *x, const row_weight *w,
                           const tensor *b) {
    tensor *y = x ? step_tensor(p, w->out) : NULL;
    if (y) row_linear(p->s->tape->threads, p->rows, x->value, w, b->value, y->value);
    return y;
}

tensor *step_embedding(const one_step *p, const int32_t *token) {
    const embedding_layer *e = &p->s->net.target;
    const int64_t d = e->positions.dim[1];
    const real scale = (real)sqrt((double)d);
    const real *position = e->positions.value + (TOKEN_PAD + p->s->t) * d;
    tensor *y = step_tensor(p, d);
    for (int64_t r = 0; y && r < p->rows; r++)
        for (int64_t k = 0; k < d; k++)
            y->value[r * d + k] = scale * e->weight->value[token[r] * d + k] + position[k];
    return y;
}

/* Addresses of a row's keys and values, [t] each. */
static void find_keys(const decoding *s, int64_t layer, int64_t row, const real **key,
                      const real **value) {
    const int64_t d = s->net.size.layer.d;
    const int32_t *slot = s->slot + row * s->t;
    for (int64_t j = 0; j < s->t; j++) {
        const memory *m = &s->self[j][layer];
        key[j] = m->key + slot[j] * d;
        value[j] = m->value + slot[j] * d;
    }
}

/* Attention of every row to the positions so far. */
static tensor *attend_to_self(const one_step *p, int heads, const tensor *q, int64_t layer) {
    const decoding *s = p->s;
    const int64_t d = s->net.size.layer.d, n = s->t;
    tensor *y = q ? step_tensor(p, d) : NULL;
    const real **address = tape_alloc(s->tape, (size_t)(2 * p->rows * n) * sizeof(*address));
    const int64_t one = row_attention_scratch(n);
    real *scratch = tape_alloc(s->tape, (size_t)(p->rows * one) * sizeof *scratch);
    if (!y || !address || !scratch) return NULL;
#pragma omp parallel for num_threads(s->tape->threads) schedule(static)
    for (int64_t r = 0; r < p->rows; r++) {
        const real **key = address + 2 * r * n, **value = key + n;
        find_keys(s, layer, r, key, value);
        row_attention(d, heads, n, q->value + r * d, key, value, scratch + r * one,
                      y->value + r * d);
    }
    return y;
}

/* Rows of the sentence that starts at row r; 0: it starts before. */
static int64_t rows_of_sentence(const one_step *p, int64_t r) {
    const int32_t *sentence = p->s->sentence;
    int64_t rows = 0;
    if (r > 0 && sentence[r] == sentence[r - 1]) return 0;
    while (r + rows < p->rows && sentence[r + rows] == sentence[r]) rows++;
    return rows;
}

/* Attention of every row to its source; average [rows, longest] or NULL. */
static tensor *attend_to_source(const one_step *p, int heads, const tensor *q, int64_t layer,
                                real *average) {
    const decoding *s = p->s;
    const int64_t d = s->net.size.layer.d, layers = s->net.size.decoder_layers;
    tensor *y = q ? step_tensor(p, d) : NULL;
    int64_t most = 0;
    for (int64_t r = 0; r < p->rows; r++) {
        const int64_t one = row_memory_scratch(&s->cross[s->sentence[r] * layers + layer], 1);
        if (one > most) most = one;
    }
    real *scratch = tape_alloc(s->tape, (size_t)(p->rows * most) * sizeof *scratch);
    if (!y || !scratch) return NULL;
#pragma omp parallel for num_threads(s->tape->threads) schedule(static)
    for (int64_t r = 0; r < p->rows; r++)
        row_memory_attention(&s->cross[s->sentence[r] * layers + layer], heads,
                             rows_of_sentence(p, r), q->value + r * d, scratch + r * most,
                             average ? average + r * p->longest : NULL, p->longest,
                             y->value + r * d);
    return y;
}

/* The scaled queries of this step. */
static tensor *step_queries(const one_step *p, const attention_layer *a, const tensor *x,
                            const row_weight *w) {
    tensor *q = step_linear(p, x, w, a->q.b);
    q = attention_normalize_heads(a->norms.q, p->s->tape, q, a->heads, p->text.target);
    return op_scale(p->s->tape, q, a->scale);
}

/* The keys of this step into the memory. */
static bool keep_keys(const one_step *p, const attention_layer *a, const tensor *x,
                      const row_weight *w, real *key) {
    if (!a->norms.k) {
        row_linear(p->s->tape->threads, p->rows, x->value, w, a->k.b->value, key);
        return true;
    }
    tensor *k = step_linear(p, x, w, a->k.b);
    k = attention_normalize_heads(a->norms.k, p->s->tape, k, a->heads, p->text.target);
    if (k) memcpy(key, k->value, (size_t)(p->rows * w->out) * sizeof *key);
    return k != NULL;
}

static tensor *self_attention(const one_step *p, int64_t layer, tensor *x) {
    const attention_layer *a = &p->s->net.decoder[layer].self.attention;
    const row_weight *w = p->s->weights->layer[layer].self;
    const memory *own = &p->s->self[p->s->t - 1][layer];
    tape *t = p->s->tape;
    if (!x || !keep_keys(p, a, x, &w[1], own->key)) return NULL;
    row_linear(t->threads, p->rows, x->value, &w[2], a->v.b->value, own->value);
    tensor *q = step_queries(p, a, x, &w[0]);
    return step_linear(p, attend_to_self(p, a->heads, q, layer), &w[3], a->o.b);
}

static tensor *feed_forward(const one_step *p, int64_t layer, tensor *x) {
    const ffn_layer *f = &p->s->net.decoder[layer].ffn;
    const row_weight *w = p->s->weights->layer[layer].ffn;
    tensor *h = op_relu(p->s->tape, step_linear(p, x, &w[0], f->in.b));
    return step_linear(p, h, &w[1], f->out.b);
}

tensor *step_layer(const one_step *p, int64_t layer, tensor *x) {
    const decoder_layer *l = &p->s->net.decoder[layer];
    const text_pass *text = &p->text;
    tensor *h = self_attention(p, layer, layer_before(text, &l->self.norms, x, text->target));
    x = layer_after(text, &l->self.norms, x, h, text->target);
    const attention_layer *a = &p->s->net.decoder[layer].cross.attention;
    const row_weight *w = p->s->weights->layer[layer].cross;
    const bool last = layer + 1 == p->s->net.size.decoder_layers;
    tensor *q = step_queries(p, a, layer_before(text, &l->cross.norms, x, text->target), &w[0]);
    tensor *y = attend_to_source(p, a->heads, q, layer, last ? p->average : NULL);
    h = step_linear(p, y, &w[1], a->o.b);
    x = layer_after(text, &l->cross.norms, x, h, text->target);
    h = feed_forward(p, layer, layer_before(text, &l->ffn_norm, x, text->target));
    return layer_after(text, &l->ffn_norm, x, h, text->target);
}
