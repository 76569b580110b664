/* refused.h -- streams of random numbers with one rejected number. */
#ifndef TESTS_ANALYSIS_REFUSED_H
#define TESTS_ANALYSIS_REFUSED_H

#include "base/rng.h"

/* A stream whose number i is 0, since rng_at mixes 0 into 0. Bounded draws reject 0 unless n
 * divides 2^64. */
static inline rng refused_at(uint64_t i) {
    return (rng){.key = -(i + 1) * RNG_GOLDEN};
}

#endif
