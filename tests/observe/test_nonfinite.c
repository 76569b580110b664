/* test_nonfinite.c -- the site named at the first non-finite number. It is the first site in the
 * forward pass with such an input, else the first in the backward pass with such a gradient. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "observe/observe.h"
#include "task/task.h"
#include "testing/check.h"

/* A recorded model of two encoder and two decoder layers on generated pairs. */
typedef struct fixture {
    dataset *data;
    model *m;
    tape *t;
    run_record *record;
} fixture;

static fixture make(const char *norm) {
    const data_options wanted = {.name = "synth-pairs", .max_tokens = 128, .limit = 40, .seed = 1};
    sr_failure why = {0};
    fixture f = {.data = data_open(&wanted, &why)};
    model_options o = {.name = "transformer",
                       .preset = "mini",
                       .decoder_norm = "ln",
                       .norm_eps = NAN,
                       .norm_alpha = NAN,
                       .dropout = 0,
                       .attention_dropout = 0,
                       .relu_dropout = 0,
                       .encoder_layers = 2,
                       .decoder_layers = 2};
    char path[4096];
    strcpy(o.norm, norm);
    snprintf(path, sizeof path, "%s/run.h5", check_temporary());
    f.m = f.data ? model_create(&o, data_get_shape(f.data), &why) : NULL;
    f.t = f.m ? tape_create(2, &why) : NULL;
    const run_record_options record = {.path = path,
                                       .force = true,
                                       .task = "pairs",
                                       .scalars = true,
                                       .sites = "*",
                                       .flush_steps = 1,
                                       .threads = 1};
    f.record = f.t ? run_record_create(f.m, &record, &why) : NULL;
    if (!f.record) fail_msg("%s", why.text);
    return f;
}

static void close_all(fixture *f) {
    run_record_abandon(f->record);
    tape_free(f->t);
    model_free(f->m);
    data_close(f->data);
}

/* Runs one step whose loss has this derivative; returns the named site. */
static const char *named(fixture *f, real seed, const char **what) {
    static const task_options plain = {.label_smoothing = NAN};
    sr_failure why = {0};
    batch b;
    check_ok(data_batch(f->data, SPLIT_TRAIN, 0, 0, &b, &why), &why);
    pass p = {.tape = f->t, .batch = &b, .mode = NORM_TRAIN};
    tape_reset(f->t, rng_create(3), true, true);
    run_record_begin_step(f->record, 1, false);
    tensor *loss = task_loss(task_of(b.task), &plain, f->m, &p, NULL);
    run_record_look_at_rows(f->record, true);
    tape_backward(f->t, loss, seed);
    if (tape_failure(f->t)) fail_msg("%s", tape_failure(f->t)->text);
    return run_record_nonfinite(f->record, what);
}

/* Every gradient is non-finite: the backward pass reaches the last site first. */
static void first_gradient(void **state) {
    (void)state;
    static const char *const norms[] = {"bn", "ln", "none"};
    for (int i = 0; i < 3; i++) {
        const char *what = "";
        fixture f = make(norms[i]);
        const char *site = named(&f, (real)NAN, &what);
        assert_non_null(site);
        assert_string_equal(site, "decoder.final");
        assert_string_equal(what, "gradient");
        assert_null(run_record_nonfinite(f.record, &what)); /* reported once */
        close_all(&f);
    }
}

/* A weight after the first site is non-finite: all later inputs are too, and the first is named. */
static void first_input(void **state) {
    (void)state;
    static const char *const norms[] = {"bn", "ln"};
    for (int i = 0; i < 2; i++) {
        const char *what = "";
        fixture f = make(norms[i]);
        param *p = params_find(&f.m->params, "encoder.0.attention.o.bias");
        assert_non_null(p);
        p->t.value[0] = (real)INFINITY;
        const char *site = named(&f, 1, &what);
        assert_non_null(site);
        assert_string_equal(site, "encoder.0.norm2");
        assert_string_equal(what, "input");
        close_all(&f);
    }
}

static void all_finite(void **state) {
    (void)state;
    const char *what = "";
    fixture f = make("bn");
    assert_null(named(&f, 1, &what));
    close_all(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_gradient),
                                       cmocka_unit_test(first_input), cmocka_unit_test(all_finite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
