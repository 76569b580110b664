/* small_run.h -- runs of a small transformer, without dropout, on sentence pairs that a test writes
 * itself, so that expected values can be worked out by hand. */
#ifndef TESTS_TRAIN_SMALL_RUN_H
#define TESTS_TRAIN_SMALL_RUN_H

#include "statrec/runfile.h"
#include "train/train.h"

/* The data of the runs that follow, in check_temporary(): lines of each side. Validation pairs may
 * be NULL: none. */
void small_write(const char *train_source, const char *train_target, const char *valid_source,
                 const char *valid_target);
/* `count` pairs of three words, two pairs a batch under the options of small_parse. */
void small_write_pairs(int count);

/* The options of a run of these data, then `more` (NULL ends). */
void small_parse(train_config *c, const char *const *more);
/* Runs it and opens the run file; `events` may be NULL. */
sr_runfile *small_train(const train_config *c, const train_events *events, train_result *result);
/* Both. */
sr_runfile *small_run(const char *const *more, const train_events *events, train_result *result);

/* The first `count` values of a column of the steps or of the evaluations. */
void small_steps(const sr_runfile *f, const char *name, int64_t count, double *value);
void small_evals(const sr_runfile *f, const char *name, int64_t count, double *value);

#endif
