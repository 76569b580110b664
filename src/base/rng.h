/* rng.h -- counter-based, splittable random numbers (SplitMix64, Steele et al., OOPSLA 2014).
 *
 * The i-th value of a stream depends on (key, i) alone. A kernel may draw values in any order and
 * on any number of threads and get the same bytes. The whole state is two integers.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

typedef struct rng {
    uint64_t key;
    uint64_t counter; /* values drawn so far */
} rng;

#define RNG_GOLDEN 0x9e3779b97f4a7c15ull

/* The value at position i of the stream `key`. Inline: dropout calls it once per element. */
static inline uint64_t rng_at(uint64_t key, uint64_t i) {
    uint64_t z = key + (i + 1) * RNG_GOLDEN;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

rng rng_create(uint64_t seed);

/* A stream independent of r and of r's other streams. Does not advance r: the same (r.key, stream)
 * always gives the same stream. */
rng rng_split(const rng *r, uint64_t stream);

uint64_t rng_next(rng *r);              /* 64 uniform bits */
double rng_uniform(rng *r);             /* [0, 1), 53 bits */
double rng_normal(rng *r);              /* mean 0, standard deviation 1 (Box-Muller, two draws) */
uint64_t rng_below(rng *r, uint64_t n); /* 0 .. n-1, unbiased; n >= 1 */

/* For many draws below one n: the values of rng_below, without its divisions. */
typedef struct rng_range {
    uint64_t n, limit; /* limit: 2^64 mod n; values below it would be drawn once too often */
    uint64_t inverse;  /* floor((2^64 - 1) / n) */
} rng_range;

rng_range rng_range_create(uint64_t n); /* n >= 1 */

/* v inverse / 2^64 is less than 1 below v / n, so the quotient is right or one too small. */
static inline uint64_t rng_in_range(rng *r, const rng_range *range) {
    __extension__ typedef unsigned __int128 wide;
    uint64_t v;
    do v = rng_at(r->key, r->counter++);
    while (v < range->limit);
    const uint64_t quotient = (uint64_t)((wide)v * range->inverse >> 64);
    const uint64_t rest = v - quotient * range->n;
    return rest < range->n ? rest : rest - range->n;
}

void rng_shuffle(rng *r, int64_t *items, int64_t count); /* Fisher-Yates, in place */

#endif
