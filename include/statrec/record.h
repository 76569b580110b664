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
 *       sr_take_forward(r, site, &x, gamma);     either raw tensors:
 *       sr_take_backward(r, site, &dy);          the recorder takes the statistics
 *       sr_put_rows(r, site, n);                    or statistics that the host has
 *       sr_put_vector(r, site, SR_mu_B, mu_B);      already, vector by vector
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
 * The recorder never prints, never exits and never stops its host: the first failure is kept,
 * later calls do nothing and return it, sr_close reports it. Sites are declared before the first
 * step. While recording the file is PATH.part (readable as it grows: HDF5 SWMR); sr_close renames
 * it to PATH without replacing a file that appeared there meanwhile. The recorders of a process are
 * used by one thread at a time (HDF5 is one for all of them); a child that a process forks may go on
 * as if there were none: it writes nothing.
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

/* NULL text is stored as "". Texts are copied. */
/* When what was written is made to be on the disk (fdatasync). A killed process loses no flushed row
 * either way; a power failure, those since the last flush, or any. */
typedef enum sr_sync {
    SR_SYNC_FLUSH, /* at every flush */
    SR_SYNC_CLOSE, /* once the run has ended */
    SR_SYNC_NONE   /* when the system comes to it */
} sr_sync;

typedef struct sr_options {
    size_t size;
    bool force; /* replace PATH and PATH.part */
    const char *program, *version, *command, *config, *host, *git, *model, *data;
    const char *task; /* what the model does: "images" classifies images, "pairs" translates
                                   sentence pairs; a host's own word for anything else */
    const char *loss_reduction; /* "sum" or "mean": of the loss whose gradient sites see */
    const char *parent;         /* "file step" a resumed run continues, or "" */
    uint64_t seed;
    int threads;
    bool scalars, vectors;   /* what to record */
    int64_t vectors_every;   /* record vectors in steps divisible by it; 0 = never;
                                -1 = every step while the projected file stays under size_limit, else
                                spaced; without planned_steps at a spacing that widens as the run
                                goes on, so that they are of all of it */
    int64_t planned_steps;   /* for the projection; 0 = unknown */
    int64_t size_limit;      /* bytes; default 2e9 */
    int64_t flush_steps;     /* default 64 */
    double flush_seconds;    /* default 5 */
    double started;          /* seconds since the epoch; 0 = now */
    bool spectra, final;     /* declare /spectra, /final */
    int64_t planned_spectra; /* rows of /spectra, for the projection */
    bool
        resume; /* PATH or PATH.part is the run that goes on: both stay as they are until sr_copy_rows
                    has copied it; then the new file is PATH.part, and PATH when it is closed */
    bool running;    /* sr_flush and sr_close keep the running values of sr_take_* in the file,
                          for a run that goes on from there */
    double overhead; /* where vectors_every is -1: the share of the run's time that recording may
                          take; their spacing doubles while it takes more. What it took and did is
                          in /steps: recorder_seconds, vectors_every. 0: no matter */
    const char
        *ranks; /* whose rows the statistics are of, where several processes train: "rank 0 of
                          4", "all of 4"; "" for one process */
    sr_sync sync;
    int64_t pairs; /* with final: declares K of each site's pairs below /final; 0: none */
} sr_options;

#define SR_OPTIONS_DEFAULT                                                                         \
    {                                                                                              \
        .size = sizeof(sr_options), .loss_reduction = "sum", .scalars = true, .vectors = true,     \
        .vectors_every = -1, .size_limit = 2000000000, .flush_steps = 64, .flush_seconds = 5,      \
        .running = true, .overhead = 0.02                                                          \
    }

/* More than one forward pass of a site in a step (sr_take_forward). */
typedef enum {
    SR_REPEAT_LAST, /* the last one before its backward pass counts: activation checkpointing */
    SR_REPEAT_MERGE /* those that a backward pass follows are one batch (Chan's formula): the
                       micro-batches of an update, the uses of a shared module */
} sr_repeat;

/* Analyses ask for what stands here, never for the name of the norm. */
typedef struct sr_site {
    size_t size;
    /* Of name: NAME@K, K a number from 1, is reserved: site NAME as rank or share K of the batch saw
     * it, a host's own ranks too. Share 0 is NAME itself; readers take NAME@K for no further layer. */
    const char *name, *norm; /* "encoder.0.norm1"; its method, as in `statrec list norms` */
    const char *kind;        /* part of the model that it sits in: "conv", "encoder", "decoder"; a
                                host's own word for others. Result tables tell the decoder's
                                normalization from the model's by it */
    sr_family family;        /* which statistics the method divides by (statrec/format.h); left out:
                                SR_FAMILY_NONE, whose scalars are few (sr_put_vector) */
    int width;               /* features d */
    int depth;         /* place in the order of the forward pass, from 0; another for each site */
    int layer_scale;   /* groups, 0 = none */
    double eps, alpha; /* alpha weighs the OLD running value; NaN where there is none */
    /* As in SR_METHOD_TEXTS: "batch", "mu,sigma2", "". NULL: what follows from the family, which of
     * ROW and OWN does not tell what they use. Refused where they contradict the family. */
    const char *axis, *uses, *constants;
    bool layer_scale_own; /* the layer scale is a part of the method */
    sr_repeat repeat;
} sr_site;

/* Numbers of the host's own for one step; names as in SR_STEP_INTS and SR_STEP_REALS. */
typedef struct sr_step {
    size_t size;
    int64_t update, tokens;
    double epoch, loss, lr, grad_norm;
} sr_step;

/* What sr_create would refuse about the path now, for hosts that load data first: PATH or PATH.part
 * exists (SR_EXISTS; with force, only what is no regular file), or its directory is missing or takes
 * no files (SR_IO). Changes nothing. */
sr_status sr_check_path(const char *path, bool force, sr_failure *why);

/* Refuses an existing PATH or PATH.part (SR_EXISTS) unless force. NULL on failure. */
sr_recorder *sr_create(const char *path, const sr_options *options, sr_failure *why);

/* Number of the new site (0, 1, ...), or -1. */
int sr_add_site(sr_recorder *r, const sr_site *site);
/* Declares /embeddings/<name> with room for min(rows, cols) singular values; at most SR_EMBEDDINGS_MAX.
 * Before the first step. */
sr_status sr_add_embedding(sr_recorder *r, const char *name, int64_t rows, int64_t cols);

/* How the singular values of a declared embedding are computed, one line (< SR_METHOD_SIZE bytes):
 * its attribute `method`. Before the first step. */
sr_status sr_set_embedding_method(sr_recorder *r, const char *name, const char *method);

/* Declares /evals/<name>: a number of an evaluation, its unit ("nats per token", "percent", "1") and
 * definition (< SR_NAME_SIZE and SR_DEFINITION_SIZE bytes), and which of two values is better. The
 * first one declared is what tables show when nobody names a metric. name: < SR_NAME_SIZE bytes,
 * none of them '/', not beginning with '.', not "step" or "epoch"; at most SR_METRICS_MAX, each
 * once. Before the first step. */
sr_status sr_add_metric(sr_recorder *r, const char *name, const char *unit, const char *definition,
                        sr_better better);

/* Declares a number of the host's own, one per step or one per site and step: gradient norm of a layer,
 * entropy of its attention. Its id, for sr_put_scalar and sr_put_step_scalar, or -1. name, unit and
 * definition as in sr_add_metric, and no column of /steps or /scalars already, those of
 * options.overhead among them; at most SR_DECLARED_MAX. Before the first step. */
int sr_declare_scalar(sr_recorder *r, const char *name, const char *unit, const char *definition,
                      sr_scope scope);

/* Tells the projection which vectors (bits 1u << SR_mu_B ...) the host will put at a site, where
 * these are not the ones of its family. Before the first step. */
sr_status sr_expect_vectors(sr_recorder *r, int site, uint32_t vectors);

/* Says that the batch statistics of a site are observed, not used: vectors and scalars of bn and
 * pnv are recorded beside those of its family, and /sites/observed is 1. sum_g and sum_gx of such a
 * site are those of xhat = (x - mu_B) / sqrt(sigma2_B + eps) for every family; sr_take_* do
 * that, a host that puts vectors does it itself. Before the first step. */
sr_status sr_set_observed(sr_recorder *r, int site);

/* Projected bytes of the finished file (options.planned_steps steps), and the spacing of vectors
 * that follows. Valid once all sites are declared; -1 when planned_steps is unknown. */
int64_t sr_projected_bytes(const sr_recorder *r);
int64_t sr_vectors_every(const sr_recorder *r);

/* Begins a forward and backward pass. step: unique and increasing. */
sr_status sr_begin_step(sr_recorder *r, int64_t step);
/* Whether the vectors of the step that has begun are kept; where they are not, a host need not put
 * any. False outside of a step. */
bool sr_wants_vectors(const sr_recorder *r);

/* Ready statistics of the current step. value [width of the site], double. Scalars of SR_SCALARS
 * that follow from the vectors (and rows) are computed by sr_end_step; sr_put_scalar is for the
 * rest. At a site of SR_FAMILY_NONE that is not observed, sum_g, sum_gx, nu, Gamma_t and Lambda_t are
 * refused (SR_USAGE): only a family says what they are of, and g_mu, g_sigma2 and g_psi2 would
 * silently be missing. */
sr_status sr_put_rows(sr_recorder *r, int site, int64_t rows);
sr_status sr_put_vector(sr_recorder *r, int site, sr_vector which, const double *value);
/* which: one of sr_scalar, or what sr_declare_scalar returned. The last value counts. */
sr_status sr_put_scalar(sr_recorder *r, int site, int which, double value);
sr_status sr_put_step_scalar(sr_recorder *r, int which, double value);

/* The statistics, families and scalars of statrec/format.h by their names, for bindings; -1 (families:
 * SR_FAMILY_COUNT) when there is none. And the names and definitions by number, NULL past the end. */
int sr_vector_id(const char *name);
int sr_scalar_id(const char *name);
const char *sr_vector_name(int which);
const char *sr_scalar_name(int which);
const char *sr_vector_definition(int which);
const char *sr_scalar_definition(int which);
sr_family sr_family_find(const char *name);

/* Raw tensors of the current step (statrec/moments.h).
 *
 * x is what the layer normalises, gamma [channels] its gain, NULL: ones. Of x nothing is copied: it
 * must stay unchanged until sr_take_backward with the gradient of the layer's output, of the same
 * shape. A backward pass belongs to the last forward pass that still lacks one; one more is of no
 * consequence. At a merging site up to 4096 forward passes may lack one. What several passes of a step
 * mean, sr_site.repeat says. sr_end_step makes mu_B,
 * sigma2_B, psi2_B, gamma, sum_g and sum_gx of it; without any backward pass the last forward pass
 * counts.
 *
 * The recorder keeps running statistics with the site's alpha (none when it is NaN), one update a
 * step; a host that has its own puts them (sr_put_vector: mu, sigma2, psi2, nu), in the same step.
 * Whatever else it puts stands in the file too: gamma, rows, scalars.
 *
 * xhat of sum_gx: SIGMA, ROW, OWN, NONE (x - mu_B) / sqrt(sigma2_B + eps); PSI x / sqrt(psi2_B + eps);
 * PN x / sqrt(psi2 + eps), psi2 from before the update. dx_norm and direct_norm are left out where
 * passes were merged. */
sr_status sr_take_forward(sr_recorder *r, int site, const sr_tensor *x, const float *gamma);
sr_status sr_take_backward(sr_recorder *r, int site, const sr_tensor *dy);

/* The same from sums that the host has made (on a device, or of another process): moments of the
 * valid rows, [width] each, biased variance; gamma NULL: ones. */
typedef struct sr_forward {
    size_t size;
    int64_t rows, samples, padded; /* samples 0: not known */
    const double *mean, *variance, *mean_square, *gamma;
} sr_forward;
/* Over valid rows, [width] each: sums of g, of g (x - mean) with the mean of the pass, and of g^2
 * (NULL: dx_norm and direct_norm are left out). */
typedef struct sr_backward {
    size_t size;
    const double *sum_g, *sum_gc, *sum_gg;
} sr_backward;
sr_status sr_put_forward(sr_recorder *r, int site, const sr_forward *x);
sr_status sr_put_backward(sr_recorder *r, int site, const sr_backward *dy);

/* Seconds that the recorder has taken so far; and more of them, that the host spent for it outside
 * (options.overhead). A row's recorder_seconds are those from the row before on. */
double sr_own_seconds(const sr_recorder *r);
void sr_add_seconds(sr_recorder *r, double seconds);

/* Singular values [width], descending, of a site's input and of its gradient in the current step
 * (value [SR_SPECTRUM_COUNT]; NULL: none), with the rows they are of. options.spectra. */
sr_status sr_put_spectrum(sr_recorder *r, int site, int64_t rows,
                          const double *const value[SR_SPECTRUM_COUNT]);

sr_status sr_end_step(sr_recorder *r, const sr_step *row);

/* One row of /evals: begin, the metrics, end. step: after which it ran, not smaller than the last
 * one's; epoch: passes over the training data so far, or NaN. Each metric at most once; one that is
 * not put is NaN. Up to 16 evaluations may be made before the first step. */
sr_status sr_begin_eval(sr_recorder *r, int64_t step, double epoch);
sr_status sr_put_metric(sr_recorder *r, const char *name, double value);
sr_status sr_end_eval(sr_recorder *r);
/* values [min(rows, cols)] of an embedding declared before. */
sr_status sr_put_singular_values(sr_recorder *r, const char *name, int64_t step,
                                 const double *values);

/* What a last pass over `batches` batches found: value[f] [sites], NaN where there is none.
 * options.final. */
sr_status sr_put_final(sr_recorder *r, int64_t batches, const double *const value[SR_FINAL_COUNT]);

/* Pairs of a site's input and output that were drawn in that pass, options.pairs of each (SR_PAIRS):
 * feature 0 .. width-1; or -1 in all of them, x and y NaN: none. Before sr_put_final. */
sr_status sr_put_pairs(sr_recorder *r, int site, const float *x, const float *y,
                       const int32_t *feature);

/* What waits goes into the file, and with options.running the running values as they are after the
 * last step: call it where you save a state that you may go on from. The last
 * SR_RUNNING_KEPT of them are there. */
sr_status sr_flush(sr_recorder *r);
/* The waiting rows alone, when there are any. Call it before something that takes long and does not
 * call the recorder (a validation): every other call looks whether rows have waited for flush_seconds. */
sr_status sr_flush_rows(sr_recorder *r);
/* Copies the readable rows with step <= up_to_step (< 0: all) of the run file `from`, whose sites
 * and embeddings must be those of r, before the first step of r; of an embedding's rows those with
 * step <= embeddings_up_to. `created` becomes that of the file. result may be NULL. The running
 * values go on from those kept at up_to_step, or last before it: result->running_step, -1 when none
 * were and they start anew. */
struct sr_recovery; /* statrec/runfile.h */
sr_status sr_copy_rows(sr_recorder *r, const char *from, int64_t up_to_step,
                       int64_t embeddings_up_to, struct sr_recovery *result);

/* The failure kept so far, or NULL. */
const sr_failure *sr_failed(const sr_recorder *r);

typedef struct sr_finish {
    size_t size;
    const char *status; /* "complete"; "diverged": it ended with a loss that is not finite;
                           "interrupted" or "failed" */
    const char *reason; /* one line, or "" */
    const char *weights_digest;
} sr_finish;

/* Writes what is left, closes, renames PATH.part to PATH, frees r (always). Returns the first
 * failure of the recorder's life. NULL r is SR_OK. */
sr_status sr_close(sr_recorder *r, const sr_finish *finish, sr_failure *why);
/* Frees without finishing: leaves PATH.part as a crash would, nothing when no step ever began. */
void sr_abandon(sr_recorder *r);

#ifdef __cplusplus
}
#endif
#endif
