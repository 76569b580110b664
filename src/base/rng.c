/* rng.c -- uniform and normal numbers, integers and permutations from a counter. */
#include "base/rng.h"

#include <math.h>

rng rng_create(uint64_t seed) {
    return (rng){.key = rng_at(seed, 0)};
}

rng rng_split(const rng *r, uint64_t stream) {
    return (rng){.key = rng_at(r->key ^ rng_at(stream, 0x5eed), stream)};
}

uint64_t rng_next(rng *r) {
    return rng_at(r->key, r->counter++);
}

double rng_uniform(rng *r) {
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

double rng_normal(rng *r) {
    double radius = sqrt(-2.0 * log(1.0 - rng_uniform(r)));
    return radius * cos(2.0 * acos(-1.0) * rng_uniform(r));
}

uint64_t rng_below(rng *r, uint64_t n) {
    uint64_t limit = -n % n; /* 2^64 mod n: values below it would be drawn once too often */
    for (;;) {
        uint64_t v = rng_next(r);
        if (v >= limit) return v % n;
    }
}

rng_range rng_range_create(uint64_t n) {
    return (rng_range){n, -n % n, UINT64_MAX / n};
}

void rng_shuffle(rng *r, int64_t *items, int64_t count) {
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)rng_below(r, (uint64_t)i + 1);
        int64_t held = items[i];
        items[i] = items[j];
        items[j] = held;
    }
}
