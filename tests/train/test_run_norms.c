/* test_run_norms.c -- norms of layers and activations of whole runs: identities with other recorded
 * values; the training is unchanged. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "small_run.h"
#include "testing/check.h"

enum { UPDATES = 6, MOST = 64 };

static const char *run_path(const char *name) {
    static char path[4][4096];
    static int used;
    char *p = path[used++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", check_temporary(), name);
    return p;
}

#define PLAIN                                                                                      \
    "--optimizer", "sgd", "--momentum", "0", "--weight-decay", "0", "--lr-scheduler", "fixed",     \
        "--lr", "0.5", "--warmup-updates", "0", "--max-steps", "6", "--seed", "3", "--force"
#define BOTH "--parameter-norms-every", "1", "--activations-every", "2"

static double number(const sr_runfile *f, const char *name, int64_t site, int64_t step) {
    float value;
    sr_failure why = {0};
    check_ok(sr_run_scalar(f, name, site, step - 1, 1, &value, &why), &why);
    return (double)value;
}

/* Square of a norm over all sites and over parameters outside any site. */
static double all_squares(const sr_runfile *f, const char *name, int64_t step) {
    const sr_run_declared *d;
    double sum = 0;
    for (int64_t i = 0; i < sr_run_get_info(f)->sites; i++) {
        const double x = number(f, name, i, step);
        sum += x * x;
    }
    for (int64_t i = 0; (d = sr_run_get_declared(f, i)); i++) {
        double value[MOST];
        if (d->scope != SR_PER_STEP || strncmp(d->name, name, strlen(name))) continue;
        small_steps(f, d->name, step, value);
        sum += value[step - 1] * value[step - 1];
    }
    return sum;
}

/* Squared gradient norms of the layers add up to the total. An update of plain SGD is lr times the
 * gradient, scaled to the bound if the norm exceeds it. */
static void check_identities(double bound, const char *clip) {
    small_write_pairs(20);
    train_result result;
    const char *const args[] = {PLAIN, BOTH, "--clip-norm", clip, "-o", run_path("a.h5"), NULL};
    sr_runfile *f = small_run(args, NULL, &result);
    double total[UPDATES];
    small_steps(f, "grad_norm", UPDATES, total);
    for (int step = 1; step <= UPDATES; step++) {
        const double grad = sqrt(all_squares(f, "layer_grad_norm", step));
        const double update = sqrt(all_squares(f, "layer_update_norm", step));
        const double kept = bound > 0 && total[step - 1] > bound ? bound / total[step - 1] : 1;
        const double want = 0.5 * kept * grad;
        check_near_double("grad_norm", &grad, &total[step - 1], 1, 1e-6, 0);
        check_near_double("update", &update, &want, 1, 1e-4, 0);
        for (int64_t i = 0; i < sr_run_get_info(f)->sites; i++) {
            const double ratio = number(f, "layer_update_ratio", i, step);
            const double by =
                number(f, "layer_update_norm", i, step) / number(f, "layer_weight_norm", i, step);
            check_near_double("ratio", &ratio, &by, 1, 1e-6, 0);
        }
    }
    sr_run_close(f);
}

static void identities(void **state) {
    (void)state;
    check_identities(0, "0");
    check_identities(0.05, "0.05");
}

/* Even updates record activations, in the first of their two micro-batches. The largest |x| is at
 * least the root of a feature's largest mean square, and at most the norm of all of x. */
static void activations(void **state) {
    (void)state;
    small_write_pairs(40);
    train_result result;
    static const char *const norms[] = {"bn", "pn+ls", "ln"};
    for (int n = 0; n < 3; n++) {
        const char *const args[] = {PLAIN,      BOTH,  "--update-freq",  "2",         "--norm",
                                    norms[n],   "-o",  run_path("b.h5"), "--observe", "batch",
                                    "--record", "all", "--norm-alpha",   "0.9",       NULL};
        sr_runfile *f = small_run(args, NULL, &result);
        sr_failure why = {0};
        assert_int_equal(sr_run_get_info(f)->steps, 2 * UPDATES);
        for (int64_t i = 0; i < sr_run_get_info(f)->sites; i++) {
            const sr_run_site *s = sr_run_get_site(f, i);
            for (int step = 1; step <= 2 * UPDATES; step++) {
                float psi2[1024];
                double most = 0, sum = 0;
                const double top = number(f, "x_top1", i, step);
                if (step % 4 != 3) {
                    assert_true(isnan(top));
                    continue;
                }
                check_ok(sr_run_vector(f, "psi2_B", i, step - 1, 1, psi2, &why), &why);
                for (int64_t k = 0; k < s->width; k++) {
                    most = fmax(most, (double)psi2[k]);
                    sum += (double)psi2[k];
                }
                const double rows = number(f, "rows", i, step);
                check_at_least(top, sqrt(most) * (1 - 1e-6));
                check_at_most(top * top, rows * sum * (1 + 1e-5));
                check_at_least(top, number(f, "x_top2", i, step));
                check_at_least(number(f, "x_top2", i, step), number(f, "x_top3", i, step));
                check_below(number(f, "x_median", i, step), sqrt(2 * sum / (double)s->width));
                const bool centred = !strcmp(s->norm, "bn");
                assert_true(centred == isnan(number(f, "saturated", i, step)));
            }
        }
        sr_run_close(f);
    }
}

/* Weights, losses and other recorded values keep their bytes. */
static void nothing_changes(void **state) {
    (void)state;
    static const char *const norms[] = {"bn", "pn+ls", "ln", "bn"};
    static const char *const columns[] = {"loss", "grad_norm"};
    small_write_pairs(30);
    for (int n = 0; n < 4; n++) {
        const char *shares = n == 3 ? "2" : "1";
        train_result with, without;
        const char *const plain[] = {"--seed", "4",        "--max-steps", "6",  "--norm",
                                     norms[n], "--shards", shares,        "-o", run_path("c.h5"),
                                     NULL};
        const char *const asked[] = {"--seed", "4",        "--max-steps", "6",  "--norm",
                                     norms[n], "--shards", shares,        "-o", run_path("d.h5"),
                                     BOTH,     NULL};
        sr_runfile *c = small_run(plain, NULL, &without), *d = small_run(asked, NULL, &with);
        assert_string_equal(with.digest, without.digest);
        for (int k = 0; k < 2; k++) {
            double one[UPDATES], other[UPDATES];
            small_steps(c, columns[k], UPDATES, one);
            small_steps(d, columns[k], UPDATES, other);
            assert_memory_equal(one, other, sizeof one);
        }
        for (int64_t i = 0; i < sr_run_get_info(c)->sites; i++)
            for (int step = 1; step <= UPDATES; step++)
                check_equals(number(c, "dx_norm", i, step), number(d, "dx_norm", i, step));
        sr_run_close(c);
        sr_run_close(d);
    }
}

static void any_number_of_threads(void **state) {
    (void)state;
    small_write_pairs(30);
    train_result result;
    const char *const one[] = {"--max-steps",    "6",  "--force", "--threads", "1", "-o",
                               run_path("e.h5"), BOTH, NULL};
    const char *const three[] = {"--max-steps",    "6",  "--force", "--threads", "3", "-o",
                                 run_path("f.h5"), BOTH, NULL};
    sr_runfile *e = small_run(one, NULL, &result), *f = small_run(three, NULL, &result);
    const sr_run_declared *d;
    int64_t count = 0;
    for (; (d = sr_run_get_declared(e, count)); count++) {
        for (int step = 2; step <= UPDATES; step += 2) {
            if (d->scope == SR_PER_STEP) continue;
            for (int64_t i = 0; i < sr_run_get_info(e)->sites; i++) {
                const double x = number(e, d->name, i, step), y = number(f, d->name, i, step);
                assert_true(x == y || (isnan(x) && isnan(y)));
            }
        }
    }
    assert_true(count >= 13);
    sr_run_close(e);
    sr_run_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identities),
        cmocka_unit_test(activations),
        cmocka_unit_test(nothing_changes),
        cmocka_unit_test(any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
