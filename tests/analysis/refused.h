/* refused.h -- streams of random numbers of which one is refused. */
#ifndef TESTS_ANALYSIS_REFUSED_H
#define TESTS_ANALYSIS_REFUSED_H

#include "base/rng.h"

/* A stream whose number i is 0, which is refused where 2^64 is no multiple of n: rng_at mixes 0
   into 0. */
static inline rng refused_at(uint64_t i) {
    return (rng){.key = -(i + 1) * RNG_GOLDEN};
}

#endif
