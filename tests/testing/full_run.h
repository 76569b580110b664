/* full_run.h -- a small run with every kind of record, so that each analysis finds its input. It
 * has sites of each family, one observed and one of another shard, and custom scalars. It has
 * evaluations with running and with batch statistics, spectra, singular values, a final pass and
 * pairs. */
#ifndef TESTS_FULL_RUN_H
#define TESTS_FULL_RUN_H

#include <stdint.h>

typedef struct full_run {
    const char *path;
    const char *norm;   /* norm of the first site, `stem`; NULL: bn */
    const char *config; /* configuration of statrec train, then the program; NULL: a host program */
    const char *model, *data;
    uint64_t seed; /* also seeds the noise */
    int steps;     /* vectors in each of them; 0: 40. The learning rate halves in the middle */
} full_run;

void write_full_run(const full_run *run);

#endif
