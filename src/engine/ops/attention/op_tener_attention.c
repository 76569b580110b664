/* op_tener_attention.c -- direction- and distance-aware attention (Yan, Deng, Li, Qiu, TENER, arXiv
 * 1911.04474, as in its code; docs/models.md 5). Per head, dh features:
 *
 *   S[i,j] = q_i.k_j + u.k_j + q_i.R[j-i] + z.R[j-i] + k_j.R[i-j]      not divided by sqrt(dh)
 *   R[t]   = [sin(t w), cos(t w)],  w_m = exp(-m ln(10000)/(dh/2-1))   neither projected nor
 *   trained
 *   y      = dropout(softmax(S)) v
 *
 * The sine and cosine of a difference are sums of products of the two angles' sines and cosines.
 * For any x
 *
 *   x.R[j-i] = T_i(x).R[j],   T_i([s, c]) = [s cos(i w) + c sin(i w), c cos(i w) - s sin(i w)]
 *
 * and S is one product of rows three times as wide, which op_attention computes:
 *
 *   S[i,j] = [q_i + u, T_i(q_i + z), R[i]] . [k_j, R[j], T_j(k_j)]
 *
 * T_i rotates pairs of numbers by an angle, so it costs no digits; its transpose rotates back.
 *
 * Backward of the wide rows: d(q_i + u) is the first third, d(q_i + z) = T_i^T of the second; R
 * gets none. dk_j = first third + T_j^T of the last one. du and dz are sums over all positions, in
 * double by sentences, in order. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "engine/ops/attention/attention_ops.h"
#include "engine/ops/ops.h"
#include "engine/work_chunks.h"

typedef struct wide_rows {
    int64_t B, T, d, dh;
    int64_t first; /* column of q or k in a row of qkv [3 d] */
    real scale;    /* scale of the wide row */
    const real *R; /* [T, dh] */
} wide_rows;

static real *positions(tape *t, int64_t T, int64_t dh) {
    real *R = tape_alloc(t, (size_t)(T * dh) * sizeof *R);
    const int64_t half = dh / 2;
    for (int64_t m = 0; R && m < half; m++) {
        const double w = half > 1 ? exp(-(double)m * log(10000) / (double)(half - 1)) : 1;
        for (int64_t i = 0; i < T; i++) {
            R[i * dh + m] = (real)sin((double)i * w);
            R[i * dh + half + m] = (real)cos((double)i * w);
        }
    }
    return R;
}

/* One pair of numbers s and c of x, for T_i and T_i^T. */
typedef struct pair {
    real s, c;
} pair;

static inline pair rotated(pair x, real sine, real cosine) {
    return (pair){x.s * cosine + x.c * sine, x.c * cosine - x.s * sine};
}

static wide_rows *wide_rows_create(tape *t, const tensor *qkv, int heads, int which, double scale,
                                   const real *R) {
    wide_rows *w = tape_alloc(t, sizeof *w);
    const int64_t d = qkv->dim[2] / 3;
    if (w)
        *w = (wide_rows){.B = qkv->dim[0],
                         .T = qkv->dim[1],
                         .d = d,
                         .dh = d / heads,
                         .first = which * d,
                         .scale = (real)scale,
                         .R = R};
    return w;
}

/* -- queries: [q + u, T(q + z), R], all scaled */

/* R: the row of this position. */
static void query_row(const wide_rows *w, const real *R, const real *q, const real *u,
                      const real *z, real *y) {
    const int64_t dh = w->dh, half = dh / 2;
    for (int64_t m = 0; m < dh; m++) {
        y[m] = w->scale * (q[m] + u[m]);
        y[2 * dh + m] = w->scale * R[m];
    }
    for (int64_t m = 0; m < half; m++) {
        const pair x = {q[m] + z[m], q[half + m] + z[half + m]};
        const pair to = rotated(x, R[m], R[half + m]);
        y[dh + m] = w->scale * to.s;
        y[dh + half + m] = w->scale * to.c;
    }
}

/* d(q + u) and d(q + z) [dh] from a wide row. */
static void query_row_back(const wide_rows *w, const real *R, const real *dy, real *du, real *dz) {
    const int64_t dh = w->dh, half = dh / 2;
    for (int64_t m = 0; m < dh; m++) du[m] = w->scale * dy[m];
    for (int64_t m = 0; m < half; m++) {
        const pair from = {w->scale * dy[dh + m], w->scale * dy[dh + half + m]};
        const pair to = rotated(from, -R[m], R[half + m]);
        dz[m] = to.s;
        dz[half + m] = to.c;
    }
}

/* Backward of sentence b: adds to dqkv unless it is NULL. sum [2, d] of d(q + u) and d(q + z); row
 * [2, dh] is scratch memory. */
static void queries_back(const wide_rows *w, int64_t b, const real *dy, real *dqkv, double *sum,
                         real *row) {
    memset(sum, 0, (size_t)(2 * w->d) * sizeof *sum);
    for (int64_t i = 0; i < w->T; i++)
        for (int64_t at = 0; at < w->d; at += w->dh) {
            const int64_t r = b * w->T + i;
            query_row_back(w, w->R + i * w->dh, dy + r * 3 * w->d + 3 * at, row, row + w->dh);
            for (int64_t m = 0; m < w->dh; m++) {
                if (dqkv) dqkv[r * 3 * w->d + w->first + at + m] += row[m] + row[w->dh + m];
                sum[at + m] += (double)row[m];
                sum[w->d + at + m] += (double)row[w->dh + m];
            }
        }
}

static void add_sums(tape *t, const wide_rows *w, tensor *x, const double *sum, int64_t first) {
    real *dx = tape_grad_zeroed(t, x);
    for (int64_t i = 0; dx && i < w->d; i++) {
        double all = 0;
        for (int64_t b = 0; b < w->B; b++) all += sum[b * 2 * w->d + first + i];
        dx[i] = (real)((double)dx[i] + all);
    }
}

static void queries_backward(tape *t, const tape_node *node) {
    const wide_rows *w = node->kept;
    real *dqkv = tape_grad_zeroed(t, node->in[0]);
    double *sum = tape_alloc(t, (size_t)(w->B * 2 * w->d) * sizeof *sum);
    real *rows = sum ? tape_alloc(t, (size_t)(t->threads * 2 * w->dh) * sizeof *rows) : NULL;
    if (!rows) return;
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t b = 0; b < w->B; b++)
        queries_back(w, b, node->out->grad, dqkv, sum + b * 2 * w->d,
                     rows + omp_get_thread_num() * 2 * w->dh);
    add_sums(t, w, node->in[1], sum, 0);
    add_sums(t, w, node->in[2], sum, w->d);
}

static tensor *queries(tape *t, const wide_rows *w, tensor *qkv, tensor *u, tensor *z) {
    tensor *y = w ? tape_tensor(t, 3, (int64_t[]){w->B, w->T, 3 * w->d}) : NULL;
    if (!y) return NULL;
#pragma omp parallel for num_threads(t->threads) schedule(static) if (y->count > CHUNK)
    for (int64_t r = 0; r < w->B * w->T; r++)
        for (int64_t at = 0; at < w->d; at += w->dh)
            query_row(w, w->R + r % w->T * w->dh, qkv->value + r * 3 * w->d + w->first + at,
                      u->value + at, z->value + at, y->value + r * 3 * w->d + 3 * at);
    return tape_push(t, "tener_queries", queries_backward, y, (tensor *[]){qkv, u, z, NULL},
                     (void *)w);
}

/* -- keys: [k, R, T(k)] */

static void key_row(const wide_rows *w, const real *R, const real *k, real *y) {
    const int64_t dh = w->dh, half = dh / 2;
    memcpy(y, k, (size_t)dh * sizeof *y);
    memcpy(y + dh, R, (size_t)dh * sizeof *y);
    for (int64_t m = 0; m < half; m++) {
        const pair to = rotated((pair){k[m], k[half + m]}, R[m], R[half + m]);
        y[2 * dh + m] = to.s;
        y[2 * dh + half + m] = to.c;
    }
}

/* Adds to dk. */
static void key_row_back(const wide_rows *w, const real *R, const real *dy, real *dk) {
    const int64_t dh = w->dh, half = dh / 2;
    for (int64_t m = 0; m < half; m++) {
        const pair from = {dy[2 * dh + m], dy[2 * dh + half + m]};
        const pair to = rotated(from, -R[m], R[half + m]);
        dk[m] += dy[m] + to.s;
        dk[half + m] += dy[half + m] + to.c;
    }
}

static void keys_backward(tape *t, const tape_node *node) {
    const wide_rows *w = node->kept;
    const real *dy = node->out->grad;
    real *dqkv = tape_grad_zeroed(t, node->in[0]);
    if (!dqkv) return;
#pragma omp parallel for num_threads(t->threads) schedule(static) if (node->out->count > CHUNK)
    for (int64_t r = 0; r < w->B * w->T; r++)
        for (int64_t at = 0; at < w->d; at += w->dh)
            key_row_back(w, w->R + r % w->T * w->dh, dy + r * 3 * w->d + 3 * at,
                         dqkv + r * 3 * w->d + w->first + at);
}

static tensor *keys(tape *t, const wide_rows *w, tensor *qkv) {
    tensor *y = w ? tape_tensor(t, 3, (int64_t[]){w->B, w->T, 3 * w->d}) : NULL;
    if (!y) return NULL;
#pragma omp parallel for num_threads(t->threads) schedule(static) if (y->count > CHUNK)
    for (int64_t r = 0; r < w->B * w->T; r++)
        for (int64_t at = 0; at < w->d; at += w->dh)
            key_row(w, w->R + r % w->T * w->dh, qkv->value + r * 3 * w->d + w->first + at,
                    y->value + r * 3 * w->d + 3 * at);
    return tape_push(t, "tener_keys", keys_backward, y, (tensor *[]){qkv, NULL}, (void *)w);
}

/* -- the op */

static bool tener_fits(tape *t, const tensor *qkv, const tensor *u, const tensor *z, int heads) {
    if (qkv->rank != 3 || qkv->dim[2] % 3 || u->count != qkv->dim[2] / 3 || z->count != u->count)
        return tape_fail(t, SR_USAGE, "tener_attention: qkv must be [B, T, 3 d], u and z [d]");
    if (heads < 1 || u->count % (2 * heads))
        return tape_fail(t, SR_USAGE, "tener_attention: %d heads of an even width in %lld features",
                         heads, (long long)u->count);
    return true;
}

tensor *op_tener_attention(tape *t, tensor *qkv, tensor *u, tensor *z, int heads,
                           const uint8_t *key_valid, bool scaled, double p,
                           attention_report *report) {
    if (!qkv || !u || !z || !tener_fits(t, qkv, u, z, heads)) return NULL;
    const int64_t d = u->count, dh = d / heads;
    const real *R = positions(t, qkv->dim[1], dh);
    const wide_rows *of_queries =
        R ? wide_rows_create(t, qkv, heads, 0, scaled ? 1 / sqrt((double)dh) : 1, R) : NULL;
    tensor *query = queries(t, of_queries, qkv, u, z);
    tensor *key = query ? keys(t, wide_rows_create(t, qkv, heads, 1, 1, R), qkv) : NULL;
    return op_attention(t, query, key, op_slice(t, qkv, 2, 2 * d, d), heads, 1, key_valid, false, p,
                        report);
}
