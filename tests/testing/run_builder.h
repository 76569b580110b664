/* run_builder.h -- small run files for tests. */
#ifndef TESTS_RUN_BUILDER_H
#define TESTS_RUN_BUILDER_H

#include <stdbool.h>

#include "statrec/record.h"
#include "statrec/runfile.h"

/* run_options: options of a small run by "test" that replaces an existing file. run_create: its
 * recorder, or the test fails. run_end_step: ends a step of 10 tokens, loss = step. run_put_step
 * starts it too. run_finish: a complete end. */
sr_options run_options(void);
sr_recorder *run_create(const char *path, sr_options o);
void run_end_step(sr_recorder *r, int step);
void run_put_step(sr_recorder *r, int step); /* starts it, too */
void run_finish(sr_recorder *r);
extern const sr_finish run_complete;
/* Adds a site of batch normalization with alpha 0.9, or of layer normalization. Returns its
 * number. */
int run_add_bn(sr_recorder *r, const char *name, int width, int depth, double eps);
int run_add_ln(sr_recorder *r, const char *name, int width, int depth, double eps);
/* Metrics for run_put_eval: bleu, valid_accuracy (more is better), valid_ppl, valid_loss,
 * valid_nll, valid_loss_batch (less). */
void run_add_metrics(sr_recorder *r);
/* An evaluation: names separated by blanks, then a double for each. */
void run_put_eval(sr_recorder *r, int64_t step, double epoch, const char *names, ...);

/* A run with the sites stem (bn, d = 2, eps 1), mid (pnv, d = 1, eps 0), top (ln, d = 3). It has
 * six steps with numbers that can be checked by hand (see test_analysis.c), and singular values.
 * up_to: steps to write, at most 6; whole: closed, else left as a crash leaves it. */
void write_small_run(const char *path, int up_to, bool whole);
/* LN only: no values except row counts. */
void write_ln_run(const char *path);
/* Noise around base at the named sigma site and at a psi site `late`, with spikes of 20 base in
 * `spikes` of 1000 steps. Has evaluations and singular values. Contains everything that a figure
 * may use. */
typedef struct noisy_run {
    const char *path, *model, *norm, *data, *site;
    int steps, width;
    double base;
    int spikes;
} noisy_run;
void write_noisy_run(const noisy_run *run);
/* Two evaluations of "wer" (less), "f1" (more) and "size" (neither). They are declared in this
 * order; by name the order is another. */
void write_metric_run(const char *path);

/* One value of a column of the evaluations. */
double run_eval_value(const sr_runfile *f, const char *name, int64_t row);

#endif
