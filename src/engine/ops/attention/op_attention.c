/* op_attention.c -- scaled dot-product attention by heads (Vaswani et al., NeurIPS 2017, section
 * 3.2; docs/models.md 2.3). The caller applies the projections and gives c, the factor of the
 * logits, usually 1/sqrt(d/heads).
 *
 * Per sentence b and head h (columns h dh .. of q and k, dh = d/heads; h eh .. of v and y, eh =
 * e/heads):
 *   S = c q k^T                      [Tq, Tk]; hidden keys -inf
 *   P = softmax(S) by rows           0 where hidden; a row with every key hidden is all 0
 *   R = P m / (1 - p)                m the dropout mask, R = P without dropout
 *   y = R v                          [Tq, eh]
 * q [B, Tq, d], k [B, Tk, d], v [B, Tk, e], y [B, Tq, e]. Hidden: key_valid 0, or key j > query i
 * if causal.
 *
 * Backward, from dy:
 *   dR = dy v^T                      dv = R^T dy
 *   D_i = sum_j R_ij dR_ij           dS = c (R * dR - D P)  (as dP = dR m / (1 - p))
 *   dq = dS k                        dk = dS^T q            (dS: gradient of q k^T)
 * Kept: P [B, heads, Tq, row], row = Tk rounded up to whole vectors (zeros after Tk), and the key
 * of the mask. The mask is drawn again; the element number is the index in P. A hidden key has
 * weight 0 but is multiplied: NaN or infinity in its k or v spreads, as in PyTorch. A chunk is one
 * sentence and head and adds its gradients one after the other, so q, k and v may be the same
 * tensor. */
#include <omp.h>

#include "engine/gemm/gemm.h"
#include "engine/gemm/small_gemm.h"
#include "engine/ops/attention/attention_ops.h"
#include "engine/ops/attention/attention_stats.h"
#include "engine/ops/dropout_mask.h"
#include "engine/row_math.h"

typedef struct attention {
    int64_t B, Tq, Tk, d, dh, e, eh, row;
    int heads;
    real scale; /* c */
    bool causal, drop;
    dropout_mask mask;
    real *P; /* [B, heads, Tq, row] */
    /* [B, row]: -inf for keys hidden from every query, such as padding; else 0 */
    real *hide;
    /* [2 row]: zeros, then -inf; stair + row - n hides from column n on */
    real *stair;
    attention_chunk *report;    /* [B, heads]; NULL: no report */
    const uint8_t *query_valid; /* [B, Tq] or NULL, for the report */
} attention;

/* Scratch memory of one thread. */
typedef struct attention_scratch {
    real *transposed; /* [larger of dh and eh, row]: k^T, v^T */
    real *R;          /* [Tq, row]: with dropout only */
    real *dS;         /* [Tq, row]: backward only */
} attention_scratch;

static void product(int64_t m, int64_t n, int64_t k, small_gemm_left a, const real *b, int64_t ldb,
                    bool add, real *c, int64_t ldc) {
    if (n % TILE_LANES == 0) {
        small_gemm_product(m, n, k, a, b, ldb, add, c, ldc);
    } else {
        bool transposed = a.step_k != 1;
        gemm_chunk(transposed, false, m, n, k, 1, a.value, transposed ? a.step_k : a.step_m, b, ldb,
                   add, c, ldc);
    }
}

/* s = -inf where hidden, else c s; returns the largest. */
static real mask_row(int64_t n, real c, const real *restrict hide, const real *restrict after,
                     real *restrict s) {
    real m = -INFINITY;
#pragma omp simd reduction(max : m)
    for (int64_t j = 0; j < n; j++) {
        s[j] = hide[j] + after[j] < 0 ? (real)-INFINITY : c * s[j];
        m = s[j] > m ? s[j] : m;
    }
    return m;
}

/* Computes whole vectors: `width` covers the keys that query i may see. Returns the largest logit,
 * -inf without a visible key. */
static real softmax_row(const attention *a, int64_t i, int64_t first, const real *hide, real *s) {
    int64_t n = a->causal && i + 1 < a->Tk ? i + 1 : a->Tk;
    int64_t width = first < n ? (n + TILE_LANES - 1) / TILE_LANES * TILE_LANES : 0;
    real m = -INFINITY;
    if (width > 0) {
        m = mask_row(width, a->scale, hide, a->stair + a->row - n, s);
        row_scale(width, (real)(1 / row_exp(width, s, m, s)), s);
    }
    for (int64_t j = width; j < a->row; j++) s[j] = 0;
    return m;
}

static const real *dropped(const attention *a, int64_t chunk, real *R) {
    return dropout_mask_chunk(a->drop ? &a->mask : NULL, chunk, a->Tq * a->row, a->P, R);
}

/* y = R v */
static void weigh(const attention *a, int64_t chunk, const real *v, real *y, attention_scratch s) {
    const real *R = dropped(a, chunk, s.R);
    product(a->Tq, a->eh, a->Tk, (small_gemm_left){R, a->row, 1}, v, a->e, false, y, a->e);
}

static void forward_chunk(const attention *a, int64_t chunk, const real *q, const real *k,
                          const real *v, real *y, attention_scratch s) {
    int64_t b = chunk / a->heads, first = 0;
    const real *hide = a->hide + b * a->row;
    while (first < a->Tk && hide[first] < 0) first++;
    real *P = a->P + chunk * a->Tq * a->row;
    small_transpose(a->Tk, a->dh, k, a->d, s.transposed, a->row);
    product(a->Tq, a->row, a->dh, (small_gemm_left){q, a->d, 1}, s.transposed, a->row, false, P,
            a->row);
    for (int64_t i = 0; i < a->Tq; i++) {
        const real largest = softmax_row(a, i, first, hide, P + i * a->row);
        if (a->report && (!a->query_valid || a->query_valid[b * a->Tq + i]))
            attention_chunk_add(&a->report[chunk], a->row, largest, P + i * a->row);
    }
    weigh(a, chunk, v, y, s);
}

typedef struct attention_gradient {
    real *d;
    bool add;
} attention_gradient;

static void backward_chunk(const attention *a, int64_t chunk, const real *q, const real *k,
                           const real *v, const real *dy, const attention_gradient g[3],
                           attention_scratch s) {
    const real *P = a->P + chunk * a->Tq * a->row, *R = dropped(a, chunk, s.R);
    int64_t Tq = a->Tq, Tk = a->Tk, dh = a->dh, d = a->d, eh = a->eh, e = a->e, row = a->row;
    small_transpose(Tk, eh, v, e, s.transposed, row);
    product(Tq, row, eh, (small_gemm_left){dy, e, 1}, s.transposed, row, false, s.dS, row);
    for (int64_t i = 0; i < Tq; i++) { /* dR -> dS */
        real *restrict x = s.dS + i * row;
        const real D = (real)row_dot(row, R + i * row, x);
        for (int64_t j = 0; j < row; j++)
            x[j] = a->scale * (R[i * row + j] * x[j] - D * P[i * row + j]);
    }
    if (g[0].d) product(Tq, dh, Tk, (small_gemm_left){s.dS, row, 1}, k, d, g[0].add, g[0].d, d);
    if (g[1].d) product(Tk, dh, Tq, (small_gemm_left){s.dS, 1, row}, q, d, g[1].add, g[1].d, d);
    if (g[2].d) product(Tk, eh, Tq, (small_gemm_left){R, 1, row}, dy, e, g[2].add, g[2].d, e);
}

static int64_t transposed_size(const attention *a) {
    return (a->dh > a->eh ? a->dh : a->eh) * a->row;
}

/* Numbers of one thread's scratch memory. */
static int64_t scratch_size(const attention *a, bool backward) {
    return transposed_size(a) + a->Tq * a->row * ((a->drop ? 1 : 0) + (backward ? 1 : 0));
}

static attention_scratch scratch_of(const attention *a, bool backward, real *all) {
    real *own = all + omp_get_thread_num() * scratch_size(a, backward);
    real *R = own + transposed_size(a);
    return (attention_scratch){own, R, R + (a->drop ? a->Tq * a->row : 0)};
}

static size_t scratch_bytes(const tape *t, const attention *a, bool backward) {
    return (size_t)(scratch_size(a, backward) * t->threads) * sizeof(real);
}

/* Offset of a chunk in a tensor of T positions and `width` features. */
static int64_t chunk_offset(const attention *a, int64_t chunk, int64_t T, int64_t width) {
    return chunk / a->heads * T * width + chunk % a->heads * (width / a->heads);
}

/* Recomputes y from P. */
static void attention_recompute(tape *t, const tape_node *node) {
    const attention *a = node->kept;
    const size_t bytes = scratch_bytes(t, a, false);
    real *scratch = tape_borrow(t, bytes);
    if (!scratch) return;
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t p = 0; p < a->B * a->heads; p++)
        weigh(a, p, node->in[2]->value + chunk_offset(a, p, a->Tk, a->e),
              node->out->value + chunk_offset(a, p, a->Tq, a->e), scratch_of(a, false, scratch));
    tape_return(t, scratch, bytes);
}

static void attention_backward(tape *t, const tape_node *node) {
    const attention *a = node->kept;
    const tensor *y = node->out;
    attention_gradient g[3] = {0};
    for (int i = 0; i < 3; i++) g[i].d = tape_grad(t, node->in[i], &g[i].add);
    const size_t bytes = scratch_bytes(t, a, true);
    real *scratch = tape_borrow(t, bytes);
    if (!scratch) return;
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t p = 0; p < a->B * a->heads; p++) {
        const int64_t at[3] = {chunk_offset(a, p, a->Tq, a->d), chunk_offset(a, p, a->Tk, a->d),
                               chunk_offset(a, p, a->Tk, a->e)};
        attention_gradient own[3];
        for (int i = 0; i < 3; i++) {
            own[i] = g[i];
            if (own[i].d) own[i].d += at[i];
        }
        backward_chunk(a, p, node->in[0]->value + at[0], node->in[1]->value + at[1],
                       node->in[2]->value + at[2], y->grad + chunk_offset(a, p, a->Tq, a->e), own,
                       scratch_of(a, true, scratch));
    }
    tape_return(t, scratch, bytes);
}

static bool attention_fits(tape *t, const tensor *q, const tensor *k, const tensor *v, int heads,
                           double p) {
    if (q->rank != 3 || k->rank != 3 || v->rank != 3 || q->dim[0] != k->dim[0] ||
        q->dim[2] != k->dim[2] || k->dim[0] != v->dim[0] || k->dim[1] != v->dim[1])
        return tape_fail(t, SR_USAGE,
                         "attention: q must be [B, Tq, d], k [B, Tk, d], v [B, Tk, e]");
    for (int i = 0; i < 2; i++) {
        const int64_t width = i ? v->dim[2] : q->dim[2];
        if (heads < 1 || width % heads)
            return tape_fail(t, SR_USAGE, "attention: %d heads in %lld features", heads,
                             (long long)width);
    }
    if (!(p >= 0 && p < 1)) return tape_fail(t, SR_USAGE, "attention: p is %g, not in [0, 1)", p);
    return true;
}

static attention *attention_create(tape *t, const tensor *q, const tensor *v, int heads,
                                   double scale, bool causal, double p) {
    attention *a = tape_alloc(t, sizeof *a);
    if (!a) return NULL;
    *a = (attention){
        .B = q->dim[0], .Tq = q->dim[1], .Tk = v->dim[1], .d = q->dim[2], .e = v->dim[2]};
    a->heads = heads;
    a->scale = (real)scale;
    a->dh = a->d / heads;
    a->eh = a->e / heads;
    a->row = (a->Tk + TILE_LANES - 1) / TILE_LANES * TILE_LANES;
    a->causal = causal;
    a->drop = t->training && p > 0;
    const int64_t count = a->B * heads * a->Tq * a->row;
    if (a->drop) a->mask = dropout_mask_create(t, count, p);
    a->P = tape_alloc(t, (size_t)count * sizeof *a->P);
    a->stair = a->P ? tape_alloc(t, (size_t)(2 * a->row) * sizeof *a->stair) : NULL;
    a->hide = a->stair ? tape_alloc(t, (size_t)(a->B * a->row) * sizeof *a->hide) : NULL;
    return a->hide ? a : NULL;
}

tensor *op_attention(tape *t, tensor *q, tensor *k, tensor *v, int heads, double scale,
                     const uint8_t *key_valid, bool causal, double p, attention_report *report) {
    if (!q || !k || !v || !attention_fits(t, q, k, v, heads, p)) return NULL;
    attention *a = attention_create(t, q, v, heads, scale, causal, p);
    const size_t bytes = a ? scratch_bytes(t, a, false) : 0;
    real *scratch = a ? tape_borrow(t, bytes) : NULL;
    tensor *y = scratch ? tape_tensor(t, 3, (int64_t[]){a->B, a->Tq, a->e}) : NULL;
    if (y && report) a->report = attention_stats_begin(t, a->B * a->heads);
    if (!y || (report && !a->report)) return NULL;
    a->query_valid = report ? report->query_valid : NULL;
    for (int64_t j = 0; j < 2 * a->row; j++) a->stair[j] = j < a->row ? 0 : (real)-INFINITY;
    for (int64_t b = 0; b < a->B; b++)
        for (int64_t j = 0; j < a->row; j++) {
            bool hidden = j >= a->Tk || (key_valid && !key_valid[b * a->Tk + j]);
            a->hide[b * a->row + j] = hidden ? (real)-INFINITY : 0;
        }
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t i = 0; i < a->B * a->heads; i++) {
        forward_chunk(a, i, q->value + chunk_offset(a, i, a->Tq, a->d),
                      k->value + chunk_offset(a, i, a->Tk, a->d),
                      v->value + chunk_offset(a, i, a->Tk, a->e),
                      y->value + chunk_offset(a, i, a->Tq, a->e), scratch_of(a, false, scratch));
    }
    tape_return(t, scratch, bytes);
    if (report) attention_stats_end(a->report, a->B, heads, report);
    y = tape_push_reading(t, "attention", attention_backward, y, (tensor *[]){q, k, v, NULL}, a,
                          READS_INPUTS);
    return tape_set_recompute(t, y, attention_recompute);
}
