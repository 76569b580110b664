/* vectors_tagging.c -- crf.h5 and tener_attention.h5. */
#include <string.h>

#include "engine/ops/attention/attention_ops.h"
#include "engine/ops/loss/loss_ops.h"
#include "engine/ops/ops.h"
#include "model_vectors.h"

/* -- conditional random field */

static void compare_paths(model_case *c, const crf_inputs *in, tape *t, const uint8_t *mask) {
    const int64_t B = in->logits->dim[0], T = in->logits->dim[1], side = in->start->count + 2;
    int64_t dim[4];
    const int32_t *table = case_ints(c, "in/allowed", 2, dim);
    uint8_t *allowed = case_alloc(c, side * side, 1);
    int32_t *path = case_alloc(c, B * T, sizeof *path);
    double *score = case_alloc(c, B, sizeof *score), *found = case_alloc(c, B * T, sizeof *found);
    if (table && (dim[0] != side || dim[1] != side)) case_fail(c, "allowed is not [tags + 2]^2");
    if (!case_fine(c)) return;
    for (int64_t i = 0; i < side * side; i++) allowed[i] = table[i] != 0;
    if (!crf_viterbi(t, in, mask, allowed, path, score)) {
        case_tape_fine(c, t);
        return;
    }
    for (int64_t i = 0; i < B * T; i++) found[i] = mask[i] ? path[i] : -1;
    case_compare(c, "viterbi", found, B * T, NULL, 1);
    case_compare(c, "viterbi_score", score, B, NULL, 1);
}

void check_crf(model_case *c) {
    tape *t = case_tape(c);
    if (!t) return;
    crf_inputs in = {case_tensor(c, t, "in/logits", 3), case_tensor(c, t, "in/trans", 2),
                     case_tensor(c, t, "in/start", 1), case_tensor(c, t, "in/end", 1)};
    const int32_t *tag = case_ints(c, "in/tags_gold", 2, NULL);
    const uint8_t *mask =
        in.logits ? case_mask(c, "in/mask", in.logits->dim[0] * in.logits->dim[1]) : NULL;
    tensor *nll = case_fine(c) ? op_crf(t, &in, tag, mask) : NULL;
    if (case_fine(c) && case_tape_fine(c, t)) {
        case_compare_reals(c, "nll", nll->value, nll->count, NULL, 1);
        compare_paths(c, &in, t, mask);
        tape_backward(t, op_scale(t, op_sum(t, nll), 1 / (double)nll->count), 1);
    }
    if (case_fine(c) && case_tape_fine(c, t)) {
        case_compare_reals(c, "d_logits", in.logits->grad, in.logits->count, NULL, 1);
        /* Sentences of one word have no transitions. */
        if (case_has(c, "out/d_trans"))
            case_compare_reals(c, "d_trans", in.trans->grad, in.trans->count, NULL, 1);
        case_compare_reals(c, "d_start", in.start->grad, in.start->count, NULL, 1);
        case_compare_reals(c, "d_end", in.end->grad, in.end->count, NULL, 1);
    }
    tape_free(t);
}

/* -- attention */

void check_tener_attention(model_case *c) {
    tape *t = case_tape(c);
    if (!t) return;
    tensor *x = case_tensor(c, t, "in/x", 3), *w = case_tensor(c, t, "in/Wqkv", 2);
    tensor *u = case_tensor(c, t, "in/u", 2), *v = case_tensor(c, t, "in/v", 2);
    const uint8_t *mask = x ? case_mask(c, "in/mask", x->dim[0] * x->dim[1]) : NULL;
    const int heads = (int)case_whole(c, "heads", 1, 64);
    const bool scaled = case_number(c, "scaled") != 0;
    tensor *y = NULL;
    if (case_fine(c)) {
        y = op_tener_attention(t, op_linear(t, x, w, NULL), u, v, heads, mask, scaled, 0, NULL);
        case_tape_fine(c, t);
    }
    if (case_fine(c)) {
        case_compare_reals(c, "y", y->value, y->count, mask, tensor_features(y));
        case_backward(c, t, y, mask);
        case_compare_reals(c, "d_x", x->grad, x->count, mask, tensor_features(x));
        case_compare_reals(c, "d_Wqkv", w->grad, w->count, NULL, 1);
        case_compare_reals(c, "d_u", u->grad, u->count, NULL, 1);
        case_compare_reals(c, "d_v", v->grad, v->count, NULL, 1);
    }
    tape_free(t);
}
