/* transformer_decoder.c -- a transformer writes sentences word by word, all live hypotheses at once
 * (docs/models.md 2.3, 2.8). Keeps the memory of written words and computes the next ones.
 * transformer_step.c has the layers of a step.
 *
 * Kept for a batch: keys and values of the cross-attention per sentence, of the self-attention per
 * row and step. Rows never move. slot[r][s] is the row that hypothesis r had at step s; only these
 * numbers follow the parents.
 *
 * Bit-identical for any batch and any number of threads: the encoder takes one sentence at a time,
 * without padding. After it each sum belongs to one row (row_ops.h). The layer scale before a
 * normalization sums eight rows in another order than single ones (layer_scale.c). So
 * normalizations get a multiple of ROWS_TOGETHER rows, with zeros after the last one.
 *
 * The decoder normalizes one row at a time, so methods with statistics over the rows of a sentence
 * are rejected.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "nets/models/transformer_step.h"

enum { ROWS_TOGETHER = 8, POSITIONS_MORE = 256 };

/* -- making */

/* Rejects methods with statistics over a sentence, except for the norm of the source's keys. */
static sr_status check_norms(const model *m, sr_failure *why) {
    for (int i = 0; i < m->sites; i++) {
        const norm_site *n = m->site[i];
        if (strncmp(n->name, "decoder.", strlen("decoder.")) != 0 ||
            strstr(n->name, ".cross_attention.k_norm"))
            continue;
        if (!strcmp(n->method->axis, "sample") && !n->method->token_samples)
            return sr_fail(why, SR_USAGE,
                           "%s: %s takes statistics over whole sentences; decoding has none",
                           n->name, n->method->name);
    }
    return SR_OK;
}

static void decoding_free(void *decoder) {
    decoding *s = decoder;
    if (!s) return;
    packed_weights_free(s->own);
    embedding_free(&s->net.target);
    free(s->self);
    free(s->slot);
    free(s->next_slot);
    tape_free(s->tape);
    arena_free(s->cache);
    free(s);
}

static sr_status decoding_init(decoding *s, const model *m, const decoding *beside, int threads,
                               sr_failure *why) {
    const transformer *net = m->self;
    sr_status status = check_norms(m, why);
    if (status != SR_OK) return status;
    s->net = *net;
    s->net.target.positions.value = NULL; /* one of our own in `start`, for both sides */
    s->net.target.positions.dim[0] = 0;
    s->weights = beside ? beside->weights : (s->own = packed_weights_make(net, why));
    if (!s->weights) return why ? why->status : SR_MEMORY;
    s->tape = tape_create(threads, why);
    if (!s->tape) return why ? why->status : SR_MEMORY;
    s->cache = arena_create(0);
    return s->cache ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for decoding");
}

static void *decoding_create(model *m, const void *beside, int threads, sr_failure *why) {
    decoding *s = calloc(1, sizeof *s);
    if (s && decoding_init(s, m, beside, threads, why) == SR_OK) return s;
    if (!s) sr_fail(why, SR_MEMORY, "out of memory for decoding");
    decoding_free(s);
    return NULL;
}

/* -- encoding */

/* Positions 0 .. count-1 of a sentence; the table is a formula, so any length has one. */
static sr_status reach_positions(decoding *s, int64_t count, sr_failure *why) {
    tensor *p = &s->net.target.positions;
    const int64_t d = p->dim[1], wanted = count + TOKEN_PAD + 2;
    if (wanted <= p->dim[0]) return SR_OK;
    const int64_t grown = wanted + POSITIONS_MORE;
    real *value = malloc((size_t)(grown * d) * sizeof *value);
    if (!value)
        return sr_fail(why, SR_MEMORY, "out of memory for %lld positions", (long long)grown);
    free(p->value);
    op_embedding_positions(value, grown, d, TOKEN_PAD);
    *p = (tensor){.rank = 2, .dim = {grown, d, 1, 1}, .count = grown * d, .value = value};
    s->net.source.positions = *p;
    return SR_OK;
}

/* False when out of memory. */
static bool keep_memory(decoding *s, int heads, const tensor *key, const tensor *value,
                        row_memory *kept) {
    if (!key || !value) return false;
    const int64_t d = tensor_features(key), n = tensor_rows(key);
    real *at = arena_alloc(s->cache, (size_t)row_memory_size(d, heads, n) * sizeof *at);
    if (at) *kept = row_memory_make(d, heads, n, key->value, value->value, at);
    return at != NULL;
}

/* Keys and values of every decoder layer for one sentence. */
static sr_status encode_sentence(decoding *s, const model_source *source, row_memory *cross,
                                 sr_failure *why) {
    uint8_t *mask = arena_alloc(s->cache, (size_t)source->length);
    if (!mask) return sr_fail(why, SR_MEMORY, "out of memory for a sentence");
    memset(mask, 1, (size_t)source->length);
    const batch b = {.task = TASK_PAIRS,
                     .count = 1,
                     .source_length = source->length,
                     .source = source->token,
                     .source_mask = mask};
    tape_reset(s->tape, rng_create(0), false, false);
    pass p = {.tape = s->tape, .batch = &b, .mode = NORM_RUNNING};
    text_pass text = {.pass = &p, .size = &s->net.size.layer, .source_mask = mask};
    text.source = pass_rows(&p, 1, source->length, NULL);
    tensor *x = text.source ? transformer_encode(&s->net, &text) : NULL;
    bool whole = true;
    for (int i = 0; i < s->net.size.decoder_layers && x; i++) {
        const attention_layer *a = &s->net.decoder[i].cross.attention;
        tensor *k = linear_apply(&a->k, s->tape, x);
        k = attention_normalize_heads(a->norms.k, s->tape, k, a->heads, text.source);
        whole &= keep_memory(s, a->heads, k, linear_apply(&a->v, s->tape, x), &cross[i]);
    }
    sr_status status = tape_status(s->tape, why);
    return status == SR_OK && !whole ? sr_fail(why, SR_MEMORY, "out of memory for a sentence")
                                     : status;
}

static sr_status decoding_start(void *decoder, const model_source *source, int64_t count,
                                sr_failure *why) {
    decoding *s = decoder;
    const int64_t layers = s->net.size.decoder_layers;
    arena_reset(s->cache);
    s->count = s->rows = count;
    s->t = 0;
    s->cross = arena_alloc(s->cache, (size_t)(count * layers) * sizeof *s->cross);
    s->length = arena_alloc(s->cache, (size_t)count * sizeof *s->length);
    s->sentence = arena_alloc(s->cache, (size_t)count * sizeof *s->sentence);
    if (!s->cross || !s->length || !s->sentence)
        return sr_fail(why, SR_MEMORY, "out of memory for %lld sentences", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        s->length[i] = source[i].length;
        s->sentence[i] = (int32_t)i;
        sr_status status = reach_positions(s, source[i].length, why);
        if (status == SR_OK) status = encode_sentence(s, &source[i], s->cross + i * layers, why);
        if (status != SR_OK) return status;
    }
    return SR_OK;
}

/* -- the memory of a step */

/* Keys and values [rows, d] of a step for every layer; NULL when out of memory. */
static memory *step_memory(decoding *s, int64_t rows) {
    const int64_t layers = s->net.size.decoder_layers, d = s->net.size.layer.d;
    memory *m = arena_alloc(s->cache, (size_t)layers * sizeof *m);
    real *key = arena_alloc(s->cache, (size_t)(2 * layers * rows * d) * sizeof *key);
    for (int64_t i = 0; m && key && i < layers; i++, key += 2 * rows * d)
        m[i] = (memory){key, key + rows * d};
    return key ? m : NULL;
}

static sr_status check_step(const decoding *s, int64_t rows, const int32_t *parent,
                            const int32_t *token, sr_failure *why) {
    const int64_t vocabulary = s->net.target.weight->dim[0];
    for (int64_t r = 0; r < rows; r++)
        if (parent[r] < 0 || parent[r] >= s->rows || token[r] < 0 || token[r] >= vocabulary)
            return sr_fail(why, SR_USAGE, "row %lld continues row %d of %lld with token %d of %lld",
                           (long long)r, parent[r], (long long)s->rows, token[r],
                           (long long)vocabulary);
    return SR_OK;
}

/* The rows of this step inherit sentence and places from their parents; memory of a step more. */
static sr_status advance(decoding *s, int64_t rows, const int32_t *parent, sr_failure *why) {
    const int64_t done = s->t;
    int32_t *sentence = arena_alloc(s->cache, (size_t)rows * sizeof *sentence);
    memory *own = step_memory(s, rows);
    if (!sentence || !own ||
        !vector_reserve(&s->self, &s->self_capacity, done + 1, sizeof(*s->self)) ||
        !vector_reserve(&s->slot, &s->slot_capacity, rows * (done + 1), sizeof *s->slot) ||
        !vector_reserve(&s->next_slot, &s->next_capacity, rows * (done + 1), sizeof *s->next_slot))
        return sr_fail(why, SR_MEMORY, "out of memory for word %lld of %lld hypotheses",
                       (long long)done + 1, (long long)rows);
    for (int64_t r = 0; r < rows; r++) {
        int32_t *to = s->next_slot + r * (done + 1);
        if (done) memcpy(to, s->slot + parent[r] * done, (size_t)done * sizeof *to);
        to[done] = (int32_t)r;
        sentence[r] = s->sentence[parent[r]];
    }
    int32_t *spent = s->slot;
    s->slot = s->next_slot;
    s->next_slot = spent;
    const int64_t spent_capacity = s->slot_capacity;
    s->slot_capacity = s->next_capacity;
    s->next_capacity = spent_capacity;
    s->sentence = sentence;
    s->rows = rows;
    s->self[s->t++] = own;
    return reach_positions(s, s->t, why);
}

/* -- words */

static int64_t block_count(const decoding *s) {
    return (s->weights->output.out + WORDS_TOGETHER - 1) / WORDS_TOGETHER;
}

static sr_status find_words(const one_step *p, const tensor *x, sr_failure *why) {
    decoding *s = p->s;
    tape *t = s->tape;
    const int64_t V = s->weights->output.out, blocks = block_count(s);
    tensor *logits = x ? step_tensor(p, V) : NULL;
    double *sum = tape_alloc(t, (size_t)p->rows * sizeof *sum);
    real *largest = tape_alloc(t, (size_t)(p->rows * blocks) * sizeof *largest);
    if (!logits || !sum || !largest) return tape_status(t, why);
    row_linear(t->threads, p->rows, x->value, &s->weights->output, NULL, logits->value);
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t r = 0; r < p->rows; r++)
        sum[r] = row_log_sum(V, logits->value + r * V, WORDS_TOGETHER, largest + r * blocks);
    for (int64_t r = 0; r < p->rows; r++)
        if (!isfinite(sum[r]))
            return sr_fail(why, SR_STATE, "word %lld: the model's output is not finite",
                           (long long)s->t);
    s->logits = logits->value, s->log_sum = sum, s->largest = largest;
    return tape_status(t, why);
}

static void decoding_log_p(const void *decoder, int64_t row, int64_t first, int64_t count,
                           double *log_p) {
    const decoding *s = decoder;
    const real *logit = s->logits + row * s->weights->output.out + first;
    const double log_sum = s->log_sum[row];
    for (int64_t w = 0; w < count; w++) log_p[w] = (double)logit[w] - log_sum;
}

/* Uses the same subtraction: the larger logit has the larger log p, to the last bit. */
static void decoding_largest(const void *decoder, int64_t row, double *log_p) {
    const decoding *s = decoder;
    const int64_t blocks = block_count(s);
    const real *largest = s->largest + row * blocks;
    const double log_sum = s->log_sum[row];
    for (int64_t i = 0; i < blocks; i++) log_p[i] = (double)largest[i] - log_sum;
}

/* Among equal weights the first wins. */
static void write_source_at(const one_step *p, int32_t *source_at) {
    for (int64_t r = 0; r < p->rows; r++) {
        const real *weight = p->average + r * p->longest;
        const int64_t words = p->s->length[p->s->sentence[r]] - 1;
        source_at[r] = words > 0 ? 0 : -1;
        for (int64_t j = 1; j < words; j++)
            if (weight[j] > weight[source_at[r]]) source_at[r] = (int32_t)j;
    }
}

static sr_status decoding_step(void *decoder, int64_t rows, const int32_t *parent,
                               const int32_t *token, int32_t *source_at, sr_failure *why) {
    decoding *s = decoder;
    sr_status status = check_step(s, rows, parent, token, why);
    if (status == SR_OK) status = advance(s, rows, parent, why);
    if (status != SR_OK) return status;
    tape_reset(s->tape, rng_create(0), false, false);
    pass whole = {.tape = s->tape, .mode = NORM_RUNNING};
    norm_rows normed;
    one_step p = {.s = s, .rows = rows, .longest = 1};
    for (int64_t r = 0; r < rows; r++)
        if (s->length[s->sentence[r]] > p.longest) p.longest = s->length[s->sentence[r]];
    p.padded = (rows + ROWS_TOGETHER - 1) / ROWS_TOGETHER * ROWS_TOGETHER;
    p.text = (text_pass){.pass = &whole, .size = &s->net.size.layer, .target = &normed};
    norm_rows_init(&normed, s->tape, p.padded, NULL, NORM_RUNNING);
    if (source_at) p.average = tape_alloc(s->tape, (size_t)(rows * p.longest) * sizeof *p.average);
    tensor *x = step_embedding(&p, token);
    x = layer_embedded(&p.text, s->net.decoder_embedding, x, p.text.target);
    for (int64_t i = 0; i < s->net.size.decoder_layers; i++) x = step_layer(&p, i, x);
    if (s->net.decoder_final) x = layer_normalize(&p.text, s->net.decoder_final, x, p.text.target);
    status = find_words(&p, x, why);
    if (status == SR_OK && source_at) write_source_at(&p, source_at);
    return status;
}

const model_decoder transformer_decoder = {
    .create = decoding_create,
    .free = decoding_free,
    .start = decoding_start,
    .step = decoding_step,
    .log_p = decoding_log_p,
    .largest = decoding_largest,
};
