/* writer.h -- rows on their way into a run file: declared columns, rows waiting in memory, and what
 * is in the file. Knows nothing about statistics.
 *
 * writer_create -> layout filled in -> writer_declare -> { writer_begin_step, columns,
 * writer_end_step | evaluations | singular values | writer_flush }* -> writer_finish.
 */
#ifndef RUNFILE_WRITE_WRITER_H
#define RUNFILE_WRITE_WRITER_H

#include "hdf5/h5.h"
#include "runfile/dataset_layout.h"
#include "statrec/runfile.h"

/* Texts of the root's attributes: fields of sr_run_info of the same names. */
#define RUN_TEXTS(X)                                                                               \
    X(program)                                                                                     \
    X(version)                                                                                     \
    X(command)                                                                                     \
    X(config) X(host) X(created) X(git) X(model) X(data) X(task) X(loss_reduction) X(parent)

/* Rows of one group: `written` are in the file, `count` wait in memory, for which there is `capacity`.
 */
typedef struct row_block {
    int64_t written, count, capacity;
} row_block;

enum { EVAL_CAPACITY = 16 };

/* A metric of evaluations: its dataset, its waiting values, that of the row being filled. */
typedef struct run_metric {
    char name[SR_NAME_SIZE], unit[SR_NAME_SIZE], definition[SR_DEFINITION_SIZE];
    sr_better better;
    h5_id set;
    double value[EVAL_CAPACITY], current;
    bool put; /* in the row being filled */
} run_metric;

/* A scalar of the host's own: per site float [capacity, S], per step double [capacity]. */
typedef struct run_declared {
    char name[SR_NAME_SIZE], unit[SR_NAME_SIZE], definition[SR_DEFINITION_SIZE];
    sr_scope scope;
    h5_id set;
    float *site_value;  /* NULL until used */
    double *step_value; /* the same */
} run_declared;

/* The running values below /running: rows of states that the host may go on from. */
typedef struct running_rows {
    h5_id step_set, set[RUN_RUNNING];
    int64_t written; /* rows; from SR_RUNNING_KEPT on the oldest one is written over */
    int64_t last;    /* step of the row written last; -1: none */
} running_rows;

/* The row of /spectra of the current step; not counted as waiting, it goes out with its step. */
typedef struct spectra_row {
    h5_id step_set, rows_set, set[SR_SPECTRUM_COUNT];
    int64_t written;
    int64_t *rows;                    /* [S]; NULL until used */
    double *value[SR_SPECTRUM_COUNT]; /* [W] each, one block */
    bool used;                        /* by the current step */
} spectra_row;

typedef struct run_writer {
    const char *path; /* of the file; not owned */
    h5_id file;
    run_layout layout;
    run_embedding *embedding; /* [embeddings]; owned by the caller */
    int embeddings;
    int64_t flush_steps;
    bool sync_flushes, sync_end; /* fsync at every flush; once the run has ended */
    bool ready, broken;          /* broken: a write failed, HDF5 must not be touched again */

    h5_id step_int_set[RUN_STEP_INTS], step_real_set[RUN_STEP_REALS];
    h5_id scalar_set[SR_SCALAR_COUNT], vector_set[SR_VECTOR_COUNT], vector_step_set;
    h5_id eval_step_set, eval_epoch_set;
    h5_id committed_set[COMMITTED_COUNT];
    h5_id status_set, reason_set, finished_set, digest_set, wall_set;
    h5_id final_set[SR_FINAL_COUNT], final_batches_set, pair_set[SR_PAIR_COUNT];
    spectra_row spectra;
    running_rows running;

    row_block steps, vectors, evals;
    int64_t *step_int[RUN_STEP_INTS];      /* [capacity] */
    double *step_real[RUN_STEP_REALS];     /* [capacity] */
    float *scalar[SR_SCALAR_COUNT];        /* [capacity, S]; NULL until used */
    int64_t *vector_step;                  /* [capacity] */
    float *vector[SR_VECTOR_COUNT];        /* [capacity, W]; NULL until used */
    uint8_t *vector_used[SR_VECTOR_COUNT]; /* [S] sites that ever put it; NULL until used */
    int64_t eval_step[EVAL_CAPACITY];
    double eval_epoch[EVAL_CAPACITY];
    run_metric *metric; /* [metrics] */
    int metrics;
    run_declared *declared; /* [declared_count] */
    int declared_count;
    bool filling;      /* a row is begun and not ended */
    bool with_vectors; /* of the row being filled */
} run_writer;

sr_status writer_create(run_writer *w, const char *path, sr_failure *why);
/* Declares everything, allocates the rows, switches to SWMR. */
sr_status writer_declare(run_writer *w, const sr_run_info *info, sr_failure *why);
/* The datasets and attributes of writer_declare, without memory or SWMR (declare.c). */
sr_status writer_declare_file(run_writer *w, const sr_run_info *info, sr_failure *why);

/* Opens the next row (and one of /vectors): all reals NaN. Writes waiting rows when memory is full.
 */
sr_status writer_begin_step(run_writer *w, bool with_vectors, sr_failure *why);
/* The row's S values of a scalar; NULL when memory is short. */
float *writer_scalar_row(run_writer *w, int which, sr_failure *why);
/* The row's columns of a site's vector; NULL when memory is short or the row has no vectors. */
float *writer_vector_row(run_writer *w, int which, int64_t site, sr_failure *why);
/* Closes the row. ints [RUN_STEP_INTS], reals [RUN_STEP_REALS] in the order of format.h. */
void writer_end_step(run_writer *w, const int64_t *ints, const double *reals);

/* write_custom.c: one more, without name yet; NULL when memory is short. */
run_declared *writer_add_declared(run_writer *w, sr_failure *why);
/* The i-th one's value in the row being filled. */
sr_status writer_put_declared(run_writer *w, int i, int64_t site, double value, sr_failure *why);

/* Its waiting values are NaN. NULL when memory is short. */
run_metric *writer_add_metric(run_writer *w, sr_failure *why);
/* Takes the current value of every metric. */
sr_status writer_put_eval(run_writer *w, int64_t step, double epoch, sr_failure *why);
sr_status writer_put_singular_values(run_writer *w, run_embedding *e, int64_t step,
                                     const double *values, sr_failure *why);

/* write_spectra.c: the current row of /spectra, when there is one; /final. */
sr_status writer_put_spectra(run_writer *w, int64_t step, sr_failure *why);
sr_status writer_put_final(run_writer *w, int64_t batches, const double *const *value,
                           sr_failure *why);
/* value[p] [layout.pairs] of one site, of the types of SR_PAIRS. */
sr_status writer_put_pairs(run_writer *w, int64_t site, const void *const value[SR_PAIR_COUNT],
                           sr_failure *why);
/* write_running.c: running values [W] after this step (SR_RUNNING), a row of /running. */
sr_status writer_put_running(run_writer *w, int64_t step, const double *const value[RUN_RUNNING],
                             sr_failure *why);
/* status; after a failure HDF5 is left alone. */
sr_status writer_keep(run_writer *w, sr_status status);

/* Unless it failed before: all that was written so far goes to the file, structure last. */
sr_status writer_commit(run_writer *w, sr_status status, sr_failure *why);
/* Waiting rows into the file, one H5Fflush, then the committed counts. */
sr_status writer_flush(run_writer *w, sr_failure *why);

/* Flushes, fills /state, closes. */
sr_status writer_finish(run_writer *w, const sr_run_info *end, sr_failure *why);
/* Frees the memory; closes the file unless broken. */
void writer_free(run_writer *w);

#endif
