/* test_table_cache.c -- cached tables of an earlier analysis: reused only for the same program,
 * arguments and run files. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "few_runs.h"
#include "plot/plot_table_cache.h"
#include "statplot_runs.h"
#include "testing/check.h"

enum { RUNS = 3 };

static char paths[RUNS][16] = {"a.h5", "b.h5", "c.h5"};
static plot_run run[RUNS];
static char folders[2][4096], option[32];

/* Appends a byte to `ran`, and prints its arguments; fails on the word `fail`. */
static int analysis(int argc, char **argv) {
    FILE *out = fopen(program_file("ran"), "a");
    if (!out || fputc('.', out) < 0 || fclose(out) != 0) return 1;
    for (int i = 1; i < argc; i++) printf("%s\n", argv[i]);
    fflush(stdout);
    return strcmp(argv[1], "fail") == 0;
}

static const plot_program program = {"analysis", analysis};

/* Number of analyses since the last call. */
static int times_run(void) {
    struct stat st;
    const char *ran = program_file("ran");
    const int times = stat(ran, &st) == 0 ? (int)st.st_size : 0;
    unlink(ran);
    return times;
}

static int prepare(void **state) {
    (void)state;
    plot_process_link(&program, 1);
    for (int i = 0; i < 2; i++) {
        snprintf(folders[i], sizeof folders[i], "%s/folder%d", check_temporary(), i);
        program_result r = program_run("rm -rf %s && mkdir %s", folders[i], folders[i]);
        assert_int_equal(r.status, 0);
        program_free(&r);
    }
    for (int i = 0; i < RUNS; i++)
        run[i] = (plot_run){.path = paths[i], .known = true, .identity = {100, 200, 300, 400}};
    strcpy(option, "mean");
    times_run();
    return 0;
}

/* Runs the analysis of these runs and checks its output. into: the folder being written. */
static void make_table(int into, const int *of, int runs) {
    static char name[] = "analysis";
    char output[4096], errors[4096], want[256], got[256] = "";
    char *argv[RUNS + 3] = {name, option};
    sr_failure each = {0}, why = {0};
    int length = snprintf(want, sizeof want, "%s\n", option);
    for (int i = 0; i < runs; i++) {
        argv[2 + i] = run[of[i]].path;
        length += snprintf(want + length, sizeof want - (size_t)length, "%s\n", run[of[i]].path);
    }
    snprintf(output, sizeof output, "%s", program_file("output"));
    snprintf(errors, sizeof errors, "%s", program_file("errors"));
    unlink(output);
    const plot_table_cache c = {folders[into], folders[!into], run, RUNS};
    const plot_process p = {.argv = argv, .output = output, .errors = errors};
    check_ok(plot_table_cache_run(&c, &p, 1, &each, &why), &why);
    check_ok(each.status, &each);
    FILE *in = fopen(output, "r");
    assert_non_null(in);
    assert_int_equal(fread(got, 1, sizeof got - 1, in), length);
    fclose(in);
    assert_string_equal(got, want);
}

static const int all[] = {0, 1, 2};

static void test_taken(void **state) {
    (void)state;
    make_table(0, all, RUNS);
    assert_int_equal(times_run(), 1);
    make_table(0, all, RUNS); /* another figure of this report */
    make_table(1, all, RUNS); /* the next report */
    assert_int_equal(times_run(), 0);
    program_result r = program_run("rm %s/.table-*", folders[0]);
    program_free(&r);
    make_table(0, all, RUNS); /* which stored it */
    assert_int_equal(times_run(), 0);
}

/* Changes the size, time or trailer of any file. */
static void test_changed_file(void **state) {
    (void)state;
    make_table(0, all, RUNS);
    times_run();
    for (int i = 0; i < RUNS; i++)
        for (int k = 0; k < READER_IDENTITY; k++) {
            run[i].identity[k]++;
            make_table(1, all, RUNS);
            if (times_run() != 1) fail_msg("run %d, part %d: an old table", i, k);
            run[i].identity[k]--;
        }
    make_table(0, all, RUNS);
    assert_int_equal(times_run(), 0);
}

static void test_other_words(void **state) {
    static const int swapped[] = {1, 0, 2};
    (void)state;
    make_table(0, all, RUNS);
    make_table(0, all, RUNS - 1); /* one run less */
    make_table(0, swapped, RUNS);
    strcpy(option, "median");
    make_table(0, all, RUNS);
    assert_int_equal(times_run(), 4);
    make_table(0, swapped, RUNS);
    assert_int_equal(times_run(), 1);
}

/* A growing or damaged file's table is not cached. */
static void test_unknown(void **state) {
    (void)state;
    run[1].known = false;
    make_table(0, all, RUNS);
    make_table(0, all, RUNS);
    assert_int_equal(times_run(), 2);
    make_table(0, all, 1);
    make_table(0, all, 1);
    assert_int_equal(times_run(), 1);
}

/* A command without a run file has no data to identify. */
static void test_without_runs(void **state) {
    (void)state;
    make_table(0, all, 0);
    make_table(0, all, 0);
    assert_int_equal(times_run(), 2);
}

/* Alters a byte of the cached file, or truncates it. */
static void test_damaged_table(void **state) {
    (void)state;
    char path[8192] = "";
    make_table(0, all, RUNS);
    program_result r = program_run("printf %%s $(ls -A %s/.table-*)", folders[0]);
    snprintf(path, sizeof path, "%s", r.out);
    program_free(&r);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    times_run();
    for (off_t at = 0; at < st.st_size; at++) {
        char byte;
        const int fd = open(path, O_RDWR);
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 1;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        close(fd);
        make_table(0, all, RUNS);
        if (times_run() != 1) fail_msg("byte %lld: a damaged table", (long long)at);
    }
    assert_int_equal(truncate(path, st.st_size - 1), 0);
    make_table(0, all, RUNS);
    assert_int_equal(truncate(path, 0), 0);
    make_table(0, all, RUNS);
    assert_int_equal(times_run(), 2);
}

/* In a list each table and failure has its own output; a failed analysis runs again. */
static void test_list(void **state) {
    (void)state;
    static char name[] = "analysis", fail[] = "fail";
    make_table(0, all, 1);
    times_run();
    char output[3][4096], errors[4096];
    char *argv[3][4] = {{name, option, paths[0]}, {name, option, paths[1]}, {name, fail, paths[0]}};
    plot_process p[3];
    const plot_table_cache c = {folders[0], folders[1], run, RUNS};
    snprintf(errors, sizeof errors, "%s", program_file("errors"));
    for (int i = 0; i < 3; i++) {
        snprintf(output[i], sizeof output[i], "%s/list%d", check_temporary(), i);
        p[i] = (plot_process){.argv = argv[i], .output = output[i], .errors = errors};
    }
    for (int pass = 0; pass < 2; pass++) {
        sr_failure each[3] = {{0}}, why = {0};
        check_ok(plot_table_cache_run(&c, p, 3, each, &why), &why);
        assert_int_equal(each[0].status, SR_OK);
        assert_int_equal(each[1].status, SR_OK);
        assert_int_equal(each[2].status, SR_LIBRARY);
        assert_int_equal(times_run(), pass == 0 ? 2 : 1);
        check_run("test \"$(cat list0)\" = \"$(printf 'mean\\na.h5')\" && "
                  "test \"$(cat list1)\" = \"$(printf 'mean\\nb.h5')\"");
    }
}

static bool identify(const char *name, uint64_t identity[READER_IDENTITY]) {
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(program_file(name), &why);
    check_ok(why.status, &why);
    const bool known = reader_identify(f, identity);
    sr_run_close(f);
    return known;
}

/* Another run of the same size with the first one's time: its trailer differs. */
static void test_identity(void **state) {
    (void)state;
    uint64_t first[READER_IDENTITY], other[READER_IDENTITY];
    write_few_run(
        &(few_run){.name = "first.h5", .norm = "bn", .alpha = 0.9, .scale = 1, .seed = 1});
    write_few_run(
        &(few_run){.name = "other.h5", .norm = "bn", .alpha = 0.9, .scale = 1, .seed = 2});
    assert_true(identify("first.h5", first));
    assert_true(identify("first.h5", other));
    assert_memory_equal(first, other, sizeof first);
    check_run("touch -r first.h5 other.h5");
    assert_true(identify("other.h5", other));
    assert_memory_equal(first, other, 3 * sizeof *first);
    assert_int_not_equal(first[3], other[3]);
    check_run("touch -d '2001-02-03 04:05:06.007' first.h5");
    assert_true(identify("first.h5", other));
    assert_int_equal(first[0], other[0]);
    assert_int_equal(first[3], other[3]);
    assert_true(other[2] == 7000000);
    /* without its trailer, and with one byte more */
    check_run("printf x >>first.h5");
    assert_false(identify("first.h5", other));
}

/* The names of cached tables are hashes of their keys: another build uses others. */
static void test_changed_program(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("mkdir copy && cp \"$(command -v statplot)\" copy/ && PATH=$PWD/copy:$PATH && "
              "names() { ls -A kept | grep '^.table-'; } && statplot report six.h5 -o kept && "
              "names >one && test -s one && statplot report six.h5 -o kept && names | cmp - one && "
              "touch copy/statplot && statplot report six.h5 -o kept && names >two && "
              "! comm -12 one two | grep .");
}

/* A report after a run file was replaced uses the new file. */
static void test_replaced_run(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("mkdir of && cp one.h5 of/x.h5 && statplot report of/x.h5 two.h5 -o report && "
              "cp six.h5 of/x.h5 && touch -r one.h5 of/x.h5 && "
              "statplot report of/x.h5 two.h5 -o report && "
              "statplot report of/x.h5 two.h5 -o new && diff -r report new && "
              "statplot report two.h5 of/x.h5 -o report && "
              "statplot report two.h5 of/x.h5 -o turned && diff -r report turned && "
              "statplot report two.h5 -o report && statplot report two.h5 -o less && "
              "diff -r report less");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_taken, prepare),
        cmocka_unit_test_setup(test_changed_file, prepare),
        cmocka_unit_test_setup(test_other_words, prepare),
        cmocka_unit_test_setup(test_unknown, prepare),
        cmocka_unit_test_setup(test_without_runs, prepare),
        cmocka_unit_test_setup(test_damaged_table, prepare),
        cmocka_unit_test_setup(test_list, prepare),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_changed_program),
        cmocka_unit_test(test_replaced_run),
    };
    return cmocka_run_group_tests(tests, statplot_runs, NULL);
}
