/* optim_table.c -- the table of optimizers and what they share: pieces, threads, gradient norm. */
#include <math.h>
#include <string.h>

#include "optim_rows.h"

static const optim_row *const rows[] = {&optim_sgd, &optim_adam, &optim_adamw, &optim_adam_fairseq};

enum { ROWS = sizeof rows / sizeof rows[0], PIECE = 16384 };

const optim_row *optim_at(int i) {
    return i >= 0 && i < ROWS ? rows[i] : NULL;
}

const optim_row *optim_find(const char *name) {
    for (int i = 0; i < ROWS; i++)
        if (!strcmp(rows[i]->name, name)) return rows[i];
    return NULL;
}

static void update_param(const optim_row *row, const optim_step *s, param *x) {
    int64_t count = x->t.count;
#pragma omp parallel for num_threads(s->threads) schedule(static)
    for (int64_t at = 0; at < count; at += PIECE) {
        int64_t n = count - at < PIECE ? count - at : PIECE;
        row->update(s, n, x->t.value + at, x->t.grad + at, x->slot[0] ? x->slot[0] + at : NULL,
                    x->slot[1] ? x->slot[1] + at : NULL);
    }
}

void optim_apply(const optim_row *row, const optim_step *s, params *p) {
    for (int i = 0; i < p->count; i++) update_param(row, s, p->item[i]);
}

static double piece_squares(const real *g, int64_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += (double)g[i] * (double)g[i];
    return sum;
}

double optim_grad_norm(const params *p, int threads) {
    double total = 0;
    for (int i = 0; i < p->count; i++) {
        const tensor *x = &p->item[i]->t;
        enum { GROUP = 256 };
        for (int64_t first = 0; first < x->count; first += (int64_t)GROUP * PIECE) {
            double sum[GROUP] = {0};
#pragma omp parallel for num_threads(threads) schedule(static)
            for (int k = 0; k < GROUP; k++) {
                int64_t at = first + (int64_t)k * PIECE;
                int64_t n = x->count - at < PIECE ? x->count - at : PIECE;
                if (n > 0) sum[k] = piece_squares(x->grad + at, n);
            }
            for (int k = 0; k < GROUP; k++) total += sum[k];
        }
    }
    return sqrt(total);
}
