/* failing_readings.h -- everything that a reader of a run file may ask for, as digests, for tests in
 * which one call fails. */
#ifndef TESTS_RUNFILE_FAILING_READINGS_H
#define TESTS_RUNFILE_FAILING_READINGS_H

#include "copied_run.h"
#include "statrec/runfile.h"

enum { READINGS_STEPS = 16, READINGS_MAX = 500 };

/* A digest of the values of each reading; 0: refused. */
typedef struct readings {
    uint64_t digest[READINGS_MAX];
    size_t size[READINGS_MAX]; /* bytes of its values */
    int count, refused;
    bool sound; /* no damage was reported while the file was opened */
} readings;

/* The run of READINGS_STEPS steps. */
extern const run_shape readings_shape;

/* Reads all of a file. SR_OK although single readings may be refused; the process ends with a line
 * when one is refused without a reason, or has no name of a file in it. */
sr_status readings_of(const char *path, readings *r, sr_failure *why);
/* Ends the process unless each reading was refused or is that of `whole`; a file with reported damage
 * may have fewer rows. */
void readings_compare(const char *after, const readings *now, const readings *whole);
/* Rows of the sample `name`: all of them, or whatever is left, none of them wrong; or a file that
 * is refused with a reason. status: what the check says of all of them. */
void readings_look(const char *name, const char *after, bool all, const char *status);

#endif
