/* test_momentum.c -- whether running values move correctly. Runs with a running mean that the test
 * moves itself, each case that a host program can meet, and its number. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "found.h"
#include "planted.h"
#include "testing/check.h"
#include "testing/programs.h"
#include "testing/run_builder.h"

enum { STEPS = 120, WIDTH = 8, SITES = 5 };

/* Applies to the sites from `first` on; the others are in order. */
typedef struct motion_plan {
    const char *ranks;  /* ranks in the file; NULL: one process */
    int first;          /* site */
    double alpha;       /* of the sites, as recorded; 0: 0.9 */
    double momentum;    /* that is used; 0: 1 - alpha; 1: alpha is 0, as recorded */
    int updates;        /* by the same batch, in a step; 0: 1 */
    int passes;         /* batches that are merged into one of a step; 0: 1 */
    bool counted;       /* `passes` is recorded */
    int rest_to;        /* steps before this one do not move it */
    int rest_from;      /* nor steps from this one on; 0: all do */
    int absent_to;      /* steps before this one do not record it */
    int bad_at;         /* the batch of this step is not finite; 0: none */
    bool bad_loss;      /* the loss is missing from there on */
    double rank_offset; /* merged batch mean minus the rank's mean */
    double padded;      /* rows over the valid ones; their mean is 2 above, and enters mu alone */
    int rows;           /* 0: 4096 */
    bool same;          /* every batch is the same */
    bool unbiased;      /* running variance */
    bool single;        /* running values in float, which stop moving by rounding */
    bool silent;        /* no mu_moved and mu_apart */
    double noise;       /* of mu_B; 0: 0.05 */
    double drift;       /* of the mean per step */
    int steps;          /* 0: STEPS */
    const char *config; /* of statrec train; NULL: another host program */
} motion_plan;

typedef struct site_state {
    double mu[WIDTH], sigma2[WIDTH];
} site_state;

typedef struct batch_values {
    double mu_B[WIDTH], sigma2_B[WIDTH];
} batch_values;

/* Moves the running values by one batch mean. */
static void move(const motion_plan *p, site_state *s, const double *mu_B, const double *sigma2_B) {
    const double alpha = 1 - planted_or(p->momentum, 1 - planted_or(p->alpha, 0.9));
    const double rows = planted_or(p->rows, 4096), wider = p->unbiased ? rows / (rows - 1) : 1;
    for (int k = 0; k < WIDTH; k++) {
        s->mu[k] = alpha * s->mu[k] + (1 - alpha) * mu_B[k];
        if (p->single) s->mu[k] = (double)(float)s->mu[k];
        s->sigma2[k] = alpha * s->sigma2[k] + (1 - alpha) * wider * sigma2_B[k];
    }
}

static bool rests(const motion_plan *p, int step) {
    return step < p->rest_to || (p->rest_from && step >= p->rest_from);
}

/* Merges the passes of the step into one batch; each pass moves s. */
static batch_values pass_step(const motion_plan *p, int step, site_state *s, uint32_t *seed) {
    const int passes = (int)planted_or(p->passes, 1), updates = (int)planted_or(p->updates, 1);
    batch_values all = {{0}, {0}};
    for (int pass = 0; pass < passes; pass++) {
        double mu_B[WIDTH], sigma2_B[WIDTH];
        for (int k = 0; k < WIDTH; k++) {
            mu_B[k] = k - 3 + p->drift * step +
                      (p->same ? 0 : planted_or(p->noise, 0.05) * planted_noise(seed));
            sigma2_B[k] = 1 + (p->same ? 0 : 0.05 * planted_noise(seed));
            if (p->bad_at && step == p->bad_at) mu_B[k] = INFINITY;
            all.mu_B[k] += (mu_B[k] + p->rank_offset) / passes;
            all.sigma2_B[k] += sigma2_B[k] / passes;
        }
        for (int k = 0; k < WIDTH; k++) mu_B[k] += 2 * p->padded / (1 + p->padded);
        for (int i = 0; i < updates && !rests(p, step); i++) move(p, s, mu_B, sigma2_B);
    }
    return all;
}

static void put(sr_recorder *r, int site, sr_vector which, const double *value) {
    assert_int_equal(sr_put_vector(r, site, which, value), SR_OK);
}

static void put_site(sr_recorder *r, const motion_plan *p, int site, int step, const int id[3],
                     site_state *s, uint32_t *seed) {
    const site_state before = *s;
    double moved = 0, apart = 0, one[WIDTH], sum[WIDTH];
    const batch_values b = pass_step(p, step, s, seed);
    if (step < p->absent_to) return;
    for (int k = 0; k < WIDTH; k++) {
        moved += (s->mu[k] - before.mu[k]) * (b.mu_B[k] - before.mu[k]);
        apart += (b.mu_B[k] - before.mu[k]) * (b.mu_B[k] - before.mu[k]);
        one[k] = 1, sum[k] = 0.1 * (k - 3);
    }
    sr_put_rows(r, site, (int64_t)planted_or(p->rows, 4096));
    put(r, site, SR_mu_B, b.mu_B), put(r, site, SR_sigma2_B, b.sigma2_B);
    put(r, site, SR_mu, before.mu), put(r, site, SR_sigma2, before.sigma2);
    put(r, site, SR_gamma, one), put(r, site, SR_sum_g, sum), put(r, site, SR_sum_gx, sum);
    sr_put_scalar(r, site, SR_SCALAR_dx_norm, 100);
    if (p->padded > 0)
        sr_put_scalar(r, site, SR_SCALAR_padded, p->padded * planted_or(p->rows, 4096));
    if (p->silent) return;
    sr_put_scalar(r, site, id[0], moved);
    sr_put_scalar(r, site, id[1], apart);
    if (p->counted) sr_put_scalar(r, site, id[2], planted_or(p->passes, 1));
}

static sr_recorder *create(const motion_plan *p, int id[3]) {
    static const char *const names[SITES] = {"a", "b", "c", "d", "e"};
    sr_options o = run_options();
    o.vectors_every = 1;
    o.ranks = p->ranks;
    if (p->config) o.program = "statrec train", o.config = p->config;
    sr_recorder *r = run_create(program_file("run.h5"), o);
    for (int i = 0; i < SITES; i++)
        sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                  .name = names[i],
                                  .norm = "BatchNorm2d",
                                  .kind = "layer",
                                  .family = SR_FAMILY_SIGMA,
                                  .width = WIDTH,
                                  .depth = i,
                                  .eps = 1e-5,
                                  .alpha = p->momentum == 1 ? 0 : planted_or(p->alpha, 0.9),
                                  .repeat = p->passes > 1 ? SR_REPEAT_MERGE : SR_REPEAT_LAST});
    if (p->silent) return r;
    id[0] = sr_declare_scalar(r, "mu_moved", "1", "", SR_PER_SITE);
    id[1] = sr_declare_scalar(r, "mu_apart", "1", "", SR_PER_SITE);
    if (p->counted) id[2] = sr_declare_scalar(r, "passes", "1", "", SR_PER_SITE);
    return r;
}

static void write_motion(const motion_plan *p) {
    const motion_plan usual = {.alpha = p->alpha, .rows = p->rows, .silent = p->silent};
    int id[3] = {-1, -1, -1};
    sr_recorder *r = create(p, id);
    site_state state[SITES] = {0};
    uint32_t seed = 11;
    for (int i = 0; i < SITES; i++)
        for (int k = 0; k < WIDTH; k++) state[i].sigma2[k] = 1;
    for (int step = 1; step <= (p->steps ? p->steps : STEPS); step++) {
        const bool bad = p->bad_at && (step == p->bad_at || (p->bad_loss && step > p->bad_at));
        const double loss = bad ? NAN : 2 * exp(-step / 100.0) + 0.02 * planted_noise(&seed);
        sr_begin_step(r, step);
        for (int i = 0; i < SITES; i++)
            put_site(r, i >= p->first ? p : &usual, i, step, id, &state[i], &seed);
        const sr_step row = {sizeof(sr_step), step, 100, step, loss, 0.1, 1};
        if (sr_end_step(r, &row) != SR_OK) fail_msg("%s", sr_failed(r)->text);
    }
    run_finish(r);
}

static program_result tell(motion_plan p) {
    write_motion(&p);
    return diagnose("--format tsv");
}

static void check_case(motion_plan p, const char *verdict, const char *severity, const char *site,
                       double value, double bound, const char *words) {
    program_result r = tell(p);
    const int row = row_of(&r, "momentum");
    if (strstr(table_cell(r.out, row, "text"), words) == NULL)
        fail_msg("no '%s' in: %s", words, table_cell(r.out, row, "text"));
    check_text(&r, row, "verdict", verdict);
    check_text(&r, row, "severity", severity);
    check_text(&r, row, "site", site);
    check_within(table_real(r.out, row, "value"), value, bound);
    program_free(&r);
}

/* -- cases ----------------------------------------------------------------------------------- */

static void in_time(void **state) {
    (void)state;
    static const double alphas[] = {0.9, 0.5, 0.99};
    for (int i = 0; i < 3; i++)
        check_case((motion_plan){.alpha = alphas[i]}, "in-order", "-", "a", 1, 1e-4, "");
    /* other means, which give different moves for the batches of a step */
    check_case((motion_plan){.noise = 3}, "in-order", "-", "a", 1, 1e-4, "");
    program_result r = diagnose("");
    if (!strstr(r.out, " < 0.9, > 1.1 ")) fail_msg("not both limits in: %s", r.out);
    program_free(&r);
}

/* Checkpointing: v is 1 - 0.9^2 = 0.19. */
static void twice(void **state) {
    (void)state;
    check_case((motion_plan){.first = 2, .updates = 2}, "found", "notable", "c", 2, 1e-3,
               "At c the running values are updated twice a step: a second forward pass, as of "
               "checkpointing, moves them again (v 0.19 [0.19, 0.19], of one update 0.1). At d ");
    check_case((motion_plan){.first = 4, .updates = 3}, "found", "notable", "e", 3, 1e-3,
               "updated three times a step");
    program_result r = tell((motion_plan){.first = 3, .updates = 2});
    check_cell(&r, row_of(&r, "momentum"), "sites_beyond", 2);
    check_cell(&r, row_of(&r, "momentum"), "sites_asked", 5);
    check_cell(&r, row_of(&r, "momentum"), "limit", 1.1);
    advises(&r, "momentum", "a second forward pass that leaves running values alone", true);
    program_free(&r);
}

/* All sites; the text names three. */
static void many_sites(void **state) {
    (void)state;
    check_case((motion_plan){.updates = 2}, "found", "notable", "a", 2, 1e-3,
               "of one update 0.1). The same at 2 more sites.");
}

/* Accumulation: four different batches are one; v is 1 - 0.9^4 = 0.344. */
static void accumulated(void **state) {
    (void)state;
    const motion_plan p = {.first = 1, .passes = 4, .counted = true, .noise = 0.2};
    check_case(p, "found", "minor", "b", 4, 0.3,
               "the running values make four moves an update, one for each of the four passes that "
               "are merged: alpha counts passes (v 0.34");
    /* two SAM passes are both counted */
    check_case((motion_plan){.first = 4, .passes = 2, .counted = true}, "found", "minor", "e", 2,
               0.2, "two moves an update, one for each of the two passes");
    /* only the file shows that passes are merged */
    check_case((motion_plan){.passes = 4}, "found", "minor", "a", 4, 0.6, "four passes");
    /* each of two passes is recomputed for its gradient */
    check_case((motion_plan){.first = 4, .passes = 2, .updates = 2, .counted = true}, "found",
               "notable", "e", 4, 0.4, "updated four times a step");
}

/* A mean that drifts by c per step is c/(1 - a) away, where a is the weight over a step. 0.9^4 =
 * 0.656 and the best weight, 0.5, differ by 1.45. */
static void accumulated_lag(void **state) {
    (void)state;
    motion_plan p = {.first = 4, .passes = 4, .counted = true, .noise = 0.02, .drift = 0.05};
    program_result r = tell(p);
    int row = row_of(&r, "alpha");
    check_text(&r, row, "verdict", "in-order");
    check_text(&r, row, "site", "e");
    check_within(table_real(r.out, row, "value"), 1.45, 0.03);
    program_free(&r);
    p.alpha = 0.97, p.steps = 400; /* 0.885: 4.35 */
    r = tell(p);
    row = row_of(&r, "alpha");
    check_within(table_real(r.out, row, "value"), 4.35, 0.1);
    says(&r, "alpha", "with alpha 0.97 (0.885 over a step) is 4.3");
    says(&r, "alpha", "alpha 0.841 (0.5 over a step)");
    program_free(&r);
    r = program_run("stat-alpha run.h5 --site e --stat mu --alpha 0.5");
    check_within(table_real(r.out, 0, "run_alpha"), 0.885, 0.002);
    program_free(&r);
}

/* Another momentum than the recorded one. */
static void slower(void **state) {
    (void)state;
    check_case((motion_plan){.first = 3, .momentum = 0.02}, "found", "notable", "d",
               log(0.98) / log(0.9), 1e-3, "move as by 0.192 updates a step");
}

/* Rows outside mu_B move the running mean elsewhere; in statrec train they do not. A fifth of the
 * rows moves mu by 0.4. Without them mu_B - mu has the variance s^2 2/(1 + alpha). */
static void padding(void **state) {
    (void)state;
    const motion_plan p = {.first = 3, .padded = 0.25, .noise = 0.5, .steps = 3000};
    const double around = 0.25 * 2 / 1.9, v = 0.1 * around / (around + 0.4 * 0.4),
                 k = log(1 - v) / log(0.9);
    check_case(p, "found", "minor", "d", k, 0.03,
               "20 % of the rows are padding, which they contain and the recorded statistics do "
               "not (v 0.0");
    program_result r = diagnose("--format tsv");
    check_text(&r, row_of(&r, "momentum"), "statistic", "updates with padding");
    check_cell(&r, row_of(&r, "momentum"), "limit", 0.9);
    advises(&r, "momentum", "a norm that leaves padding out", true);
    advises(&r, "momentum", "momentum in use", false);
    program_free(&r);
    motion_plan trained = p;
    trained.config = "norm = bn\n";
    check_case(trained, "found", "notable", "d", k, 0.03, "their alpha is not the recorded one");
    /* padding does not explain more updates */
    motion_plan more = p;
    more.updates = 4;
    r = tell(more);
    holds(&r, "momentum", "text", "padding", false);
    program_free(&r);
    check_case((motion_plan){.first = 3, .padded = 0.001}, "in-order", "-", "a", 1, 0.01, "");
}

static void never(void **state) {
    (void)state;
    check_case((motion_plan){.first = 2, .rest_to = STEPS + 1}, "found", "notable", "c", 0, 1e-9,
               "At c the running values never move (v 0)");
    check_case((motion_plan){.alpha = 1, .rest_to = STEPS + 1}, "found", "notable", "a", 0, 1e-9,
               "never move");
    program_result r = tell((motion_plan){.rest_to = STEPS + 1});
    advises(&r, "momentum", "a momentum above 0", true);
    program_free(&r);
}

/* A frozen norm starts to move at model.train() in step 60, whether or not earlier steps are
 * recorded. */
static void begins(void **state) {
    (void)state;
    check_case((motion_plan){.first = 1, .rest_to = 60}, "found", "notable", "b", 60, 1e-9,
               "At b the running values begin to move at step 60.");
    check_case((motion_plan){.first = 1, .absent_to = 60}, "found", "notable", "b", 60, 1e-9,
               "begin to move at step 60.");
    check_case((motion_plan){.rest_to = 2}, "found", "notable", "a", 2, 1e-9, "at step 2.");
    program_result r = tell((motion_plan){.rest_to = 60});
    check_cell(&r, row_of(&r, "momentum"), "at_step", 60);
    program_free(&r);
}

/* Averaging of weights sets the momentum to 0 late in training. */
static void stops(void **state) {
    (void)state;
    check_case((motion_plan){.first = 4, .rest_from = 91}, "found", "notable", "e", 91, 1e-9,
               "At e the running values stop moving at step 91.");
    check_case((motion_plan){.first = 4, .rest_from = STEPS}, "in-order", "-", "a", 1, 1e-3, "");
    /* as configured */
    check_case((motion_plan){.rest_from = 61, .config = "freeze-stats = 0.5\n"}, "in-order", "-",
               "a", 1, 1e-3, "");
    check_case((motion_plan){.rest_from = 61, .config = "freeze-stats = 1\n"}, "found", "notable",
               "a", 61, 1e-9, "stop moving at step 61");
}

/* Runs with 5 and with 64 rows, each repeating one batch: PyTorch's running variance has the
 * divisor n - 1. */
static void divisor(void **state) {
    (void)state;
    const motion_plan five = {.rows = 5, .same = true, .unbiased = true, .steps = 300};
    program_result r = tell(five);
    int row = row_of(&r, "momentum");
    check_text(&r, row, "verdict", "found");
    check_text(&r, row, "severity", "minor");
    check_within(table_real(r.out, row, "value"), 1 - sqrt(4.0 / 5), 1e-6);
    says(&r, "momentum",
         "tid_var 0.1056 is the divisor's bias, 1 - sqrt((n-1)/n) of n = 5 rows, "
         "and no drift");
    holds(&r, "inference", "verdict", "found", false);
    holds(&r, "inference", "text", "stray far", false);
    program_free(&r);
    motion_plan more = five;
    more.rows = 64;
    r = tell(more);
    row = row_of(&r, "momentum");
    check_text(&r, row, "verdict", "in-order");
    check_within(table_real(r.out, row, "value"), 1 - sqrt(63.0 / 64), 1e-6);
    says(&r, "momentum", "tid_var 0.007843 is the divisor's bias");
    program_free(&r);
    more.unbiased = false, more.single = true;
    r = tell(more);
    holds(&r, "momentum", "text", "divisor", false);
    check_text(&r, row_of(&r, "momentum"), "verdict", "in-order");
    program_free(&r);
    /* another deviation of this size is a drift */
    more = five;
    more.same = false, more.noise = 0.1;
    r = tell(more);
    holds(&r, "momentum", "text", "divisor", false);
    program_free(&r);
    more = five;
    more.rank_offset = 0.5, more.silent = true;
    r = tell(more);
    holds(&r, "momentum", "text", "divisor", false);
    program_free(&r);
}

/* A batch that overflows leaves NaN in the buffers of c and later sites. The weights are valid, so
 * the loss stays finite. */
static void not_finite(void **state) {
    (void)state;
    for (int silent = 0; silent < 2; silent++) {
        const motion_plan p = {.first = 2, .bad_at = 50, .silent = silent};
        check_case(p, "found", "severe", "c", 50, 1e-9,
                   "At c the batch of step 50 left running values that are not finite: evaluation "
                   "is NaN from step 51 on; the weights are not.");
        program_result r = diagnose("--format tsv");
        check_cell(&r, row_of(&r, "momentum"), "rank", 1);
        advises(&r, "momentum", "buffers reset", true);
        check_text(&r, row_of(&r, "divergence"), "severity", "notable");
        check_cell(&r, row_of(&r, "divergence"), "at_step", 50);
        check_text(&r, row_of(&r, "divergence"), "site", "c");
        says(&r, "divergence", "Training went on with a finite loss");
        advises(&r, "divergence", "learning rate", false);
        advises(&r, "divergence", "loss scaler", true);
        program_free(&r);
    }
    /* if the loss is not finite either, it is divergence */
    program_result r = tell((motion_plan){.first = 2, .bad_at = 50, .bad_loss = true});
    check_text(&r, row_of(&r, "divergence"), "severity", "severe");
    advises(&r, "divergence", "a lower learning rate", true);
    holds(&r, "momentum", "text", "the weights are not", false);
    program_free(&r);
}

/* Buffers of rank 0, whose data differ from the other ranks', against the statistics of all. */
static void other_rank(void **state) {
    (void)state;
    const motion_plan p = {.ranks = "all of 4", .first = 3, .rank_offset = 1.39};
    check_case(p, "found", "notable", "d", 1.39, 0.01,
               "At d the running values are those of one rank and the statistics of all of 4: "
               "tid_mean 1.39 is the distance of that rank's data.");
    motion_plan silent = p;
    silent.silent = true;
    check_case(silent, "found", "notable", "d", 1.39, 0.01, "those of one rank");
    program_result r = diagnose("--format tsv");
    advises(&r, "momentum", "SyncBatchNorm", true);
    program_free(&r);
    /* a little padding does not explain such a distance */
    motion_plan mixed = p;
    mixed.padded = 0.02;
    check_case(mixed, "found", "notable", "d", 1.39, 0.06, "those of one rank");
    /* also a small distance, if the file names the buffers of rank 0 */
    motion_plan near = p;
    near.ranks = "all of 4; running statistics: buffers of rank 0", near.rank_offset = 0.19,
    near.steps = 3000;
    check_case(near, "found", "minor", "d", 0.19, 0.02,
               "At d the running values are those of one rank and the statistics of all of 4: tid");
    near.ranks = "all of 4"; /* of synchronized norms */
    r = tell(near);
    holds(&r, "momentum", "text", "one rank", false);
    program_free(&r);
    /* a single process, or ranks with similar data, do not show it */
    motion_plan own = p;
    own.ranks = "rank 0 of 4";
    r = tell(own);
    holds(&r, "momentum", "text", "one rank", false);
    program_free(&r);
    check_case((motion_plan){.ranks = "all of 4"}, "in-order", "-", "a", 1, 1e-4, "");
}

static void not_asked(void **state) {
    (void)state;
    program_result r = tell((motion_plan){.silent = true});
    check_text(&r, row_of(&r, "momentum"), "verdict", "not-asked");
    says(&r, "momentum", "no mu_moved and mu_apart of 20 steps");
    program_free(&r);
    r = tell((motion_plan){.steps = 19, .updates = 2});
    check_text(&r, row_of(&r, "momentum"), "verdict", "not-asked");
    program_free(&r);
    r = tell((motion_plan){.momentum = 1});
    check_text(&r, row_of(&r, "momentum"), "verdict", "not-asked");
    says(&r, "momentum", "alpha is 0 at a, and the number of updates");
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_time),    cmocka_unit_test(twice),
        cmocka_unit_test(many_sites), cmocka_unit_test(accumulated),
        cmocka_unit_test(slower),     cmocka_unit_test(padding),
        cmocka_unit_test(never),      cmocka_unit_test(begins),
        cmocka_unit_test(stops),      cmocka_unit_test(divisor),
        cmocka_unit_test(not_finite), cmocka_unit_test(other_rank),
        cmocka_unit_test(not_asked),  cmocka_unit_test(accumulated_lag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
