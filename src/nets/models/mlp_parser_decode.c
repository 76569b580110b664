/* mlp_parser_decode.c -- the parser's network on single states: the formulas of model_mlp_parser.c
 * with running statistics and without dropout.
 *
 * The result of a state depends on that state alone. Sums of the linear layers follow row_ops.h;
 * all other sums are within one row. The layer scale before a normalization sums eight rows
 * together, in another order than single rows. It therefore gets a multiple of ROWS_TOGETHER rows,
 * with zeros after the last. */
#include <stdlib.h>
#include <string.h>

#include "engine/gemm/row_ops.h"
#include "nets/models/mlp_parser.h"

enum { ROWS_TOGETHER = 8 };

typedef struct scoring {
    const mlp_parser *net;
    row_weight in, out;
    tape *tape;
} scoring;

tensor *mlp_parser_activate(const mlp_parser *net, tape *t, tensor *x) {
    return net->activation == ACTIVATION_RELU   ? op_relu(t, x)
           : net->activation == ACTIVATION_CUBE ? op_cube(t, x)
                                                : op_tanh(t, x);
}

static void scoring_free(void *scorer) {
    scoring *s = scorer;
    if (!s) return;
    row_weight_free(&s->in);
    row_weight_free(&s->out);
    tape_free(s->tape);
    free(s);
}

static sr_status scoring_init(scoring *s, const mlp_parser *net, int threads, sr_failure *why) {
    s->net = net;
    s->tape = tape_create(threads, why);
    if (!s->tape) return why ? why->status : SR_MEMORY;
    tape_reset(s->tape, rng_create(0), false, false);
    const tensor *w = norm_weight(net->norm, s->tape, net->in.w);
    sr_status status = tape_status(s->tape, why);
    if (status == SR_OK) status = row_weight_init(&s->in, w, why);
    return status == SR_OK ? row_weight_init(&s->out, net->out.w, why) : status;
}

static void *scoring_create(model *m, int threads, sr_failure *why) {
    scoring *s = calloc(1, sizeof *s);
    if (!s)
        sr_fail(why, SR_MEMORY, "out of memory for parsing");
    else if (scoring_init(s, m->self, threads, why) == SR_OK)
        return s;
    scoring_free(s);
    return NULL;
}

/* [padded, hidden] with zeros after the rows. */
static tensor *hidden_sums(const scoring *s, int64_t rows, const int32_t *feature) {
    const mlp_parser *net = s->net;
    const int64_t padded = (rows + ROWS_TOGETHER - 1) / ROWS_TOGETHER * ROWS_TOGETHER;
    tape *t = s->tape;
    const tensor *x = op_feature_embedding(t, net->table, net->tables, feature, rows);
    tensor *y = x ? tape_tensor(t, 2, (int64_t[]){padded, net->hidden}) : NULL;
    if (!y) return NULL;
    row_linear(t->threads, rows, x->value, &s->in, net->in.b->value, y->value);
    memset(y->value + rows * net->hidden, 0,
           (size_t)((padded - rows) * net->hidden) * sizeof *y->value);
    return y;
}

static sr_status scoring_score(void *scorer, int64_t rows, const int32_t *feature, real *logits,
                               sr_failure *why) {
    const scoring *s = scorer;
    const mlp_parser *net = s->net;
    tape *t = s->tape;
    const batch b = {.task = TASK_TREES, .count = rows, .tokens = rows};
    pass p = {.tape = t, .batch = &b, .mode = NORM_RUNNING};
    tape_reset(t, rng_create(0), false, false);
    tensor *y = hidden_sums(s, rows, feature);
    const norm_rows *seen = y ? pass_rows(&p, y->dim[0], 1, NULL) : NULL;
    if (seen) y = mlp_parser_activate(net, t, norm_apply(net->norm, t, y, seen));
    const sr_status status = tape_status(t, why);
    if (status != SR_OK) return status;
    row_linear(t->threads, rows, y->value, &s->out, net->out.b->value, logits);
    return SR_OK;
}

const model_scorer mlp_parser_scorer = {scoring_create, scoring_free, scoring_score};
