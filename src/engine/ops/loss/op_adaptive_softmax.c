/* op_adaptive_softmax.c -- negative log-likelihood by a softmax in clusters: Grave et al., ICML
 * 2017, in Transformer-XL's form with div 1 (docs/models.md 3.2).
 *
 * Words are numbered by frequency; cut-offs c_1 < ... < c_n divide them into the head 0 .. c_1 - 1
 * and the clusters m = 1 .. n of the words c_m .. c_(m+1) - 1, c_(n+1) = V. With the logits
 *   head    x = [h W_head^T + b_head, h Wc^T + bc]     [rows, c_1 + n]
 *   tail m  x = h W_m^T + b_m                          [rows with a target there, words of m]
 * and p the softmax of each:
 *   nll = -log p_head(t)                               t a word of the head
 *       = -log p_head(column of m) - log p_m(t)        else
 * Cluster m has the head's column -m: the last column is cluster 1. n = 0: the plain softmax.
 *
 * Backward, with g = dnll of a row: dx = g (p - [the target's column]) in the head and, for its
 * rows, in the tail. dW, db, dWc, dbc, dh as for a linear map. Kept: the logits, which backward
 * overwrites by their gradients; the maximum and 1/sum of each row; the tails' rows of h. */
#include <math.h>
#include <string.h>

#include "engine/gemm/gemm.h"
#include "engine/ops/loss/loss_ops.h"
#include "engine/row_math.h"

enum { COLUMN_CHUNK = 256, PARALLEL_ROWS = 16 };

/* The head, or one tail. */
typedef struct softmax_cluster {
    int64_t first, words; /* range of the vocabulary */
    int64_t width;        /* words, and in the head one column per cluster */
    int64_t count;        /* rows */
    const real *h;        /* [count, d]; the input itself in the head */
    int32_t *row;         /* [count]: row of the input */
    int32_t *column;      /* [count]: column of the target */
    real *logit;          /* [count, width] */
    real *max, *inverse;  /* [count] */
} softmax_cluster;

typedef struct adaptive {
    adaptive_inputs in;
    int64_t rows, d, V;
    softmax_cluster *part; /* [cutoffs + 1], the head first */
} adaptive;

/* -- rows of each part */

/* Part of a word. 0: the head, m: cluster m. */
static int part_of(const adaptive *a, int32_t word) {
    int m = 0;
    while (m < a->in.cutoffs && word >= a->in.cutoff[m]) m++;
    return m;
}

static bool part_alloc(tape *t, const adaptive *a, softmax_cluster *p) {
    const size_t count = (size_t)(p->count ? p->count : 1);
    const bool head = p->first == 0;
    real *h = head ? a->in.h->value : tape_alloc(t, count * (size_t)a->d * sizeof *h);
    p->row = h ? tape_alloc(t, count * sizeof *p->row) : NULL;
    p->column = p->row ? tape_alloc(t, count * sizeof *p->column) : NULL;
    p->logit = p->column ? tape_alloc(t, count * (size_t)p->width * sizeof *p->logit) : NULL;
    p->max = p->logit ? tape_alloc(t, count * sizeof *p->max) : NULL;
    p->inverse = p->max ? tape_alloc(t, count * sizeof *p->inverse) : NULL;
    p->h = h;
    return p->inverse != NULL;
}

static void fill_part(const adaptive *a, int m, const int32_t *target) {
    softmax_cluster *p = &a->part[m];
    real *h = (real *)p->h;
    int64_t k = 0;
    for (int64_t r = 0; r < a->rows; r++) {
        if (m && part_of(a, target[r]) != m) continue;
        p->row[k] = (int32_t)r;
        /* in the head the column of the word or of its cluster */
        const int of = part_of(a, target[r]);
        p->column[k] = m    ? target[r] - (int32_t)p->first
                       : of ? (int32_t)(a->part[0].width - of)
                            : target[r];
        if (m) memcpy(h + k * a->d, a->in.h->value + r * a->d, (size_t)a->d * sizeof *h);
        k++;
    }
}

/* -- forward */

static void part_logits(tape *t, const adaptive *a, const softmax_cluster *p) {
    const adaptive_inputs *in = &a->in;
    const int64_t clusters = p->width - p->words;
    for (int64_t r = 0; r < p->count; r++) {
        real *x = p->logit + r * p->width;
        memcpy(x, in->b->value + p->first, (size_t)p->words * sizeof *x);
        if (clusters) memcpy(x + p->words, in->bc->value, (size_t)clusters * sizeof *x);
    }
    gemm(&t->operands, t->threads, false, true, p->count, p->words, a->d, p->h, a->d,
         in->w->value + p->first * a->d, a->d, 1, p->logit, p->width);
    if (clusters)
        gemm(&t->operands, t->threads, false, true, p->count, clusters, a->d, p->h, a->d,
             in->wc->value, a->d, 1, p->logit + p->words, p->width);
}

/* Adds -log p of the targets' columns to the rows of nll. */
static void part_forward(tape *t, const adaptive *a, const softmax_cluster *p, real *nll) {
    if (p->count == 0) return;
    part_logits(t, a, p);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (p->count > PARALLEL_ROWS)
    for (int64_t r = 0; r < p->count; r++) {
        const real *x = p->logit + r * p->width;
        const real m = row_max(p->width, x);
        const double s = row_exp_sum(p->width, x, m);
        const double one = (double)m - (double)x[p->column[r]] + log1p(s - 1);
        real *sum = nll + p->row[r];
        p->max[r] = m;
        p->inverse[r] = (real)(1 / s);
        *sum = (real)((double)*sum + one);
    }
}

/* -- backward */

static void logit_gradients(const tape *t, const softmax_cluster *p, const real *dy) {
#pragma omp parallel for num_threads(t->threads) schedule(static) if (p->count > PARALLEL_ROWS)
    for (int64_t r = 0; r < p->count; r++) {
        real *x = p->logit + r * p->width;
        const real g = dy[p->row[r]], m = p->max[r], scale = g * p->inverse[r];
        for (int64_t v = 0; v < p->width; v++) x[v] = exp_fast(x[v] - m) * scale;
        x[p->column[r]] -= g;
    }
}

/* db[v] += sum over rows of column `from + v`, in double and in the order of the rows. */
static void add_columns(const tape *t, const softmax_cluster *p, int64_t from, int64_t columns,
                        real *db) {
    const int64_t chunks = (columns + COLUMN_CHUNK - 1) / COLUMN_CHUNK;
#pragma omp parallel for num_threads(t->threads) schedule(static) if (chunks > 1)
    for (int64_t k = 0; k < chunks; k++) {
        const int64_t first = k * COLUMN_CHUNK;
        const int64_t n = columns - first < COLUMN_CHUNK ? columns - first : COLUMN_CHUNK;
        double sum[COLUMN_CHUNK];
        for (int64_t v = 0; v < n; v++) sum[v] = (double)db[first + v];
        for (int64_t r = 0; r < p->count; r++) {
            const real *x = p->logit + r * p->width + from + first;
            for (int64_t v = 0; v < n; v++) sum[v] += (double)x[v];
        }
        for (int64_t v = 0; v < n; v++) db[first + v] = (real)sum[v];
    }
}

/* Gradients of the weight whose outputs are `columns` columns of the part, and of its bias. */
static void add_weights(tape *t, const adaptive *a, const softmax_cluster *p, int64_t from,
                        int64_t columns, real *dw, real *db) {
    if (dw)
        gemm(&t->operands, t->threads, true, false, columns, a->d, p->count, p->logit + from,
             p->width, p->h, a->d, 1, dw, a->d);
    if (db) add_columns(t, p, from, columns, db);
}

/* Adds dh: directly in the head; in a tail by a buffer that is scattered to the rows. */
static void add_hidden(tape *t, const adaptive *a, const softmax_cluster *p, real *dh) {
    const int64_t d = a->d, clusters = p->width - p->words;
    const real *w = a->in.w->value + p->first * d;
    const bool head = p->first == 0;
    real *to = head ? dh : tape_alloc(t, (size_t)(p->count * d) * sizeof *to);
    if (!to) return;
    gemm(&t->operands, t->threads, false, false, p->count, d, p->words, p->logit, p->width, w, d,
         head, to, d);
    if (clusters)
        gemm(&t->operands, t->threads, false, false, p->count, d, clusters, p->logit + p->words,
             p->width, a->in.wc->value, d, 1, to, d);
    for (int64_t r = 0; !head && r < p->count; r++)
        for (int64_t j = 0; j < d; j++) dh[p->row[r] * d + j] += to[r * d + j];
}

static void adaptive_backward(tape *t, const tape_node *node) {
    const adaptive *a = node->kept;
    const adaptive_inputs *in = &a->in;
    real *dh = tape_grad_zeroed(t, in->h);
    real *dw = tape_grad_zeroed(t, in->w), *db = tape_grad_zeroed(t, in->b);
    real *dwc = in->wc ? tape_grad_zeroed(t, in->wc) : NULL;
    real *dbc = in->bc ? tape_grad_zeroed(t, in->bc) : NULL;
    if (tape_failure(t)) return;
    a->part[0].h = in->h->value; /* a recomputed value may be at another address */
    for (int m = 0; m <= in->cutoffs; m++) {
        const softmax_cluster *p = &a->part[m];
        if (p->count == 0) continue;
        logit_gradients(t, p, node->out->grad);
        add_weights(t, a, p, 0, p->words, dw ? dw + p->first * a->d : NULL,
                    db ? db + p->first : NULL);
        if (p->width > p->words) add_weights(t, a, p, p->words, p->width - p->words, dwc, dbc);
        if (dh) add_hidden(t, a, p, dh);
    }
}

/* -- the op */

static bool adaptive_fits(tape *t, const adaptive *a, const int32_t *target) {
    const adaptive_inputs *in = &a->in;
    const int n = in->cutoffs;
    if (in->w->rank != 2 || in->w->dim[1] != a->d || in->b->count != a->V || n < 0 ||
        (n && (in->wc->count != n * a->d || in->bc->count != n)))
        return tape_fail(t, SR_USAGE,
                         "adaptive_softmax: h [rows, d], w [V, d], b [V], wc [n, d], bc [n]");
    for (int i = 0; i < n; i++)
        if (in->cutoff[i] <= (i ? in->cutoff[i - 1] : 0) || in->cutoff[i] >= a->V)
            return tape_fail(t, SR_USAGE, "adaptive_softmax: cut-off %lld of %lld words",
                             (long long)in->cutoff[i], (long long)a->V);
    for (int64_t r = 0; r < a->rows; r++)
        if (target[r] < 0 || target[r] >= a->V)
            return tape_fail(t, SR_USAGE, "adaptive_softmax: target %d of row %lld, %lld words",
                             target[r], (long long)r, (long long)a->V);
    return true;
}

static adaptive *adaptive_create(tape *t, const adaptive_inputs *in, const int32_t *target) {
    adaptive *a = tape_alloc(t, sizeof *a);
    if (!a) return NULL;
    *a = (adaptive){
        .in = *in, .rows = tensor_rows(in->h), .d = tensor_features(in->h), .V = in->w->dim[0]};
    if (!adaptive_fits(t, a, target)) return NULL;
    const size_t parts = (size_t)in->cutoffs + 1;
    int64_t *cutoff = tape_alloc(t, parts * sizeof *cutoff);
    a->part = cutoff ? tape_alloc(t, parts * sizeof *a->part) : NULL;
    if (!a->part) return NULL;
    for (int i = 0; i < in->cutoffs; i++) cutoff[i] = in->cutoff[i];
    a->in.cutoff = cutoff;
    memset(a->part, 0, parts * sizeof *a->part);
    for (int m = 0; m < (int)parts; m++) {
        softmax_cluster *p = &a->part[m];
        const int n = a->in.cutoffs;
        p->first = m ? a->in.cutoff[m - 1] : 0;
        p->words = (m < n ? a->in.cutoff[m] : a->V) - p->first;
        p->width = p->words + (m ? 0 : n);
        for (int64_t r = 0; r < a->rows; r++) p->count += m == 0 || part_of(a, target[r]) == m;
        if (!part_alloc(t, a, &a->part[m])) return NULL;
        fill_part(a, m, target);
    }
    return a;
}

tensor *op_adaptive_softmax(tape *t, const adaptive_inputs *in, const int32_t *target) {
    if (!in->h || !in->w || !in->b || (in->cutoffs && (!in->wc || !in->bc))) return NULL;
    const adaptive *a = adaptive_create(t, in, target);
    tensor *nll = a ? tape_tensor(t, 1, &a->rows) : NULL;
    if (!nll) return NULL;
    memset(nll->value, 0, (size_t)nll->count * sizeof *nll->value);
    for (int m = 0; m <= in->cutoffs; m++) part_forward(t, a, &a->part[m], nll->value);
    return tape_push(t, "adaptive_softmax", adaptive_backward, nll,
                     (tensor *[]){in->h, in->w, in->b, in->wc, in->bc, NULL}, (void *)a);
}
