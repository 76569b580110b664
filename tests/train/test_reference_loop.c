/* Whole runs compared with a second training loop (reference_loop.h): every pass's loss, tokens and
 * dL/dY sums, every update's learning rate and gradient norm, every evaluation. A loss depends on
 * all earlier updates, so losses check the optimizer too. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reference_loop.h"
#include "statrec/runfile.h"
#include "testing/check.h"

enum { ARGS_MAX = 80 };

/* float32 weights that went through a few updates in another order of operations */
static const double tolerance = sizeof(real) == 4 ? 2e-5 : 1e-9;

static const char *run_path(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", check_temporary(), name);
    return path;
}

static void near(const char *what, int64_t i, double got, double want, double terms) {
    if (isnan(want) ? isnan(got) : fabs(got - want) <= tolerance * terms) return;
    fail_msg("%s [%lld]: got %.9g, not %.9g", what, (long long)i, got, want);
}

static void parse(train_config *c, const char *const *args) {
    sr_failure why = {0};
    char *argv[ARGS_MAX] = {"statrec", "train"};
    int argc = 2, positional;
    for (; args[argc - 2]; argc++) argv[argc] = (char *)args[argc - 2];
    check_ok(train_config_parse(c, argc, argv, 2, &positional, &why), &why);
}

/* -- against the file */

static sr_runfile *open_run(const char *path) {
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    return f;
}

static void check_passes(const sr_runfile *f, const reference *r) {
    int64_t update[PASSES_MAX], tokens[PASSES_MAX], n = r->passes;
    double loss[PASSES_MAX], lr[PASSES_MAX], norm[PASSES_MAX];
    sr_failure why = {0};
    assert_int_equal(sr_run_get_info(f)->steps, n);
    check_ok(sr_run_step_ints(f, "update", 0, n, update, &why), &why);
    check_ok(sr_run_step_ints(f, "tokens", 0, n, tokens, &why), &why);
    check_ok(sr_run_step_reals(f, "loss", 0, n, loss, &why), &why);
    check_ok(sr_run_step_reals(f, "lr", 0, n, lr, &why), &why);
    check_ok(sr_run_step_reals(f, "grad_norm", 0, n, norm, &why), &why);
    for (int64_t i = 0; i < n; i++) {
        const reference_pass *p = &r->pass[i];
        assert_int_equal(update[i], p->update);
        assert_int_equal(tokens[i], p->tokens);
        near("loss", i, loss[i], p->loss, p->loss);
        near("lr", i, lr[i], p->lr, p->lr);
        near("grad_norm", i, norm[i], p->grad_norm, 10 * p->grad_norm);
    }
}

/* Gradients of the summed loss, as the file declares. */
static void check_gradients(const sr_runfile *f, const reference *r) {
    sr_failure why = {0};
    assert_string_equal(sr_run_get_info(f)->loss_reduction, "sum");
    for (int s = 0; s < r->m->sites; s++) {
        int64_t d = r->m->site[s]->features;
        for (int64_t i = 0; i < r->passes; i++) {
            float sum_g[WIDTH_CAPACITY];
            double terms = 0;
            check_ok(sr_run_vector(f, "sum_g", s, i, 1, sum_g, &why), &why);
            for (int64_t k = 0; k < d; k++) terms += fabs(r->pass[i].sum_g[s][k]);
            for (int64_t k = 0; k < d; k++)
                near(r->m->site[s]->name, i, (double)sum_g[k], r->pass[i].sum_g[s][k], 10 * terms);
        }
    }
}

static double eval_of(const sr_runfile *f, const char *name, int64_t i) {
    sr_failure why = {0};
    double value;
    check_ok(sr_run_eval(f, name, i, 1, &value, &why), &why);
    return value;
}

static void check_evals(const sr_runfile *f, const reference *r) {
    assert_int_equal(sr_run_get_info(f)->evals, r->evals);
    for (int i = 0; i < r->evals; i++) {
        const reference_eval *e = &r->eval[i];
        assert_int_equal((int64_t)eval_of(f, "step", i), e->step);
        near("valid_loss", i, eval_of(f, "valid_loss", i), e->loss, e->loss);
        near("valid_nll", i, eval_of(f, "valid_nll", i), e->nll, e->nll);
        near("valid_ppl", i, eval_of(f, "valid_ppl", i), exp(e->nll), 10 * exp(e->nll));
        near("valid_accuracy", i, eval_of(f, "valid_accuracy", i), e->accuracy, e->accuracy);
        near("valid_loss_batch", i, eval_of(f, "valid_loss_batch", i), e->loss_batch,
             e->loss_batch);
        near("valid_nll_batch", i, eval_of(f, "valid_nll_batch", i), e->nll_batch, e->nll_batch);
        near("valid_accuracy_batch", i, eval_of(f, "valid_accuracy_batch", i), e->accuracy_batch,
             e->accuracy_batch);
        near("valid_ppl_batch", i, eval_of(f, "valid_ppl_batch", i), exp(e->nll_batch),
             10 * exp(e->nll_batch));
    }
}

/* -- reports of the loop */

typedef struct told {
    int64_t step[EVALS_MAX];
    double train_loss[EVALS_MAX];
    int evals;
} told;

static void hear_eval(void *context, const train_eval *e) {
    told *t = context;
    assert_true(t->evals < EVALS_MAX);
    t->step[t->evals] = e->step;
    t->train_loss[t->evals++] = e->train_loss;
}

static void check_told(const told *t, const reference *r) {
    assert_int_equal(t->evals, r->evals);
    for (int i = 0; i < r->evals; i++) {
        assert_int_equal(t->step[i], r->eval[i].step);
        near("train_loss", i, t->train_loss[i], r->eval[i].train_loss, r->eval[i].train_loss);
    }
}

/* -- runs */

/* Both loops on this configuration; the run file stays open for more. */
static sr_runfile *compare(const char *const *args, reference *r) {
    static train_config c;
    sr_failure why = {0};
    told t = {.evals = 0};
    train_events events = {.eval = hear_eval, .context = &t};
    train_result result;
    parse(&c, args);
    check_ok(train_run(&c, "test", NULL, &events, &result, &why), &why);
    reference_run(r, &c);
    assert_int_equal(result.updates, r->updates);
    assert_int_equal(result.skipped, 0);
    sr_runfile *f = open_run(c.output);
    check_passes(f, r);
    check_gradients(f, r);
    check_evals(f, r);
    check_told(&t, r);
    return f;
}

#define SMALL                                                                                      \
    "--model", "transformer", "--preset", "mini", "--embed-dim", "16", "--ffn-dim", "16",          \
        "--heads", "2", "--encoder-layers", "1", "--decoder-layers", "1", "--data", "synth-pairs", \
        "--limit", "54", "--max-tokens", "128", "--dropout", "0", "--attention-dropout", "0",      \
        "--relu-dropout", "0", "--update-freq", "2", "--epochs", "2", "--validate-batch",          \
        "--record", "all", "--force"

/* The test is meaningful only if updates are clipped differently. */
static void check_variety(const reference *r) {
    int clipped = 0, whole = 0, alone = 0;
    for (int64_t i = 0; i < r->passes; i++) {
        const reference_pass *p = &r->pass[i];
        if (isnan(p->lr)) continue;
        clipped += p->clipped;
        whole += !p->clipped;
        alone += i == 0 || r->pass[i - 1].update != p->update;
    }
    assert_int_equal(alone, 2); /* an odd number of passes in each epoch */
    assert_true(clipped > 0 && whole > 0);
    assert_true(r->evals > 2);
}

static void sgd_with_clipping(void **state) {
    (void)state;
    const char *const args[] = {SMALL,
                                "--norm",
                                "rbn",
                                "--optimizer",
                                "sgd",
                                "--lr",
                                "0.2",
                                "--lr-scheduler",
                                "step",
                                "--lr-steps",
                                "4",
                                "--lr-steps-in",
                                "updates",
                                "--lr-factor",
                                "0.3",
                                "--warmup-updates",
                                "2",
                                "--warmup-init-lr",
                                "0.05",
                                "--momentum",
                                "0.8",
                                "--weight-decay",
                                "0.01",
                                "--clip-norm",
                                "0.85",
                                "--validate-interval-updates",
                                "2",
                                "-o",
                                run_path("sgd.h5"),
                                NULL};
    static reference r;
    sr_run_close(compare(args, &r));
    check_variety(&r);
    check_above(r.pass[0].penalty, 1e-3 * r.pass[0].loss * (double)r.pass[0].tokens);
    reference_free(&r);
}

/* Entries first, then the remaining norm; and entries alone. */
static void clipping_by_value(void **state) {
    (void)state;
    static const char *const kinds[][2] = {{"--clip-value=0.06", "--clip-norm=0.7"},
                                           {"--clip-value=0.05", NULL}};
    for (int i = 0; i < 2; i++) {
        const char *const args[] = {SMALL,
                                    "--norm=ln",
                                    "--optimizer=sgd",
                                    "--lr=0.2",
                                    "--lr-scheduler=step",
                                    "--lr-steps=9",
                                    "--warmup-updates=0",
                                    "-o",
                                    run_path("value.h5"),
                                    kinds[i][0],
                                    kinds[i][1],
                                    NULL};
        static reference r;
        int cut = 0, clipped = 0;
        sr_run_close(compare(args, &r));
        for (int64_t k = 0; k < r.passes; k++) {
            cut += r.pass[k].cut;
            clipped += r.pass[k].cut && r.pass[k].clipped;
        }
        assert_true(cut > 2 && (clipped > 2 || i == 1));
        reference_free(&r);
    }
}

/* Spectra of the embedding after every third update and at the end. */
static void check_embedding(const sr_runfile *f, const reference *r, int64_t every) {
    sr_run_embedding e = {.size = sizeof(sr_run_embedding)};
    sr_failure why = {0};
    int64_t at = 0;
    check_ok(sr_run_get_embedding(f, "tokens", &e, &why), &why);
    for (int64_t i = 0; i < r->passes; i++) {
        const reference_pass *p = &r->pass[i];
        if (isnan(p->lr) || (p->update % every && i < r->passes - 1)) continue;
        int64_t step;
        double value[WIDTH_CAPACITY];
        check_ok(sr_run_singular_values(f, "tokens", at++, &step, value, &why), &why);
        assert_int_equal(step, i + 1);
    }
    assert_int_equal(e.records, at);
}

static void adam_with_milestone(void **state) {
    (void)state;
    const char *const args[] = {SMALL,
                                "--norm",
                                "bn",
                                "--optimizer",
                                "adam-fairseq",
                                "--lr",
                                "0.01",
                                "--lr-scheduler",
                                "step",
                                "--lr-steps",
                                "1",
                                "--lr-factor",
                                "0.25",
                                "--warmup-updates",
                                "0",
                                "--adam-beta1",
                                "0.7",
                                "--adam-beta2",
                                "0.9",
                                "--adam-eps",
                                "0.001",
                                "--weight-decay",
                                "0.02",
                                "--svd-every",
                                "3",
                                "-o",
                                run_path("adam.h5"),
                                NULL};
    static reference r;
    sr_runfile *f = compare(args, &r);
    check_embedding(f, &r, 3);
    sr_run_close(f);
    reference_free(&r);
}

/* The other optimizers, with a decay and an eps large enough to distinguish them. */
static void more_optimizers(void **state) {
    (void)state;
    static const char *const kinds[][8] = {
        {"--optimizer=sgd", "--nesterov", "--lr=0.1", "--momentum=0.7"},
        {"--optimizer=adam", "--lr=0.01", "--adam-beta1=0.6", "--adam-beta2=0.8",
         "--adam-eps=0.003"},
        {"--optimizer=adamw", "--lr=0.01", "--adam-beta1=0.6", "--adam-beta2=0.8",
         "--adam-eps=0.003"}};
    for (int i = 0; i < 3; i++) {
        const char *const common[] = {SMALL,
                                      "--epochs=1",
                                      "--norm=ln",
                                      "--lr-scheduler=step",
                                      "--lr-steps=9",
                                      "--warmup-updates=0",
                                      "--weight-decay=0.05",
                                      "-o",
                                      run_path("more.h5")};
        const char *args[ARGS_MAX];
        size_t count = sizeof common / sizeof *common;
        memcpy(args, common, sizeof common);
        for (int k = 0; k < 8; k++) args[count++] = kinds[i][k]; /* NULL ends */
        static reference r;
        sr_run_close(compare(args, &r));
        reference_free(&r);
    }
}

/* One update of a few images: in a deep network, more updates would test the growth of rounding
 * errors. */
static void images(void **state) {
    (void)state;
    const char *const args[] = {"--data",
                                "synth-images",
                                "--limit",
                                "16",
                                "--batch-size",
                                "8",
                                "--norm",
                                "rbn",
                                "--lr",
                                "0.01",
                                "--lr-steps",
                                "1",
                                "--epochs",
                                "1",
                                "--update-freq",
                                "2",
                                "--no-augment",
                                "--validate-batch",
                                "--record",
                                "all",
                                "--force",
                                "-o",
                                run_path("images.h5"),
                                NULL};
    static reference r;
    sr_run_close(compare(args, &r));
    check_above(r.pass[0].penalty, 1e-3 * r.pass[0].loss * (double)r.pass[0].tokens);
    reference_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_with_clipping), cmocka_unit_test(clipping_by_value),
        cmocka_unit_test(images), cmocka_unit_test(adam_with_milestone),
        cmocka_unit_test(more_optimizers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
