/* test_custom_scalars.c -- custom scalars. Values written are read back unchanged, also after
 * flushes, copies and recoveries. Also rejected calls, and files whose /host is damaged. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { STEPS = 30 };

static const sr_options defaults = SR_OPTIONS_DEFAULT;

/* Custom scalars; value_of gives the rows with a value. */
static const sr_run_declared own[] = {
    {sizeof *own, "update_ratio", "1", "||update of gamma|| / ||gamma||", SR_PER_SITE},
    {sizeof *own, "attention entropy", "nats", "", SR_PER_SITE},
    {sizeof *own, "tokens_seen", "", "so far", SR_PER_STEP},
    {sizeof *own, "never_put", "1", "nothing", SR_PER_SITE},
    {sizeof *own, "never_put_either", "1", "nothing", SR_PER_STEP},
};
enum { OWN = sizeof own / sizeof *own };

static double value_of(int which, int64_t step, int site) {
    if (which >= 3 || (step + site + which) % 4 == 0) return NAN;
    if (own[which].scope == SR_PER_STEP) return 1.0 / 3 + (double)step; /* not a float's */
    return (double)step * 8 + site + 0.25 * which;
}

static void declare(sr_recorder *r, int id[OWN]) {
    for (int i = 0; i < OWN; i++) {
        const sr_run_declared *d = &own[i];
        id[i] = sr_declare_scalar(r, d->name, d->unit, d->definition, d->scope);
        assert_true(id[i] >= SR_SCALAR_COUNT);
    }
}

static void put_steps(sr_recorder *r, const int id[OWN], int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; step++) {
        sr_begin_step(r, step);
        for (int i = 0; i < OWN; i++) {
            const int places = own[i].scope == SR_PER_SITE ? SAMPLE_SITES : 1;
            for (int s = 0; s < places; s++) {
                const double value = value_of(i, step, s);
                if (isnan(value)) continue;
                if (own[i].scope == SR_PER_STEP) sr_put_step_scalar(r, id[i], -1);
                if (own[i].scope == SR_PER_STEP) sr_put_step_scalar(r, id[i], value);
                if (own[i].scope == SR_PER_SITE) sr_put_scalar(r, s, id[i], -1);
                if (own[i].scope == SR_PER_SITE) sr_put_scalar(r, s, id[i], value);
            }
        }
        check_ok(sr_end_step(r, &SR_INIT(sr_step, .update = step)), sr_failed(r));
    }
}

static void make_run(const char *path, const sr_options *given, int64_t steps) {
    int id[OWN];
    sr_options o = *given;
    o.force = true;
    sr_recorder *r = sample_begin(path, &o);
    declare(r, id);
    put_steps(r, id, 1, steps);
    run_finish(r);
}

static const sr_run_declared *find(const sr_runfile *f, const char *name) {
    const sr_run_declared *d;
    for (int64_t i = 0; (d = sr_run_get_declared(f, i)); i++)
        if (strcmp(d->name, name) == 0) return d;
    return NULL;
}

static void check_column(const sr_runfile *f, int i, int64_t steps) {
    sr_failure why = {0};
    float single[SAMPLE_SITES];
    double real;
    for (int64_t step = 1; step <= steps; step++) {
        double want[SAMPLE_SITES];
        for (int s = 0; s < SAMPLE_SITES; s++) want[s] = value_of(i, step, s);
        if (own[i].scope == SR_PER_STEP) {
            check_ok(sr_run_step_reals(f, own[i].name, step - 1, 1, &real, &why), &why);
            check_near_double(own[i].name, &real, want, 1, 0, 0);
        } else {
            check_ok(sr_run_scalar(f, own[i].name, -1, step - 1, 1, single, &why), &why);
            check_near_float(own[i].name, single, want, SAMPLE_SITES, 0, 0);
        }
    }
}

/* sites: whether those per site were recorded. */
static void check_run(const char *path, int64_t steps, bool sites) {
    sr_runfile *f = sample_open(path);
    char dataset[160];
    int named = 0;
    const char *name;
    assert_int_equal(sr_run_get_info(f)->steps, steps);
    for (int i = 0; i < OWN; i++) {
        const sr_run_declared *d = find(f, own[i].name);
        const bool site = own[i].scope == SR_PER_SITE;
        if (site && !sites) {
            assert_null(d);
            assert_false(sr_run_has_scalar(f, own[i].name));
            continue;
        }
        if (!d) fail_msg("no scalar %s", own[i].name);
        assert_string_equal(d->unit, own[i].unit);
        assert_string_equal(d->definition, own[i].definition);
        assert_int_equal(d->scope, own[i].scope);
        snprintf(dataset, sizeof dataset, "%s/%s", site ? "scalars" : "steps", d->name);
        assert_string_equal(sr_run_definition(f, dataset), own[i].definition);
        assert_true(sr_run_has_scalar(f, own[i].name) == (site && i < 3));
        check_column(f, i, steps);
    }
    for (int i = 0; (name = sr_run_name(f, "scalars", i)); i++) named += find(f, name) != NULL;
    assert_int_equal(named, sites ? 3 : 0);
    sr_run_close(f);
    sr_failure why = {0}; /* a recovered run is interrupted, without other faults */
    if (sr_run_check(path, &why) != SR_STATE) check_ok(why.status, &why);
}

static void test_round_trip(void **state) {
    (void)state;
    static const int64_t flushes[] = {1, 7, 64};
    const char *path = sample_path("own.h5");
    for (int i = 0; i < 3; i++) {
        sr_options o = defaults;
        o.flush_steps = flushes[i];
        make_run(path, &o, STEPS);
        check_run(path, STEPS, true);
    }
    sr_options o = defaults;
    o.scalars = false;
    make_run(path, &o, STEPS);
    check_run(path, STEPS, false);
    o.overhead = 0, o.vectors = false;
    make_run(path, &o, STEPS);
    check_run(path, STEPS, false);
}

/* -- rejected calls -------------------------------------------------------------------------- */

static void expect_refused(const char *name, const char *unit, const char *definition, int scope,
                           const char *part) {
    sr_options o = defaults;
    o.force = true;
    sr_recorder *r = sample_create(sample_path("refused.h5"), &o, NULL);
    assert_int_equal(sr_declare_scalar(r, "taken", "1", "", SR_PER_STEP), SR_SCALAR_COUNT);
    assert_int_equal(sr_declare_scalar(r, name, unit, definition, (sr_scope)scope), -1);
    const sr_failure *why = sr_failed(r);
    assert_non_null(why);
    check_failure(why, SR_USAGE, part);
    assert_null(strchr(why->text, '\n'));
    sr_abandon(r);
}

static void test_refused_names(void **state) {
    (void)state;
    static const char *const names[] = {"",           ".hidden", "a/b",  "tab\there",
                                        "two\nlines", "\x7f",    "step", "epoch"};
    static const char *const taken[] = {"taken",  "rows",      "dist_mu", "loss",  "lr",
                                        "update", "grad_norm", "seconds", "tokens"};
    char text[SR_DEFINITION_SIZE + 1];
    for (int i = 0; i < 8; i++)
        for (int scope = 0; scope < 2; scope++)
            expect_refused(names[i], "1", "", scope, "a name has");
    for (int i = 0; i < 9; i++)
        for (int scope = 0; scope < 2; scope++)
            expect_refused(taken[i], "1", "", scope,
                           i ? "is a column of every file already" : "declared twice");
    expect_refused(NULL, "1", "", 0, "a name has");
    memset(text, 'n', sizeof text), text[SR_NAME_SIZE] = '\0';
    expect_refused(text, "1", "", 0, "a name has");
    expect_refused("x", text, "", 0, "unit of 64 bytes");
    expect_refused("x", "a\nb", "", 0, "control");
    expect_refused("x", "1", "a\x01", 0, "control");
    memset(text, 'n', sizeof text), text[SR_DEFINITION_SIZE] = '\0';
    expect_refused("x", "1", text, 0, "definition of 512");
    expect_refused("x", "1", "", 2, "scope 2");
    expect_refused("x", "1", "", -1, "scope -1");
    expect_refused("recorder_seconds", "s", "", SR_PER_STEP, "options.overhead");
    expect_refused("vectors_every", "1", "", SR_PER_SITE, "options.overhead");
}

static void test_refused_values(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        sr_options o = defaults;
        o.force = true;
        sr_recorder *r = sample_create(sample_path("refused.h5"), &o, NULL);
        const int site = sr_declare_scalar(r, "of_site", NULL, NULL, SR_PER_SITE);
        const int step = sr_declare_scalar(r, "of_step", NULL, NULL, SR_PER_STEP);
        if (i == 0) assert_int_equal(sr_put_step_scalar(r, step, 1), SR_STATE);
        sr_begin_step(r, 1);
        if (i == 1) assert_int_equal(sr_put_scalar(r, 0, step, 1), SR_USAGE);
        if (i == 2) assert_int_equal(sr_put_step_scalar(r, site, 1), SR_USAGE);
        if (i == 3) assert_int_equal(sr_put_scalar(r, 0, 1000, 1), SR_USAGE);
        if (i == 4) assert_int_equal(sr_put_step_scalar(r, SR_SCALAR_rows, 1), SR_USAGE);
        if (i == 5) assert_int_equal(sr_declare_scalar(r, "late", NULL, NULL, SR_PER_SITE), -1);
        assert_non_null(sr_failed(r));
        assert_null(strchr(sr_failed(r)->text, '\n'));
        sr_abandon(r);
        unlink(sample_path("refused.h5.part"));
    }
}

/* A host may declare SR_DECLARED_MAX scalars; those that the recorder adds do not count. */
static void test_most(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *path = sample_path("most.h5");
    char name[SR_NAME_SIZE];
    for (int more = 0; more < 2; more++) {
        sr_options o = defaults;
        o.force = true;
        sr_recorder *r = sample_create(path, &o, &why);
        for (int i = 0; i < SR_DECLARED_MAX; i++) {
            snprintf(name, sizeof name, "%0*d", SR_NAME_SIZE - 1, i);
            assert_int_equal(sr_declare_scalar(r, name, "1", "", i % 2 ? SR_PER_SITE : SR_PER_STEP),
                             SR_SCALAR_COUNT + i);
        }
        if (more) assert_int_equal(sr_declare_scalar(r, "more", "1", "", SR_PER_STEP), -1);
        if (more) check_failure(sr_failed(r), SR_USAGE, "64 are declared already");
        if (more) {
            sr_abandon(r);
            continue;
        }
        check_ok(sample_steps(r, 1, 3, 1), sr_failed(r));
        run_finish(r);
        check_ok(sr_run_check(path, &why), &why);
        sr_runfile *f = sample_open(path);
        assert_non_null(sr_run_get_declared(f, SR_DECLARED_MAX + 1));
        assert_null(sr_run_get_declared(f, SR_DECLARED_MAX + 2));
        assert_null(sr_run_get_declared(f, -1));
        assert_null(sr_run_damage(f, 0));
        sr_run_close(f);
        check_ok(sr_run_recover(path, sample_path("most2.h5"), true, -1, NULL, &why), &why);
    }
}

/* -- copies ---------------------------------------------------------------------------------- */

static void test_copies(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *path = sample_path("own.h5"), *to = sample_path("copy.h5");
    make_run(path, &defaults, STEPS);
    check_ok(sr_run_recover(path, to, true, -1, NULL, &why), &why);
    check_run(to, STEPS, true);
    for (int again = 0; again < 2; again++) { /* declared again, or not, and in another order */
        sr_options o = defaults;
        int id[OWN] = {0};
        o.force = true, o.overhead = again ? 0.1 : 0;
        sr_recorder *r = sample_create(to, &o, &why);
        if (again) sr_declare_scalar(r, "new", "1", "", SR_PER_SITE);
        if (again) declare(r, id);
        check_ok(sr_copy_rows(r, path, 20, 20, NULL), sr_failed(r));
        if (again) put_steps(r, id, 21, STEPS);
        run_finish(r);
        if (!again) check_run(to, 20, true);
        sr_runfile *f = sample_open(to);
        for (int i = 0; i < OWN; i++) check_column(f, i, again ? STEPS : 20);
        sr_run_close(f);
    }
    for (int i = 0; i < 2; i++) {
        sr_options o = defaults;
        o.force = true;
        sr_recorder *r = sample_create(to, &o, &why);
        sr_declare_scalar(r, own[0].name, i ? own[0].unit : "m", "", i ? SR_PER_STEP : SR_PER_SITE);
        assert_int_equal(sr_copy_rows(r, path, -1, -1, NULL), SR_USAGE);
        check_failure(sr_failed(r), SR_USAGE, "scalar update_ratio has another unit or scope");
        sr_abandon(r);
    }
}

/* Returns the bytes of a run with `count` custom scalars in each step; also their projection. */
static int64_t run_size(int count, int64_t *projected) {
    enum { MANY = 4000 };
    const char *path = sample_path("size.h5");
    sr_failure why = {0};
    struct stat s;
    sr_options o = defaults;
    int id[64];
    char name[32];
    o.force = true, o.planned_steps = MANY, o.vectors = false;
    sr_recorder *r = sample_create(path, &o, &why);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "own%d", i);
        id[i] = sr_declare_scalar(r, name, "1", "", i % 2 ? SR_PER_SITE : SR_PER_STEP);
    }
    *projected = sr_projected_bytes(r);
    for (int64_t step = 1; step <= MANY; step++) {
        sr_begin_step(r, step);
        for (int i = 0; i < count; i++)
            for (int k = 0; k < (i % 2 ? SAMPLE_SITES : 1); k++)
                i % 2 ? sr_put_scalar(r, k, id[i], 1) : sr_put_step_scalar(r, id[i], 2);
        sr_end_step(r, &SR_INIT(sr_step, .update = step));
    }
    run_finish(r);
    assert_int_equal(stat(path, &s), 0);
    return s.st_size;
}

static void test_projection(void **state) {
    (void)state;
    int64_t without, with;
    const int64_t before = run_size(0, &without), after = run_size(60, &with);
    printf("60 scalars: projected %lld, got %lld\n", (long long)(with - without),
           (long long)(after - before));
    check_within((double)(after - before) / (double)(with - without), 1, 0.15);
}

/* -- damaged files --------------------------------------------------------------------------- */

/* text NULL: only deletes the attribute. */
static void set_attribute(const char *path, const char *object, const char *name,
                          const char *text) {
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), type = H5Tcopy(H5T_C_S1);
    hid_t space = H5Screate(H5S_SCALAR), at = H5Oopen(file, object, H5P_DEFAULT);
    assert_true(at >= 0 && H5Adelete(at, name) >= 0);
    if (text) {
        assert_true(H5Tset_size(type, strlen(text) + 1) >= 0);
        hid_t a = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Awrite(a, type, text) >= 0);
        H5Aclose(a);
    }
    H5Oclose(at), H5Sclose(space), H5Tclose(type), H5Fclose(file);
}

/* left: a custom scalar that remains; NULL: none of that list. */
static void expect_rest(const char *list, const char *text, const char *part, const char *left) {
    const char *path = sample_path("damaged.h5"), *to = sample_path("mended.h5");
    sr_failure why = {0};
    double value;
    make_run(path, &defaults, STEPS);
    set_attribute(path, "/host", list, text);
    sr_runfile *f = sample_open(path);
    const char *line = sr_run_damage(f, 0);
    if (!line || !strstr(line, part)) fail_msg("'%s': %s", part, line ? line : "no damage");
    assert_null(strchr(line, '\n'));
    if (strlen(text ? text : "") < 100) assert_null(sr_run_damage(f, 1));
    assert_null(sr_run_damage(f, SR_DECLARED_MAX + 3));
    check_ok(sr_run_step_reals(f, "loss", 0, 1, &value, &why), &why);
    if (left) assert_non_null(find(f, left));
    if (strcmp(list, "scalars") == 0) check_column(f, 2, STEPS);
    if (strcmp(list, "steps") == 0) check_column(f, 0, STEPS);
    sr_run_close(f);
    assert_int_equal(sr_run_check(path, &why), SR_FORMAT);
    why = (sr_failure){0};
    check_ok(sr_run_recover(path, to, true, -1, NULL, &why), &why);
    assert_int_equal(sr_run_check(to, &why), SR_STATE); /* interrupted, without other faults */
}

static void test_damaged(void **state) {
    (void)state;
    static char many[70 * 4 + 1], lines[20000];
    expect_rest("scalars", NULL, "scalars", NULL);
    expect_rest("scalars", "update_ratio\t", "not a line", NULL);
    expect_rest("scalars", "\x7fupdate_ratio", "not a line", NULL);
    expect_rest("scalars", "update_ratio\na/b\nnever_put", "'a/b' is not a name", "never_put");
    expect_rest("scalars", "update_ratio\n\nnever_put", "'' is not a name", "never_put");
    expect_rest("scalars", ".x\nnever_put", "'.x' is not a name", "never_put");
    expect_rest("scalars", "never_put\nnever_put", "'never_put' is not a name", "never_put");
    expect_rest("scalars", "rows\nnever_put", "'rows' is not a name", "never_put");
    expect_rest("scalars", "update_ratio\nnothing", "/scalars/nothing", "update_ratio");
    expect_rest("scalars", "tokens_seen\nnever_put", "/scalars/tokens_seen", "tokens_seen");
    expect_rest("steps", "loss\ntokens_seen", "'loss' is not a name", "tokens_seen");
    expect_rest("steps", "update_ratio\ntokens_seen", "'update_ratio' is not a name",
                "tokens_seen");
    expect_rest("ranks", "rank\n0", "ranks", NULL);
    for (int i = 0; i < 70; i++) sprintf(many + 4 * i, "a%02d\n", i);
    expect_rest("steps", many, "/steps/a00", NULL);
    memset(lines, 'x', sizeof lines - 1);
    expect_rest("steps", lines, "not a line", NULL);
}

/* Files older than /host; texts of one column. */
static void test_older(void **state) {
    (void)state;
    const char *path = sample_path("older.h5");
    sr_failure why = {0};
    make_run(path, &defaults, STEPS);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(H5Ldelete(file, "/host", H5P_DEFAULT) >= 0);
    H5Fclose(file);
    sr_runfile *f = sample_open(path);
    assert_null(sr_run_get_declared(f, 0));
    assert_string_equal(sr_run_get_info(f)->ranks, "");
    assert_null(sr_run_damage(f, 0));
    sr_run_close(f);
    check_ok(sr_run_check(path, &why), &why);
    make_run(path, &defaults, STEPS);
    set_attribute(path, "/scalars/update_ratio", "unit", "one\ntwo");
    f = sample_open(path);
    assert_non_null(strstr(sr_run_damage(f, 0), "/scalars/update_ratio attribute unit"));
    assert_null(find(f, "update_ratio"));
    check_column(f, 1, STEPS);
    sr_run_close(f);
}

int main(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0); /* many small files */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_refused_names),
        cmocka_unit_test(test_refused_values), cmocka_unit_test(test_most),
        cmocka_unit_test(test_copies),         cmocka_unit_test(test_projection),
        cmocka_unit_test(test_damaged),        cmocka_unit_test(test_older),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
