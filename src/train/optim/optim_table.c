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

static int64_t clamp(int64_t k, int64_t most) {
    return k < 0 ? 0 : k < most ? k : most;
}

/* The thread's chunks of a parameter whose numbers start at `first`. */
static share own_chunks(const share *own, int64_t first, const param *x) {
    const int64_t chunks = chunks_of(x);
    return (share){clamp((own->from - first + CHUNK - 1) / CHUNK, chunks),
                   clamp((own->end - first + CHUNK - 1) / CHUNK, chunks)};
}

/* Numbers at .. at+n-1 of a parameter. index: among all parameters' chunks, in their order. */
typedef struct chunk {
    const param *of;
    int64_t at, n, index;
} chunk;

/* Calls work for each chunk, in several threads. */
static void for_chunks(const params *p, int threads, void (*work)(const chunk *, void *),
                       void *context) {
#pragma omp parallel num_threads(threads)
    {
        const share own = own_share(p);
        int64_t first = 0, before = 0;
        for (int64_t i = 0; i < p->count; i++) {
            const param *x = p->item[i];
            const share chunks = own_chunks(&own, first, x);
            for (int64_t k = chunks.from; k < chunks.end; k++) {
                const int64_t at = k * CHUNK, left = x->t.count - at;
                work(&(chunk){x, at, left < CHUNK ? left : CHUNK, before + k}, context);
            }
            first += x->t.count, before += chunks_of(x);
        }
    }
}

typedef struct applied {
    const optim_row *row;
    const optim_step *step;
} applied;

static void update_chunk(const chunk *c, void *context) {
    const applied *a = context;
    const param *x = c->of;
    a->row->update(a->step, c->n, x->t.value + c->at, x->t.grad + c->at,
                   x->slot[0] ? x->slot[0] + c->at : NULL, x->slot[1] ? x->slot[1] + c->at : NULL);
}

void optim_apply(const optim_row *row, const optim_step *s, params *p) {
    for_chunks(p, s->threads, update_chunk, &(applied){row, s});
}

/* sums: of every chunk of every parameter, in their order. */
static void sum_chunk(const chunk *c, void *sums) {
    const real *g = c->of->t.grad + c->at;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < c->n; i++) sum += (double)g[i] * (double)g[i];
    ((double *)sums)[c->index] = sum;
}

sr_status optim_grad_norm(const params *p, int threads, double *norm, sr_failure *why) {
    int64_t chunks = 0;
    for (int i = 0; i < p->count; i++) {
        if (!p->item[i]->t.has_grad) /* its memory has an older gradient */
            return sr_fail(why, SR_USAGE, "%s has the gradient of an earlier step",
                           p->item[i]->name);
        chunks += chunks_of(p->item[i]);
    }
    double *sum = malloc((size_t)(chunks + 1) * sizeof *sum), total = 0;
    if (!sum) return sr_fail(why, SR_MEMORY, "out of memory for the gradient norm");
    for_chunks(p, threads, sum_chunk, sum);
    for (int64_t k = 0; k < chunks; k++) total += sum[k];
    free(sum);
    *norm = sqrt(total);
    return SR_OK;
}
