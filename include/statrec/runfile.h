/* runfile.h -- read a run file, finished or still growing.
 *
 * An unfinished file is PATH.part, or a file whose writer still runs or was killed. It is opened
 * with SWMR_READ. Its counts of rows are the committed ones, or fewer if a dataset is shorter. Row
 * ranges are [first, first + count).
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
    /* Columns offset .. offset+width-1 of /vectors. */
    int64_t offset, width, depth, layer_scale;
    double eps, alpha;
    int64_t observed; /* 1: an observer recorded batch statistics beside the method */
    /* Display name: norm, or norm+ls after a layer scale that is not part of the method. */
    char called[SR_NAME_SIZE + 4];
    /* The method, as in SR_FAMILIES, SR_METHOD_TEXTS and SR_SITE_INTS. For files without them: the
     * known method of this name. */
    sr_family family;
    char axis[SR_KIND_SIZE], uses[SR_KIND_SIZE], constants[SR_KIND_SIZE];
    int64_t layer_scale_own, merged;
    double alpha_bwd; /* as in SR_SITE_REALS; NaN in older files */
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
    /* "running", "complete", "diverged", "interrupted", "failed", or "damaged": unreadable */
    const char *status;
    const char *reason, *weights_digest, *finished;
    double wall_seconds;
    int64_t spectra;   /* rows of /spectra, P */
    const char *ranks; /* the ranks whose rows the statistics cover; "": one process */
    int64_t pairs;     /* K, pairs of each site below /final; 0: none were requested */
} sr_run_info;

/* Disables HDF5's exit handler, which may crash on data that damaged files leave in HDF5's memory.
 * Call it first, and only in a program that uses HDF5 through this library alone: the handler no
 * longer closes other HDF5 files. */
void sr_disable_hdf5_atexit(void);
/* The old name of sr_disable_hdf5_atexit. */
void sr_own_process(void);

/* Opens path or, if it does not exist, path.part. A growing file has the rows that it had when it
 * was opened. NULL and *why on failure. Free with sr_run_close.
 *
 * Damage of one dataset or attribute does not prevent opening. A damaged text is "", a damaged
 * number is NaN, 0 or -1, and reading a damaged dataset fails with its name. Only the format
 * attributes and the names and widths of the sites must be intact. */
sr_runfile *sr_run_open(const char *path, sr_failure *why);
/* Opens one of many files. beside: a file opened by this function, or NULL for the first. HDF5 has
 * only a few of these files open at a time. The others are opened again when they are read, which
 * fails if another file has their name by then. */
sr_runfile *sr_run_open_beside(const char *path, const sr_runfile *beside, sr_failure *why);
/* Damage number i that was found while opening, "PATH: /steps/loss: damaged: ..."; NULL past the
 * end. Repaired damage is included. Columns of /scalars and /vectors are verified when they are
 * read. */
const char *sr_run_damage(const sr_runfile *f, int i);
/* Repaired damage number i: read from its backup copy, or only the backup copy is damaged. NULL
 * past the end. Nothing is lost. */
const char *sr_run_repaired(const sr_runfile *f, int i);
/* The old name of sr_run_repaired. */
const char *sr_run_mended(const sr_runfile *f, int i);
/* True if the file is finished and has checksums of its values, which are verified on reading. Runs
 * that were not closed, files that other programs changed, and the oldest files have none. */
bool sr_run_has_checksums(const sr_runfile *f);
/* The old name of sr_run_has_checksums. */
bool sr_run_has_sums(const sr_runfile *f);
void sr_run_close(sr_runfile *f);
const sr_run_info *sr_run_get_info(const sr_runfile *f);
const sr_run_site *sr_run_get_site(const sr_runfile *f, int64_t site); /* NULL past the end */
int64_t sr_run_find_site(const sr_runfile *f, const char *name);       /* -1 when absent */

/* The first site that has a normalization; NULL: none. Its display name, which is also the run's;
 * "none" without such a site. */
const sr_run_site *sr_run_main_site(const sr_runfile *f);
const char *sr_run_main_norm(const sr_runfile *f);
/* True if the method computes its statistics over the batch. */
bool sr_run_over_batch(const sr_run_site *site);
/* True if the method uses this statistic ("mu", "sigma2" or "psi2"), over any axis; if its backward
 * pass treats it as a constant. */
bool sr_run_uses(const sr_run_site *site, const char *statistic);
bool sr_run_is_constant(const sr_run_site *site, const char *statistic);
/* The name of a family, as "sigma"; the family with this name, or SR_FAMILY_COUNT. */
const char *sr_family_name(sr_family family);
sr_family sr_family_find(const char *name);

/* True if the dataset exists and has values. name: of format.h, of a metric, or "epoch". Every run
 * file declares all datasets of format.h; those without values take no space and read as NaN. Also
 * true for a damaged dataset, which fails when it is read. */
bool sr_run_has_scalar(const sr_runfile *f, const char *name);
bool sr_run_has_vector(const sr_runfile *f, const char *name);
bool sr_run_has_eval(const sr_runfile *f, const char *name);

/* A metric of the evaluations (sr_run_eval). Texts are valid until close. */
typedef struct sr_run_metric {
    size_t size;
    const char *name, *unit, *definition;
    sr_better better;
} sr_run_metric;
/* Metrics in the order of declaration; NULL past the end. Files from before metrics were declared
 * have a fixed order. */
const sr_run_metric *sr_run_get_metric(const sr_runfile *f, int64_t i);
const sr_run_metric *sr_run_find_metric(const sr_runfile *f, const char *name); /* or NULL */

/* A custom scalar (sr_declare_scalar). Read it with sr_run_scalar if it is per site, with
 * sr_run_step_reals if it is per step. */
typedef struct sr_run_declared {
    size_t size;
    const char *name, *unit, *definition;
    sr_scope scope;
} sr_run_declared;
/* Custom scalars per site, then those per step, in the order of declaration; NULL past the end. */
const sr_run_declared *sr_run_get_declared(const sr_runfile *f, int64_t i);

/* True if this scalar or vector is the observer's: the site's own method has no such statistic. */
bool sr_run_only_observed(const sr_run_site *site, const char *statistic);
/* The burn-in of running statistics: passes after which the initial value weighs less than
 * SR_STARTUP_LEFT, for a weight alpha of the old value. sr_run_startup: the longest of a run's
 * sites; 0: no running statistics. */
#define SR_STARTUP_LEFT 0.01
int64_t sr_startup_of(double alpha);
int64_t sr_run_startup(const sr_runfile *f);

/* Properties of a run that the value of a statistic depends on, as bits. */
enum {
    SR_DEPENDS_WIDTH = 1,    /* features of the site */
    SR_DEPENDS_SCALE = 2,    /* scale of the activations or of the gradient */
    SR_DEPENDS_LOSS = 4,     /* loss reduction (sum or mean), and tokens per step */
    SR_DEPENDS_ROWS = 8,     /* rows of a batch */
    SR_DEPENDS_BATCHES = 16, /* composition of batches: lengths, padding */
    SR_DEPENDS_ALPHA = 32    /* weight alpha of the old running value */
};
typedef struct sr_instead {
    size_t size;
    char name[SR_NAME_SIZE];
    const char *reason; /* why, one clause after the statistic's name */
} sr_instead;
/* The properties that a statistic depends on; 0: none known. instead->name: a statistic to compare
 * when they differ ("g_mu_share"), or "". */
unsigned sr_depends(const char *statistic, sr_instead *instead);
/* The properties that differ between two sites, according to their files. Scale: another model or
 * data. Loss: another reduction, or tokens per step that differ by more than a tenth. Rows: by more
 * than a tenth. Batches: by their options in the configuration. */
unsigned sr_differences(const sr_runfile *a, int64_t site_a, const sr_runfile *b, int64_t site_b);
/* False if the statistic depends on one of these differences. text then has one line with the
 * reason and an alternative; 512 bytes suffice. */
bool sr_comparable(const char *statistic, unsigned differences, char *text, size_t size);

/* Name number i of a group: "scalars", "vectors", "evals", "steps" or "embeddings". NULL past the
 * end. Valid until close. */
const char *sr_run_name(const sr_runfile *f, const char *group, int i);
/* The `definition` attribute of a dataset ("scalars/dist_mu"), or "". Valid until close. */
const char *sr_run_definition(const sr_runfile *f, const char *dataset);

/* Rows of /steps/<name>, as int64 (step, update, tokens) or double (all). */
sr_status sr_run_step_ints(const sr_runfile *f, const char *name, int64_t first, int64_t count,
                           int64_t *value, sr_failure *why);
sr_status sr_run_step_reals(const sr_runfile *f, const char *name, int64_t first, int64_t count,
                            double *value, sr_failure *why);
/* Rows of /scalars/<name>: value [count] of one site, or [count, S] of all sites (site = -1). */
sr_status sr_run_scalar(const sr_runfile *f, const char *name, int64_t site, int64_t first,
                        int64_t count, float *value, sr_failure *why);
/* Rows of /vectors: their steps; value [count, width] of one site, or [count, W] for site = -1. */
sr_status sr_run_vector_steps(const sr_runfile *f, int64_t first, int64_t count, int64_t *step,
                              sr_failure *why);
sr_status sr_run_vector(const sr_runfile *f, const char *name, int64_t site, int64_t first,
                        int64_t count, float *value, sr_failure *why);
/* Rows of neighbouring sites: value [count, sum of their widths]. */
sr_status sr_run_vectors(const sr_runfile *f, const char *name, int64_t first_site, int64_t sites,
                         int64_t first, int64_t count, float *value, sr_failure *why);
/* Rows and columns of the chunks of a vector; 0: not chunked. Reading whole chunks is fastest. */
sr_status sr_run_vector_block(const sr_runfile *f, const char *name, int64_t *rows,
                              int64_t *columns, sr_failure *why);
/* Rows of /evals: a metric, "epoch", or "step" as double. */
sr_status sr_run_eval(const sr_runfile *f, const char *name, int64_t first, int64_t count,
                      double *value, sr_failure *why);

typedef struct sr_run_embedding {
    size_t size;
    int64_t rows, cols, values, records; /* values = min(rows, cols); records = M */
    char method[SR_METHOD_SIZE];         /* how they were computed, or "" */
} sr_run_embedding;
sr_status sr_run_get_embedding(const sr_runfile *f, const char *name, sr_run_embedding *e,
                               sr_failure *why);
/* Step and value [values] of record i, 0 .. records-1. */
sr_status sr_run_singular_values(const sr_runfile *f, const char *name, int64_t i, int64_t *step,
                                 double *value, sr_failure *why);

/* Row i of /spectra, 0 .. info.spectra - 1, of one site: its step, its valid rows N (-1: not
 * measured), and value [width]. */
sr_status sr_run_spectrum(const sr_runfile *f, sr_spectrum which, int64_t site, int64_t i,
                          int64_t *step, int64_t *rows, double *value, sr_failure *why);
/* The final pass: value[f] [S]. *batches is -1 if the run made none; values are unchanged or NaN
   then. */
sr_status sr_run_final(const sr_runfile *f, int64_t *batches, double *const value[SR_FINAL_COUNT],
                       sr_failure *why);
/* The pairs of a site, [info.pairs] each; NaN and -1 if it has none. */
sr_status sr_run_pairs(const sr_runfile *f, int64_t site, float *x, float *y, int32_t *feature,
                       sr_failure *why);

/* Checks the whole file: presence, type and shape of every dataset, increasing steps, steps of
 * vectors and spectra among them, consistent counts, checksums, status complete. *why is the first
 * fault. */
sr_status sr_run_check(const char *path, sr_failure *why);
/* Reports a fault. */
typedef void sr_fault_fn(void *context, const sr_failure *fault);
/* The old name of sr_fault_fn. */
typedef sr_fault_fn sr_tell_fn;
/* Checks the file and calls report for each fault; the first is also in *why. */
sr_status sr_run_check_all(const char *path, sr_fault_fn *report, void *context, sr_failure *why);

typedef struct sr_recovery {
    size_t size;
    int64_t steps, vectors, evals;                /* rows copied */
    int64_t lost_steps, lost_vectors, lost_evals; /* rows present or counted but unreadable */
    int64_t running_step; /* last step of the running statistics; -1: none (sr_copy_rows) */
} sr_recovery;
/* Reports a dataset ("/steps/loss") with unreadable rows. rows: how many; -1: the dataset has no
 * rows. The new file has NaN or -1 there. */
typedef void sr_lost_fn(void *context, const char *dataset, int64_t rows, const char *reason);

/* Copies the readable rows of `broken` into the new file `path`, with status "interrupted".
 * up_to_step < 0: all rows; else those with step <= up_to_step. A row is lost if its step is
 * unreadable; other unreadable values of a row are left out. */
sr_status sr_run_recover(const char *broken, const char *path, bool force, int64_t up_to_step,
                         sr_recovery *result, sr_failure *why);
/* sr_run_recover, which reports the values that are left out of copied rows. */
sr_status sr_run_recover_report(const char *broken, const char *path, bool force,
                                int64_t up_to_step, sr_recovery *result, sr_lost_fn *report,
                                void *context, sr_failure *why);
/* The old name of sr_run_recover_report. */
sr_status sr_run_recover_telling(const char *broken, const char *path, bool force,
                                 int64_t up_to_step, sr_recovery *result, sr_lost_fn *report,
                                 void *context, sr_failure *why);

#ifdef __cplusplus
}
#endif
#endif
