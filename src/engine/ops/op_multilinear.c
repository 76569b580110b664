/* op_multilinear.c -- multi-linear attention with one head, as the tensorized transformer's release
 * computes it: Ma et al., NeurIPS 2019, with each query's third-order tensor flattened
 * (docs/models.md 3.1). The caller applies the projections.
 *
 * Per sequence, query i, keys j and k, h over the R features, c = mean over the rows of core:
 *   a_ijh     = (q_ih + u_h) k_jh + (q_ih + z_h) r_jh
 *   y_i[jK+k] = sum_h a_ijh c_h v_kh                one product [T K, R] x [R, K]
 * causal: y is 0 where j > M + i or k > M + i, M = K - T rows of memory. There is no softmax.
 *
 * Backward, from G_ijk = dy_i[jK+k], 0 where y is hidden:
 *   da_ijh = sum_k G_ijk c_h v_kh                   w_kh = sum_ij G_ijk a_ijh
 *   dv_kh  = c_h w_kh                               dc_h = sum_k w_kh v_kh; each core gets 1/cores
 *   dq_ih  = sum_j da_ijh (k_jh + r_jh)
 *   X_jh = sum_i da_ijh,  Y_jh = sum_i da_ijh q_ih
 *   dk = Y + u X,  dr = Y + z X,  du_h = sum_j X_jh k_jh,  dz_h = sum_j X_jh r_jh
 * Kept: the inputs; a is recomputed. A chunk is one sequence, so q, k and v may be one tensor.
 * Shared inputs (r, core, u, z) get the sum over sequences in double, in order. */
#include <omp.h>
#include <string.h>

#include "engine/gemm/gemm.h"
#include "engine/ops/attention/attention_ops.h"

typedef struct multilinear {
    multilinear_inputs in;
    int64_t B, T, K, R, cores;
    bool causal;
    real *c; /* [R] */
} multilinear;

/* Scratch memory of one thread. */
typedef struct multilinear_scratch {
    real *a;         /* [T K, R] */
    real *cv;        /* [K, R]: c v */
    real *da, *G;    /* [T K, R], [T K, K]; backward only, like the rest */
    real *w, *X, *Y; /* [K, R] */
} multilinear_scratch;

/* Arrays of one sequence. */
typedef struct sequence {
    const real *q, *k, *v;
    real *dq, *dk, *dv; /* NULL: not wanted */
    bool add_q, add_k, add_v;
    real *partial; /* [K + 3, R]: dr, then dc, du, dz */
} sequence;

/* -- one sequence */

static void fill_a(const multilinear *m, const sequence *s, real *restrict a) {
    const real *r = m->in.r->value, *u = m->in.u->value, *z = m->in.z->value;
    const int64_t R = m->R;
    for (int64_t i = 0; i < m->T; i++)
        for (int64_t j = 0; j < m->K; j++, a += R)
            for (int64_t h = 0; h < R; h++)
                a[h] = (s->q[i * R + h] + u[h]) * s->k[j * R + h] +
                       (s->q[i * R + h] + z[h]) * r[j * R + h];
}

static void fill_cv(const multilinear *m, const real *v, real *restrict cv) {
    for (int64_t k = 0; k < m->K; k++)
        for (int64_t h = 0; h < m->R; h++) cv[k * m->R + h] = m->c[h] * v[k * m->R + h];
}

/* Zeros where query i may not attend. */
static void hide(const multilinear *m, real *y) {
    const int64_t K = m->K;
    for (int64_t i = 0; m->causal && i < m->T; i++, y += K * K) {
        const int64_t seen = K - m->T + i + 1;
        for (int64_t j = 0; j < seen; j++)
            memset(y + j * K + seen, 0, (size_t)(K - seen) * sizeof *y);
        memset(y + seen * K, 0, (size_t)((K - seen) * K) * sizeof *y);
    }
}

static void forward_sequence(const multilinear *m, const sequence *s, multilinear_scratch w,
                             real *y) {
    const int64_t K = m->K, R = m->R;
    fill_a(m, s, w.a);
    fill_cv(m, s->v, w.cv);
    gemm_chunk(false, true, m->T * K, K, R, 1, w.a, R, w.cv, R, 0, y, K);
    hide(m, y);
}

/* Computes dq, and the sums X and Y over the queries. */
static void sum_over_queries(const multilinear *m, const sequence *s, multilinear_scratch w) {
    const real *r = m->in.r->value, *da = w.da;
    const int64_t R = m->R;
    memset(w.X, 0, (size_t)(m->K * R) * sizeof *w.X);
    memset(w.Y, 0, (size_t)(m->K * R) * sizeof *w.Y);
    for (int64_t i = 0; i < m->T; i++) {
        const real *q = s->q + i * R;
        real *restrict dq = s->dq ? s->dq + i * R : NULL;
        if (dq && !s->add_q) memset(dq, 0, (size_t)R * sizeof *dq);
        for (int64_t j = 0; j < m->K; j++, da += R) {
            real *restrict X = w.X + j * R, *restrict Y = w.Y + j * R;
            for (int64_t h = 0; h < R; h++) X[h] += da[h], Y[h] += da[h] * q[h];
            for (int64_t h = 0; dq && h < R; h++) dq[h] += da[h] * (s->k[j * R + h] + r[j * R + h]);
        }
    }
}

/* Writes dk and dv from the sums. */
static void write_keys(const multilinear *m, const sequence *s, multilinear_scratch w) {
    const real *u = m->in.u->value;
    for (int64_t j = 0; j < m->K; j++)
        for (int64_t h = 0; h < m->R; h++) {
            const int64_t at = j * m->R + h;
            const real dk = w.Y[at] + u[h] * w.X[at], dv = m->c[h] * w.w[at];
            if (s->dk) s->dk[at] = s->add_k ? s->dk[at] + dk : dk;
            if (s->dv) s->dv[at] = s->add_v ? s->dv[at] + dv : dv;
        }
}

/* Writes this sequence's terms of dr, dc, du, dz. */
static void write_partials(const multilinear *m, const sequence *s, multilinear_scratch w) {
    const real *r = m->in.r->value, *z = m->in.z->value;
    const int64_t K = m->K, R = m->R;
    for (int64_t h = 0; h < R; h++) {
        double dc = 0, du = 0, dz = 0;
        for (int64_t j = 0; j < K; j++) {
            const int64_t at = j * R + h;
            s->partial[at] = w.Y[at] + z[h] * w.X[at];
            dc += (double)w.w[at] * (double)s->v[at];
            du += (double)w.X[at] * (double)s->k[at];
            dz += (double)w.X[at] * (double)r[at];
        }
        s->partial[K * R + h] = (real)dc;
        s->partial[(K + 1) * R + h] = (real)du;
        s->partial[(K + 2) * R + h] = (real)dz;
    }
}

static void backward_sequence(const multilinear *m, const sequence *s, multilinear_scratch w,
                              const real *dy) {
    const int64_t K = m->K, R = m->R, rows = m->T * K;
    fill_a(m, s, w.a);
    fill_cv(m, s->v, w.cv);
    memcpy(w.G, dy, (size_t)(rows * K) * sizeof *dy);
    hide(m, w.G);
    gemm_chunk(false, false, rows, R, K, 1, w.G, K, w.cv, R, 0, w.da, R);
    gemm_chunk(true, false, K, R, rows, 1, w.G, K, w.a, R, 0, w.w, R);
    sum_over_queries(m, s, w);
    write_partials(m, s, w);
    write_keys(m, s, w);
}

/* -- all sequences */

static int64_t scratch_size(const multilinear *m, bool backward) {
    const int64_t rows = m->T * m->K, keys = m->K * m->R;
    return rows * m->R + keys + (backward ? rows * (m->R + m->K) + 3 * keys : 0);
}

static multilinear_scratch scratch_of(const multilinear *m, bool backward, real *all) {
    const int64_t rows = m->T * m->K, keys = m->K * m->R;
    multilinear_scratch w = {.a = all + omp_get_thread_num() * scratch_size(m, backward)};
    w.cv = w.a + rows * m->R;
    if (!backward) return w;
    w.da = w.cv + keys;
    w.G = w.da + rows * m->R;
    w.w = w.G + rows * m->K;
    w.X = w.w + keys;
    w.Y = w.X + keys;
    return w;
}

static real *scratch_alloc(tape *t, const multilinear *m, bool backward) {
    return tape_alloc(t, (size_t)(scratch_size(m, backward) * t->threads) * sizeof(real));
}

/* dx += scale times the sum over sequences of `rows` rows of their terms, from row `first` on. */
static void add_partials(tape *t, const multilinear *m, tensor *x, const real *partial,
                         int64_t first, int64_t rows, double scale) {
    const int64_t R = m->R, each = (m->K + 3) * R;
    real *dx = tape_grad_zeroed(t, x);
    for (int64_t i = 0; dx && i < rows * R; i++) {
        double sum = 0;
        for (int64_t b = 0; b < m->B; b++) sum += (double)partial[b * each + first * R + i];
        for (int64_t n = 0; n < x->count / (rows * R); n++)
            dx[n * rows * R + i] = (real)((double)dx[n * rows * R + i] + scale * sum);
    }
}

static sequence sequence_of(const multilinear *m, int64_t b) {
    const int64_t R = m->R;
    return (sequence){.q = m->in.q->value + b * m->T * R,
                      .k = m->in.k->value + b * m->K * R,
                      .v = m->in.v->value + b * m->K * R};
}

static void multilinear_backward(tape *t, const tape_node *node) {
    const multilinear *m = node->kept;
    const int64_t R = m->R, each = (m->K + 3) * R;
    sequence all = {0};
    all.dq = tape_grad(t, m->in.q, &all.add_q);
    all.dk = tape_grad(t, m->in.k, &all.add_k);
    all.dv = tape_grad(t, m->in.v, &all.add_v);
    real *partial = tape_alloc(t, (size_t)(m->B * each) * sizeof *partial);
    real *scratch = partial ? scratch_alloc(t, m, true) : NULL;
    if (!scratch) return;
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t b = 0; b < m->B; b++) {
        sequence s = sequence_of(m, b);
        s.dq = all.dq ? all.dq + b * m->T * R : NULL, s.add_q = all.add_q;
        s.dk = all.dk ? all.dk + b * m->K * R : NULL, s.add_k = all.add_k;
        s.dv = all.dv ? all.dv + b * m->K * R : NULL, s.add_v = all.add_v;
        s.partial = partial + b * each;
        backward_sequence(m, &s, scratch_of(m, true, scratch),
                          node->out->grad + b * m->T * m->K * m->K);
    }
    add_partials(t, m, m->in.r, partial, 0, m->K, 1);
    add_partials(t, m, m->in.core, partial, m->K, 1, 1 / (double)m->cores);
    add_partials(t, m, m->in.u, partial, m->K + 1, 1, 1);
    add_partials(t, m, m->in.z, partial, m->K + 2, 1, 1);
}

/* -- the op */

static bool multilinear_fits(tape *t, const multilinear_inputs *in) {
    const tensor *q = in->q, *k = in->k, *v = in->v;
    const int64_t R = q->dim[2], K = k->dim[1];
    const bool sequences = q->rank == 3 && k->rank == 3 && v->rank == 3 && k->dim[0] == q->dim[0] &&
                           v->dim[0] == q->dim[0] && k->dim[2] == R && v->dim[2] == R &&
                           v->dim[1] == K && K >= q->dim[1];
    if (sequences && in->r->count == K * R && in->core->rank == 2 && in->core->dim[1] == R &&
        in->u->count == R && in->z->count == R)
        return true;
    return tape_fail(t, SR_USAGE,
                     "multilinear: q must be [B, T, R], k and v [B, K, R], r [K, R], core [n, R], "
                     "u and z [R], K >= T");
}

static multilinear *multilinear_create(tape *t, const multilinear_inputs *in, bool causal) {
    multilinear *m = tape_alloc(t, sizeof *m);
    if (!m) return NULL;
    *m = (multilinear){.in = *in,
                       .B = in->q->dim[0],
                       .T = in->q->dim[1],
                       .K = in->k->dim[1],
                       .R = in->q->dim[2],
                       .cores = in->core->dim[0],
                       .causal = causal,
                       .c = tape_alloc(t, (size_t)in->q->dim[2] * sizeof(real))};
    for (int64_t h = 0; m->c && h < m->R; h++) {
        double sum = 0;
        for (int64_t n = 0; n < m->cores; n++) sum += (double)in->core->value[n * m->R + h];
        m->c[h] = (real)(sum / (double)m->cores);
    }
    return m->c ? m : NULL;
}

tensor *op_multilinear(tape *t, const multilinear_inputs *in, bool causal) {
    tensor *const used[] = {in->q, in->k, in->v, in->r, in->core, in->u, in->z, NULL};
    for (int i = 0; i < 7; i++)
        if (!used[i]) return NULL;
    multilinear *m = multilinear_fits(t, in) ? multilinear_create(t, in, causal) : NULL;
    real *scratch = m ? scratch_alloc(t, m, false) : NULL;
    tensor *y = scratch ? tape_tensor(t, 3, (int64_t[]){m->B, m->T, m->K * m->K}) : NULL;
    if (!y) return NULL;
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t b = 0; b < m->B; b++) {
        const sequence s = sequence_of(m, b);
        forward_sequence(m, &s, scratch_of(m, false, scratch), y->value + b * m->T * m->K * m->K);
    }
    return tape_push(t, "multilinear", multilinear_backward, y, used, m);
}
