/* A spike of one step among a million, from the recorder to gnuplot's input. The run file, the
 * analyses' buckets and statplot's curves all keep it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"
#include "testing/programs.h"

enum { STEPS = 1000000, SPIKE = 531977, DIP = 17 };

/* dist_mu, dist_sigma2, g_mu, g_sigma2 and loss: 1, but 500 and 1/500 in one step each. */
static double level(int64_t step) {
    if (step == SPIKE) return 500;
    return step == DIP ? 0.002 : 1;
}

static int write_run(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.vectors = false, o.planned_steps = STEPS;
    sr_recorder *r = sr_create(program_file("million.h5"), &o, &why);
    if (!r) fail_msg("%s", why.text);
    int site = sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                         .name = "stem",
                                         .norm = "bn",
                                         .family = SR_FAMILY_SIGMA,
                                         .width = 1});
    const double zero = 0, one = 1;
    for (int64_t step = 1; step <= STEPS; step++) {
        double mu_B = level(step), sigma2_B = 1 + mu_B, sum_g = 100 * mu_B * sqrt(sigma2_B);
        sr_begin_step(r, step);
        sr_put_rows(r, site, 100);
        sr_put_vector(r, site, SR_mu_B, &mu_B);
        sr_put_vector(r, site, SR_sigma2_B, &sigma2_B);
        sr_put_vector(r, site, SR_mu, &zero);
        sr_put_vector(r, site, SR_sigma2, &one);
        sr_put_vector(r, site, SR_gamma, &one);
        sr_put_vector(r, site, SR_sum_g, &sum_g);
        sr_put_vector(r, site, SR_sum_gx, &sum_g);
        sr_step row = {.size = sizeof(sr_step),
                       .update = step,
                       .tokens = 1,
                       .epoch = 1e-5 * (double)step,
                       .loss = mu_B};
        sr_end_step(r, &row);
    }
    check_ok(sr_close(r, &(sr_finish){.size = sizeof(sr_finish), .status = "complete"}, &why),
             &why);
    return 0;
}

/* Rows of the kept data with a number near `value` after the first column. */
static int rows_with(const char *text, double value) {
    int rows = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        char *at = NULL;
        strtod(line, &at);
        for (bool found = false; !found && *at && *at != '\n';) {
            char *end;
            double cell = strtod(at, &end);
            if (end == at) break;
            at = end;
            found = cell > 0.999 * value && cell < 1.001 * value;
            rows += found;
        }
    }
    return rows;
}

/* The spike and the dip are each in one bucket of a data file that a figure keeps. */
static void check_figure(const char *figure, const char *data) {
    program_result r = program_run("statplot %s million.h5 -o spike.svg --keep 2>kept || "
                                   "{ cat kept >&2; exit 1; }; "
                                   "d=$(sed 's/.*kept //' kept) && cat $d/%s && rm -r $d",
                                   figure, data);
    if (r.status) fail_msg("%s: exit %d: %s", figure, r.status, r.err);
    if (rows_with(r.out, 500) != 1 || rows_with(r.out, 0.002) != 1)
        fail_msg("%s: %d rows with the spike, %d with the dip", figure, rows_with(r.out, 500),
                 rows_with(r.out, 0.002));
    assert_true(rows_with(r.out, 1) >= 100);
    program_free(&r);
}

static void spike_in_figures(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_figure("fig2", "d.dat");
    check_figure("fig3", "d.dat");
    check_figure("curves", "t.dat");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(spike_in_figures)};
    return cmocka_run_group_tests(tests, write_run, NULL);
}
