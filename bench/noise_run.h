/* noise_run.h -- run files of any length, for measuring the speed of readers. */
#ifndef BENCH_NOISE_RUN_H
#define BENCH_NOISE_RUN_H

#include <stdint.h>

#include "statrec/record.h"

/* steps x sites of batch normalization with every scalar of each, losses and 50 evaluations; no
 * vectors. The same bytes at each call. Errors are reported in why. */
sr_status noise_run_make(const char *path, int64_t steps, int sites, sr_failure *why);

#endif
