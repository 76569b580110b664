/* written_words.h -- log probabilities from a table, for scorers of tests. */
#ifndef TESTS_WRITTEN_WORDS_H
#define TESTS_WRITTEN_WORDS_H

#include <math.h>
#include <string.h>

#include "decode/translate.h"

/* First member of a scorer's context. */
typedef struct written_words {
    int64_t V;
    double *log_p; /* [rows, V] */
} written_words;

static inline void written_log_p(const void *context, int64_t row, int64_t first, int64_t count,
                                 double *log_p) {
    const written_words *w = context;
    memcpy(log_p, w->log_p + row * w->V + first, (size_t)count * sizeof *log_p);
}

/* NaN if any is NaN. */
static inline void written_largest(const void *context, int64_t row, double *log_p) {
    const written_words *w = context;
    const double *from = w->log_p + row * w->V;
    for (int64_t i = 0; i < w->V; i++) {
        double *top = &log_p[i / WORDS_TOGETHER];
        if (i % WORDS_TOGETHER == 0 || from[i] > *top || isnan(from[i])) *top = from[i];
        if (isnan(*top)) i += WORDS_TOGETHER - 1 - i % WORDS_TOGETHER;
    }
}

#endif
