/* bench_conv.c -- speed of the three passes of every convolution of ResNet20.
 *
 *   bench_conv [THREADS] [ROUNDS] [BATCH] [WAY]
 *
 * Every round runs every pass of every shape once. The table has the medians over ROUNDS (default
 * 21), and the sums over the network's 19 convolutions. The stem has no backward-data pass, because
 * its input is the image. `best` is the fastest round: the speed without other work on the machine.
 * WAY: 'direct' (oneDNN; with `make DNNL=0` im2col and gemm) or 'winograd' (the default: Winograd
 * if training uses it).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program/progress.h"
#include "engine/conv/conv.h"
#include "engine/gemm/gemm.h"

typedef struct layer {
    int64_t size, in, out, stride;
    int count; /* such convolutions in ResNet20 */
} layer;

static const layer layers[] = {{32, 3, 16, 1, 1},  {32, 16, 16, 1, 6}, {32, 16, 32, 2, 1},
                               {16, 32, 32, 1, 5}, {16, 32, 64, 2, 1}, {8, 64, 64, 1, 5}};
static const char *const pass_name[] = {"forward", "backward data", "backward weights"};

enum { LAYERS = sizeof layers / sizeof layers[0], PASSES = 3, MOST_ROUNDS = 1000 };

typedef struct bench {
    conv_shape s;
    conv_arrays a;
} bench;

static real *numbers(int64_t count) {
    real *x = aligned_alloc(64, (size_t)(count * (int64_t)sizeof *x + 63) / 64 * 64);
    for (int64_t i = 0; x && i < count; i++) x[i] = (real)(i % 17) / 16 - (real)0.5;
    return x;
}

static bool bench_create(const layer *l, int64_t batch, bench *b) {
    int64_t size = l->size / l->stride;
    b->s = (conv_shape){batch, l->size, l->size, l->in, l->out, 3, 3, l->stride, 1, size, size};
    b->a.x = numbers(batch * l->size * l->size * l->in);
    b->a.w = numbers(l->out * 9 * l->in);
    b->a.y = numbers(batch * size * size * l->out);
    return b->a.x && b->a.w && b->a.y;
}

/* Milliseconds of one pass, or negative. */
static double run(conv_state *state, bool direct, int threads, conv_pass pass, const bench *b,
                  sr_failure *why) {
    double start = (1e9 * progress_clock());
    conv_run(state, direct, threads, pass, &b->s, &b->a, why);
    return why->status == SR_OK ? ((1e9 * progress_clock()) - start) / 1e6 : -1;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double found[LAYERS][PASSES][MOST_ROUNDS];

static void print(int rounds, int threads, int64_t batch) {
    double total[PASSES] = {0}, best[PASSES] = {0};
    printf("# convolutions of ResNet20, batch %lld, %d threads, median of %d\n", (long long)batch,
           threads, rounds);
    printf("shape\tpass\tms\tGFLOP/s\tbest ms\tbest GFLOP/s\n");
    for (int i = 0; i < LAYERS; i++)
        for (int p = 0; p < PASSES; p++) {
            const layer *l = &layers[i];
            qsort(found[i][p], (size_t)rounds, sizeof(double), by_value);
            double ms = found[i][p][rounds / 2], least = found[i][p][0];
            double size = (double)l->size / (double)l->stride;
            double work = 18 * size * size * (double)(batch * l->in * l->out);
            printf("%lldx%lld %lld->%lld/%lld\t%s\t%.3f\t%.0f\t%.3f\t%.0f\n", (long long)l->size,
                   (long long)l->size, (long long)l->in, (long long)l->out, (long long)l->stride,
                   pass_name[p], ms, work / ms / 1e6, least, work / least / 1e6);
            if (i == 0 && p == CONV_BACKWARD_DATA) continue;
            total[p] += l->count * ms;
            best[p] += l->count * least;
        }
    for (int p = 0; p < PASSES; p++)
        printf("network\t%s\t%.1f\t\t%.1f\t\n", pass_name[p], total[p], best[p]);
    printf("network\tall\t%.1f\t\t%.1f\t\n", total[0] + total[1] + total[2],
           best[0] + best[1] + best[2]);
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 2, rounds = argc > 2 ? atoi(argv[2]) : 21;
    int64_t batch = argc > 3 ? atoi(argv[3]) : 128;
    bool direct = argc > 4 && strcmp(argv[4], "direct") == 0;
    if (threads < 1 || rounds < 1 || rounds > MOST_ROUNDS || batch < 1) {
        fprintf(stderr, "usage: bench_conv [THREADS] [ROUNDS] [BATCH] [direct|winograd]\n");
        return 2;
    }
    gemm_setup(threads);
    sr_failure why = {0};
    conv_state *state = conv_create(&why);
    bench b[LAYERS];
    bool enough = why.status == SR_OK;
    for (int i = 0; i < LAYERS; i++) enough = bench_create(&layers[i], batch, &b[i]) && enough;
    for (int r = -1; enough && r < rounds; r++) /* round -1 warms up */
        for (int i = 0; i < LAYERS; i++)
            for (int p = 0; p < PASSES; p++) {
                double ms = run(state, direct, threads, (conv_pass)p, &b[i], &why);
                if (r >= 0) found[i][p][r] = ms;
            }
    if (enough && why.status == SR_OK) print(rounds, threads, batch);
    conv_free(state);
    for (int i = 0; i < LAYERS; i++) free(b[i].a.x), free(b[i].a.w), free(b[i].a.y);
    if (enough && why.status == SR_OK) return 0;
    fprintf(stderr, "bench_conv: %s\n", why.status != SR_OK ? why.text : "out of memory");
    return 1;
}
