/* A figure script's variables for its runs. Options of a run's normalization are listed even if
 * labels do not need them; the sites' methods determine them. Also the batch statistics that the
 * methods use. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "testing/check.h"
#include "testing/programs.h"

static void write_run(const char *name, sr_site site, const char *config) {
    sr_options o = run_options();
    o.model = "toy";
    o.data = "none";
    o.config = config;
    sr_recorder *r = run_create(program_file(name), o);
    site.name = "top", site.kind = "x", site.width = 2;
    sr_add_site(r, &site);
    for (int step = 1; step <= 2; step++) {
        sr_begin_step(r, step);
        sr_put_rows(r, 0, 4);
        sr_put_scalar(r, 0, SR_SCALAR_dist_mu, step);
        run_end_step(r, step);
    }
    run_finish(r);
}

static const sr_site mine = {.size = sizeof(sr_site), .norm = "mine", .family = SR_FAMILY_SIGMA},
                     released = {.size = sizeof(sr_site),
                                 .norm = "mine-released",
                                 .family = SR_FAMILY_PSI},
                     row = {.size = sizeof(sr_site),
                            .norm = "ln",
                            .family = SR_FAMILY_ROW,
                            .uses = "mu,sigma2"};

static int write_runs(void **state) {
    (void)state;
    write_run("a.h5", mine, "max-tokens = 1\nmine-power = 2\nother-power = 3\nnorm-warmup = 4\n");
    write_run("b.h5", mine, "max-tokens = 5\nmine-power = 6\nother-power = 7\nnorm-warmup = 8\n");
    write_run("c.h5", released, "lr = 1\nmine-power = 2\nminer-power = 1\n");
    write_run("d.h5", released, "lr = 2\nmine-power = 3\nminer-power = 2\n");
    write_run("e.h5", row, "lr = 2\n");
    return 0;
}

static void check_script(const char *runs, const char *line) {
    program_result r = program_run("dir=$(statplot curves %s -o x.svg --keep 2>&1 | "
                                   "sed -n 's/.*kept //p'); cat $dir/figure.gp; rm -r $dir",
                                   runs);
    assert_int_equal(r.status, 0);
    if (!strstr(r.out, line)) fail_msg("%s: no %s in %s", runs, line, r.out);
    program_free(&r);
}

static void test_options(void **state) {
    (void)state;
    check_script("a.h5 b.h5", "run_label[1] = 'max-tokens 1, power 2, norm-warmup 4'\n");
    check_script("a.h5 b.h5", "run_label[2] = 'max-tokens 5, power 6, norm-warmup 8'\n");
    check_script("c.h5 d.h5", "run_label[1] = 'lr 1, power 2'\n");
}

static void test_uses(void **state) {
    (void)state;
    check_script("a.h5 c.h5 e.h5", "run_uses[1] = 'mu,sigma2'\n");
    check_script("a.h5 c.h5 e.h5", "run_uses[2] = 'psi2'\n");
    check_script("a.h5 c.h5 e.h5", "run_uses[3] = ''\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_options), cmocka_unit_test(test_uses)};
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
