/* observe.h -- from the normalization layers of a training run into its run file.
 *
 * The only room that knows the recorder (statrec/record.h) and the engine; src/observe. A NULL
 * run_record is a run without a file: every function takes it and does nothing.
 */
#ifndef OBSERVE_OBSERVE_H
#define OBSERVE_OBSERVE_H

#include "nets/models.h"
#include "observe/state.h"
#include "statrec/format.h"

typedef struct run_record run_record;

/* A number of the run's evaluations (sr_add_metric). */
typedef struct run_metric_declaration {
    const char *name, *unit, *definition;
    sr_better better;
} run_metric_declaration;

/* Texts are copied. */
typedef struct run_record_options {
    const char *path;   /* of the run file */
    bool force;         /* replaces one that is there */
    bool resume;        /* goes on with the one that is there: run_record_copy follows */
    const char *parent; /* of a resumed run: files and steps it comes from */
    const char *command, *config, *git, *data, *task;
    uint64_t seed;
    int threads;
    int shares, own_shares; /* of every batch, of this process; 0: 1 */
    bool each_share;        /* statistics of every share, not of the first alone */
    bool synchronised;      /* batch statistics are of all rows */
    const char *ranks;      /* sr_options.ranks: whose rows statistics are of; NULL: one process */
    bool scalars, vectors;  /* of the sites; neither: the run's steps and evaluations alone */
    const char *sites;      /* globs separated by commas; one that matches no site is refused */
    bool observe_batch;     /* what bn and pnv would find at each of them, with this alpha */
    double observe_alpha;   /* for methods that have none, that of the observer */
    bool attention;         /* scalars of the attentions, at the sites of their branches */
    int64_t vectors_every, size_limit, flush_steps;
    int64_t steps, updates;                       /* planned */
    int64_t spectra_every;                        /* updates; 0: none are recorded */
    int64_t activations_every, layer_norms_every; /* the same */
    double flush_seconds;
    const char *sync; /* flush, close, none */
    bool final;       /* a final pass will be made */
    int64_t pairs;    /* of input and output that it keeps of each site; 0: none */
    const run_metric_declaration *metric; /* [metrics] */
    int metrics;
} run_record_options;

/* The same observers as the record of these options has, in a process that writes nothing; what its
 * passes find goes to the first one (run_record_exchange). Every other function does nothing with
 * it. NULL on failure. */
run_record *run_record_follow(model *m, const run_record_options *o, sr_failure *why);
/* SR_OK when a run file can be made at this path; nothing is made yet. */
sr_status run_record_check_path(const char *path, bool force, sr_failure *why);
/* Creates the file, declares and watches the sites. NULL on failure. The model outlives it. */
run_record *run_record_create(model *m, const run_record_options *o, sr_failure *why);
/* Stops watching and finishes the file; frees it always. status: "complete", "diverged",
 * "interrupted" or "failed". Returns the recorder's first failure. */
sr_status run_record_close(run_record *r, const char *status, const char *reason,
                           const char *digest, sr_failure *why);
/* The same for a run that never made a step: leaves no file. */
void run_record_abandon(run_record *r);

/* A run file of before: what is needed to go on with it. Texts are malloc'd, freed by close. */
typedef struct run_record_info {
    int64_t last_step; /* readable; 0: none */
    bool complete;     /* or diverged: it came to its end */
    char *config, *command, *parent;
} run_record_info;
sr_status run_record_open_look(const char *path, run_record_info *look, sr_failure *why);
void run_record_close_look(run_record_info *look);

/* Takes over the rows of a run file that this run goes on with, options.resume, before the first
 * step; of the embedding's those up to embedding_step. Refused where steps are missing. */
sr_status run_record_copy(run_record *r, const char *from, int64_t steps, int64_t embedding_step,
                          sr_failure *why);
/* True when the file has a value of the metric after this step. */
bool run_record_has_eval(const char *path, const char *metric, int64_t step);
/* All rows so far into the file. */
sr_status run_record_flush(run_record *r, sr_failure *why);
/* The same before and after what takes long beside the steps; run_record_failed tells of
   failures. */
void run_record_flush_rows(run_record *r);

/* Bytes of the finished file and the spacing of vectors (0: none), as planned. */
int64_t run_record_projected_bytes(const run_record *r);
int64_t run_record_vectors_every(const run_record *r);

/* -- a step */

/* Numbers of the trainer's own. lr and grad_norm are NaN where the step closes no update. */
typedef struct run_step {
    int64_t update, tokens;
    double epoch, loss, lr, grad_norm;
} run_step;

/* spectra: the step also records those of every site's x and dx. */
void run_record_begin_step(run_record *r, int64_t step, bool spectra);
void run_record_end_step(run_record *r, const run_step *row);

/* (all processes) Whether the passes of the step that begins tell of the largest and the saturated
 * inputs of every site, with activations_every. */
void run_record_want_activations(run_record *r, bool wanted);
/* Around an update, numbered from 1, for the norms of layers: before gradients are clipped, which
 * times scale are those of the mean loss; and behind it, or where it was skipped. */
void run_record_before_update(run_record *r, int64_t update, double scale, int threads);
void run_record_after_update(run_record *r, int threads);

/* Whether the backward pass that follows also looks for NaN and infinity among the rows of sites
 * that have no statistic which would tell. */
void run_record_look_at_rows(run_record *r, bool look);
/* Name of the site where NaN or infinity came up since the last call, or NULL: the first in the
 * forward pass with such an input, otherwise the first in the backward pass with such a gradient;
 * *what = "input" or "gradient". */
const char *run_record_nonfinite(run_record *r, const char **what);
/* Passes from now on are of this process's share `number`, from 0. */
void run_record_enter(run_record *r, int number);
/* (all processes) Behind the passes of a step: what they found goes to the first process. Shares of
 * process k of `ranks`: first[k] .. first[k+1]-1. */
typedef struct run_exchange {
    norm_gather_fn *gather;
    void *context;
    int rank, ranks;
    const int *first; /* [ranks + 1] */
} run_exchange;
sr_status run_record_exchange(run_record *r, const run_exchange *x, sr_failure *why);
/* Seconds spent on behalf of the sites since the last call. */
double run_record_seconds(run_record *r);

/* The first failure of a watcher, or NULL: the run cannot go on. */
const sr_failure *run_record_hook_failed(const run_record *r);
/* The first failure of writing, or NULL. */
const sr_failure *run_record_failed(const run_record *r);

/* -- beside the steps */

/* One evaluation after a step: value[count] of the declared metrics called so. */
void run_record_eval(run_record *r, int64_t step, double epoch, const char *const *name,
                     const double *value, int count);
/* Singular values of the model's word embedding after a step; nothing where it has none. */
sr_status run_record_embedding(run_record *r, int64_t step, sr_failure *why);

/* Running values that only observers keep. */
sr_status run_record_state_each(run_record *r, state_visit_fn *visit, void *context,
                                sr_failure *why);

/* -- the final pass: final_tid.c */

typedef struct final_tid final_tid;

/* From now on NORM_BATCH passes of the model are summed. NULL on failure. */
final_tid *final_tid_begin(model *m, sr_failure *why);
/* Means over the batches so far of a site of the model; NaN and false where it has none. */
bool final_tid_of(const final_tid *f, int site, double *mean, double *var);
void final_tid_end(final_tid *f); /* stops watching, frees; NULL is fine */
/* Records the means, over so many batches, of the sites that are recorded, and pairs (NULL:
   none). */
typedef struct final_pairs final_pairs;
sr_status run_record_final(run_record *r, const final_tid *f, const final_pairs *pairs,
                           int64_t batches, sr_failure *why);

/* -- pairs of input and output in the final pass: final_pairs.c */

/* From now on the NORM_BATCH passes are looked at until each recorded site has `pairs` of them, of
 * its first batch with valid rows in any share, drawn by the seed: before final_tid_begin. *f NULL,
 * fine everywhere below: nothing is recorded, or no pairs are wanted. */
sr_status final_pairs_begin(run_record *r, int64_t pairs, uint64_t seed, final_pairs **f,
                            sr_failure *why);
bool final_pairs_wanted(const final_pairs *f); /* some site lacks them still */
/* (all processes) Behind the passes of all shares of a batch. *again: it is to pass once more, as
   it did. */
sr_status final_pairs_passed(final_pairs *f, const run_exchange *x, bool *again, sr_failure *why);
/* (all processes) Nothing is looked at any more; the pairs of all processes are in every one. */
sr_status final_pairs_exchange(final_pairs *f, const run_exchange *x, sr_failure *why);
void final_pairs_end(final_pairs *f); /* stops watching, frees */

#endif
