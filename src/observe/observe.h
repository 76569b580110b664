/* observe.h -- records the normalization layers of a training run into its run file.
 *
 * The only module that uses both the recorder (statrec/record.h) and the engine. A NULL run_record
 * is a run without a file: every function accepts it and does nothing.
 */
#ifndef OBSERVE_OBSERVE_H
#define OBSERVE_OBSERVE_H

#include "nets/models.h"
#include "observe/state.h"
#include "statrec/format.h"

typedef struct run_record run_record;

/* A metric of the run's evaluations (sr_add_metric). */
typedef struct run_metric_declaration {
    const char *name, *unit, *definition;
    sr_better better;
} run_metric_declaration;

/* Texts are copied. */
typedef struct run_record_options {
    const char *path;   /* path of the run file */
    bool force;         /* replace an existing file */
    bool resume;        /* resume the run in an existing file: run_record_copy follows */
    const char *parent; /* files and steps that a resumed run comes from */
    const char *command, *config, *git, *data, *task;
    uint64_t seed;
    int threads;
    int shares, own_shares; /* shards of a batch; those of this process; 0: 1 */
    bool each_share;        /* record every shard, not only the first */
    bool synchronised;      /* batch statistics cover all rows */
    const char *ranks;      /* sr_options.ranks: the rows of statistics; NULL: one process */
    bool scalars, vectors;  /* datasets of the sites; neither: only steps and evaluations */
    const char *sites;      /* globs separated by commas; each must match a site */
    bool observe_batch;     /* observe statistics of bn and pnv at each site */
    double observe_alpha;   /* alpha of the observer */
    bool attention;         /* record attention scalars at the sites of the branches */
    int64_t vectors_every, size_limit, flush_steps;
    int64_t steps, updates;                       /* planned */
    int64_t spectra_every;                        /* updates; 0: none are recorded */
    int64_t activations_every, layer_norms_every; /* the same */
    int64_t theorems_every;                       /* the same */
    double flush_seconds;
    const char *sync;                     /* flush, close, none */
    bool final;                           /* a final pass follows */
    int64_t pairs;                        /* inputs and outputs per site in that pass; 0: none */
    const run_metric_declaration *metric; /* [metrics] */
    int metrics;
} run_record_options;

/* A record for a process that writes nothing. It has the same observers and sends their statistics
 * to the first process (run_record_exchange). Other functions ignore it. NULL on failure. */
run_record *run_record_follow(model *m, const run_record_options *o, sr_failure *why);
/* SR_OK when a run file can be created at this path; creates nothing. */
sr_status run_record_check_path(const char *path, bool force, sr_failure *why);
/* Creates the file, declares and hooks the sites. NULL on failure. The model outlives it. */
run_record *run_record_create(model *m, const run_record_options *o, sr_failure *why);
/* Removes the hooks, finalizes the file and frees the record, also after a failure. status:
 * "complete", "diverged", "interrupted" or "failed". Returns the recorder's first failure. */
sr_status run_record_close(run_record *r, const char *status, const char *reason,
                           const char *digest, sr_failure *why);
/* The same for a run without a step: leaves no file. */
void run_record_abandon(run_record *r);

/* Data of a run file that resuming needs. Texts are malloc'd, freed by close. */
typedef struct run_record_info {
    int64_t last_step; /* readable; 0: none */
    bool complete;     /* the run ended, complete or diverged */
    char *config, *command, *parent;
} run_record_info;
sr_status run_record_open_look(const char *path, run_record_info *look, sr_failure *why);
void run_record_close_look(run_record_info *look);

/* Copies the rows of the resumed run file (options.resume) before the first step; rows of the
 * embedding up to embedding_step. Fails when steps are missing. */
sr_status run_record_copy(run_record *r, const char *from, int64_t steps, int64_t embedding_step,
                          sr_failure *why);
/* True when the file has a value of the metric after this step. */
bool run_record_has_eval(const char *path, const char *metric, int64_t step);
/* Writes all rows so far into the file. */
sr_status run_record_flush(run_record *r, sr_failure *why);
/* The same before and after long work between steps; run_record_failed returns failures. */
void run_record_flush_rows(run_record *r);

/* NULL, or why a lock file keeps other writers out, in one line. */
const char *run_record_lock_refused(const run_record *r);
/* Bytes of the finished file and the spacing of vectors (0: none), as planned. */
int64_t run_record_projected_bytes(const run_record *r);
int64_t run_record_vectors_every(const run_record *r);

/* -- a step */

/* The trainer's numbers. lr and grad_norm are NaN unless the step ends an update. */
typedef struct run_step {
    int64_t update, tokens;
    double epoch, loss, lr, grad_norm;
} run_step;

/* spectra: the step also records spectra of every site's x and dx. */
void run_record_begin_step(run_record *r, int64_t step, bool spectra);
void run_record_end_step(run_record *r, const run_step *row);

/* (all processes) wanted: the next step records activations of every site. For activations_every.
 */
void run_record_want_activations(run_record *r, bool wanted);
/* wanted: the next step records the scalars of theorems. For theorems_every. */
void run_record_want_theorems(run_record *r, bool wanted);
/* Norms of layers. Before: before clipping in an update, numbered from 1; gradients times scale
 * belong to the mean loss. After: after the update, also a skipped one. */
void run_record_before_update(run_record *r, int64_t update, double scale, int threads);
void run_record_after_update(run_record *r, int threads);

/* look: the next backward pass also searches rows for NaN and infinity, at sites without a
 * statistic that shows them. */
void run_record_look_at_rows(run_record *r, bool look);
/* Name of the first site with NaN or infinity since the last call, or NULL. Inputs go first, in the
 * order of the forward pass, then gradients. *what: "input" or "gradient". */
const char *run_record_nonfinite(run_record *r, const char **what);
/* Call before the passes of this process's shard `number`, from 0. */
void run_record_enter(run_record *r, int number);
/* (all processes) After the passes of a step: sends statistics to the first process. Process k of
 * `ranks` has the shards first[k] .. first[k+1]-1. */
typedef struct run_exchange {
    norm_gather_fn *gather;
    void *context;
    int rank, ranks;
    const int *first; /* [ranks + 1] */
} run_exchange;
sr_status run_record_exchange(run_record *r, const run_exchange *x, sr_failure *why);
/* Seconds spent in hooks since the last call. */
double run_record_seconds(run_record *r);

/* The first failure of a hook, or NULL: the run cannot continue. */
const sr_failure *run_record_hook_failed(const run_record *r);
/* The first failure of writing, or NULL. */
const sr_failure *run_record_failed(const run_record *r);

/* -- beside the steps */

/* One evaluation after a step: value[count] of declared metrics name[count]. */
void run_record_eval(run_record *r, int64_t step, double epoch, const char *const *name,
                     const double *value, int count);
/* Records singular values of the word embedding after a step; does nothing without one. */
sr_status run_record_embedding(run_record *r, int64_t step, sr_failure *why);

/* Visits running statistics of observers. */
sr_status run_record_state_each(run_record *r, state_visit_fn *visit, void *context,
                                sr_failure *why);

/* -- the final pass: final_tid.c */

typedef struct final_tid final_tid;

/* Starts to sum NORM_BATCH passes of the model. NULL on failure. */
final_tid *final_tid_begin(model *m, sr_failure *why);
/* Means of a site over the batches so far; NaN and false without any. */
bool final_tid_of(const final_tid *f, int site, double *mean, double *var);
void final_tid_end(final_tid *f); /* removes the hooks, frees; NULL is fine */
/* Records the means over `batches` batches for recorded sites, and pairs (NULL: none). */
typedef struct final_pairs final_pairs;
sr_status run_record_final(run_record *r, const final_tid *f, const final_pairs *pairs,
                           int64_t batches, sr_failure *why);

/* -- pairs of input and output in the final pass: final_pairs.c */

/* Hooks NORM_BATCH passes until each recorded site has `pairs` pairs, drawn by the seed from its
 * first batch with valid rows. Call before final_tid_begin. *f is NULL, fine below, when nothing is
 * recorded or no pairs are wanted. */
sr_status final_pairs_begin(run_record *r, int64_t pairs, uint64_t seed, final_pairs **f,
                            sr_failure *why);
bool final_pairs_wanted(const final_pairs *f); /* some site still lacks pairs */
/* (all processes) After the passes of all shards of a batch. *again: pass the same batch again. */
sr_status final_pairs_passed(final_pairs *f, const run_exchange *x, bool *again, sr_failure *why);
/* (all processes) Removes the hooks; gives every process the pairs of all. */
sr_status final_pairs_exchange(final_pairs *f, const run_exchange *x, sr_failure *why);
void final_pairs_end(final_pairs *f); /* removes the hooks, frees */

#endif
