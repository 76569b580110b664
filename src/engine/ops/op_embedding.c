/* op_embedding.c -- looks up rows of a table, with sinusoidal positions (docs/models.md 2.2).
 *
 *   y[b,i,:] = scale table[token[b,i],:] + position_table[pos(b,i),:]
 *   pos(b,i) = pad                                           for pad tokens
 *            = pad + 1 + (non-pad tokens of b before i)       else
 *
 * table [V, d], token [B, T], position_table [P, d] or NULL, y [B, T, d]. Backward:
 * dtable[token[b,i],:] += scale dy[b,i,:], (b,i) in rising order, pad tokens left out. pad -1: no
 * token is padding, positions count from 0. Chunks: sentences forward, columns backward (each adds
 * all tokens in order). Kept: the caller's token array (not copied), scale, pad. */
#include <math.h>
#include <string.h>

#include "engine/ops/ops.h"

enum { COLUMNS = 64 }; /* columns of a backward chunk: whole cache lines */

typedef struct embedding {
    const int32_t *token; /* [B, T] */
    int64_t count;        /* B T */
    real scale;
    int32_t pad;
} embedding;

static void sentence_rows(const embedding *e, int64_t first, int64_t T, const tensor *table,
                          const tensor *positions, real *y) {
    int64_t d = table->dim[1], words = 0;
    for (int64_t i = first; i < first + T; i++) {
        int64_t position = e->token[i] == e->pad ? e->pad : e->pad + 1 + words++;
        const real *restrict row = table->value + e->token[i] * d;
        const real *restrict add = positions ? positions->value + position * d : NULL;
        real *restrict to = y + i * d;
        for (int64_t j = 0; !add && j < d; j++) to[j] = e->scale * row[j];
        for (int64_t j = 0; add && j < d; j++) to[j] = e->scale * row[j] + add[j];
    }
}

static void column_chunk(const embedding *e, int64_t d, int64_t from, int64_t to,
                         const real *restrict dy, real *restrict dtable) {
    for (int64_t i = 0; i < e->count; i++) {
        if (e->token[i] == e->pad) continue;
        real *row = dtable + e->token[i] * d;
        for (int64_t j = from; j < to; j++) row[j] += e->scale * dy[i * d + j];
    }
}

static void embedding_backward(tape *t, const tape_node *node) {
    real *dtable = tape_grad_zeroed(t, node->in[0]);
    if (!dtable) return;
    int64_t d = node->in[0]->dim[1], chunks = (d + COLUMNS - 1) / COLUMNS;
#pragma omp parallel for num_threads(t->threads) schedule(static) if (chunks > 1)
    for (int64_t p = 0; p < chunks; p++) {
        int64_t to = (p + 1) * COLUMNS;
        column_chunk(node->kept, d, p * COLUMNS, to < d ? to : d, node->out->grad, dtable);
    }
}

/* Whether every token has a row and every position exists. */
static bool embedding_fits(tape *t, const embedding *e, int64_t T, const tensor *table,
                           const tensor *positions) {
    int64_t words = 0;
    for (int64_t i = 0; i < e->count; i++) {
        if (e->token[i] < 0 || e->token[i] >= table->dim[0])
            return tape_fail(t, SR_USAGE, "embedding: token %d at %lld, table has %lld rows",
                             e->token[i], (long long)i, (long long)table->dim[0]);
        if (i % T == 0) words = 0;
        words += e->token[i] != e->pad;
        if (positions && e->pad + words >= positions->dim[0])
            return tape_fail(t, SR_USAGE, "embedding: sentence of %lld words, %lld positions",
                             (long long)words, (long long)positions->dim[0]);
    }
    return true;
}

tensor *op_embedding(tape *t, tensor *table, const int32_t *token, int64_t B, int64_t T,
                     double scale, const tensor *positions, int32_t pad) {
    if (!table) return NULL;
    if (table->rank != 2 ||
        (positions && (positions->rank != 2 || pad < -1 || positions->dim[1] != table->dim[1])))
        return tape_fail(t, SR_USAGE, "embedding: tables must be [V, d] and [P, d], pad >= -1");
    tensor *y = tape_tensor(t, 3, (int64_t[]){B, T, table->dim[1]});
    embedding *kept = y ? tape_alloc(t, sizeof *kept) : NULL;
    if (!kept) return NULL;
    *kept = (embedding){token, B * T, (real)scale, pad};
    if (!embedding_fits(t, kept, T, table, positions)) return NULL;
#pragma omp parallel for num_threads(t->threads) schedule(static) if (B > 1)
    for (int64_t b = 0; b < B; b++) sentence_rows(kept, b * T, T, table, positions, y->value);
    return tape_push_reading(t, "embedding", embedding_backward, y, (tensor *[]){table, NULL}, kept,
                             READS_NOTHING);
}

void op_embedding_positions(real *value, int64_t count, int64_t d, int32_t pad) {
    int64_t half = d / 2;
    double decay = half > 1 ? log(10000.0) / (double)(half - 1) : 0;
    for (int64_t p = 0; p < count; p++) {
        real *row = value + p * d;
        memset(row, 0, (size_t)d * sizeof *row);
        for (int64_t i = 0; i < half && p != pad; i++) {
            double angle = (double)p * exp(-(double)i * decay);
            row[i] = (real)sin(angle);
            row[half + i] = (real)cos(angle);
        }
    }
}
