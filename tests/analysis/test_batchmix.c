/* stat-batchmix on runs whose mu_B consists of known parts. The expected sums of squares are
 * computed from the parts themselves. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "testing/check.h"
#include "testing/programs.h"

enum { WIDTH = 8, PARTS = 5 };
enum { FORGOTTEN = 50 }; /* steps after which running means hold nothing of the early ones */

/* mu_B is the sum of these sources, each with a separate running mean. */
typedef enum { FIXED, BY_LENGTH, BY_PADDING, BY_POSITION, NOISE } source;

typedef struct made_run {
    const char *name;
    double alpha;
    double size[PARTS]; /* standard deviation over steps of each source */
    double told;        /* position_B is this many times the source BY_POSITION; 0: not recorded */
    int steps, every;   /* vectors in steps divisible by it */
    bool image;         /* no padding, samples of one size */
    int bad;            /* step with NaN, every seventh without rows; 0: none */
    bool bare;          /* samples and padded are not recorded */
    bool kink;          /* the part by length falls to the middle length, then rises */
    int early;          /* steps at the beginning whose sentences are ten times as long */
} made_run;

/* Sums over the recorded steps after burn-in of the remainder without some sources. */
typedef struct truth {
    int steps, startup, nonfinite;
    double all, without[PARTS], without_both, rest; /* rest: NOISE and FIXED alone */
    double tid, tid_position, independent;
} truth;

typedef struct batch {
    int samples, rows, padded;
    double value[PARTS][WIDTH];
} batch;

/* Lengths are between 5 and 25, padding up to a third; both with variance 1 when scaled. */
static void draw_batch(const made_run *run, bool early, rng *random, batch *b) {
    static const double slope[WIDTH] = {1, -1, 1, 1, -1, 1, -1, -1};
    b->samples = run->image ? 4 : 100 + (int)rng_below(random, 50);
    const double length = (run->image ? 16 : 5 + 20 * rng_uniform(random)) * (early ? 10 : 1);
    b->rows = (int)lround(b->samples * length);
    b->padded = run->image ? 0 : (int)lround(b->rows * 0.5 * rng_uniform(random));
    const double padding = (double)b->padded / (b->rows + b->padded);
    const double away = early ? 0 : ((double)b->rows / b->samples - 15) / 5.77;
    for (int k = 0; k < WIDTH; k++) {
        b->value[FIXED][k] = run->size[FIXED] * (k + 1);
        b->value[BY_LENGTH][k] =
            run->size[BY_LENGTH] * slope[k] * (run->kink ? fabs(away) - 0.87 : away);
        b->value[BY_PADDING][k] = run->size[BY_PADDING] * slope[7 - k] * (padding - 0.19) / 0.096;
        b->value[BY_POSITION][k] = run->size[BY_POSITION] * rng_normal(random);
        b->value[NOISE][k] = run->size[NOISE] * rng_normal(random);
    }
}

static double squares_without(const batch *b, double running[PARTS][WIDTH], unsigned left_out) {
    double sum = 0;
    for (int k = 0; k < WIDTH; k++) {
        double v = 0;
        for (int s = 0; s < PARTS; s++)
            if (!(left_out >> s & 1)) v += b->value[s][k] - running[s][k];
        sum += v * v;
    }
    return sum;
}

static void add_truth(truth *t, const batch *b, double running[PARTS][WIDTH], double alpha) {
    const double all = squares_without(b, running, 0), sigma = sqrt(2.0 * WIDTH);
    const double no_position = squares_without(b, running, 1u << BY_POSITION);
    const unsigned both = 1u << BY_LENGTH | 1u << BY_PADDING;
    t->steps++;
    t->all += all;
    for (int s = 0; s < PARTS; s++) t->without[s] += squares_without(b, running, 1u << s);
    t->without_both += squares_without(b, running, both);
    t->rest += squares_without(b, running, both | 1u << BY_POSITION);
    t->tid += sqrt(all) / sigma;
    t->tid_position += sqrt(no_position) / sigma;
    t->independent += 2 / (1 + alpha) * 2 * WIDTH / b->rows;
}

static void put_step(sr_recorder *r, const made_run *run, const batch *b,
                     double running[PARTS][WIDTH], bool bad) {
    double mu_B[WIDTH], mu[WIDTH], sigma2[WIDTH], position_B[WIDTH], position[WIDTH];
    for (int k = 0; k < WIDTH; k++) {
        mu_B[k] = mu[k] = 0;
        for (int s = 0; s < PARTS; s++) mu_B[k] += b->value[s][k], mu[k] += running[s][k];
        sigma2[k] = 2;
        position_B[k] = run->told * b->value[BY_POSITION][k];
        position[k] = run->told * running[BY_POSITION][k];
    }
    if (bad) mu_B[1] = NAN;
    sr_put_rows(r, 0, b->rows);
    if (!run->bare) sr_put_scalar(r, 0, SR_SCALAR_samples, b->samples);
    if (!run->bare) sr_put_scalar(r, 0, SR_SCALAR_padded, b->padded);
    sr_put_vector(r, 0, SR_mu_B, mu_B);
    sr_put_vector(r, 0, SR_mu, mu);
    sr_put_vector(r, 0, SR_sigma2, sigma2);
    sr_put_vector(r, 0, SR_sigma2_B, sigma2);
    if (run->told == 0) return;
    sr_put_vector(r, 0, SR_position_B, position_B);
    sr_put_vector(r, 0, SR_position, position);
}

/* Burn-in by another formula than the program's: multiplies the weight until it is at most 1 %. */
static int startup_of(double alpha) {
    int steps = 0;
    for (double weight = 1; weight > 0.01; weight *= alpha) steps++;
    return steps;
}

static truth make_run(const made_run *run) {
    sr_options o = run_options();
    o.vectors_every = run->every;
    sr_recorder *r = run_create(program_file(run->name), o);
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "first",
                              .norm = "bn",
                              .kind = "encoder",
                              .family = SR_FAMILY_SIGMA,
                              .width = WIDTH,
                              .depth = 1,
                              .eps = 1e-5,
                              .alpha = run->alpha});
    rng random = rng_create(20261);
    double running[PARTS][WIDTH] = {{0}};
    truth t = {.startup = run->early ? run->early + FORGOTTEN : startup_of(run->alpha)};
    for (int step = 1; step <= run->steps; step++) {
        batch b;
        draw_batch(run, step <= run->early, &random, &b);
        sr_begin_step(r, step);
        const bool bad = run->bad && step == run->bad, empty = run->bad && step % 7 == 3;
        if (empty)
            sr_put_rows(r, 0, 0), sr_put_scalar(r, 0, SR_SCALAR_samples, b.samples);
        else
            put_step(r, run, &b, running, bad);
        run_end_step(r, step);
        t.nonfinite += (bad || empty) && step > t.startup;
        if (empty) continue;
        if (step > t.startup && step % run->every == 0 && !bad)
            add_truth(&t, &b, running, run->alpha);
        for (int s = 0; s < PARTS; s++)
            for (int k = 0; k < WIDTH; k++)
                running[s][k] = run->alpha * running[s][k] + (1 - run->alpha) * b.value[s][k];
    }
    run_finish(r);
    return t;
}

/* -- reading the table ----------------------------------------------------------------------- */

static int row_of(const program_result *r, const char *part) {
    for (int row = 0; row < table_rows(r->out); row++)
        if (strcmp(table_cell(r->out, row, "part"), part) == 0) return row;
    return -1;
}

static double cell_of(const program_result *r, const char *part, const char *column) {
    const int row = row_of(r, part);
    if (row < 0) fail_msg("no part %s in:\n%s%s", part, r->out, r->err);
    return table_real(r->out, row, column);
}

static void check_share(const program_result *r, const char *part, double want, double within) {
    const double got = cell_of(r, part, "share");
    if (!(fabs(got - want) <= within))
        fail_msg("%s: share %g, not %g within %g", part, got, want, within);
}

static void check_note(const program_result *r, const char *part) {
    if (!strstr(r->out, part)) fail_msg("no '%s' in:\n%s%s", part, r->out, r->err);
}

/* -- tests ----------------------------------------------------------------------------------- */

/* Every part is found; the steps between recorded vectors count for the running covariates. */
static void parts_are_found(void **state) {
    (void)state;
    for (int every = 1; every <= 3; every += 2) {
        const made_run run = {.name = "known.h5",
                              .alpha = 0.7,
                              .size = {2, 0.6, 0.4, 0.5, 0.4},
                              .told = 1,
                              .steps = 1200,
                              .every = every};
        const truth t = make_run(&run);
        program_result r = program_run("stat-batchmix known.h5");
        assert_int_equal(r.status, 0);
        assert_int_equal(table_rows(r.out), 6);
        check_share(&r, "none", 0, 0);
        check_share(&r, "position", 1 - t.without[BY_POSITION] / t.all, 1e-5);
        check_share(&r, "length", 1 - t.without[BY_LENGTH] / t.all, 0.012);
        check_share(&r, "padding", 1 - t.without[BY_PADDING] / t.all, 0.012);
        check_share(&r, "length+padding", 1 - t.without_both / t.all, 0.012);
        check_share(&r, "position+length+padding", 1 - t.rest / t.all, 0.008);
        check_cell(&r, row_of(&r, "length"), "terms", 4);
        check_cell(&r, row_of(&r, "padding"), "terms", 2);
        check_cell(&r, 0, "steps", t.steps);
        check_cell(&r, 0, "nonfinite", 0);
        check_within(cell_of(&r, "none", "tid"), t.tid / t.steps, 1e-6);
        check_within(cell_of(&r, "position", "tid"), t.tid_position / t.steps, 1e-6);
        check_within(cell_of(&r, "position", "slope"), 1, 0.15);
        check_within(cell_of(&r, "none", "independent") * t.all / t.independent, 1, 1e-5);
        program_free(&r);
    }
}

/* Intervals hold the share and are not idle. Covariates shifted in time explain nothing. */
static void intervals_and_control(void **state) {
    (void)state;
    const made_run run = {.name = "known.h5",
                          .alpha = 0.7,
                          .size = {2, 0.6, 0.4, 0.5, 0.4},
                          .told = 1,
                          .steps = 1200,
                          .every = 1};
    make_run(&run);
    program_result r = program_run("stat-batchmix known.h5");
    static const char *const part[] = {"length", "padding", "length+padding"};
    for (int i = 0; i < 3; i++) {
        const double share = cell_of(&r, part[i], "share");
        const double low = cell_of(&r, part[i], "low"), high = cell_of(&r, part[i], "high");
        check_below(low, share);
        check_below(share, high);
        check_above(high - low, 0.005);
        check_below(high - low, 0.1);
        check_above(cell_of(&r, part[i], "control_low"), -0.03);
        check_below(cell_of(&r, part[i], "control_high"), 0.03);
        check_above(cell_of(&r, part[i], "control_high") - cell_of(&r, part[i], "control_low"),
                    0.001);
        check_above(share, 0.05);
    }
    const double wide = cell_of(&r, "length", "high") - cell_of(&r, "length", "low");
    const double below = cell_of(&r, "length", "share") - cell_of(&r, "length", "low");
    const double position = cell_of(&r, "position", "share");
    check_above(below, 0.3 * wide);
    check_below(below, 0.7 * wide);
    check_within(cell_of(&r, "position+length+padding", "control_low"), position, 0.03);
    assert_true(isnan(cell_of(&r, "position", "control_low")));
    program_free(&r);
    r = program_run("stat-batchmix known.h5 --level 50"); /* 0.34 of a normal distribution */
    const double narrow = cell_of(&r, "length", "high") - cell_of(&r, "length", "low");
    check_above(narrow, 0.25 * wide);
    check_below(narrow, 0.45 * wide);
    program_free(&r);
}

/* Relations that are not linear need terms that bend. */
static void bent_relations(void **state) {
    (void)state;
    const made_run run = {.name = "kink.h5",
                          .alpha = 0.7,
                          .size = {2, 0.8, 0, 0, 0.4},
                          .steps = 1200,
                          .every = 1,
                          .kink = true};
    const truth t = make_run(&run);
    program_result r = program_run("stat-batchmix kink.h5");
    check_below(t.without[BY_LENGTH], 0.6 * t.all);
    check_share(&r, "length", 1 - t.without[BY_LENGTH] / t.all, 0.015);
    program_free(&r);
    r = program_run("stat-batchmix kink.h5 --length-terms 1");
    check_share(&r, "length", 0, 0.03);
    program_free(&r);
}

/* The knots are quantiles of the steps in the window; none of the long sentences before it is a
 * knot. */
static void knots_of_the_window(void **state) {
    (void)state;
    const made_run run = {.name = "early.h5",
                          .alpha = 0.7,
                          .size = {2, 0.8, 0, 0, 0.4},
                          .steps = 1800,
                          .every = 1,
                          .kink = true,
                          .early = 600};
    const truth t = make_run(&run);
    program_result r = program_run("stat-batchmix early.h5 --burn-in 650");
    check_cell(&r, 0, "first_step", run.early + FORGOTTEN + 1);
    check_share(&r, "length", 1 - t.without[BY_LENGTH] / t.all, 0.015);
    program_free(&r);
}

/* Without any relation, the coefficients fit noise, and other rows judge them. The shares are about
 * -(terms)/(steps); the rows that were fitted would give as much above 0. */
static void nothing_is_found_in_noise(void **state) {
    (void)state;
    const made_run run = {
        .name = "noise.h5", .alpha = 0.7, .size = {2, 0, 0, 0, 1}, .steps = 400, .every = 1};
    const truth t = make_run(&run);
    program_result r = program_run("stat-batchmix noise.h5");
    assert_int_equal(table_rows(r.out), 4);
    check_share(&r, "length+padding", -6.0 / t.steps, 5.0 / t.steps);
    check_below(cell_of(&r, "length", "share"), 0);
    check_below(cell_of(&r, "length+padding", "control_low"), 0);
    check_below(cell_of(&r, "length+padding", "control_high"), 2.0 / t.steps);
    program_free(&r);
}

/* A position part that the rest of the mean cancels: slope 1/4, and its share is negative. */
static void share_below_zero(void **state) {
    (void)state;
    const made_run run = {.name = "cancelled.h5",
                          .alpha = 0.9,
                          .size = {1, 0, 0, 0.5, 0.001},
                          .told = 4,
                          .steps = 300,
                          .every = 1};
    make_run(&run);
    program_result r = program_run("stat-batchmix cancelled.h5");
    check_within(cell_of(&r, "position", "slope"), 0.25, 1e-3);
    check_share(&r, "position", -8, 0.05); /* (2/4 - 1) 16 */
    program_free(&r);
}

static void startup_is_left_out(void **state) {
    (void)state;
    static const double alpha[] = {0.5, 0.9, 0.95, 0.99};
    static const int startup[] = {7, 44, 90, 459};
    for (int i = 0; i < 4; i++) {
        const made_run run = {.name = "alpha.h5",
                              .alpha = alpha[i],
                              .size = {9, 0, 0, 0, 1},
                              .steps = 600,
                              .every = 1};
        const truth t = make_run(&run);
        program_result r = program_run("stat-batchmix alpha.h5");
        check_cell(&r, 0, "first_step", startup[i] + 1);
        check_cell(&r, 0, "last_step", 600);
        check_cell(&r, 0, "steps", 600 - startup[i]);
        check_within(cell_of(&r, "none", "tid"), t.tid / t.steps, 1e-6);
        program_free(&r);
    }
    program_result r = program_run("stat-batchmix alpha.h5 --burn-in 0");
    check_cell(&r, 0, "steps", 600);
    program_free(&r);
    r = program_run("stat-batchmix alpha.h5 --burn-in 10");
    check_cell(&r, 0, "first_step", 11);
    check_note(&r, "# steps: alpha.h5: 11 to 600 of 600");
    program_free(&r);
}

static void images_have_nothing_to_explain(void **state) {
    (void)state;
    const made_run run = {.name = "image.h5",
                          .alpha = 0.9,
                          .size = {1, 0, 0, 0, 1},
                          .steps = 300,
                          .every = 1,
                          .image = true};
    make_run(&run);
    program_result r = program_run("stat-batchmix image.h5");
    assert_int_equal(table_rows(r.out), 1);
    check_text(&r, 0, "part", "none");
    check_note(&r, "# note: image.h5: length is constant at 1 of 1 sites (first): left out");
    check_note(&r, "padding is constant");
    program_free(&r);
}

/* A file from before samples were recorded. */
static void covariates_that_are_missing(void **state) {
    (void)state;
    const made_run run = {.name = "bare.h5",
                          .alpha = 0.9,
                          .size = {1, 0, 0, 0.5, 1},
                          .told = 1,
                          .steps = 300,
                          .every = 1,
                          .bare = true};
    make_run(&run);
    program_result r = program_run("stat-batchmix bare.h5");
    assert_int_equal(table_rows(r.out), 2);
    check_note(&r, "length is not recorded at 1 of 1 sites (first): left out");
    check_note(&r, "padding is not recorded");
    program_free(&r);
}

/* 35 steps after the burn-in of 44 are enough for two terms, not for four. */
static void too_few_steps(void **state) {
    (void)state;
    const made_run run = {
        .name = "short.h5", .alpha = 0.9, .size = {1, 1, 0, 0, 1}, .steps = 79, .every = 1};
    make_run(&run);
    program_result r = program_run("stat-batchmix short.h5");
    assert_int_equal(table_rows(r.out), 2);
    check_text(&r, 1, "part", "padding");
    check_note(&r, "length: skipped: 35 recorded steps; needs 10 for each of 4 terms");
    check_note(&r, "length+padding: skipped: 35 recorded steps; needs 10 for each of 6 terms");
    program_free(&r);
    r = program_run("stat-batchmix short.h5 --length-terms 1 --shifts 0");
    assert_int_equal(table_rows(r.out), 4);
    assert_true(isnan(cell_of(&r, "length", "control_low")));
    program_free(&r);
}

/* A step with NaN is counted and left out; one without rows leaves the running means unchanged. */
static void steps_that_are_not_finite(void **state) {
    (void)state;
    const made_run run = {.name = "bad.h5",
                          .alpha = 0.7,
                          .size = {2, 0.6, 0.4, 0.5, 0.4},
                          .told = 1,
                          .steps = 1200,
                          .every = 1,
                          .bad = 500};
    const truth t = make_run(&run);
    program_result r = program_run("stat-batchmix bad.h5");
    check_cell(&r, 0, "nonfinite", t.nonfinite);
    check_cell(&r, 0, "steps", t.steps);
    check_share(&r, "length+padding", 1 - t.without_both / t.all, 0.012);
    program_free(&r);
}

static void refusals(void **state) {
    (void)state;
    const made_run run = {
        .name = "brief.h5", .alpha = 0.99, .size = {1, 1, 0, 0, 1}, .steps = 60, .every = 1};
    make_run(&run);
    write_ln_run(program_file("ln.h5"));
    static const struct {
        const char *command, *part;
        int status;
    } bad[] = {{"stat-batchmix brief.h5 --burn-in some", "--burn-in: 'some'", 2},
               {"stat-batchmix brief.h5 --burn-in -1", "--burn-in: '-1'", 2},
               {"stat-batchmix brief.h5 --phase third", "--phase: 'third'", 2},
               {"stat-batchmix brief.h5 --length-terms 7", "length-terms", 2},
               {"stat-batchmix brief.h5 --site nowhere", "matches 'nowhere'", 1},
               {"stat-batchmix brief.h5", "the burn-in of 459 steps leaves none up to step 60", 1},
               {"stat-batchmix ln.h5", "ln.h5 has no mu", 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        program_result r = program_run("%s", bad[i].command);
        if (r.status != bad[i].status || r.out[0] || !strstr(r.err, bad[i].part))
            fail_msg("%s: exit %d: %s%s", bad[i].command, r.status, r.err, r.out);
        program_free(&r);
    }
}

static void same_bytes(void **state) {
    (void)state;
    const made_run run = {.name = "known.h5",
                          .alpha = 0.7,
                          .size = {2, 0.6, 0.4, 0.5, 0.4},
                          .told = 1,
                          .steps = 300,
                          .every = 1};
    make_run(&run);
    program_result r = program_run(
        "for i in 1 2; do stat-batchmix known.h5 >$i.tsv; done && cmp 1.tsv 2.tsv && "
        "stat-batchmix known.h5 --seed 2 | grep -v '^#' >3.tsv && ! cmp -s 2.tsv 3.tsv");
    assert_int_equal(r.status, 0);
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_found),
        cmocka_unit_test(intervals_and_control),
        cmocka_unit_test(bent_relations),
        cmocka_unit_test(knots_of_the_window),
        cmocka_unit_test(nothing_is_found_in_noise),
        cmocka_unit_test(share_below_zero),
        cmocka_unit_test(startup_is_left_out),
        cmocka_unit_test(images_have_nothing_to_explain),
        cmocka_unit_test(covariates_that_are_missing),
        cmocka_unit_test(too_few_steps),
        cmocka_unit_test(steps_that_are_not_finite),
        cmocka_unit_test(refusals),
        cmocka_unit_test(same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
