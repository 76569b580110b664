/* test_recompute.c -- norm outputs that the tape drops and recomputes: the gradients are
 * bit-identical. */
#include <stdlib.h>
#include <string.h>

#include "engine/ops/ops.h"
#include "layer.h"
#include "testing/extra_ops.h"

enum { ROWS = 70, WIDTH = 19, COUNT = ROWS * WIDTH };

typedef struct gradients {
    real x[COUNT], factor[COUNT], gamma[WIDTH], y[COUNT];
    double state[WIDTH];
    bool away; /* y, between the passes */
} gradients;

static tensor *leaf(tape *t, real *numbers) {
    tensor *x = tape_wrap(t, 2, (int64_t[]){ROWS, WIDTH}, numbers);
    x->wants_grad = true;
    return x;
}

static void keep(real *to, const tensor *from) {
    if (from && from->grad) memcpy(to, from->grad, (size_t)from->count * sizeof *to);
}

/* Fills the tape's memory, so that later steps do not find zeros. */
static void soil(tape *t) {
    tape_reset(t, rng_create(1), true, true);
    tensor *x = tape_tensor(t, 1, (int64_t[]){100 * COUNT});
    assert_non_null(x);
    for (int64_t i = 0; i < x->count; i++) x->value[i] = 3;
}

/* Gradients of sum(factor n(2 x)): the multiplication's backward function reads n(2 x). Two passes,
 * so that running statistics have changed. */
static gradients *run(const norm_method *m, bool padded, bool reuse_activations) {
    gradients *g = calloc(1, sizeof *g);
    real *x = layer_numbers(ROWS, WIDTH, 1, 2, 1), *factor = layer_numbers(ROWS, WIDTH, 2, 0.3, 1);
    uint8_t mask[ROWS];
    layer l;
    sr_failure why = {0};
    tape *t = tape_create(2, &why);
    layer_make(&l, m, WIDTH, 0);
    t->reuse_activations = reuse_activations;
    for (int i = 0; i < ROWS; i++) mask[i] = i % 5 != 2;
    for (int pass = 0; pass < 2; pass++) {
        norm_rows rows;
        soil(t);
        tape_reset(t, rng_create(1), true, true);
        check_ok(norm_rows_init(&rows, t, ROWS, padded ? mask : NULL, NORM_TRAIN), &why);
        tensor *in = leaf(t, x), *times = leaf(t, factor);
        tensor *y = norm_apply(&l.site, t, op_scale(t, in, 2), &rows);
        assert_non_null(y);
        memcpy(g->y, y->value, sizeof g->y);
        tensor *z = op_multiply(t, y, times);
        tape_drop_value(t, y);
        g->away = !y->value;
        op_scale(t, times, 7); /* reuses the memory */
        tape_backward(t, op_sum(t, z), 1);
        assert_null(tape_failure(t));
        keep(g->x, in), keep(g->factor, times), keep(g->gamma, l.site.gamma);
    }
    if (m->state[0].name) memcpy(g->state, l.site.state[0], sizeof g->state);
    layer_free(&l);
    tape_free(t);
    free(x), free(factor);
    return g;
}

static void same_bytes(void **state) {
    (void)state;
    int away = 0;
    for (int padded = 0; padded < 2; padded++)
        for (int i = 0; norm_at(i); i++) {
            gradients *kept = run(norm_at(i), padded, false),
                      *again = run(norm_at(i), padded, true);
            assert_false(kept->away);
            assert_true(again->away == (norm_at(i)->recompute != NULL));
            away += again->away;
            kept->away = again->away;
            if (memcmp(kept, again, sizeof *kept)) fail_msg("%s: other bytes", norm_at(i)->name);
            if (memcmp(again->factor, again->y, sizeof again->y))
                fail_msg("%s: another result", norm_at(i)->name);
            free(kept), free(again);
        }
    assert_true(away >= 2 * 9);
}

/* A layer scale keeps values of its input: the output is not dropped. */
static void scaled_stays(void **state) {
    (void)state;
    real *x = layer_numbers(ROWS, 20, 1, 2, 1);
    layer l;
    sr_failure why = {0};
    norm_rows rows;
    tape *t = tape_create(1, &why);
    layer_make(&l, norm_find("bn"), 20, 4);
    t->reuse_activations = true;
    tape_reset(t, rng_create(1), true, true);
    check_ok(norm_rows_init(&rows, t, ROWS, NULL, NORM_TRAIN), &why);
    tensor *in = tape_wrap(t, 2, (int64_t[]){ROWS, 20}, x), *y = norm_apply(&l.site, t, in, &rows);
    tape_drop_value(t, y);
    assert_non_null(y->value);
    layer_free(&l);
    tape_free(t);
    free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bytes),
                                       cmocka_unit_test(scaled_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
