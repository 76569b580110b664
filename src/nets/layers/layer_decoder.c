/* layer_decoder.c -- the decoder layer of a transformer: causal self-attention, cross-attention to
 * the encoder's result, FFN (docs/models.md 2.3). */
#include "engine/ops/attention/attention_ops.h"
#include "nets/layers/text_layers.h"

decoder_layer decoder_layer_init(const site_builder *b, const layer_size *s, int i) {
    decoder_layer l;
    l.self = layer_attention_init(b, s, "decoder", i, "self_attention", "self");
    l.cross = layer_attention_init(b, s, "decoder", i, "cross_attention", "cross");
    l.ffn = layer_ffn_init(b, s, "decoder", i, "ffn", s->relu_dropout, 0, &l.ffn_norm);
    return l;
}

tensor *decoder_layer_apply(const decoder_layer *l, const text_pass *p, tensor *x, tensor *memory) {
    const attention_side source = {memory, p->source};
    x = layer_attention(p, &l->self, x, p->target, NULL,
                        (attention_mask){p->target_mask, NULL, true});
    x = layer_attention(p, &l->cross, x, p->target, &source,
                        (attention_mask){p->target_mask, p->source_mask, false});
    return layer_ffn(p, &l->ffn, &l->ffn_norm, x, p->target);
}
