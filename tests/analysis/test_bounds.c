/* test_bounds.c -- stat-gamma --bounds, and the rows of stat-lngrad on equation 7 and Theorem 2, on
 * runs whose numbers are known. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"
#include "testing/programs.h"

enum { ROWS_OF_PN = 7 };

static int add(sr_recorder *r, const char *name, const char *norm, sr_family family) {
    return sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                     .name = name,
                                     .norm = norm,
                                     .axis = family == SR_FAMILY_ROW ? "row" : "batch",
                                     .uses = family == SR_FAMILY_ROW ? "mu,sigma2" : "psi2",
                                     .constants = "",
                                     .kind = "encoder",
                                     .family = family,
                                     .width = 2,
                                     .depth = 0,
                                     .eps = 0,
                                     .alpha = 0.9});
}

/* Steps 1 to 3; step 2 does not request it. config "" and alpha_bwd NaN: the site's alpha, 0.9. */
static void write_bounds(const char *path, const char *config, double alpha_bwd) {
    static const char *const names[] = {"lemma2_max",    "row_xhat_max", "row_q_max", "Gamma_min",
                                        "row_dxhat_max", "y_outside",    "z_mean"};
    static const double pn[][3] = {
        {0.5, 0.75, 1}, {2, 3, 2.5}, {7, 5, 6}, {0.5, 1, 0.25}, {4, 9, 3}};
    enum { NAMES = sizeof names / sizeof names[0] };
    int id[NAMES];
    sr_options o = run_options();
    o.config = config;
    sr_recorder *r = run_create(program_file(path), o);
    const int site[] = {add(r, "pn", "pn", SR_FAMILY_PN), add(r, "pnv", "pnv", SR_FAMILY_PSI),
                        add(r, "ada", "adanorm", SR_FAMILY_ROW)};
    sr_set_alpha_backward(r, site[0], alpha_bwd);
    for (int i = 0; i < NAMES; i++)
        id[i] = sr_declare_scalar(r, names[i], "1", names[i], SR_PER_SITE);
    for (int step = 1; step <= 3; step++) {
        sr_begin_step(r, step);
        for (int i = 0; i < 3; i++) sr_put_rows(r, site[i], 2);
        sr_put_scalar(r, site[0], SR_SCALAR_Gamma_max, step == 2 ? 12 : 4);
        for (int i = 0; i < 5 && step != 2; i++) sr_put_scalar(r, site[0], id[i], pn[i][step - 1]);
        if (step != 2) sr_put_scalar(r, site[1], id[0], 1.5 - 0.25 * step);
        if (step != 2) sr_put_scalar(r, site[2], id[5], 0.25 * step);
        if (step != 2) sr_put_scalar(r, site[2], id[6], 0.5 + 0.1 * step);
        run_end_step(r, step);
    }
    run_finish(r);
}

static int write_runs(void **state) {
    (void)state;
    write_bounds("bounds.h5", "", NAN);
    return 0;
}

typedef struct line {
    const char *statement;
    double value, steps, step, limit;
    const char *holds;
} line;

static void check_line(const program_result *r, int row, const line *want) {
    check_text(r, row, "statement", want->statement);
    check_cell(r, row, "value", want->value);
    check_cell(r, row, "steps", want->steps);
    check_cell(r, row, "step", want->step);
    if (isnan(want->limit))
        check_text(r, row, "limit", "nan");
    else
        check_within(table_real(r->out, row, "limit"), want->limit, 1e-6);
    check_text(r, row, "holds", want->holds);
}

/* The largest of the steps that have a value. A limit that is reached satisfies lemma 2 only. */
static void statements(void **state) {
    (void)state;
    static const line want[ROWS_OF_PN] = {
        {"lemma 2", 1, 2, 3, 1, "yes"},
        {"theorem 4 (25)", 2.5, 2, 3, NAN, "-"},
        {"theorem 4 (26)", 7, 2, 1, NAN, "-"},
        {"theorem 4 (27)", 6.25, 2, 3, 10, "yes"},
        {"theorem 4 (27 by feature)", 12, 3, 2, 10, "no"},
        {"theorem 4 (28)", 4, 2, 3, NAN, "-"},
        {"theorem 4", 4, 2, 1, NAN, "-"},
    };
    static const line of_pnv = {"lemma 2", 1.25, 2, 1, 1, "no"};
    program_result r = program_run("stat-gamma --bounds bounds.h5");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), ROWS_OF_PN + 1);
    for (int i = 0; i < ROWS_OF_PN; i++) check_line(&r, i, &want[i]);
    check_line(&r, ROWS_OF_PN, &of_pnv);
    check_text(&r, ROWS_OF_PN, "site", "pnv");
    assert_null(strstr(r.out, "warning"));
    program_free(&r);
}

/* The limit is the site's: recorded, else from a comment about the site, else from its alpha. */
static void backward_alpha(void **state) {
    static const struct {
        const char *config;
        double recorded, limit;
        const char *holds;
    } run[] = {
        {"# pn: pn eps=1e-05 alpha=0.9 alpha_bwd=0.95\n", NAN, 20, "yes"},
        {"# pn: pn eps=1e-05 alpha=0.9 alpha_bwd=0.95\n", 0.5, 2, "no"},
        {"# stem: pn alpha_bwd=0.99\n# pn and 2 more: pn alpha_bwd=0.95\n", NAN, 20, "yes"},
        {"norm = pn(alpha_bwd=0.99)\n# pn2: pn alpha_bwd=0.99\n", NAN, 10, "no"},
        {"# stem: pn alpha_bwd=0.5\n# top and 2 more: pn alpha_bwd=0.95\n", NAN, 20, "yes"},
        {"# a and 1 more: pn alpha_bwd=0.5\n# b and 1 more: pn alpha_bwd=0.9\n", NAN, NAN, "-"},
        {"# a and 1 more: pn-released alpha_bwd=0.5\n", NAN, 10, "no"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof run / sizeof *run; i++) {
        write_bounds("slow.h5", run[i].config, run[i].recorded);
        program_result r = program_run("stat-gamma --bounds slow.h5 --site pn");
        assert_int_equal(table_rows(r.out), ROWS_OF_PN);
        if (isnan(run[i].limit))
            check_text(&r, 4, "limit", "nan");
        else
            check_within(table_real(r.out, 4, "limit"), run[i].limit, 1e-6);
        check_text(&r, 4, "holds", run[i].holds);
        program_free(&r);
    }
}

static void not_recorded(void **state) {
    (void)state;
    write_small_run(program_file("small.h5"), 6, true);
    program_result r = program_run("stat-gamma --bounds small.h5");
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(r.err, "no run has lemma2_max: statrec train --theorems-every N"));
    program_free(&r);
}

static void options_of_the_ratio(void **state) {
    static const char *const option[][2] = {{"--per-feature", "--per-feature"},
                                            {"--steps", "--steps all"}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char told[80];
        snprintf(told, sizeof told, "%s has no effect with --bounds", option[i][0]);
        program_result r = program_run("stat-gamma --bounds bounds.h5 %s", option[i][1]);
        assert_int_equal(r.status, 2);
        assert_non_null(strstr(r.err, told));
        program_free(&r);
    }
}

/* stat-lngrad has one row per statistic, with the definition stored in the run. */
static void rows_of_lngrad(void **state) {
    (void)state;
    program_result r = program_run("stat-lngrad --burn-in 0 bounds.h5 --stat y_outside,z_mean");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 2);
    check_text(&r, 0, "statistic", "y_outside");
    check_cell(&r, 0, "max", 0.75);
    check_text(&r, 1, "statistic", "z_mean");
    check_within(table_real(r.out, 1, "max"), 0.8, 1e-6);
    assert_null(strstr(r.out, "warning"));
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements), cmocka_unit_test(backward_alpha),
        cmocka_unit_test(not_recorded), cmocka_unit_test(options_of_the_ratio),
        cmocka_unit_test(rows_of_lngrad)};
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
