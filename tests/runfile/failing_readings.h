/* failing_readings.h -- digests of all values that a reader of a run file can get, for tests with
 * one failing call. */
#ifndef TESTS_RUNFILE_FAILING_READINGS_H
#define TESTS_RUNFILE_FAILING_READINGS_H

#include "copied_run.h"
#include "statrec/runfile.h"

enum { READINGS_STEPS = 16, READINGS_MAX = 500 };

/* A digest of the values of each reading; 0: failed. */
typedef struct readings {
    uint64_t digest[READINGS_MAX];
    size_t size[READINGS_MAX]; /* bytes of its values */
    int count, refused;
    bool sound; /* no damage was reported while the file was opened */
} readings;

/* Records the run of READINGS_STEPS steps. */
extern const run_shape readings_shape;

/* Reads all of a file. Returns SR_OK even if single readings fail. The process ends with a line if
 * a failure has no reason or its message no file name. */
sr_status readings_of(const char *path, readings *r, sr_failure *why);
/* Ends the process unless each reading failed or equals its value in `whole`. A file with reported
 * damage may have fewer rows. */
void readings_compare(const char *after, const readings *now, const readings *whole);
/* Checks the sample `name`: opening fails with a reason, or its rows are right. With `all` no row
 * is missing. status: the check's result for all rows. */
void readings_look(const char *name, const char *after, bool all, const char *status);

#endif
