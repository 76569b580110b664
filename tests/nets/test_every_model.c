/* test_every_model.c -- checks every row of the table of models on a batch of its task. The
 * gradient of each parameter agrees with differences along a direction (double build). Any number
 * of threads gives the same bytes. Each site runs once per pass. Each listed dropout and norm has
 * an effect. Every failing allocation during creation is handled. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options/options.h"
#include "task/task.h"
#include "testing/check.h"
#include "testing/failing_malloc.h"

/* -- a small data set of each task */

static const struct sample {
    task task;
    const char *data, *train, *valid; /* texts of the files; NULL: generated */
} samples[] = {
    {TASK_IMAGES, "synth-images", NULL, NULL},
    {TASK_PAIRS, "synth-pairs", NULL, NULL},
    {TASK_LM, "text", "a b c a d b\nc a b\nd d a c b a\nb a\n", "a b c d a b a c\n"},
    {TASK_SENTENCES, "labelled", "1 a b c\n2 b d\n1 a a b d\n2 d c\n", "1 a b\n"},
    {TASK_TAGS, "conll", "Anna B-P\nsaw O\n\nBo B-P\nAx I-P\nran O\n\n", "Bo B-P\nran O\n\n"},
    {TASK_TREES, "trees", "a\tX\t2\tl\nb\tY\t0\tm\n\nc\tX\t0\tm\nb\tY\t1\tl\n\n", "a\tX\t0\tm\n"},
};

static void write_file(const char *name, const char *text) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", check_temporary(), name);
    FILE *f = fopen(path, "w");
    assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Loads all of it as one batch; a task without a row above fails. */
static dataset *open_sample(task id, batch *b) {
    const size_t count = sizeof samples / sizeof *samples;
    size_t at = 0;
    sr_failure why = {0};
    while (at < count && samples[at].task != id) at++;
    if (at == count) fail_msg("no small data set of the task %s", task_of(id)->name);
    const struct sample *s = &samples[at];
    data_options o = {.mark_start = true,
                      .batch_size = 2,
                      .eval_batch_size = 1,
                      .window = 4,
                      .max_tokens = 64,
                      .valid_share = NAN,
                      .test_share = NAN,
                      .valid_count = -1,
                      .test_count = -1,
                      .word_column = 1,
                      .limit = s->train ? 0 : 4,
                      .seed = 1,
                      .source = "de",
                      .target = "en",
                      .trainpref = "train",
                      .validpref = "valid",
                      .testpref = "test"};
    snprintf(o.name, sizeof o.name, "%s", s->data);
    if (s->train) {
        snprintf(o.dir, sizeof o.dir, "%s", check_temporary());
        write_file("train", s->train);
        write_file("valid", s->valid);
    }
    dataset *d = data_open(&o, &why);
    if (!d) fail_msg("%s: %s", s->data, why.text);
    check_ok(data_batch(d, SPLIT_TRAIN, 0, 0, b, &why), &why);
    return d;
}

/* -- a model and the results of a pass */

static model_options options_of(const model_row *row) {
    model_options o = {.norm = "bn",
                       .decoder_norm = "bn",
                       .norm_eps = NAN,
                       .norm_alpha = NAN,
                       .dropout = NAN,
                       .attention_dropout = NAN,
                       .relu_dropout = NAN,
                       .lm_mask = "causal",
                       .seed = 1};
    const char *small = strstr(row->presets, "mini");
    snprintf(o.name, sizeof o.name, "%s", row->name);
    if (small) { /* the word that ends there */
        const char *from = small;
        while (from > row->presets && from[-1] != '|') from--;
        snprintf(o.preset, sizeof o.preset, "%.*s", (int)(small + strlen("mini") - from), from);
    }
    return o;
}

/* Case i: every model with its defaults, then with other norms if its row lists them; false past
 * the last. */
static bool case_at(int i, model_options *o) {
    static const struct form {
        const char *placement, *qk_norm;
    } forms[] = {{"", ""}, {"peri", ""}, {"scaled", "bn"}, {"post", "bn"}, {"peri", "bn"}};
    for (int k = 0; model_at(k); k++)
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
            const char *name = model_at(k)->name;
            if (*forms[f].placement && !model_obeys(name, "placement")) continue;
            if (*forms[f].qk_norm && !model_obeys(name, "qk-norm")) continue;
            if (i-- > 0) continue;
            *o = options_of(model_at(k));
            strcpy(o->placement, forms[f].placement);
            strcpy(o->qk_norm, forms[f].qk_norm);
            return true;
        }
    return false;
}

static double loss_of(model *m, const batch *b, tape *t, bool training, bool gradients) {
    const task_options none = {.label_smoothing = 0};
    pass p = {.tape = t, .batch = b, .mode = training ? NORM_TRAIN : NORM_BATCH};
    tape_reset(t, rng_create(7), training, gradients);
    params_zero_grad(&m->params);
    tensor *loss = task_loss(task_of(m->row->task), &none, m, &p, NULL);
    if (!loss) fail_msg("%s: %s", m->row->name, tape_failure(t)->text);
    if (gradients) tape_backward(t, loss, 1);
    if (tape_failure(t)) fail_msg("%s: %s", m->row->name, tape_failure(t)->text);
    return (double)loss->value[0];
}

typedef struct trial {
    model *m;
    dataset *data;
    batch b;
    tape *tape;
} trial;

static trial trial_open(const model_options *o, int threads) {
    trial t = {0};
    sr_failure why = {0};
    t.data = open_sample(model_find(o->name)->task, &t.b);
    t.m = model_create(o, data_get_shape(t.data), &why);
    if (!t.m) fail_msg("%s: %s", o->name, why.text);
    t.tape = tape_create(threads, &why);
    assert_non_null(t.tape);
    return t;
}

static void trial_close(trial *t) {
    tape_free(t->tape);
    model_free(t->m);
    data_close(t->data);
}

/* -- checks */

#ifdef REAL_DOUBLE /* float differences are too inexact */

static void move(param *p, const real *direction, double step) {
    for (int64_t k = 0; k < p->t.count; k++) p->t.value[k] += (real)(step * (double)direction[k]);
}

/* Checks dL/dp along a random direction of one parameter with gradient `grad`. In an embedding only
 * rows with a gradient are moved: padding has none by definition. */
static void check_parameter(trial *t, param *p, const real *grad, uint64_t seed) {
    const double step = 1e-8, tolerance = 2e-5; /* so small that few relus change sign */
    double want = 0, size = 0;
    real *direction = malloc((size_t)p->t.count * sizeof *direction);
    assert_non_null(direction);
    rng r = rng_create(seed);
    for (int64_t k = 0; k < p->t.count; k++) {
        direction[k] = (real)rng_normal(&r);
        if (strstr(p->name, "embedding") && grad[k] == 0) direction[k] = 0;
        want += (double)direction[k] * (double)grad[k];
        size += pow((double)grad[k], 2);
    }
    move(p, direction, step);
    const double above = loss_of(t->m, &t->b, t->tape, false, false);
    move(p, direction, -2 * step);
    const double below = loss_of(t->m, &t->b, t->tape, false, false),
                 got = (above - below) / (2 * step);
    move(p, direction, step);
    if (!(fabs(got - want) <= tolerance * (sqrt(size) + 0.01 * fabs(above))))
        fail_msg("%s of %d sites, %s: gradient %.9g along a direction, %.9g by differences",
                 t->m->row->name, t->m->sites, p->name, want, got);
    free(direction);
}

/* Returns the gradients of all parameters, concatenated; the caller frees them. */
static real *copy_gradients(const params *p) {
    int64_t count = 0;
    for (int k = 0; k < p->count; k++) count += p->item[k]->t.count;
    real *all = malloc((size_t)count * sizeof *all), *next = all;
    assert_non_null(all);
    for (int k = 0; k < p->count; next += p->item[k++]->t.count)
        memcpy(next, p->item[k]->t.grad, (size_t)p->item[k]->t.count * sizeof *next);
    return all;
}

static void gradients(void **state) {
    (void)state;
    model_options o;
    for (int i = 0; case_at(i, &o); i++) {
        trial t = trial_open(&o, 1);
        const params *p = &t.m->params;
        loss_of(t.m, &t.b, t.tape, false, true);
        real *grad = copy_gradients(p), *next = grad;
        for (int k = 0; k < p->count; next += p->item[k++]->t.count)
            check_parameter(&t, p->item[k], next, (uint64_t)k);
        free(grad);
        trial_close(&t);
    }
}

#endif

/* Compares one thread on a tape that keeps activations with the given threads and tape. */
static void same_bytes(const model_options *o, int threads, bool reuse_activations,
                       const char *what) {
    trial plain = trial_open(o, 1), other = trial_open(o, threads);
    other.tape->reuse_activations = reuse_activations;
    const double a = loss_of(plain.m, &plain.b, plain.tape, true, true);
    const double b = loss_of(other.m, &other.b, other.tape, true, true);
    if (a != b || !isfinite(a)) fail_msg("%s: losses %.17g and %.17g", o->name, a, b);
    for (int k = 0; k < plain.m->params.count; k++) {
        const param *p = plain.m->params.item[k], *q = other.m->params.item[k];
        if (memcmp(p->t.grad, q->t.grad, (size_t)p->t.count * sizeof(real)))
            fail_msg("%s: gradient of %s has other bytes %s", o->name, p->name, what);
    }
    trial_close(&plain);
    trial_close(&other);
}

static void threads(void **state) {
    (void)state;
    model_options o;
    for (int i = 0; case_at(i, &o); i++) same_bytes(&o, 3, false, "on three threads");
}

static void reuse_activations(void **state) {
    (void)state;
    model_options o;
    for (int i = 0; case_at(i, &o); i++) same_bytes(&o, 1, true, "of a reuse_activations tape");
}

static void sites(void **state) {
    (void)state;
    model_options o;
    for (int i = 0; case_at(i, &o); i++) {
        trial t = trial_open(&o, 1);
        assert_true(t.m->sites > 0);
        loss_of(t.m, &t.b, t.tape, true, true);
        for (int k = 0; k < t.m->sites; k++) {
            const norm_site *s = t.m->site[k];
            if (s->calls != 1 || s->depth != k || strcmp(s->method->name, "bn") != 0)
                fail_msg("%s: site %s: %lld calls in a pass, depth %d, %s", o.name, s->name,
                         (long long)s->calls, s->depth, s->method->name);
            for (int j = 0; j < k; j++) assert_string_not_equal(t.m->site[j]->name, s->name);
        }
        trial_close(&t);
    }
}

/* A dropout listed in the row changes the training loss; an unlisted one does not. */
static void dropout(void **state) {
    (void)state;
    static const char *const key[] = {"dropout", "attention-dropout", "relu-dropout"};
    for (int i = 0; model_at(i); i++) {
        for (int k = 0; k < 3; k++) {
            double loss[2];
            for (int on = 0; on < 2; on++) {
                model_options o = options_of(model_at(i));
                o.dropout = o.attention_dropout = o.relu_dropout = 0;
                *(k == 0 ? &o.dropout : k == 1 ? &o.attention_dropout : &o.relu_dropout) = 0.5 * on;
                trial t = trial_open(&o, 1);
                loss[on] = loss_of(t.m, &t.b, t.tape, true, false);
                trial_close(&t);
            }
            if ((loss[0] != loss[1]) != options_lists(model_at(i)->options, key[k]))
                fail_msg("%s: %s is %slisted", model_at(i)->name, key[k],
                         loss[0] != loss[1] ? "heeded, and not " : "without effect, and ");
        }
    }
}

static bool try_making(const model_options *o, const data_shape *shape, long n) {
    sr_failure why = {0};
    failing_malloc_begin(n);
    model *m = model_create(o, shape, &why);
    model_free(m);
    if (failing_malloc_end() != 0) fail_msg("%s: allocation %ld fails: memory leaks", o->name, n);
    if (!m && (why.status != SR_MEMORY || !strstr(why.text, "memory")))
        fail_msg("%s: allocation %ld fails: %s", o->name, n, why.text);
    return m != NULL;
}

static void failing_allocations(void **state) {
    (void)state;
    if (!failing_malloc_there()) skip();
    model_options o;
    for (int i = 0; case_at(i, &o); i++) {
        batch b;
        dataset *d = open_sample(model_find(o.name)->task, &b);
        assert_true(try_making(&o, data_get_shape(d), -1));
        for (long n = 0; !try_making(&o, data_get_shape(d), n);) n += 1 + n / 8;
        data_close(d);
    }
}

/* -- passes without memory */

typedef enum { PASS_TRAINS, PASS_EVALUATES, PASS_IS_ABSENT, PASSES } pass_kind;

/* Runs a pass; for a model with memory, two steps. */
static sr_status try_pass(trial *t, pass_kind kind, sr_failure *why) {
    const task_options none = {.label_smoothing = 0};
    const bool trains = kind != PASS_EVALUATES;
    model_memory k;
    task_sums sum;
    sr_status status = task_memory(&k, t->m, t->data, SPLIT_TRAIN, trains, why);
    const int steps = k.rows > 0 ? 2 : 1;
    for (int i = 0; i < steps && status == SR_OK; i++) {
        pass p = {.tape = t->tape,
                  .batch = &t->b,
                  .mode = trains ? NORM_TRAIN : NORM_RUNNING,
                  .memory = &k,
                  .absent = kind == PASS_IS_ABSENT};
        tape_reset(t->tape, rng_create(7), trains, trains);
        tensor *loss = task_loss(task_of(t->m->row->task), &none, t->m, &p, &sum);
        if (loss && trains) tape_backward(t->tape, loss, 1);
        status = tape_status(t->tape, why);
        if (status == SR_OK && (!loss || !isfinite(sum.loss)))
            fail_msg("%s: no loss", t->m->row->name);
    }
    model_memory_free(&k);
    return status;
}

static void check_passes(const model_options *o, pass_kind kind) {
    trial t = trial_open(o, 1);
    sr_failure why = {0};
    arena_fail_after(t.tape->arena, -1);
    check_ok(try_pass(&t, kind, &why), &why);
    const int64_t needed = arena_fail_after(t.tape->arena, -1);
    assert_true(needed > 10);
    const bool slow = t.m->row->task == TASK_IMAGES; /* a few of them, in training */
    for (int64_t k = 0; k < needed && !(slow && kind != PASS_TRAINS); k += slow ? 1 + k / 2 : 1) {
        why = (sr_failure){0};
        arena_fail_after(t.tape->arena, k);
        if (try_pass(&t, kind, &why) != SR_MEMORY || !strstr(why.text, "memory"))
            fail_msg("%s, pass %d, allocation %lld of %lld: '%s'", o->name, (int)kind, (long long)k,
                     (long long)needed, why.text);
    }
    arena_fail_after(t.tape->arena, -1);
    check_ok(try_pass(&t, kind, &why), &why);
    trial_close(&t);
}

static void make_tiny(model_options *o) {
    if (model_obeys(o->name, "embed-dim")) o->embed_dim = 8;
    if (model_obeys(o->name, "ffn-dim")) o->ffn_dim = 8;
    if (model_obeys(o->name, "heads")) o->heads = 2;
    if (model_obeys(o->name, "head-dim")) o->head_dim = 4;
    if (model_obeys(o->name, "hidden-dim")) o->hidden_dim = 8;
}

/* Each allocation of the tape fails. */
static void passes_without_memory(void **state) {
    (void)state;
    model_options o;
    for (int i = 0; case_at(i, &o); i++) {
        make_tiny(&o);
        for (pass_kind kind = 0; kind < PASSES; kind++) check_passes(&o, kind);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
#ifdef REAL_DOUBLE
        cmocka_unit_test(gradients),
#endif
        cmocka_unit_test(threads),
        cmocka_unit_test(reuse_activations),
        cmocka_unit_test(sites),
        cmocka_unit_test(dropout),
        cmocka_unit_test(failing_allocations),
        cmocka_unit_test(passes_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
