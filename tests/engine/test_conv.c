/* op_conv2d against loops in double: whole chunks, partial chunks, odd shapes. Also im2col alone,
 * accumulated gradients, equal bytes for any number of threads and every call, central differences,
 * wrong shapes. */
#include <stdlib.h>

#include "conv_trial.h"
#include "engine/gemm/gemm.h"
#include "engine/ops/image/image_ops.h"
#include "reals.h"
#include "testing/check.h"
#include "testing/gradcheck.h"

static const bool is_float = sizeof(real) == 4;

/* Inputs as tensors of a tape. */
typedef struct layer {
    tensor *x, *w, *y;
} layer;

static layer layer_create(tape *t, const conv_trial *from) {
    const conv_shape *s = &from->s;
    layer l = {0};
    l.x = tape_wrap(t, 4, (int64_t[]){s->images, s->height, s->width, s->in}, from->x);
    l.w = tape_wrap(t, 4, (int64_t[]){s->out, s->kernel_h, s->kernel_w, s->in}, from->w);
    assert_true(l.x && l.w);
    l.x->wants_grad = l.w->wants_grad = true;
    return l;
}

static void layer_run(tape *t, layer *l, const conv_trial *from) {
    l->y = op_conv2d(t, l->x, l->w, (int)from->s.stride, (int)from->s.pad);
    reals_backward(t, l->y, from->dy);
    t->last = NULL; /* the nodes have been run */
}

static void check_scaled(const char *name, const real *got, const double *want, int64_t count,
                         double times) {
    double *scaled = conv_trial_zeros(count), largest = 0;
    for (int64_t i = 0; i < count; i++) {
        scaled[i] = times * want[i];
        double size = scaled[i] < 0 ? -scaled[i] : scaled[i];
        if (size > largest) largest = size;
    }
    reals_check(name, got, scaled, count, 0, (is_float ? 3e-6 : 1e-14) * largest);
    free(scaled);
}

static void check_layer(const layer *l, const conv_trial *t, double times) {
    check_scaled("y", l->y->value, t->y, l->y->count, 1);
    check_scaled("dx", l->x->grad, t->dx, l->x->count, times);
    check_scaled("dw", l->w->grad, t->dw, l->w->count, times);
}

static void check_op(const conv_trial *from, int threads) {
    tape *t = reals_tape(threads);
    layer l = layer_create(t, from);
    layer_run(t, &l, from);
    check_layer(&l, from, 1);
    layer_run(t, &l, from); /* prepared kernels once more, gradients add */
    check_layer(&l, from, 2);
    tape_free(t);
}

static void check_reference(const conv_trial *from, int threads) {
    const conv_shape *s = &from->s;
    sr_failure why = {0};
    real *got = malloc((size_t)(conv_trial_x(s) + conv_trial_w(s) + conv_trial_y(s)) * sizeof *got);
    assert_non_null(got);
    real *dx = got, *dw = dx + conv_trial_x(s), *y = dw + conv_trial_w(s);
    conv_arrays forward = {from->x, from->w, y, false}, data = {dx, from->w, from->dy, false};
    conv_arrays weights = {from->x, dw, from->dy, false};
    check_ok(conv_im2col(threads, CONV_FORWARD, s, &forward, &why), &why);
    for (int times = 1; times <= 2; times++) {
        check_ok(conv_im2col(threads, CONV_BACKWARD_DATA, s, &data, &why), &why);
        check_ok(conv_im2col(threads, CONV_BACKWARD_WEIGHTS, s, &weights, &why), &why);
        check_scaled("im2col y", y, from->y, conv_trial_y(s), 1);
        check_scaled("im2col dx", dx, from->dx, conv_trial_x(s), times);
        check_scaled("im2col dw", dw, from->dw, conv_trial_w(s), times);
        data.add = weights.add = true;
    }
    free(got);
}

/* The shapes of ResNet20 at several batch sizes, and shapes that no blocking is designed for. */
static void values_and_gradients(void **state) {
    (void)state;
    const conv_shape shapes[] = {
        conv_trial_shape(19, 32, 32, 3, 16, 3, 1, 1), conv_trial_shape(16, 16, 16, 16, 16, 3, 1, 1),
        conv_trial_shape(9, 16, 16, 16, 32, 3, 2, 1), conv_trial_shape(13, 8, 8, 32, 64, 3, 2, 1),
        conv_trial_shape(40, 8, 8, 64, 64, 3, 1, 1),  conv_trial_shape(1, 5, 6, 3, 4, 3, 1, 1),
        conv_trial_shape(2, 5, 7, 3, 4, 3, 2, 1),     conv_trial_shape(8, 9, 9, 1, 3, 5, 1, 0),
        conv_trial_shape(17, 8, 8, 4, 6, 1, 2, 0),    conv_trial_shape(3, 6, 6, 20, 17, 3, 1, 1),
        conv_trial_shape(10, 28, 28, 1, 32, 5, 1, 2), conv_trial_shape(1, 1, 1, 1, 1, 1, 1, 0),
        conv_trial_shape(11, 7, 6, 5, 33, 4, 3, 2),
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        conv_trial t = conv_trial_create(shapes[i]);
        check_op(&t, 2);
        check_reference(&t, 2);
        conv_trial_free(&t);
    }
}

static void same_bytes_for_any_threads(void **state) {
    (void)state;
    const conv_shape shapes[] = {conv_trial_shape(77, 16, 16, 16, 32, 3, 2, 1),
                                 conv_trial_shape(80, 8, 8, 64, 64, 3, 1, 1),
                                 conv_trial_shape(21, 9, 9, 3, 5, 3, 1, 1)};
    for (int i = 0; i < 3; i++) {
        conv_trial from = conv_trial_create(shapes[i]);
        tape *t[4];
        layer l[4];
        for (int k = 0; k < 4; k++) {
            t[k] = reals_tape(k + 1);
            l[k] = layer_create(t[k], &from);
            layer_run(t[k], &l[k], &from);
            layer_run(t[k], &l[k], &from);
            reals_check_bytes("y", l[k].y->value, l[0].y->value, l[0].y->count);
            reals_check_bytes("dx", l[k].x->grad, l[0].x->grad, l[0].x->count);
            reals_check_bytes("dw", l[k].w->grad, l[0].w->grad, l[0].w->count);
        }
        for (int k = 0; k < 4; k++) tape_free(t[k]);
        conv_trial_free(&from);
    }
}

/* Differences of float sums are too inexact. */
#ifndef REAL_DOUBLE
#define DOUBLE_TESTS
#else
#define DOUBLE_TESTS cmocka_unit_test(central_differences),
static tensor *build_conv(tape *t, tensor *const *in, void *context) {
    const conv_shape *s = context;
    return op_conv2d(t, in[0], in[1], (int)s->stride, (int)s->pad);
}

static void central_differences(void **state) {
    (void)state;
    conv_shape shapes[] = {conv_trial_shape(2, 5, 4, 3, 2, 3, 1, 1),
                           conv_trial_shape(9, 5, 6, 2, 3, 3, 2, 1)};
    for (int i = 0; i < 2; i++) {
        conv_shape *s = &shapes[i];
        tensor *in[2] = {
            gradcheck_tensor(4, (int64_t[]){s->images, s->height, s->width, s->in}, 1, true),
            gradcheck_tensor(4, (int64_t[]){s->out, s->kernel_h, s->kernel_w, s->in}, 2, true)};
        assert_true(in[0] && in[1]);
        gradcheck_result r;
        sr_failure why = {0};
        check_ok(gradcheck(build_conv, in, 2, s, 1e-4, &r, &why), &why);
        assert_true(r.worst < 1e-6);
        gradcheck_tensor_free(in[0]), gradcheck_tensor_free(in[1]);
    }
}

#endif

static void wrong_shapes_and_null(void **state) {
    (void)state;
    static const struct {
        int64_t x[4], w[4];
        int x_rank, w_rank, stride, pad;
        const char *text;
    } wrong[] = {
        {{2, 5, 5, 3}, {4, 3, 3, 2}, 4, 4, 1, 1, "input [2, 5, 5, 3], weight [4, 3, 3, 2]"},
        {{2, 2, 9, 2}, {4, 3, 3, 2}, 4, 4, 1, 0, "padding 0"},
        {{2, 9, 2, 2}, {4, 3, 3, 2}, 4, 4, 1, 0, "input [2, 9, 2, 2]"},
        {{2, 9, 2}, {4, 3, 3, 1}, 3, 4, 1, 1, "input [2, 9, 2, 1]"},
        {{2, 9, 9, 1}, {4, 3, 3}, 4, 3, 1, 1, "weight [4, 3, 3, 1]"},
        {{2, 9, 9, 2}, {4, 3, 3, 2}, 4, 4, 0, 1, "stride 0"},
        {{2, 9, 9, 2}, {4, 3, 3, 2}, 4, 4, 1, -1, "padding -1"},
    };
    tape *t = reals_tape(1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tape_reset(t, rng_create(1), true, true);
        tensor *x = reals_tensor(t, wrong[i].x_rank, wrong[i].x, 1);
        tensor *w = reals_tensor(t, wrong[i].w_rank, wrong[i].w, 2);
        assert_null(op_conv2d(t, NULL, w, 1, 1));
        assert_null(op_conv2d(t, x, NULL, 1, 1));
        assert_null(tape_failure(t));
        assert_null(op_conv2d(t, x, w, wrong[i].stride, wrong[i].pad));
        check_failure(tape_failure(t), SR_USAGE, wrong[i].text);
    }
    tape_free(t);
}

int main(void) {
    gemm_setup(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_gradients),
        cmocka_unit_test(same_bytes_for_any_threads),
        DOUBLE_TESTS cmocka_unit_test(wrong_shapes_and_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
