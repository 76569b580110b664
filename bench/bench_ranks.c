/* bench_ranks.c -- cost of the exchanges of a training in several processes (make MPI=1
 * bench_ranks).
 *
 *     mpirun -n R bench_ranks [ROUNDS]
 *
 * gather: ranks_allgather of w doubles from each rank, as for statistics of a layer and losses.
 * sum: one row of gradients from each rank to the owners of its chunks, added up there and sent
 * back. It is like a bucket of gradient_sum.c, without other computation. add: one row added to
 * another. merge: one rank merges the moments of N ranks (src/norm/kernels/sync.c), with a plain
 * loop in place of the exchange.
 *
 * A round measures every size once, each as the mean of a few calls after a gather that
 * synchronizes the ranks. Times are the first rank's. The last lines are the straight line t = a +
 * b bytes for gather and sum. It has the least sum of squared relative deviations from the medians;
 * bytes are those that one rank sends. scaling.py reads the whole output.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/program/progress.h"
#include "norm/kernels/sync.h"
#include "ranks/ranks.h"

enum {
    GATHER_MOST = 4096,
    SUM_LEAST = 1 << 10,
    SUM_MOST = 1 << 20,
    CASES = 64,
    MERGE_FEATURES = 512,
    MERGE_MOST = 1024
};

typedef struct bench {
    ranks *ranks;
    int world, rounds;
    int *parts; /* [world] one row of each */
    double *all;
    real *row, *sum;
    sr_failure why;
} bench;

typedef enum { GATHER, SUM, ADD, MERGE } kind;
static const char *const names[] = {"gather", "sum", "add", "merge"};

typedef struct one_case {
    kind kind;
    int64_t size;  /* doubles, reals, reals, ranks */
    int calls;     /* calls per measurement */
    double *times; /* [rounds] seconds */
} one_case;

static void must(const bench *b, bool well) {
    if (well) return;
    fprintf(stderr, "bench_ranks: %s\n", b->why.status ? b->why.text : "out of memory");
    exit(1);
}

static void *need(const bench *b, size_t bytes) {
    void *p = calloc(1, bytes);
    must(b, p != NULL);
    return p;
}

/* -- measured operations ----------------------------------------------------------------------- */

static void gather(bench *b, int64_t size) {
    must(b, ranks_allgather(b->ranks, b->all, size, &b->why) == SR_OK);
}

static void add(real *to, const real *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

static void sum(bench *b, int64_t size) {
    int64_t width;
    ranks_transfer *t = ranks_send_pieces(b->ranks, b->parts, &b->row, size, &b->why);
    must(b, t && ranks_finish(t, &b->why) == SR_OK);
    real *chunk = ranks_pieces(t, &width);
    for (int r = 1; r < b->world; r++) add(chunk, chunk + r * width, width);
    must(b, ranks_return_pieces(t, b->sum, &b->why) == SR_OK);
    must(b, ranks_finish(t, &b->why) == SR_OK);
    ranks_transfer_free(t);
}

/* Stand-in for an exchange: rows of every rank, all ones. */
static sr_status fill(void *context, double *all, int64_t width) {
    const int64_t count = *(const int64_t *)context;
    for (int64_t i = 0; i < count * width; i++) all[i] = 1;
    return SR_OK;
}

static void merge(bench *b, int64_t count, tape *scratch) {
    norm_rows rows = {.valid = 1, .gather = fill, .gather_context = &count, .ranks = (int)count};
    norm_call call = {.rows = &rows, .features = MERGE_FEATURES, .tape = scratch};
    double n, *mean = b->all, *m2 = b->all + MERGE_FEATURES;
    must(b, sync_moments(&call, &n, mean, m2) == SR_OK);
    must(b, sync_sums(&call, mean, m2) == SR_OK);
}

static double measure(bench *b, const one_case *c) {
    tape *scratch = c->kind == MERGE ? tape_create(1, &b->why) : NULL;
    must(b, c->kind != MERGE || scratch);
    gather(b, 1);
    const double began = progress_clock();
    for (int i = 0; i < c->calls; i++) {
        if (c->kind == GATHER) gather(b, c->size);
        if (c->kind == SUM) sum(b, c->size);
        if (c->kind == ADD) add(b->sum, b->row, c->size);
        if (c->kind == MERGE) merge(b, c->size, scratch);
    }
    const double time = (progress_clock() - began) / c->calls;
    if (scratch) tape_free(scratch);
    return time;
}

/* -- the table --------------------------------------------------------------------------------- */

static int make_cases(const bench *b, one_case c[CASES]) {
    int n = 0;
    for (int64_t w = 1; w <= GATHER_MOST; w *= 2) c[n++] = (one_case){GATHER, w, 20, NULL};
    for (int64_t w = SUM_LEAST; w <= SUM_MOST; w *= 4) c[n++] = (one_case){SUM, w, 4, NULL};
    c[n++] = (one_case){ADD, SUM_MOST, 4, NULL};
    for (int64_t r = 16; r <= MERGE_MOST; r *= 8) c[n++] = (one_case){MERGE, r, 1, NULL};
    for (int i = 0; i < n; i++) c[i].times = need(b, (size_t)b->rounds * sizeof(double));
    return n;
}

/* That one rank sends; of add and merge: that are read. */
static double bytes_of(const bench *b, const one_case *c) {
    const double others = b->world - 1;
    if (c->kind == GATHER) return 8.0 * others * (double)c->size;
    if (c->kind == SUM) return 2.0 * sizeof(real) * (double)c->size * others / b->world;
    if (c->kind == ADD) return sizeof(real) * (double)c->size;
    return 8.0 * (4 * MERGE_FEATURES + 1) * (double)c->size;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_cases(const bench *b, one_case *c, int cases) {
    printf("# column kind: gather, sum, add, merge: see bench_ranks.c\n"
           "# column ranks: processes\n"
           "# column size: doubles of a rank, numbers of a row, numbers of a row, ranks\n"
           "# column bytes: that one rank sends; of add and merge: that are read\n"
           "# column median_us, low_us, high_us, best_us: of the rounds, their first and third "
           "quartile, the least\n"
           "kind\tranks\tsize\tbytes\tmedian_us\tlow_us\thigh_us\tbest_us\n");
    for (int i = 0; i < cases; i++) {
        double *t = c[i].times;
        qsort(t, (size_t)b->rounds, sizeof *t, ascending);
        printf("%s\t%d\t%lld\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\n", names[c[i].kind], b->world,
               (long long)c[i].size, bytes_of(b, &c[i]), 1e6 * t[b->rounds / 2],
               1e6 * t[b->rounds / 4], 1e6 * t[3 * b->rounds / 4], 1e6 * t[0]);
    }
}

/* Weights 1/t^2: small messages count as much as large ones. */
static void print_line(const bench *b, kind which, const one_case *c, int cases) {
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
    for (int i = 0; i < cases; i++) {
        if (c[i].kind != which) continue;
        const double x = bytes_of(b, &c[i]), y = c[i].times[b->rounds / 2], weight = 1 / (y * y);
        w += weight, wx += weight * x, wy += weight * y;
        wxx += weight * x * x, wxy += weight * x * y;
    }
    const double slope = (w * wxy - wx * wy) / (w * wxx - wx * wx);
    printf("# line %s %d ranks: t = %.3g us + bytes / %.4g MB/s\n", names[which], b->world,
           1e6 * (wy - slope * wx) / w, 1e-6 / slope);
}

static void open_bench(bench *b) {
    b->ranks = ranks_open(60, &b->why);
    must(b, b->ranks != NULL);
    b->world = ranks_count(b->ranks);
    b->parts = need(b, (size_t)b->world * sizeof *b->parts);
    for (int r = 0; r < b->world; r++) b->parts[r] = 1;
    b->all = need(b, (size_t)b->world * GATHER_MOST * sizeof *b->all);
    b->row = need(b, SUM_MOST * sizeof *b->row);
    b->sum = need(b, SUM_MOST * sizeof *b->sum);
}

int main(int argc, char **argv) {
    bench b = {.rounds = argc > 1 ? atoi(argv[1]) : 21};
    one_case c[CASES];
    if (b.rounds < 1) return fprintf(stderr, "usage: mpirun -n R bench_ranks [ROUNDS]\n"), 2;
    open_bench(&b);
    if (b.world == 1) {
        fprintf(stderr, "bench_ranks: 1 rank has no exchanges: mpirun -n 2 bench_ranks\n");
        return ranks_close(b.ranks, NULL), 2;
    }
    const int cases = make_cases(&b, c);
    for (int round = -1; round < b.rounds; round++)
        for (int i = 0; i < cases; i++) {
            const double time = measure(&b, &c[i]);
            if (round >= 0) c[i].times[round] = time; /* the first warms up */
        }
    if (ranks_rank(b.ranks) == 0) {
        printf("# %s, %d rounds\n", ranks_describe(b.ranks), b.rounds);
        print_cases(&b, c, cases);
        print_line(&b, GATHER, c, cases);
        print_line(&b, SUM, c, cases);
    }
    for (int i = 0; i < cases; i++) free(c[i].times);
    free(b.parts), free(b.all), free(b.row), free(b.sum);
    ranks_close(b.ranks, NULL);
    return 0;
}
