/* transformer_packed.c -- copies of a decoder's weights, packed for row_linear. */
#include <stdlib.h>

#include "nets/models/transformer.h"

static sr_status pack_layer(layer_rows *r, const decoder_layer *l, sr_failure *why) {
    const struct {
        row_weight *to;
        const linear_layer *from;
    } part[] = {{&r->self[0], &l->self.attention.q},
                {&r->self[1], &l->self.attention.k},
                {&r->self[2], &l->self.attention.v},
                {&r->self[3], &l->self.attention.o},
                {&r->cross[0], &l->cross.attention.q},
                {&r->cross[1], &l->cross.attention.o},
                {&r->ffn[0], &l->ffn.in},
                {&r->ffn[1], &l->ffn.out}};
    sr_status status = SR_OK;
    for (size_t i = 0; i < sizeof part / sizeof *part && status == SR_OK; i++)
        status = row_weight_init(part[i].to, part[i].from->w, why);
    return status;
}

static void layer_rows_free(layer_rows *r) {
    for (int i = 0; i < 4; i++) row_weight_free(&r->self[i]);
    for (int i = 0; i < 2; i++) row_weight_free(&r->cross[i]);
    for (int i = 0; i < 2; i++) row_weight_free(&r->ffn[i]);
}

void packed_weights_free(packed_weights *w) {
    for (int i = 0; w && i < LAYERS_MAX; i++) layer_rows_free(&w->layer[i]);
    if (w) row_weight_free(&w->output);
    free(w);
}

packed_weights *packed_weights_make(const transformer *net, sr_failure *why) {
    packed_weights *w = calloc(1, sizeof *w);
    if (!w) {
        sr_fail(why, SR_MEMORY, "out of memory for decoding");
        return NULL;
    }
    sr_status status = row_weight_init(&w->output, net->target.weight, why);
    for (int i = 0; i < net->size.decoder_layers && status == SR_OK; i++)
        status = pack_layer(&w->layer[i], &net->decoder[i], why);
    if (status == SR_OK) return w;
    packed_weights_free(w);
    return NULL;
}
