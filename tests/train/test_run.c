/* A complete run on generated data. The weights do not depend on recording or the number of
 * threads; the recorder gets the values that the layers computed. Accumulation and rejected
 * options. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "statrec/runfile.h"
#include "testing/check.h"
#include "train/train.h"

enum { ARGS_MAX = 64 };

/* Parses "statrec train" with these arguments (NULL ends). */
static sr_status parse(train_config *c, const char *const *args, sr_failure *why) {
    char *argv[ARGS_MAX] = {"statrec", "train"};
    int argc = 2, positional;
    for (; args[argc - 2]; argc++) argv[argc] = (char *)args[argc - 2];
    return train_config_parse(c, argc, argv, 2, &positional, why);
}

static train_result run(const char *const *args) {
    static train_config c;
    sr_failure why = {0};
    train_events silent = {0};
    train_result result;
    check_ok(parse(&c, args, &why), &why);
    check_ok(train_run(&c, "test", NULL, &silent, &result, &why), &why);
    return result;
}

static const char *run_path(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", check_temporary(), name);
    return path;
}

#define IMAGES "--data", "synth-images", "--limit", "256", "--batch-size", "32", "--max-steps", "4"
#define PAIRS                                                                                      \
    "--model", "transformer", "--preset", "mini", "--norm", "bn", "--data", "synth-pairs",         \
        "--limit", "400", "--max-tokens", "256", "--max-steps", "6", "--warmup-updates", "2"

static void same_weights(const char *name, const char *const *base, const char *const (*more)[5],
                         int count) {
    char first[32] = "";
    for (int i = 0; i < count; i++) {
        const char *args[ARGS_MAX] = {0};
        int n = 0;
        for (; base[n]; n++) args[n] = base[n];
        for (int k = 0; k < 4 && more[i][k]; k++) args[n++] = more[i][k];
        if (!strcmp(more[i][0], "--record") && !strcmp(more[i][1], "none")) {
            args[n] = NULL;
        } else {
            args[n++] = "-o";
            args[n++] = run_path(name);
            args[n++] = "--force";
        }
        train_result r = run(args);
        if (i == 0) strcpy(first, r.digest);
        assert_int_equal(strlen(r.digest), 16);
        if (strcmp(first, r.digest))
            fail_msg("%s variant %d: %s, not %s", name, i, r.digest, first);
    }
}

static const char *const variants[][5] = {{"--record", "none", "--threads", "1", NULL},
                                          {"--record", "all", "--threads", "1", NULL},
                                          {"--record", "scalars", "--threads", "2", NULL},
                                          {"--record", "all", "--threads", "3", NULL}};

static void images_same_weights(void **state) {
    (void)state;
    const char *const base[] = {IMAGES, NULL};
    same_weights("images.h5", base, variants, 4);
}

static void pairs_same_weights(void **state) {
    (void)state;
    const char *const base[] = {PAIRS, NULL};
    same_weights("pairs.h5", base, variants, 4);
}

static void seeds_differ(void **state) {
    (void)state;
    const char *const one[] = {IMAGES, "--record", "none", "--seed", "1", NULL};
    const char *const two[] = {IMAGES, "--record", "none", "--seed", "2", NULL};
    train_result a = run(one), b = run(two);
    assert_string_not_equal(a.digest, b.digest);
}

static void run_file(void **state) {
    (void)state;
    const char *path = run_path("file.h5");
    const char *const args[] = {PAIRS, "--update-freq", "2", "-o", path, "--force", NULL};
    train_result r = run(args);
    assert_int_equal(r.updates, 6);
    assert_int_equal(r.steps, 12);
    sr_failure why = {0};
    check_ok(sr_run_check(path, &why), &why);
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    const sr_run_info *info = sr_run_get_info(f);
    assert_int_equal(info->steps, 12);
    assert_int_equal(info->sites, 17);
    assert_int_equal(info->evals, 1);
    assert_string_equal(info->status, "complete");
    assert_string_equal(info->weights_digest, r.digest);
    assert_non_null(strstr(info->config, "max-steps = 6\n"));
    assert_non_null(strstr(info->config, "\n# encoder.0.norm1 and 6 more: bn eps=1e-05 alpha=0.95"
                                         " unbiased=0\n"));
    int64_t update[12];
    double lr[12];
    check_ok(sr_run_step_ints(f, "update", 0, 12, update, &why), &why);
    check_ok(sr_run_step_reals(f, "lr", 0, 12, lr, &why), &why);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(update[i], i / 2 + 1);
        assert_true(isnan(lr[i]) == (i % 2 == 0));
    }
    float value[12];
    check_ok(sr_run_scalar(f, "dist_mu", 0, 0, 12, value, &why), &why);
    for (int i = 0; i < 12; i++) {
        assert_true(isfinite(value[i]));
        check_above(value[i], 0);
    }
    check_ok(sr_run_scalar(f, "dist_mu", 7, 0, 12, value, &why), &why); /* decoder.0.self is ln */
    for (int i = 0; i < 12; i++) assert_true(isnan(value[i]));
    sr_run_close(f);
}

static double eval_of(sr_runfile *f, const char *name) {
    double value = NAN;
    sr_failure why = {0};
    check_ok(sr_run_eval(f, name, 0, 1, &value, &why), &why);
    return value;
}

/* Both validation passes agree if no norm uses batch statistics, and differ otherwise. The second
 * pass changes no weights or running statistics. */
static void validation_with_batch_statistics(void **state) {
    (void)state;
    const char *path = run_path("batch.h5");
    sr_failure why = {0};
    for (int bn = 0; bn < 2; bn++) {
        const char *const args[] = {PAIRS, "--norm",  bn ? "bn" : "ln",   "-o",
                                    path,  "--force", "--validate-batch", NULL};
        const char *const plain[] = {PAIRS, "--norm", bn ? "bn" : "ln", "--record", "none", NULL};
        train_result r = run(args), without = run(plain);
        assert_string_equal(r.digest, without.digest);
        const int accuracy = 3; /* index in the task's metrics */
        assert_string_equal(r.last.task->metric[accuracy].name, "accuracy");
        assert_true(isnan(without.last.batch_value[0]) &&
                    isnan(without.last.batch_value[accuracy]));
        sr_runfile *f = sr_run_open(path, &why);
        if (!f) fail_msg("%s", why.text);
        assert_true(isfinite(eval_of(f, "valid_loss_batch")));
        assert_true(bn == (eval_of(f, "valid_loss_batch") != eval_of(f, "valid_loss")));
        assert_true(bn == (eval_of(f, "valid_nll_batch") != eval_of(f, "valid_nll")));
        check_equals(eval_of(f, "valid_ppl_batch"), exp(eval_of(f, "valid_nll_batch")));
        check_equals(eval_of(f, "valid_accuracy_batch"), r.last.batch_value[accuracy]);
        assert_true(bn || r.last.batch_value[accuracy] == r.last.value[accuracy]);
        sr_run_close(f);
    }
}

/* The run declares exactly the metrics that it computes, the task's main metric first. */
static void metrics_are_declared(void **state) {
    (void)state;
    static const sr_run_metric want[] = {
        {sizeof(sr_run_metric), "valid_accuracy", "percent",
         "validation targets with the largest logit, running statistics", SR_BETTER_MORE},
        {sizeof(sr_run_metric), "valid_loss", "nats per image",
         "validation loss with smoothing, running statistics", SR_BETTER_LESS},
        {sizeof(sr_run_metric), "valid_nll", "nats per image",
         "validation negative log-likelihood without smoothing, running statistics",
         SR_BETTER_LESS},
        {sizeof(sr_run_metric), "valid_ppl", "1",
         "validation perplexity, exp(nll), running statistics", SR_BETTER_LESS},
        {sizeof(sr_run_metric), "valid_top5", "percent",
         "validation targets among the five largest logits; NaN below six classes, running "
         "statistics",
         SR_BETTER_MORE}};
    sr_failure why = {0};
    const char *path = run_path("declared.h5");
    const char *const plain[] = {IMAGES, "-o", path, "--force", NULL};
    run(plain);
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    for (int i = 0; i < 5; i++) {
        const sr_run_metric *m = sr_run_get_metric(f, i);
        assert_string_equal(m->name, want[i].name);
        assert_string_equal(m->unit, want[i].unit);
        assert_string_equal(m->definition, want[i].definition);
        assert_int_equal(m->better, want[i].better);
    }
    assert_null(sr_run_get_metric(f, 5));
    sr_run_close(f);
}

static void metrics_of_options(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *path = run_path("options.h5");
    const char *const args[] = {PAIRS, "-o", path, "--force", "--validate-batch", NULL};
    run(args);
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    assert_string_equal(sr_run_get_metric(f, 0)->name, "valid_ppl");
    assert_string_equal(sr_run_get_metric(f, 1)->unit, "nats per token");
    const sr_run_metric *of_batch = sr_run_find_metric(f, "valid_accuracy_batch");
    assert_string_equal(of_batch->definition,
                        "validation targets with the largest logit, statistics of each validation "
                        "batch");
    assert_int_equal(of_batch->better, SR_BETTER_MORE);
    assert_null(sr_run_get_metric(f, 8));
    sr_run_close(f);
    const train_config tested = {.test = true};
    train_metric m[TRAIN_METRICS];
    assert_int_equal(train_metrics_make(&tested, task_of(TASK_PAIRS), m), 8);
    assert_string_equal(m[4].name, "test_loss");
    assert_string_equal(m[4].definition, "test loss with smoothing, running statistics");
    assert_true(m[4].better == BETTER_LESS && m[7].better == BETTER_MORE);
}

static void refused(const char *const *args, const char *part) {
    static train_config c;
    sr_failure why = {0};
    assert_true(parse(&c, args, &why) != SR_OK);
    check_failure(&why, SR_USAGE, part);
}

/* A run that never made a step leaves no file, so the corrected command can follow. */
static void refused_run_leaves_nothing(void **state) {
    (void)state;
    static train_config c;
    sr_failure why = {0};
    train_events silent = {0};
    train_result result;
    const char *path = run_path("refused.h5");
    char part[4200];
    snprintf(part, sizeof part, "%s.part", path);
    check_ok(parse(&c, (const char *const[]){IMAGES, "--record-sites", "nowhere", "-o", path, NULL},
                   &why),
             &why);
    assert_int_equal(train_run(&c, "test", NULL, &silent, &result, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "'nowhere' matches no site");
    assert_true(access(path, F_OK) != 0 && access(part, F_OK) != 0);
}

static void refusals(void **state) {
    (void)state;
    refused((const char *const[]){"--model", "resnet2", "-o", "x", NULL}, "--model: 'resnet2'");
    refused((const char *const[]){"--preset", "mini", "-o", "x", NULL}, "not a preset of resnet20");
    refused((const char *const[]){"--model", "transformer", "--preset", "min", "-o", "x", NULL},
            "--preset: 'min'");
    refused((const char *const[]){"--norm", "bm", "-o", "x", NULL}, "--norm: 'bm'");
    refused((const char *const[]){"--decoder-norm", "lm", "-o", "x", NULL}, "--decoder-norm: 'lm'");
    refused((const char *const[]){"--data", "cifar", "-o", "x", NULL}, "--data: 'cifar'");
    refused((const char *const[]){"--data", "synth-images", NULL}, "no run file");
    refused((const char *const[]){"--lr-steps", "6", "--lr-scheduler", "cosine", "-o", "x", NULL},
            "--lr-steps has no effect with --lr-scheduler cosine");
}

typedef struct heard {
    char text[200], last[200]; /* the first and the last */
    int count;
} heard;

static void hear(void *context, const char *text) {
    heard *h = context;
    if (h->count++ == 0) snprintf(h->text, sizeof h->text, "%s", text);
    snprintf(h->last, sizeof h->last, "%s", text);
}

/* Weights that overflow: one warning with the step and the first site that saw it; the run
 * continues.
 */
static void divergence(void **state) {
    (void)state;
    const char *const norms[] = {"none", "pn"};
    for (int i = 0; i < 2; i++) {
        const char *const args[] = {IMAGES, "--norm",           norms[i],  "--lr", "1e6",
                                    "-o",   run_path("far.h5"), "--force", NULL};
        static train_config c;
        sr_failure why = {0};
        heard h = {.count = 0};
        train_events events = {.warn = hear, .context = &h};
        train_result result;
        check_ok(parse(&c, args, &why), &why);
        check_ok(train_run(&c, "test", NULL, &events, &result, &why), &why);
        assert_int_equal(result.steps, 4);
        assert_int_equal(h.count, 2);
        assert_non_null(result.diverged);
        assert_string_equal(h.last, "the run diverged: the loss of the last pass is not finite");
        sr_runfile *f = sr_run_open(run_path("far.h5"), &why);
        if (!f) fail_msg("%s", why.text);
        assert_string_equal(sr_run_get_info(f)->status, "diverged");
        assert_string_equal(sr_run_get_info(f)->reason, result.diverged);
        sr_run_close(f);
        if (!strstr(h.text, i == 0 ? "step 2: the input of site s" : " of site s"))
            fail_msg("%s: warning '%s'", norms[i], h.text);
    }
}

/* Updates whose gradient is not finite leave the weights alone and are counted. */
static void skipped_updates(void **state) {
    (void)state;
    const char *const steps[] = {"1", "3"};
    train_result r[2];
    for (int i = 0; i < 2; i++) {
        const char *const args[] = {"--data",       "synth-images", "--limit",  "48",
                                    "--batch-size", "16",           "--norm",   "none",
                                    "--lr",         "1e6",          "--record", "none",
                                    "--max-steps",  steps[i],       NULL};
        r[i] = run(args);
    }
    assert_int_equal(r[0].skipped, 0);
    assert_int_equal(r[1].skipped, 2);
    assert_string_equal(r[0].digest, r[1].digest);
}

/* 0.1 over all classes in text, nothing for images. */
static void smoothing_defaults(void **state) {
    (void)state;
    static const char *const text[][5] = {{NULL},
                                          {"--label-smoothing", "0.1", "--smoothing-form", "all"},
                                          {"--smoothing-form", "others"}};
    static const char *const image[][5] = {{NULL}, {"--label-smoothing", "0"}};
    char digest[5][32];
    for (int i = 0; i < 5; i++) {
        const char *args[ARGS_MAX] = {"--limit",  "16",   "--max-steps", "1",
                                      "--record", "none", "--lr",        "0.1"};
        const char *const pairs[] = {"--model", "transformer", "--preset",         "mini",
                                     "--data",  "synth-pairs", "--warmup-init-lr", "0.1"};
        const char *const images[] = {"--batch-size", "16"};
        const char *const *more = i < 3 ? text[i] : image[i - 3];
        int n = 8;
        for (int k = 0; k < (i < 3 ? 8 : 2); k++) args[n++] = i < 3 ? pairs[k] : images[k];
        for (int k = 0; more[k]; k++) args[n++] = more[k];
        strcpy(digest[i], run(args).digest);
    }
    assert_string_equal(digest[0], digest[1]);
    assert_string_not_equal(digest[0], digest[2]);
    assert_string_equal(digest[3], digest[4]);
}

static void recipes(void **state) {
    (void)state;
    static train_config c;
    sr_failure why = {0};
    const char *const mini[] = {"--lr", "0.5", "--model", "transformer", "--preset",
                                "mini", "-o",  "x",       NULL};
    check_ok(parse(&c, mini, &why), &why);
    check_equals(c.lr, 0.5);
    assert_int_equal(c.warmup_updates, 400);
    assert_string_equal(c.optimizer, "adam-fairseq");
    assert_string_equal(c.model.norm, "ln");
    assert_int_equal(c.smoothing, SMOOTHING_ALL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(images_same_weights),
                                       cmocka_unit_test(pairs_same_weights),
                                       cmocka_unit_test(seeds_differ),
                                       cmocka_unit_test(run_file),
                                       cmocka_unit_test(validation_with_batch_statistics),
                                       cmocka_unit_test(metrics_are_declared),
                                       cmocka_unit_test(metrics_of_options),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(divergence),
                                       cmocka_unit_test(skipped_updates),
                                       cmocka_unit_test(smoothing_defaults),
                                       cmocka_unit_test(recipes),
                                       cmocka_unit_test(refused_run_leaves_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
