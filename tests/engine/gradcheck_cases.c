#include "gradcheck_cases.h"

#include "engine/ops/attention/attention_ops.h"
#include "engine/ops/image/image_ops.h"
#include "engine/ops/loss/loss_ops.h"
#include "engine/ops/ops.h"
#include "testing/extra_ops.h"

/* -- element-wise ------------------------------------------------------------------------------ */

static tensor *relu(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_relu(t, in[0]);
}

static tensor *cube(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_cube(t, in[0]);
}

static tensor *cube_skip(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_add(t, op_cube(t, in[0]), in[0]);
}

static tensor *add(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_add(t, in[0], in[1]);
}

static tensor *add_self(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_add(t, in[0], in[0]);
}

static tensor *add_skip(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_add(t, op_relu(t, in[0]), in[0]);
}

static tensor *sigmoid(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_sigmoid(t, in[0]);
}

static tensor *sigmoid_skip(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_add(t, in[0], op_sigmoid(t, in[0]));
}

static tensor *hyperbolic_tangent(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_tanh(t, in[0]);
}

static tensor *hyperbolic_tangent_skip(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_add(t, in[0], op_tanh(t, in[0]));
}

static tensor *product(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_multiply(t, in[0], in[1]);
}

static tensor *product_self(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_add(t, in[0], op_multiply(t, in[0], in[0]));
}

/* a: the axis. */
static tensor *concat(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    return op_concat(t, in, case_inputs(c), c->a);
}

static tensor *concat_self(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    return op_concat(t, (tensor *[]){in[0], in[1], in[0]}, 3, c->a);
}

/* a: the axis, b: the first of two. */
static tensor *slice(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    return op_slice(t, in[0], c->a, c->b, 2);
}

static tensor *slice_overlapping(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    return op_add(t, slice(t, in, row), op_slice(t, in[0], c->a, c->b + 1, 2));
}

static tensor *scale(tape *t, tensor *const *in, void *row) {
    return op_scale(t, in[0], ((const engine_case *)row)->p);
}

static tensor *scale_skip(tape *t, tensor *const *in, void *row) {
    return op_add(t, in[0], scale(t, in, row));
}

static tensor *dropout(tape *t, tensor *const *in, void *row) {
    return op_dropout(t, in[0], ((const engine_case *)row)->p);
}

static tensor *dropout_skip(tape *t, tensor *const *in, void *row) {
    return op_add(t, in[0], dropout(t, in, row));
}

/* -- row lookup -------------------------------------------------------------------------------- */

enum { PAD = 1 };
static const int32_t words[12] = {5, 3, 0, 2, 7, 2, 0, 6, 4, 4, 5, 0};
static const int32_t tokens[12] = {5, 3, 0, 2, 7, 2, PAD, PAD, 4, 4, 5, PAD};

/* a: sentences of b tokens, p: the factor. */
static tensor *embedding(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    return op_embedding(t, in[0], c->extra, c->a, c->b, c->p, NULL, PAD);
}

static tensor *embedding_positions(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    if (!in[0]) return op_embedding(t, NULL, c->extra, c->a, c->b, c->p, NULL, PAD);
    int64_t dim[2] = {16, in[0]->dim[1]};
    tensor *table = tape_tensor(t, 2, dim);
    if (!table) return NULL;
    op_embedding_positions(table->value, dim[0], dim[1], PAD);
    return op_embedding(t, in[0], c->extra, c->a, c->b, c->p, table, PAD);
}

/* a rows: two columns from the first table, one from the second. The last column uses the second
 * table, too. */
static const int32_t numbers[12] = {5, 3, 0, 2, 7, 2, 1, 1, 4, 4, 0, 0};

static tensor *features(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    const feature_table table[3] = {{in[0], 2}, {in[1], 1}, {in[1], 1}};
    return op_feature_embedding(t, table, 3, c->extra, c->a);
}

/* -- attention --------------------------------------------------------------------------------- */

/* Three sentences of up to six keys; all keys of the last one are hidden. */
static const uint8_t keys[18] = {1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0};

/* a: heads, b: causal, p: dropout, extra: keys. */
static tensor *attention(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    return op_attention(t, in[0], in[1], in[2], c->a, 0.7, c->extra, c->b, c->p, NULL);
}

static tensor *attention_self(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    return op_attention(t, in[0], in[0], in[0], c->a, 1, c->extra, c->b, c->p, NULL);
}

/* q and k are views of one tensor [B T, d]. */
static tensor *attention_views(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    if (!in[0] || !in[1])
        return op_attention(t, in[0], in[0], in[1], c->a, 1, NULL, c->b, c->p, NULL);
    tensor *q = tape_reshape(t, in[0], 3, in[1]->dim), *k = tape_reshape(t, in[0], 3, in[1]->dim);
    return op_attention(t, q, k, in[1], c->a, 1, c->extra, c->b, c->p, NULL);
}

/* b: scaled. */
static tensor *tener(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    return op_tener_attention(t, in[0], in[1], in[2], c->a, c->extra, c->b, c->p, NULL);
}

/* -- language models --------------------------------------------------------------------------- */

/* a: causal. */
static tensor *multilinear(tape *t, tensor *const *in, void *row) {
    const multilinear_inputs m = {in[0], in[1], in[2], in[3], in[4], in[5], in[6]};
    return op_multilinear(t, &m, ((const engine_case *)row)->a);
}

/* q, k and v are one tensor. */
static tensor *multilinear_self(tape *t, tensor *const *in, void *row) {
    const multilinear_inputs m = {in[0], in[0], in[0], in[1], in[2], in[3], in[4]};
    return op_multilinear(t, &m, ((const engine_case *)row)->a);
}

/* a: heads, b: the reach. */
static tensor *xl_attention(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    const xl_inputs x = {in[0], in[1], in[2], in[3], in[4], in[5]};
    return op_xl_attention(t, &x, &(xl_options){c->a, c->b, c->p, NULL});
}

/* q, k and v are one tensor, without memory. */
static tensor *xl_attention_self(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    const xl_inputs x = {in[0], in[0], in[0], in[1], in[2], in[3]};
    return op_xl_attention(t, &x, &(xl_options){c->a, c->b, c->p, NULL});
}

/* Two clusters: one target in the first, none in the second; then some in both. */
static const int64_t cutoffs[] = {4, 7};
static const int32_t few_clusters[5] = {0, 5, 3, 1, 0}, all_clusters[5] = {8, 5, 3, 7, 6};
static const int64_t many_cutoffs[] = {300, 500};
static const int32_t many_words[40] = {0, 299, 300, 499, 500, 699, 7, 8, 650, 601, 350, 12};

static tensor *adaptive(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    const adaptive_inputs a = {in[0], in[1], in[2], in[3], in[4], c->large ? many_cutoffs : cutoffs,
                               2};
    return op_adaptive_softmax(t, &a, c->extra);
}

/* Sentences of 4, 1 and 3 words with three tags; padding has invalid tags. */
static const uint8_t said[12] = {1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1};
static const int32_t tags[12] = {0, 1, 1, 2, 2, -1, -1, -1, -1, 0, 0, 1};
static const int32_t no_tags[2];
static const int32_t many_tags[7 * 9] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3};

static tensor *crf(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    const crf_inputs inputs = {in[0], in[1], in[2], in[3]};
    return op_crf(t, &inputs, c->extra, c->extra == tags ? said : NULL);
}

static tensor *crf_twice(tape *t, tensor *const *in, void *row) {
    return op_add(t, op_scale(t, crf(t, in, row), 0.5), crf(t, in, row));
}

/* a: the width. */
static tensor *windows(tape *t, tensor *const *in, void *row) {
    return op_unfold(t, in[0], ((const engine_case *)row)->a);
}

static tensor *windows_twice(tape *t, tensor *const *in, void *row) {
    return op_add(t, windows(t, in, row), windows(t, in, row));
}

static tensor *masked_max(tape *t, tensor *const *in, void *row) {
    return op_masked_max(t, in[0], ((const engine_case *)row)->extra);
}

static tensor *masked_max_twice(tape *t, tensor *const *in, void *row) {
    return op_add(t, masked_max(t, in, row), masked_max(t, in, row));
}

static tensor *sum(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_sum(t, in[0]);
}

static tensor *sum_twice(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_add(t, op_sum(t, in[0]), op_sum(t, in[0]));
}

/* -- losses ------------------------------------------------------------------------------------ */

static const int32_t targets[6] = {0, 6, PAD, 3, PAD, 2};

/* a: ignored target, b: smoothing form, p: smoothing. */
static tensor *cross_entropy(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    return op_cross_entropy(t, in[0], c->extra, c->a, -1, c->p, c->b, NULL);
}

/* Uses the rows of the loss twice, scaled: the gradient of the logits gets two contributions. */
static tensor *cross_entropy_twice(tape *t, tensor *const *in, void *row) {
    return op_add(t, op_scale(t, cross_entropy(t, in, row), 0.5), cross_entropy(t, in, row));
}

static const int32_t many_targets[40];

/* -- matrix products --------------------------------------------------------------------------- */

static tensor *linear(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    return op_linear(t, in[0], in[1], c->input[2].rank ? in[2] : NULL);
}

static tensor *linear_skip(tape *t, tensor *const *in, void *row) {
    return op_add(t, in[0], linear(t, in, row));
}

/* Three products of x, the last without a bias, as in attention: y0 y1 + y2. */
static tensor *linears(tape *t, tensor *const *in, void *row) {
    (void)row;
    tensor *y[3], *const w[3] = {in[1], in[2], in[3]}, *const b[3] = {in[4], in[5], NULL};
    op_linears(t, in[0], 3, w, b, y);
    return op_add(t, op_multiply(t, y[0], y[1]), y[2]);
}

/* The second result is unused. The sum passes its gradient to the first result, which keeps it. */
static tensor *linears_unused(tape *t, tensor *const *in, void *row) {
    (void)row;
    tensor *y[3], *const w[3] = {in[1], in[2], in[3]}, *const b[3] = {NULL, in[4], NULL};
    op_linears(t, in[0], 3, w, b, y);
    return y[1] ? op_add(t, y[0], y[2]) : NULL;
}

/* Two of the three weights are the same tensor, and one result is used twice. */
static tensor *linears_tied(tape *t, tensor *const *in, void *row) {
    (void)row;
    tensor *y[3], *const w[3] = {in[1], in[2], in[1]}, *const b[3] = {in[3], NULL, in[3]};
    op_linears(t, in[0], 3, w, b, y);
    return op_add(t, op_multiply(t, y[1], y[2]), op_add(t, y[0], y[0]));
}

/* a: heads. Queries, keys and values are the same tensor. */
static tensor *attention_of_linear(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    tensor *y = op_linear(t, in[0], in[1], NULL);
    return op_attention(t, y, y, y, c->a, 1, NULL, c->b, c->p, NULL);
}

/* -- sums that pass their gradient on ---------------------------------------------------------- */

static tensor *reshape_of_sum(tape *t, tensor *const *in, void *row) {
    (void)row;
    return tape_reshape(t, op_add(t, in[0], in[1]), 1, (int64_t[]){20});
}

static tensor *sum_of_views(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_add(t, tape_reshape(t, in[0], 1, (int64_t[]){20}), in[0]);
}

/* A sum with two readers: the later one passes the gradient on, or the earlier one. */
static tensor *sum_and_reader(tape *t, tensor *const *in, void *row) {
    (void)row;
    tensor *z = op_add(t, in[0], in[1]);
    return op_add(t, z, op_tanh(t, z));
}

static tensor *reader_and_sum(tape *t, tensor *const *in, void *row) {
    (void)row;
    tensor *z = op_tanh(t, op_add(t, in[0], in[1])), *sum = op_add(t, z, in[0]);
    return op_multiply(t, sum, op_sigmoid(t, z));
}

/* -- images ------------------------------------------------------------------------------------ */

/* a: stride, b: padding. */
static tensor *conv2d(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    return op_conv2d(t, in[0], in[1], c->a, c->b);
}

static tensor *conv2d_direct(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    return op_conv2d_direct(t, in[0], in[1], c->a, c->b);
}

static tensor *conv2d_skip(tape *t, tensor *const *in, void *row) {
    return op_add(t, in[0], conv2d(t, in, row));
}

/* a: stride, b: channels. */
static tensor *shortcut(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    return op_shortcut(t, in[0], c->a, c->b);
}

static tensor *shortcut_skip(tape *t, tensor *const *in, void *row) {
    return op_add(t, shortcut(t, in, row), shortcut(t, in, row));
}

/* extra: mask. */
static tensor *masked_mean(tape *t, tensor *const *in, void *row) {
    return op_masked_mean(t, in[0], ((const engine_case *)row)->extra);
}

static tensor *masked_mean_skip(tape *t, tensor *const *in, void *row) {
    return op_add(t, masked_mean(t, in, row), masked_mean(t, in, row));
}

static tensor *average_pool(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_average_pool(t, in[0]);
}

static tensor *average_pool_skip(tape *t, tensor *const *in, void *row) {
    return op_add(t, average_pool(t, in, row), average_pool(t, in, row));
}

/* a: window, b: stride. */
static tensor *max_pool(tape *t, tensor *const *in, void *row) {
    const engine_case *c = row;
    return op_max_pool(t, in[0], c->a, c->b);
}

static tensor *max_pool_skip(tape *t, tensor *const *in, void *row) {
    return op_add(t, max_pool(t, in, row), max_pool(t, in, row));
}

static tensor *add_bias(tape *t, tensor *const *in, void *row) {
    (void)row;
    return op_add_bias(t, in[0], in[1]);
}

static tensor *add_bias_skip(tape *t, tensor *const *in, void *row) {
    return op_add(t, in[0], add_bias(t, in, row));
}

#define SHAPE1(a)                                                                                  \
    { 1, {a}, false }
#define SHAPE2(a, b)                                                                               \
    { 2, {a, b}, false }
#define SHAPE3(a, b, c)                                                                            \
    { 3, {a, b, c}, false }
#define SHAPE4(a, b, c, d)                                                                         \
    { 4, {a, b, c, d}, false }
#define OPTIONAL1(a)                                                                               \
    { 1, {a}, true }

/* clang-format off */
const engine_case engine_cases[] = {
    {.name = "relu", .build = relu,
     .input = {SHAPE2(7, 9)}},
    {.name = "relu of four dimensions", .build = relu,
     .input = {SHAPE4(2, 3, 2, 5)}},
    {.name = "relu large", .build = relu,
     .input = {SHAPE2(5, 5000)}, .large = true},
    {.name = "cube", .build = cube,
     .input = {SHAPE2(7, 9)}},
    {.name = "cube(x) + x large", .build = cube_skip,
     .input = {SHAPE2(7, 3001)}, .large = true},
    {.name = "add", .build = add,
     .input = {SHAPE2(4, 5), SHAPE2(4, 5)}},
    {.name = "add of other shape", .build = add,
     .input = {SHAPE2(4, 5), SHAPE1(20)}},
    {.name = "x + x", .build = add_self,
     .input = {SHAPE2(4, 5)}},
    {.name = "relu(x) + x", .build = add_skip,
     .input = {SHAPE2(4, 5)}},
    {.name = "relu(x) + x large", .build = add_skip,
     .input = {SHAPE2(7, 3001)}, .large = true},
    {.name = "sigmoid", .build = sigmoid,
     .input = {SHAPE2(7, 9)}},
    {.name = "x + sigmoid large", .build = sigmoid_skip,
     .input = {SHAPE2(7, 3001)}, .large = true},
    {.name = "tanh", .build = hyperbolic_tangent,
     .input = {SHAPE2(7, 9)}},
    {.name = "x + tanh large", .build = hyperbolic_tangent_skip,
     .input = {SHAPE2(7, 3001)}, .large = true},
    {.name = "product", .build = product,
     .input = {SHAPE2(4, 5), SHAPE2(4, 5)}},
    {.name = "product of other shape, large", .build = product,
     .input = {SHAPE2(7, 3001), SHAPE1(21007)}, .large = true},
    {.name = "x + x x", .build = product_self,
     .input = {SHAPE2(4, 5)}},
    {.name = "concat of rows", .build = concat,
     .input = {SHAPE2(2, 5), SHAPE2(1, 5), SHAPE2(4, 5)}, .a = 0},
    {.name = "concat in the middle", .build = concat,
     .input = {SHAPE3(2, 3, 4), SHAPE3(2, 1, 4)}, .a = 1},
    {.name = "concat of the last of four", .build = concat,
     .input = {SHAPE4(2, 3, 2, 4), SHAPE4(2, 3, 2, 1), SHAPE4(2, 3, 2, 2)}, .a = 3},
    {.name = "concat of one", .build = concat,
     .input = {SHAPE1(5)}, .a = 0},
    {.name = "concat with itself", .build = concat_self,
     .input = {SHAPE2(3, 2), SHAPE2(3, 4)}, .a = 1},
    {.name = "concat large", .build = concat,
     .input = {SHAPE3(20, 37, 30), SHAPE3(20, 37, 11)}, .large = true, .a = 2},
    {.name = "slice of rows", .build = slice,
     .input = {SHAPE2(5, 3)}, .a = 0, .b = 1},
    {.name = "slice in the middle", .build = slice,
     .input = {SHAPE4(2, 3, 4, 2)}, .a = 2, .b = 2},
    {.name = "slice of features", .build = slice,
     .input = {SHAPE3(2, 3, 5)}, .a = 2, .b = 0},
    {.name = "two slices of one tensor", .build = slice_overlapping,
     .input = {SHAPE3(2, 4, 3)}, .a = 1, .b = 1},
    {.name = "two slices large", .build = slice_overlapping,
     .input = {SHAPE3(20, 4, 300)}, .large = true, .a = 1, .b = 1},
    {.name = "scale", .build = scale,
     .input = {SHAPE3(2, 3, 4)}, .p = -1.7},
    {.name = "x + scale large", .build = scale_skip,
     .input = {SHAPE2(3, 6000)}, .large = true, .p = 0.3},
    {.name = "dropout", .build = dropout,
     .input = {SHAPE2(30, 30)}, .p = 0.3},
    {.name = "dropout of nothing", .build = dropout,
     .input = {SHAPE2(3, 3)}, .p = 0},
    {.name = "x + dropout", .build = dropout_skip,
     .input = {SHAPE2(3, 7)}, .p = 0.5},
    {.name = "x + dropout large", .build = dropout_skip,
     .input = {SHAPE2(9, 2111)}, .large = true, .p = 0.1},
    {.name = "embedding", .build = embedding,
     .input = {SHAPE2(8, 5)}, .a = 3, .b = 4, .p = 1.5, .extra = words},
    {.name = "embedding large", .build = embedding,
     .input = {SHAPE2(8, 300)}, .large = true, .a = 4, .b = 3, .p = 1, .extra = tokens},
    {.name = "embedding with positions", .build = embedding_positions,
     .input = {SHAPE2(8, 6)}, .a = 2, .b = 6, .p = 2, .extra = words},
    {.name = "features", .build = features,
     .input = {SHAPE2(8, 5), SHAPE2(5, 3)}, .a = 3, .extra = numbers},
    {.name = "features large", .build = features,
     .input = {SHAPE2(8, 100), SHAPE2(5, 300)}, .large = true, .a = 3, .extra = numbers},
    {.name = "attention", .build = attention,
     .input = {SHAPE3(2, 3, 8), SHAPE3(2, 5, 8), SHAPE3(2, 5, 8)}, .a = 2},
    {.name = "attention of wide heads", .build = attention,
     .input = {SHAPE3(2, 3, 32), SHAPE3(2, 18, 32), SHAPE3(2, 18, 32)}, .a = 2},
    {.name = "attention with narrow values", .build = attention,
     .input = {SHAPE3(2, 3, 32), SHAPE3(2, 5, 32), SHAPE3(2, 5, 6)}, .a = 2, .p = 0.1},
    {.name = "attention masked", .build = attention,
     .input = {SHAPE3(3, 2, 4), SHAPE3(3, 6, 4), SHAPE3(3, 6, 4)}, .a = 1, .extra = keys},
    {.name = "attention causal", .build = attention,
     .input = {SHAPE3(2, 5, 6), SHAPE3(2, 5, 6), SHAPE3(2, 5, 6)}, .a = 3, .b = true},
    {.name = "attention causal masked dropout", .build = attention,
     .input = {SHAPE3(3, 6, 32), SHAPE3(3, 6, 32), SHAPE3(3, 6, 32)},
     .a = 2, .b = true, .p = 0.25, .extra = keys},
    {.name = "attention to itself", .build = attention_self,
     .input = {SHAPE3(2, 5, 16)}, .a = 1, .b = true},
    {.name = "attention of views", .build = attention_views,
     .input = {SHAPE2(8, 6), SHAPE3(2, 4, 6)}, .a = 2, .p = 0.1},
    {.name = "attention large", .build = attention,
     .input = {SHAPE3(4, 37, 64), SHAPE3(4, 29, 64), SHAPE3(4, 29, 64)},
     .large = true, .a = 4, .p = 0.1},
    {.name = "attention of values of another width", .build = attention,
     .input = {SHAPE3(2, 3, 8), SHAPE3(2, 5, 8), SHAPE3(2, 5, 6)}, .a = 2},
    {.name = "attention of wide values, dropout", .build = attention,
     .input = {SHAPE3(3, 2, 2), SHAPE3(3, 6, 2), SHAPE3(3, 6, 32)}, .a = 1, .p = 0.3, .extra = keys},
    {.name = "tener attention", .build = tener,
     .input = {SHAPE3(2, 4, 24), SHAPE2(2, 4), SHAPE2(2, 4)}, .a = 2},
    {.name = "tener attention scaled, masked, dropout", .build = tener,
     .input = {SHAPE3(3, 6, 18), SHAPE2(1, 6), SHAPE2(1, 6)},
     .a = 1, .b = true, .p = 0.2, .extra = keys},
    {.name = "tener attention of one word", .build = tener,
     .input = {SHAPE3(2, 1, 6), SHAPE1(2), SHAPE1(2)}, .a = 1},
    {.name = "tener attention large", .build = tener,
     .input = {SHAPE3(5, 23, 96), SHAPE2(4, 8), SHAPE2(4, 8)}, .large = true, .a = 4, .p = 0.1},
    {.name = "cross entropy", .build = cross_entropy,
     .input = {SHAPE2(6, 7)}, .a = PAD, .extra = targets},
    {.name = "cross entropy, nothing ignored", .build = cross_entropy,
     .input = {SHAPE3(2, 3, 7)}, .a = -1, .p = 0.1, .extra = targets},
    {.name = "cross entropy, smoothing all", .build = cross_entropy,
     .input = {SHAPE2(6, 7)}, .a = PAD, .b = SMOOTHING_ALL, .p = 0.2, .extra = targets},
    {.name = "cross entropy, smoothing others", .build = cross_entropy,
     .input = {SHAPE2(6, 7)}, .a = PAD, .b = SMOOTHING_OTHERS, .p = 0.2, .extra = targets},
    {.name = "cross entropy twice", .build = cross_entropy_twice,
     .input = {SHAPE2(6, 7)}, .a = PAD, .p = 0.1, .extra = targets},
    {.name = "cross entropy large", .build = cross_entropy,
     .input = {SHAPE2(40, 700)}, .large = true, .a = -1, .p = 0.1, .extra = many_targets},
    {.name = "multilinear", .build = multilinear,
     .input = {SHAPE3(2, 3, 4), SHAPE3(2, 3, 4), SHAPE3(2, 3, 4), SHAPE2(3, 4), SHAPE2(1, 4),
               SHAPE1(4), SHAPE1(4)}},
    {.name = "multilinear causal with memory, two cores", .build = multilinear,
     .input = {SHAPE3(2, 3, 4), SHAPE3(2, 5, 4), SHAPE3(2, 5, 4), SHAPE2(5, 4), SHAPE2(2, 4),
               SHAPE1(4), SHAPE1(4)}, .a = true},
    {.name = "multilinear of one tensor", .build = multilinear_self,
     .input = {SHAPE3(2, 3, 4), SHAPE2(3, 4), SHAPE2(1, 4), SHAPE1(4), SHAPE1(4)}, .a = true},
    {.name = "multilinear large", .build = multilinear,
     .input = {SHAPE3(7, 12, 16), SHAPE3(7, 15, 16), SHAPE3(7, 15, 16), SHAPE2(15, 16),
               SHAPE2(2, 16), SHAPE1(16), SHAPE1(16)}, .large = true, .a = true},
    {.name = "xl attention", .build = xl_attention,
     .input = {SHAPE3(2, 3, 4), SHAPE3(2, 3, 4), SHAPE3(2, 3, 4), SHAPE2(3, 4), SHAPE2(2, 2),
               SHAPE2(2, 2)}, .a = 2},
    {.name = "xl attention with memory, clamped distances, same length", .build = xl_attention,
     .input = {SHAPE3(2, 3, 4), SHAPE3(2, 7, 4), SHAPE3(2, 7, 4), SHAPE2(3, 4), SHAPE2(2, 2),
               SHAPE2(2, 2)}, .a = 2, .b = 4},
    {.name = "xl attention of one tensor, more distances than keys", .build = xl_attention_self,
     .input = {SHAPE3(2, 3, 4), SHAPE2(6, 4), SHAPE2(1, 4), SHAPE2(1, 4)}, .a = 1},
    {.name = "xl attention with dropout", .build = xl_attention,
     .input = {SHAPE3(2, 3, 4), SHAPE3(2, 5, 4), SHAPE3(2, 5, 4), SHAPE2(5, 4), SHAPE2(2, 2),
               SHAPE2(2, 2)}, .a = 2, .p = 0.4},
    {.name = "xl attention large", .build = xl_attention,
     .input = {SHAPE3(5, 33, 32), SHAPE3(5, 70, 32), SHAPE3(5, 70, 32), SHAPE2(60, 32),
               SHAPE2(4, 8), SHAPE2(4, 8)}, .large = true, .a = 4, .b = 64, .p = 0.1},
    {.name = "adaptive softmax", .build = adaptive,
     .input = {SHAPE2(5, 3), SHAPE2(9, 3), SHAPE1(9), SHAPE2(2, 3), SHAPE1(2)},
     .extra = all_clusters},
    {.name = "adaptive softmax without the last cluster", .build = adaptive,
     .input = {SHAPE2(5, 3), SHAPE2(9, 3), SHAPE1(9), SHAPE2(2, 3), SHAPE1(2)},
     .extra = few_clusters},
    {.name = "adaptive softmax large", .build = adaptive,
     .input = {SHAPE2(40, 32), SHAPE2(700, 32), SHAPE1(700), SHAPE2(2, 32), SHAPE1(2)},
     .large = true, .extra = many_words},
    {.name = "crf", .build = crf,
     .input = {SHAPE3(3, 4, 3), SHAPE2(3, 3), SHAPE1(3), SHAPE1(3)}, .extra = tags},
    {.name = "crf of one word and one tag", .build = crf,
     .input = {SHAPE3(2, 1, 1), SHAPE2(1, 1), SHAPE1(1), SHAPE1(1)}, .extra = no_tags},
    {.name = "crf twice", .build = crf_twice,
     .input = {SHAPE3(3, 4, 3), SHAPE2(3, 3), SHAPE1(3), SHAPE1(3)}, .extra = tags},
    {.name = "crf large", .build = crf,
     .input = {SHAPE3(7, 9, 10), SHAPE2(10, 10), SHAPE1(10), SHAPE1(10)}, .large = true,
     .extra = many_tags},
    {.name = "windows", .build = windows,
     .input = {SHAPE3(2, 4, 3)}, .a = 3},
    {.name = "windows wider than the sequence, twice", .build = windows_twice,
     .input = {SHAPE3(3, 2, 2)}, .a = 7},
    {.name = "windows large", .build = windows,
     .input = {SHAPE3(30, 12, 30)}, .large = true, .a = 3},
    {.name = "masked max", .build = masked_max,
     .input = {SHAPE3(3, 6, 4)}, .extra = keys},
    {.name = "max twice", .build = masked_max_twice,
     .input = {SHAPE3(2, 5, 3)}},
    {.name = "max large", .build = masked_max,
     .input = {SHAPE3(40, 12, 30)}, .large = true},
    {.name = "sum", .build = sum, .input = {SHAPE2(4, 5)}},
    {.name = "sum twice", .build = sum_twice, .input = {SHAPE2(4, 5)}},
    {.name = "linear", .build = linear,
     .input = {SHAPE2(3, 4), SHAPE2(5, 4), OPTIONAL1(5)}},
    {.name = "linear without bias", .build = linear,
     .input = {SHAPE3(2, 3, 4), SHAPE2(5, 4)}},
    {.name = "x + linear", .build = linear_skip,
     .input = {SHAPE2(6, 5), SHAPE2(5, 5), OPTIONAL1(5)}},
    {.name = "linear large", .build = linear,
     .input = {SHAPE2(260, 130), SHAPE2(200, 130), OPTIONAL1(200)}, .large = true},
    {.name = "linears", .build = linears,
     .input = {SHAPE3(2, 3, 5), SHAPE2(4, 5), SHAPE2(4, 5), SHAPE2(4, 5), OPTIONAL1(4),
               OPTIONAL1(4)}},
    {.name = "linears of which one is not used", .build = linears_unused,
     .input = {SHAPE2(6, 5), SHAPE2(4, 5), SHAPE2(4, 5), SHAPE2(4, 5), OPTIONAL1(4)}},
    {.name = "linears of one weight twice", .build = linears_tied,
     .input = {SHAPE2(6, 5), SHAPE2(4, 5), SHAPE2(4, 5), OPTIONAL1(4)}},
    {.name = "linears of one weight twice, large", .build = linears_tied,
     .input = {SHAPE2(300, 96), SHAPE2(64, 96), SHAPE2(64, 96), OPTIONAL1(64)}, .large = true},
    {.name = "attention of one linear", .build = attention_of_linear,
     .input = {SHAPE3(2, 3, 5), SHAPE2(4, 5)}, .a = 2, .b = 1},
    {.name = "reshape of a sum", .build = reshape_of_sum,
     .input = {SHAPE2(4, 5), SHAPE2(4, 5)}},
    {.name = "view of x + x", .build = sum_of_views,
     .input = {SHAPE2(4, 5)}},
    {.name = "z + tanh(z), z = x + y", .build = sum_and_reader,
     .input = {SHAPE2(4, 5), SHAPE2(4, 5)}},
    {.name = "(z + x) sigmoid(z), z = tanh(x + y)", .build = reader_and_sum,
     .input = {SHAPE2(4, 5), SHAPE2(4, 5)}},
    {.name = "conv2d", .build = conv2d,
     .input = {SHAPE4(2, 5, 4, 3), SHAPE4(4, 3, 3, 3)}, .a = 1, .b = 1},
    {.name = "conv2d without Winograd's form", .build = conv2d_direct,
     .input = {SHAPE4(2, 5, 4, 3), SHAPE4(4, 3, 3, 3)}, .a = 1, .b = 1},
    {.name = "conv2d stride 2", .build = conv2d,
     .input = {SHAPE4(2, 6, 6, 2), SHAPE4(4, 3, 3, 2)}, .a = 2, .b = 1},
    {.name = "conv2d 1x1 stride 2", .build = conv2d,
     .input = {SHAPE4(2, 5, 5, 3), SHAPE4(4, 1, 1, 3)}, .a = 2, .b = 0},
    {.name = "x + conv2d", .build = conv2d_skip,
     .input = {SHAPE4(2, 4, 4, 3), SHAPE4(3, 3, 3, 3)}, .a = 1, .b = 1},
    {.name = "conv2d large", .build = conv2d,
     .input = {SHAPE4(5, 16, 16, 16), SHAPE4(32, 3, 3, 16)}, .large = true, .a = 2, .b = 1},
    {.name = "shortcut", .build = shortcut,
     .input = {SHAPE4(2, 5, 4, 3)}, .a = 2, .b = 7},
    {.name = "shortcut that changes nothing", .build = shortcut,
     .input = {SHAPE4(2, 3, 3, 4)}, .a = 1, .b = 4},
    {.name = "shortcut + shortcut large", .build = shortcut_skip,
     .input = {SHAPE4(5, 16, 16, 16)}, .large = true, .a = 2, .b = 32},
    {.name = "average pool", .build = average_pool,
     .input = {SHAPE4(2, 3, 4, 5)}},
    {.name = "average pool twice, large", .build = average_pool_skip,
     .input = {SHAPE4(7, 16, 16, 32)}, .large = true},
    {.name = "masked mean", .build = masked_mean,
     .input = {SHAPE3(3, 6, 5)}, .extra = keys},
    {.name = "masked mean twice, large", .build = masked_mean_skip,
     .input = {SHAPE3(7, 40, 100)}, .large = true},
    {.name = "max pool", .build = max_pool,
     .input = {SHAPE4(2, 5, 4, 2)}, .a = 2, .b = 2}, /* all values differ by more than a step */
    {.name = "max pool of windows that overlap", .build = max_pool,
     .input = {SHAPE4(2, 5, 6, 1)}, .a = 3, .b = 2},
    {.name = "max pool with gaps", .build = max_pool,
     .input = {SHAPE4(2, 5, 8, 1)}, .a = 2, .b = 3},
    {.name = "max pool twice, large", .build = max_pool_skip,
     .input = {SHAPE4(7, 16, 16, 32)}, .large = true, .a = 3, .b = 2},
    {.name = "add bias", .build = add_bias,
     .input = {SHAPE4(2, 3, 2, 5), SHAPE1(5)}},
    {.name = "x + add bias, large", .build = add_bias_skip,
     .input = {SHAPE4(5, 16, 16, 16), SHAPE1(16)}, .large = true},
};
/* clang-format on */

const int engine_case_count = sizeof engine_cases / sizeof *engine_cases;
