/* conv_winograd.c against loops in double. Its rounding beside direct sums, at the models' shapes;
 * shapes that tiles do not divide; accumulation; equal bytes for any number of threads. Also the
 * shapes that it supports, and its use by op_conv2d but not by the direct op. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conv_trial.h"
#include "engine/gemm/gemm.h"
#include "engine/ops/image/image_ops.h"
#include "reals.h"
#include "testing/check.h"

static const double epsilon = sizeof(real) == 4 ? FLT_EPSILON : DBL_EPSILON;
static const char *const names[] = {"y", "dx", "dw"};

/* Result of a pass, and the expected one. */
typedef struct passed {
    real *got;
    const double *want;
    int64_t count;
} passed;

typedef struct engine {
    conv_state *state; /* for direct sums */
    scratch_memory memory;
} engine;

static passed run_pass(engine *e, bool direct, int threads, conv_pass pass, const conv_trial *t,
                       bool add) {
    const conv_shape *s = &t->s;
    const int64_t counts[] = {conv_trial_y(s), conv_trial_x(s), conv_trial_w(s)};
    const double *const wants[] = {t->y, t->dx, t->dw};
    passed p = {NULL, wants[pass], counts[pass]};
    p.got = malloc((size_t)p.count * sizeof *p.got);
    assert_non_null(p.got);
    for (int64_t i = 0; i < p.count; i++) p.got[i] = add ? (real)(i % 7) : (real)NAN;
    conv_arrays a = {t->x, t->w, t->dy, add};
    if (pass == CONV_FORWARD) a.y = p.got;
    if (pass == CONV_BACKWARD_DATA) a.x = p.got;
    if (pass == CONV_BACKWARD_WEIGHTS) a.w = p.got;
    sr_failure why = {0};
    if (direct)
        check_ok(conv_run(e->state, true, threads, pass, s, &a, &why), &why);
    else
        check_ok(conv_winograd(&e->memory, threads, pass, s, &a, &why), &why);
    return p;
}

static engine open_engine(void) {
    sr_failure why = {0};
    engine e = {.state = conv_create(&why)};
    assert_non_null(e.state);
    return e;
}

static void close_engine(engine *e) {
    conv_free(e->state);
    free(e->memory.start);
}

/* Root mean square error, relative to the root mean square of the values. */
static double relative_error(const passed *p) {
    double error = 0, size = 0;
    for (int64_t i = 0; i < p->count; i++) {
        double wrong = (double)p->got[i] - p->want[i];
        error += wrong * wrong, size += p->want[i] * p->want[i];
    }
    return sqrt(error / size);
}

/* For float only: in double the loops round as much. y and dx sum random rounding over K channels:
 * at most 1.3 sqrt(K) epsilon. dw, over images and in parts: 8 epsilon. The points 0, +-1, +-2
 * would give twice as much. */
static void rounding(void **unused) {
    (void)unused;
    if (sizeof(real) != sizeof(float)) skip();
    const conv_shape shapes[] = {
        conv_trial_shape(16, 32, 32, 16, 16, 3, 1, 1),
        conv_trial_shape(16, 16, 16, 32, 32, 3, 1, 1), conv_trial_shape(32, 8, 8, 64, 64, 3, 1, 1),
        conv_trial_shape(2, 4, 4, 256, 256, 3, 1, 1), conv_trial_shape(9, 7, 11, 48, 16, 3, 1, 1)};
    engine e = open_engine();
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        conv_trial t = conv_trial_create(shapes[i]);
        for (int pass = 0; pass < 3; pass++) {
            passed ours = run_pass(&e, false, 2, (conv_pass)pass, &t, false);
            passed direct = run_pass(&e, true, 2, (conv_pass)pass, &t, false);
            double error = relative_error(&ours), other = relative_error(&direct);
            print_message("%2d x %2d, %3d -> %3d %-2s %.1f epsilon, direct %.1f\n", (int)t.s.height,
                          (int)t.s.width, (int)t.s.in, (int)t.s.out, names[pass], error / epsilon,
                          other / epsilon);
            const double channels = (double)(pass == CONV_FORWARD ? t.s.in : t.s.out);
            double bound = pass == CONV_BACKWARD_WEIGHTS ? 8 : 1.3 * sqrt(channels);
            check_below(error, bound * epsilon);
            free(ours.got), free(direct.got);
        }
        conv_trial_free(&t);
    }
    close_engine(&e);
}

/* Rows of tiles wider than a block, last rows and tiles that reach out, several chunks. */
static const int64_t odd[][5] = {{1, 4, 139, 16, 16}, {3, 7, 6, 16, 32}, {17, 3, 3, 32, 16},
                                 {9, 13, 4, 48, 16},  {1, 3, 4, 16, 80}, {11, 8, 15, 16, 16}};
enum { ODD = sizeof odd / sizeof odd[0] };

static conv_trial odd_trial(int i) {
    const int64_t *n = odd[i];
    conv_shape s = conv_trial_shape(n[0], n[1], n[2], n[3], n[4], 3, 1, 1);
    assert_true(conv_winograd_fits(&s));
    return conv_trial_create(s);
}

static void check_added(const char *name, const passed *p, bool add) {
    double *want = conv_trial_zeros(p->count), largest = 0;
    for (int64_t i = 0; i < p->count; i++) {
        want[i] = p->want[i] + (add ? (double)(i % 7) : 0);
        largest = fmax(largest, fabs(p->want[i]));
    }
    reals_check(name, p->got, want, p->count, 0, 25 * epsilon * fmax(largest, 7));
    free(want);
}

static void odd_shapes_and_adding(void **unused) {
    (void)unused;
    engine e = open_engine();
    for (int i = 0; i < ODD; i++) {
        conv_trial t = odd_trial(i);
        for (int pass = 0; pass < 3; pass++)
            for (int add = 0; add < 2; add++) {
                passed p = run_pass(&e, false, 2, (conv_pass)pass, &t, add);
                check_added(names[pass], &p, add);
                free(p.got);
            }
        conv_trial_free(&t);
    }
    close_engine(&e);
}

static void same_bytes_for_any_threads(void **unused) {
    (void)unused;
    engine e = open_engine();
    for (int i = 0; i < ODD; i++) {
        conv_trial t = odd_trial(i);
        for (int pass = 0; pass < 3; pass++) {
            passed one = run_pass(&e, false, 1, (conv_pass)pass, &t, false);
            for (int threads = 2; threads <= 5; threads++) {
                passed more = run_pass(&e, false, threads, (conv_pass)pass, &t, false);
                reals_check_bytes(names[pass], more.got, one.got, one.count);
                free(more.got);
            }
            free(one.got);
        }
        conv_trial_free(&t);
    }
    close_engine(&e);
}

/* Does the build have vectors of more than 16 bytes? */
#ifdef __AVX__
static const bool wide = true;
#else
static const bool wide = false;
#endif

static void shapes_that_it_takes(void **unused) {
    (void)unused;
    const struct {
        int64_t height, width, in, out, kernel, stride, pad;
        bool fits, pays;
    } rows[] = {
        {32, 32, 16, 16, 3, 1, 1, true, true},   {4, 4, 512, 512, 3, 1, 1, true, true},
        {7, 7, 64, 64, 3, 1, 1, true, true},     {5, 5, 64, 64, 3, 1, 1, true, false},
        {2, 2, 64, 64, 3, 1, 1, true, false},    {1, 1, 16, 16, 3, 1, 1, true, false},
        {32, 32, 3, 16, 3, 1, 1, false, false},  {32, 32, 16, 20, 3, 1, 1, false, false},
        {32, 32, 16, 32, 3, 2, 1, false, false}, {32, 32, 16, 16, 5, 1, 2, false, false},
        {32, 32, 16, 16, 3, 1, 0, false, false}, {32, 32, 16, 16, 1, 1, 0, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        conv_shape s = conv_trial_shape(1, rows[i].height, rows[i].width, rows[i].in, rows[i].out,
                                        rows[i].kernel, rows[i].stride, rows[i].pad);
        assert_int_equal(conv_winograd_fits(&s), rows[i].fits);
        assert_int_equal(conv_winograd_pays(&s), rows[i].pays && wide);
    }
}

/* y, dx and dw of an op. */
static void run_op(tape *t, const conv_trial *from, bool direct, tensor *of[3]) {
    const conv_shape *s = &from->s;
    tensor *x = tape_wrap(t, 4, (int64_t[]){s->images, s->height, s->width, s->in}, from->x);
    tensor *w = tape_wrap(t, 4, (int64_t[]){s->out, 3, 3, s->in}, from->w);
    assert_true(x && w);
    x->wants_grad = w->wants_grad = true;
    tensor *y = (direct ? op_conv2d_direct : op_conv2d)(t, x, w, 1, 1);
    reals_backward(t, y, from->dy);
    of[0] = y, of[1] = x, of[2] = w;
}

/* An op's passes use Winograd if it pays, and the direct op's never do, byte for byte. Both kinds
 * of bytes differ. */
static void ops_of_both_kinds(void **unused) {
    (void)unused;
    engine e = open_engine();
    conv_trial t = odd_trial(1);
    for (int direct = 0; direct < 2; direct++) {
        tape *of = reals_tape(2);
        tensor *found[3];
        run_op(of, &t, direct, found);
        for (int pass = 0; pass < 3; pass++) {
            const real *got = pass == CONV_FORWARD ? found[0]->value : found[pass]->grad;
            passed same = run_pass(&e, direct || !wide, 2, (conv_pass)pass, &t, false);
            passed other = run_pass(&e, !(direct || !wide), 2, (conv_pass)pass, &t, false);
            reals_check_bytes(names[pass], got, same.got, same.count);
            assert_memory_not_equal(got, other.got, (size_t)same.count * sizeof *got);
            free(same.got), free(other.got);
        }
        tape_free(of);
    }
    conv_trial_free(&t);
    close_engine(&e);
}

static void memory_that_is_not_there(void **unused) {
    (void)unused;
    sr_failure why = {0};
    scratch_memory m = {0};
    void *small = scratch_memory_of(&m, 100, &why);
    assert_non_null(small);
    assert_ptr_equal(scratch_memory_of(&m, 90, &why), small);
#ifndef __SANITIZE_ADDRESS__ /* which ends a program that requests this much */
    assert_null(scratch_memory_of(&m, SIZE_MAX / 4, &why));
    check_failure(&why, SR_MEMORY, "out of memory for");
#endif
    assert_non_null(scratch_memory_of(&m, 100, &why));
    free(m.start);
}

int main(void) {
    gemm_setup(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding),
        cmocka_unit_test(odd_shapes_and_adding),
        cmocka_unit_test(same_bytes_for_any_threads),
        cmocka_unit_test(shapes_that_it_takes),
        cmocka_unit_test(ops_of_both_kinds),
        cmocka_unit_test(memory_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
