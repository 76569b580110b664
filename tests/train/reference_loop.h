/* reference_loop.h -- a second training loop, written from the formulas in double precision:
 * accumulation over passes, clipping, momentum or Adam, learning rate, validation. It shares data,
 * model and tape with the trainer, but only the parsing of options with src/train. */
#ifndef TESTS_TRAIN_REFERENCE_LOOP_H
#define TESTS_TRAIN_REFERENCE_LOOP_H

#include "train/train.h"

enum {
    PASSES_MAX = 64,
    EVALS_MAX = 16,
    SITE_CAPACITY = 20,
    WIDTH_CAPACITY = 64,
    PARAM_CAPACITY = 128
};

typedef struct reference_pass {
    int64_t update, tokens;
    double loss;          /* nats per token, penalties of the normalizations included */
    double penalty;       /* their sum */
    double lr, grad_norm; /* NaN unless this pass closes an update */
    bool cut, clipped;    /* clipped by value to below 0.99 of the norm; then clipped by norm */
    double sum_g[SITE_CAPACITY][WIDTH_CAPACITY]; /* gradient sums of the summed loss */
} reference_pass;

typedef struct reference_eval {
    int64_t step;
    double train_loss, loss, nll, accuracy, loss_batch, nll_batch, accuracy_batch;
} reference_eval;

typedef struct reference {
    const train_config *c;
    model *m;
    dataset *data;
    tape *t;
    /* since the last update, and of the optimizer */
    double *sum[PARAM_CAPACITY], *first[PARAM_CAPACITY], *second[PARAM_CAPACITY];
    int64_t tokens, passes, updates;
    /* since the last evaluation */
    double loss_sum;
    int64_t loss_tokens;
    reference_pass pass[PASSES_MAX];
    reference_eval eval[EVALS_MAX];
    int evals;
} reference;

/* Runs this configuration as the trainer would; fails the test if it cannot. Restrictions: no
 * dropout; scheduler step with one milestone. */
void reference_run(reference *r, const train_config *c);
void reference_free(reference *r);

#endif
