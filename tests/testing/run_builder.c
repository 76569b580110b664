/* run_builder.c -- creates, fills and ends small run files; the test fails if the recorder does. */
#include "testing/run_builder.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "testing/check.h"

sr_options run_options(void) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.program = "test";
    o.version = "1";
    o.model = "toy";
    o.data = "numbers";
    o.task = "test";
    o.seed = 1;
    o.force = true;
    o.started = 1;
    return o;
}

sr_recorder *run_create(const char *path, sr_options o) {
    sr_failure why = {0};
    sr_recorder *r = sr_create(path, &o, &why);
    if (!r) fail_msg("%s", why.text);
    return r;
}

static int add_site(sr_recorder *r, const sr_site *site) {
    const int number = sr_add_site(r, site);
    if (number < 0) fail_msg("%s", sr_failed(r)->text);
    return number;
}

int run_add_bn(sr_recorder *r, const char *name, int width, int depth, double eps) {
    return add_site(r, &(sr_site){.size = sizeof(sr_site),
                                  .name = name,
                                  .norm = "bn",
                                  .kind = "encoder",
                                  .family = SR_FAMILY_SIGMA,
                                  .width = width,
                                  .depth = depth,
                                  .eps = eps,
                                  .alpha = 0.9});
}

int run_add_ln(sr_recorder *r, const char *name, int width, int depth, double eps) {
    return add_site(r, &(sr_site){.size = sizeof(sr_site),
                                  .name = name,
                                  .norm = "ln",
                                  .kind = "encoder",
                                  .family = SR_FAMILY_ROW,
                                  .width = width,
                                  .depth = depth,
                                  .eps = eps,
                                  .alpha = NAN});
}

void run_end_step(sr_recorder *r, int step) {
    const sr_step row = {.size = sizeof(sr_step), step, 10, step, 1, 0.1, 1};
    check_ok(sr_end_step(r, &row), sr_failed(r));
}

void run_put_step(sr_recorder *r, int step) {
    sr_begin_step(r, step);
    run_end_step(r, step);
}

const sr_finish run_complete = {.size = sizeof(sr_finish), .status = "complete"};

void run_finish(sr_recorder *r) {
    sr_failure why = {0};
    check_ok(sr_close(r, &run_complete, &why), &why);
}

void run_add_metrics(sr_recorder *r) {
    sr_add_metric(r, "bleu", "percent", "BLEU of the validation set", SR_BETTER_MORE);
    sr_add_metric(r, "valid_accuracy", "percent", "targets found", SR_BETTER_MORE);
    sr_add_metric(r, "valid_ppl", "1", "exp(valid_nll)", SR_BETTER_LESS);
    sr_add_metric(r, "valid_loss", "nats per token", "validation loss", SR_BETTER_LESS);
    sr_add_metric(r, "valid_nll", "nats per token", "the same without smoothing", SR_BETTER_LESS);
    sr_add_metric(r, "valid_loss_batch", "nats per token", "by batches", SR_BETTER_LESS);
}

void run_put_eval(sr_recorder *r, int64_t step, double epoch, const char *names, ...) {
    va_list values;
    va_start(values, names);
    sr_begin_eval(r, step, epoch);
    for (size_t length; (length = strcspn(names, " ")) > 0;) {
        char name[SR_NAME_SIZE];
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        sr_put_metric(r, name, va_arg(values, double));
        names += length + (names[length] == ' ');
    }
    va_end(values);
    check_ok(sr_end_eval(r), sr_failed(r));
}

static sr_recorder *create(const char *path, const char *model, const char *data, uint64_t seed) {
    sr_options o = run_options();
    o.model = model;
    o.data = data;
    o.seed = seed;
    o.vectors_every = 1;
    o.flush_seconds = 1e9;
    return run_create(path, o);
}

static void put(sr_recorder *r, int site, sr_vector which, double a, double b) {
    const double value[] = {a, b};
    assert_int_equal(sr_put_vector(r, site, which, value), SR_OK);
}

static void put_small_step(sr_recorder *r, int step) {
    static const double scale[] = {1, 2, 3, 4, 10, NAN};
    const double k = scale[step - 1];
    sr_put_rows(r, 0, 4);
    put(r, 0, SR_mu_B, 3 * k, 4 * k);
    put(r, 0, SR_mu, 0, 0);
    put(r, 0, SR_sigma2_B, 3, 8);
    put(r, 0, SR_sigma2, 0, 4);
    put(r, 0, SR_psi2_B, 3 + 9 * k * k, 8 + 16 * k * k);
    put(r, 0, SR_gamma, 1, 2);
    put(r, 0, SR_sum_g, 4, 6);
    put(r, 0, SR_sum_gx, 8, -6);
    sr_put_rows(r, 1, 4);
    put(r, 1, SR_mu_B, 0, 0);
    put(r, 1, SR_sigma2_B, 4, 0);
    put(r, 1, SR_psi2_B, 4, 0);
    put(r, 1, SR_psi2, 1, 0);
    put(r, 1, SR_gamma, 3, 0);
    put(r, 1, SR_sum_g, 1, 0);
    put(r, 1, SR_sum_gx, 8, 0);
    sr_put_rows(r, 2, 4);
    sr_put_scalar(r, 2, SR_SCALAR_row_grad_mean, 0);
    sr_put_scalar(r, 2, SR_SCALAR_row_grad_var, k);
}

void write_small_run(const char *path, int up_to, bool whole) {
    sr_recorder *r = create(path, "toy", "numbers", 7);
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "stem",
                              .norm = "bn",
                              .kind = "conv",
                              .family = SR_FAMILY_SIGMA,
                              .width = 2,
                              .depth = 1,
                              .eps = 1,
                              .alpha = 0.9});
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "mid",
                              .norm = "pnv",
                              .kind = "conv",
                              .family = SR_FAMILY_PSI,
                              .width = 1,
                              .depth = 2,
                              .eps = 0,
                              .alpha = 0.9});
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "top",
                              .norm = "ln",
                              .uses = "mu,sigma2",
                              .kind = "conv",
                              .family = SR_FAMILY_ROW,
                              .width = 3,
                              .depth = 3,
                              .eps = 1e-5,
                              .alpha = NAN});
    assert_int_equal(sr_add_embedding(r, "word", 4, 2), SR_OK);
    assert_int_equal(sr_set_embedding_method(r, "word", "by hand"), SR_OK);
    run_add_metrics(r);
    for (int step = 1; step <= up_to; step++) {
        sr_begin_step(r, step);
        put_small_step(r, step);
        const sr_step row = {.size = sizeof(sr_step), step, 10, 0.5 * step, 6.0 / step, 0.1, 1};
        check_ok(sr_end_step(r, &row), sr_failed(r));
    }
    run_put_eval(r, 3, 1.5, "valid_loss valid_nll valid_ppl valid_accuracy", 2.0, 1.0, exp(1),
                 50.0);
    sr_put_singular_values(r, "word", 3, (const double[]){4, 1});
    sr_put_singular_values(r, "word", 5, (const double[]){6, 3});
    if (whole) {
        run_finish(r);
        return;
    }
    assert_int_equal(sr_flush(r), SR_OK);
    sr_abandon(r);
}

void write_ln_run(const char *path) {
    sr_recorder *r = create(path, "toy", "numbers", 7);
    run_add_ln(r, "encoder.0.norm1", 2, 1, 1e-5);
    for (int step = 1; step <= 3; step++) {
        sr_begin_step(r, step);
        sr_put_rows(r, 0, 4);
        const sr_step row = {.size = sizeof(sr_step), step, 10, step, 1, 0.1, 1};
        check_ok(sr_end_step(r, &row), sr_failed(r));
    }
    run_finish(r);
}

/* Numerical Recipes' quick generator: the same noise on every machine. */
static double noise(uint32_t *state) {
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        *state = *state * 1664525u + 1013904223u;
        sum += (double)(*state >> 8) / 16777216.0 - 0.5;
    }
    return sum * 1.7;
}

static void put_noisy_step(sr_recorder *r, const noisy_run *run, int step, uint32_t *state) {
    double mu_B[512], zero[512] = {0}, sigma2_B[512], one[512], sum_g[512], sum_gx[512];
    const double t = (double)step / run->steps;
    double scale = run->base * (0.4 + 1.2 * exp(-4 * t)) * exp(0.4 * noise(state));
    if (1000 * fabs(noise(state)) < run->spikes) scale *= 20;
    for (int k = 0; k < run->width; k++) {
        mu_B[k] = scale * noise(state);
        sigma2_B[k] = 1 + 0.9 * tanh(5 * scale * noise(state));
        one[k] = 1;
        sum_g[k] = scale * noise(state);
        sum_gx[k] = 0.3 * scale * noise(state);
    }
    sr_put_rows(r, 0, 64);
    sr_put_scalar(r, 0, SR_SCALAR_dx_norm, 100 * run->base);
    sr_put_scalar(r, 0, SR_SCALAR_direct_norm, 101 * run->base);
    sr_put_vector(r, 0, SR_mu_B, mu_B);
    sr_put_vector(r, 0, SR_mu, zero);
    sr_put_vector(r, 0, SR_sigma2_B, sigma2_B);
    sr_put_vector(r, 0, SR_sigma2, one);
    sr_put_vector(r, 0, SR_gamma, one);
    sr_put_vector(r, 0, SR_sum_g, sum_g);
    sr_put_vector(r, 0, SR_sum_gx, sum_gx);
    sr_put_rows(r, 1, 64);
    sr_put_vector(r, 1, SR_psi2_B, sigma2_B);
    sr_put_vector(r, 1, SR_psi2, one);
    sr_put_vector(r, 1, SR_gamma, one);
    sr_put_vector(r, 1, SR_sum_gx, sum_gx);
}

void write_noisy_run(const noisy_run *run) {
    sr_recorder *r = create(run->path, run->model, run->data, 1);
    uint32_t state = 42;
    assert_true(run->width <= 512);
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = run->site,
                              .norm = run->norm,
                              .kind = "conv",
                              .family = SR_FAMILY_SIGMA,
                              .width = run->width,
                              .depth = 1,
                              .eps = 1e-5,
                              .alpha = 0.9});
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "late",
                              .norm = "pnv",
                              .kind = "conv",
                              .family = SR_FAMILY_PSI,
                              .width = run->width,
                              .depth = 2,
                              .eps = 1e-5,
                              .alpha = 0.9});
    assert_int_equal(sr_add_embedding(r, "word", 9, 3), SR_OK);
    run_add_metrics(r);
    for (int step = 1; step <= run->steps; step++) {
        sr_begin_step(r, step);
        put_noisy_step(r, run, step, &state);
        const double t = (double)step / run->steps;
        const sr_step row = {.size = sizeof(sr_step),
                             step,
                             64,
                             10 * t,
                             2 * exp(-2 * t) + 0.1 * noise(&state),
                             0.1,
                             1};
        check_ok(sr_end_step(r, &row), sr_failed(r));
        if (step % (run->steps / 10) == 0) {
            const double loss = 2.1 * exp(-2 * t);
            run_put_eval(r, step, 10 * t,
                         "valid_loss valid_nll valid_ppl valid_accuracy valid_loss_batch", loss,
                         loss, exp(loss), 90 - 50 * loss, 0.9 * loss);
        }
    }
    sr_put_singular_values(r, "word", run->steps, (const double[]){5, 2, 1});
    run_finish(r);
}

void write_metric_run(const char *path) {
    sr_recorder *r = run_create(path, run_options());
    sr_add_metric(r, "wer", "percent", "word errors", SR_BETTER_LESS);
    sr_add_metric(r, "f1", "percent", "span F1 of the validation set", SR_BETTER_MORE);
    sr_add_metric(r, "size", NULL, NULL, SR_BETTER_NEITHER);
    run_put_step(r, 1);
    run_put_eval(r, 1, 0.25, "f1 wer", 60.0, 12.0);
    run_put_step(r, 2);
    run_put_eval(r, 2, NAN, "size", 1e9);
    run_finish(r);
}

double run_eval_value(const sr_runfile *f, const char *name, int64_t row) {
    sr_failure why = {0};
    double value = 0;
    check_ok(sr_run_eval(f, name, row, 1, &value, &why), &why);
    return value;
}
