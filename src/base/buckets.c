/* buckets.c -- the smallest, the median and the largest finite value of each part of an axis. No
 * value outside them is lost and, but for medians between two values, none is invented. */
#include "base/buckets.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/sort.h"

/* The distance of two ends of double is infinite. */
double bucket_middle(double low, double high) {
    const double length = high - low;
    return isfinite(length) ? low + 0.5 * length : 0.5 * low + 0.5 * high;
}

enum { BLOCK = 64 };

/* Side by side. False where a value is not finite, or where an end is 0. The caller then decides
 * between 0 and -0. */
static bool block_ends(const double *x, double *least, double *largest) {
    double low = INFINITY, high = -INFINITY, odd = 0; /* x - x is NaN of NaN and of infinities */
#pragma omp simd reduction(min : low) reduction(max : high) reduction(+ : odd)
    for (int i = 0; i < BLOCK; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
        odd += x[i] - x[i];
    }
    *least = low, *largest = high;
    return odd == 0 && low != 0 && high != 0;
}

static int64_t gather_block(double *to, const double *from, int64_t count, double *least,
                            double *largest) {
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++) {
        const double now = from[i];
        if (!isfinite(now)) continue;
        *least = now < *least ? now : *least;
        *largest = now > *largest ? now : *largest;
        to[n++] = now;
    }
    return n;
}

int64_t gather_finite(double *to, const double *from, int64_t count, double *least,
                      double *largest) {
    int64_t n = 0;
    for (int64_t at = 0; at < count; at += BLOCK) {
        double low, high;
        if (count - at < BLOCK || !block_ends(from + at, &low, &high)) {
            const int64_t left = count - at < BLOCK ? count - at : BLOCK;
            n += gather_block(to + n, from + at, left, least, largest);
            continue;
        }
        if (to + n != from + at) memmove(to + n, from + at, BLOCK * sizeof *to);
        *least = low < *least ? low : *least;
        *largest = high > *largest ? high : *largest;
        n += BLOCK;
    }
    return n;
}

/* As the values of the axis. */
static bool is_sorted(const double *value, int64_t n) {
    for (int64_t i = 1; i < n; i++)
        if (value[i] < value[i - 1]) return false;
    return true;
}

bucket_range bucket_measure(double *value, int64_t count) {
    bucket_range r = {INFINITY, NAN, -INFINITY};
    const int64_t n = gather_finite(value, value, count, &r.least, &r.largest);
    if (n == 0) return (bucket_range){NAN, NAN, NAN};
    const int64_t rank[2] = {(n - 1) / 2, n / 2};
    if (!is_sorted(value, n)) quickselect_ranks(value, n, rank, rank[0] < rank[1] ? 2 : 1);
    r.median = bucket_middle(value[rank[0]], value[rank[1]]);
    return r;
}

int64_t bucket_of(double x, double low, double high, int64_t buckets) {
    if (!(high > low)) return 0;
    const double part = (x - low) / (high - low) * (double)buckets;
    if (!(part > 0)) return 0;
    return part < (double)buckets ? (int64_t)part : buckets - 1;
}
