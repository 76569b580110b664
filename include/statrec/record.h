/* record.h -- write a run file (statrec/format.h) from any training loop.
 *
 *   sr_failure why = {0};
 *   sr_options o = SR_OPTIONS_DEFAULT;
 *   o.program = "mytrainer";
 *   o.planned_steps = steps;
 *   sr_recorder *r = sr_create("run.h5", &o, &why);
 *   sr_site norm1 = SR_INIT(sr_site, .name = "encoder.0.norm1", .norm = "bn", .kind = "encoder",
 *                           .family = SR_FAMILY_SIGMA, .width = 512, .eps = 1e-5, .alpha = 0.95);
 *   int site = sr_add_site(r, &norm1);
 *   sr_add_metric(r, "valid_f1", "percent", "span F1, validation split", SR_BETTER_MORE);
 *   int ratio = sr_declare_scalar(r, "update_ratio", "1", "||update of gamma|| / ||gamma||",
 *                                 SR_PER_SITE);
 *   for (int64_t step = 1; step <= steps; step++) {
 *       sr_begin_step(r, step);
 *       sr_take_forward(r, site, &x, gamma);     either raw tensors, of which
 *       sr_take_backward(r, site, &dy);          the recorder computes statistics
 *       sr_put_rows(r, site, n);                    or statistics that the host
 *       sr_put_vector(r, site, SR_mu_B, mu_B);      program computed
 *       sr_put_scalar(r, site, ratio, 1e-3);
 *       sr_step row = SR_INIT(sr_step, .update = step, .tokens = n, .epoch = NAN, .loss = loss,
 *                             .lr = lr, .grad_norm = NAN);
 *       sr_end_step(r, &row);
 *       sr_begin_eval(r, step, NAN);                after a step, when there is one
 *       sr_put_metric(r, "valid_f1", f1);
 *       sr_end_eval(r);
 *   }
 *   sr_finish finish = SR_INIT(sr_finish, .status = "complete");
 *   if (sr_close(r, &finish, &why) != SR_OK) fprintf(stderr, "%s\n", why.text);
 *
 * The recorder never prints, never exits and never stops its host program. It keeps the first
 * failure; later calls do nothing and return it, and sr_close reports it. Declare sites before the
 * first step. The file is PATH.part while it grows (readable by HDF5 SWMR). sr_close renames it to
 * PATH, unless another file appeared there. A relative PATH belongs to the working directory of
 * sr_create, wherever the program goes later. In C++ set the size of a struct yourself:
 * `sr_site s{}; s.size = sizeof s;`. Call the recorders of a process from one thread at a
 * time, since HDF5 has global state. In a forked child all calls fail and write nothing.
 */
#ifndef STATREC_RECORD_H
#define STATREC_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "statrec/base.h"
#include "statrec/format.h"
#include "statrec/moments.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sr_recorder sr_recorder;

/* When written rows become durable (fdatasync). A killed process loses the rows since the last
 * flush (flush_steps, flush_seconds), and no flushed row in any case. A power failure loses the
 * rows after the last flush, or all rows. */
typedef enum sr_sync {
    SR_SYNC_FLUSH, /* at every flush */
    SR_SYNC_CLOSE, /* when the run has ended */
    SR_SYNC_NONE   /* when the system writes them */
} sr_sync;

/* Initialize with SR_OPTIONS_DEFAULT: not every field may be 0. Texts are copied and are UTF-8. A
 * NULL text is stored as "". */
typedef struct sr_options {
    size_t size;
    bool force; /* replace PATH and PATH.part */
    const char *program, *version, *command, *config, *host, *git, *model, *data;
    /* "images" (classification), "pairs" (translation), or a word of the host program. */
    const char *task;
    /* "sum" or "mean" over the rows: reduction of the loss whose gradient the sites receive. Other
     * texts and NULL are rejected. Programs scale g_*_sum and g_*_mean by it. */
    const char *loss_reduction;
    const char *parent; /* "file step" that a resumed run continues, or "" */
    uint64_t seed;
    int threads;
    bool scalars, vectors; /* datasets to record */
    /* Record vectors in steps divisible by it. 0: never. -1: every step while the projected file is
     * below size_limit, else at a larger spacing. Without planned_steps the spacing grows with the
     * run, so that its vectors cover all of it. If the other data nearly fill size_limit, one row
     * of vectors may be left, or none. */
    int64_t vectors_every;
    int64_t planned_steps;   /* for the projection; 0 = unknown */
    int64_t size_limit;      /* bytes; default 2e9 */
    int64_t flush_steps;     /* flush after N rows, default 64: a kill loses at most N */
    double flush_seconds;    /* and when the oldest row is older, default 5; 0: every row */
    double started;          /* seconds since the epoch; 0 = now */
    bool spectra, final;     /* declare /spectra, /final */
    int64_t planned_spectra; /* rows of /spectra, for the projection */
    /* PATH or PATH.part is the run to resume. Both stay unchanged until sr_copy_rows has copied it.
     * Then the new file is PATH.part, and PATH when it is closed. Without sr_copy_rows the first
     * row and sr_close fail (SR_STATE), and nothing is changed. */
    bool resume;
    /* sr_flush and sr_close store the running statistics of sr_take_*, so that a run can resume. */
    bool running;
    /* With vectors_every -1: the fraction of the run's time that recording may take; the spacing of
     * vectors doubles while it takes more. /steps/recorder_seconds and /steps/vectors_every record
     * both. 0: no limit. */
    double overhead;
    /* The ranks whose rows the statistics cover: "rank 0 of 4", "all of 4"; "" for one process. */
    const char *ranks;
    sr_sync sync;
    int64_t pairs; /* with final: K pairs of each site below /final; 0: none */
} sr_options;

#define SR_OPTIONS_DEFAULT                                                                         \
    {                                                                                              \
        .size = sizeof(sr_options), .loss_reduction = "sum", .scalars = true, .vectors = true,     \
        .vectors_every = -1, .size_limit = 2000000000, .flush_steps = 64, .flush_seconds = 5,      \
        .running = true, .overhead = 0.02                                                          \
    }

/* Several forward passes of a site in one step (sr_take_forward). */
typedef enum {
    SR_REPEAT_LAST, /* the last pass with a backward pass counts: activation checkpointing */
    /* All passes with a backward pass are merged (Chan's formula): micro-batches, shared
       modules. */
    SR_REPEAT_MERGE
} sr_repeat;

/* Analyses use these properties, never the name of the method. Texts are UTF-8.
 *
 * A layer with frozen statistics normalizes with its running ones and depends on no batch
 * statistic. For it, call sr_take_forward without sr_take_backward and put mu and sigma2 (or psi2).
 * Its distances are recorded, and values of the backward pass are NaN (docs/norms.md 24). */
typedef struct sr_site {
    size_t size;
    /* name: "encoder.0.norm1". NAME@K with a number K >= 1 is reserved for site NAME in shard or
     * rank K; shard 0 is NAME itself. NAME and all smaller K must be there, of the same width.
     * norm: a method of `statrec list norms`, or your own word. */
    const char *name, *norm;
    /* The part of the model: "conv", "encoder", "decoder", or your own word. Result tables separate
     * the decoder's normalization by it. */
    const char *kind;
    /* Which statistics the method divides by (statrec/format.h). SR_FAMILY_NONE, the default, has
     * few scalars (sr_put_vector). */
    sr_family family;
    int width;         /* features d */
    int depth;         /* index in the forward pass; different for each site, except that NAME@K has
                          NAME's. All 0: the order of sr_add_site. */
    int layer_scale;   /* groups, 0 = none */
    double eps, alpha; /* alpha weighs the OLD running value; NaN without running statistics, as 0
                          at a ROW or NONE site that is not observed. eps NaN: unknown; values that
                          need it are NaN. */
    /* As in SR_METHOD_TEXTS: "batch", "mu,sigma2", "". NULL: as the family has it; ROW and OWN have
     * no default for uses. Values that contradict the family are rejected. SIGMA, PSI and PN have
     * no constants, since their formulas differentiate the statistics: use OWN and put the g_*. */
    const char *axis, *uses, *constants;
    bool layer_scale_own; /* the layer scale is part of the method */
    sr_repeat repeat;
} sr_site;

/* Values of one step; names as in SR_STEP_INTS and SR_STEP_REALS. Negative update, tokens, lr and
 * grad_norm are rejected (SR_USAGE); NaN: not known. */
typedef struct sr_step {
    size_t size;
    int64_t update, tokens;
    double epoch, loss, lr, grad_norm;
} sr_step;

/* Runs sr_create's checks of the path, before the host program loads its data. SR_EXISTS: PATH or
 * PATH.part exists; with force, only if it is no regular file. SR_IO: its directory is missing or
 * not writable. Changes nothing. */
sr_status sr_check_path(const char *path, bool force, sr_failure *why);

/* Rejects an existing PATH or PATH.part (SR_EXISTS) unless options.force; hints call it --force, as
 * programs do. With force, too, it rejects a PATH.part that another recorder is writing. NULL on
 * failure. */
sr_recorder *sr_create(const char *path, const sr_options *options, sr_failure *why);

/* NULL, or one line: why PATH.part.lock replaces a lock of the system. Some network file systems
 * and containers have no locks. Readers need none. */
const char *sr_lock_refused(const sr_recorder *r);

/* Adds a site. Returns its number (0, 1, ...), or -1. */
int sr_add_site(sr_recorder *r, const sr_site *site);
/* Declares /embeddings/<name> with min(rows, cols) singular values; at most SR_EMBEDDINGS_MAX.
 * Before the first step. */
sr_status sr_add_embedding(sr_recorder *r, const char *name, int64_t rows, int64_t cols);

/* Stores how an embedding's singular values are computed, one line (< SR_METHOD_SIZE bytes), in its
 * attribute `method`. Before the first step. */
sr_status sr_set_embedding_method(sr_recorder *r, const char *name, const char *method);

/* Declares a metric /evals/<name>, at most SR_METRICS_MAX, before the first step. name: <
 * SR_NAME_SIZE bytes without '/', does not start with '.', is not "step" or "epoch". unit: "nats
 * per token", "percent", "1" (< SR_NAME_SIZE bytes). definition: < SR_DEFINITION_SIZE bytes.
 * better: the direction of improvement. Tables show the metric that was declared first unless
 * another is named. */
sr_status sr_add_metric(sr_recorder *r, const char *name, const char *unit, const char *definition,
                        sr_better better);

/* Declares a custom scalar, one value per step, or per site and step: the gradient norm of a layer,
 * the entropy of its attention. Returns its id for sr_put_scalar or sr_put_step_scalar, or -1.
 * name, unit and definition as in sr_add_metric; the name must not be a column of /steps or
 * /scalars. At most SR_DECLARED_MAX, before the first step. */
int sr_declare_scalar(sr_recorder *r, const char *name, const char *unit, const char *definition,
                      sr_scope scope);

/* Sets the vectors (bits 1u << SR_mu_B ...) that the host program will put at a site, for the
 * projection. The default follows from the family. Before the first step. */
sr_status sr_expect_vectors(sr_recorder *r, int site, uint32_t vectors);

/* Marks a site whose batch statistics are observed, not used. Vectors and scalars of bn and pnv are
 * recorded beside its family's, and /sites/observed is 1. Its sum_g and sum_gx are for
 * xhat = (x - mu_B) / sqrt(sigma2_B + eps), whatever its family. sr_take_* compute them so; a host
 * program that puts vectors must do so, too. Before the first step. */
sr_status sr_set_observed(sr_recorder *r, int site);

/* Sets the weight of the OLD nu of a PN site, from 0 to 1; NaN, the default: the site's alpha.
 * sr_take_* update nu by it. Before the first step. */
sr_status sr_set_alpha_backward(sr_recorder *r, int site, double alpha_bwd);

/* Projected bytes of the finished file, -1 without options.planned_steps; and the spacing of
 * vectors. Valid after all sites are declared. */
int64_t sr_projected_bytes(const sr_recorder *r);
int64_t sr_vectors_every(const sr_recorder *r);

/* Begins a forward and backward pass. step: unique and increasing. The first step reserves disk
 * space for the metadata, some 8 bytes a feature and at most options.size_limit; SR_IO if the file
 * system has less. */
sr_status sr_begin_step(sr_recorder *r, int64_t step);
/* Whether the current step records vectors; if not, they need not be put. False outside a step. */
bool sr_wants_vectors(const sr_recorder *r);

/* Puts statistics of the current step, value [width of the site]. sr_end_step derives the scalars
 * that follow from vectors and rows; put the others by sr_put_scalar. At a site of SR_FAMILY_NONE
 * that is not observed, sum_g, sum_gx, nu, Gamma_t and Lambda_t are rejected (SR_USAGE): they have
 * no meaning without a family. (sr_take_* and sr_put_backward store sum_g and sum_gx there, with
 * SIGMA's xhat.) Negative sigma2_B and psi2_B are rejected (SR_USAGE). */
sr_status sr_put_rows(sr_recorder *r, int site, int64_t rows);
sr_status sr_put_vector(sr_recorder *r, int site, sr_vector which, const double *value);
/* which: one of sr_scalar, or an id of sr_declare_scalar. The last value counts. */
sr_status sr_put_scalar(sr_recorder *r, int site, int which, double value);
sr_status sr_put_step_scalar(sr_recorder *r, int which, double value);

/* For bindings: vectors, scalars and families of statrec/format.h by their names; -1 (families:
 * SR_FAMILY_COUNT) for unknown names. Names and definitions by number; NULL past the end. */
int sr_vector_id(const char *name);
int sr_scalar_id(const char *name);
const char *sr_vector_name(int which);
const char *sr_scalar_name(int which);
const char *sr_vector_definition(int which);
const char *sr_scalar_definition(int which);
sr_family sr_family_find(const char *name);

/* Takes raw tensors of the current step (statrec/moments.h) and computes mu_B, sigma2_B, psi2_B,
 * gamma, sum_g and sum_gx at sr_end_step.
 *
 * x: the input of the normalization, contiguous; inner is at least 1, outer is 0 for an empty
 * batch. gamma [channels]: its gain, copied; NULL: ones. x is not copied: keep it and its mask
 * unchanged until sr_take_backward. dy: the gradient of the output, of the same shape; x.valid
 * counts for both, and dy.valid is not read. A backward pass matches the last unmatched forward
 * pass; extra ones are ignored. One without any forward pass of the site in the step is an error
 * (SR_STATE). A merging site may have up to 4096 unmatched forward passes.
 * sr_site.repeat sets how several passes of a step combine. Without any backward pass the last
 * forward pass counts.
 *
 * The recorder keeps running statistics with the site's alpha (none if NaN), updated once a step.
 * If you record every K-th pass, they cover the recorded passes only. `--burn-in auto` counts step
 * numbers: use --burn-in with K times the number, or number the recorded steps 1, 2, 3. A host
 * program with its own running statistics puts them in the same step (sr_put_vector: mu, sigma2,
 * psi2, nu). Other vectors, rows and scalars that it puts replace the recorder's, too.
 *
 * xhat of sum_gx: SIGMA, ROW, OWN, NONE (x - mu_B) / sqrt(sigma2_B + eps); PSI x / sqrt(psi2_B +
 * eps). PN x / sqrt(psi2 + eps), psi2 from before the update; without alpha put psi2 (else
 * SR_USAGE). sum_gx of a ROW site is thus no dL/dgamma. dx_norm and direct_norm are missing for
 * merged passes. dx_norm is a difference of sums: with one or two rows it loses digits by
 * cancellation. */
sr_status sr_take_forward(sr_recorder *r, int site, const sr_tensor *x, const float *gamma);
sr_status sr_take_backward(sr_recorder *r, int site, const sr_tensor *dy);

/* Moments of a forward pass that the host program computed (on a device, or in another process),
 * over valid rows, [width] each. The variance is biased. A negative variance or mean square is
 * rejected (SR_USAGE): put 0 where it is rounding. gamma NULL: ones. */
typedef struct sr_forward {
    size_t size;
    int64_t rows, samples, padded; /* samples 0: unknown */
    const double *mean, *variance, *mean_square, *gamma;
} sr_forward;
/* Sums of a backward pass over valid rows, [width] each: g, g (x - mean) with the mean of the
 * forward pass, and g^2. sum_gg NULL: no dx_norm and direct_norm. */
typedef struct sr_backward {
    size_t size;
    const double *sum_g, *sum_gc, *sum_gg;
} sr_backward;
sr_status sr_put_forward(sr_recorder *r, int site, const sr_forward *x);
sr_status sr_put_backward(sr_recorder *r, int site, const sr_backward *dy);

/* sr_put_forward and sr_put_backward of many passes in one call, for languages whose calls cost
 * more than the work. values: mean, and each `stride` doubles later variance, mean square, sum_g,
 * sum_gc, sum_gg and gamma, [width] each. */
typedef struct sr_pass {
    size_t size;
    int site;
    bool has_gg, has_gamma; /* false: these values are not read */
    int64_t rows, samples, padded, stride;
    const double *values;
} sr_pass;
/* passes [count], of the size of the first one. Ends with the first rejected pass. */
sr_status sr_put_passes(sr_recorder *r, const sr_pass *passes, int64_t count);
/* sr_put_vector and sr_put_scalar of one statistic at many sites. site, value [count]. */
sr_status sr_put_vectors(sr_recorder *r, sr_vector which, const int *site,
                         const double *const *value, int64_t count);
sr_status sr_put_scalars(sr_recorder *r, int which, const int *site, const double *value,
                         int64_t count);

/* Seconds of the recorder so far. sr_add_seconds adds time that the host program spent for
 * recording (options.overhead). /steps/recorder_seconds has the seconds since the row before. */
double sr_own_seconds(const sr_recorder *r);
void sr_add_seconds(sr_recorder *r, double seconds);

/* Puts singular values [width], descending and not negative (SR_USAGE), of a site's input and
 * gradient in the current step, with the number of valid rows. value[k] NULL: none. Needs
 * options.spectra. */
sr_status sr_put_spectrum(sr_recorder *r, int site, int64_t rows,
                          const double *const value[SR_SPECTRUM_COUNT]);

sr_status sr_end_step(sr_recorder *r, const sr_step *row);

/* Records one row of /evals: begin, metrics, end. step: the pass before the evaluation, recorded or
 * not; not smaller than the last one's. epoch: passes over the training data so far, or NaN. Put
 * each metric at most once; a missing one is NaN. Up to 16 evaluations may come before the first
 * step. */
sr_status sr_begin_eval(sr_recorder *r, int64_t step, double epoch);
sr_status sr_put_metric(sr_recorder *r, const char *name, double value);
sr_status sr_end_eval(sr_recorder *r);
/* Puts values [min(rows, cols)] of a declared embedding: descending and not negative. step must not
 * be smaller than the last one (SR_USAGE). */
sr_status sr_put_singular_values(sr_recorder *r, const char *name, int64_t step,
                                 const double *values);

/* Puts the statistics of a final pass over `batches` batches: value[f] [sites], NaN for none. Needs
 * options.final. */
sr_status sr_put_final(sr_recorder *r, int64_t batches, const double *const value[SR_FINAL_COUNT]);

/* Puts options.pairs pairs of a site's input and output from the final pass (SR_PAIRS), before
 * sr_put_final. feature: 0 .. width-1; for a site without pairs all -1, and x and y NaN. */
sr_status sr_put_pairs(sr_recorder *r, int site, const float *x, const float *y,
                       const int32_t *feature);

/* Flushes buffered rows and, with options.running, stores the running statistics after the last
 * step. Call it when you save a checkpoint. The file keeps the last SR_RUNNING_KEPT of them. */
sr_status sr_flush(sr_recorder *r);
/* Flushes buffered rows only. Call it before long work that does not call the recorder, such as
 * validation. Every other call flushes only rows that are older than flush_seconds. */
sr_status sr_flush_rows(sr_recorder *r);
struct sr_recovery; /* statrec/runfile.h */

/* Copies readable rows of the run file `from` with step <= up_to_step (< 0: all), before the first
 * step of r. Sites and embeddings of both must agree. embeddings_up_to limits the rows of
 * embeddings. The run keeps the file's `created`. result may be NULL. Running statistics resume
 * from the ones stored at result->running_step, the last at or before up_to_step; -1: none, they
 * are initialized. SR_IO: a resumed file was read with damage first and without it again, so that
 * the disk may fail; it stays as it is. */
sr_status sr_copy_rows(sr_recorder *r, const char *from, int64_t up_to_step,
                       int64_t embeddings_up_to, struct sr_recovery *result);

/* The failure kept so far, or NULL. */
const sr_failure *sr_failed(const sr_recorder *r);

typedef struct sr_finish {
    size_t size;
    /* "complete"; "diverged": the loss is not finite; "interrupted"; "failed" */
    const char *status;
    const char *reason; /* one line, or "" */
    const char *weights_digest;
} sr_finish;

/* Flushes, closes, renames PATH.part to PATH, and always frees r. Returns the first failure of the
 * recorder. r NULL: SR_OK. A step without sr_end_step is not recorded, and /state/reason records
 * that unless finish has a reason. "complete" inside an evaluation is a failure (SR_STATE). */
sr_status sr_close(sr_recorder *r, const sr_finish *finish, sr_failure *why);
/* Frees r without finishing. Leaves PATH.part as a crash would, or no file if no step began. */
void sr_abandon(sr_recorder *r);

#ifdef __cplusplus
}
#endif
#endif
