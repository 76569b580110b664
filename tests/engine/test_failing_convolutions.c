/* test_failing_convolutions.c -- a convolution while an allocation or a oneDNN call fails. The tape
 * has the reason, or the result is the usual one. Nothing leaks. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#define DEEDS_WITHOUT_HDF5
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conv_trial.h"
#include "engine/ops/image/image_ops.h"
#include "testing/failing_deeds.h"

/* -- oneDNN ------------------------------------------------------------------------------------ */

/* Status codes of its functions; only one file may include oneDNN's header. */
enum { DNNL_OUT_OF_MEMORY = 1, DNNL_INVALID_ARGUMENTS = 2, DNNL_UNIMPLEMENTED = 3 };
static int gives;

#define FAILING_DNNL(name, parameters, arguments)                                                  \
    int name parameters;                                                                           \
    int name parameters {                                                                          \
        FAILING_REAL(int, name, parameters);                                                       \
        if (!failing_now(FAILING_SYSTEM, __builtin_return_address(0)))                             \
            return original.call arguments;                                                        \
        return gives;                                                                              \
    }

FAILING_DNNL(dnnl_engine_create, (void *a, int b, size_t c), (a, b, c))
FAILING_DNNL(dnnl_memory_create, (void *a, const void *b, void *c, void *d), (a, b, c, d))
FAILING_DNNL(dnnl_memory_desc_init_by_tag, (void *a, int b, const void *c, int d, int e),
             (a, b, c, d, e))
FAILING_DNNL(dnnl_memory_set_data_handle, (void *a, void *b), (a, b))
FAILING_DNNL(dnnl_primitive_attr_create, (void *a), (a))
FAILING_DNNL(dnnl_primitive_attr_set_scratchpad_mode, (void *a, int b), (a, b))
FAILING_DNNL(dnnl_primitive_create, (void *a, const void *b), (a, b))
FAILING_DNNL(dnnl_primitive_desc_create, (void *a, const void *b, void *c, void *d, void *e),
             (a, b, c, d, e))
FAILING_DNNL(dnnl_primitive_desc_query, (void *a, int b, int c, void *d), (a, b, c, d))
FAILING_DNNL(dnnl_primitive_execute, (void *a, void *b, int c, const void *d), (a, b, c, d))
FAILING_DNNL(dnnl_reorder_primitive_desc_create,
             (void *a, const void *b, void *c, const void *d, void *e, void *f), (a, b, c, d, e, f))
FAILING_DNNL(dnnl_stream_create, (void *a, void *b, unsigned c), (a, b, c))

/* -- a convolution ----------------------------------------------------------------------------- */

static conv_trial trial;
static bool rounded; /* to bfloat16 */

static void check_array(const char *name, const real *got, const double *want, int64_t count,
                        double times) {
    double largest = 0;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, times * fabs(want[i]));
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - times * want[i]) <= 0.03 * largest))
            complain(name, "%g, not %g", (double)got[i], times * want[i]);
}

static bool set_gradient(tape *t, tensor *y) {
    bool add;
    real *grad = y ? tape_grad(t, y, &add) : NULL;
    if (grad) memcpy(grad, trial.dy, (size_t)y->count * sizeof *grad);
    return grad != NULL;
}

/* The same convolution twice: the second adds to existing gradients. */
static sr_status convolve(sr_failure *why) {
    const conv_shape *s = &trial.s;
    const int64_t one = 1;
    tape *t = tape_create(1, why);
    if (!t) return why->status;
    t->bf16 = rounded;
    tape_reset(t, rng_create(1), true, true);
    tensor *x = tape_wrap(t, 4, (int64_t[]){s->images, s->height, s->width, s->in}, trial.x);
    tensor *w = tape_wrap(t, 4, (int64_t[]){s->out, s->kernel_h, s->kernel_w, s->in}, trial.w);
    tensor *loss = tape_tensor(t, 1, &one);
    if (x && w && loss) x->wants_grad = w->wants_grad = loss->wants_grad = true;
    tensor *y = op_conv2d_direct(t, x, w, (int)s->stride, (int)s->pad);
    tensor *z = y ? op_conv2d_direct(t, x, w, (int)s->stride, (int)s->pad) : NULL;
    if (loss && set_gradient(t, y) && set_gradient(t, z)) tape_backward(t, loss, 1);
    const sr_status status = tape_status(t, why);
    if (status == SR_OK) {
        check_array("y", y->value, trial.y, y->count, 1);
        check_array("dx", x->grad, trial.dx, x->count, 2);
        check_array("dw", w->grad, trial.dw, w->count, 2);
    }
    tape_free(t);
    return status;
}

static void each_shape(failing_kind kind) {
    for (int i = 0; i < 2; i++) {
        /* several chunks of images and a rest; a rest alone */
        trial = conv_trial_create(conv_trial_shape(i ? 3 : 19, 6, 6, 16, 16, 3, 1, 1));
        const deed d = {.name = i ? "a part of a chunk" : "chunks", .run = convolve, .file = ""};
        deed_fail_each(&d, kind);
        conv_trial_free(&trial);
    }
}

static void test_allocations(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        rounded = i;
        each_shape(FAILING_ALLOCATIONS);
    }
    rounded = false;
}

/* deed_fail_each expects the word memory, which holds only for allocations. */
static sr_status convolve_with_reason(sr_failure *why) {
    const sr_status status = convolve(why);
    const char *wanted = gives == DNNL_OUT_OF_MEMORY ? "out of memory" : "oneDNN: status 2";
    if (status != SR_OK && !strstr(why->text, wanted) &&
        !strstr(why->text, "out of memory for convolutions"))
        complain("oneDNN", "'%s', not %s", why->text, wanted);
    return status;
}

static void test_onednn(void **state) {
    (void)state;
    sr_failure why = {0};
    static const int results[] = {DNNL_OUT_OF_MEMORY, DNNL_INVALID_ARGUMENTS, DNNL_UNIMPLEMENTED};
    trial = conv_trial_create(conv_trial_shape(19, 6, 6, 16, 16, 3, 1, 1));
    failing_begin(FAILING_SYSTEM, 0);
    check_ok(convolve(&why), &why);
    failing_end();
    if (failing_made > 0)
        for (int i = 0; i < 3; i++) {
            const deed d = {
                .name = "oneDNN", .run = i == 2 ? convolve : convolve_with_reason, .file = ""};
            gives = results[i];
            deed_fail_each(&d, FAILING_SYSTEM);
        }
    conv_trial_free(&trial);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_onednn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
