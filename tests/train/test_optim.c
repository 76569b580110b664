/* Schedules, the gradient norm and its bounds by hand. (Optimizers: test_model_vectors.c.) */
#include <math.h>
#include <stdlib.h>

#include "../check.h"
#include "statnet/optim.h"

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
        assert_true(again == got);
    }
    params_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(warmup_by_hand),
                                       cmocka_unit_test(cosine_past_its_end),
                                       cmocka_unit_test(grad_norm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
