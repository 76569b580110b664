/* test_frozen.c -- sites with frozen running statistics. Training passes equal evaluation with
 * constant statistics, and no state changes. Results are equal byte for byte, except for the rule
 * of the backward pass. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"

enum { ROWS = 60, WIDTH = 12, COUNT = ROWS * WIDTH };

typedef struct seen {
    int forward, backward, scalars; /* scalars that are not NaN */
    double mu_B[WIDTH], psi2_B[WIDTH];
} seen;

static void see_forward(void *context, const norm_view *o) {
    ((seen *)context)->forward++;
    (void)o;
}

static void see_backward(void *context, const norm_view *o) {
    seen *s = context;
    s->backward++;
    s->scalars = 0;
    for (int i = 0; i < NORM_SCALAR_COUNT; i++) s->scalars += !isnan(o->call->scalar[i]);
    memcpy(s->mu_B, o->call->stat[NORM_mu_B], sizeof s->mu_B);
    memcpy(s->psi2_B, o->call->stat[NORM_psi2_B], sizeof s->psi2_B);
}

/* All vectors that a method keeps, and its number of calls. */
static double *state_of(const norm_site *s, int64_t *count) {
    double *copy = NULL;
    *count = 0;
    for (int k = 0; k < NORM_STATE_MAX; k++) {
        if (!s->state[k]) continue;
        copy = realloc(copy, (size_t)(*count + s->state_count[k]) * sizeof *copy);
        assert_non_null(copy);
        memcpy(copy + *count, s->state[k], (size_t)s->state_count[k] * sizeof *copy);
        *count += s->state_count[k];
    }
    return copy;
}

static void assert_state(const norm_site *s, const double *kept, int64_t kept_count, bool same) {
    int64_t count;
    double *now = state_of(s, &count);
    assert_int_equal(count, kept_count);
    assert_true(same == !memcmp(now, kept, (size_t)count * sizeof *now));
    free(now);
}

typedef struct passes {
    layer l;
    tape *t;
    real *x, *dy, y[COUNT], dx[COUNT], gain[WIDTH];
    const uint8_t *mask;
} passes;

static void pass_once(passes *p, norm_mode mode) {
    layer_pass(&p->l, p->t, p->x, p->dy, ROWS, p->mask, mode, p->y, p->dx);
    if (p->l.site.gamma) memcpy(p->gain, p->l.site.gamma->grad, sizeof p->gain);
}

/* A layer after three batches. */
static void open_passes(passes *p, const norm_method *m, int64_t groups, const uint8_t *mask) {
    sr_failure why = {0};
    memset(p, 0, sizeof *p);
    p->mask = mask;
    p->t = tape_create(2, &why);
    assert_non_null(p->t);
    layer_make(&p->l, m, WIDTH, groups);
    for (uint64_t i = 0; i < 4; i++) {
        free(p->x), free(p->dy);
        p->x = layer_numbers(ROWS, WIDTH, 40 + i, 0.5, 2);
        p->dy = layer_numbers(ROWS, WIDTH, 50 + i, 0.2, 1);
        if (i < 3) pass_once(p, NORM_TRAIN);
    }
}

static void close_passes(passes *p) {
    free(p->x), free(p->dy);
    layer_free(&p->l);
    tape_free(p->t);
}

static void check_method(const norm_method *m, int64_t groups, const uint8_t *mask) {
    static passes p, running;
    seen s = {0};
    int64_t count;
    double penalty = 0;
    open_passes(&running, m, groups, mask);
    pass_once(&running, NORM_RUNNING);
    open_passes(&p, m, groups, mask);
    norm_site *site = &p.l.site;
    site->forward_hook = see_forward, site->backward_hook = see_backward;
    site->hook_context = &s, p.l.penalty = &penalty;
    double *kept = state_of(site, &count);
    norm_site_freeze(site, true);
    pass_once(&p, NORM_TRAIN);
    assert_memory_equal(p.y, running.y, sizeof p.y);
    assert_memory_equal(p.dx, running.dx, sizeof p.dx);
    assert_memory_equal(p.gain, running.gain, sizeof p.gain);
    assert_state(site, kept, count, true);
    assert_true(site->calls == 3);
    check_equals(penalty, 0);
    assert_true(s.forward == 1 && s.backward == 1 && s.scalars == 0);
    const seen frozen = s;
    norm_site_freeze(site, false);
    pass_once(&p, NORM_TRAIN);
    assert_state(site, kept, count, false);
    assert_true(site->calls == 4 && s.scalars >= 2);
    assert_memory_equal(frozen.mu_B, s.mu_B, sizeof s.mu_B); /* hooks get the batch's */
    assert_memory_equal(frozen.psi2_B, s.psi2_B, sizeof s.psi2_B);
    free(kept);
    close_passes(&p);
    close_passes(&running);
}

static void every_method(void **state) {
    (void)state;
    uint8_t mask[ROWS];
    int checked = 0;
    for (int i = 0; i < ROWS; i++) mask[i] = i % 7 != 3;
    for (int i = 0; norm_at(i); i++) {
        static layer l;
        layer_make(&l, norm_at(i), WIDTH, 0);
        const bool running = norm_site_has_running(&l.site);
        layer_free(&l);
        if (!running) continue;
        check_method(norm_at(i), 0, NULL);
        check_method(norm_at(i), 0, mask);
        check_method(norm_at(i), 3, mask);
        checked++;
    }
    assert_int_equal(checked, 11);
}

/* dx = gamma/sigma g and dgamma = sum g (x - mu)/sigma, from the running values by hand. */
static void rule(void **state) {
    (void)state;
    static const char *const names[] = {"bn", "rbn", "pnv", "pn"};
    static passes p;
    for (int m = 0; m < 4; m++) {
        open_passes(&p, norm_find(names[m]), 0, NULL);
        const norm_site *s = &p.l.site;
        const bool centred = m < 2;
        norm_site_freeze(&p.l.site, true);
        pass_once(&p, NORM_TRAIN);
        for (int64_t k = 0; k < WIDTH; k++) {
            const double mu = centred ? s->state[0][k] : 0,
                         sigma = sqrt(s->state[centred][k] + s->options.eps);
            double gain = 0, got = (double)p.gain[k];
            for (int64_t i = k; i < COUNT; i += WIDTH) {
                const double g = (double)p.dy[i], want = (double)s->gamma->value[k] / sigma * g;
                const double dx = (double)p.dx[i];
                check_near_double(names[m], &dx, &want, 1, 1e-6, 0);
                gain += g * ((double)p.x[i] - mu) / sigma;
            }
            check_near_double("gain", &got, &gain, 1, 1e-5, 1e-5);
        }
        close_passes(&p);
    }
}

/* A layer without running statistics is not affected. */
static void layers_of_rows(void **state) {
    (void)state;
    static passes p, plain;
    open_passes(&plain, norm_find("ln"), 0, NULL);
    pass_once(&plain, NORM_TRAIN);
    open_passes(&p, norm_find("ln"), 0, NULL);
    norm_site_freeze(&p.l.site, true);
    assert_false(p.l.site.frozen);
    pass_once(&p, NORM_TRAIN);
    assert_memory_equal(p.dx, plain.dx, sizeof p.dx);
    assert_true(p.l.site.calls == plain.l.site.calls);
    close_passes(&p);
    close_passes(&plain);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_method), cmocka_unit_test(rule),
                                       cmocka_unit_test(layers_of_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
