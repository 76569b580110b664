/* run_writer.h -- the state of a run file that is being written: handles of its datasets, and the
 * rows that are buffered in memory. */
#ifndef RUNFILE_WRITE_RUN_WRITER_H
#define RUNFILE_WRITE_RUN_WRITER_H

#include "hdf5/h5.h"
#include "journal/lock_file.h"
#include "runfile/dataset_layout.h"
#include "statrec/runfile.h"

/* Rows of one group: `written` are in the file, `count` of `capacity` are buffered. */
typedef struct row_block {
    int64_t written, count, capacity;
} row_block;

enum { EVAL_CAPACITY = 16 };

/* A metric of evaluations. */
typedef struct run_metric {
    char name[SR_NAME_SIZE], unit[SR_NAME_SIZE], definition[SR_DEFINITION_SIZE];
    sr_better better;
    h5_id set;
    double value[EVAL_CAPACITY]; /* buffered */
    double current;              /* value of the evaluation in progress */
    bool put;                    /* `current` was put */
} run_metric;

/* A custom scalar. */
typedef struct run_declared {
    char name[SR_NAME_SIZE], unit[SR_NAME_SIZE], definition[SR_DEFINITION_SIZE];
    sr_scope scope;
    h5_id set;
    float *site_value;  /* per site: [capacity, S]; NULL until used */
    double *step_value; /* per step: [capacity] */
} run_declared;

/* Running statistics below /running; a run may resume from them. */
typedef struct running_rows {
    h5_id step_set, set[RUN_RUNNING];
    int64_t written; /* rows; from SR_RUNNING_KEPT on the oldest row is overwritten */
    int64_t last;    /* step of the newest row; -1: none */
} running_rows;

/* The row of /spectra of the current step. It is written when its step ends. */
typedef struct spectra_row {
    h5_id step_set, rows_set, set[SR_SPECTRUM_COUNT];
    int64_t written;
    int64_t *rows;                    /* [S]; NULL until used */
    double *value[SR_SPECTRUM_COUNT]; /* [W] each, one block */
    bool used;                        /* by the current step */
} spectra_row;

typedef struct run_writer {
    const char *path; /* path of the file; not owned */
    h5_id file;
    lock_file lock; /* used if the system refuses locks */
    run_layout layout;
    run_embedding *embedding; /* [embeddings]; owned by the caller */
    int embeddings;
    int64_t flush_steps, size_limit; /* size_limit: of what is reserved; 0: none */
    bool sync_flushes, sync_end;     /* fsync after every flush; at the end of the run */
    bool ready;                      /* all datasets are declared */
    bool broken;                     /* a write failed: no more calls of HDF5 */

    h5_id step_set[RUN_STEPS], scalar_set[SR_SCALAR_COUNT], vector_set[SR_VECTOR_COUNT],
        vector_step_set;
    h5_id eval_step_set, eval_epoch_set;
    h5_id committed_set[COMMITTED_COUNT];
    h5_id status_set, reason_set, finished_set, digest_set, wall_set;
    h5_id final_set[SR_FINAL_COUNT], final_batches_set, pair_set[SR_PAIR_COUNT];
    spectra_row spectra;
    running_rows running;

    row_block steps, vectors, evals;
    step_value *step[RUN_STEPS];           /* [capacity] */
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
    bool filling;      /* a row was begun and has not ended */
    bool with_vectors; /* that row has vectors */
} run_writer;

#endif
