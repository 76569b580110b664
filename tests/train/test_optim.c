/* Optimizers, schedules and the gradient norm against the shared vectors and by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "../oracle_file.h"
#include "statnet/optim.h"

/* float32 arithmetic: the vectors are float64, ten steps from numbers near 1. */
static const double tolerance = sizeof(real) == 4 ? 3e-6 : 1e-13;

static const optim_row *row_of(const char *kind) {
    if (!strcmp(kind, "adam_l2")) return optim_find("adam");
    if (!strcmp(kind, "adam_adamw")) return optim_find("adamw");
    if (!strcmp(kind, "adam_fairseq")) return optim_find("adam-fairseq");
    return optim_find("sgd");
}

static void run_case(const oracle_file *f, int k) {
    const optim_row *row = row_of(oracle_text(f, k, "kind"));
    optim_options o = {.momentum = oracle_number(f, k, "momentum", 0),
                       .nesterov = oracle_number(f, k, "nesterov", 0) != 0,
                       .beta1 = oracle_number(f, k, "beta1", 0),
                       .beta2 = oracle_number(f, k, "beta2", 0),
                       .eps = oracle_number(f, k, "eps", 0),
                       .weight_decay = oracle_number(f, k, "wd", 0)};
    int64_t n, steps;
    double *p0 = oracle_read(f, k, "in/p0", NULL, &n),
           *grad = oracle_read(f, k, "in/grad", NULL, NULL);
    double *lr = oracle_read(f, k, "in/lr", NULL, &steps),
           *want = oracle_read(f, k, "out/p", NULL, NULL);
    params p;
    params_init(&p, 1);
    tensor *x = params_add(&p, "p", 1, &n, INIT_CONSTANT, 0);
    check_ok(params_slots(&p, row->slots, NULL), NULL);
    for (int64_t i = 0; i < n; i++) x->value[i] = (real)p0[i];
    for (int64_t s = 0; s < steps; s++) {
        /* a scale of 1/4 on four times the gradient: the same step */
        for (int64_t i = 0; i < n; i++) x->grad[i] = (real)(4 * grad[s * n + i]);
        optim_apply(row, &(optim_step){&o, s + 1, lr[s], 0.25, 2}, &p);
        double got[64];
        for (int64_t i = 0; i < n; i++) got[i] = (double)x->value[i];
        check_near_double(oracle_text(f, k, "label"), got, want + s * n, n, tolerance, tolerance);
    }
    params_free(&p);
    free(p0), free(grad), free(lr), free(want);
}

static void optimizers(void **state) {
    (void)state;
    const char *path = check_shared("reference/vectors/models/optim.h5");
    if (!path) skip();
    oracle_file *f = oracle_open(path);
    assert_int_equal(oracle_cases(f), 23);
    for (int k = 0; k < oracle_cases(f); k++) run_case(f, k);
    oracle_close(f);
}

static schedule schedule_of(const oracle_file *f, int k) {
    schedule s = {.lr = oracle_number(f, k, "lr", 0),
                  .warmup_init = oracle_number(f, k, "init_lr", 0),
                  .warmup = (int64_t)oracle_number(f, k, "warmup", 0),
                  .total = (int64_t)oracle_number(f, k, "total", 0),
                  .factor = oracle_number(f, k, "factor", 1),
                  .milestones = 2,
                  .milestone = {100, 150}};
    const char *kind = oracle_text(f, k, "kind");
    s.kind = !strcmp(kind, "cosine") ? SCHEDULE_COSINE
             : !strcmp(kind, "step") ? SCHEDULE_STEP
                                     : SCHEDULE_INVERSE_SQRT;
    return s;
}

static void schedules(void **state) {
    (void)state;
    const char *path = check_shared("reference/vectors/models/lr.h5");
    if (!path) skip();
    oracle_file *f = oracle_open(path);
    for (int k = 0; k < 7; k++) { /* case 7 is TENER's, with its own model */
        schedule s = schedule_of(f, k);
        int64_t n;
        double *at = oracle_read(f, k, "in/u", NULL, &n);
        double *want = oracle_read(f, k, "out/lr", NULL, NULL);
        assert_non_null(at);
        for (int64_t i = 0; i < n; i++) {
            /* the step case counts epochs in u */
            double got = schedule_lr(&s, (int64_t)at[i], at[i]);
            check_near_double("lr", &got, &want[i], 1, 1e-12, 1e-19);
        }
        free(at), free(want);
    }
    oracle_close(f);
}

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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizers), cmocka_unit_test(schedules), cmocka_unit_test(warmup_by_hand),
        cmocka_unit_test(cosine_past_its_end), cmocka_unit_test(grad_norm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
