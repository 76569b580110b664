/* vectors_language.c -- tensorized_attention.h5 and xl_attention.h5 (a whole sublayer: memory,
 * projections, attention, residual sum, LN before or after) and adaptive_softmax.h5. */
#include <math.h>
#include <string.h>

#include "engine/ops/loss/loss_ops.h"
#include "model_vectors.h"
#include "nets/layers/layers.h"
#include "norm/norm_options.h"

/* -- moving numbers: a block of x, x after other rows, x with its first two dimensions swapped */

typedef struct moved {
    int64_t from, to, count;
} moved;

static void moved_backward(tape *t, const tape_node *node) {
    const moved *m = node->kept;
    real *dx = tape_grad_zeroed(t, node->in[0]);
    for (int64_t i = 0; dx && i < m->count; i++) dx[m->from + i] += node->out->grad[m->to + i];
}

/* Elements [from, from + count) of x, at place `to` of y. */
static tensor *move(tape *t, tensor *x, int64_t from, tensor *y, int64_t to, int64_t count) {
    moved *m = y ? tape_alloc(t, sizeof *m) : NULL;
    if (!m) return NULL;
    *m = (moved){from, to, count};
    memcpy(y->value + to, x->value + from, (size_t)count * sizeof(real));
    return tape_push(t, "move", moved_backward, y, (tensor *[]){x, NULL}, m);
}

static tensor *block(tape *t, tensor *x, int64_t from, int rank, const int64_t *dim) {
    tensor *y = x ? tape_tensor(t, rank, dim) : NULL;
    return y ? move(t, x, from, y, 0, y->count) : NULL;
}

/* mems [M, B, d], without gradient, followed by x [L, B, d]. */
static tensor *behind(tape *t, const tensor *mems, tensor *x) {
    if (!mems || !x) return x;
    tensor *y = tape_tensor(t, 3, (int64_t[]){mems->dim[0] + x->dim[0], x->dim[1], x->dim[2]});
    if (y) memcpy(y->value, mems->value, (size_t)mems->count * sizeof(real));
    return y ? move(t, x, 0, y, mems->count, x->count) : NULL;
}

static void swapped_backward(tape *t, const tape_node *node) {
    const tensor *y = node->out;
    const int64_t B = y->dim[0], L = y->dim[1], d = y->dim[2];
    real *dx = tape_grad_zeroed(t, node->in[0]);
    for (int64_t n = 0; dx && n < y->count; n++)
        dx[(n / d % L * B + n / d / L) * d + n % d] += y->grad[n];
}

/* [L, B, d] -> [B, L, d] */
static tensor *swapped(tape *t, tensor *x) {
    tensor *y = x ? tape_tensor(t, 3, (int64_t[]){x->dim[1], x->dim[0], x->dim[2]}) : NULL;
    if (!y) return NULL;
    const int64_t B = y->dim[0], L = y->dim[1], d = y->dim[2];
    for (int64_t n = 0; n < y->count; n++)
        y->value[n] = x->value[(n / d % L * B + n / d / L) * d + n % d];
    return tape_push(t, "swapped", swapped_backward, y, (tensor *[]){x, NULL}, NULL);
}

/* -- a sublayer of multi-linear attention, or (core NULL) of Transformer-XL */

typedef struct sublayer {
    model_case *c;
    tape *t;
    params params;
    norm_site norm;
    tensor *w, *mems, *r, *Wqkv, *Wr, *Wo, *core, *u, *z;
} sublayer;

static bool sublayer_open(sublayer *s, model_case *c) {
    *s = (sublayer){.c = c, .t = case_tape(c)};
    params_init(&s->params, 1);
    if (!s->t) return false;
    s->w = case_tensor(c, s->t, "in/w", 3), s->r = case_tensor(c, s->t, "in/r", 2);
    if (case_has(c, "in/mems")) s->mems = case_tensor(c, s->t, "in/mems", 3);
    s->Wqkv = case_tensor(c, s->t, "in/Wqkv", 2), s->Wr = case_tensor(c, s->t, "in/Wr", 2);
    s->Wo = case_tensor(c, s->t, "in/Wo", 2);
    if (case_has(c, "in/core")) s->core = case_tensor(c, s->t, "in/core", 2);
    const int rank = s->core ? 1 : 2; /* one head, or all */
    s->u = case_tensor(c, s->t, "in/u", rank), s->z = case_tensor(c, s->t, "in/v", rank);
    if (!case_fine(c)) return false;
    sr_failure why = {0};
    norm_options o = norm_options_default(norm_find("ln"));
    o.eps = case_number(c, "eps");
    if (norm_site_init(&s->norm, &s->params, "n", "test", 0, s->w->dim[2], norm_find("ln"), &o,
                       &why) != SR_OK)
        case_fail(c, "%s", why.text);
    if (case_fine(c)) case_fill(c, "in/g", s->norm.gamma), case_fill(c, "in/c", s->norm.beta);
    return case_fine(c);
}

static void sublayer_close(sublayer *s) {
    tape_free(s->t);
    norm_site_free(&s->norm);
    params_free(&s->params);
}

static tensor *normalized(sublayer *s, tensor *x) {
    norm_rows *rows = x ? tape_alloc(s->t, sizeof *rows) : NULL;
    if (!rows || norm_rows_init(rows, s->t, tensor_rows(x), NULL, NORM_TRAIN) != SR_OK) return NULL;
    return norm_apply(&s->norm, s->t, x, rows);
}

/* Wq, Wk and Wv of Wqkv [3 width, d]. */
static bool cut(sublayer *s, int64_t width, tensor *w[3]) {
    const int64_t d = s->w->dim[2], row[2] = {width, d};
    if (s->Wqkv->dim[0] != 3 * width || s->Wqkv->dim[1] != d)
        case_fail(s->c, "Wqkv is not [3 * %lld, %lld]", (long long)width, (long long)d);
    for (int i = 0; i < 3 && case_fine(s->c); i++)
        w[i] = block(s->t, s->Wqkv, i * width * d, 2, row);
    return case_fine(s->c) && w[0] && w[1] && w[2];
}

static tensor *attend_multilinear(sublayer *s, tensor *x, tensor *keys) {
    const bool causal = case_number(s->c, "causal") != 0;
    tensor *w[3];
    if (!cut(s, s->core->dim[1], w)) return NULL;
    const multilinear_layer l = {w[0], w[1], w[2], s->Wr, s->Wo, s->core};
    return multilinear_apply(&l, s->t, x, keys, s->r, s->u, s->z, causal);
}

/* The file blocks exactly the keys outside a reach of mem_len (0: no limit) and later ones. */
static int64_t check_blocked(model_case *c, int64_t T, int64_t K) {
    const bool same = case_number(c, "same_length") != 0;
    const int64_t reach = same ? (int64_t)case_number(c, "mem_len") : 0;
    int64_t dim[4];
    const int32_t *blocked = case_ints(c, "in/blocked", 2, dim);
    if (!blocked) return 0;
    if (dim[0] != T || dim[1] != K) case_fail(c, "blocked is not [%d, %d]", (int)T, (int)K);
    for (int64_t n = 0; n < T * K && case_fine(c); n++) {
        const int64_t D = n / K + K - T - n % K;
        if ((blocked[n] != 0) != (D < 0 || (reach && D >= reach)))
            case_fail(c, "blocked[%lld] is %d", (long long)n, blocked[n]);
    }
    return reach;
}

static tensor *attend_xl(sublayer *s, tensor *x, tensor *keys) {
    const int64_t heads = (int64_t)case_number(s->c, "heads"),
                  width = heads * (int64_t)case_number(s->c, "d_head"),
                  reach = check_blocked(s->c, x->dim[1], keys->dim[1]);
    tensor *w[3];
    if (!cut(s, width, w)) return NULL;
    const xl_attention_layer l = {
        .q = w[0], .k = w[1], .v = w[2], .r = s->Wr, .o = s->Wo, .heads = (int)heads};
    const xl_shared shared = {.positions = s->r, .u = s->u, .z = s->z, .reach = reach};
    return xl_attention_apply(&l, s->t, x, keys, &shared, NULL);
}

/* x [L, B, d] queries, keys [K, B, d]; all in the file's order, time first. */
static tensor *attend(sublayer *s, tensor *x, tensor *keys) {
    x = swapped(s->t, x), keys = swapped(s->t, keys);
    if (!x || !keys) return NULL;
    return swapped(s->t, s->core ? attend_multilinear(s, x, keys) : attend_xl(s, x, keys));
}

static void run_sublayer(sublayer *s) {
    model_case *c = s->c;
    const bool pre = case_number(c, "pre") != 0;
    tensor *keys = behind(s->t, s->mems, s->w);
    if (pre) keys = normalized(s, keys);
    tensor *x = pre && keys ? block(s->t, keys, keys->count - s->w->count, 3, s->w->dim) : s->w;
    tensor *y = op_add(s->t, s->w, attend(s, x, keys));
    if (!pre) y = normalized(s, y);
    if (!case_tape_fine(c, s->t)) return;
    case_compare_reals(c, "y", y->value, y->count, NULL, 1);
    case_backward(c, s->t, y, NULL);
    const struct {
        const char *name;
        const tensor *x;
    } row[] = {{"d_w", s->w},   {"d_Wqkv", s->Wqkv},    {"d_Wr", s->Wr},
               {"d_Wo", s->Wo}, {"d_core", s->core},    {"d_u", s->u},
               {"d_v", s->z},   {"d_g", s->norm.gamma}, {"d_c", s->norm.beta}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (row[i].x) case_compare_reals(c, row[i].name, row[i].x->grad, row[i].x->count, NULL, 1);
}

void check_memory_attention(model_case *c) {
    sublayer s;
    if (sublayer_open(&s, c)) run_sublayer(&s);
    sublayer_close(&s);
}

/* -- adaptive softmax */

enum { CUTOFFS = 64 };

/* Without clusters the cut-offs are empty. */
static int read_cutoffs(model_case *c, int64_t cutoff[CUTOFFS]) {
    int64_t dim[4] = {0};
    const int32_t *given = case_has(c, "in/Wc") ? case_ints(c, "in/cutoffs", 1, dim) : NULL;
    if (dim[0] > CUTOFFS) case_fail(c, "more than %d cut-offs", CUTOFFS);
    for (int64_t i = 0; given && i < dim[0] && case_fine(c); i++) cutoff[i] = given[i];
    return given ? (int)dim[0] : 0;
}

static void run_adaptive(model_case *c, tape *t) {
    static const char *const names[] = {"h", "W", "b", "Wc", "bc"};
    static const char *const paths[] = {"in/h", "in/W", "in/b", "in/Wc", "in/bc"};
    static const char *const grads[] = {"d_h", "d_W", "d_b", "d_Wc", "d_bc"};
    int64_t cutoff[CUTOFFS], dim[4];
    tensor *in[5] = {0};
    const int cutoffs = read_cutoffs(c, cutoff);
    for (int i = 0; i < (cutoffs ? 5 : 3); i++)
        in[i] = case_tensor(c, t, paths[i], strchr(names[i], 'b') ? 1 : 2);
    const int32_t *target = case_ints(c, "in/target", 1, dim);
    if (!case_fine(c)) return;
    if (dim[0] != in[0]->dim[0]) {
        case_fail(c, "%lld targets for %lld rows", (long long)dim[0], (long long)in[0]->dim[0]);
        return;
    }
    const adaptive_inputs a = {in[0], in[1], in[2], in[3], in[4], cutoff, cutoffs};
    tensor *nll = op_adaptive_softmax(t, &a, target), *loss = op_sum(t, nll);
    if (!case_tape_fine(c, t)) return;
    case_compare_reals(c, "nll", nll->value, nll->count, NULL, 1);
    tape_backward(t, loss, 1);
    for (int i = 0; i < 5; i++)
        if (in[i]) case_compare_reals(c, grads[i], in[i]->grad, in[i]->count, NULL, 1);
}

void check_adaptive_softmax(model_case *c) {
    tape *t = case_tape(c);
    if (t) run_adaptive(c, t);
    tape_free(t);
}
