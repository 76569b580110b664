#include "reals.h"

#include <stdlib.h>
#include <string.h>

#include "testing/check.h"

real *reals_random(int64_t count, uint64_t seed) {
    real *x = malloc((size_t)count * sizeof *x);
    assert_non_null(x);
    rng r = rng_create(seed);
    for (int64_t i = 0; i < count; i++) x[i] = (real)(float)rng_normal(&r);
    return x;
}

void reals_check(const char *name, const real *got, const double *want, int64_t count, double rtol,
                 double atol) {
    double *wide = malloc((size_t)count * sizeof *wide + 1);
    assert_non_null(wide);
    for (int64_t i = 0; i < count; i++) wide[i] = (double)got[i];
    bool same = check_close(name, wide, want, count, rtol, atol);
    free(wide);
    if (!same) fail_msg("%s differs", name);
}

void reals_check_same(const char *name, const real *got, const real *want, int64_t count,
                      double rtol, double atol) {
    double *wide = malloc((size_t)count * sizeof *wide + 1);
    assert_non_null(wide);
    for (int64_t i = 0; i < count; i++) wide[i] = (double)want[i];
    reals_check(name, got, wide, count, rtol, atol);
    free(wide);
}

void reals_check_bytes(const char *name, const real *got, const real *want, int64_t count) {
    if (memcmp(got, want, (size_t)count * sizeof *got) == 0) return;
    reals_check_same(name, got, want, count, 0, 0);
    fail_msg("%s differs in its bytes", name);
}

tape *reals_tape(int threads) {
    sr_failure why = {0};
    tape *t = tape_create(threads, &why);
    check_ok(why.status, &why);
    assert_non_null(t);
    tape_reset(t, rng_create(1), true, true);
    return t;
}

tensor *reals_tensor(tape *t, int rank, const int64_t *dim, uint64_t seed) {
    tensor *x = tape_tensor(t, rank, dim);
    assert_non_null(x);
    rng r = rng_create(seed);
    for (int64_t i = 0; i < x->count; i++) x->value[i] = (real)(float)rng_normal(&r);
    x->wants_grad = true;
    return x;
}

void reals_check_tape(const tape *t) {
    const sr_failure *why = tape_failure(t);
    if (why) fail_msg("%s: %s", sr_status_name(why->status), why->text);
}

/* sum(y dy) as a separate op. */
static void dot_backward(tape *t, const tape_node *node) {
    const real *dy = node->kept;
    bool add;
    real *g = tape_grad(t, node->in[0], &add);
    if (!g) return;
    for (int64_t i = 0; i < node->in[0]->count; i++)
        g[i] = node->out->grad[0] * dy[i] + (add ? g[i] : 0);
}

void reals_backward(tape *t, tensor *y, const real *dy) {
    reals_check_tape(t);
    assert_non_null(y);
    tensor *loss = tape_tensor(t, 1, (int64_t[]){1});
    assert_non_null(loss);
    loss->value[0] = 0;
    for (int64_t i = 0; i < y->count; i++) loss->value[0] += y->value[i] * dy[i];
    loss = tape_push(t, "dot", dot_backward, loss, (tensor *[]){y, NULL}, (void *)dy);
    tape_backward(t, loss, 1);
    reals_check_tape(t);
}
