/* planted.h -- run files recorded by a test: a healthy run with one fault. */
#ifndef TESTS_DIAGNOSE_PLANTED_H
#define TESTS_DIAGNOSE_PLANTED_H

#include <stdbool.h>
#include <stdint.h>

/* A healthy run, changed at `site` (0 a, 1 b, 2 c, 3 pn). */
typedef struct plan {
    const char *name;
    int site;
    double noise;           /* standard deviation of mu_B, in sigma; 0: 0.05 */
    double offset;          /* of the running mean */
    int offset_at;          /* it and psi from this step on; negative: before step -offset_at */
    double sigma;           /* batch deviation over the running one, at a; 0: 1 */
    double gap;             /* increase of the validation loss with running statistics, fraction */
    double cost;            /* mean validation loss caused by running statistics, nats */
    double cost_grows;      /* added to cost with each evaluation */
    double cost_uneven;     /* alternately added and subtracted */
    double lower;           /* subtracted from both validation losses, nats */
    int validation_ends;    /* valid_loss is not finite from this step on; by batches it stays */
    int validation_gap;     /* the same at this one step */
    double nll_cost;        /* as cost, for valid_nll, which is then recorded */
    double gradient;        /* factor on sum_g */
    double growth;          /* of one feature's variance over the run, factor; 0: none */
    double drift;           /* of the mean per step */
    double alpha;           /* 0: 0.9 */
    double Gamma;           /* at step Gamma_at */
    int Gamma_at;           /* 0: 200 */
    double psi;             /* power of batches over the running one at pn sites; 0: 1 */
    double nu;              /* before every pass */
    double unused_psi;      /* psi at the first sites, which do not divide by it; 0: none */
    int more_pn;            /* more sites like pn, with 1.5 times the power each; -1: no pn */
    double padded;          /* padding rows, as a fraction of rows */
    int rows, samples;      /* 0: 2048, 16 */
    int dead;               /* features without variance */
    int spikes_every;       /* steps; 0: none */
    int short_every;        /* steps with a tenth of the tokens; 0: none */
    int nan_at, rising_at;  /* steps */
    int steps;              /* 0: 300 */
    uint32_t seed;          /* seed of the noise; 0: 7 */
    const char *config;     /* program is then statrec train; NULL: another host program */
    bool other_host;        /* `config` belongs to another host program */
    bool watched;           /* recorded by statrec.watch */
    bool whole;             /* config lists unused options, as the first files; image metric */
    const char *kind;       /* kind of every site; NULL: layer */
    const char *method;     /* method of the first sites; NULL: own-bn */
    const char *row_method; /* method of observed sites; NULL: own-rows */
    int layer_scale;        /* groups, at every site */
    bool psi_divides;       /* pn is of the family psi */
    bool own_psi;           /* pn is of the family own, uses psi2 and has no variance */
    bool all_observed;      /* as `observed`, for the first three sites */
    bool anew;              /* the site's running mean starts at 0 */
    bool uneven;            /* gaps of evaluations, 30 % either way */
    bool recovers;          /* after the NaN: the loss stays finite */
    bool collapses, without_pairs, abandoned, bare;
    bool accuracy; /* the only validation metric: more is better */
    bool observed; /* the site normalizes rows; an observer records batch statistics */
} plan;

/* Writes run.h5 to the test's directory: 300 steps, four sites, by a custom host program. */
void write_planted_run(const plan *p);

/* Numerical Recipes' quick generator, four draws: about normal, the same on every machine. */
double planted_noise(uint32_t *state);
/* Returns value, or `usual` if the plan leaves it 0. */
double planted_or(double value, double usual);

#endif
