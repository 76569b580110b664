/* quickselect.c -- order statistics without sorting: Hoare's selection (1961), for several ranks at
 * once.
 *
 * Partitions a range around a pivot, the ranks with it, and continues in parts that hold a rank. So
 * n values and r ranks cost about n (2 + log2 r) comparisons; sorting costs n log2 n. Partitioning
 * without progress (values chosen against the pivots) ends in a sort. With many values, those near
 * the ranks are gathered first.
 */
#include <math.h>
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

/* -- many values ----------------------------------------------------------------------------- */

/* A sample of many values brackets the ranks: the values between its order statistics around them
 * (Floyd and Rivest 1975). One pass gathers these; a bracket that misses its rank costs that pass.
 */
enum { MANY = 1 << 16, SAMPLE = 1 << 13, BRACKETS = 16, DEVIATIONS = 4, LINE = 64 };

typedef struct bracket {
    double low, high;
    int64_t below, up_to; /* values below `low`, and those that are at most `high` */
    int end;              /* after its last rank */
} bracket;

/* Moves a value of each of SAMPLE equal parts to the front, at another offset in each. */
static void move_sample(double *x, int64_t count) {
    const int64_t part = count / SAMPLE;
    for (int64_t i = 0; i < SAMPLE; i++) {
        const uint64_t mixed = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u >> 32;
        const int64_t from = i * part + (int64_t)(mixed % (uint64_t)part);
        const double held = x[from];
        x[from] = x[i];
        x[i] = held;
    }
}

/* Brackets that overlap become one. Returns their number, 0 for too many ranks. */
static int make_brackets(double *x, int64_t count, const int64_t *rank, int ranks, bracket *b) {
    int64_t at[2 * BRACKETS];
    int n = 0;
    for (int i = 0; i < ranks; i++) {
        const double p = (double)rank[i] / (double)count;
        const int64_t reach = 2 + (int64_t)(DEVIATIONS * sqrt(SAMPLE * p * (1 - p)));
        const int64_t middle = (int64_t)(SAMPLE * p);
        const int64_t low = middle > reach ? middle - reach : 0;
        const int64_t high = middle + reach < SAMPLE - 1 ? middle + reach : SAMPLE - 1;
        const bool joined = n && low <= at[2 * n - 1];
        if (!joined && n == BRACKETS) return 0;
        if (!joined) at[2 * n++] = low;
        at[2 * n - 1] = high, b[n - 1].end = i + 1;
    }
    move_sample(x, count);
    place(x, SAMPLE, 0, at, 2 * n, 2 * LINE);
    for (int k = 0; k < n; k++) {
        b[k].low = at[2 * k] ? x[at[2 * k]] : -INFINITY;
        b[k].high = at[2 * k + 1] < SAMPLE - 1 ? x[at[2 * k + 1]] : INFINITY;
        b[k].below = b[k].up_to = 0;
    }
    return n;
}

/* Moves the values in a bracket to the front; returns their number. */
static int64_t gather_brackets(double *x, int64_t count, bracket *b, int brackets) {
    int64_t front = 0;
    for (int64_t at = 0; at < count; at += LINE) {
        const int64_t n = count - at < LINE ? count - at : LINE;
        int64_t in[LINE] = {0};
        for (int k = 0; k < brackets; k++) {
            const double low = b[k].low, high = b[k].high;
            int64_t below = 0, up_to = 0;
#pragma omp simd reduction(+ : below, up_to)
            for (int64_t i = 0; i < n; i++) {
                const int64_t under = x[at + i] < low, within = x[at + i] <= high;
                below += under, up_to += within;
                in[i] |= within & ~under;
            }
            b[k].below += below, b[k].up_to += up_to;
        }
        for (int64_t i = 0; i < n; i++) {
            const double now = x[at + i];
            x[at + i] = x[front];
            x[front] = now;
            front += in[i];
        }
    }
    return front;
}

/* Finds the index of each rank among the gathered values. False: a bracket misses one, or two share
 * a value. */
static bool ranks_within(const bracket *b, int brackets, const int64_t *rank, int64_t *within) {
    int64_t before = 0;
    for (int k = 0, i = 0; k < brackets; k++) {
        if (k && b[k].low <= b[k - 1].high) return false;
        for (; i < b[k].end; i++) {
            if (rank[i] < b[k].below || rank[i] >= b[k].up_to) return false;
            within[i] = before + rank[i] - b[k].below;
        }
        before += b[k].up_to - b[k].below;
    }
    return true;
}

/* False: x is in another order, and its ranks are still to be found. */
static bool place_of_many(double *x, int64_t count, const int64_t *rank, int ranks, int attempts) {
    bracket b[BRACKETS];
    int64_t within[2 * BRACKETS] = {0};
    const int brackets = ranks <= 2 * BRACKETS ? make_brackets(x, count, rank, ranks, b) : 0;
    if (!brackets) return false;
    const int64_t gathered = gather_brackets(x, count, b, brackets);
    if (!ranks_within(b, brackets, rank, within)) return false;
    place(x, gathered, 0, within, ranks, attempts);
    for (int i = ranks - 1; i >= 0; i--) { /* from the last: no value is in the way of another */
        const double held = x[rank[i]];
        x[rank[i]] = x[within[i]];
        x[within[i]] = held;
    }
    return true;
}

void quickselect_ranks(double *value, int64_t count, const int64_t *rank, int ranks) {
    int attempts = 8;
    for (int64_t n = count; n > 0; n /= 2) attempts += 2;
    if (count >= MANY && place_of_many(value, count, rank, ranks, attempts)) return;
    place(value, count, 0, rank, ranks, attempts);
}
