/* op_xl_attention.c -- attention with relative positions and memory before the keys (Dai et al.,
 * Transformer-XL, ACL 2019, section 3.3; docs/models.md 4). The caller applies the projections.
 *
 * Per sequence b and head h (columns h dh .. of q, k, v and r; dh = width/heads), query i of T, key
 * j of K, M = K - T rows of memory:
 *   D       = M + i - j                             distance, 0: the query's own position
 *   S_ij    = ((q_i + u).k_j + (q_i + z).r_D) / sqrt(dh)
 *   P       = softmax(S) by rows                    0 where hidden: D < 0 or D >= reach
 *   R       = P m / (1 - p)                         m the dropout mask
 *   y       = R v
 * r [n, width]: row n-1-D is distance D; distances above n-1 use row 0 (clamp_len). Query i and key
 * j thus use row j + (n-1-M-i), not below 0. W = (q + z) r^T [T, n] is one product for all
 * distances. Query i reads a range of its row, one column left of the range of query i-1.
 *
 * Backward, from dy:
 *   dR = dy v^T,  dv = R^T dy,  dS = (R * dR - (sum_j R_ij dR_ij) P) / sqrt(dh)
 *   dW_ic = sum of dS_ij over the keys of row c
 *   dk = dS^T (q + u),  dr = dW^T (q + z),  a = dS k,  e = dW r
 *   dq = a + e,  du = sum_i a_i,  dz = sum_i e_i
 * Kept: P [B, heads, T, row], row = K rounded up to whole vectors (zeros after K), and the key of
 * the mask. The element number is the index in P. A chunk is one sequence and head. Shared inputs
 * (r, u, z) get the sum over sequences in double, in order. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "engine/gemm/gemm.h"
#include "engine/gemm/small_gemm.h"
#include "engine/ops/attention/attention_ops.h"
#include "engine/ops/attention/attention_stats.h"
#include "engine/ops/dropout_mask.h"
#include "engine/row_math.h"

typedef struct xl_attention {
    xl_inputs in;
    xl_options o;
    int64_t B, T, K, n, width, dh, row;
    real scale;
    bool drop;
    dropout_mask mask;
    real *P;                 /* [B, heads, T, row] */
    attention_chunk *report; /* [B, heads]; NULL: no report */
} xl_attention;

/* Scratch memory of one thread. */
typedef struct xl_scratch {
    real *qu, *qz; /* [T, dh]: q + u, q + z; backward: then a and e */
    real *W;       /* [T, n] */
    real *R;       /* [T, row]: with dropout only */
    real *dS, *dW; /* [T, row], [T, n]: backward only */
} xl_scratch;

/* Arrays of one sequence and head: pointers to the first element, row stride `width`. */
typedef struct xl_chunk {
    int64_t number;
    const real *q, *k, *v, *r, *u, *z;
    real *dq, *dk, *dv; /* NULL: not wanted */
    bool add_q, add_k, add_v;
    real *partial; /* [n + 2, dh]: dr, then du, dz */
} xl_chunk;

/* -- one chunk */

/* Keys [*first, *last) are those that query i sees. */
static void seen(const xl_attention *a, int64_t i, int64_t *first, int64_t *last) {
    const int64_t own = a->K - a->T + i;
    *last = own + 1;
    *first = a->o.reach > 0 && own >= a->o.reach ? own - a->o.reach + 1 : 0;
}

/* Row of r for query i and key 0. Key j uses row + j, or row 0. */
static int64_t row_of_first(const xl_attention *a, int64_t i) {
    return a->n - 1 - (a->K - a->T) - i;
}

static void add_bias(const xl_attention *a, const xl_chunk *p, xl_scratch s) {
    for (int64_t i = 0; i < a->T; i++)
        for (int64_t h = 0; h < a->dh; h++) {
            const real q = p->q[i * a->width + h];
            s.qu[i * a->dh + h] = q + p->u[h];
            s.qz[i * a->dh + h] = q + p->z[h];
        }
}

/* S contains the product with the keys. Adds the position term and takes the softmax. Returns the
 * largest logit. */
static real softmax_row(const xl_attention *a, int64_t i, const real *restrict W,
                        real *restrict S) {
    const int64_t shift = row_of_first(a, i);
    int64_t first, last;
    seen(a, i, &first, &last);
    const int64_t own = -shift > first ? -shift < last ? -shift : last : first;
    for (int64_t j = first; j < own; j++) S[j] += W[0];
    for (int64_t j = own; j < last; j++) S[j] += W[shift + j];
    const real m = row_max(last - first, S + first);
    const double sum = row_exp(last - first, S + first, m, S + first);
    row_scale(last - first, (real)(1 / sum), S + first);
    memset(S, 0, (size_t)first * sizeof *S);
    memset(S + last, 0, (size_t)(a->row - last) * sizeof *S);
    return m;
}

static const real *dropped(const xl_attention *a, int64_t chunk, real *R) {
    return dropout_mask_chunk(a->drop ? &a->mask : NULL, chunk, a->T * a->row, a->P, R);
}

static void forward_chunk(const xl_attention *a, const xl_chunk *p, real *y, xl_scratch s) {
    const int64_t T = a->T, K = a->K, dh = a->dh, n = a->n, width = a->width, row = a->row;
    real *P = a->P + p->number * T * row;
    add_bias(a, p, s);
    gemm_chunk(false, true, T, K, dh, a->scale, s.qu, dh, p->k, width, 0, P, row);
    gemm_chunk(false, true, T, n, dh, a->scale, s.qz, dh, p->r, width, 0, s.W, n);
    for (int64_t i = 0; i < T; i++) {
        const real largest = softmax_row(a, i, s.W + i * n, P + i * row);
        const uint8_t *valid = a->report ? a->o.report->query_valid : NULL;
        if (a->report && (!valid || valid[p->number / a->o.heads * T + i]))
            attention_chunk_add(&a->report[p->number], row, largest, P + i * row);
    }
    const real *R = dropped(a, p->number, s.R);
    gemm_chunk(false, false, T, dh, K, 1, R, row, p->v, width, 0, y, width);
}

/* Computes dS of one query in x, which contains dR before, and its dW. */
static void softmax_gradient(const xl_attention *a, int64_t i, const real *R, const real *P,
                             real *restrict x, real *restrict dW) {
    const int64_t shift = row_of_first(a, i);
    int64_t first, last;
    seen(a, i, &first, &last);
    const real D = (real)row_dot(last - first, R + first, x + first);
    memset(x, 0, (size_t)first * sizeof *x);
    memset(x + last, 0, (size_t)(a->row - last) * sizeof *x);
    memset(dW, 0, (size_t)a->n * sizeof *dW);
    double clamped = 0;
    for (int64_t j = first; j < last; j++) {
        x[j] = a->scale * (R[j] * x[j] - D * P[j]);
        if (shift + j > 0)
            dW[shift + j] = x[j];
        else
            clamped += (double)x[j];
    }
    dW[0] = (real)clamped;
}

/* Writes dq, and this chunk's terms of du and dz; a is in qu, e in qz. */
static void write_queries(const xl_attention *a, const xl_chunk *p, xl_scratch s) {
    for (int64_t h = 0; h < a->dh; h++) {
        double du = 0, dz = 0;
        for (int64_t i = 0; i < a->T; i++) {
            du += (double)s.qu[i * a->dh + h];
            dz += (double)s.qz[i * a->dh + h];
        }
        p->partial[a->n * a->dh + h] = (real)du;
        p->partial[(a->n + 1) * a->dh + h] = (real)dz;
    }
    for (int64_t i = 0; p->dq && i < a->T; i++)
        for (int64_t h = 0; h < a->dh; h++) {
            real *to = p->dq + i * a->width + h;
            const real dq = s.qu[i * a->dh + h] + s.qz[i * a->dh + h];
            *to = p->add_q ? *to + dq : dq;
        }
}

static void backward_chunk(const xl_attention *a, const xl_chunk *p, const real *dy, xl_scratch s) {
    const int64_t T = a->T, K = a->K, dh = a->dh, n = a->n, width = a->width, row = a->row;
    const real *P = a->P + p->number * T * row, *R = dropped(a, p->number, s.R);
    add_bias(a, p, s);
    gemm_chunk(false, true, T, K, dh, 1, dy, width, p->v, width, 0, s.dS, row);
    for (int64_t i = 0; i < T; i++)
        softmax_gradient(a, i, R + i * row, P + i * row, s.dS + i * row, s.dW + i * n);
    gemm_chunk(true, false, n, dh, T, 1, s.dW, n, s.qz, dh, 0, p->partial, dh);
    if (p->dk) gemm_chunk(true, false, K, dh, T, 1, s.dS, row, s.qu, dh, p->add_k, p->dk, width);
    gemm_chunk(false, false, T, dh, K, 1, s.dS, row, p->k, width, 0, s.qu, dh);
    gemm_chunk(false, false, T, dh, n, 1, s.dW, n, p->r, width, 0, s.qz, dh);
    write_queries(a, p, s);
    if (p->dv) gemm_chunk(true, false, K, dh, T, 1, R, row, dy, width, p->add_v, p->dv, width);
}

/* -- all chunks */

static int64_t scratch_size(const xl_attention *a, bool backward) {
    const int64_t weights = a->T * a->row, distances = a->T * a->n;
    return 2 * a->T * a->dh + (a->drop ? weights : 0) +
           (backward ? weights + distances : distances);
}

static xl_scratch scratch_of(const xl_attention *a, bool backward, real *all) {
    xl_scratch s = {.qu = all + omp_get_thread_num() * scratch_size(a, backward)};
    s.qz = s.qu + a->T * a->dh;
    s.R = s.qz + a->T * a->dh;
    s.W = s.dW = s.R + (a->drop ? a->T * a->row : 0);
    s.dS = s.dW + a->T * a->n;
    return s;
}

static real *scratch_alloc(tape *t, const xl_attention *a, bool backward) {
    return tape_alloc(t, (size_t)(scratch_size(a, backward) * t->threads) * sizeof(real));
}

static xl_chunk chunk_of(const xl_attention *a, int64_t number) {
    const int64_t b = number / a->o.heads, column = number % a->o.heads * a->dh;
    return (xl_chunk){.number = number,
                      .q = a->in.q->value + b * a->T * a->width + column,
                      .k = a->in.k->value + b * a->K * a->width + column,
                      .v = a->in.v->value + b * a->K * a->width + column,
                      .r = a->in.r->value + column,
                      .u = a->in.u->value + column,
                      .z = a->in.z->value + column};
}

/* dx += sum over sequences of `rows` rows of their terms from row `first` on, for every head. */
static void add_partials(tape *t, const xl_attention *a, tensor *x, const real *partial,
                         int64_t first, int64_t rows) {
    const int64_t each = (a->n + 2) * a->dh;
    real *dx = tape_grad_zeroed(t, x);
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; dx && c < a->width; c++) {
            const int64_t head = c / a->dh, at = (first + i) * a->dh + c % a->dh;
            double sum = 0;
            for (int64_t b = 0; b < a->B; b++)
                sum += (double)partial[(b * a->o.heads + head) * each + at];
            dx[i * a->width + c] = (real)((double)dx[i * a->width + c] + sum);
        }
}

static void xl_attention_backward(tape *t, const tape_node *node) {
    const xl_attention *a = node->kept;
    const int64_t chunks = a->B * a->o.heads, each = (a->n + 2) * a->dh;
    xl_chunk all = {0};
    /* in the order in which a chunk writes them: they may be one tensor */
    all.dk = tape_grad(t, a->in.k, &all.add_k);
    all.dq = tape_grad(t, a->in.q, &all.add_q);
    all.dv = tape_grad(t, a->in.v, &all.add_v);
    real *partial = tape_alloc(t, (size_t)(chunks * each) * sizeof *partial);
    real *scratch = partial ? scratch_alloc(t, a, true) : NULL;
    if (!scratch) return;
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t i = 0; i < chunks; i++) {
        xl_chunk p = chunk_of(a, i);
        const int64_t at_q = p.q - a->in.q->value, at_k = p.k - a->in.k->value;
        p.dq = all.dq ? all.dq + at_q : NULL, p.add_q = all.add_q;
        p.dk = all.dk ? all.dk + at_k : NULL, p.add_k = all.add_k;
        p.dv = all.dv ? all.dv + at_k : NULL, p.add_v = all.add_v;
        p.partial = partial + i * each;
        backward_chunk(a, &p, node->out->grad + at_q, scratch_of(a, true, scratch));
    }
    add_partials(t, a, a->in.r, partial, 0, a->n);
    add_partials(t, a, a->in.u, partial, a->n, 1);
    add_partials(t, a, a->in.z, partial, a->n + 1, 1);
}

/* -- the op */

static bool xl_attention_fits(tape *t, const xl_inputs *in, const xl_options *o) {
    const tensor *q = in->q, *k = in->k, *v = in->v;
    const int64_t width = q->dim[q->rank - 1];
    const bool sequences = q->rank == 3 && k->rank == 3 && v->rank == 3 && k->dim[0] == q->dim[0] &&
                           v->dim[0] == q->dim[0] && k->dim[2] == width && v->dim[2] == width &&
                           v->dim[1] == k->dim[1] && k->dim[1] >= q->dim[1];
    if (!sequences || in->r->rank != 2 || in->r->dim[1] != width || in->u->count != width ||
        in->z->count != width)
        return tape_fail(t, SR_USAGE,
                         "xl_attention: q must be [B, T, width], k and v [B, K, width], r [n, "
                         "width], u and z [width], K >= T");
    if (o->heads < 1 || width % o->heads)
        return tape_fail(t, SR_USAGE, "xl_attention: %d heads in %lld features", o->heads,
                         (long long)width);
    if (!(o->p >= 0 && o->p < 1))
        return tape_fail(t, SR_USAGE, "xl_attention: p is %g, not in [0, 1)", o->p);
    return true;
}

static xl_attention *xl_attention_create(tape *t, const xl_inputs *in, const xl_options *o) {
    xl_attention *a = tape_alloc(t, sizeof *a);
    if (!a) return NULL;
    *a = (xl_attention){.in = *in,
                        .o = *o,
                        .B = in->q->dim[0],
                        .T = in->q->dim[1],
                        .K = in->k->dim[1],
                        .n = in->r->dim[0],
                        .width = in->q->dim[2],
                        .drop = t->training && o->p > 0};
    a->dh = a->width / o->heads;
    a->row = (a->K + TILE_LANES - 1) / TILE_LANES * TILE_LANES;
    a->scale = (real)(1 / sqrt((double)a->dh));
    const int64_t count = a->B * o->heads * a->T * a->row;
    if (a->drop) a->mask = dropout_mask_create(t, count, o->p);
    a->P = tape_alloc(t, (size_t)count * sizeof *a->P);
    if (o->report) a->report = attention_stats_begin(t, a->B * o->heads);
    return a->P && !a->report == !o->report ? a : NULL;
}

tensor *op_xl_attention(tape *t, const xl_inputs *in, const xl_options *o) {
    tensor *const used[] = {in->q, in->k, in->v, in->r, in->u, in->z, NULL};
    for (int i = 0; i < 6; i++)
        if (!used[i]) return NULL;
    xl_attention *a = xl_attention_fits(t, in, o) ? xl_attention_create(t, in, o) : NULL;
    real *scratch = a ? scratch_alloc(t, a, false) : NULL;
    tensor *y = scratch ? tape_like(t, in->q) : NULL;
    if (!y) return NULL;
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t i = 0; i < a->B * o->heads; i++) {
        const xl_chunk p = chunk_of(a, i);
        forward_chunk(a, &p, y->value + (p.q - in->q->value), scratch_of(a, false, scratch));
    }
    if (o->report) attention_stats_end(a->report, a->B, o->heads, o->report);
    return tape_push(t, "xl_attention", xl_attention_backward, y, used, a);
}
