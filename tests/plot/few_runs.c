#include "few_runs.h"

#include <math.h>
#include <string.h>

#include "testing/check.h"
#include "testing/programs.h"

enum { WIDTH = 3, SITES = 3 };

static sr_recorder *create(const few_run *run) {
    static const char *const name[SITES] = {"stem", "body", "head"};
    sr_options o = run_options();
    o.model = "toy";
    o.data = "numbers";
    o.config = "max-tokens = 8\n";
    o.seed = (uint64_t)run->seed;
    o.vectors_every = 1;
    sr_recorder *r = run_create(program_file(run->name), o);
    for (int i = 0; i < (run->one_site ? 1 : SITES); i++) {
        const bool rows = i == SITES - 1, psi = strcmp(run->norm, "pnv") == 0;
        sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                  .name = name[i],
                                  .norm = rows ? "ln" : run->norm,
                                  .kind = "encoder",
                                  .family = rows  ? SR_FAMILY_ROW
                                            : psi ? SR_FAMILY_PSI
                                                  : SR_FAMILY_SIGMA,
                                  .width = WIDTH,
                                  .depth = i + 1,
                                  .eps = 1e-5,
                                  .alpha = rows ? NAN : run->alpha});
    }
    run_add_metrics(r);
    return r;
}

/* Returns a number from 0.5 to 1.5 that depends on step, site, feature and kind. */
static double noise(const few_run *run, int step, int site, int k, int kind) {
    const int mixed =
        step * 37 + site * 61 + k * 23 + kind * 17 + step * step * (k + kind + 3) + run->seed * 29;
    return 0.5 + (double)(mixed % 101) / 101;
}

static void put_batch_site(sr_recorder *r, const few_run *run, int step, int site) {
    static const sr_vector vectors[] = {SR_mu_B, SR_mu,    SR_sigma2_B, SR_sigma2, SR_psi2_B,
                                        SR_psi2, SR_gamma, SR_sum_g,    SR_sum_gx};
    const bool psi = strcmp(run->norm, "pnv") == 0;
    sr_put_rows(r, site, 8);
    sr_put_scalar(r, site, SR_SCALAR_dx_norm, 10 * noise(run, step, site, 0, 10));
    sr_put_scalar(r, site, SR_SCALAR_direct_norm, 11 * noise(run, step, site, 0, 11));
    for (int i = 0; i < (int)(sizeof vectors / sizeof vectors[0]); i++) {
        double value[WIDTH];
        if (psi ? vectors[i] == SR_mu || vectors[i] == SR_sigma2 || vectors[i] == SR_sum_g
                : vectors[i] == SR_psi2_B || vectors[i] == SR_psi2)
            continue;
        for (int k = 0; k < WIDTH; k++) value[k] = run->scale * noise(run, step, site, k, i);
        assert_int_equal(sr_put_vector(r, site, vectors[i], value), SR_OK);
    }
}

static void put_row_site(sr_recorder *r, const few_run *run, int step) {
    const int site = SITES - 1;
    sr_put_rows(r, site, 8);
    sr_put_scalar(r, site, SR_SCALAR_row_grad_mean, 0.01 * noise(run, step, site, 0, 1));
    sr_put_scalar(r, site, SR_SCALAR_row_grad_var, run->scale * noise(run, step, site, 0, 2));
    sr_put_scalar(r, site, SR_SCALAR_row_g_var, 2 * run->scale * noise(run, step, site, 0, 3));
    sr_put_scalar(r, site, SR_SCALAR_row_exact_var, run->scale * noise(run, step, site, 0, 4));
    sr_put_scalar(r, site, SR_SCALAR_row_free_var, 3 * run->scale * noise(run, step, site, 0, 5));
}

static void put_eval(sr_recorder *r, const few_run *run, int step) {
    const double loss = run->scale * noise(run, step, 0, 0, 12);
    run_put_eval(r, step, 0.1 * step,
                 "valid_loss valid_nll valid_ppl valid_accuracy valid_loss_batch", loss, loss,
                 exp(loss), 20 * loss, loss * noise(run, step, 0, 0, 13));
}

void write_few_run(const few_run *run) {
    sr_recorder *r = create(run);
    for (int step = 1; step <= FEW_STEPS; step++) {
        const sr_step row = {.size = sizeof(sr_step),
                             .update = step,
                             .tokens = 8,
                             .epoch = 0.1 * step,
                             .loss = run->scale * noise(run, step, 0, 0, 14),
                             .lr = 0.1 * noise(run, step, 0, 0, 15),
                             .grad_norm = run->no_gradient ? NAN : noise(run, step, 0, 0, 16)};
        sr_begin_step(r, step);
        put_batch_site(r, run, step, 0);
        if (!run->one_site) {
            put_batch_site(r, run, step, 1);
            put_row_site(r, run, step);
        }
        if (sr_end_step(r, &row) != SR_OK) fail_msg("%s", sr_failed(r)->text);
        if (step % 4 == 0) put_eval(r, run, step);
    }
    run_finish(r);
}
