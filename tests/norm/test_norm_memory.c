/* test_norm_memory.c -- an allocation or the exchange fails at each point of a forward and backward
 * pass, for every method and kind of layer. The tape has the reason, hooks never get NULL for a
 * tensor, and the next pass succeeds. */
#include <stdlib.h>
#include <string.h>

#include "layer.h"

enum { ROWS = 24, WIDTH = 8, SAMPLES = 4, RANKS = 2 };

/* -- a layer ----------------------------------------------------------------------------------- */

/* Settings of a layer in one case. */
typedef struct form {
    const char *name, *value; /* parameters, set in methods that have them; "" */
    int passes;               /* passes before the failing one */
    int64_t groups;           /* groups of a layer scale */
    norm_mode mode;
    bool mask, hooks, want, observe, frozen, gather, reuse, alone; /* alone: x needs no gradient */
    bool never;                                                    /* never_running */
} form;

static const form forms[] = {
    {.name = "plain"},
    {.name = "padded rows", .mask = true},
    {.name = "later", .value = "warmup=1 window=2 buffer=2 r_calls=1 d_calls=1 t0=2", .passes = 3},
    {.name = "as warm-up", .value = "warmup=1000 running=before scale=sum penalty=reldiff"},
    {.name = "scaled", .groups = 2, .mask = true},
    {.name = "hooks", .hooks = true, .want = true, .mask = true, .passes = 1},
    {.name = "scaled hooks", .groups = 2, .hooks = true, .want = true, .passes = 1},
    {.name = "scaled hooks that want no input", .groups = 2, .hooks = true},
    {.name = "observed", .hooks = true, .want = true, .observe = true, .mask = true, .passes = 1},
    {.name = "observed and scaled", .hooks = true, .observe = true, .groups = 2},
    {.name = "frozen", .hooks = true, .frozen = true, .passes = 1},
    {.name = "inference", .mode = NORM_RUNNING},
    {.name = "inference by batches", .mode = NORM_RUNNING, .never = true},
    {.name = "ranks", .gather = true, .hooks = true, .mask = true, .passes = 1},
    {.name = "scaled over ranks", .gather = true, .groups = 2},
    {.name = "observed over ranks", .gather = true, .hooks = true, .observe = true},
    {.name = "recomputed", .reuse = true, .passes = 1},
    {.name = "of data", .alone = true, .groups = 2},
};

typedef struct bench {
    layer l;
    const form *f;
    tape *t;
    int gathered, fails_at; /* calls of the exchange; which of them fails, 0: none */
    int shown;              /* calls of the hooks */
} bench;

static void look(void *context, const norm_view *o) {
    bench *b = context;
    b->shown++;
    const bool may_lack = o->call->scale && !o->site->want_input;
    if (!o->x && !may_lack) fail_msg("%s, %s: no x", o->site->method->name, b->f->name);
    if (o->dy && !o->dx && !o->call->options->layer_scale)
        fail_msg("%s, %s: no dx", o->site->method->name, b->f->name);
}

/* The other rank has the same rows. */
static sr_status gather(void *context, double *all, int64_t width) {
    bench *b = context;
    if (++b->gathered == b->fails_at) return SR_IO;
    memcpy(all + width, all, (size_t)width * sizeof *all);
    return SR_OK;
}

/* Sets the form's parameters that the method has. */
static void set_values(norm_options *o, const norm_method *m, const char *values) {
    char text[256], *next;
    sr_failure why = {0};
    snprintf(text, sizeof text, "%s", values ? values : "");
    for (char *word = strtok_r(text, " ", &next); word; word = strtok_r(NULL, " ", &next)) {
        char *value = strchr(word, '=');
        *value++ = 0;
        const int at = norm_param_find(m, word);
        const char *words = at < 0 ? NULL : m->param[at].words;
        if (at < 0 || (!words && (*value < '0' || *value > '9'))) continue;
        check_ok(norm_options_set(o, m, word, value, &why), &why);
    }
}

static void bench_open(bench *b, const norm_method *m, const form *f) {
    sr_failure why = {0};
    norm_options o = norm_options_default(m);
    if (f->groups) o.layer_scale = f->groups;
    set_values(&o, m, f->value);
    *b = (bench){.f = f};
    layer_make_with(&b->l, m, WIDTH, &o);
    b->t = tape_create(1, &why);
    assert_non_null(b->t);
    b->t->reuse_activations = f->reuse;
    if (f->hooks) b->l.site.forward_hook = b->l.site.backward_hook = look;
    b->l.site.hook_context = b;
    b->l.site.want_rows = b->l.site.want_input = f->want;
    b->l.site.never_running = f->never;
    if (f->observe) check_ok(norm_site_observe_batch(&b->l.site, 0.9, &why), &why);
    norm_site_freeze(&b->l.site, f->frozen);
}

static void bench_close(bench *b) {
    layer_free(&b->l);
    tape_free(b->t);
}

static void bench_rows(bench *b, norm_rows *r, double *penalty) {
    static const int32_t sample[ROWS] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1,
                                         2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3};
    r->sample = sample, r->samples = SAMPLES, r->tokens = ROWS, r->penalty = penalty;
    if (!b->f->gather) return;
    r->gather = gather, r->gather_context = b, r->ranks = RANKS;
}

/* Computes y = the layer of x after an operation that keeps its result, and all gradients. */
static sr_status bench_pass(bench *b, sr_failure *why) {
    const int64_t dim[] = {ROWS, WIDTH};
    static real value[ROWS * WIDTH];
    uint8_t mask[ROWS];
    double penalty = 0;
    norm_rows r;
    rng random = rng_create(9);
    for (int i = 0; i < ROWS * WIDTH; i++) value[i] = (real)(0.3 + rng_normal(&random));
    for (int i = 0; i < ROWS; i++) mask[i] = i % 5 != 2;
    tape_reset(b->t, rng_create(5), b->f->mode == NORM_TRAIN, true);
    params_zero_grad(&b->l.p);
    tensor *x = tape_wrap(b->t, 2, dim, value);
    if (x) x->wants_grad = !b->f->alone;
    if (x && norm_rows_init(&r, b->t, ROWS, b->f->mask ? mask : NULL, b->f->mode) == SR_OK) {
        bench_rows(b, &r, &penalty);
        tensor *y = norm_apply(&b->l.site, b->t, x, &r);
        if (y) tape_backward(b->t, y, 1);
    }
    return tape_status(b->t, why);
}

/* -- failures ---------------------------------------------------------------------------------- */

static bool heeds(const norm_method *m, const form *f) {
    if (f->gather && !m->synchronises) return false;
    if (f->groups && !norm_options_default(m).eps) return false;
    return true;
}

static void bench_before(bench *b) {
    sr_failure why = {0};
    for (int i = 0; i < b->f->passes; i++) check_ok(bench_pass(b, &why), &why);
}

static void check_memory(const norm_method *m, const form *f) {
    bench b;
    sr_failure why = {0};
    bench_open(&b, m, f);
    bench_before(&b);
    arena_fail_after(b.t->arena, -1);
    check_ok(bench_pass(&b, &why), &why);
    const int64_t needed = arena_fail_after(b.t->arena, -1);
    assert_true(needed > 0);
    for (int64_t k = 0; k < needed; k++) {
        why = (sr_failure){0};
        arena_fail_after(b.t->arena, k);
        if (bench_pass(&b, &why) != SR_MEMORY || !strstr(why.text, "memory"))
            fail_msg("%s, %s: %lld of %lld allocations: '%s'", m->name, f->name, (long long)k,
                     (long long)needed, why.text);
    }
    arena_fail_after(b.t->arena, -1);
    check_ok(bench_pass(&b, &why), &why);
    bench_close(&b);
}

static void check_exchange(const norm_method *m, const form *f) {
    bench b;
    sr_failure why = {0};
    bench_open(&b, m, f);
    bench_before(&b);
    b.gathered = 0;
    check_ok(bench_pass(&b, &why), &why);
    const int count = b.gathered;
    assert_true((count > 0) == f->gather);
    for (int k = 1; k <= count; k++) {
        why = (sr_failure){0};
        b.gathered = 0, b.fails_at = k;
        if (bench_pass(&b, &why) != SR_IO || !strstr(why.text, "encoder.0.norm1"))
            fail_msg("%s, %s: exchange %d of %d: '%s'", m->name, f->name, k, count, why.text);
    }
    b.fails_at = 0;
    check_ok(bench_pass(&b, &why), &why);
    bench_close(&b);
}

static void each_case(void (*check)(const norm_method *m, const form *f)) {
    int cases = 0;
    for (int i = 0; norm_at(i); i++)
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
            if (heeds(norm_at(i), &forms[k])) check(norm_at(i), &forms[k]), cases++;
    assert_true(cases > 200);
}

static void memory_runs_out(void **state) {
    (void)state;
    each_case(check_memory);
}

static void exchanges_fail(void **state) {
    (void)state;
    each_case(check_exchange);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(exchanges_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
