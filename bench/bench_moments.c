/* bench_moments.c -- time of the recorder's statistics of raw tensors (statrec/moments.h), one thread,
 * against the time of reading the same tensors.
 *
 *     bench_moments
 *
 * Reading is a loop that adds up the tensor's elements as they are, bits of half precision
 * included. Tensors are cycled so that each call finds its own in memory, not in cache. Prints
 * processor time, the least over rounds. Both take turns in a round: other work on the machine only
 * adds time.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "statrec/moments.h"

enum { ROUNDS = 15 };

static const size_t cycled_bytes = (size_t)256 << 20;

typedef struct shape {
    const char *name;
    sr_element element;
    int64_t outer, channels, inner, every; /* each row divisible by `every` is padding; 0: none */
} shape;

static const shape shapes[] = {
    {"4096 tokens, d 512", SR_FLOAT32, 4096, 512, 1, 0},
    {"4096 tokens, d 512, a fifth padded", SR_FLOAT32, 4096, 512, 1, 5},
    {"4096 tokens, d 100", SR_FLOAT32, 4096, 100, 1, 0},
    {"128 images, 16 channels, 32 x 32", SR_FLOAT32, 128, 16, 1024, 0},
    {"128 images, 64 channels, 8 x 8", SR_FLOAT32, 128, 64, 64, 0},
    {"4096 tokens, d 512, float64", SR_FLOAT64, 4096, 512, 1, 0},
    {"4096 tokens, d 512, bfloat16", SR_BFLOAT16, 4096, 512, 1, 0},
    {"4096 tokens, d 512, float16", SR_FLOAT16, 4096, 512, 1, 0},
};

typedef struct bench {
    const shape *shape;
    int64_t count; /* elements of a tensor */
    size_t bytes;  /* bytes of a tensor */
    int tensors;
    char *data; /* [tensors, bytes] */
    uint8_t *valid;
    double *vector; /* [6, channels] */
    double sink;
} bench;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *need(size_t bytes) {
    void *p = malloc(bytes);
    if (p) return p;
    fprintf(stderr, "bench_moments: out of memory for %zu bytes\n", bytes);
    exit(1);
}

static size_t size_of(sr_element element) {
    return element == SR_FLOAT64 ? 8 : element == SR_FLOAT32 ? 4 : 2;
}

static void fill(char *data, sr_element element, int64_t count) {
    uint64_t z = 1;
    for (int64_t i = 0; i < count; i++) {
        z = z * 6364136223846793005ull + 1442695040888963407ull;
        const double v = (double)(z >> 33) * 0x1p-30 - 1;
        if (element == SR_FLOAT64) ((double *)data)[i] = v;
        if (element == SR_FLOAT32) ((float *)data)[i] = (float)v;
        if (element >= SR_BFLOAT16) ((uint16_t *)data)[i] = (uint16_t)(0x3c00 + (z >> 54));
    }
}

static void prepare(bench *b, const shape *s) {
    const int64_t rows = s->outer * s->inner;
    b->shape = s, b->count = rows * s->channels;
    b->bytes = (size_t)b->count * size_of(s->element);
    b->tensors = (int)(cycled_bytes / b->bytes) & ~1;
    b->data = need((size_t)b->tensors * b->bytes);
    b->valid = s->every ? need((size_t)rows) : NULL;
    for (int64_t r = 0; r < rows && s->every; r++) b->valid[r] = r % s->every != 0;
    b->vector = need(6 * (size_t)s->channels * sizeof(double));
    fill(b->data, s->element, b->tensors * b->count);
}

static sr_tensor tensor_of(const bench *b, int i) {
    const shape *s = b->shape;
    return SR_INIT(sr_tensor, b->data + (size_t)i * b->bytes, s->element, s->outer, s->channels,
                   s->inner, b->valid, 0);
}

/* -- timed loops ------------------------------------------------------------------------------- */

#define READ(type, sum_type)                                                                       \
    {                                                                                              \
        const type *x = (const type *)data;                                                        \
        sum_type lane[32] = {0};                                                                   \
        for (size_t i = 0; i + 32 <= bytes / sizeof *x; i += 32)                                   \
            for (int j = 0; j < 32; j++) lane[j] += (sum_type)x[i + (size_t)j];                    \
        for (int j = 0; j < 32; j++) sum += (double)lane[j];                                       \
    }

static double read_all(const char *data, size_t bytes, sr_element element) {
    double sum = 0;
    if (element == SR_FLOAT64)
        READ(double, double)
    else if (element == SR_FLOAT32)
        READ(float, float)
    else
        READ(uint16_t, uint16_t)
    return sum;
}

static double time_reading(bench *b) {
    const double start = now();
    for (int i = 0; i < b->tensors; i++)
        b->sink += read_all(b->data + (size_t)i * b->bytes, b->bytes, b->shape->element);
    return now() - start;
}

static double time_forward(bench *b) {
    double *v = b->vector;
    const int64_t d = b->shape->channels;
    const double start = now();
    for (int i = 0; i < b->tensors; i++) {
        const sr_tensor x = tensor_of(b, i);
        b->sink += (double)sr_moments(&x, v, v + d, v + 2 * d);
    }
    return now() - start;
}

/* Gradients and inputs in turn: each pair of tensors is read once. */
static double time_backward(bench *b) {
    double *v = b->vector;
    const int64_t d = b->shape->channels;
    const double start = now();
    for (int i = 0; i + 1 < b->tensors; i += 2) {
        const sr_tensor x = tensor_of(b, i), g = tensor_of(b, i + 1);
        sr_gradient_sums(&g, &x, v, v + 3 * d, v + 4 * d, v + 5 * d);
        b->sink += v[3 * d];
    }
    return now() - start;
}

static double lower(double a, double b) {
    return a < b ? a : b;
}

int main(void) {
    double sink = 0;
    printf("tensor\tread_GBps\tforward_ratio\tbackward_ratio\n");
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        bench b = {0};
        prepare(&b, &shapes[k]);
        double read = 1e9, forward = 1e9, backward = 1e9;
        for (int round = 0; round < ROUNDS; round++) {
            read = lower(read, time_reading(&b));
            forward = lower(forward, time_forward(&b));
            backward = lower(backward, time_backward(&b));
        }
        printf("%s\t%.1f\t%.2f\t%.2f\n", b.shape->name,
               (double)b.tensors * (double)b.bytes / read * 1e-9, forward / read, backward / read);
        sink += b.sink;
        free(b.data), free(b.valid), free(b.vector);
    }
    if (sink == 1) printf("# unlikely\n"); /* the sums are used */
    return 0;
}
