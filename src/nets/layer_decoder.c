/* layer_decoder.c -- the decoder layer of a transformer: causal self-attention, cross-attention to
 * the encoder's result, FFN (docs/models.md 2.3). */
#include "site_layers.h"

decoder_layer decoder_layer_init(const site_builder *b, const layer_size *s, int i) {
    decoder_layer l;
    l.self_norm = layer_site(b, s, "decoder", i, "self");
    l.self = layer_attention_init(b, s, "decoder", i, "self_attention");
    l.cross_norm = layer_site(b, s, "decoder", i, "cross");
    l.cross = layer_attention_init(b, s, "decoder", i, "cross_attention");
    l.ffn_norm = layer_site(b, s, "decoder", i, "ffn");
    l.ffn = layer_ffn_init(b, s, "decoder", i);
    return l;
}

tensor *decoder_layer_apply(const decoder_layer *l, const text_pass *p, tensor *x, tensor *memory) {
    tensor *h = layer_before(p, l->self_norm, x, p->target);
    h = attention_apply(&l->self, p->pass->tape, h, h, NULL, true);
    x = layer_after(p, l->self_norm, x, h, p->target);
    h = layer_before(p, l->cross_norm, x, p->target);
    h = attention_apply(&l->cross, p->pass->tape, h, memory, p->source_mask, false);
    x = layer_after(p, l->cross_norm, x, h, p->target);
    h = ffn_apply(&l->ffn, p->pass->tape, layer_before(p, l->ffn_norm, x, p->target));
    return layer_after(p, l->ffn_norm, x, h, p->target);
}
