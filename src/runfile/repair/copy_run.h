/* copy_run.h -- copies a run, or a part of it, into a new, finished run file. */
#ifndef RUNFILE_REPAIR_COPY_RUN_H
#define RUNFILE_REPAIR_COPY_RUN_H

#include "runfile/repair/copy_plan.h"

typedef struct run_copy_options {
    bool force; /* replace the new file if it exists */
    /* Keep the first step at or after each multiple of `every`, and the last step. In the same way
     * rows of vectors and spectra; 0: none. */
    int64_t every, vectors_every;
    int64_t first, last; /* steps, both included */
    copy_choice choice;
    const char *text; /* the options in a line, for /copy; "none" */
    /* Leaves out texts that may identify a person or machine. shares: whether the value of an
     * option of `statrec train` may be published; NULL: no configuration is copied. */
    bool anonymous;
    bool (*shares)(const char *key);
} run_copy_options;

typedef struct run_copied {
    int64_t steps, vectors, evals, spectra;             /* rows of the copy */
    int64_t of_steps, of_vectors, of_evals, of_spectra; /* rows of the source files */
    int64_t bytes, of_bytes;                            /* sizes of the files */
    bool unfinished;                                    /* the last file has no end */
} run_copied;

/* Copies the parts paths[count] of one run into `path`. Parts are sorted by their steps. SR_USAGE
 * if they are not of one run, if their steps overlap, or if no step is left. SR_FORMAT if a part is
 * damaged. No file is left after a failure. Unfinished parts give their committed rows; if the last
 * part is unfinished, the status of the copy is "interrupted". */
sr_status run_copy(char *const *paths, int count, const char *path, const run_copy_options *o,
                   run_copied *result, sr_failure *why);

#endif
