#include "testing/sample_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "statrec/moments.h"
#include "testing/check.h"
#include "testing/run_builder.h"

const sr_site sample_sites[SAMPLE_SITES] = {
    {.size = sizeof(sr_site),
     .name = "stem",
     .norm = "bn",
     .kind = "conv",
     .family = SR_FAMILY_SIGMA,
     .width = 5,
     .eps = 1e-5,
     .alpha = 0.9},
    {.size = sizeof(sr_site),
     .name = "encoder.0.norm1",
     .norm = "pnv",
     .kind = "encoder",
     .family = SR_FAMILY_PSI,
     .width = 3,
     .depth = 1,
     .eps = 1e-5,
     .alpha = 0.95},
    {.size = sizeof(sr_site),
     .name = "encoder.final",
     .norm = "pn",
     .kind = "encoder",
     .family = SR_FAMILY_PN,
     .width = 7,
     .depth = 2,
     .layer_scale = 1,
     .eps = 1e-5,
     .alpha = 0.9},
    {.size = sizeof(sr_site),
     .name = "decoder.final",
     .norm = "ln",
     .kind = "decoder",
     .family = SR_FAMILY_ROW,
     .width = 4,
     .depth = 3,
     .eps = 1e-6,
     .alpha = NAN},
};

static const uint32_t puts_of_site[SAMPLE_SITES] = {
    1u << SR_mu_B | 1u << SR_sigma2_B | 1u << SR_psi2_B | 1u << SR_mu | 1u << SR_sigma2 |
        1u << SR_gamma | 1u << SR_sum_g | 1u << SR_sum_gx,
    1u << SR_mu_B | 1u << SR_sigma2_B | 1u << SR_psi2_B | 1u << SR_psi2 | 1u << SR_gamma |
        1u << SR_sum_g | 1u << SR_sum_gx,
    1u << SR_psi2_B | 1u << SR_psi2 | 1u << SR_gamma | 1u << SR_sum_g | 1u << SR_sum_gx |
        1u << SR_nu | 1u << SR_Gamma_t | 1u << SR_Lambda_t,
    1u << SR_gamma | 1u << SR_sum_g | 1u << SR_sum_gx,
};

bool sample_puts(int site, int vector) {
    return puts_of_site[site] >> vector & 1;
}

/* HDF5 1.10 leaks a little memory for each damaged file that it rejects. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5";
}

double sample_vector(int64_t step, int site, int vector, int64_t k) {
    double v = sin(0.7 * (double)step + 1.3 * site + 2.1 * vector + 0.31 * (double)k);
    bool square = vector == SR_sigma2_B || vector == SR_psi2_B || vector == SR_sigma2 ||
                  vector == SR_psi2 || vector == SR_Gamma_t;
    return square ? 1.5 + v : 3 * v;
}

int64_t sample_rows(int64_t step, int site) {
    return 100 + step % 17 + site;
}

sr_step sample_row(int64_t step) {
    return (sr_step){.size = sizeof(sr_step),
                     .update = (step + 1) / 2,
                     .tokens = 1000 + step % 5,
                     .epoch = 0.01 * (double)step,
                     .loss = 9.0 / (1 + 0.1 * (double)step),
                     .lr = step % 2 ? NAN : 1e-3,
                     .grad_norm = step % 2 ? NAN : 0.5 + (double)(step % 7)};
}

const sr_run_metric sample_metrics[SAMPLE_METRICS] = {
    {sizeof(sr_run_metric), "valid_nll", "nats per token", "negative log-likelihood",
     SR_BETTER_LESS},
    {sizeof(sr_run_metric), "bleu", "percent", "BLEU of the validation set", SR_BETTER_MORE},
    {sizeof(sr_run_metric), "span f1", "", "", SR_BETTER_NEITHER},
};

void sample_eval(int64_t step, double value[SAMPLE_METRICS]) {
    for (int i = 0; i < SAMPLE_METRICS; i++)
        value[i] = strcmp(sample_metrics[i].name, "bleu") == 0 ? NAN : (double)step + 0.1 * i;
}

sr_status sample_put_eval(sr_recorder *r, int64_t step) {
    double value[SAMPLE_METRICS];
    sample_eval(step, value);
    sr_begin_eval(r, step, 0.5 * (double)step);
    for (int i = 0; i < SAMPLE_METRICS; i++)
        if (!isnan(value[i])) sr_put_metric(r, sample_metrics[i].name, value[i]);
    return sr_end_eval(r);
}

static sr_recorder *declare(sr_recorder *r) {
    for (int i = 0; i < SAMPLE_SITES; i++) sr_add_site(r, &sample_sites[i]);
    sr_set_alpha_backward(r, SAMPLE_PN, 0.8);
    sr_add_embedding(r, "shared", 11, SAMPLE_EMBEDDING);
    for (int i = 0; i < SAMPLE_METRICS; i++) {
        const sr_run_metric *m = &sample_metrics[i];
        sr_add_metric(r, m->name, m->unit, m->definition, m->better);
    }
    return r;
}

sr_recorder *sample_create(const char *path, const sr_options *options, sr_failure *why) {
    sr_recorder *r = sr_create(path, options, why);
    return r ? declare(r) : NULL;
}

sr_recorder *sample_begin(const char *path, const sr_options *options) {
    return declare(run_create(path, options ? *options : (sr_options)SR_OPTIONS_DEFAULT));
}

sr_runfile *sample_open(const char *path) {
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    return f;
}

sr_status sample_step(sr_recorder *r, int64_t step) {
    double value[SAMPLE_WIDTH];
    sr_begin_step(r, step);
    for (int i = 0; i < SAMPLE_SITES; i++) {
        sr_put_rows(r, i, sample_rows(step, i));
        for (int v = 0; v < SR_VECTOR_COUNT; v++) {
            if (!sample_puts(i, v)) continue;
            for (int64_t k = 0; k < sample_sites[i].width; k++)
                value[k] = sample_vector(step, i, v, k);
            sr_put_vector(r, i, (sr_vector)v, value);
        }
    }
    sr_put_scalar(r, 3, SR_SCALAR_row_grad_var, (double)step);
    sr_step row = sample_row(step);
    return sr_end_step(r, &row);
}

sr_status sample_steps(sr_recorder *r, int64_t first, int64_t last, int64_t eval_every) {
    double singular[SAMPLE_EMBEDDING];
    for (int64_t step = first; step <= last; step++) {
        sr_status status = sample_step(r, step);
        if (status != SR_OK) return status;
        if (eval_every == 0 || step % eval_every) continue;
        sample_put_eval(r, step);
        for (int k = 0; k < SAMPLE_EMBEDDING; k++) singular[k] = (double)(step + 10 - k);
        status = sr_put_singular_values(r, "shared", step, singular);
        if (status != SR_OK) return status;
    }
    return SR_OK;
}

/* -- checking -------------------------------------------------------------------------------- */

static void *need(int64_t count, size_t size) {
    void *p = calloc((size_t)count + 1, size);
    assert_non_null(p);
    return p;
}

static void check_step_columns(sr_runfile *f, int64_t first) {
    sr_failure why = {0};
    int64_t rows = sr_run_get_info(f)->steps;
    int64_t *step = need(rows, sizeof *step), *update = need(rows, sizeof *update);
    int64_t *tokens = need(rows, sizeof *tokens);
    double *loss = need(rows, sizeof *loss), *lr = need(rows, sizeof *lr);
    check_ok(sr_run_step_ints(f, "step", 0, rows, step, &why), &why);
    check_ok(sr_run_step_ints(f, "update", 0, rows, update, &why), &why);
    check_ok(sr_run_step_ints(f, "tokens", 0, rows, tokens, &why), &why);
    check_ok(sr_run_step_reals(f, "loss", 0, rows, loss, &why), &why);
    check_ok(sr_run_step_reals(f, "lr", 0, rows, lr, &why), &why);
    for (int64_t i = 0; i < rows; i++) {
        sr_step want = sample_row(first + i);
        if (step[i] != first + i || update[i] != want.update || tokens[i] != want.tokens)
            fail_msg("row %lld: step %lld update %lld tokens %lld", (long long)i,
                     (long long)step[i], (long long)update[i], (long long)tokens[i]);
        check_near_double("loss", &loss[i], &want.loss, 1, 0, 0);
        check_near_double("lr", &lr[i], &want.lr, 1, 0, 0);
    }
    free(step), free(update), free(tokens), free(loss), free(lr);
}

static void check_vector(sr_runfile *f, int v, int64_t first, int64_t every) {
    sr_failure why = {0};
    const char *name = sr_run_name(f, "vectors", 0);
    assert_non_null(name);
#define VECTOR_NAME(name, definition) #name,
    static const char *const names[] = {SR_VECTORS(VECTOR_NAME)};
    int64_t rows = sr_run_get_info(f)->vectors;
    float *all = need(rows * SAMPLE_WIDTH, sizeof *all);
    double *want = need(rows * SAMPLE_WIDTH, sizeof *want);
    check_ok(sr_run_vector(f, names[v], -1, 0, rows, all, &why), &why);
    int64_t start = (first + every - 1) / every * every;
    for (int64_t i = 0; i < rows; i++)
        for (int s = 0; s < SAMPLE_SITES; s++)
            for (int64_t k = 0; k < sample_sites[s].width; k++)
                want[i * SAMPLE_WIDTH + sr_run_get_site(f, s)->offset + k] =
                    sample_puts(s, v) ? (double)(float)sample_vector(start + i * every, s, v, k)
                                      : NAN;
    check_near_float(names[v], all, want, rows * SAMPLE_WIDTH, 0, 0);
    free(all), free(want);
}

/* The scalars must equal sr_derive_scalars of the recorded vectors. */
static void check_scalars(sr_runfile *f, int64_t first) {
    sr_failure why = {0};
    int64_t rows = sr_run_get_info(f)->steps;
    float *got = need(rows, sizeof *got);
    double *want = need(rows, sizeof *want);
    for (int c = 0; c < SR_SCALAR_COUNT; c++)
        for (int s = 0; s < SAMPLE_SITES; s++) {
#define NAME(name, definition) #name,
            static const char *const names[] = {SR_SCALARS(NAME)};
            int64_t d = sample_sites[s].width;
            double memory[SR_VECTOR_COUNT][SAMPLE_WIDTH];
            const double *vector[SR_VECTOR_COUNT];
            for (int64_t i = 0; i < rows; i++) {
                double scalar[SR_SCALAR_COUNT];
                for (int k = 0; k < SR_SCALAR_COUNT; k++) scalar[k] = NAN;
                for (int v = 0; v < SR_VECTOR_COUNT; v++) {
                    for (int64_t k = 0; k < d; k++)
                        memory[v][k] = sample_vector(first + i, s, v, k);
                    vector[v] = sample_puts(s, v) ? memory[v] : NULL;
                }
                sr_derive_scalars(sample_sites[s].family, d, sample_sites[s].eps,
                                  sample_rows(first + i, s), vector, scalar);
                scalar[SR_SCALAR_nonfinite] = 0;
                if (s == 3) scalar[SR_SCALAR_row_grad_var] = (double)(first + i);
                want[i] = (double)(float)scalar[c];
            }
            check_ok(sr_run_scalar(f, names[c], s, 0, rows, got, &why), &why);
            check_near_float(names[c], got, want, rows, 0, 0);
        }
    free(got), free(want);
}

void sample_check(sr_runfile *f, int64_t first, int64_t every) {
    sr_failure why = {0};
    const sr_run_info *info = sr_run_get_info(f);
    assert_int_equal(info->sites, SAMPLE_SITES);
    assert_int_equal(info->width, SAMPLE_WIDTH);
    for (int i = 0; i < SAMPLE_SITES; i++) {
        const double want = i == SAMPLE_PN ? 0.8 : NAN;
        check_near_double("alpha_bwd", &sr_run_get_site(f, i)->alpha_bwd, &want, 1, 0, 0);
    }
    check_step_columns(f, first);
    check_scalars(f, first);
    int64_t *step = need(info->vectors, sizeof *step);
    check_ok(sr_run_vector_steps(f, 0, info->vectors, step, &why), &why);
    int64_t start = (first + every - 1) / every * every;
    for (int64_t i = 0; i < info->vectors; i++) assert_int_equal(step[i], start + i * every);
    free(step);
    for (int v = 0; v < SR_VECTOR_COUNT; v++) check_vector(f, v, first, every);
    for (int64_t i = 0; i < info->evals; i++) {
        double at, got, want[SAMPLE_METRICS];
        check_ok(sr_run_eval(f, "step", i, 1, &at, &why), &why);
        sample_eval((int64_t)at, want);
        check_ok(sr_run_eval(f, "epoch", i, 1, &got, &why), &why);
        check_equals(got, 0.5 * at);
        for (int m = 0; m < SAMPLE_METRICS; m++) {
            check_ok(sr_run_eval(f, sample_metrics[m].name, i, 1, &got, &why), &why);
            assert_true(got == want[m] || (isnan(got) && isnan(want[m])));
        }
    }
}

const char *sample_path(const char *name) {
    static char path[64][512];
    char wanted[512];
    snprintf(wanted, sizeof wanted, "%s/%s", check_temporary(), name);
    int i = 0;
    while (i < 63 && path[i][0] && strcmp(path[i], wanted) != 0) i++;
    if (path[i][0] && strcmp(path[i], wanted) != 0) fail_msg("too many paths");
    memcpy(path[i], wanted, sizeof wanted);
    return path[i];
}
