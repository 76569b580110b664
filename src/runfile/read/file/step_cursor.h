/* step_cursor.h -- reads the steps of /steps/step or /vectors/step in the order of their rows, with
 * a window of them in memory. */
#ifndef RUNFILE_READ_FILE_STEP_CURSOR_H
#define RUNFILE_READ_FILE_STEP_CURSOR_H

#include "runfile/read/file/reader.h"

typedef struct step_cursor {
    const sr_runfile *f;
    bool vectors;         /* reads /vectors/step */
    int64_t rows;         /* readable rows */
    int64_t first, count; /* rows in `step` */
    int64_t *step;        /* [STEP_CURSOR_ROWS] */
    int64_t at;           /* the current row */
} step_cursor;

/* Fails if out of memory; close it in any case. */
sr_status step_cursor_open(step_cursor *w, const sr_runfile *f, bool vectors, sr_failure *why);
void step_cursor_close(step_cursor *w);
/* Moves forward to the first row whose step is at least this one. *found: it is equal. */
sr_status step_cursor_reach(step_cursor *w, int64_t step, bool *found, sr_failure *why);

/* Reads all steps. Fails if one is unreadable (*read false), or if they do not increase from 0. */
sr_status step_cursor_check_steps(const sr_runfile *f, bool *read, sr_failure *why);
/* Reads all steps of vectors. Fails also if one is not a step of the run. */
sr_status step_cursor_check_vectors(const sr_runfile *f, sr_failure *why);

#endif
