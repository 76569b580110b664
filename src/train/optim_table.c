/* optim_table.c -- the table of optimizers and what they share: pieces, threads, gradient norm. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "optim_rows.h"
#include "statnet/options.h"

static const optim_row *const rows[] = {
#define OPTIM_ROW(name, word) &optim_##name,
    OPTIMIZERS(OPTIM_ROW)
#undef OPTIM_ROW
};

enum { ROWS = sizeof rows / sizeof rows[0], PIECE = 16384 };

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

/* One parallel region for all parameters: pieces are independent, so no barrier between them. */
void optim_apply(const optim_row *row, const optim_step *s, params *p) {
#pragma omp parallel num_threads(s->threads)
    for (int i = 0; i < p->count; i++) {
        param *x = p->item[i];
        int64_t count = x->t.count;
#pragma omp for schedule(static) nowait
        for (int64_t at = 0; at < count; at += PIECE) {
            int64_t n = count - at < PIECE ? count - at : PIECE;
            row->update(s, n, x->t.value + at, x->t.grad + at, x->slot[0] ? x->slot[0] + at : NULL,
                        x->slot[1] ? x->slot[1] + at : NULL);
        }
    }
}

static double piece_squares(const real *g, int64_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += (double)g[i] * (double)g[i];
    return sum;
}

static int64_t pieces_of(const param *x) {
    return (x->t.count + PIECE - 1) / PIECE;
}

static void sum_pieces(const params *p, int threads, double *sum) {
#pragma omp parallel num_threads(threads)
    for (int64_t i = 0, first = 0; i < p->count; first += pieces_of(p->item[i++])) {
        const tensor *x = &p->item[i]->t;
        int64_t pieces = pieces_of(p->item[i]);
#pragma omp for schedule(static) nowait
        for (int64_t k = 0; k < pieces; k++) {
            int64_t at = k * PIECE, n = x->count - at < PIECE ? x->count - at : PIECE;
            sum[first + k] = piece_squares(x->grad + at, n);
        }
    }
}

sr_status optim_grad_norm(const params *p, int threads, double *norm, sr_failure *why) {
    int64_t pieces = 0;
    for (int i = 0; i < p->count; i++) pieces += pieces_of(p->item[i]);
    double *sum = malloc((size_t)(pieces + 1) * sizeof *sum), total = 0;
    if (!sum) return sr_fail(why, SR_MEMORY, "out of memory for the gradient norm");
    sum_pieces(p, threads, sum);
    for (int64_t k = 0; k < pieces; k++) total += sum[k];
    free(sum);
    *norm = sqrt(total);
    return SR_OK;
}
