/* A site's method in /sites: values from the host, values that follow from the family, rejected
 * values. Also values for older files without it. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

static const char *write_sites(const char *name, const sr_site *site, int count) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true;
    const char *path = sample_path(name);
    sr_recorder *r = run_create(path, o);
    for (int i = 0; i < count; i++) sr_add_site(r, &site[i]);
    check_ok(sr_begin_step(r, 1), sr_failed(r));
    sr_end_step(r, &(sr_step){.size = sizeof(sr_step), 1, 10, 1, 1, 0.1, 1});
    run_finish(r);
    return path;
}

static sr_runfile *open_sites(const char *path) {
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    return f;
}

static void expect_site(const sr_run_site *s, sr_family family, const char *axis, const char *uses,
                        const char *constants, const char *called) {
    if (s->family != family || strcmp(s->axis, axis) || strcmp(s->uses, uses) ||
        strcmp(s->constants, constants) || strcmp(s->called, called))
        fail_msg("%s: family %s, axis '%s', uses '%s', constants '%s', called %s", s->name,
                 sr_family_name(s->family), s->axis, s->uses, s->constants, s->called);
}

/* A name has no meaning: the host's values are stored, and the rest follows from the family. */
static void told(void **state) {
    (void)state;
    static const sr_site site[] = {
        {.size = sizeof(sr_site), .name = "a", .norm = "ln", .family = SR_FAMILY_SIGMA, .width = 1},
        {.size = sizeof(sr_site), .name = "b", .norm = "bn", .family = SR_FAMILY_ROW, .width = 1},
        {.size = sizeof(sr_site),
         .name = "c",
         .norm = "x",
         .family = SR_FAMILY_PSI,
         .width = 1,
         .layer_scale = 1},
        {.size = sizeof(sr_site),
         .name = "d",
         .norm = "x",
         .family = SR_FAMILY_OWN,
         .width = 1,
         .uses = "mu,psi2",
         .layer_scale = 4,
         .layer_scale_own = true},
        {.size = sizeof(sr_site),
         .name = "e",
         .norm = "mine",
         .family = SR_FAMILY_ROW,
         .width = 1,
         .axis = "sample",
         .uses = "mu,sigma2",
         .constants = "sigma2"},
        {.size = sizeof(sr_site), .name = "f", .norm = "bn", .width = 1},
    };
    sr_runfile *f = open_sites(write_sites("told.h5", site, 6));
    expect_site(sr_run_get_site(f, 0), SR_FAMILY_SIGMA, "batch", "mu,sigma2", "", "ln");
    expect_site(sr_run_get_site(f, 1), SR_FAMILY_ROW, "row", "", "", "bn");
    expect_site(sr_run_get_site(f, 2), SR_FAMILY_PSI, "batch", "psi2", "", "x+ls");
    expect_site(sr_run_get_site(f, 3), SR_FAMILY_OWN, "batch", "mu,psi2", "", "x");
    expect_site(sr_run_get_site(f, 4), SR_FAMILY_ROW, "sample", "mu,sigma2", "sigma2", "mine");
    expect_site(sr_run_get_site(f, 5), SR_FAMILY_NONE, "-", "", "", "bn");
    assert_true(sr_run_over_batch(sr_run_get_site(f, 3)));
    assert_false(sr_run_over_batch(sr_run_get_site(f, 4)));
    assert_true(sr_run_uses(sr_run_get_site(f, 3), "psi2"));
    assert_false(sr_run_uses(sr_run_get_site(f, 3), "psi"));
    assert_true(sr_run_is_constant(sr_run_get_site(f, 4), "sigma2"));
    assert_false(sr_run_is_constant(sr_run_get_site(f, 4), "mu"));
    sr_run_close(f);
}

static void contradictions(void **state) {
    (void)state;
    static const sr_site bad[] = {
        {.size = sizeof(sr_site),
         .name = "a",
         .family = SR_FAMILY_SIGMA,
         .width = 1,
         .axis = "row"},
        {.size = sizeof(sr_site),
         .name = "a",
         .family = SR_FAMILY_SIGMA,
         .width = 1,
         .uses = "psi2"},
        {.size = sizeof(sr_site),
         .name = "a",
         .family = SR_FAMILY_SIGMA,
         .width = 1,
         .uses = "sigma2"},
        {.size = sizeof(sr_site),
         .name = "a",
         .family = SR_FAMILY_PSI,
         .width = 1,
         .uses = "mu,sigma2"},
        {.size = sizeof(sr_site), .name = "a", .family = SR_FAMILY_PN, .width = 1, .uses = ""},
        {.size = sizeof(sr_site),
         .name = "a",
         .family = SR_FAMILY_OWN,
         .width = 1,
         .uses = "median"},
        {.size = sizeof(sr_site),
         .name = "a",
         .family = SR_FAMILY_OWN,
         .width = 1,
         .uses = "mu,sigma2,psi2,mu"},
        {.size = sizeof(sr_site),
         .name = "a",
         .family = SR_FAMILY_ROW,
         .width = 1,
         .uses = "mu",
         .constants = "sigma2"},
        {.size = sizeof(sr_site),
         .name = "a",
         .family = SR_FAMILY_ROW,
         .width = 1,
         .axis = "batch"},
        {.size = sizeof(sr_site),
         .name = "a",
         .family = SR_FAMILY_ROW,
         .width = 1,
         .axis = "row,sample"},
        {.size = sizeof(sr_site), .name = "a", .width = 1, .uses = "mu"},
        {.size = sizeof(sr_site), .name = "a", .width = 1, .axis = "batch"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sr_failure why = {0};
        sr_recorder *r = sr_create(sample_path("bad.h5"), NULL, &why);
        assert_non_null(r);
        if (sr_add_site(r, &bad[i]) != -1) fail_msg("row %zu is accepted", i);
        check_failure(sr_failed(r), SR_USAGE, "do not go with family");
        sr_abandon(r);
    }
}

static const char *const told_by[] = {"family", "axis", "uses", "constants", "layer_scale_own"};

static void remove_one(const char *path, const char *name) {
    char dataset[64];
    snprintf(dataset, sizeof dataset, "/sites/%s", name);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    assert_true(H5Ldelete(file, dataset, H5P_DEFAULT) >= 0);
    H5Fclose(file);
}

/* Older files without these datasets: values for a method of this name. */
static void older_files(void **state) {
    (void)state;
    static const struct {
        const char *norm, *axis, *uses, *constants, *called;
        sr_family family;
    } row[] = {
        {"bn", "batch", "mu,sigma2", "", "bn+ls", SR_FAMILY_SIGMA},
        {"rbn", "batch", "mu,sigma2", "", "rbn+ls", SR_FAMILY_SIGMA},
        {"brn", "batch", "mu,sigma2", "", "brn+ls", SR_FAMILY_OWN},
        {"rbn-released", "batch", "mu,sigma2", "", "rbn-released+ls", SR_FAMILY_OWN},
        {"bn-powernorm", "batch", "mu,sigma2", "", "bn-powernorm", SR_FAMILY_OWN},
        {"pnv", "batch", "psi2", "", "pnv+ls", SR_FAMILY_PSI},
        {"mabn", "batch", "psi2", "", "mabn+ls", SR_FAMILY_PSI},
        {"pn", "batch", "psi2", "", "pn+ls", SR_FAMILY_PN},
        {"pn-released", "batch", "psi2", "", "pn-released", SR_FAMILY_OWN},
        {"ln", "row", "mu,sigma2", "", "ln+ls", SR_FAMILY_ROW},
        {"ln-simple", "row", "mu,sigma2", "", "ln-simple+ls", SR_FAMILY_ROW},
        {"adanorm", "row", "mu,sigma2", "", "adanorm+ls", SR_FAMILY_ROW},
        {"detach-mean", "row", "mu,sigma2", "mu", "detach-mean+ls", SR_FAMILY_ROW},
        {"detach-std", "row", "mu,sigma2", "sigma2", "detach-std+ls", SR_FAMILY_ROW},
        {"detach-both", "row", "mu,sigma2", "mu,sigma2", "detach-both+ls", SR_FAMILY_ROW},
        {"rmsnorm", "row", "psi2", "", "rmsnorm+ls", SR_FAMILY_ROW},
        {"groupnorm", "sample", "mu,sigma2", "", "groupnorm+ls", SR_FAMILY_ROW},
        {"instancenorm", "sample", "mu,sigma2", "", "instancenorm+ls", SR_FAMILY_ROW},
        {"none", "-", "", "", "none+ls", SR_FAMILY_NONE},
        {"bnx", "-", "", "", "bnx+ls", SR_FAMILY_NONE},
    };
    enum { ROWS = sizeof row / sizeof row[0] };
    sr_site site[ROWS];
    for (int i = 0; i < ROWS; i++)
        site[i] = (sr_site){.size = sizeof(sr_site),
                            .name = row[i].norm,
                            .norm = row[i].norm,
                            .width = 1,
                            .depth = i,
                            .layer_scale = 1};
    const char *path = write_sites("older.h5", site, ROWS);
    sr_failure why = {0};
    for (size_t k = 0; k < sizeof told_by / sizeof *told_by; k++) remove_one(path, told_by[k]);
    sr_runfile *f = open_sites(path);
    for (int i = 0; i < ROWS; i++)
        expect_site(sr_run_get_site(f, i), row[i].family, row[i].axis, row[i].uses,
                    row[i].constants, row[i].called);
    sr_run_close(f);
    check_ok(sr_run_check(path, &why), &why);
}

/* All parts or none: a file with only some of them has an unknown method, and reports it. */
static void half_told(void **state) {
    (void)state;
    static const sr_site site = {
        .size = sizeof(sr_site), .name = "a", .norm = "bn", .family = SR_FAMILY_PSI, .width = 1};
    for (size_t k = 0; k < sizeof told_by / sizeof *told_by; k++) {
        sr_failure why = {0};
        const char *path = write_sites("half.h5", &site, 1);
        remove_one(path, told_by[k]);
        sr_runfile *f = sr_run_open(path, &why);
        if (!f) fail_msg("%s", why.text);
        assert_non_null(strstr(sr_run_damage(f, 0), told_by[k]));
        if (!strstr(told_by[k], "layer_scale_own"))
            expect_site(sr_run_get_site(f, 0), SR_FAMILY_NONE, "-", "", "", "bn");
        sr_run_close(f);
        assert_int_equal(sr_run_check(path, &why), SR_FORMAT);
        check_failure(&why, SR_FORMAT, told_by[k]);
    }
}

static void unknown_family(void **state) {
    (void)state;
    static const sr_site site = {
        .size = sizeof(sr_site), .name = "a", .norm = "bn", .family = SR_FAMILY_PSI, .width = 1};
    static const char text[SR_KIND_SIZE] = "phi";
    const char *path = write_sites("phi.h5", &site, 1);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t set = H5Dopen(file, "/sites/family", H5P_DEFAULT), type = H5Dget_type(set);
    assert_true(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) >= 0);
    H5Tclose(type), H5Dclose(set), H5Fclose(file);
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    expect_site(sr_run_get_site(f, 0), SR_FAMILY_NONE, "-", "", "", "bn");
    sr_run_close(f);
    assert_int_equal(sr_run_check(path, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "/sites/family: unknown 'phi' at site 0");
}

/* A recovered file has the broken file's values, or values by its names. */
static void recovered(void **state) {
    (void)state;
    static const sr_site site = {.size = sizeof(sr_site),
                                 .name = "a",
                                 .norm = "rmsnorm",
                                 .family = SR_FAMILY_OWN,
                                 .width = 1,
                                 .uses = "mu,psi2",
                                 .constants = "mu",
                                 .layer_scale = 1,
                                 .layer_scale_own = true};
    sr_failure why = {0};
    for (int older = 0; older < 2; older++) {
        const char *path = write_sites("broken.h5", &site, 1), *to = sample_path("whole.h5");
        for (size_t k = 0; older && k < sizeof told_by / sizeof *told_by; k++)
            remove_one(path, told_by[k]);
        check_ok(sr_run_recover(path, to, true, -1, NULL, &why), &why);
        sr_runfile *f = open_sites(to);
        if (older)
            expect_site(sr_run_get_site(f, 0), SR_FAMILY_ROW, "row", "psi2", "", "rmsnorm+ls");
        else
            expect_site(sr_run_get_site(f, 0), SR_FAMILY_OWN, "batch", "mu,psi2", "mu", "rmsnorm");
        sr_run_close(f);
    }
}

/* No value is derived by a formula that does not apply; distances are always derived. */
static void nothing_derived(void **state) {
    (void)state;
    static const sr_site site = {
        .size = sizeof(sr_site), .name = "a", .family = SR_FAMILY_OWN, .width = 1, .uses = "psi2"};
    const double one = 1;
    sr_failure why = {0};
    const char *path = sample_path("own.h5");
    sr_recorder *r = sr_create(path, NULL, &why);
    assert_non_null(r);
    sr_add_site(r, &site);
    for (int step = 1; step <= 2; step++) {
        check_ok(sr_begin_step(r, step), sr_failed(r));
        sr_put_rows(r, 0, 4);
        static const sr_vector all[] = {SR_psi2_B, SR_psi2,   SR_sigma2_B, SR_gamma,
                                        SR_sum_g,  SR_sum_gx, SR_nu,       SR_Gamma_t};
        for (size_t v = 0; v < sizeof all / sizeof *all; v++) sr_put_vector(r, 0, all[v], &one);
        if (step == 2) sr_put_scalar(r, 0, SR_SCALAR_g_psi2, 7);
        sr_end_step(r, &(sr_step){.size = sizeof(sr_step), step, 10, 1, 1, 0.1, 1});
    }
    run_finish(r);
    sr_runfile *f = open_sites(path);
    float value[2];
    check_ok(sr_run_scalar(f, "g_psi2", 0, 0, 2, value, &why), &why);
    assert_true(isnan(value[0]));
    check_equals(value[1], 7);
    check_ok(sr_run_scalar(f, "dist_psi2", 0, 0, 2, value, &why), &why);
    check_equals(value[0], 0);
    check_equals(value[1], 0);
    assert_false(sr_run_has_scalar(f, "g_mu") || sr_run_has_scalar(f, "g_sigma2"));
    sr_run_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(told),
        cmocka_unit_test(contradictions),
        cmocka_unit_test(older_files),
        cmocka_unit_test(half_told),
        cmocka_unit_test(recovered),
        cmocka_unit_test(unknown_family),
        cmocka_unit_test(nothing_derived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
