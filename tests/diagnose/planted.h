/* planted.h -- run files that a test records: a healthy run with one thing wrong. */
#ifndef TESTS_DIAGNOSE_PLANTED_H
#define TESTS_DIAGNOSE_PLANTED_H

#include <stdbool.h>
#include <stdint.h>

/* What a healthy run does, changed at `site` (0 a, 1 b, 2 c, 3 pn). */
typedef struct plan {
    const char *name;
    int site;
    double noise;           /* deviation of mu_B, in sigma; 0: 0.05 */
    double offset;          /* of the running mean */
    int offset_at;          /* it and psi from this step on; negative: before step -offset_at */
    double sigma;           /* deviation of batches over the running one, at a; 0: 1 */
    double gap;             /* validation loss with running statistics, in shares */
    double cost;            /* of running statistics in the validation loss, nats, on average, */
    double cost_grows;      /* with each evaluation, */
    double cost_uneven;     /* this more and less in turn */
    double lower;           /* validation loss of both kinds, nats */
    int validation_ends;    /* valid_loss is not finite from this step on; by batches it stays */
    int validation_gap;     /* nor at this one step */
    double nll_cost;        /* as cost, of valid_nll, which is there then */
    double gradient;        /* factor on sum_g */
    double growth;          /* of one feature's variance over the run; 0: none */
    double drift;           /* of the mean in a step */
    double alpha;           /* 0: 0.9 */
    double Gamma;           /* at step Gamma_at */
    int Gamma_at;           /* 0: 200 */
    double psi;             /* power of batches over the running one at pn and the like; 0: 1 */
    double nu;              /* before every pass */
    double unused_psi;      /* the same at the first sites, which do not divide by it; 0: none */
    int more_pn;            /* sites like pn behind it, with half as much power again; -1: none */
    double padded;          /* rows that are padding, over rows */
    int rows, samples;      /* 0: 2048, 16 */
    int dead;               /* features without variance */
    int spikes_every;       /* steps; 0: none */
    int short_every;        /* steps with a tenth of the tokens; 0: none */
    int nan_at, rising_at;  /* steps */
    int steps;              /* 0: 300 */
    uint32_t seed;          /* of the noise; 0: 7 */
    const char *config;     /* of statrec train, which then is the program; NULL: a host's own */
    bool other_host;        /* with this configuration, which is its own */
    bool watched;           /* by statrec.watch */
    bool whole;             /* that has options without use too, as the first files, of images */
    const char *kind;       /* of every site; NULL: layer */
    const char *method;     /* of the first sites; NULL: own-bn */
    const char *row_method; /* of observed sites; NULL: own-rows */
    int layer_scale;        /* groups, at every site */
    bool psi_divides;       /* pn is of the family psi */
    bool own_psi;           /* pn is of the family own, uses psi2 and has no variance */
    bool all_observed;      /* as `observed`, of the first three sites */
    bool anew;              /* the site's running mean begins at 0 */
    bool uneven;            /* gaps of evaluations, 30 % either way */
    bool recovers;          /* from the NaN: the loss stays finite */
    bool collapses, without_pairs, abandoned, bare;
    bool accuracy; /* validated by that alone: more is better */
    bool observed; /* the site normalizes rows, its batch statistics are the observer's */
} plan;

/* As run.h5 in the directory of the test: 300 steps, four sites by a host of its own. */
void write_planted_run(const plan *p);

/* Numerical Recipes' quick generator, four of them: about normal, the same everywhere. */
double planted_noise(uint32_t *state);
/* The value, or the usual one where a plan leaves it 0. */
double planted_or(double value, double usual);

#endif
