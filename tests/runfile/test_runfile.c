/* test_runfile.c -- written values are read back; reading and closing reject invalid calls. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

static const sr_finish complete = {
    .size = sizeof(sr_finish), "complete", "", "0123456789abcdef0123456789abcdef"};

static void test_round_trip(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *path = sample_path("trip.h5");
    char config[200001];
    memset(config, 'x', sizeof config - 1), config[sizeof config - 1] = 0;
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.program = "test", o.command = "test --lr 1e-3 '\xc3\xa9'", o.config = config,
    o.seed = UINT64_MAX;
    o.threads = 2, o.vectors_every = 3, o.flush_steps = 7, o.started = 1e9;
    sr_recorder *r = sample_begin(path, &o);
    check_ok(sample_steps(r, 1, 100, 10), sr_failed(r));
    check_ok(sr_close(r, &complete, &why), &why);
    sr_runfile *f = sample_open(path);
    const sr_run_info *info = sr_run_get_info(f);
    assert_string_equal(info->program, "test");
    assert_string_equal(info->command, "test --lr 1e-3 '\xc3\xa9'");
    assert_string_equal(info->config, config);
    assert_string_equal(info->git, "");
    assert_string_equal(info->loss_reduction, "sum");
    assert_string_equal(info->created, "2001-09-09T01:46:40Z");
    assert_true(info->seed == UINT64_MAX);
    assert_int_equal(info->threads, 2);
    assert_string_equal(info->status, "complete");
    assert_string_equal(info->weights_digest, complete.weights_digest);
    assert_int_equal(strlen(info->finished), 20);
    check_above(info->wall_seconds, 0);
    assert_int_equal(info->steps, 100);
    assert_int_equal(info->vectors, 33);
    assert_int_equal(info->evals, 10);
    sample_check(f, 1, 3);
    sr_run_close(f);
    check_ok(sr_run_check(path, &why), &why);
    assert_int_not_equal(access(sample_path("trip.h5.part"), F_OK), 0);
}

static void test_sites_and_names(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_runfile *f = sample_open(sample_path("trip.h5"));
    assert_int_equal(sr_run_find_site(f, "encoder.final"), 2);
    assert_int_equal(sr_run_find_site(f, "encoder"), -1);
    const sr_run_site *s = sr_run_get_site(f, 2);
    assert_string_equal(s->norm, "pn");
    assert_string_equal(s->called, "pn+ls");
    assert_string_equal(s->kind, "encoder");
    assert_int_equal(s->offset, 8);
    assert_int_equal(s->width, 7);
    assert_int_equal(s->layer_scale, 1);
    check_equals(s->eps, 1e-5);
    check_equals(s->alpha, 0.9);
    assert_true(isnan(sr_run_get_site(f, 3)->alpha));
    assert_null(sr_run_get_site(f, 4));
    assert_null(sr_run_get_site(f, -1));
    assert_true(sr_run_has_vector(f, "nu"));
    assert_false(sr_run_has_vector(f, "nonsense"));
    assert_true(sr_run_has_scalar(f, "g_mu"));
    assert_false(sr_run_has_scalar(f, "g_sigma2_rowmean")); /* declared, without values */
    assert_true(sr_run_has_eval(f, "valid_nll"));
    assert_string_equal(sr_run_definition(f, "scalars/dist_mu"), "||mu_B - mu||_2 / d");
    assert_string_equal(sr_run_definition(f, "scalars/none"), "");
    assert_string_equal(sr_run_name(f, "embeddings", 0), "shared");
    assert_null(sr_run_name(f, "embeddings", 1));
    assert_null(sr_run_name(f, "nothing", 0));
    assert_string_equal(sr_run_name(f, "steps", 0), "step");
    assert_string_equal(sr_run_name(f, "steps", 6), "grad_norm");
    assert_string_equal(sr_run_name(f, "steps", 7), "seconds");
    sr_run_embedding e = {.size = sizeof(sr_run_embedding)};
    check_ok(sr_run_get_embedding(f, "shared", &e, &why), &why);
    assert_int_equal(e.records, 10);
    assert_int_equal(e.values, 3);
    int64_t step;
    double value[3];
    check_ok(sr_run_singular_values(f, "shared", 9, &step, value, &why), &why);
    assert_int_equal(step, 100);
    check_equals(value[0], 110);
    check_equals(value[2], 108);
    sr_run_close(f);
}

static bool same_float(float a, float b) {
    return a == b || (isnan(a) && isnan(b));
}

/* Neighbouring sites at once and each alone, alternately: a dataset may be reopened in between. */
static void test_neighbours(void **state) {
    (void)state;
    enum { FIRST = 1, SITES = 2, ROWS = 5 };
    sr_runfile *f = sample_open(sample_path("trip.h5"));
    sr_failure why = {0};
    float both[ROWS * SAMPLE_WIDTH], one[ROWS * SAMPLE_WIDTH];
    int64_t offset = 0, rows, columns;
    const int64_t stride = sr_run_get_site(f, 1)->width + sr_run_get_site(f, 2)->width;
    check_ok(sr_run_vector_block(f, "mu_B", &rows, &columns, &why), &why);
    assert_true(rows > 0 && columns > 0);
    for (int i = 0; i < SITES; i++) {
        const int64_t width = sr_run_get_site(f, FIRST + i)->width;
        check_ok(sr_run_vectors(f, "mu_B", FIRST, SITES, 3, ROWS, both, &why), &why);
        check_ok(sr_run_vector(f, "mu_B", FIRST + i, 3, ROWS, one, &why), &why);
        for (int64_t k = 0; k < ROWS * width; k++)
            assert_true(same_float(both[k / width * stride + offset + k % width], one[k]));
        offset += width;
    }
    sr_run_close(f);
}

static void test_reader_errors(void **state) {
    (void)state;
    sr_runfile *f = sample_open(sample_path("trip.h5"));
    float value[400];
    double real[4];
    int64_t whole[4];
    sr_failure why = {0};
#define EXPECT(call, status, part)                                                                 \
    why = (sr_failure){0};                                                                         \
    assert_int_equal(call, status);                                                                \
    check_failure(&why, status, part)
    EXPECT(sr_run_scalar(f, "dist_mu", 4, 0, 1, value, &why), SR_USAGE, "site 4 of 4");
    EXPECT(sr_run_scalar(f, "dist_mu", -2, 0, 1, value, &why), SR_USAGE, "site -2");
    EXPECT(sr_run_scalar(f, "dust_mu", 0, 0, 1, value, &why), SR_USAGE, "dust_mu");
    EXPECT(sr_run_scalar(f, "dist_mu", 0, 99, 2, value, &why), SR_USAGE, "which has 100");
    EXPECT(sr_run_scalar(f, "dist_mu", 0, -1, 2, value, &why), SR_USAGE, "which has 100");
    EXPECT(sr_run_scalar(f, "dist_mu", 0, 1, INT64_MAX, value, &why), SR_USAGE, "which has 100");
    EXPECT(sr_run_vector(f, "mu", 0, 33, 1, value, &why), SR_USAGE, "which has 33");
    EXPECT(sr_run_vector(f, "mu", 9, 0, 1, value, &why), SR_USAGE, "site 9");
    EXPECT(sr_run_vectors(f, "mu", 3, 2, 0, 1, value, &why), SR_USAGE, "site 4 of 4");
    EXPECT(sr_run_vectors(f, "mu", -1, 2, 0, 1, value, &why), SR_USAGE, "site -2");
    EXPECT(sr_run_vectors(f, "mu", 0, 0, 0, 1, value, &why), SR_USAGE, "site 4 of 4");
    EXPECT(sr_run_vectors(f, "mu", 0, 1, 33, 1, value, &why), SR_USAGE, "which has 33");
    EXPECT(sr_run_vector_block(f, "mo", whole, whole + 1, &why), SR_USAGE, "mo");
    EXPECT(sr_run_vector_steps(f, 0, 34, whole, &why), SR_USAGE, "which has 33");
    EXPECT(sr_run_step_ints(f, "loss", 0, 1, whole, &why), SR_USAGE, "loss");
    EXPECT(sr_run_step_reals(f, "lass", 0, 1, real, &why), SR_USAGE, "lass");
    EXPECT(sr_run_eval(f, "valid_nll", 10, 1, real, &why), SR_USAGE, "which has 10");
    EXPECT(sr_run_singular_values(f, "shared", 10, whole, real, &why), SR_USAGE, "record 10");
    EXPECT(sr_run_singular_values(f, "other", 0, whole, real, &why), SR_USAGE, "other");
    check_ok(sr_run_step_reals(f, "step", 99, 1, real, &why), NULL);
    check_equals(real[0], 100);
    check_ok(sr_run_scalar(f, "dist_mu", 0, 100, 0, value, &why), NULL); /* an empty range */
    sr_run_close(f);
    why = (sr_failure){0};
    assert_null(sr_run_open(sample_path("absent.h5"), &why));
    check_failure(&why, SR_IO, "No such file");
    why = (sr_failure){0};
    assert_null(sr_run_open(check_temporary(), &why));
    check_failure(&why, SR_IO, "not a regular file");
}

static void write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void expect_file(const char *path, const char *text) {
    char got[64] = "";
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(got, sizeof got, f));
    fclose(f);
    assert_string_equal(got, text);
}

static void test_refuses_existing(void **state) {
    (void)state;
    sr_failure why = {0};
    write_file(sample_path("there.h5"), "precious");
    assert_null(sr_create(sample_path("there.h5"), NULL, &why));
    check_failure(&why, SR_EXISTS, "there.h5: exists");
    expect_file(sample_path("there.h5"), "precious");
    assert_int_not_equal(access(sample_path("there.h5.part"), F_OK), 0);
    write_file(sample_path("half.h5.part"), "unfinished");
    why = (sr_failure){0};
    assert_null(sr_create(sample_path("half.h5"), NULL, &why));
    check_failure(&why, SR_EXISTS, "half.h5.part: exists");
    assert_non_null(strstr(why.hint, "recover"));
    expect_file(sample_path("half.h5.part"), "unfinished");
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true;
    sr_recorder *r = sample_begin(sample_path("there.h5"), &o);
    check_ok(sample_steps(r, 1, 3, 0), sr_failed(r));
    expect_file(sample_path("there.h5"), "precious"); /* until the new one is complete */
    why = (sr_failure){0};
    run_finish(r);
    check_ok(sr_run_check(sample_path("there.h5"), &why), &why);
}

/* PATH appears while recording: it stays, and so does a complete PATH.part. */
static void test_rename_race(void **state) {
    (void)state;
    for (int force = 0; force < 2; force++) {
        sr_failure why = {0};
        sr_options o = SR_OPTIONS_DEFAULT;
        o.overhead = 0;
        o.force = force;
        sr_recorder *r = sample_begin(sample_path("race.h5"), &o);
        check_ok(sample_steps(r, 1, 3, 0), sr_failed(r));
        write_file(sample_path("race.h5"), "somebody");
        assert_int_equal(sr_close(r, &complete, &why), SR_EXISTS);
        check_failure(&why, SR_EXISTS, "appeared while recording");
        expect_file(sample_path("race.h5"), "somebody");
        sr_runfile *f = sample_open(sample_path("race.h5.part"));
        assert_string_equal(sr_run_get_info(f)->status, "complete");
        sample_check(f, 1, 1);
        sr_run_close(f);
        unlink(sample_path("race.h5")), unlink(sample_path("race.h5.part"));
    }
    sr_failure why = {0};
    sr_recorder *r = sample_begin(sample_path("race.h5"), NULL);
    check_ok(sample_steps(r, 1, 3, 0), sr_failed(r));
    unlink(sample_path("race.h5.part"));
    assert_int_equal(sr_close(r, &complete, &why), SR_IO);
    check_failure(&why, SR_IO, "removed or replaced");
    assert_int_not_equal(access(sample_path("race.h5"), F_OK), 0);
}

static void test_empty_runs(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recorder *r = sample_begin(sample_path("nothing.h5"), NULL);
    run_finish(r);
    sr_runfile *f = sample_open(sample_path("nothing.h5"));
    assert_int_equal(sr_run_get_info(f)->steps, 0);
    sample_check(f, 1, 1);
    sr_run_close(f);
    check_ok(sr_run_check(sample_path("nothing.h5"), &why), &why);
    r = sr_create(sample_path("siteless.h5"), NULL, &why);
    assert_non_null(r);
    for (int64_t i = 1; i < 4; i++) {
        sr_step row = sample_row(i);
        sr_begin_step(r, i);
        check_ok(sr_end_step(r, &row), sr_failed(r));
    }
    run_finish(r);
    f = sample_open(sample_path("siteless.h5"));
    assert_int_equal(sr_run_get_info(f)->steps, 3);
    assert_int_equal(sr_run_get_info(f)->sites, 0);
    sr_run_close(f);
    check_ok(sr_run_check(sample_path("siteless.h5"), &why), &why);
}

static void test_close_status(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recorder *r = sample_begin(sample_path("status.h5"), NULL);
    check_ok(sample_steps(r, 1, 3, 0), sr_failed(r));
    char reason[1000];
    memset(reason, 'r', sizeof reason - 1), reason[sizeof reason - 1] = 0;
    check_ok(
        sr_close(r,
                 &(sr_finish){.size = sizeof(sr_finish), .status = "interrupted", .reason = reason},
                 &why),
        &why);
    sr_runfile *f = sample_open(sample_path("status.h5"));
    assert_string_equal(sr_run_get_info(f)->status, "interrupted");
    assert_int_equal(strlen(sr_run_get_info(f)->reason), SR_REASON_SIZE);
    sr_run_close(f);
    assert_int_equal(sr_run_check(sample_path("status.h5"), &why), SR_STATE);
    check_failure(&why, SR_STATE, "interrupted");
    why = (sr_failure){0};
    r = sample_begin(sample_path("status2.h5"), NULL);
    check_ok(sample_steps(r, 1, 3, 0), sr_failed(r));
    assert_int_equal(sr_close(r, &(sr_finish){.size = sizeof(sr_finish), .status = "great"}, &why),
                     SR_USAGE);
    check_failure(&why, SR_USAGE, "'great'");
}

/* Sums at a site without a family would lose the derived scalars. */
static void test_without_family(void **state) {
    (void)state;
    const double value[2] = {1, 2};
    static const sr_vector sums[] = {SR_sum_g, SR_sum_gx, SR_nu, SR_Gamma_t, SR_Lambda_t},
                           plain[] = {SR_mu_B, SR_sigma2_B, SR_mu, SR_sigma2, SR_gamma};
    for (int observed = 0; observed < 2; observed++)
        for (int i = 0; i < 5; i++) {
            sr_options o = SR_OPTIONS_DEFAULT;
            o.overhead = 0;
            o.force = true;
            sr_recorder *r = run_create(sample_path("family.h5"), o);
            int site = sr_add_site(
                r, &(sr_site){.size = sizeof(sr_site), .name = "a", .norm = "bn", .width = 2});
            if (observed) sr_set_observed(r, site);
            check_ok(sr_begin_step(r, 1), sr_failed(r));
            check_ok(sr_put_vector(r, site, plain[i], value), sr_failed(r));
            sr_put_vector(r, site, sums[i], value);
            if (observed)
                assert_null(sr_failed(r));
            else
                check_failure(sr_failed(r), SR_USAGE,
                              "at site a, which was added without a family");
            sr_abandon(r);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),       cmocka_unit_test(test_sites_and_names),
        cmocka_unit_test(test_neighbours),       cmocka_unit_test(test_reader_errors),
        cmocka_unit_test(test_refuses_existing), cmocka_unit_test(test_rename_race),
        cmocka_unit_test(test_empty_runs),       cmocka_unit_test(test_without_family),
        cmocka_unit_test(test_close_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
