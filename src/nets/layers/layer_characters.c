/* layer_characters.c -- features of a word from its characters (docs/models.md 5), 30 per
 * character:
 *
 *   cnn          30 filters over each character and its two neighbours, zeros beyond the ends of
 *   the
 *                word; the maximum over its characters; ReLU
 *   transformer  one layer of the tagger's kind over the characters, 3 heads, FFN 60, post-norm;
 *                the maximum over the characters
 *
 * A padded character (0) is a row of zeros that is not trained. It enters no maximum, is no key and
 * no row of the normalizations. A padded word has features 0. The transformer's sites,
 * characters.norm1 and characters.norm2, are LN unless --norm-at sets others. Its queries and keys
 * have no norm: the papers normalize the layers of words.
 *
 * Initial values: embedding N(1/sqrt(30)), filters as a convolution in PyTorch. */
#include <math.h>
#include <string.h>

#include "nets/layers/tener_layers.h"

enum { CHARACTER_DIM = 30, CHARACTER_FFN = 60, CHARACTER_HEADS = 3, CHARACTER_PAD = 0, WINDOW = 3 };

static sr_status init_layer(character_encoder *e, const site_builder *b,
                            const layer_size *dropouts) {
    model_options options = *b->options;
    const site_builder own = {b->m, &options, b->why};
    strcpy(options.norm, "ln");
    options.qk_norm[0] = 0;
    options.heads = CHARACTER_HEADS;
    e->size = *dropouts;
    e->size.d = CHARACTER_DIM;
    e->size.ffn = CHARACTER_FFN;
    e->size.heads = CHARACTER_HEADS;
    e->size.placement = PLACEMENT_POST;
    e->layer = tener_layer_init(&own, &e->size, "characters", -1);
    return b->why ? b->why->status : SR_OK;
}

sr_status characters_init(character_encoder *e, const site_builder *b, character_kind kind,
                          int64_t characters, const layer_size *dropouts) {
    params *p = &b->m->params;
    *e = (character_encoder){.kind = kind};
    if (kind == CHARACTERS_NONE) return SR_OK;
    if (characters < 1)
        return sr_fail(b->why, SR_USAGE, "--char-encoder: the data have no characters");
    e->width = CHARACTER_DIM;
    e->embedding = params_add(p, "characters.embedding", 2, (int64_t[]){characters, CHARACTER_DIM},
                              INIT_NORMAL, 1 / sqrt((double)CHARACTER_DIM));
    if (!e->embedding) return p->failure.status;
    memset(e->embedding->value + CHARACTER_PAD * CHARACTER_DIM, 0, CHARACTER_DIM * sizeof(real));
    if (kind == CHARACTERS_TRANSFORMER) return init_layer(e, b, dropouts);
    e->filters = tener_linear(p, "characters.filters", WINDOW * CHARACTER_DIM, CHARACTER_DIM);
    return SR_OK;
}

tensor *characters_apply(const character_encoder *e, pass *p) {
    const batch *b = p->batch;
    tape *t = p->tape;
    const int64_t words = b->count * b->source_length, n = words * b->word_length;
    uint8_t *mask = tape_alloc(t, (size_t)n);
    tensor *x =
        op_embedding(t, e->embedding, b->character, words, b->word_length, 1, NULL, CHARACTER_PAD);
    if (!mask || !x) return NULL;
    for (int64_t i = 0; i < n; i++) mask[i] = b->character[i] != CHARACTER_PAD;
    if (e->kind == CHARACTERS_CNN) {
        x = linear_apply(&e->filters, t, op_unfold(t, x, WINDOW));
        x = op_relu(t, op_masked_max(t, x, mask));
    } else {
        const text_pass text = {.pass = p,
                                .size = &e->size,
                                .source_mask = mask,
                                .source = pass_rows(p, words, b->word_length, mask)};
        x = text.source ? tener_layer_apply(&e->layer, &text, x) : NULL;
        x = op_masked_max(t, x, mask);
    }
    const int64_t dim[3] = {b->count, b->source_length, e->width};
    return x ? tape_reshape(t, x, 3, dim) : NULL;
}
