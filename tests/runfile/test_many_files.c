/* test_many_files.c -- more open run files than a process may have descriptors. Files closed for
 * now give the same values when they are reopened, or a failure that names them. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/sample_run.h"

enum { FILES = 90, DESCRIPTORS = 70, STEPS = 6 };

/* Valid until the next call but one. */
static char *path_of(int i) {
    static char path[2][512];
    static int turn;
    char *p = path[turn ^= 1];
    snprintf(p, sizeof path[0], "%s/many%d.h5", check_temporary(), i);
    return p;
}

static void finish(sr_recorder *r) {
    sr_failure why = {0};
    sr_finish end = SR_INIT(sr_finish, .status = "complete");
    check_ok(sr_close(r, &end, &why), &why);
}

/* File i has i % 3 steps more than STEPS. */
static void write_runs(int files) {
    for (int i = 0; i < files; i++) {
        sr_options o = SR_OPTIONS_DEFAULT;
        o.vectors_every = 2, o.seed = (uint64_t)i;
        unlink(path_of(i)); /* the previous test's file */
        sr_recorder *r = sample_begin(path_of(i), &o);
        assert_int_equal(sample_steps(r, 0, STEPS + i % 3 - 1, 2), SR_OK);
        finish(r);
    }
}

static void open_runs(sr_runfile *run[], int files) {
    for (int i = 0; i < files; i++) {
        sr_failure why = {0};
        run[i] = sr_run_open_beside(path_of(i), i ? run[0] : NULL, &why);
        if (!run[i]) fail_msg("file %d: %s", i, why.text);
    }
}

static void close_runs(sr_runfile *run[], int files) {
    for (int i = 0; i < files; i++) sr_run_close(run[i]);
}

static void read_loss(sr_runfile *f, sr_failure *why) {
    double loss;
    sr_run_step_reals(f, "loss", 0, 1, &loss, why);
}

/* The file read last stays open. */
static void check_run(sr_runfile *f) {
    sr_failure why = {0};
    read_loss(f, &why);
    check_ok(why.status, &why);
    sample_check(f, 0, 2);
    read_loss(f, &why);
    check_ok(why.status, &why);
}

/* Reads rows and vectors of each file twice, the first files last; no descriptor remains open. */
static void resting_files_are_read_again(void **state) {
    (void)state;
    sr_runfile *run[FILES];
    struct rlimit limit, low;
    write_runs(FILES);
    getrlimit(RLIMIT_NOFILE, &limit);
    low = (struct rlimit){DESCRIPTORS, limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
    const int before = check_descriptors();
    open_runs(run, FILES);
    assert_true(check_descriptors() - before <= 32);
    for (int round = 0; round < 2; round++)
        for (int i = FILES - 1; i >= 0; i--) {
            assert_int_equal(sr_run_get_info(run[i])->steps, STEPS + i % 3);
            assert_int_equal(sr_run_get_info(run[i])->seed, (uint64_t)i);
            check_run(run[i]);
        }
    assert_true(check_descriptors() - before <= 32);
    close_runs(run, FILES);
    assert_int_equal(check_descriptors(), before);
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* A file of a pool may be closed before the others, even the first one. */
static void files_are_closed_in_any_order(void **state) {
    (void)state;
    sr_runfile *run[FILES];
    write_runs(40);
    open_runs(run, 40);
    for (int i = 1; i < 40; i++) sr_run_close(run[i]);
    sample_check(run[0], 0, 2); /* its descriptor was closed */
    sr_run_close(run[0]);
    open_runs(run, 40);
    for (int i = 0; i < 38; i++) sr_run_close(run[i]);
    sample_check(run[39], 0, 2);
    close_runs(run + 38, 2);
}

static void other_files_are_refused(void **state) {
    (void)state;
    sr_runfile *run[FILES];
    sr_failure replaced = {0}, removed = {0};
    write_runs(40);
    open_runs(run, 40);
    assert_int_equal(rename(path_of(39), path_of(0)), 0); /* 0 is closed: 32 came later */
    read_loss(run[0], &replaced);
    check_failure(&replaced, SR_IO, "many0.h5: replaced");
    assert_int_equal(unlink(path_of(1)), 0);
    read_loss(run[1], &removed);
    check_failure(&removed, SR_IO, "many1.h5: No such file");
    close_runs(run, 40);
}

/* Every kind of first call returns the reason, not the answer for a file without the data. */
static void each_question_names_the_reason(void **state) {
    (void)state;
    sr_runfile *run[FILES];
    sr_run_embedding e = SR_INIT(sr_run_embedding, .rows = 0);
    sr_failure found = {0}, read = {0};
    double value[SAMPLE_EMBEDDING];
    int64_t step;
    write_runs(40);
    open_runs(run, 40);
    assert_int_equal(rename(path_of(0), path_of(FILES)), 0); /* 0 is closed: 32 came later */
    assert_int_equal(sr_run_get_embedding(run[0], "shared", &e, &found), SR_IO);
    check_failure(&found, SR_IO, "many0.h5: No such file");
    assert_int_equal(sr_run_singular_values(run[0], "shared", 0, &step, value, &read), SR_IO);
    check_failure(&read, SR_IO, "many0.h5: No such file");
    assert_string_equal(sr_run_definition(run[0], "steps/loss"), "");
    assert_int_equal(rename(path_of(FILES), path_of(0)), 0);
    check_ok(sr_run_get_embedding(run[0], "shared", &e, &found), &found);
    assert_true(strlen(sr_run_definition(run[0], "steps/loss")) > 0); /* it was not kept */
    close_runs(run, 40);
}

static void copy_file(const char *from, const char *to) {
    char data[4096];
    size_t count;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    while ((count = fread(data, 1, sizeof data, in)))
        assert_int_equal(fwrite(data, 1, count, out), count);
    fclose(in), assert_int_equal(fclose(out), 0);
}

/* The same inode with the bytes of another run. */
static void changed_files_are_refused(void **state) {
    (void)state;
    sr_runfile *run[FILES];
    sr_failure changed = {0}, same = {0};
    write_runs(40);
    open_runs(run, 40);
    copy_file(path_of(3), path_of(0)); /* 0 is closed; equal steps, another seed */
    read_loss(run[0], &changed);
    check_failure(&changed, SR_IO, "many0.h5: changed while it was analysed");
    copy_file(path_of(1), path_of(2)); /* another length */
    copy_file(path_of(4), path_of(2));
    read_loss(run[2], &same);
    check_failure(&same, SR_IO, "many2.h5: changed while it was analysed");
    close_runs(run, 40);
}

static void write_byte(const char *path, long at, int whence, int value) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, whence), 0);
    assert_int_equal(fputc(value, file), value);
    assert_int_equal(fclose(file), 0);
}

/* A file read from its backup copy uses it again after reopening. A file that loses its trailer is
 * another file. */
static void damaged_files_rest(void **state) {
    (void)state;
    sr_runfile *run[FILES];
    sr_failure changed = {0};
    write_runs(40);
    write_byte(path_of(0), 9, SEEK_SET, 0xff); /* in the superblock */
    open_runs(run, 40);
    assert_non_null(strstr(sr_run_damage(run[0], 0), "read from its backup copy"));
    check_run(run[0]);
    write_byte(path_of(1), -8, SEEK_END, 0xff);
    read_loss(run[1], &changed);
    check_failure(&changed, SR_IO, "many1.h5: changed while it was analysed");
    close_runs(run, 40);
}

/* Runs of a study share their sites, metrics and names, and a closed file has no checksum table in
 * memory. HDF5 keeps the memory that it took for the first files. */
static void a_resting_file_takes_little_memory(void **state) {
    (void)state;
    enum { MANY = 160, FIRST = 80, MOST = 4096 };
    static sr_runfile *run[MANY];
    sr_failure why = {0};
    size_t before = 0;
    double loss;
    write_runs(MANY);
    for (int i = 0; i < MANY; i++) {
        run[i] = sr_run_open_beside(path_of(i), i ? run[0] : NULL, &why);
        if (!run[i]) fail_msg("file %d: %s", i, why.text);
        check_ok(sr_run_step_reals(run[i], "loss", 0, 1, &loss, &why), &why);
        assert_true(sr_run_has_scalar(run[i], "rows"));
        if (i == FIRST - 1) before = mallinfo2().uordblks;
    }
    const size_t each = (mallinfo2().uordblks - before) / (MANY - FIRST);
    if (each > MOST) fail_msg("%zu bytes for each file, at most %d", each, MOST);
    sample_check(run[0], 0, 2);
    sample_check(run[MANY - 1], 0, 2);
    close_runs(run, MANY);
}

static void check_same(const char *what, const char *a, const char *b) {
    if (!a != !b || (a && strcmp(a, b) != 0)) fail_msg("%s: %s, alone %s", what, a, b);
}

static void check_tables(const sr_runfile *f, const sr_runfile *alone) {
    const sr_run_site *site;
    const sr_run_metric *metric, *same;
    static const char *const group[] = {"scalars", "vectors", "evals", "steps", "embeddings"};
    for (int64_t i = 0; (site = sr_run_get_site(alone, i)); i++) {
        assert_memory_equal(sr_run_get_site(f, i), site, sizeof *site);
        assert_int_equal(sr_run_find_site(f, site->name), i);
    }
    assert_int_equal(sr_run_get_info(f)->sites, sr_run_get_info(alone)->sites);
    for (int64_t i = 0; (metric = sr_run_get_metric(alone, i)) || sr_run_get_metric(f, i); i++) {
        same = sr_run_get_metric(f, i);
        assert_true(same && metric);
        check_same("name", same->name, metric->name);
        check_same("unit", same->unit, metric->unit);
        check_same("definition", same->definition, metric->definition);
        assert_int_equal(same->better, metric->better);
    }
    for (int g = 0; g < 5; g++)
        for (int i = 0; sr_run_name(alone, group[g], i) || sr_run_name(f, group[g], i); i++)
            check_same(group[g], sr_run_name(f, group[g], i), sr_run_name(alone, group[g], i));
}

/* Runs that share a table with another run read the same values as alone. */
static void shared_tables_are_the_own_ones(void **state) {
    (void)state;
    static const char *const name[] = {"nlp_bn", "nlp_bn_256",  "nlp_ln",
                                       "cv_bn",  "cv_bn_32",    "nlp_rbn",
                                       "nlp_pn", "nlp_adanorm", "nlp_bn_random"};
    enum { RUNS = sizeof name / sizeof name[0] };
    sr_runfile *run[RUNS];
    sr_failure why = {0};
    char path[64];
    for (int i = 0; i < RUNS; i++) {
        snprintf(path, sizeof path, "sample_runs/%s.h5", name[i]);
        run[i] = sr_run_open_beside(path, i ? run[0] : NULL, &why);
        if (!run[i]) fail_msg("%s", why.text);
    }
    for (int i = 0; i < RUNS; i++) {
        snprintf(path, sizeof path, "sample_runs/%s.h5", name[i]);
        sr_runfile *alone = sr_run_open(path, &why);
        if (!alone) fail_msg("%s", why.text);
        check_tables(run[i], alone);
        sr_run_close(alone);
        sr_run_close(run[i]);
    }
}

/* The file is opened as PATH.part while it is written, and read after its renaming. A process
 * cannot have one file open for writing and for reading: the reader has a copy. */
static void a_writer_may_finish(void **state) {
    (void)state;
    sr_runfile *run[FILES];
    sr_options o = SR_OPTIONS_DEFAULT;
    char part[600], to[600];
    write_runs(40);
    o.vectors_every = 2, o.flush_steps = 1;
    sr_recorder *r = sample_begin(path_of(FILES), &o);
    assert_int_equal(sample_steps(r, 0, 3, 2), SR_OK);
    assert_int_equal(sr_flush(r), SR_OK);
    unlink(path_of(0));
    snprintf(part, sizeof part, "%s.part", path_of(FILES));
    snprintf(to, sizeof to, "%s.part", path_of(0));
    copy_file(part, to);
    open_runs(run, 40);
    assert_true(sr_run_get_info(run[0])->steps >= 2);
    assert_int_equal(rename(to, path_of(0)), 0);
    sample_check(run[0], 0, 2);
    close_runs(run, 40);
    finish(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resting_files_are_read_again),
        cmocka_unit_test(files_are_closed_in_any_order),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(each_question_names_the_reason),
        cmocka_unit_test(changed_files_are_refused),
        cmocka_unit_test(damaged_files_rest),
        cmocka_unit_test(shared_tables_are_the_own_ones),
        cmocka_unit_test(a_writer_may_finish),
        cmocka_unit_test(a_resting_file_takes_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
