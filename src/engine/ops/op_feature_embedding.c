/* op_feature_embedding.c -- looks up rows of several tables and concatenates them: words, POS tags
 * and labels around a parser state (docs/models.md 8).
 *
 *   y[i,:] = (T_1[f(i,1),:], .., T_1[f(i,n_1),:], T_2[f(i,n_1+1),:], ...)
 *
 * T_k [V_k, d_k] with n_k columns of indices, f [count, sum n_k], y [count, sum n_k d_k]. Backward:
 * dT_k[f(i,j),:] += its part of dy[i,:], (i, j) in rising order. Chunks: rows forward, COLUMNS of
 * one table backward (each adds all rows in order). Kept: the caller's indices (not copied), the
 * number of columns of each table. */
#include <string.h>

#include "engine/ops/ops.h"

enum { COLUMNS = 16 };

typedef struct features {
    const int32_t *number; /* [count, columns] */
    int64_t count, columns;
    int tables;
    struct {
        int64_t columns, first; /* its first column of indices */
        int64_t at, d;          /* offset of its parts in a row of y; width of a part */
    } table[FEATURE_TABLES];
    int64_t width;
} features;

static void row_chunk(const features *f, const feature_table *table, int64_t i, real *restrict y) {
    const int32_t *number = f->number + i * f->columns;
    for (int k = 0; k < f->tables; k++) {
        const int64_t d = f->table[k].d;
        const real *value = table[k].rows->value;
        for (int64_t j = 0; j < f->table[k].columns; j++)
            memcpy(y + f->table[k].at + j * d, value + number[f->table[k].first + j] * d,
                   (size_t)d * sizeof *y);
    }
}

static void column_chunk(const features *f, int k, int64_t from, const real *restrict dy,
                         real *restrict dtable) {
    const int64_t d = f->table[k].d, to = from + COLUMNS < d ? from + COLUMNS : d;
    for (int64_t i = 0; i < f->count; i++) {
        const int32_t *number = f->number + i * f->columns + f->table[k].first;
        const real *part = dy + i * f->width + f->table[k].at;
        for (int64_t j = 0; j < f->table[k].columns; j++, part += d) {
            real *row = dtable + number[j] * d;
            for (int64_t c = from; c < to; c++) row[c] += part[c];
        }
    }
}

static void features_backward(tape *t, const tape_node *node) {
    const features *f = node->kept;
    for (int k = 0; k < f->tables; k++) {
        real *dtable = tape_grad_zeroed(t, node->in[k]);
        const int64_t chunks = (f->table[k].d + COLUMNS - 1) / COLUMNS;
        if (!dtable) continue;
#pragma omp parallel for num_threads(t->threads) schedule(static) if (chunks > 1)
        for (int64_t p = 0; p < chunks; p++)
            column_chunk(f, k, p * COLUMNS, node->out->grad, dtable);
    }
}

static bool lay_out(tape *t, features *f, const feature_table *table) {
    for (int k = 0; k < f->tables; k++) {
        if (table[k].rows->rank != 2 || table[k].columns < 1)
            return tape_fail(t, SR_USAGE,
                             "features: table %d must be [V, d], of one column or more", k);
        f->table[k].columns = table[k].columns;
        f->table[k].first = f->columns;
        f->table[k].at = f->width;
        f->table[k].d = table[k].rows->dim[1];
        f->columns += table[k].columns;
        f->width += table[k].columns * f->table[k].d;
    }
    return true;
}

/* Whether every index has a row. */
static bool features_fit(tape *t, const features *f, const feature_table *table) {
    for (int64_t i = 0; i < f->count; i++)
        for (int k = 0; k < f->tables; k++)
            for (int64_t j = 0; j < table[k].columns; j++) {
                const int32_t number = f->number[i * f->columns + f->table[k].first + j];
                if (number < 0 || number >= table[k].rows->dim[0])
                    return tape_fail(t, SR_USAGE,
                                     "features: number %d at row %lld, column %lld; table %d has "
                                     "%lld rows",
                                     number, (long long)i, (long long)(f->table[k].first + j), k,
                                     (long long)table[k].rows->dim[0]);
            }
    return true;
}

tensor *op_feature_embedding(tape *t, const feature_table *table, int tables, const int32_t *number,
                             int64_t count) {
    tensor *in[FEATURE_TABLES + 1] = {NULL};
    for (int k = 0; k < tables && k < FEATURE_TABLES; k++) {
        if (!table[k].rows) return NULL;
        in[k] = table[k].rows;
    }
    if (tables < 1 || tables > FEATURE_TABLES)
        return tape_fail(t, SR_USAGE, "features: %d tables; 1 to %d", tables, FEATURE_TABLES);
    features *f = tape_alloc(t, sizeof *f);
    if (!f) return NULL;
    *f = (features){.number = number, .count = count, .tables = tables};
    if (!lay_out(t, f, table) || !features_fit(t, f, table)) return NULL;
    tensor *y = tape_tensor(t, 2, (int64_t[]){count, f->width});
    if (!y) return NULL;
#pragma omp parallel for num_threads(t->threads) schedule(static) if (count > 1)
    for (int64_t i = 0; i < count; i++) row_chunk(f, table, i, y->value + i * f->width);
    return tape_push(t, "features", features_backward, y, in, f);
}
