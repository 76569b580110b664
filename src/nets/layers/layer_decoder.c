/* layer_decoder.c -- the decoder layer of a transformer: causal self-attention, cross-attention to
 * the encoder's result, FFN (docs/models.md 2.3). */
#include "engine/ops/attention/attention_ops.h"
#include "nets/layers/text_layers.h"

decoder_layer decoder_layer_init(const site_builder *b, const layer_size *s, int i) {
    decoder_layer l;
    l.self = layer_attention_init(b, s, "decoder", i, "self_attention", "self", &l.self_norm,
                                  &l.self_seen);
    l.cross = layer_attention_init(b, s, "decoder", i, "cross_attention", "cross", &l.cross_norm,
                                   &l.cross_seen);
    l.ffn = layer_ffn_init(b, s, "decoder", i, "ffn", &l.ffn_norm);
    return l;
}

static tensor *attend_self(const decoder_layer *l, const text_pass *p, tensor *x) {
    attention_report *report = layer_report(p, l->self_seen, p->target_mask);
    const attention_side own = {layer_before(p, &l->self_norm, x, p->target), p->target};
    tensor *h = attention_apply(&l->self, p->pass->tape, own, own, NULL, true, report);
    layer_report_call_hook(l->self_seen, report);
    x = layer_after(p, &l->self_norm, x, h, p->target);
    tape_drop_value(p->pass->tape, own.x);
    return x;
}

static tensor *attend_source(const decoder_layer *l, const text_pass *p, tensor *x,
                             tensor *memory) {
    attention_report *report = layer_report(p, l->cross_seen, p->target_mask);
    const attention_side asks = {layer_before(p, &l->cross_norm, x, p->target), p->target},
                         answers = {memory, p->source};
    tensor *h =
        attention_apply(&l->cross, p->pass->tape, asks, answers, p->source_mask, false, report);
    layer_report_call_hook(l->cross_seen, report);
    x = layer_after(p, &l->cross_norm, x, h, p->target);
    tape_drop_value(p->pass->tape, asks.x);
    return x;
}

tensor *decoder_layer_apply(const decoder_layer *l, const text_pass *p, tensor *x, tensor *memory) {
    x = attend_source(l, p, attend_self(l, p, x), memory);
    return layer_ffn(p, &l->ffn, &l->ffn_norm, x, p->target);
}
