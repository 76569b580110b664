/* Schedules, the gradient norm and its bounds by hand; properties of every row of the table of
 * optimizers. (Their formulas: test_model_vectors.c.) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"
#include "train/train.h"

/* warm-up of 4 updates to 0.8, then constant; update 0 runs with init. */
static void warmup_by_hand(void **state) {
    (void)state;
    schedule s = {.kind = SCHEDULE_FIXED, .lr = 0.8, .warmup = 4};
    const double want[] = {0, 0.2, 0.4, 0.6, 0.8, 0.8};
    double got[6];
    for (int i = 0; i < 6; i++) got[i] = schedule_lr(&s, i, 0);
    check_near_double("warm-up", got, want, 6, 1e-15, 0);
}

/* Half a period and no more. */
static void cosine_past_its_end(void **state) {
    (void)state;
    schedule s = {.kind = SCHEDULE_COSINE, .lr = 0.8, .total = 4};
    const double want[] = {0.4, 0, 0, 0, 0};
    const int64_t at[] = {2, 4, 5, 8, 100};
    for (int i = 0; i < 5; i++) {
        double got = schedule_lr(&s, at[i], 0);
        check_near_double("cosine", &got, &want[i], 1, 1e-15, 1e-15);
    }
}

/* A final value other than 0, which the warm-up does not shift. */
static void cosine_to_its_lowest(void **state) {
    (void)state;
    schedule s = {.kind = SCHEDULE_COSINE, .lr = 0.8, .total = 4, .warmup = 1, .lowest = 0.2};
    const double want[] = {0, 0.5 + 0.3 * sqrt(0.5), 0.5, 0.5 - 0.3 * sqrt(0.5), 0.2, 0.2};
    double got[6];
    for (int i = 0; i < 6; i++) got[i] = schedule_lr(&s, i, 0);
    check_near_double("cosine", got, want, 6, 1e-14, 0);
}

/* 0.8 (10 - u)/(10 - 2) after the warm-up, zero past the end. If the warm-up fills the run, no line
 * follows it. */
static void linear_by_hand(void **state) {
    (void)state;
    schedule s = {.kind = SCHEDULE_LINEAR, .lr = 0.8, .total = 10, .warmup = 2, .warmup_init = 0.2};
    const int64_t at[] = {0, 1, 2, 3, 6, 9, 10, 11};
    const double want[] = {0.2, 0.5, 0.8, 0.7, 0.4, 0.1, 0, 0};
    for (int i = 0; i < 8; i++) {
        double got = schedule_lr(&s, at[i], 0);
        check_near_double("linear", &got, &want[i], 1, 1e-15, 1e-17);
    }
    s.warmup = 10;
    check_equals(schedule_lr(&s, 10, 0), 0);
    s.warmup = 0;
    check_equals(schedule_lr(&s, 0, 0), 0.8);
}

/* Transformer-XL: u/W^1.5 up to W, 1/sqrt(u) then. */
static void inverse_sqrt_xl_by_hand(void **state) {
    (void)state;
    schedule s = {.kind = SCHEDULE_INVERSE_SQRT_XL, .lr = 0.8, .warmup = 4};
    const int64_t at[] = {0, 1, 3, 4, 9, 16};
    const double want[] = {0, 0.1, 0.3, 0.4, 0.8 / 3, 0.2};
    for (int i = 0; i < 6; i++) {
        double got = schedule_lr(&s, at[i], 0);
        check_near_double("inverse_sqrt_xl", &got, &want[i], 1, 1e-15, 0);
    }
    s.warmup = 0;
    check_equals(schedule_lr(&s, 0, 0), 0.8);
    check_equals(schedule_lr(&s, 1, 0), 0.8);
}

/* Entries of both signs beyond the bound, many chunks, any number of threads; a NaN stays. */
static void clip_values(void **state) {
    (void)state;
    enum { N = 40000 };
    for (int threads = 1; threads < 4; threads++) {
        params p;
        params_init(&p, 1);
        tensor *a = params_add(&p, "a", 1, (int64_t[]){N}, INIT_CONSTANT, 0);
        tensor *b = params_add(&p, "b", 1, (int64_t[]){4}, INIT_CONSTANT, 0);
        for (int i = 0; i < N; i++) a->grad[i] = (real)(i - N / 2) / 8;
        const real some[4] = {-3, (real)2.5, -INFINITY, (real)NAN};
        for (int i = 0; i < 4; i++) b->grad[i] = some[i];
        optim_clip_values(&p, threads, 2.5);
        for (int i = 0; i < N; i++) {
            const double g = (i - N / 2) / 8.0, want = g > 2.5 ? 2.5 : g < -2.5 ? -2.5 : g;
            check_equals((double)a->grad[i], want);
        }
        check_equals(b->grad[0], (real)-2.5);
        check_equals(b->grad[1], (real)2.5);
        check_equals(b->grad[2], (real)-2.5);
        assert_true(isnan(b->grad[3]));
        params_free(&p);
    }
}

static void grad_norm(void **state) {
    (void)state;
    params p;
    params_init(&p, 1);
    int64_t n = 16384 * 3 + 5;
    tensor *a = params_add(&p, "a", 1, &n, INIT_CONSTANT, 0);
    tensor *b = params_add(&p, "b", 1, (int64_t[]){2}, INIT_CONSTANT, 0);
    for (int64_t i = 0; i < n; i++) a->grad[i] = (real)(i % 7) / 8;
    b->grad[0] = 300, b->grad[1] = -400;
    double square = 300.0 * 300 + 400.0 * 400;
    for (int64_t i = 0; i < n; i++) square += (double)(i % 7) / 8 * (double)(i % 7) / 8;
    double want = sqrt(square), got, again;
    check_ok(optim_grad_norm(&p, 1, &got, NULL), NULL);
    check_near_double("norm", &got, &want, 1, 1e-14, 0);
    for (int threads = 2; threads < 5; threads++) {
        check_ok(optim_grad_norm(&p, threads, &again, NULL), NULL);
        check_equals(again, got);
    }
    sr_failure why = {0};
    params_invalidate_grad(&p);
    a->has_grad = true; /* its gradient is set in this step */
    optim_grad_norm(&p, 2, &got, &why);
    check_failure(&why, SR_USAGE, "b has the gradient of an earlier step");
    params_finalize_grad(&p);
    check_ok(optim_grad_norm(&p, 2, &again, NULL), NULL);
    check_below(again, 500); /* b's is zero */
    params_free(&p);
}

/* Two numbers, two updates by hand. The gradient is four times too large, with a scale of 1/4: g =
 * 3, then 4; sum 9, 25; p = 1 - 0.5 3/(3+0.5) - 0.5 4/(5+0.5). The second number has only weight
 * decay: g = 0.1 p. */
static void adagrad_by_hand(void **state) {
    (void)state;
    const optim_row *row = optim_find("adagrad");
    assert_non_null(row);
    assert_int_equal(row->slots, 1);
    params p;
    params_init(&p, 1);
    tensor *x = params_add(&p, "x", 1, (int64_t[]){2}, INIT_CONSTANT, 1);
    check_ok(params_slots(&p, row->slots, NULL), NULL);
    const double second = 1 - 0.5 * 0.1 / 0.6, sum = 0.01 + 0.01 * second * second;
    const double want[2][4] = {
        {1 - 1.5 / 3.5, second, 9, 0.01},
        {1 - 1.5 / 3.5 - 2 / 5.5, second - 0.5 * 0.1 * second / (sqrt(sum) + 0.5), 25, sum}};
    for (int64_t s = 0; s < 2; s++) {
        const optim_options o = {.adagrad_eps = 0.5, .weight_decay = 0.1};
        /* removes the weight decay of the first number */
        x->grad[0] = 4 * ((real)(3 + s) - (real)0.1 * x->value[0]), x->grad[1] = 0;
        optim_apply(row, &(optim_step){&o, s + 1, 0.5, 0.25, 2}, &p);
        const real *sums = p.item[0]->slot[0];
        const double got[4] = {(double)x->value[0], (double)x->value[1], (double)sums[0],
                               (double)sums[1]};
        check_near_double("adagrad", got, want[s], 4, 1e-6, 0);
    }
    params_free(&p);
}

/* -- every row */

enum { MANY = 40000, UPDATES = 3 };

/* The numbers [MANY] after some updates; the gradients of the second one are times as large and
 * scaled back. */
static void updates(const optim_row *row, const optim_options *o, int threads, double times,
                    real *value) {
    params p;
    params_init(&p, 1);
    tensor *x = params_add(&p, "x", 1, (int64_t[]){MANY}, INIT_NORMAL, 1);
    check_ok(params_slots(&p, row->slots, NULL), NULL);
    for (int64_t t = 1; t <= UPDATES; t++) {
        const double larger = t == 2 ? times : 1;
        for (int i = 0; i < MANY; i++)
            x->grad[i] = (real)(larger * ((double)((i * 7 + t * 3) % 13) - 5));
        optim_apply(row, &(optim_step){o, t, 0.01, 1 / larger, threads}, &p);
    }
    memcpy(value, x->value, MANY * sizeof *value);
    params_free(&p);
}

/* Options of a run with this optimizer, and `more` unless it is NULL. */
static optim_options options_with(const char *optimizer, const char *more) {
    static train_config c;
    sr_failure why = {0};
    char chosen[64], given[64];
    int positional;
    snprintf(chosen, sizeof chosen, "--optimizer=%s", optimizer);
    snprintf(given, sizeof given, "%s", more ? more : "--seed=1");
    char *argv[] = {"statrec", "train", "-o", "x", chosen, given, NULL};
    check_ok(train_config_parse(&c, 6, argv, 2, &positional, &why), &why);
    return c.optim;
}

static void pieces_threads_and_scale(void **state) {
    (void)state;
    static real one[MANY], other[MANY];
    const optim_row *row;
    for (int i = 0; (row = optim_at(i)); i++) {
        const optim_options o = options_with(row->name, NULL);
        assert_true(*row->name && *row->citation && *row->summary);
        assert_ptr_equal(optim_find(row->name), row);
        updates(row, &o, 1, 1, one);
        updates(row, &o, 3, 1, other);
        if (memcmp(one, other, sizeof one)) fail_msg("%s: threads change bytes", row->name);
        updates(row, &o, 1, 4, other);
        if (memcmp(one, other, sizeof one)) fail_msg("%s: scale is not heeded", row->name);
    }
}

/* x - 1 is the gradient: whatever the formula, x goes most of the way to 1. */
static void goes_downhill(void **state) {
    (void)state;
    const optim_row *row;
    for (int i = 0; (row = optim_at(i)); i++) {
        const optim_options o = options_with(row->name, "--weight-decay=0");
        params p;
        params_init(&p, 1);
        tensor *x = params_add(&p, "x", 1, (int64_t[]){2}, INIT_CONSTANT, 3);
        check_ok(params_slots(&p, row->slots, NULL), NULL);
        x->value[1] = -2;
        for (int64_t t = 1; t <= 10000; t++) {
            for (int k = 0; k < 2; k++) x->grad[k] = x->value[k] - 1;
            optim_apply(row, &(optim_step){&o, t, 0.02, 1, 1}, &p);
        }
        for (int k = 0; k < 2; k++)
            if (!(fabs((double)x->value[k] - 1) < (k ? 1.2 : 0.8))) /* starts at 3 and 2 */
                fail_msg("%s: at %g instead of 1", row->name, (double)x->value[k]);
        params_free(&p);
    }
}

/* Each option that a row lists, and weight decay, moves the weights elsewhere. */
static void options_have_an_effect(void **state) {
    (void)state;
    static real plain[MANY], changed[MANY];
    const optim_row *row;
    for (int i = 0; (row = optim_at(i)); i++) {
        char list[256], given[64], *rest = list;
        snprintf(list, sizeof list, "%s weight-decay", row->options);
        optim_options o = options_with(row->name, NULL);
        updates(row, &o, 1, 1, plain);
        for (char *key; (key = strtok_r(rest, " ", &rest));) {
            snprintf(given, sizeof given, !strcmp(key, "nesterov") ? "--%s" : "--%s=0.37", key);
            o = options_with(row->name, given);
            updates(row, &o, 1, 1, changed);
            if (!memcmp(plain, changed, sizeof plain))
                fail_msg("%s: --%s has no effect", row->name, key);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(warmup_by_hand),
                                       cmocka_unit_test(cosine_past_its_end),
                                       cmocka_unit_test(cosine_to_its_lowest),
                                       cmocka_unit_test(linear_by_hand),
                                       cmocka_unit_test(inverse_sqrt_xl_by_hand),
                                       cmocka_unit_test(clip_values),
                                       cmocka_unit_test(pieces_threads_and_scale),
                                       cmocka_unit_test(goes_downhill),
                                       cmocka_unit_test(options_have_an_effect),
                                       cmocka_unit_test(adagrad_by_hand),
                                       cmocka_unit_test(grad_norm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
