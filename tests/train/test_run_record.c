/* The recording options, from the command line to the run file. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "small_run.h"
#include "testing/check.h"

enum { STEPS = 6, SITES = 7, NOTES = 4096 };

/* All notes, one a line. */
static void hear_note(void *context, const char *text) {
    char *notes = context;
    size_t used = strlen(notes);
    snprintf(notes + used, NOTES - used, "%s\n", text);
}

static sr_runfile *run(const char *const *more, char notes[NOTES], train_result *r) {
    const train_events events = {.context = notes, .note = notes ? hear_note : NULL};
    const char *args[32] = {"--epochs", "2", "--norm", "bn"};
    for (int i = 0; more[i]; i++) args[4 + i] = more[i];
    if (notes) *notes = 0;
    small_write_pairs(6);
    return small_run(args, &events, r);
}

/* 0: at no step */
static void vectors(void **state) {
    (void)state;
    static const struct {
        const char *key, *value;
        int count, step[STEPS];
    } row[] = {{"--record", "scalars", 0, {0}},
               {"--record", "all", 6, {1, 2, 3, 4, 5, 6}},
               {"--vectors-every", "2", 3, {2, 4, 6}},
               {"--vectors-every", "4", 1, {4}},
               {"--vectors-every", "0", 0, {0}}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *const args[] = {"--record", "all", row[i].key, row[i].value, NULL};
        train_result r;
        sr_failure why = {0};
        sr_runfile *f = run(args, NULL, &r);
        int64_t step[STEPS];
        assert_int_equal(sr_run_get_info(f)->vectors, row[i].count);
        if (row[i].count) check_ok(sr_run_vector_steps(f, 0, row[i].count, step, &why), &why);
        for (int k = 0; k < row[i].count; k++) assert_int_equal(step[k], row[i].step[k]);
        sr_run_close(f);
    }
}

/* Left to itself, a file above the limit has vectors more seldom; passes count, not updates. */
static void projection(void **state) {
    (void)state;
    static const char *const freq[] = {"1", "3"}, *const steps[] = {" 60 steps", " 180 steps"};
    char notes[NOTES];
    int every[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        const char *const args[] = {"--record",
                                    "all",
                                    "--epochs",
                                    "60",
                                    "--max-steps",
                                    "60",
                                    "--size-limit",
                                    "150000",
                                    "--update-freq",
                                    freq[i],
                                    "--flush-steps",
                                    "17",
                                    "--flush-seconds",
                                    "3.5",
                                    NULL};
        train_result r;
        sr_runfile *f = run(args, notes, &r);
        const char *vectors = strstr(notes, "vectors every ");
        assert_true(vectors && sscanf(vectors, "vectors every %d steps", &every[i]) == 1);
        assert_true(every[i] > 1);
        assert_int_equal(sr_run_get_info(f)->vectors, r.steps / every[i]);
        assert_non_null(strstr(notes, steps[i]));
        assert_non_null(strstr(notes, "a crash loses at most 17 steps or 3.5 s"));
        sr_run_close(f);
    }
    assert_true(every[1] >= 2 * every[0]);
}

/* Metadata of the run and of its sites in the file. */
static void identity(void **state) {
    (void)state;
    const char *const args[] = {"--seed",
                                "7",
                                "--threads",
                                "2",
                                "--norm-eps",
                                "1e-3",
                                "--norm-alpha",
                                "0.75",
                                "--norm-at",
                                "encoder.0.norm2=bn+ls",
                                "--layer-scale",
                                "4",
                                NULL};
    train_result r;
    sr_runfile *f = run(args, NULL, &r);
    const sr_run_info *i = sr_run_get_info(f);
    assert_string_equal(i->model, "transformer");
    assert_string_equal(i->data, "parallel");
    assert_string_equal(i->task, "pairs");
    assert_string_equal(i->command, "test");
    assert_string_equal(i->weights_digest, r.digest);
    assert_true(*i->git && *i->host);
    assert_int_equal(i->seed, 7);
    assert_int_equal(i->threads, 2);
    assert_int_equal(i->sites, SITES);
    for (int k = 0; k < SITES; k++) {
        const sr_run_site *s = sr_run_get_site(f, k);
        const bool encoder = k < 3;
        assert_string_equal(s->kind, encoder ? "encoder" : "decoder");
        assert_string_equal(s->norm, encoder ? "bn" : "ln");
        assert_int_equal(s->depth, k);
        assert_int_equal(s->width, 16);
        assert_int_equal(s->layer_scale, 4);
        check_equals(s->eps, 1e-3);
        assert_true(encoder ? s->alpha == 0.75 : isnan(s->alpha));
    }
    sr_run_close(f);
}

/* Sites by their names, and nothing of the others. */
static void sites(void **state) {
    (void)state;
    const char *const args[] = {"--record-sites", "*.norm2,decoder.0.c*", NULL};
    train_result r;
    sr_runfile *f = run(args, NULL, &r);
    assert_int_equal(sr_run_get_info(f)->sites, 2);
    assert_string_equal(sr_run_get_site(f, 0)->name, "encoder.0.norm2");
    assert_string_equal(sr_run_get_site(f, 1)->name, "decoder.0.cross");
    sr_run_close(f);
    const char *const wrong[] = {"--record-sites", "*.norm2,decoder.0.d*", NULL};
    static train_config c;
    train_events silent = {0};
    sr_failure why = {0};
    small_parse(&c, wrong);
    assert_int_equal(train_run(&c, "test", NULL, &silent, &r, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "'decoder.0.d*' matches no site");
}

/* The digest covers every weight and every running value. Without learning, another layer size
 * changes nothing else under LN, another norm-alpha nothing else under BN. */
static void digest(void **state) {
    (void)state;
    static const char *const more[][2] = {{"--norm=ln", "--ffn-dim=16"},
                                          {"--norm=ln", "--ffn-dim=24"},
                                          {"--norm=bn", "--norm-alpha=0.9"},
                                          {"--norm=bn", "--norm-alpha=0.5"}};
    train_result r[4];
    for (int i = 0; i < 4; i++) {
        const char *const args[] = {"--lr=0", "--warmup-init-lr=0", more[i][0], more[i][1], NULL};
        sr_run_close(run(args, NULL, &r[i]));
        for (int k = 0; k < i; k++) assert_string_not_equal(r[i].digest, r[k].digest);
    }
}

/* Sentences of three words and </s>: the mean of the places 2 .. 5 (docs/models.md 2.2). */
static void position_of_batch(void **state) {
    (void)state;
    const char *const args[] = {"--record=all", "--max-steps=1", NULL};
    train_result r;
    sr_failure why = {0};
    sr_runfile *f = run(args, NULL, &r);
    float got[16];
    check_ok(sr_run_vector(f, "position_B", 0, 0, 1, got, &why), &why);
    for (int k = 0; k < 16; k++) {
        double frequency = exp(-(k % 8) * log(10000) / 7), want = 0;
        for (int place = 2; place <= 5; place++)
            want += (k < 8 ? sin(place * frequency) : cos(place * frequency)) / 4;
        check_within((double)got[k], want, 1e-6);
    }
    sr_run_close(f);
}

static void vector_at(const sr_runfile *f, const char *name, int site, int64_t row, float v[16]) {
    sr_failure why = {0};
    check_ok(sr_run_vector(f, name, site, row, 1, v, &why), &why);
}

/* After each step: alpha times the old mean of each feature plus (1 - alpha) times the batch's,
 * from 0 on. */
static void running_position(void **state) {
    (void)state;
    const char *const args[] = {"--record=all", "--norm-alpha=0.75", NULL};
    train_result r;
    sr_runfile *f = run(args, NULL, &r);
    double want[16] = {0};
    for (int64_t row = 0; row < 4; row++) {
        float now[16], got[16];
        vector_at(f, "position_B", 0, row, now);
        vector_at(f, "position", 0, row, got);
        for (int k = 0; k < 16; k++) {
            check_within((double)got[k], want[k], 1e-6);
            want[k] = 0.75 * want[k] + 0.25 * (double)now[k];
        }
    }
    sr_run_close(f);
}

/* With constant weights: the batches of the last epoch, each with its statistics in /vectors,
 * against the running values after its last step. */
static void final_by_hand(const sr_runfile *f, int site, double *tid_mean, double *tid_var) {
    enum { BATCHES = 3, D = 16 };
    const double alpha = sr_run_get_site(f, site)->alpha;
    const int64_t rows = sr_run_get_info(f)->vectors;
    float mu[D], sigma2[D], mu_B[D], sigma2_B[D];
    double end_mu[D], end_sigma[D], size = 0;
    vector_at(f, "mu", site, rows - 1, mu), vector_at(f, "mu_B", site, rows - 1, mu_B);
    vector_at(f, "sigma2", site, rows - 1, sigma2);
    vector_at(f, "sigma2_B", site, rows - 1, sigma2_B);
    for (int k = 0; k < D; k++) {
        end_mu[k] = alpha * (double)mu[k] + (1 - alpha) * (double)mu_B[k];
        end_sigma[k] = sqrt(alpha * (double)sigma2[k] + (1 - alpha) * (double)sigma2_B[k]);
        size += end_sigma[k] * end_sigma[k];
    }
    *tid_mean = *tid_var = 0;
    for (int64_t row = rows - BATCHES; row < rows; row++) {
        double apart = 0, apart_sigma = 0;
        vector_at(f, "mu_B", site, row, mu_B), vector_at(f, "sigma2_B", site, row, sigma2_B);
        for (int k = 0; k < D; k++) {
            apart += pow((double)mu_B[k] - end_mu[k], 2);
            apart_sigma += pow(sqrt((double)sigma2_B[k]) - end_sigma[k], 2);
        }
        *tid_mean += sqrt(apart / size) / BATCHES;
        *tid_var += sqrt(apart_sigma / size) / BATCHES;
    }
}

/* Sites with their own batch statistics, and the observed ones besides. */
static void final_pass_of_every_site(void **state) {
    (void)state;
    for (int observed = 0; observed < 2; observed++) {
        const char *const args[] = {"--lr=0",
                                    "--warmup-init-lr=0",
                                    "--norm-alpha=0.75",
                                    "--record=all",
                                    "--final-tid",
                                    "--observe=batch",
                                    NULL};
        const char *const alone[] = {"--lr=0",       "--warmup-init-lr=0", "--norm-alpha=0.75",
                                     "--record=all", "--final-tid",        NULL};
        train_result r;
        sr_failure why = {0};
        int64_t batches;
        double value[SR_FINAL_COUNT][SITES], *final[SR_FINAL_COUNT];
        for (int i = 0; i < SR_FINAL_COUNT; i++) final[i] = value[i];
        sr_runfile *f = run(observed ? args : alone, NULL, &r);
        check_ok(sr_run_final(f, &batches, final, &why), &why);
        assert_int_equal(batches, 3);
        for (int k = 0; k < SITES; k++) {
            double want[2];
            const double got[2] = {value[SR_FINAL_tid_mean][k], value[SR_FINAL_tid_var][k]};
            if (k >= 3 && !observed) {
                assert_true(isnan(got[0]) && isnan(got[1]));
                continue;
            }
            final_by_hand(f, k, &want[0], &want[1]);
            check_above(want[0], 1e-4);
            check_above(want[1], 1e-4);
            check_near_double(sr_run_get_site(f, k)->name, got, want, 2, 1e-4, 0);
        }
        sr_run_close(f);
    }
}

/* tid_mean and tid_var of encoder.0.norm1, whose running values are the last batch's own. */
static void final_pass(const char *const *more, double *mean, double *var) {
    const char *args[32] = {"--lr=0",     "--warmup-init-lr=0",           "--epochs=1",
                            "--norm=ln",  "--norm-at=encoder.0.norm1=bn", "--norm-alpha=0",
                            "--final-tid"};
    train_result r;
    sr_failure why = {0};
    int64_t batches;
    double value[SR_FINAL_COUNT][SITES], *final[SR_FINAL_COUNT];
    for (int i = 0; more[i]; i++) args[7 + i] = more[i];
    for (int i = 0; i < SR_FINAL_COUNT; i++) final[i] = value[i];
    sr_runfile *f = small_run(args, NULL, &r);
    check_ok(sr_run_final(f, &batches, final, &why), &why);
    assert_int_equal(batches, 1);
    *mean = value[SR_FINAL_tid_mean][0];
    *var = value[SR_FINAL_tid_var][0];
    sr_run_close(f);
}

/* The final pass applies dropout as training does, with its own masks; without dropout the rows
 * would vary less. */
static void final_pass_drops(void **state) {
    (void)state;
    const char *const args[] = {"--max-tokens=2000", "--dropout=0.5", NULL};
    double mean, var;
    small_write_pairs(200);
    final_pass(args, &mean, &var);
    check_above(mean, 0.001);
    check_below(mean, 0.1);
    check_above(var, 0.001);
    check_below(var, 0.1);
}

/* Two batches an epoch: the first of the next epoch is now and then the last of this one. */
static void final_pass_is_another_epoch(void **state) {
    (void)state;
    static const char *const seeds[] = {"--seed=1", "--seed=2", "--seed=3", "--seed=4",
                                        "--seed=5", "--seed=6", "--seed=7", "--seed=8"};
    int same = 0;
    small_write_pairs(4);
    for (int i = 0; i < 8; i++) {
        double mean, var;
        final_pass((const char *const[]){"--final-batches=1", seeds[i], NULL}, &mean, &var);
        same += mean < 1e-6;
    }
    assert_in_range(same, 1, 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),          cmocka_unit_test(projection),
        cmocka_unit_test(identity),         cmocka_unit_test(sites),
        cmocka_unit_test(digest),           cmocka_unit_test(position_of_batch),
        cmocka_unit_test(running_position), cmocka_unit_test(final_pass_of_every_site),
        cmocka_unit_test(final_pass_drops), cmocka_unit_test(final_pass_is_another_epoch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
