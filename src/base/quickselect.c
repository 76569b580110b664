/* quickselect.c -- order statistics without sorting: Hoare's selection (1961), for several ranks at
 * once.
 *
 * Partitions a range around a pivot, the ranks with it, and continues in parts that hold a rank. So
 * n values and r ranks cost about n (2 + log2 r) comparisons; sorting costs n log2 n. Parting that
 * makes no headway (values chosen against the pivots) ends in a sort.
 */
#include <stdbool.h>

#include "base/sort.h"

enum { SMALL = 24, LARGE = 1024 };

static void insertion_sort(double *x, int64_t count) {
    for (int64_t i = 1; i < count; i++) {
        const double now = x[i];
        int64_t k = i;
        for (; k > 0 && x[k - 1] > now; k--) x[k] = x[k - 1];
        x[k] = now;
    }
}

static double middle(double a, double b, double c) {
    if (a > b) return b > c ? b : a > c ? c : a;
    return a > c ? a : b > c ? c : b;
}

static double choose_pivot(const double *x, int64_t count) {
    const int64_t last = count - 1, s = count / 8;
    if (count < LARGE) return middle(x[0], x[last / 2], x[last]);
    return middle(middle(x[0], x[s], x[2 * s]), middle(x[3 * s], x[last / 2], x[5 * s]),
                  middle(x[6 * s], x[7 * s], x[last]));
}

/* Moves the values below the pivot (equals: and those equal to it) to the front; returns their
 * number. No jump depends on a value, since the CPU mispredicts half of such jumps. */
static inline __attribute__((always_inline)) int64_t gather(double *x, int64_t count, double pivot,
                                                            bool equals) {
    int64_t front = 0;
    for (int64_t i = 0; i < count; i++) {
        const double now = x[i];
        x[i] = x[front];
        x[front] = now;
        front += equals ? now <= pivot : now < pivot;
    }
    return front;
}

/* Partitions x: x[0 .. *left] < pivot <= x[*right .. count - 1]; values between equal the pivot. If
 * few are below it, many may be equal, and are separated. */
static void part(double *x, int64_t count, int64_t *left, int64_t *right) {
    const double pivot = choose_pivot(x, count);
    const int64_t below = gather(x, count, pivot, false);
    const bool few = below < count / 8 + 1;
    *left = below - 1;
    *right = below + (few ? gather(x + below, count - below, pivot, true) : 0);
}

/* Ranks count from `first`, the rank of x[0] in the whole. */
static void place(double *x, int64_t count, int64_t first, const int64_t *rank, int ranks,
                  int attempts) {
    while (ranks > 0) {
        int64_t left, right;
        int below = 0, above = ranks;
        if (count <= SMALL) {
            insertion_sort(x, count);
            return;
        }
        if (attempts-- == 0) {
            sort_reals(x, count);
            return;
        }
        part(x, count, &left, &right);
        while (below < ranks && rank[below] - first <= left) below++;
        while (above > below && rank[above - 1] - first >= right) above--;
        place(x, left + 1, first, rank, below, attempts);
        rank += above, ranks -= above;
        x += right, count -= right, first += right;
    }
}

void quickselect_ranks(double *value, int64_t count, const int64_t *rank, int ranks) {
    int attempts = 8;
    for (int64_t n = count; n > 0; n /= 2) attempts += 2;
    place(value, count, 0, rank, ranks, attempts);
}
