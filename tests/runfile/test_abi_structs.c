/* test_abi_structs.c -- programs built before or after the library: structs shorter or longer than
 * the library's (statrec/base.h), and statistics by their names. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { WIDTH = 2, OUTCOME = 8192, MOST = 512 };

/* -- one small run; the caller passes one of its structs --------------------------------------- */

typedef enum { OPTIONS, SITE, TENSOR, GRADIENT, FORWARD, BACKWARD, STEP, FINISH, INPUTS } input;

static const float x[] = {1, 2, 3, 5, 8, 13}, dy[] = {0.5F, -1, 2, 1, -3, 0.25F};
static const double mean[] = {4, 7}, variance[] = {3, 2}, square[] = {19, 51}, gain[] = {2, 3};
static const double sum_g[] = {1, -2}, sum_gc[] = {0.5, 4}, sum_gg[] = {5, 6};
static const uint8_t valid[] = {1, 0, 1};

static void call_all(sr_recorder *r, int site, input kind, const void *given) {
    const sr_tensor tensor = SR_INIT(sr_tensor, x, SR_FLOAT32, 3, WIDTH, 1, valid, 2);
    const sr_tensor gradient = SR_INIT(sr_tensor, dy, SR_FLOAT32, 3, WIDTH, 1, NULL, 0);
    const sr_forward forward = SR_INIT(sr_forward, 3, 1, 2, mean, variance, square, gain);
    const sr_backward backward = SR_INIT(sr_backward, sum_g, sum_gc, sum_gg);
    const sr_step step = SR_INIT(sr_step, 1, 7, 0.5, 2, 3, 4);
    sr_begin_step(r, 4);
    if (kind == FORWARD || kind == BACKWARD) {
        sr_put_forward(r, site, kind == FORWARD ? given : &forward);
        sr_put_backward(r, site, kind == BACKWARD ? given : &backward);
    } else {
        sr_take_forward(r, site, kind == TENSOR ? given : &tensor, NULL);
        sr_take_backward(r, site, kind == GRADIENT ? given : &gradient);
    }
    sr_end_step(r, kind == STEP ? given : &step);
}

static void tell(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(char *text, const char *format, ...) {
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, OUTCOME - used, format, args);
    va_end(args);
}

static void tell_file(const char *path, char *text) {
    sr_failure why = {0};
    float value[WIDTH];
    double real;
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) return;
    const sr_run_info *i = sr_run_get_info(f);
    const sr_run_site *s = sr_run_get_site(f, 0);
    tell(text, "%s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%llu|%d|%s|%s|%s|%s\n", i->program, i->version,
         i->command, i->config, i->host, i->git, i->model, i->data, i->task, i->loss_reduction,
         i->parent, (unsigned long long)i->seed, i->threads, i->ranks, i->status, i->reason,
         i->weights_digest);
    tell(text, "%s|%s|%s|%d|%d|%d|%d|%g|%g|%s|%s|%s|%d|%d\n", s->name, s->norm, s->kind,
         (int)s->family, (int)s->width, (int)s->depth, (int)s->layer_scale, s->eps, s->alpha,
         s->axis, s->uses, s->constants, (int)s->layer_scale_own, (int)s->merged);
    for (int v = 0; v < SR_VECTOR_COUNT; v++)
        if (sr_run_vector(f, sr_vector_name(v), 0, 0, 1, value, NULL) == SR_OK)
            tell(text, "%s %g %g\n", sr_vector_name(v), (double)value[0], (double)value[1]);
    for (int k = 0; k < SR_SCALAR_COUNT; k++)
        if (sr_run_scalar(f, sr_scalar_name(k), 0, 0, 1, value, NULL) == SR_OK)
            tell(text, "%s %g\n", sr_scalar_name(k), (double)value[0]);
    static const char *const columns[] = {"update", "tokens", "epoch", "loss", "lr", "grad_norm"};
    for (int k = 0; k < 6; k++)
        if (sr_run_step_reals(f, columns[k], 0, 1, &real, NULL) == SR_OK)
            tell(text, "%s %g\n", columns[k], real);
    sr_run_close(f);
}

static const sr_options whole_options = {sizeof(sr_options),
                                         true,
                                         "p",
                                         "v",
                                         "c",
                                         "f",
                                         "h",
                                         "g",
                                         "m",
                                         "d",
                                         "images",
                                         "mean",
                                         "parent 3",
                                         11,
                                         2,
                                         true,
                                         true,
                                         1,
                                         100,
                                         1000000,
                                         3,
                                         1,
                                         1e9,
                                         true,
                                         true,
                                         4,
                                         false,
                                         true,
                                         0.5,
                                         "rank 0 of 4",
                                         SR_SYNC_NONE,
                                         3};
static const sr_site whole_site = {sizeof(sr_site), "s",         "bn", "conv", SR_FAMILY_SIGMA,
                                   WIDTH,           3,           2,    1e-3,   0.5,
                                   "batch",         "mu,sigma2", "",   true,   SR_REPEAT_MERGE};
static const sr_finish whole_finish = {sizeof(sr_finish), "diverged", "why not", "abc"};

/* Writes the run's failure and the file's content to `text`. */
static void run_with(input kind, const void *given, char text[OUTCOME]) {
    const char *path = sample_path("sizes.h5");
    sr_failure why = {0};
    *text = '\0';
    sr_recorder *r = sr_create(path, kind == OPTIONS ? given : &whole_options, &why);
    const int site = r ? sr_add_site(r, kind == SITE ? given : &whole_site) : -1;
    if (r)
        tell(text, "%lld %lld\n", (long long)sr_vectors_every(r), (long long)sr_projected_bytes(r));
    call_all(r, site, kind, given);
    sr_close(r, kind == FINISH ? given : &whole_finish, &why);
    if (why.status != SR_OK) tell(text, "%s: %s\n", sr_status_name(why.status), why.text);
    tell_file(path, text);
    remove(path);
    char part[600];
    snprintf(part, sizeof part, "%s.part", path);
    remove(part);
}

/* -- cuts ------------------------------------------------------------------------------------ */

#define AT(field) offsetof(OF, field)
#define OF        sr_options
static const size_t options_cuts[] = {AT(force),
                                      AT(program),
                                      AT(version),
                                      AT(command),
                                      AT(config),
                                      AT(host),
                                      AT(git),
                                      AT(model),
                                      AT(data),
                                      AT(task),
                                      AT(loss_reduction),
                                      AT(parent),
                                      AT(seed),
                                      AT(threads),
                                      AT(scalars),
                                      AT(vectors),
                                      AT(vectors_every),
                                      AT(planned_steps),
                                      AT(size_limit),
                                      AT(flush_steps),
                                      AT(flush_seconds),
                                      AT(started),
                                      AT(spectra),
                                      AT(final),
                                      AT(planned_spectra),
                                      AT(resume),
                                      AT(running),
                                      AT(overhead),
                                      AT(ranks),
                                      AT(sync),
                                      AT(pairs),
                                      0};
#undef OF
#define OF sr_site
static const size_t site_cuts[] = {
    AT(name), AT(norm),  AT(kind), AT(family), AT(width),     AT(depth),           AT(layer_scale),
    AT(eps),  AT(alpha), AT(axis), AT(uses),   AT(constants), AT(layer_scale_own), AT(repeat),
    0};
#undef OF
#define OF sr_tensor
static const size_t tensor_cuts[] = {AT(data),  AT(element), AT(outer),   AT(channels),
                                     AT(inner), AT(valid),   AT(samples), 0};
#undef OF
#define OF sr_forward
static const size_t forward_cuts[] = {AT(rows),     AT(samples),     AT(padded), AT(mean),
                                      AT(variance), AT(mean_square), AT(gamma),  0};
#undef OF
#define OF sr_backward
static const size_t backward_cuts[] = {AT(sum_g), AT(sum_gc), AT(sum_gg), 0};
#undef OF
#define OF sr_step
static const size_t step_cuts[] = {AT(update), AT(tokens),    AT(epoch), AT(loss),
                                   AT(lr),     AT(grad_norm), 0};
#undef OF
#define OF sr_finish
static const size_t finish_cuts[] = {AT(status), AT(reason), AT(weights_digest), 0};
#undef OF

static const sr_tensor whole_tensor = {sizeof(sr_tensor), x, SR_FLOAT32, 3, WIDTH, 1, valid, 2};
static const sr_tensor whole_gradient = {sizeof(sr_tensor), dy, SR_FLOAT32, 3, WIDTH, 1, NULL, 0};
static const sr_forward whole_forward = {sizeof(sr_forward), 3, 1, 2, mean, variance, square, gain};
static const sr_backward whole_backward = {sizeof(sr_backward), sum_g, sum_gc, sum_gg};
static const sr_step whole_step = {sizeof(sr_step), 1, 7, 0.5, 2, 3, 4};
static const sr_options default_options = SR_OPTIONS_DEFAULT;

/* otherwise: values of the fields that the program lacks; NULL: 0. */
static const struct {
    const char *name;
    size_t size;
    const void *whole, *otherwise;
    const size_t *cuts;
} inputs[INPUTS] = {
    [OPTIONS] = {"sr_options", sizeof(sr_options), &whole_options, &default_options, options_cuts},
    [SITE] = {"sr_site", sizeof(sr_site), &whole_site, NULL, site_cuts},
    [TENSOR] = {"sr_tensor", sizeof(sr_tensor), &whole_tensor, NULL, tensor_cuts},
    [GRADIENT] = {"sr_tensor", sizeof(sr_tensor), &whole_gradient, NULL, tensor_cuts},
    [FORWARD] = {"sr_forward", sizeof(sr_forward), &whole_forward, NULL, forward_cuts},
    [BACKWARD] = {"sr_backward", sizeof(sr_backward), &whole_backward, NULL, backward_cuts},
    [STEP] = {"sr_step", sizeof(sr_step), &whole_step, NULL, step_cuts},
    [FINISH] = {"sr_finish", sizeof(sr_finish), &whole_finish, NULL, finish_cuts},
};

/* Storage with any struct's alignment. */
typedef union room {
    unsigned char byte[MOST];
    size_t size;
    double real;
} room;

static void expect_same(input kind, const room *given, const room *as, size_t cut) {
    char got[OUTCOME], want[OUTCOME];
    run_with(kind, given, got), run_with(kind, as, want);
    if (strcmp(got, want) != 0)
        fail_msg("%s of %zu bytes:\n%sand not\n%s", inputs[kind].name, cut, got, want);
    assert_true(strlen(want) > 60);
}

/* An older program may have any bytes after its struct. */
static void test_older(void **state) {
    (void)state;
    for (int kind = 0; kind < INPUTS; kind++)
        for (const size_t *cut = inputs[kind].cuts; *cut; cut++) {
            room given, as = {{0}};
            const size_t size = inputs[kind].size;
            memset(&given, 0xa5, sizeof given);
            memcpy(&given, inputs[kind].whole, *cut);
            given.size = *cut;
            if (inputs[kind].otherwise) memcpy(&as, inputs[kind].otherwise, size);
            memcpy(&as, inputs[kind].whole, *cut);
            as.size = size;
            expect_same((input)kind, &given, &as, *cut);
        }
}

static void expect_refused(input kind, const void *given, const char *part) {
    char text[OUTCOME];
    run_with(kind, given, text);
    const char *usage = strstr(text, "usage: "), *end = usage ? strchr(usage, '\n') : NULL;
    if (!usage || !end || !strstr(text, part) || !strstr(text, inputs[kind].name))
        fail_msg("%s, '%s': %s", inputs[kind].name, part, text);
}

static void test_newer(void **state) {
    (void)state;
    for (int kind = 0; kind < INPUTS; kind++) {
        const size_t size = inputs[kind].size;
        room given = {{0}}, as = {{0}};
        memcpy(&given, inputs[kind].whole, size), memcpy(&as, inputs[kind].whole, size);
        static const size_t longer[] = {1, 7, 8, 24};
        for (int i = 0; i < 4; i++) {
            const size_t more = longer[i];
            given.size = size + more;
            if (more % 8 == 0) expect_same((input)kind, &given, &as, size + more);
            given.byte[size + more - 1] = 1;
            char part[64];
            snprintf(part, sizeof part, "byte %zu of %zu", size + more - 1, size + more);
            expect_refused((input)kind, &given, part);
            given.byte[size + more - 1] = 0;
        }
    }
}

static void test_without_size(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, sizeof(size_t) - 1, (size_t)1 << 40, SIZE_MAX};
    for (int kind = 0; kind < INPUTS; kind++) {
        room given = {{0}};
        memcpy(&given, inputs[kind].whole, inputs[kind].size);
        for (int i = 0; i < 5; i++) {
            given.size = sizes[i];
            expect_refused((input)kind, &given, "its size is not filled in");
        }
        if (kind != OPTIONS) expect_refused((input)kind, NULL, ": NULL"); /* the defaults */
    }
}

/* -- structs that the library fills in ------------------------------------------------------- */

typedef sr_status fill_fn(void *to, sr_failure *why);

static sr_status fill_recovery(void *to, sr_failure *why) {
    return sr_run_recover(sample_path("given.h5"), sample_path("again.h5"), true, -1, to, why);
}

static sr_status fill_copy(void *to, sr_failure *why) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.force = true, o.overhead = 0;
    sr_recorder *r = sample_create(sample_path("again.h5"), &o, why);
    sr_status status = sr_copy_rows(r, sample_path("given.h5"), 7, 7, to);
    if (sr_failed(r)) *why = *sr_failed(r);
    sr_abandon(r);
    remove(sample_path("again.h5.part"));
    return status;
}

static sr_status fill_embedding(void *to, sr_failure *why) {
    sr_runfile *f = sr_run_open(sample_path("given.h5"), why);
    sr_status status = sr_run_get_embedding(f, "shared", to, why);
    sr_run_close(f);
    return status;
}

/* sr_instead cannot fail: it ignores a struct with an invalid size. */
static sr_status fill_instead(void *to, sr_failure *why) {
    assert_int_not_equal(sr_depends("g_mu", to), 0);
    size_t size = 0;
    if (to) memcpy(&size, to, sizeof size);
    return size < sizeof size || size > MOST ? sr_fail(why, SR_USAGE, "sr_instead: size") : SR_OK;
}

#define OF sr_recovery
static const size_t recovery_cuts[] = {
    AT(steps),      AT(vectors),      AT(evals),  AT(lost_steps),  AT(lost_vectors),
    AT(lost_evals), AT(running_step), sizeof(OF), sizeof(OF) + 40, 0};
#undef OF
#define OF sr_run_embedding
static const size_t embedding_cuts[] = {AT(rows),   AT(cols),   AT(values),      AT(records),
                                        AT(method), sizeof(OF), sizeof(OF) + 40, 0};
#undef OF
#define OF sr_instead
static const size_t instead_cuts[] = {AT(name), AT(reason), sizeof(OF), sizeof(OF) + 40, 0};
#undef OF

static const struct {
    const char *name;
    fill_fn *fill;
    size_t size;
    const size_t *cuts;
} outputs[] = {
    {"sr_recovery", fill_recovery, sizeof(sr_recovery), recovery_cuts},
    {"sr_recovery", fill_copy, sizeof(sr_recovery), recovery_cuts},
    {"sr_run_embedding", fill_embedding, sizeof(sr_run_embedding), embedding_cuts},
    {"sr_instead", fill_instead, sizeof(sr_instead), instead_cuts},
};

/* Only the fields that fit are filled; the size is unchanged, and no byte after them is written. */
static void expect_filled(int i, const room *whole, size_t cut) {
    sr_failure why = {0};
    room got;
    memset(&got, 0xc3, sizeof got);
    got.size = cut;
    check_ok(outputs[i].fill(&got, &why), &why);
    assert_int_equal(got.size, cut);
    const size_t known = cut < outputs[i].size ? cut : outputs[i].size;
    assert_memory_equal(got.byte + sizeof(size_t), whole->byte + sizeof(size_t),
                        known - sizeof(size_t));
    for (size_t k = known; k < sizeof got; k++)
        if (got.byte[k] != 0xc3)
            fail_msg("%s of %zu bytes: byte %zu written", outputs[i].name, cut, k);
}

static void test_outputs(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.force = true, o.overhead = 0;
    sr_recorder *r = sample_create(sample_path("given.h5"), &o, &why);
    sr_set_embedding_method(r, "shared", "by hand");
    check_ok(sample_steps(r, 1, 20, 5), sr_failed(r));
    run_finish(r);
    for (int i = 0; i < 4; i++) {
        room whole = {{0}}, none;
        whole.size = outputs[i].size;
        check_ok(outputs[i].fill(&whole, &why), &why);
        for (const size_t *cut = outputs[i].cuts; *cut; cut++) expect_filled(i, &whole, *cut);
        memset(&none, 0, sizeof none);
        assert_int_equal(outputs[i].fill(&none, &why), SR_USAGE);
        check_failure(&why, SR_USAGE, outputs[i].name);
        for (size_t k = 0; k < sizeof none; k++) assert_int_equal(none.byte[k], 0);
        why = (sr_failure){0};
    }
    assert_int_equal(fill_embedding(NULL, &why), SR_USAGE);
    why = (sr_failure){0};
    check_ok(fill_recovery(NULL, &why), &why);
    check_ok(fill_copy(NULL, &why), &why);
    assert_int_equal(sr_depends("g_mu", NULL), sr_depends("g_mu", &SR_INIT(sr_instead, "")));
}

/* -- names ----------------------------------------------------------------------------------- */

static void test_names(void **state) {
    (void)state;
#define NAME(name, definition) {#name, definition},
    static const char *const vectors[][2] = {SR_VECTORS(NAME)}, *const scalars[][2] = {
                                                                    SR_SCALARS(NAME)};
    static const char *const none[] = {"", "mu_b", "mu_B ", " mu_B", "mu", "rows", NULL};
    for (int i = 0; i < SR_VECTOR_COUNT; i++) {
        assert_int_equal(sr_vector_id(vectors[i][0]), i);
        assert_string_equal(sr_vector_name(i), vectors[i][0]);
        assert_string_equal(sr_vector_definition(i), vectors[i][1]);
        assert_int_equal(sr_scalar_id(vectors[i][0]), -1);
    }
    for (int i = 0; i < SR_SCALAR_COUNT; i++) {
        assert_int_equal(sr_scalar_id(scalars[i][0]), i);
        assert_string_equal(sr_scalar_name(i), scalars[i][0]);
        assert_string_equal(sr_scalar_definition(i), scalars[i][1]);
    }
    for (int i = 0; i < 7; i++) {
        const bool mu = none[i] && strcmp(none[i], "mu") == 0;
        const bool rows = none[i] && strcmp(none[i], "rows") == 0;
        assert_int_equal(sr_vector_id(none[i]), mu ? SR_mu : -1);
        assert_int_equal(sr_scalar_id(none[i]), rows ? SR_SCALAR_rows : -1);
        assert_int_equal(sr_family_find(none[i]), SR_FAMILY_COUNT);
    }
    static const int wrong[] = {-1, SR_SCALAR_COUNT, SR_SCALAR_COUNT + 5, 1 << 30};
    for (int i = 0; i < 4; i++) {
        assert_null(sr_vector_name(wrong[i]));
        assert_null(sr_scalar_name(wrong[i]));
        assert_null(sr_vector_definition(wrong[i]));
        assert_null(sr_scalar_definition(wrong[i]));
    }
    assert_null(sr_vector_name(SR_VECTOR_COUNT));
    assert_string_equal(sr_family_name(SR_FAMILY_COUNT), "");
    assert_string_equal(sr_family_name((sr_family)-1), "");
    for (int i = 0; i < SR_FAMILY_COUNT; i++)
        assert_int_equal(sr_family_find(sr_family_name((sr_family)i)), i);
    assert_int_equal(sr_abi_version(), SR_ABI_VERSION);
    int major, minor, patch;
    assert_int_equal(sscanf(sr_version(), "%d.%d.%d", &major, &minor, &patch), 3);
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0); /* many small files */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_older),        cmocka_unit_test(test_newer),
        cmocka_unit_test(test_without_size), cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
