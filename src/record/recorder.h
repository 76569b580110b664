/* recorder.h -- the state of a recorder, which src/record and src/runfile/repair share. */
#ifndef RECORD_RECORDER_H
#define RECORD_RECORDER_H

#include <sys/types.h>

#include "base/containers/map.h"
#include "runfile/write/run_writer.h"
#include "statrec/record.h"

/* A forward pass that has no backward pass yet. */
typedef struct raw_pass {
    int64_t rows, samples, padded;
    sr_tensor x;
    bool of_sums;                            /* moments from the host program; x is unused */
    double *mean, *variance, *square, *gain; /* one block */
} raw_pass;

/* The merged passes that count. */
typedef struct raw_total {
    int passes; /* with a backward pass */
    bool has_gg;
    int64_t rows, samples, padded; /* samples -1: not known */
    double *mean, *variance, *square, *gain;
    double *sum_g, *sum_gc, *sum_gg, *reference; /* sum_gc = sum of g (x - reference) */
} raw_total;

/* State of a site that lasts from call to call and from step to step. */
typedef struct raw_state {
    double *mu, *sigma2, *psi2, *nu; /* running values; NULL until first observed, one block with */
    double *work;                    /* [RAW_WORK, width] scratch */
    raw_total total;
    raw_pass *pending; /* [pending_capacity], the last one on top */
    int pendings;
    int64_t pending_capacity;
} raw_state;

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

/* The time that recording took since the spacing of vectors was last adapted (overhead_limit.c). */
typedef struct pacing {
    double since, own; /* clock and own seconds then; 0: not yet */
    int64_t steps, rows;
    double step_own;                  /* own seconds at the end of the last row */
    int seconds_scalar, every_scalar; /* ids of the two columns */
} pacing;

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
    map names;                             /* names of the sites */
    run_embedding *embedding;
    int embeddings;

    double *vector[SR_VECTOR_COUNT]; /* [W] of the current step; NULL until used */

    char *copied[COPY_TEXTS];      /* texts of /copy; NULL: the run is not a copy */
    const sr_run_info *source_end; /* of a copy: finished and wall_seconds; NULL: from the clock */

    bool copies;  /* declared like an existing file: its contents are kept, right or wrong */
    bool started; /* declared, in SWMR */
    bool in_step, keeps_vectors;
    int64_t step;      /* current or last, -1 before the first */
    int64_t ended;     /* last step that ended in this process; -1: none */
    int64_t eval_step; /* step of the newest evaluation, -1 before the first */
    double eval_epoch;
    bool in_eval;
    int64_t every;       /* spacing of vectors; 0 = never */
    int64_t least_every; /* the spacing without options.overhead */
    pacing pace;
    int64_t file_bytes, file_vectors; /* at the last flush: bytes, rows of vectors */
    double flush_cost;                /* seconds of the last flush */
    int64_t unflushed;                /* rows since the last flush */
    bool waits;                       /* anything is buffered */
    double clock_start, seconds_before;
    double clock_flush; /* time of the last flush, or when the oldest buffered row was put */
    double clock_row;   /* end of the last row */
    double row_seconds; /* duration of the last row */
    double own_seconds; /* time in the recorder, sr_add_seconds included */
    pid_t owner;        /* the process that may write */
    dev_t device;       /* device of PATH.part */
    ino_t inode;
    bool resuming; /* options.resume, and nothing is copied yet */
    bool replaces; /* PATH existed at the start and options.force replaces it */
    char *home;    /* the working directory at the start */
    dev_t old_device, home_device;
    ino_t old_inode, home_inode;
};

#endif
