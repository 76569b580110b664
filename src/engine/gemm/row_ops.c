/* row_ops.c -- linear layers and attention for decoding: each row has the same bits in any batch.
 *
 *   linear     y_rj = sum_p x_rp w_jp + b_j            one sum over rising p (small_gemm.h), then b
 *   attention  s_j = q k_j    a = softmax(s)    y = sum_j a_j v_j     per head, rising j
 *              with many queries both are products of small_gemm.h, over rising k and j
 *   log sum    m + log sum exp(x - m)                  m the largest x
 *
 * The weight is kept transposed, in panels of PANEL columns with [in] rows each. A block of rows
 * reads each panel once. CPUs with AMX also get a copy packed for tiles (gemm_amx_rows.h). Sums
 * along q k_j of one query, and over exponentials (in double), use SIMD lanes: the length and the
 * CPU type fix their order (row_math.h). */
#include "engine/gemm/row_ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/amx/gemm_amx_rows.h"
#include "engine/gemm/small_gemm.h"
#include "engine/row_math.h"

enum { PANEL = 2 * TILE_LANES, ROW_BLOCK = 32 };

/* -- linear */

static int64_t panel_count(const row_weight *r) {
    return (r->out + PANEL - 1) / PANEL;
}

/* Packs the weight for AMX tiles, where the CPU has them. */
static sr_status weight_pack(row_weight *r, const tensor *w, sr_failure *why) {
    const size_t bytes = gemm_amx_rows_bytes(r->out, r->in);
    if (!bytes) return SR_OK;
    r->packed = aligned_alloc(64, bytes);
    if (!r->packed) {
        row_weight_free(r);
        return sr_fail(why, SR_MEMORY, "out of memory for a packed weight of %lld x %lld",
                       (long long)r->out, (long long)r->in);
    }
    if (gemm_amx_rows_pack(r->out, r->in, w->value, r->packed)) return SR_OK;
    free(r->packed);
    r->packed = NULL;
    return SR_OK;
}

sr_status row_weight_init(row_weight *r, const tensor *w, sr_failure *why) {
    const int64_t out = w->dim[0], in = w->dim[1];
    *r = (row_weight){.in = in, .out = out};
    r->value = malloc((size_t)(panel_count(r) * in * PANEL) * sizeof *r->value);
    if (!r->value)
        return sr_fail(why, SR_MEMORY, "out of memory for a weight of %lld x %lld", (long long)out,
                       (long long)in);
    for (int64_t j = 0; j < panel_count(r) * PANEL; j++)
        for (int64_t p = 0; p < in; p++)
            r->value[(j / PANEL * in + p) * PANEL + j % PANEL] = j < out ? w->value[j * in + p] : 0;
    return weight_pack(r, w, why);
}

void row_weight_free(row_weight *r) {
    free(r->value);
    free(r->packed);
    r->value = NULL;
    r->packed = NULL;
}

/* Computes columns first .. first+PANEL-1 of `rows` rows. */
static void linear_block(int64_t rows, const real *x, const row_weight *w, int64_t first,
                         const real *b, real *y) {
    real sum[ROW_BLOCK * PANEL];
    const int64_t width = w->out - first < PANEL ? w->out - first : PANEL;
    small_gemm_product(rows, PANEL, w->in, (small_gemm_left){x, w->in, 1}, w->value + first * w->in,
                       PANEL, false, sum, PANEL);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < width; j++)
            y[r * w->out + first + j] = sum[r * PANEL + j] + (b ? b[first + j] : 0);
}

static void linear_by_tiles(int threads, int64_t rows, const real *x, const row_weight *w,
                            const real *b, real *y) {
    const int64_t each = (rows + threads - 1) / threads;
    const int64_t group = (each + AMX_ROWS - 1) / AMX_ROWS * AMX_ROWS;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t from = 0; from < rows; from += group) {
        const int64_t count = rows - from < group ? rows - from : group;
        const real *in = x + from * w->in;
        real *out = y + from * w->out;
        if (!gemm_amx_rows(count, in, w->out, w->in, w->packed, b, out))
            for (int64_t r = 0; r < count; r++) /* recomputes rows with numbers without parts */
                for (int64_t j = 0; gemm_amx_rows_odd(w->in, in + r * w->in) && j < w->out;
                     j += PANEL)
                    linear_block(1, in + r * w->in, w, j, b, out + r * w->out);
    }
}

void row_linear(int threads, int64_t rows, const real *x, const row_weight *w, const real *b,
                real *y) {
    if (w->packed) {
        linear_by_tiles(threads, rows, x, w, b, y);
        return;
    }
    const int64_t blocks = (rows + ROW_BLOCK - 1) / ROW_BLOCK;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < panel_count(w) * blocks; i++) {
        const int64_t from = i % blocks * ROW_BLOCK, left = rows - from;
        linear_block(left < ROW_BLOCK ? left : ROW_BLOCK, x + from * w->in, w, i / blocks * PANEL,
                     b, y + from * w->out);
    }
}

/* -- attention */

static int64_t round_up(int64_t n) {
    return (n + TILE_LANES - 1) / TILE_LANES * TILE_LANES;
}

/* y = sum_j weight_j value_j for `width` numbers from `at` on, as many as fit in registers at a
 * time. */
static void weigh(int64_t at, int64_t width, int64_t n, const real *weight,
                  const real *const *value, real *y) {
    enum { STEP = 2 * TILE_VECTOR };
    int64_t k = at;
    for (; k + STEP <= at + width; k += STEP) {
        small_gemm_vector low = {0}, high = {0}, left, right;
        for (int64_t j = 0; j < n; j++) {
            memcpy(&left, value[j] + k, sizeof left);
            memcpy(&right, value[j] + k + TILE_VECTOR, sizeof right);
            low += weight[j] * left;
            high += weight[j] * right;
        }
        memcpy(y + k, &low, sizeof low);
        memcpy(y + k + TILE_VECTOR, &high, sizeof high);
    }
    for (; k < at + width; k++) {
        real sum = 0;
        for (int64_t j = 0; j < n; j++) sum += weight[j] * value[j][k];
        y[k] = sum;
    }
}

int64_t row_attention_scratch(int64_t n) {
    return round_up(n);
}

void row_attention(int64_t d, int heads, int64_t n, const real *q, const real *const *key,
                   const real *const *value, real *weight, real *y) {
    const int64_t width = d / heads;
    for (int64_t at = 0; at < heads * width; at += width) {
        row_attention_weights(n, width, q + at, key, at, weight);
        weigh(at, width, n, weight, value, y);
    }
}

/* -- attention of many queries to the same keys */

int64_t row_memory_size(int64_t d, int heads, int64_t n) {
    return d * round_up(n) + heads * n * round_up(d / heads);
}

row_memory row_memory_make(int64_t d, int heads, int64_t n, const real *key, const real *value,
                           real *at) {
    const int64_t width = d / heads;
    const row_memory m = {n, round_up(n), width, round_up(width), at, at + d * round_up(n)};
    small_transpose(n, d, key, d, m.key, m.key_stride);
    for (int64_t h = 0; h < heads; h++)
        for (int64_t j = 0; j < n; j++) {
            real *to = m.value + (h * n + j) * m.padded_width;
            memcpy(to, value + j * d + h * width, (size_t)width * sizeof *to);
            memset(to + width, 0, (size_t)(m.padded_width - width) * sizeof *to);
        }
    return m;
}

int64_t row_memory_scratch(const row_memory *m, int64_t rows) {
    return rows * (m->key_stride + m->padded_width);
}

/* Attention of head h for all queries: weight [rows, key_stride], y [rows, d]. */
static void head_attentions(const row_memory *m, int64_t d, int64_t h, int64_t rows, const real *q,
                            real *weight, real *y) {
    real *sum = weight + rows * m->key_stride;
    small_gemm_product(rows, m->key_stride, m->width, (small_gemm_left){q + h * m->width, d, 1},
                       m->key + h * m->width * m->key_stride, m->key_stride, false, weight,
                       m->key_stride);
    for (int64_t r = 0; r < rows; r++) row_softmax(m->keys, weight + r * m->key_stride);
    small_gemm_product(rows, m->padded_width, m->keys, (small_gemm_left){weight, m->key_stride, 1},
                       m->value + h * m->keys * m->padded_width, m->padded_width, false, sum,
                       m->padded_width);
    for (int64_t r = 0; r < rows; r++)
        memcpy(y + r * d + h * m->width, sum + r * m->padded_width, (size_t)m->width * sizeof *y);
}

void row_memory_attention(const row_memory *m, int heads, int64_t rows, const real *q,
                          real *scratch, real *average, int64_t step, real *y) {
    for (int64_t h = 0; h < heads; h++) {
        head_attentions(m, heads * m->width, h, rows, q, scratch, y);
        for (int64_t r = 0; average && r < rows; r++)
            for (int64_t j = 0; j < m->keys; j++)
                average[r * step + j] =
                    (h ? average[r * step + j] : 0) + scratch[r * m->key_stride + j] / (real)heads;
    }
}

/* -- softmax */

double row_log_sum(int64_t n, const real *x, int64_t block, real *largest) {
    int64_t blocks = 0;
    for (int64_t j = 0; j < n; j += block)
        largest[blocks++] = row_max(j + block < n ? block : n - j, x + j);
    const real m = row_max(blocks, largest);
    return (double)m + log(row_exp_sum(n, x, m));
}
