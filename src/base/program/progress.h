/* progress.h -- one line on stderr: what, how far, rate, time left. Rewritten in place on a
 * terminal, otherwise a plain line per interval. */
#ifndef BASE_PROGRAM_PROGRESS_H
#define BASE_PROGRAM_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct progress {
    const char *label, *unit;
    int64_t total;                /* 0: unknown */
    double start, last, interval; /* seconds */
    bool terminal, quiet;
    bool drawn; /* the cursor is after our line */
} progress;

double progress_clock(void); /* monotonic seconds */
/* Seconds since *mark, which moves to now. */
double progress_lap(double *mark);
void progress_begin(progress *p, const char *label, const char *unit, int64_t total, bool quiet);
/* `done` of total; `detail` ("loss 4.21") may be NULL. Cheap when it is not yet time to print. */
void progress_show(progress *p, int64_t done, const char *detail);
/* "42s", "3m07s", "2h05m", "3d04h". */
void progress_duration(double seconds, char *text, size_t size);
/* Leaves the cursor on a fresh line. Call it before writing anything else to stderr. */
void progress_end(progress *p);

#endif
