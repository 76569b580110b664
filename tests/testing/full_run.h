/* full_run.h -- a small run with every kind of record, so that each analysis finds what it needs:
 * sites of each family, one observed and one of another shard, custom scalars, evaluations with
 * running and with batch statistics, spectra, singular values, a final pass and pairs. */
#ifndef TESTS_FULL_RUN_H
#define TESTS_FULL_RUN_H

#include <stdint.h>

typedef struct full_run {
    const char *path;
    const char *norm;   /* of the first site, `stem`; NULL: bn */
    const char *config; /* of statrec train, which then is the program; NULL: a host's own */
    const char *model, *data;
    uint64_t seed; /* of the noise, too */
    int steps;     /* vectors in each of them; 0: 40. The learning rate halves in the middle */
} full_run;

void write_full_run(const full_run *run);

#endif
