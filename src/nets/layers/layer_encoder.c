/* layer_encoder.c -- the encoder layer of a transformer: self-attention, FFN (docs/models.md 2.3).
 */
#include "engine/ops/attention/attention_ops.h"
#include "nets/layers/text_layers.h"

encoder_layer encoder_layer_init(const site_builder *b, const layer_size *s, int i) {
    return encoder_layer_named(b, s, "encoder", i);
}

encoder_layer encoder_layer_named(const site_builder *b, const layer_size *s, const char *side,
                                  int i) {
    encoder_layer l;
    l.attention = layer_attention_init(b, s, side, i, "attention", "norm1", &l.norm1, &l.seen);
    l.ffn = layer_ffn_init(b, s, side, i, "norm2", &l.norm2);
    return l;
}

tensor *encoder_layer_apply(const encoder_layer *l, const text_pass *p, tensor *x) {
    attention_report *report = layer_report(p, l->seen, p->source_mask);
    const attention_side own = {layer_before(p, &l->norm1, x, p->source), p->source};
    tensor *h =
        attention_apply(&l->attention, p->pass->tape, own, own, p->source_mask, p->causal, report);
    layer_report_call_hook(l->seen, report);
    x = layer_after(p, &l->norm1, x, h, p->source);
    tape_drop_value(p->pass->tape, own.x);
    return layer_ffn(p, &l->ffn, &l->norm2, x, p->source);
}
