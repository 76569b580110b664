/* statplot compare draws every site, or reports too many sites. */
#include <stdio.h>
#include <string.h>

#include "testing/check.h"
#include "testing/programs.h"

static void write_run(const char *name, int sites) {
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true;
    sr_recorder *r = sr_create(program_file(name), &o, &why);
    if (!r) fail_msg("%s", why.text);
    for (int i = 0; i < sites; i++) {
        char site[16];
        snprintf(site, sizeof site, "norm%d", i);
        run_add_bn(r, site, 1, i, 1);
    }
    for (int step = 1; step <= 3; step++) {
        sr_begin_step(r, step);
        for (int i = 0; i < sites; i++) {
            sr_put_rows(r, i, 4);
            sr_put_scalar(r, i, SR_SCALAR_tid_var, step + i);
        }
        sr_end_step(r, &(sr_step){.size = sizeof(sr_step), step, 10, step, 1, 0.1, 1});
    }
    check_ok(sr_close(r, &(sr_finish){.size = sizeof(sr_finish), .status = "complete"}, &why),
             &why);
}

static void test_every_site(void **state) {
    (void)state;
    write_run("forty.h5", 40);
    program_result r = program_run("statplot compare forty.h5 -o forty.svg && cat forty.svg");
    assert_int_equal(r.status, 0);
    assert_string_equal(r.err, "");
    for (int i = 0; i < 40; i++) {
        char title[32];
        snprintf(title, sizeof title, ">norm%d<", i);
        if (!strstr(r.out, title)) fail_msg("no panel %s", title);
    }
    program_free(&r);
}

static void test_too_many(void **state) {
    (void)state;
    write_run("many.h5", 121);
    program_result r = program_run("statplot compare many.h5 -o many.svg");
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(r.err, "121 panels are more than 120: choose with --site"));
    program_free(&r);
    r = program_run("statplot compare many.h5 --site 'norm?' -o many.svg");
    assert_int_equal(r.status, 0);
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_site),
                                       cmocka_unit_test(test_too_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
