/* layer_encoder.c -- the encoder layer of a transformer: self-attention, FFN (docs/models.md 2.3).
 */
#include "engine/ops/attention/attention_ops.h"
#include "nets/layers/text_layers.h"

encoder_layer encoder_layer_init(const site_builder *b, const layer_size *s, const char *side,
                                 int i) {
    encoder_layer l;
    l.self = layer_attention_init(b, s, side, i, "attention", "norm1");
    l.ffn = layer_ffn_init(b, s, side, i, "norm2", s->relu_dropout, 0, &l.ffn_norm);
    return l;
}

tensor *encoder_layer_apply(const encoder_layer *l, const text_pass *p, tensor *x) {
    x = layer_attention(p, &l->self, x, p->source, NULL,
                        (attention_mask){p->source_mask, p->source_mask, p->causal});
    return layer_ffn(p, &l->ffn, &l->ffn_norm, x, p->source);
}

void encoder_stack_init(encoder_stack *e, const site_builder *b, const layer_size *s,
                        const char *side, int64_t layers) {
    e->layers = layers;
    e->embedded = layer_peri_site(b, s, side, "embedding");
    for (int i = 0; i < layers; i++) e->layer[i] = encoder_layer_init(b, s, side, i);
    if (layer_leaves_sum(s)) e->final = layer_site(b, s, side, -1, "final");
}

tensor *encoder_stack_apply(const encoder_stack *e, const text_pass *p, tensor *embedding) {
    tensor *x = layer_embedded(p, e->embedded, embedding, p->source);
    for (int i = 0; i < e->layers; i++) x = encoder_layer_apply(&e->layer[i], p, x);
    return e->final ? layer_normalize(p, e->final, x, p->source) : x;
}
