#include "time_figures.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "testing/check.h"

/* -- runs ------------------------------------------------------------------------------------ */

double time_noise(int step, int k) {
    return (double)((step * 37 + k * 61 + step * step * (k + 3)) % 101) / 101 - 0.5;
}

double time_ramp(int step, int k) {
    return step + time_noise(step, k);
}

static int add_site(sr_recorder *r, int depth, const char *name, const char *norm, double alpha) {
    return sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                     .name = name,
                                     .norm = norm,
                                     .kind = "conv",
                                     .family = strcmp(norm, "ln") ? SR_FAMILY_SIGMA : SR_FAMILY_ROW,
                                     .width = TIME_WIDTH,
                                     .depth = depth,
                                     .eps = 1,
                                     .alpha = alpha});
}

static void write_ramp(const char *name, double alpha, int every) {
    const double zero[TIME_WIDTH] = {0};
    sr_options o = run_options();
    o.vectors_every = every;
    sr_recorder *r = run_create(program_file(name), o);
    add_site(r, 1, "lags", "bn", alpha);
    add_site(r, 2, "rests", "bn", alpha);
    for (int step = 1; step <= TIME_STEPS * every; step++) {
        double value[2][TIME_WIDTH], square[2][TIME_WIDTH];
        sr_begin_step(r, step);
        for (int site = 0; site < 2; site++) {
            for (int k = 0; k < TIME_WIDTH; k++) {
                value[site][k] = site ? time_noise(step / every, k) : time_ramp(step / every, k);
                square[site][k] = (1 + site) * (40 - step / every + time_noise(step / every, k));
            }
            sr_put_rows(r, site, 5);
            sr_put_vector(r, site, SR_mu_B, value[site]);
            sr_put_vector(r, site, SR_mu, zero);
            sr_put_vector(r, site, SR_sigma2_B, square[site]);
            sr_put_vector(r, site, SR_sigma2, zero);
        }
        run_end_step(r, step);
    }
    run_finish(r);
}

static double wave(int step, int k) {
    return (k + 1) * (1 + 0.1 * time_noise(step, k)) *
           (k == 0 && step % 9 == 3 && step > 3 ? 60 : 1);
}

static void write_waves(const char *name, const char *norm) {
    sr_options o = run_options();
    o.vectors_every = 1;
    sr_recorder *r = run_create(program_file(name), o);
    const int first = add_site(r, 1, "still", norm, 0.9);
    add_site(r, 2, "wave", norm, 0.9);
    if (strcmp(norm, "ln") == 0) check_ok(sr_set_observed(r, first), sr_failed(r));
    for (int step = 1; step <= TIME_STEPS; step++) {
        const double still[TIME_WIDTH] = {1, step == 9 ? 2 : 1},
                     waves[TIME_WIDTH] = {wave(step, 0), wave(step, 1)};
        sr_begin_step(r, step);
        for (int site = 0; site < 2; site++) {
            sr_put_rows(r, site, 5);
            sr_put_vector(r, site, SR_psi2_B, site ? waves : still);
            sr_put_vector(r, site, SR_sigma2_B, waves);
        }
        run_end_step(r, step);
    }
    run_finish(r);
}

enum { WIDE = 64, LONG = 700 };

/* Sums of twelve uniform numbers. */
static void write_noise(const char *name) {
    const double zero[WIDE] = {0};
    double value[WIDE], square[WIDE];
    uint32_t state = 1;
    sr_options o = run_options();
    o.vectors_every = 1;
    sr_recorder *r = run_create(program_file(name), o);
    run_add_bn(r, "noise", WIDE, 1, 1);
    for (int step = 1; step <= LONG; step++) {
        for (int k = 0; k < WIDE; k++) {
            value[k] = -6;
            for (int i = 0; i < 12; i++)
                value[k] += (state = state * 1664525u + 1013904223u) / 4294967296.0;
            square[k] = step == 303 && k == 5 ? 90 : 7 + value[k];
        }
        sr_begin_step(r, step);
        sr_put_rows(r, 0, 5);
        sr_put_vector(r, 0, SR_mu_B, value);
        sr_put_vector(r, 0, SR_mu, zero);
        sr_put_vector(r, 0, SR_psi2_B, square);
        run_end_step(r, step);
    }
    run_finish(r);
}

int time_runs_write(void **state) {
    (void)state;
    write_ramp("ramp.h5", 0.7, 1);
    write_ramp("other.h5", 0.5, 1);
    write_ramp("sparse.h5", 0.7, 2);
    write_waves("waves.h5", "bn");
    write_waves("watched.h5", "ln");
    write_small_run(program_file("one.h5"), 1, true);
    write_ln_run(program_file("ln.h5"));
    write_noise("noise.h5");
    return 0;
}

/* -- drawn points ---------------------------------------------------------------------------- */

program_result drawn(const char *arguments) {
    program_result r = program_run(
        "statplot %s -o figure.svg --keep 2>kept || { cat kept >&2; exit 1; }\n"
        "d=$(sed -n 's/^statplot: kept //p' kept)\n"
        "cd \"$d\" && sed -i 's/^set multiplot/set table \"points\"/; s/^unset multiplot/unset "
        "table/; "
        "s/^eval LEGEND_DRAW/show arrow\\n&/; s/^ *eval .plot/show bmargin\\nset format xy "
        "\"%%.9g\"\\n&/' "
        "template.gp && gnuplot figure.gp && cat points && cd - >/dev/null && rm -r \"$d\"",
        arguments);
    if (r.status) fail_msg("%s: %s", arguments, r.err);
    return r;
}

int point(const program_result *r, int panel, int curve, int row, double number[4]) {
    int at_panel = 0, at_curve = -1, at_row = -1;
    for (const char *at = r->out; at && *at; at = strchr(at, '\n'), at += at != NULL) {
        if (sscanf(at, "# Curve %d", &at_curve) == 1) {
            at_panel += at_curve == 0;
            at_row = -1;
        } else if (*at != '#' && *at != '\n' && at_panel == panel && at_curve == curve &&
                   ++at_row == row) {
            return sscanf(at, "%lf %lf %lf %lf", number, number + 1, number + 2, number + 3);
        }
    }
    return 0;
}

void check_point(const program_result *r, int panel, int curve, int row, double x, double y) {
    double number[4];
    if (point(r, panel, curve, row, number) < 2)
        fail_msg("no row %d of curve %d in panel %d of:\n%s", row, curve, panel, r->out);
    const bool same = isnan(y) ? isnan(number[1]) : fabs(number[1] - y) <= 1e-5 * fabs(y);
    if (!(fabs(number[0] - x) <= 1e-5 * x) || !same)
        fail_msg("row %d of curve %d in panel %d: %g, %g instead of %g, %g", row, curve, panel,
                 number[0], number[1], x, y);
}

void check_svg(const char *text, bool there) {
    program_result r = program_run("grep -q -- '%s' figure.svg", text);
    if ((r.status == 0) != there) fail_msg("'%s' is %sin the figure", text, there ? "not " : "");
    program_free(&r);
}

void check_refused(const char *arguments, const char *part) {
    program_result r = program_run("rm -f none.svg; statplot %s -o none.svg; test ! -e none.svg || "
                                   "echo drawn",
                                   arguments);
    const char *end = strchr(r.err, '\n');
    if (!strstr(r.err, part) || r.out[0] || !end || (end[1] && !strstr(end, "hint")))
        fail_msg("%s: not '%s' alone: %s%s", arguments, part, r.err, r.out);
    program_free(&r);
}

bool in_two_rows(const program_result *r) {
    const char *first = strstr(r->err, "bmargin is set"),
               *other = strstr(first + 1, "bmargin is set");
    for (; other; other = strstr(other + 1, "bmargin is set"))
        if (strncmp(first, other, strcspn(first, "\n"))) return true;
    return false;
}
