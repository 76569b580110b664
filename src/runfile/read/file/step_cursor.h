/* step_cursor.h -- the steps of /steps/step or /vectors/step in the order of their rows, a window
 * of them in memory at a time: a run has any number. */
#ifndef RUNFILE_READ_FILE_STEP_CURSOR_H
#define RUNFILE_READ_FILE_STEP_CURSOR_H

#include "runfile/read/file/reader.h"

typedef struct step_cursor {
    const sr_runfile *f;
    bool vectors;         /* of /vectors/step */
    int64_t rows;         /* that are readable */
    int64_t first, count; /* rows that are in step */
    int64_t *step;        /* [STEP_CURSOR_ROWS] */
    int64_t at;           /* row that was reached */
} step_cursor;

/* Fails without memory; to be closed in any case. */
sr_status step_cursor_open(step_cursor *w, const sr_runfile *f, bool vectors, sr_failure *why);
void step_cursor_close(step_cursor *w);
/* Row i, 0 <= i < rows; quick where rows are asked for in their order. */
sr_status step_cursor_get(step_cursor *w, int64_t i, int64_t *step, sr_failure *why);
/* Goes on from where it is to the first row whose step is not below this one; *found: it is that
   step. */
sr_status step_cursor_reach(step_cursor *w, int64_t step, bool *found, sr_failure *why);

/* Reads all: fails where one cannot be read (not *read), or where they do not increase from 0
   on. */
sr_status step_cursor_check_steps(const sr_runfile *f, bool *read, sr_failure *why);
/* The same of those of vectors, which must be among the steps, too. */
sr_status step_cursor_check_vectors(const sr_runfile *f, sr_failure *why);

#endif
