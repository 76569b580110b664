/* vectors.c -- passes ready statistics to libstatrec.
 *
 * Use this if the layer runs elsewhere (another device, another language) and returns its mean,
 * variance and gradient sums. Here a function generates them: batches of ROWS rows with a drifting
 * mean. usage: vectors [RUN.h5] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <statrec/record.h>

enum { ROWS = 256, D = 16, STEPS = 200 };
static const double eps = 1e-5, alpha = 0.9;

typedef struct statistics { /* one batch's; running statistics before its update */
    double mu_B[D], sigma2_B[D], mu[D], sigma2[D], gamma[D], sum_g[D], sum_gx[D];
} statistics;

static double uniform(void) { /* Park and Miller (1988), one seed for all */
    static unsigned long long state = 1;
    state = state * 48271 % 2147483647;
    return (double)state / 2147483647;
}

static void next_batch(statistics *s, int step) {
    for (int c = 0; c < D; c++) {
        if (step == 1) s->sigma2[c] = s->gamma[c] = 1;
        if (step > 1) s->mu[c] = alpha * s->mu[c] + (1 - alpha) * s->mu_B[c];
        if (step > 1) s->sigma2[c] = alpha * s->sigma2[c] + (1 - alpha) * s->sigma2_B[c];
        s->mu_B[c] = sin(0.02 * step + c) + (uniform() - 0.5) / sqrt(ROWS);
        s->sigma2_B[c] = 1 + 0.5 * uniform();
        s->sum_g[c] = uniform() - 0.5;
        s->sum_gx[c] = uniform() - 0.5;
    }
}

static void put(sr_recorder *r, int site, const statistics *s) {
    sr_put_rows(r, site, ROWS);
    sr_put_scalar(r, site, SR_SCALAR_samples, ROWS); /* does not follow from the vectors */
    sr_put_vector(r, site, SR_mu_B, s->mu_B);
    sr_put_vector(r, site, SR_sigma2_B, s->sigma2_B);
    sr_put_vector(r, site, SR_mu, s->mu);
    sr_put_vector(r, site, SR_sigma2, s->sigma2);
    sr_put_vector(r, site, SR_gamma, s->gamma);
    sr_put_vector(r, site, SR_sum_g, s->sum_g);
    sr_put_vector(r, site, SR_sum_gx, s->sum_gx);
}

int main(int argc, char **argv) {
    static statistics s;
    sr_failure why = {0};
    sr_options options = SR_OPTIONS_DEFAULT;
    options.program = "examples/vectors", options.planned_steps = STEPS;
    sr_recorder *r = sr_create(argc > 1 ? argv[1] : "vectors.h5", &options, &why);
    if (!r) return fprintf(stderr, "vectors: %s\n", why.text), EXIT_FAILURE;
    const sr_site layer = {.size = sizeof(sr_site),
                           .name = "layer",
                           .norm = "bn",
                           .kind = "linear",
                           .width = D,
                           .family = SR_FAMILY_SIGMA,
                           .eps = eps,
                           .alpha = alpha};
    const int site = sr_add_site(r, &layer);
    for (int step = 1; step <= STEPS; step++) {
        const sr_step row = {.size = sizeof(sr_step),
                             .update = step,
                             .tokens = ROWS,
                             .epoch = NAN,
                             .loss = 1.0 / step,
                             .lr = NAN,
                             .grad_norm = NAN};
        next_batch(&s, step);
        sr_begin_step(r, step);
        put(r, site, &s);
        sr_end_step(r, &row);
    }
    const sr_finish finish = {.size = sizeof(sr_finish), .status = "complete"};
    if (sr_close(r, &finish, &why) == SR_OK) return EXIT_SUCCESS;
    return fprintf(stderr, "vectors: %s\n", why.text), EXIT_FAILURE;
}
