/* noise_run.c -- a run file of random numbers; see noise_run.h. */
#include "noise_run.h"

#include <math.h>
#include <stdio.h>

#include "base/rng.h"

enum { METRICS = 5, WIDTH = 512, EVALS = 50, TABLE = 1 << 16 };

/* table [TABLE]: numbers to draw from, since drawing normal ones would take longer than recording. */
static void put_step(sr_recorder *r, int64_t step, int sites, const double *table, rng *random) {
    for (int site = 0; site < sites; site++) {
        const double scale = exp(-site % 13);
        sr_put_rows(r, site, 1024);
        for (int i = 0; i < SR_SCALAR_COUNT; i++)
            if (i != SR_SCALAR_rows)
                sr_put_scalar(r, site, (sr_scalar)i, scale * table[rng_next(random) % TABLE]);
    }
    const sr_step row = {.size = sizeof(sr_step),
                         step,
                         1024,
                         1e-3 * (double)step,
                         2 + 0.1 * rng_normal(random),
                         1 / sqrt((double)step),
                         exp(rng_normal(random))};
    sr_end_step(r, &row);
}

sr_status noise_run_make(const char *path, int64_t steps, int sites, sr_failure *why) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    static double table[TABLE];
    rng random = rng_create(1);
    for (int i = 0; i < TABLE; i++) table[i] = exp(rng_normal(&random));
    static const char *const metric[] = {"valid_loss", "valid_nll", "valid_ppl", "valid_loss_batch",
                                         "valid_accuracy"};
    const double eval[METRICS] = {2, 2, exp(2), 1.9, 50};
    o.program = "bench", o.model = "bench", o.data = "noise";
    o.vectors = false, o.vectors_every = 0, o.planned_steps = steps;
    sr_recorder *r = sr_create(path, &o, why);
    if (!r) return why->status;
    for (int i = 0; i < sites; i++) {
        char name[32];
        snprintf(name, sizeof name, "site%d", i);
        const sr_site s = {.size = sizeof(sr_site),
                           name,
                           "bn",
                           "encoder",
                           SR_FAMILY_SIGMA,
                           WIDTH,
                           i,
                           0,
                           1e-5,
                           0.9};
        sr_add_site(r, &s);
    }
    for (int i = 0; i < METRICS; i++)
        sr_add_metric(r, metric[i], "1", "noise",
                      i < METRICS - 1 ? SR_BETTER_LESS : SR_BETTER_MORE);
    for (int64_t step = 1; step <= steps; step++) {
        sr_begin_step(r, step);
        put_step(r, step, sites, table, &random);
        if (step % (steps / EVALS + 1)) continue;
        sr_begin_eval(r, step, 1);
        for (int i = 0; i < METRICS; i++) sr_put_metric(r, metric[i], eval[i]);
        sr_end_eval(r);
    }
    const sr_finish f = {.size = sizeof(sr_finish), .status = "complete"};
    return sr_close(r, &f, why);
}
