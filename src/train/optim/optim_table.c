/* optim_table.c -- the table of optimizers, and their chunks, threads and gradient norm. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/options/options.h"
#include "train/optim/optim_rows.h"

static const optim_row *const rows[] = {
#define OPTIM_ROW(name, word) &optim_##name,
    OPTIMIZERS(OPTIM_ROW)
#undef OPTIM_ROW
};

enum { ROWS = sizeof rows / sizeof rows[0], CHUNK = 16384 };

const optim_row *optim_at(int i) {
    return i >= 0 && i < ROWS ? rows[i] : NULL;
}

const optim_row *optim_find(const char *name) {
    for (int i = 0; i < ROWS; i++)
        if (!strcmp(rows[i]->name, name)) return rows[i];
    return NULL;
}

bool optim_obeys(const char *name, const char *key) {
    const optim_row *row = optim_find(name);
    return row && options_lists(row->options, key);
}

static int64_t chunks_of(const param *x) {
    return (x->t.count + CHUNK - 1) / CHUNK;
}

/* Work of one thread: chunks that start among the numbers from .. end-1 of all parameters,
   concatenated. */
typedef struct share {
    int64_t from, end;
} share;

static share own_share(const params *p) {
    const int64_t all = params_total(p), thread = omp_get_thread_num();
    const int64_t threads = omp_get_num_threads();
    return (share){all * thread / threads, all * (thread + 1) / threads};
}

/* The thread's chunks of a parameter whose numbers start at `first`. */
static share own_chunks(const share *own, int64_t first, const param *x) {
    const int64_t chunks = chunks_of(x), from = (own->from - first + CHUNK - 1) / CHUNK,
                  end = (own->end - first + CHUNK - 1) / CHUNK;
    return (share){from < 0        ? 0
                   : from < chunks ? from
                                   : chunks,
                   end < 0        ? 0
                   : end < chunks ? end
                                  : chunks};
}

void optim_apply(const optim_row *row, const optim_step *s, params *p) {
#pragma omp parallel num_threads(s->threads)
    {
        const share own = own_share(p);
        for (int64_t i = 0, first = 0; i < p->count; first += p->item[i++]->t.count) {
            const param *x = p->item[i];
            const share chunks = own_chunks(&own, first, x);
            for (int64_t k = chunks.from; k < chunks.end; k++) {
                const int64_t at = k * CHUNK, n = x->t.count - at < CHUNK ? x->t.count - at : CHUNK;
                row->update(s, n, x->t.value + at, x->t.grad + at,
                            x->slot[0] ? x->slot[0] + at : NULL,
                            x->slot[1] ? x->slot[1] + at : NULL);
            }
        }
    }
}

static double chunk_squares(const tensor *x, int64_t at) {
    const int64_t end = x->count - at < CHUNK ? x->count : at + CHUNK;
    const real *g = x->grad;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = at; i < end; i++) sum += (double)g[i] * (double)g[i];
    return sum;
}

/* sum: of every chunk of every parameter, in their order. */
static void sum_chunks(const params *p, int threads, double *sum) {
#pragma omp parallel num_threads(threads)
    {
        const share own = own_share(p);
        double *to = sum;
        for (int64_t i = 0, first = 0; i < p->count; first += p->item[i++]->t.count) {
            const param *x = p->item[i];
            const share chunks = own_chunks(&own, first, x);
            for (int64_t k = chunks.from; k < chunks.end; k++)
                to[k] = chunk_squares(&x->t, k * CHUNK);
            to += chunks_of(x);
        }
    }
}

sr_status optim_grad_norm(const params *p, int threads, double *norm, sr_failure *why) {
    int64_t chunks = 0;
    for (int i = 0; i < p->count; i++) {
        if (!p->item[i]->t.has_grad) /* its memory has an older gradient */
            return sr_fail(why, SR_USAGE, "the gradient of %s is forgotten and not settled",
                           p->item[i]->name);
        chunks += chunks_of(p->item[i]);
    }
    double *sum = malloc((size_t)(chunks + 1) * sizeof *sum), total = 0;
    if (!sum) return sr_fail(why, SR_MEMORY, "out of memory for the gradient norm");
    sum_chunks(p, threads, sum);
    for (int64_t k = 0; k < chunks; k++) total += sum[k];
    free(sum);
    *norm = sqrt(total);
    return SR_OK;
}
