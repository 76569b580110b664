/* vectors_words.c -- positions.h5 and label_smoothing.h5. */
#include <string.h>

#include "engine/ops/loss/loss_ops.h"
#include "engine/ops/ops.h"
#include "model_vectors.h"

/* -- positions */

/* Position numbers show through a word table of zeros and a position table that holds them. */
static void compare_numbers(model_case *c, tape *t, int32_t pad) {
    int64_t dim[4];
    int32_t *token = case_ints(c, "in/tokens", 2, dim), largest = pad;
    if (!token) return;
    for (int64_t i = 0; i < dim[0] * dim[1]; i++)
        if (token[i] > largest) largest = token[i];
    tensor *words = tape_tensor(t, 2, (int64_t[]){largest + 1, 1});
    tensor *numbers = tape_tensor(t, 2, (int64_t[]){dim[1] + pad + 1, 1});
    if (!words || !numbers) return;
    memset(words->value, 0, (size_t)words->count * sizeof(real));
    for (int64_t i = 0; i < numbers->count; i++) numbers->value[i] = (real)i;
    tensor *y = op_embedding(t, words, token, dim[0], dim[1], 1, numbers, pad);
    if (case_tape_fine(c, t)) case_compare_reals(c, "positions", y->value, y->count, NULL, 1);
}

static void compare_table(model_case *c, int32_t pad) {
    int64_t dim[4];
    if (!case_read(c, "out/table", 2, dim)) return;
    real *table = case_alloc(c, dim[0] * dim[1], sizeof *table);
    if (!table) return;
    op_embedding_positions(table, dim[0], dim[1], pad);
    case_compare_reals(c, "table", table, dim[0] * dim[1], NULL, 1);
}

void check_positions(model_case *c) {
    const double pad = case_number(c, "pad");
    tape *t = case_tape(c);
    if (t && case_fine(c)) {
        compare_table(c, (int32_t)pad);
        compare_numbers(c, t, (int32_t)pad);
        case_tape_fine(c, t);
    }
    tape_free(t);
}

/* -- label smoothing */

static void run_smoothing(model_case *c, tape *t) {
    const double pad = case_number(c, "pad"), eps = case_number(c, "eps");
    const double form = case_number(c, "form");
    int64_t dim[4];
    tensor *x = case_tensor(c, t, "in/logits", 2);
    int32_t *target = case_ints(c, "in/target", 1, dim);
    cross_entropy_report report;
    if (form != 0 && form != 1) case_fail(c, "form %g is neither 0 nor 1", form);
    if (!case_fine(c)) return;
    if (dim[0] != x->dim[0]) {
        case_fail(c, "%lld targets for %lld rows", (long long)dim[0], (long long)x->dim[0]);
        return;
    }
    tensor *loss = op_cross_entropy(t, x, target, (int32_t)pad, -1, eps,
                                    form == 0 ? SMOOTHING_ALL : SMOOTHING_OTHERS, &report);
    if (!case_tape_fine(c, t)) return;
    tape_backward(t, loss, 1);
    const double value = (double)loss->value[0];
    case_compare(c, "loss", &report.loss, 1, NULL, 1);
    case_compare(c, "loss", &value, 1, NULL, 1);
    case_compare(c, "nll", &report.nll, 1, NULL, 1);
    case_compare_reals(c, "d_logits", x->grad, x->count, NULL, 1);
}

void check_label_smoothing(model_case *c) {
    tape *t = case_tape(c);
    if (t) run_smoothing(c, t);
    tape_free(t);
}
