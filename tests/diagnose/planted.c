/* planted.c -- see planted.h. */
#include "planted.h"

#include <math.h>
#include <stdio.h>

#include "testing/check.h"
#include "testing/programs.h"

enum { STEPS = 300, EVERY = 30, WIDTH = 8, SIGMA_SITES = 3 };

double planted_noise(uint32_t *state) {
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        *state = *state * 1664525u + 1013904223u;
        sum += (double)(*state >> 8) / 16777216.0 - 0.5;
    }
    return sum * sqrt(3);
}

typedef struct site_state {
    double mu[WIDTH], sigma2[WIDTH];
} site_state;

/* Values of mu_moved and mu_apart. */
static int moved_id, apart_id;

static void put(sr_recorder *r, int site, sr_vector which, const double *value) {
    assert_int_equal(sr_put_vector(r, site, which, value), SR_OK);
}

double planted_or(double value, double usual) {
    return value != 0 ? value : usual;
}

/* Is the step one with displaced running values? */
static bool is_away(const plan *p, int step) {
    return p->offset_at < 0 ? step < -p->offset_at : step >= p->offset_at;
}

static void put_sigma(sr_recorder *r, const plan *p, int site, int step, site_state *state,
                      uint32_t *seed) {
    const bool here = site == p->site;
    const double rows = planted_or(p->rows, 2048), alpha = here ? planted_or(p->alpha, 0.9) : 0.9;
    const double spread = here ? planted_or(p->noise, 0.05) : 0.05;
    const bool spike = here && p->spikes_every && step % p->spikes_every == 0;
    const bool away = here && is_away(p, step);
    const double wider = site == 0 ? planted_or(p->sigma, 1) : 1;
    double mu_B[WIDTH], sigma2_B[WIDTH], mu[WIDTH], sigma2[WIDTH], one[WIDTH], sum_g[WIDTH],
        sum_gx[WIDTH];
    for (int k = 0; k < WIDTH; k++) {
        const bool dead = here && k < p->dead;
        const double grown = here && p->growth && k == 0 ? pow(p->growth, (double)step / STEPS) : 1;
        mu_B[k] = (k - 3) + spread * planted_noise(seed) + (spike ? 1.5 : 0) +
                  (here ? p->drift * step : 0);
        sigma2_B[k] = dead ? 1e-9 : grown * (1 + 0.05 * planted_noise(seed));
        if (here && step == p->nan_at) mu_B[k] = NAN;
        mu[k] = state->mu[k] - (away ? p->offset : 0);
        sigma2[k] = state->sigma2[k] / (wider * wider);
        one[k] = 1;
        sum_g[k] = 1.7 * sqrt(rows) * planted_noise(seed) * (here ? planted_or(p->gradient, 1) : 1);
        sum_gx[k] = 0.8 * sqrt(rows) * planted_noise(seed);
        if (dead) sum_g[k] = sum_gx[k] = 0;
    }
    sr_put_rows(r, site, (int64_t)rows);
    put(r, site, SR_mu_B, mu_B);
    put(r, site, SR_sigma2_B, sigma2_B);
    put(r, site, SR_mu, mu);
    put(r, site, SR_sigma2, sigma2);
    if (p->unused_psi > 0) {
        double psi2_B[WIDTH], psi2[WIDTH];
        for (int k = 0; k < WIDTH; k++) psi2_B[k] = 2, psi2[k] = 2 / pow(p->unused_psi, 2);
        put(r, site, SR_psi2_B, psi2_B);
        put(r, site, SR_psi2, psi2);
    }
    put(r, site, SR_gamma, one);
    put(r, site, SR_sum_g, sum_g);
    put(r, site, SR_sum_gx, sum_gx);
    double apart = 0;
    for (int k = 0; k < WIDTH; k++) apart += (mu_B[k] - mu[k]) * (mu_B[k] - mu[k]);
    sr_put_scalar(r, site, moved_id, (1 - alpha) * apart);
    sr_put_scalar(r, site, apart_id, apart);
    for (int k = 0; k < WIDTH; k++) {
        if (isfinite(mu_B[k])) state->mu[k] = alpha * state->mu[k] + (1 - alpha) * mu_B[k];
        state->sigma2[k] = alpha * state->sigma2[k] + (1 - alpha) * sigma2_B[k];
    }
}

static void put_pn(sr_recorder *r, const plan *p, int site, int step, uint32_t *seed) {
    const double usual = site > SIGMA_SITES ? 1.5 : 1;
    const double power = site == p->site && is_away(p, step) ? planted_or(p->psi, 1) : 1;
    const int at = p->Gamma_at ? p->Gamma_at : 200;
    double psi2_B[WIDTH], psi2[WIDTH], one[WIDTH], sum_gx[WIDTH], Gamma[WIDTH], nu[WIDTH];
    for (int k = 0; k < WIDTH; k++) {
        one[k] = 1;
        psi2_B[k] = usual * (1 + 0.05 * planted_noise(seed));
        psi2[k] = usual / (power * power);
        sum_gx[k] = 20 * planted_noise(seed);
        nu[k] = p->nu;
        Gamma[k] = p->Gamma > 0 && site == p->site && step == at && k == 2 ? p->Gamma : psi2_B[k];
    }
    sr_put_rows(r, site, (int64_t)planted_or(p->rows, 2048));
    put(r, site, SR_psi2_B, psi2_B);
    put(r, site, SR_psi2, psi2);
    put(r, site, SR_gamma, one);
    put(r, site, SR_sum_gx, sum_gx);
    if (p->own_psi) put(r, site, SR_sigma2_B, (double[WIDTH]){0});
    if (p->psi_divides || p->own_psi) return;
    put(r, site, SR_Gamma_t, Gamma);
    if (p->nu != 0) put(r, site, SR_nu, nu);
}

static bool is_observed(const plan *p, int site) {
    return site < SIGMA_SITES && ((p->observed && site == p->site) || p->all_observed);
}

static void put_rest(sr_recorder *r, const plan *p, int step) {
    for (int site = 0; site <= SIGMA_SITES + p->more_pn; site++) {
        const bool rises = p->rising_at && step > p->rising_at + (site == p->site ? 0 : 20);
        sr_put_scalar(r, site, SR_SCALAR_dx_norm, rises ? 4000 : 100);
        if (is_observed(p, site)) sr_put_scalar(r, site, SR_SCALAR_dx_norm_bn, 100);
        sr_put_scalar(r, site, SR_SCALAR_samples, planted_or(p->samples, 16));
        sr_put_scalar(r, site, SR_SCALAR_padded,
                      p->padded * planted_or(p->rows, 2048) * (step % 3 ? 1 : 0.7));
    }
}

/* Evaluations come every EVERY steps. */
static double cost_at(const plan *p, int step) {
    const int evaluation = step / EVERY, all = STEPS / EVERY;
    return p->cost + p->cost_grows * (evaluation - (all + 1) / 2.0) +
           p->cost_uneven * (evaluation % 2 ? 1 : -1);
}

static bool validation_is_broken(const plan *p, int step) {
    return (p->validation_ends && step >= p->validation_ends) || step == p->validation_gap;
}

static void put_evaluation(sr_recorder *r, const plan *p, int step, double loss) {
    loss -= p->lower;
    if (validation_is_broken(p, step))
        run_put_eval(r, step, 1, "valid_loss valid_loss_batch", NAN, loss);
    else if (p->accuracy)
        run_put_eval(r, step, 1, "hits hits_batch", 50 * (1 - p->gap), 50.0);
    else if (p->without_pairs)
        run_put_eval(r, step, 1, "valid_loss", loss);
    else if (p->nll_cost != 0)
        run_put_eval(r, step, 1, "valid_loss valid_loss_batch valid_nll valid_nll_batch",
                     loss + cost_at(p, step), loss, loss - 0.5 + p->nll_cost, loss - 0.5);
    else
        run_put_eval(r, step, 1, "valid_loss valid_loss_batch",
                     loss * (1 + p->gap + (p->uneven ? 0.3 * (step % 60 ? 1 : -1) : 0)) +
                         cost_at(p, step),
                     loss);
}

static void put_embedding(sr_recorder *r, const plan *p, int step) {
    double value[WIDTH];
    for (int i = 0; i < WIDTH; i++)
        value[i] = p->collapses && step > 100 && i ? 0.01 / i + 1e-5 * step : 8 - 0.1 * i;
    sr_put_singular_values(r, "words", step, value);
}

static sr_recorder *create(const plan *p) {
    static const char *const names[] = {"a", "b", "c", "pn", "pn2", "pn3", "pn4", "pn5"};
    static const sr_family families[] = {SR_FAMILY_SIGMA, SR_FAMILY_PN, SR_FAMILY_ROW,
                                         SR_FAMILY_PSI};
    const char *const norms[] = {p->method ? p->method : "own-bn", "own-pn",
                                 p->row_method ? p->row_method : "own-rows", "own-psi"};
    sr_options o = run_options();
    o.vectors_every = 1;
    char config[512];
    snprintf(config, sizeof config, "%s%s", p->config ? p->config : "",
             p->whole ? "" : "# options without effect are left out\n");
    if (p->config) o.config = config;
    if (p->config && !p->other_host) o.program = "statrec train";
    if (p->watched) o.version = "statrec.watch 0.2.0";
    sr_recorder *r = run_create(program_file("run.h5"), o);
    for (int i = 0; i <= SIGMA_SITES + p->more_pn; i++) {
        const int kind = is_observed(p, i) ? 2 : i < SIGMA_SITES ? 0 : p->psi_divides ? 3 : 1;
        const bool own = kind == 1 && p->own_psi;
        sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                  .name = names[i],
                                  .norm = norms[kind],
                                  .kind = p->kind ? p->kind : "layer",
                                  .family = own ? SR_FAMILY_OWN : families[kind],
                                  .uses = own         ? "psi2"
                                          : kind == 2 ? "mu,sigma2"
                                                      : NULL,
                                  .width = WIDTH,
                                  .depth = i,
                                  .layer_scale = p->layer_scale,
                                  .eps = 1e-5,
                                  .alpha = i == p->site ? planted_or(p->alpha, 0.9) : 0.9});
        if (kind == 2) assert_int_equal(sr_set_observed(r, i), SR_OK);
    }
    moved_id = sr_declare_scalar(r, "mu_moved", "1", "of one update a step", SR_PER_SITE);
    apart_id = sr_declare_scalar(r, "mu_apart", "1", "as statrec train has it", SR_PER_SITE);
    assert_int_equal(sr_add_embedding(r, "words", 20, WIDTH), SR_OK);
    if (p->whole) sr_add_metric(r, "image_loss", "nats per image", "of none", SR_BETTER_LESS);
    run_add_metrics(r);
    if (p->nll_cost != 0)
        sr_add_metric(r, "valid_nll_batch", "nats per token", "by batches", SR_BETTER_LESS);
    sr_add_metric(r, "hits", "percent", "of a host's own", SR_BETTER_MORE);
    sr_add_metric(r, "hits_batch", "percent", "with batch statistics", SR_BETTER_MORE);
    return r;
}

void write_planted_run(const plan *p) {
    sr_recorder *r = create(p);
    site_state state[SIGMA_SITES] = {0};
    uint32_t seed = p->seed ? p->seed : 7;
    for (int i = 0; i < SIGMA_SITES; i++)
        for (int k = 0; k < WIDTH; k++) {
            state[i].mu[k] = i == p->site && p->anew ? 0 : k - 3;
            state[i].sigma2[k] = i == p->site && k < p->dead ? 1e-9 : 1;
        }
    for (int step = 1; step <= (p->steps ? p->steps : STEPS); step++) {
        double loss = 2 * exp(-(double)step / STEPS) + 0.02 * planted_noise(&seed);
        if (p->rising_at && step > p->rising_at) loss = 9 + 0.02 * planted_noise(&seed);
        if (p->nan_at && !p->recovers && step >= p->nan_at) loss = NAN;
        sr_begin_step(r, step);
        for (int i = 0; i < SIGMA_SITES && !p->bare; i++)
            put_sigma(r, p, i, step, &state[i], &seed);
        for (int i = 0; i <= p->more_pn && !p->bare; i++)
            put_pn(r, p, SIGMA_SITES + i, step, &seed);
        if (!p->bare) put_rest(r, p, step);
        const bool shorter = p->short_every && step % p->short_every == 0;
        const sr_step row = {sizeof(sr_step), step, shorter ? 10 : 100, step, loss, 0.1, 1};
        if (sr_end_step(r, &row) != SR_OK) fail_msg("%s", sr_failed(r)->text);
        if (step % EVERY == 0 && isfinite(loss)) put_evaluation(r, p, step, loss);
        if (step % 50 == 0 && !p->bare) put_embedding(r, p, step);
    }
    if (!p->abandoned) {
        run_finish(r);
        return;
    }
    assert_int_equal(sr_flush(r), SR_OK);
    sr_abandon(r);
}
