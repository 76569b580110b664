#include "testing/full_run.h"

#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "testing/check.h"
#include "testing/run_builder.h"

enum { STEM, MID, LATE, TOP, SEEN, STEM_1, SITES, WIDTH = 4, PAIRS = 3, EVALUATIONS = 5 };

static const sr_site sites[SITES] = {
    {.name = "stem", .norm = "bn", .family = SR_FAMILY_SIGMA},
    {.name = "mid", .norm = "pn", .family = SR_FAMILY_PN, .layer_scale = 1},
    {.name = "late", .norm = "pnv", .family = SR_FAMILY_PSI},
    {.name = "top", .norm = "ln", .uses = "mu,sigma2", .family = SR_FAMILY_ROW},
    {.name = "seen", .norm = "rms", .uses = "psi2", .family = SR_FAMILY_ROW},
    {.name = "stem@1", .norm = "bn", .family = SR_FAMILY_SIGMA},
};
static const char *const metrics[] = {"valid_loss", "valid_nll", "valid_ppl", "valid_accuracy"};
enum { METRICS = sizeof metrics / sizeof metrics[0] };

/* Custom scalars: as `statrec train` declares them with --theorems-every and for a site's
 * updates. */
static const char *const custom[] = {"mu_moved",     "mu_apart",  "lemma2_max",
                                     "row_xhat_max", "row_q_max", "y_outside"};
enum { CUSTOM = sizeof custom / sizeof custom[0] };

static uint32_t puts_of(int site) {
    const uint32_t all = 1u << SR_mu_B | 1u << SR_sigma2_B | 1u << SR_psi2_B | 1u << SR_gamma |
                         1u << SR_sum_g | 1u << SR_sum_gx;
    const uint32_t sigma =
        all | 1u << SR_mu | 1u << SR_sigma2 | 1u << SR_position_B | 1u << SR_position;
    if (site == MID)
        return all | 1u << SR_psi2 | 1u << SR_nu | 1u << SR_Gamma_t | 1u << SR_Lambda_t;
    return site == LATE ? all | 1u << SR_psi2 : site == TOP ? 1u << SR_gamma : sigma;
}

static void put_vectors(sr_recorder *r, int site, rng *noise) {
    for (int v = 0; v < SR_VECTOR_COUNT; v++) {
        double value[WIDTH];
        const bool square = v == SR_sigma2_B || v == SR_psi2_B || v == SR_sigma2 || v == SR_psi2 ||
                            v == SR_Gamma_t || v == SR_gamma;
        for (int k = 0; k < WIDTH; k++)
            value[k] = square ? 1 + 0.5 * rng_uniform(noise) : 0.1 * rng_normal(noise);
        if (puts_of(site) >> v & 1) sr_put_vector(r, site, (sr_vector)v, value);
    }
}

static void put_site(sr_recorder *r, int site, int first_custom, rng *noise) {
    const int64_t samples = 4 + (int64_t)rng_below(noise, 4);
    sr_put_rows(r, site, samples * (5 + (int64_t)rng_below(noise, 9)));
    sr_put_scalar(r, site, SR_SCALAR_samples, (double)samples);
    sr_put_scalar(r, site, SR_SCALAR_padded, (double)rng_below(noise, 9));
    sr_put_scalar(r, site, SR_SCALAR_dx_norm, 4 + rng_uniform(noise));
    sr_put_scalar(r, site, SR_SCALAR_direct_norm, 5 + rng_uniform(noise));
    for (int s = SR_SCALAR_row_grad_mean; s <= SR_SCALAR_row_exact_var && site == TOP; s++)
        sr_put_scalar(r, site, s, 1 + rng_uniform(noise));
    if (site == TOP) sr_put_scalar(r, site, SR_SCALAR_row_free_var, 3 + rng_uniform(noise));
    if (site == SEEN) sr_put_scalar(r, site, SR_SCALAR_dx_norm_bn, 4);
    for (int i = 0; i < CUSTOM; i++)
        sr_put_scalar(r, site, first_custom + i, rng_uniform(noise) + (i == 1));
    put_vectors(r, site, noise);
}

static void put_step(sr_recorder *r, const full_run *run, int step, int first_custom, rng *noise) {
    const double part = (double)step / run->steps;
    sr_begin_step(r, step);
    for (int i = 0; i < SITES; i++) put_site(r, i, first_custom, noise);
    sr_put_step_scalar(r, first_custom + CUSTOM, 10 * rng_uniform(noise));
    for (int i = 0; i < SITES && step % (run->steps / EVALUATIONS) == 0; i++) {
        const double value[WIDTH] = {9 + part, 4, 2, 1}, *const both[] = {value, value};
        sr_put_spectrum(r, i, 40, both);
    }
    const sr_step row = {.size = sizeof(sr_step),
                         .update = step,
                         .tokens = 60,
                         .epoch = 2 * part,
                         .loss = 3 - 2 * part + 0.1 * rng_normal(noise),
                         .lr = part <= 0.5 ? 0.1 : 0.05,
                         .grad_norm = 1 + rng_uniform(noise)};
    check_ok(sr_end_step(r, &row), sr_failed(r));
}

static void put_evaluation(sr_recorder *r, const full_run *run, int step, rng *noise) {
    const double part = (double)step / run->steps, singular[] = {5 + part, 2, 1};
    sr_begin_eval(r, step, 2 * part);
    for (int batch = 0; batch < 2; batch++)
        for (int i = 0; i < METRICS; i++) {
            char name[SR_NAME_SIZE];
            snprintf(name, sizeof name, "%s%s", metrics[i], batch ? "_batch" : "");
            sr_put_metric(r, name, 4 - part + i - 0.2 * batch + 0.1 * rng_uniform(noise));
        }
    check_ok(sr_end_eval(r), sr_failed(r));
    check_ok(sr_put_singular_values(r, "word", step, singular), sr_failed(r));
}

static void put_end(sr_recorder *r) {
    const double tid[SITES] = {0.1, NAN, NAN, NAN, 0.2, 0.1}, *const final[] = {tid, tid};
    for (int i = 0; i < SITES; i++) {
        const float x[PAIRS] = {(float)i, 1, 2}, y[PAIRS] = {3, (float)i, 5};
        const int32_t feature[PAIRS] = {0, 1, 2};
        sr_put_pairs(r, i, x, y, feature);
    }
    check_ok(sr_put_final(r, 7, final), sr_failed(r));
    run_finish(r);
}

static sr_recorder *create(const full_run *run, int *first_custom) {
    sr_options o = run_options();
    o.vectors_every = 1, o.spectra = o.final = true, o.pairs = PAIRS, o.seed = run->seed;
    if (run->config) o.config = run->config, o.program = "statrec train";
    if (run->model) o.model = run->model;
    if (run->data) o.data = run->data;
    sr_recorder *r = run_create(run->path, o);
    for (int i = 0; i < SITES; i++) {
        sr_site s = sites[i];
        if (s.family == SR_FAMILY_SIGMA && run->norm) s.norm = run->norm;
        s.size = sizeof s, s.kind = "encoder", s.width = WIDTH, s.depth = i % STEM_1;
        s.eps = 1e-5, s.alpha = s.family == SR_FAMILY_ROW && i != SEEN ? NAN : 0.5;
        sr_add_site(r, &s);
    }
    sr_set_observed(r, SEEN);
    for (int i = 0; i < CUSTOM; i++) {
        const int id = sr_declare_scalar(r, custom[i], "1", "a test's own", SR_PER_SITE);
        if (i == 0) *first_custom = id;
    }
    sr_declare_scalar(r, "clipped", "percent", "gradients cut", SR_PER_STEP);
    sr_add_embedding(r, "word", 9, 3);
    for (int batch = 0; batch < 2; batch++)
        for (int i = 0; i < METRICS; i++) {
            char name[SR_NAME_SIZE];
            snprintf(name, sizeof name, "%s%s", metrics[i], batch ? "_batch" : "");
            sr_add_metric(r, name, i < 2 ? "nats per token" : "1", "of the validation set",
                          i < 3 ? SR_BETTER_LESS : SR_BETTER_MORE);
        }
    return r;
}

void write_full_run(const full_run *wanted) {
    full_run run = *wanted;
    rng noise = rng_create(run.seed);
    int first_custom = 0;
    if (!run.steps) run.steps = 40;
    sr_recorder *r = create(&run, &first_custom);
    for (int step = 1; step <= run.steps; step++) {
        put_step(r, &run, step, first_custom, &noise);
        if (step % (run.steps / EVALUATIONS) == 0) put_evaluation(r, &run, step, &noise);
    }
    put_end(r);
}
