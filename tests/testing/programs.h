/* programs.h -- running the built programs from a test, and run files to run them on. */
#ifndef TESTS_PROGRAMS_H
#define TESTS_PROGRAMS_H

#include <stdbool.h>

#include "statrec/record.h"

/* BUILD/bin of the build that this test belongs to. Fails the test when `make all` has not been
 * run. */
const char *program_directory(void);

typedef struct program_result {
    int status;      /* exit status, or 128 + signal */
    char *out, *err; /* malloc'd texts */
} program_result;

/* Runs a shell command line with program_directory() first on PATH, in check_temporary(). Free the
 * result with program_free. */
program_result program_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
void program_free(program_result *r);

/* False, with a visible "skipped", where gnuplot is not installed. */
bool have_gnuplot(void);

/* Cell of a printed table: the row-th row (from 0) below the header; NULL when it is not there.
 * Static storage. */
const char *table_cell(const char *table, int row, const char *column);
double table_real(const char *table, int row, const char *column); /* fails when it is not there */
/* Fails the test unless the cell is near the number (1e-6 relative), or is the text. */
void check_cell(const program_result *r, int row, const char *column, double want);
void check_text(const program_result *r, int row, const char *column, const char *want);
int table_rows(const char *table);

/* check_temporary()/NAME. Static storage, four at a time. */
const char *program_file(const char *name);
/* Writes it with this text. */
void program_write(const char *name, const char *text);

/* For run files of a test's own: a toy run by "test" that replaces what is there; the recorder, or
 * the test fails; the end of a pass of 10 tokens, loss = step; a complete end. */
sr_options run_options(void);
sr_recorder *run_create(const char *path, sr_options o);
void run_end_step(sr_recorder *r, int step);
void run_finish(sr_recorder *r);
/* A site of batch normalization, whose running values keep 0.9 of what they were, or of layer
   normalization. Its number. */
int run_add_bn(sr_recorder *r, const char *name, int width, int depth, double eps);
int run_add_ln(sr_recorder *r, const char *name, int width, int depth, double eps);
/* Metrics for run_put_eval: bleu, valid_accuracy (more is better), valid_ppl, valid_loss,
 * valid_nll, valid_loss_batch (less). */
void run_add_metrics(sr_recorder *r);
/* An evaluation: names separated by blanks, then a double for each. */
void run_put_eval(sr_recorder *r, int64_t step, double epoch, const char *names, ...);

/* A run with the sites stem (bn, d = 2, eps 1), mid (pnv, d = 1, eps 0), top (ln, d = 3): six steps
 * with numbers that can be followed by hand (see test_analysis.c), and singular values. up_to:
 * steps to write, at most 6; whole: closed, else left as a crash leaves it. */
void write_small_run(const char *path, int up_to, bool whole);
/* LN only: nothing but row counts. */
void write_ln_run(const char *path);
/* Noise around base at the named sigma site and at a psi site `late`, with spikes of 20 base in
 * `spikes` of 1000 steps; evaluations; singular values. Everything that a figure may ask for. */
typedef struct noisy_run {
    const char *path, *model, *norm, *data, *site;
    int steps, width;
    double base;
    int spikes;
} noisy_run;
void write_noisy_run(const noisy_run *run);

#endif
