/* copy_plan.h -- which statistics, sites and rows of a run file are copied. */
#ifndef RUNFILE_REPAIR_COPY_PLAN_H
#define RUNFILE_REPAIR_COPY_PLAN_H

#include "runfile/read/file/reader.h"

/* Sites and statistics, of all files that are copied into one. */
typedef struct copy_choice {
    const int64_t *site; /* [sites] increasing numbers of sites in the file; NULL: all */
    int64_t sites;
    /* Whether a statistic of /scalars, /vectors, /spectra or the host is copied; NULL: all are. */
    bool (*keeps)(const void *context, const char *statistic);
    const void *context;
    int (*stopped)(void); /* not 0: give up; NULL: never */
} copy_choice;

/* The site of the file that becomes site i of the copy. choice NULL: all sites. */
int64_t copy_source_of(const copy_choice *choice, int64_t i);
bool copy_keeps(const copy_choice *choice, const char *statistic);

/* Keeps the first row at or after each multiple of `every`; 0: none. */
typedef struct copy_thin {
    int64_t every, last; /* last: step of the row that was kept last; 0 at first */
} copy_thin;

/* Steps first .. last, both included. Thinning continues from file to file. */
typedef struct copy_range {
    int64_t first, last;
    copy_thin steps, vectors, spectra;
} copy_range;

/* The rows of one file. */
typedef struct copy_plan {
    const copy_choice *choice;
    uint8_t *step, *vector, *spectrum; /* [rows] 1: the row is copied */
    int64_t steps, vectors, spectra;   /* numbers of copied rows */
    int64_t first, last;               /* evaluations and embeddings of these steps are copied */
    int64_t first_step, last_step;     /* steps of the file; -1: it has no steps */
    int64_t last_row;                  /* the last row of these steps; -1: none */
    bool end;                          /* copies /final and /running */
} copy_plan;

/* A row of vectors or spectra is copied with the row of its step. SR_FORMAT if steps do not
 * increase, or if rows of vectors or spectra have no step. Free it in any case. */
sr_status copy_plan_make(copy_plan *p, const sr_runfile *f, const copy_choice *choice,
                         copy_range *of, sr_failure *why);
void copy_plan_free(copy_plan *p);
/* For the last file with rows of these steps. Also copies the last of them, since percents of
 * training refer to it, and data after the last step of the file. */
void copy_plan_keep_last(copy_plan *p, const sr_runfile *f);
/* Whether evaluations and singular values after this step are copied. plan NULL: yes. */
bool copy_plan_includes(const copy_plan *p, int64_t step);

#endif
