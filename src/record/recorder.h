/* recorder.h -- the recorder's inside, shared by recorder.c (life of a file), put_step.c (statistics
 * of a step), raw_passes.c and raw_statistics.c (raw tensors). */
#ifndef RECORD_RECORDER_H
#define RECORD_RECORDER_H

#include <sys/types.h>

#include "record/raw_passes.h"
#include "runfile/abi_struct.h"
#include "runfile/site_index.h"
#include "runfile/write/writer.h"
#include "statrec/record.h"

/* One site in the current step. */
typedef struct site_state {
    sr_family family;
    uint32_t put;        /* bits of vectors put */
    uint32_t scalar_put; /* bits of scalars put */
    int64_t rows;        /* -1: not put */
    int64_t nonfinite;
    double scalar[SR_SCALAR_COUNT];
    raw_state raw;
} site_state;

/* What recording took since the spacing of vectors was looked at last (overhead_limit.c). */
typedef struct pacing {
    double since, own; /* clock and own seconds then; 0: not yet */
    int64_t steps, rows;
    double step_own;                  /* own seconds when the last row was done */
    int seconds_scalar, every_scalar; /* ids of the two columns */
} pacing;

struct unreadable_data; /* unreadable_data.h */

struct sr_recorder {
    char *path, *part;
    sr_run_info info; /* its texts are owned */
    sr_options options;
    run_writer writer;
    sr_failure failure;

    int64_t sites, site_capacity, width;
    sr_run_site *site;                     /* [site_capacity] */
    site_state *state;                     /* [site_capacity] */
    uint32_t *expected, *expected_scalars; /* [site_capacity] */
    site_index names;
    run_embedding *embedding;
    int embeddings;

    double *vector[SR_VECTOR_COUNT]; /* [W] of the current step; NULL until used */

    bool started; /* declared, in SWMR */
    bool in_step, keeps_vectors;
    int64_t step;      /* current or last, -1 before the first */
    int64_t ended;     /* last one that this recorder ended, not copied; -1: none */
    int64_t eval_step; /* of the evaluation begun last, -1 before the first */
    double eval_epoch;
    bool in_eval;
    int64_t every;       /* spacing of vectors; 0 = never */
    int64_t least_every; /* without regard to the time that it takes */
    pacing pace;
    int64_t file_bytes, file_vectors; /* at the last flush: bytes, rows of vectors among them */
    double flush_cost;                /* seconds that the last flush took */
    int64_t unflushed;                /* rows since the last flush */
    bool waits;                       /* anything since then */
    double clock_start, seconds_before;
    double clock_flush;            /* of the last flush, or of what has waited longest since */
    double clock_row, row_seconds; /* end of the last row; how long after the one before it */
    double own_seconds;            /* that the recorder took, sr_add_seconds included */
    pid_t owner;                   /* process that may write */
    dev_t device;                  /* of PATH.part */
    ino_t inode;
    bool resuming;                 /* options.resume, and nothing is copied yet */
    bool replaces;                 /* PATH was there at the start and force says to replace it */
    dev_t old_device, home_device; /* home: the working directory at the start */
    ino_t old_inode, home_inode;
};

/* put_spectra.c: memory for a row of spectra; the row of this step, without values yet. */
sr_status recorder_reserve_spectra(sr_recorder *r);
void recorder_begin_spectra(sr_recorder *r);
/* Declares the file unless that is done. */
sr_status recorder_start(sr_recorder *r);
/* SR_OK, or the failure kept so far. */
sr_status recorder_check(const sr_recorder *r);
/* The site's state within a step, or NULL after keeping a failure. */
site_state *recorder_site(sr_recorder *r, int site, const char *call);

/* Seconds of a clock that only runs forward. */
double recorder_clock(void);

/* overhead_limit.c: the columns that tell of it are declared; a step begins; it ends, and the spacing of vectors
 * follows. */
void overhead_limit_declare(sr_recorder *r);
void overhead_limit_begin_step(sr_recorder *r);
void overhead_limit_end_step(sr_recorder *r);

/* vector_sampling.c: whether the vectors of this step are to be kept; the spacing widens as the run goes on. */
bool vector_sampling_wants_vectors(sr_recorder *r, int64_t step);

/* flush_policy.c: a row of /steps has ended; something else waits (an evaluation, singular values); flushes
 * what has waited for long enough, in the middle of a step too. */
void flush_policy_ended(sr_recorder *r);
sr_status flush_policy_now(sr_recorder *r);
sr_status flush_policy_beside(sr_recorder *r);
sr_status flush_policy_when_due(sr_recorder *r);

/* running.c: a row of /running with the values as they are now, where any site has some. */
sr_status running_put(sr_recorder *r);
/* Of f into the recorder and its file: rows with step <= up_to (< 0: all). *step: of the row that the
 * recorder goes on from, -1: none. */
sr_status running_copy(sr_recorder *r, const struct sr_runfile *f, int64_t up_to, int64_t *step,
                       struct unreadable_data *losses);
/* raw_passes.c: memory of a site's passes and running values. */
sr_status raw_reserve(sr_recorder *r, int site);

/* recorder_state.c: true, after keeping a failure, in another process than the one that made it. */
bool recorder_in_fork(sr_recorder *r);
/* True (after keeping a failure) when it is too late to declare anything. */
bool recorder_too_late(sr_recorder *r, const char *call);
/* Whether a metric or scalar may be called this, with such texts. */
sr_status recorder_check_label(sr_recorder *r, const char *kind, const char *name, const char *unit,
                               const char *definition);

/* custom_scalars.c: whether the options ask for columns of what recording takes; and sr_declare_scalar of any
 * name that is free, theirs too. */
#define RECORDER_SECONDS "recorder_seconds"
#define RECORDER_EVERY   "vectors_every"
bool recorder_is_paced(const sr_options *o);
int recorder_declare_scalar(sr_recorder *r, const char *name, const char *unit,
                            const char *definition, sr_scope scope);

/* raw_statistics.c: what the passes of the step add up to, as vectors and scalars of the sites. */
sr_status raw_end_step(sr_recorder *r);

/* sr_put_vector for sites of any family. */
sr_status recorder_put_vector(sr_recorder *r, int site, sr_vector which, const double *value);

/* Sets a step's sites back to "nothing put"; derives and stores their scalars at its end. */
void putting_begin(sr_recorder *r);
sr_status putting_end(sr_recorder *r);

bool recorder_has_metric(const sr_recorder *r, const char *name); /* metrics.c */

sr_status part_file_reserve(sr_recorder *r, const char *path, sr_failure *why); /* part_file.c */
/* The new file, which has taken over all of PATH.part that it resumes, becomes PATH.part. */
sr_status part_file_take_over(sr_recorder *r, sr_failure *why);
sr_status part_file_publish(sr_recorder *r, sr_failure *why);
/* SR_IO when the file that is being written is not under its name any more. */
sr_status part_file_check(const sr_recorder *r, sr_failure *why);

/* take_method.c: what the method of a site is, as the host says it or as it follows from the family.
 * False when it contradicts the family. */
bool recorder_take_method(sr_run_site *to, const sr_site *s);

#endif
