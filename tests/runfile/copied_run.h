/* copied_run.h -- a run of everything to copy, complete copies, rejected copies, comparison of
 * files dataset by dataset. */
#ifndef TESTS_COPIED_RUN_H
#define TESTS_COPIED_RUN_H

#include "runfile/repair/copy_run.h"
#include "statrec/record.h"

/* Steps of the run; vectors in steps divisible by COPIED_VECTORS, spectra by COPIED_SPECTRA. */
enum { COPIED_STEPS = 40, COPIED_VECTORS = 4, COPIED_SPECTRA = 6, COPIED_PAIRS = 3 };
#define COPIED_HOST "nodeseven"

typedef struct run_shape {
    int64_t first, last;
    uint64_t seed;
    const char *unit; /* the custom scalar's */
    bool end;         /* with /final */
} run_shape;

/* Options of a run whose texts contain names of people, machines and files. */
sr_options copied_options(void);
/* Declares the run's custom scalars beside the sample's; writes its steps. The recorder keeps a
 * failure. */
void copied_declare(sr_recorder *r, const run_shape *shape, int id[2]);
void copied_put(sr_recorder *r, const run_shape *shape, const int id[2]);
/* Returns the open recorder after the last step; closes the finished run. */
sr_recorder *copied_begin(const char *name, const run_shape *shape);
void copied_write(const char *name, const run_shape *shape);

/* Options that copy everything. */
run_copy_options copied_plain(void);
/* Copies, and requires that the copy passes the check. */
run_copied copied_copy(const char *from, const char *to, const run_copy_options *o);
/* Copies, and requires this failure; no file and no part remains. */
void copied_refused(char *const *paths, int count, const run_copy_options *o, sr_status status,
                    const char *part);

void copied_same_text(const char *name, const char *got, const char *want);
/* Checks that datasets of a have the same bytes in b. Paths that start with a word of `skip` are
 * skipped. */
void copied_same_datasets(const char *a, const char *b, const char *skip);
/* Checks a text attribute of /copy. */
void copied_check_attribute(const char *file, const char *name, const char *want);

#endif
