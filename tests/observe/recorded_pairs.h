/* recorded_pairs.h -- a small model on generated pairs and a record of its steps, for tests of the
 * run file's content. */
#ifndef TESTS_OBSERVE_RECORDED_PAIRS_H
#define TESTS_OBSERVE_RECORDED_PAIRS_H

#include "observe/observe.h"
#include "statrec/runfile.h"
#include "task/task.h"

enum { D = 128, SITES = 7 };

/* One encoder and one decoder layer of width D. */
typedef struct pairs_model {
    dataset *data;
    model *m;
    tape *t;
} pairs_model;

/* A file in check_temporary(); the last four results are valid. */
const char *pairs_path(const char *name);
/* norm: of the encoder; the decoder has ln. */
pairs_model pairs_make(const char *norm);
/* Batches of `tokens` tokens instead of 128. */
pairs_model pairs_make_batches(const char *norm, int64_t tokens);
void pairs_free(pairs_model *f);

/* Metrics that the options below declare. */
extern const run_metric_declaration pairs_metric[3];
/* Values differ from each other and from the defaults; no size is planned. */
run_record_options pairs_options(const char *name);
run_record *pairs_begin(const pairs_model *f, const run_record_options *o);
/* Batch `number` of the data, or its shard; forward and backward pass. */
batch pairs_batch(pairs_model *f, int64_t number);
void pairs_pass(pairs_model *f, const batch *b);
/* After the passes of a step: exchanges the records of r[ranks], with shards first[ranks + 1]. */
void pairs_exchange(run_record *const *r, int ranks, const int *first);
/* Ends the step's row: update 10 + number, 20 + number tokens. */
void pairs_end_step(run_record *r, int64_t number);
/* A complete step of one shard in one process. */
void pairs_step(pairs_model *f, run_record *r, int64_t number, bool spectra);
/* Closes the record; returns the file. */
sr_runfile *pairs_end(run_record *r, const char *status, const char *name);

#endif
