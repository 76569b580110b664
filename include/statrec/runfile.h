/* runfile.h -- read a run file, finished or still growing.
 *
 * An unfinished file (PATH.part, or a file whose writer is alive or was killed) is opened with
 * SWMR_READ; counts are min(committed, extent of every dataset). Row ranges are
 * [first, first + count).
 */
#ifndef STATREC_RUNFILE_H
#define STATREC_RUNFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "statrec/base.h"
#include "statrec/format.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sr_runfile sr_runfile;

typedef struct sr_run_site {
    size_t size;
    char name[SR_NAME_SIZE], norm[SR_NAME_SIZE], kind[SR_KIND_SIZE];
    int64_t offset, width, depth, layer_scale; /* columns offset .. offset+width-1 of /vectors */
    double eps, alpha;
    int64_t observed; /* 1: batch statistics are there for comparison, the method is another's */
    char called[SR_NAME_SIZE + 4]; /* norm, or norm+ls behind a layer scale that is no part of it */
    /* What the method is, as in SR_FAMILIES, SR_SITE_TEXTS and SR_SITE_INTS; of a file that lacks
     * them what is known of a method of this name. */
    sr_family family;
    char axis[SR_KIND_SIZE], uses[SR_KIND_SIZE], constants[SR_KIND_SIZE];
    int64_t layer_scale_own, merged;
} sr_run_site;

typedef struct sr_run_info {
    size_t size;
    const char *path; /* as opened, ".part" included */
    const char *program, *version, *command, *config, *host, *created, *git, *model, *data, *task;
    const char *loss_reduction, *parent;
    uint64_t seed;
    int threads;
    int64_t sites, width;          /* S, W */
    int64_t steps, vectors, evals; /* readable rows T, V, E */
    const char *status;            /* "running" "complete" "diverged" "interrupted" "failed";
                           "damaged": unreadable */
    const char *reason, *weights_digest, *finished;
    double wall_seconds;
    int64_t spectra;   /* rows of /spectra, P */
    const char *ranks; /* whose rows the statistics are of, "" for those of one process */
    int64_t pairs;     /* of each site below /final, K; 0: the host asked for none */
} sr_run_info;

/* For programs that use HDF5 through this library alone, as the first thing they do: HDF5's handler of the
 * process's exit, which complains of what damaged files have left in it, does nothing. A host's other
 * files would not be closed by it any more, so the library does not do this by itself. */
void sr_own_process(void);

/* path; when it does not exist, path.part. A file that is growing has the rows it had when it was
 * opened. NULL and *why on failure. Free with sr_run_close.
 *
 * Damage of one dataset, or of what is told about the run, does not hinder the rest: texts are then
 * "" and numbers NaN, 0 or -1, and reading that dataset fails and names it. Only what says that it
 * is a run file and the names and widths of the sites must be whole. */
sr_runfile *sr_run_open(const char *path, sr_failure *why);
/* The same for one of many: of all that are opened beside each other (beside: one of them, NULL for the
 * first) only a few are open at a time. The others are opened again when they are read, which fails
 * when another file has taken their name. */
sr_runfile *sr_run_open_beside(const char *path, const sr_runfile *beside, sr_failure *why);
/* What opening found damaged, "PATH: /steps/loss: damaged: ..."; NULL past the end. What was read from
 * its second copy is among it. Columns of /scalars and /vectors are looked at when they are read. */
const char *sr_run_damage(const sr_runfile *f, int i);
/* Those of them by which nothing is lost: what was read from its second copy, a second copy that is damaged
 * itself. */
const char *sr_run_mended(const sr_runfile *f, int i);
/* True of a finished file that ends with sums of its values, against which they are held when they are read.
 * A run that was never closed, one into which other programs wrote, and the first files of version 1 have none. */
bool sr_run_has_sums(const sr_runfile *f);
void sr_run_close(sr_runfile *f);
const sr_run_info *sr_run_get_info(const sr_runfile *f);
const sr_run_site *sr_run_get_site(const sr_runfile *f, int64_t site); /* NULL past the end */
int64_t sr_run_find_site(const sr_runfile *f, const char *name);       /* -1 when absent */

/* The first site that has a norm, and what it is `called`, and with it the run; NULL and "none"
 * without any. */
const sr_run_site *sr_run_main_site(const sr_runfile *f);
const char *sr_run_main_norm(const sr_runfile *f);
/* True where the method takes its statistics over the batch. */
bool sr_run_over_batch(const sr_run_site *site);
/* True where "mu", "sigma2" or "psi2" is among what the method uses, over whichever axis; the same
 * of its constants. */
bool sr_run_uses(const sr_run_site *site, const char *statistic);
bool sr_run_is_constant(const sr_run_site *site, const char *statistic);
/* "sigma"; and the family of a name, SR_FAMILY_COUNT when there is none. */
const char *sr_family_name(sr_family family);
sr_family sr_family_find(const char *name);

/* True when the dataset exists (names of format.h, of a metric, "epoch") and holds values; every run
 * file declares all of format.h, and one that nobody put anything into takes no space and reads as NaN.
 * Also true of one that is damaged: reading it tells. */
bool sr_run_has_scalar(const sr_runfile *f, const char *name);
bool sr_run_has_vector(const sr_runfile *f, const char *name);
bool sr_run_has_eval(const sr_runfile *f, const char *name);

/* A number of evaluations (sr_run_eval), as its host declared it. Texts are valid until close. */
typedef struct sr_run_metric {
    size_t size;
    const char *name, *unit, *definition;
    sr_better better;
} sr_run_metric;
/* In the order of their declaration; NULL past the end. Files written before metrics were declared
 * have the order and directions of read_metrics.c. */
const sr_run_metric *sr_run_get_metric(const sr_runfile *f, int64_t i);
const sr_run_metric *sr_run_find_metric(const sr_runfile *f, const char *name); /* or NULL */

/* A scalar of the host's own (sr_declare_scalar). sr_run_scalar and sr_run_has_scalar know its name
 * where it is one per site, sr_run_step_reals where it is one per step. */
typedef struct sr_run_declared {
    size_t size;
    const char *name, *unit, *definition;
    sr_scope scope;
} sr_run_declared;
/* Those per site, then those per step, in the order of their declaration; NULL past the end. */
const sr_run_declared *sr_run_get_declared(const sr_runfile *f, int64_t i);

/* True where this scalar (or vector) of the site is only the observer's: batch statistics that the
 * site's own method does not have. */
bool sr_run_only_observed(const sr_run_site *site, const char *statistic);
/* Passes after which the initial value of a running statistic weighs less than SR_STARTUP_LEFT, by
 * the weight of its old value; and the most of these over the sites of a run. 0: nothing runs. */
#define SR_STARTUP_LEFT 0.01
int64_t sr_startup_of(double alpha);
int64_t sr_run_startup(const sr_runfile *f);

/* What a statistic depends on besides what it is about: bits of SR_DEPENDS_*, 0 for nothing known.
 * name: what may be compared where those differ ("g_mu_share"), "" without any. */
enum {
    SR_DEPENDS_WIDTH = 1,    /* features of the site */
    SR_DEPENDS_SCALE = 2,    /* of the activations or of the gradient */
    SR_DEPENDS_LOSS = 4,     /* sum or mean of the loss, and tokens of a pass */
    SR_DEPENDS_ROWS = 8,     /* rows that a batch statistic is taken over */
    SR_DEPENDS_BATCHES = 16, /* how batches are made up: lengths, padding */
    SR_DEPENDS_ALPHA = 32    /* weight of the old running value */
};
typedef struct sr_instead {
    size_t size;
    char name[SR_NAME_SIZE];
    const char *reason; /* why, one clause after the statistic's name */
} sr_instead;
unsigned sr_depends(const char *statistic, sr_instead *instead);
/* In what two sites of two runs differ, as far as their files tell: width; model or data, for the
 * scale; loss reduction or tokens of a pass, and rows, by more than a tenth of their mean; lines of the
 * configuration on batches; alpha. */
unsigned sr_differences(const sr_runfile *a, int64_t site_a, const sr_runfile *b, int64_t site_b);
/* False, and one line of text (512 bytes hold it), where the statistic depends on one of these
 * differences: why, and what is better. */
bool sr_comparable(const char *statistic, unsigned differences, char *text, size_t size);

/* i-th name of a group ("scalars", "vectors", "evals", "steps", "embeddings"), NULL past the end.
 * Valid until close. */
const char *sr_run_name(const sr_runfile *f, const char *group, int i);
/* The `definition` attribute of "scalars/dist_mu"; "" when there is none. Valid until close. */
const char *sr_run_definition(const sr_runfile *f, const char *dataset);

/* /steps/<name> as int64 (step, update, tokens) or double (all). */
sr_status sr_run_step_ints(const sr_runfile *f, const char *name, int64_t first, int64_t count,
                           int64_t *value, sr_failure *why);
sr_status sr_run_step_reals(const sr_runfile *f, const char *name, int64_t first, int64_t count,
                            double *value, sr_failure *why);
/* value [count]: one site; or all sites, value [count, S] (site = -1). */
sr_status sr_run_scalar(const sr_runfile *f, const char *name, int64_t site, int64_t first,
                        int64_t count, float *value, sr_failure *why);
/* Rows of /vectors: steps of the rows, and value [count, width] of one site ([count, W] for -1). */
sr_status sr_run_vector_steps(const sr_runfile *f, int64_t first, int64_t count, int64_t *step,
                              sr_failure *why);
sr_status sr_run_vector(const sr_runfile *f, const char *name, int64_t site, int64_t first,
                        int64_t count, float *value, sr_failure *why);
/* The same of neighbouring sites: value [count, sum of their widths]. */
sr_status sr_run_vectors(const sr_runfile *f, const char *name, int64_t first_site, int64_t sites,
                         int64_t first, int64_t count, float *value, sr_failure *why);
/* How a vector lies in the file: blocks of so many rows and columns (0: in one piece), each
 * contiguous. Reading whole blocks is fastest. */
sr_status sr_run_vector_block(const sr_runfile *f, const char *name, int64_t *rows,
                              int64_t *columns, sr_failure *why);
/* /evals: a metric, or "epoch"; "step" gives the step as double. */
sr_status sr_run_eval(const sr_runfile *f, const char *name, int64_t first, int64_t count,
                      double *value, sr_failure *why);

typedef struct sr_run_embedding {
    size_t size;
    int64_t rows, cols, values, records; /* values = min(rows, cols); records = M */
    char method[SR_METHOD_SIZE];         /* of computing them; "" when the host did not say */
} sr_run_embedding;
sr_status sr_run_get_embedding(const sr_runfile *f, const char *name, sr_run_embedding *e,
                               sr_failure *why);
/* step and value [values] of record i (0 .. records-1). */
sr_status sr_run_singular_values(const sr_runfile *f, const char *name, int64_t i, int64_t *step,
                                 double *value, sr_failure *why);

/* Row i (0 .. info.spectra - 1) of one site: its step, its rows N (-1: not measured), value
 * [width].
 */
sr_status sr_run_spectrum(const sr_runfile *f, sr_spectrum which, int64_t site, int64_t i,
                          int64_t *step, int64_t *rows, double *value, sr_failure *why);
/* value[f] [S]; *batches -1 when the run made no final pass (values then untouched or NaN). */
sr_status sr_run_final(const sr_runfile *f, int64_t *batches, double *const value[SR_FINAL_COUNT],
                       sr_failure *why);
/* The pairs of a site, [info.pairs] each; NaN and -1 where it kept none. */
sr_status sr_run_pairs(const sr_runfile *f, int64_t site, float *x, float *y, int32_t *feature,
                       sr_failure *why);

/* Walks the whole file: every dataset present, of its declared type and shape, steps increasing,
 * steps of vectors and spectra among them, counts consistent, status complete. First fault in *why.
 */
sr_status sr_run_check(const char *path, sr_failure *why);
/* The same, and every fault is told as it is found; the first one is also in *why. */
typedef void sr_tell_fn(void *context, const sr_failure *fault);
sr_status sr_run_check_all(const char *path, sr_tell_fn *tell, void *context, sr_failure *why);

typedef struct sr_recovery {
    size_t size;
    int64_t steps, vectors, evals;                /* rows copied */
    int64_t lost_steps, lost_vectors, lost_evals; /* rows present or counted but unreadable */
    int64_t running_step; /* that the running values are of; -1: none (sr_copy_rows) */
} sr_recovery;
/* rows: how many of a dataset ("/steps/loss") could not be read, or -1 where it has none; their
 * values are NaN or -1 in the new file. */
typedef void sr_lost_fn(void *context, const char *dataset, int64_t rows, const char *reason);

/* Copies the readable rows of `broken` into the new file `path`, status "interrupted". up_to_step
 * < 0: all; else only rows with step <= up_to_step. A row is lost when its step cannot be read; what
 * else cannot be read of it is left out. */
sr_status sr_run_recover(const char *broken, const char *path, bool force, int64_t up_to_step,
                         sr_recovery *result, sr_failure *why);
/* The same, and what is left out of rows that are not lost is told. */
sr_status sr_run_recover_telling(const char *broken, const char *path, bool force,
                                 int64_t up_to_step, sr_recovery *result, sr_lost_fn *tell,
                                 void *context, sr_failure *why);

#ifdef __cplusplus
}
#endif
#endif
