/* vectors_images.c -- conv.h5 and resnet.h5: convolutions, and ResNet's shortcut, basic block,
 * maximum and average pool. */
#include <stdio.h>
#include <string.h>

#include "engine/ops/image/image_ops.h"
#include "engine/ops/ops.h"
#include "nets/layers/image_layers.h"
#include "vectors_layers.h"

/* y and d_x, and nothing else. */
static void compare_x_y(model_case *c, const tensor *x, const tensor *y) {
    case_compare_reals(c, "y", y->value, y->count, NULL, 1);
    case_compare_reals(c, "d_x", x->grad, x->count, NULL, 1);
}

/* -- convolutions */

/* y + b by channel: our convolutions have no bias; a linear map by the unit matrix has. */
static tensor *add_bias(tape *t, tensor *y, tensor *b) {
    tensor *unit = y ? tape_tensor(t, 2, (int64_t[]){b->count, b->count}) : NULL;
    if (!unit) return NULL;
    for (int64_t i = 0; i < unit->count; i++) unit->value[i] = i % (b->count + 1) == 0;
    return op_linear(t, y, unit, b);
}

static void run_conv(model_case *c, tape *t) {
    const double stride = case_number(c, "stride"), pad = case_number(c, "pad");
    tensor *x = case_tensor(c, t, "in/x", 4), *w = case_tensor(c, t, "in/w", 4);
    tensor *b = case_has(c, "in/b") ? case_tensor(c, t, "in/b", 1) : NULL;
    if (!case_fine(c)) return;
    tensor *y = op_conv2d(t, x, w, (int)stride, (int)pad);
    if (b) y = add_bias(t, y, b);
    case_backward(c, t, y, NULL);
    if (!case_fine(c)) return;
    compare_x_y(c, x, y);
    case_compare_reals(c, "d_w", w->grad, w->count, NULL, 1);
    if (b) case_compare_reals(c, "d_b", b->grad, b->count, NULL, 1);
}

void check_conv(model_case *c) {
    tape *t = case_tape(c);
    if (t) run_conv(c, t);
    tape_free(t);
}

/* -- parts of ResNet */

static const layer_name block_names[] = {{"block.conv1.weight", "w1"},
                                         {"block.conv2.weight", "w2"},
                                         {"block.norm1.gamma", "g1"},
                                         {"block.norm1.beta", "c1"},
                                         {"block.norm2.gamma", "g2"},
                                         {"block.norm2.beta", "c2"},
                                         {NULL, NULL}};

static void run_block(layer_case *l) {
    model_case *c = l->c;
    int64_t dim[4];
    const double stride = case_number(c, "stride");
    if (!case_read(c, "in/w1", 4, dim)) return;
    site_builder b = {l->m, &l->options, &l->why};
    basic_block block = basic_block_init(&b, "block", dim[3], dim[0], false);
    block.first.stride = (int)stride;
    layer_case_set(l, block_names);
    image_pass p = {.pass = &l->pass};
    tensor *x = case_tensor(c, l->t, "in/x", 4);
    if (!x || !case_fine(c)) return;
    tensor *y = basic_block_apply(&block, &p, x);
    case_backward(c, l->t, y, NULL);
    if (case_fine(c)) layer_case_compare(l, block_names, x, y, NULL);
}

static void check_block(model_case *c) {
    layer_case l;
    if (layer_case_open(&l, c, "resnet20", "bn")) run_block(&l);
    layer_case_close(&l);
}

/* The stride that brings x's height to dy's. */
static tensor *shortcut(model_case *c, tape *t, tensor *x) {
    int64_t dim[4];
    if (!case_read(c, "in/dy", 4, dim)) return NULL;
    return op_shortcut(t, x, (int)((x->dim[1] + dim[1] - 1) / dim[1]), dim[3]);
}

static tensor *average_pool(model_case *c, tape *t, tensor *x) {
    (void)c;
    return op_average_pool(t, x);
}

static tensor *max_pool(model_case *c, tape *t, tensor *x) {
    (void)c;
    return op_max_pool(t, x, 2, 2); /* "max pool 2x2" */
}

typedef tensor *image_op(model_case *c, tape *t, tensor *x);

static void run_op(model_case *c, tape *t, image_op *op) {
    tensor *x = case_tensor(c, t, "in/x", 4);
    if (!x) return;
    tensor *y = op(c, t, x);
    case_backward(c, t, y, NULL);
    if (case_fine(c)) compare_x_y(c, x, y);
}

static void check_op(model_case *c, image_op *op) {
    tape *t = case_tape(c);
    if (t) run_op(c, t, op);
    tape_free(t);
}

void check_resnet(model_case *c) {
    const char *kind = case_text(c, "kind");
    if (!strcmp(kind, "basic_block"))
        check_block(c);
    else if (!strcmp(kind, "shortcut_a"))
        check_op(c, shortcut);
    else if (!strcmp(kind, "gap"))
        check_op(c, average_pool);
    else if (!strcmp(kind, "maxpool"))
        check_op(c, max_pool);
    else if (*kind)
        case_fail(c, "kind '%s' is not known", kind);
}
