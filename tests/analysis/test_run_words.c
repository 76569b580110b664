/* Facts that readers derive from a run: its options, its data, the unit that its passes count, and
 * stat-batch's micro-batch size. Runs with used options only, the sample runs with all options, and
 * runs of other programs. */
#include <math.h>
#include <string.h>

#include "analysis/runs/run_config.h"
#include "testing/check.h"
#include "testing/programs.h"

#define LEFT_OUT "# options without effect are left out\n"

/* A run of three steps of ten tokens. unit: the unit of its loss. */
static void write_run(const char *name, const char *task, const char *unit, const char *config) {
    sr_options o = run_options();
    o.config = config, o.task = task, o.data = "files";
    o.program = strncmp(name, "host", 4) == 0 ? "train.py" : "statrec train";
    sr_recorder *r = run_create(program_file(name), o);
    run_add_bn(r, "a", 1, 1, 1e-5);
    sr_add_metric(r, "score", "percent", "hits", SR_BETTER_MORE);
    sr_add_metric(r, "valid_loss", unit, "loss", SR_BETTER_LESS);
    for (int step = 1; step <= 3; step++) {
        sr_begin_step(r, step);
        run_end_step(r, step);
    }
    run_put_eval(r, 3, 3, "valid_loss", 1.5);
    run_finish(r);
}

/* has: the expected options among the ones that readers ask for. size: the expected micro-batch. */
typedef struct known {
    const char *name, *task, *unit, *config;
    const char *counts, *data, *has;
    double size;
} known;

#define NAMES "data-dir = /sets/euro/\nsource = fr\ntarget = en\n"
static const known runs[] = {
    {"used.h5", "anything", "nats per token",
     "decoder-norm = ln\nplacement = pre\nmax-tokens = 512\n" NAMES LEFT_OUT, "token", "euro fr-en",
     "decoder-norm placement source target max-tokens ", 512},
    {"photos.h5", "anything", "nats per image",
     "batch-size = 32\ndata-dir = /sets/photos\n" LEFT_OUT, "image", "photos", "batch-size ", 32},
    {"classes.h5", "anything", "nats per sentence", "placement = post\nbatch-size = 16\n" LEFT_OUT,
     "sentence", "files", "placement batch-size ", 16},
    {"long.h5", "anything", "nats per sentence", "max-tokens = 64\n" LEFT_OUT, "sentence", "files",
     "max-tokens ", 10},
    {"stream.h5", "anything", "nats per token", "batch-size = 4\n" LEFT_OUT, "token", "files",
     "batch-size ", 10},
    {"whole.h5", "anything", "nats per image",
     "decoder-norm = ln\nplacement = pre\nmax-tokens = 512\nbatch-size = 8\n" NAMES, "image",
     "euro", "batch-size ", 8},
    {"all.h5", "anything", "nats per token",
     "decoder-norm = ln\nplacement = pre\nmax-tokens = 512\nbatch-size = 8\n" NAMES, "token",
     "euro fr-en", "decoder-norm placement source target max-tokens ", 512},
    {"early.h5", "images", "nats per token or image", "max-tokens = 512\nbatch-size = 8\n", "image",
     "files", "batch-size ", 8},
    {"early2.h5", "pairs", "nats per token or image", "max-tokens = 512\nbatch-size = 8\n", "token",
     "files", "max-tokens ", 512},
    {"other.h5", "images", "bits", "max-tokens = 512\nbatch-size = 8\n", "", "files",
     "max-tokens batch-size ", 10},
    /* names of options mean nothing in a run of another program */
    {"host.h5", "anything", "nats per image",
     "decoder-norm = ln\nplacement = pre\nmax-tokens = 512\nbatch-size = 8\n" NAMES, "image",
     "files", "", 10},
};
enum { RUNS = sizeof runs / sizeof runs[0] };

static void check_run(const char *path, const known *k) {
    static const char *const asked[] = {"decoder-norm", "placement",  "source",
                                        "target",       "max-tokens", "batch-size"};
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    check_ok(why.status, &why);
    run_word counts, data;
    char has[256] = "";
    run_counts(f, counts);
    run_data_name(f, data, sizeof data);
    for (int i = 0; i < 6; i++)
        if (run_has_option(f, asked[i])) strcat(strcat(has, asked[i]), " ");
    assert_string_equal(counts, k->counts);
    assert_string_equal(data, k->data);
    assert_string_equal(has, k->has);
    sr_run_close(f);
}

static void test_runs(void **state) {
    (void)state;
    for (int i = 0; i < RUNS; i++) {
        const known *k = &runs[i];
        write_run(k->name, k->task, k->unit, k->config);
        check_run(program_file(k->name), k);
        program_result r = program_run("stat-batch %s --metric valid_loss", k->name);
        assert_int_equal(r.status, 0);
        check_cell(&r, 0, "micro_batch", k->size);
        program_free(&r);
    }
}

/* These files predate declared metrics and the removal of unused options. */
static void test_samples(void **state) {
    (void)state;
    check_run("sample_runs/cv_bn.h5",
              &(known){.counts = "image", .data = "cifar10", .has = "batch-size "});
    check_run("sample_runs/nlp_bn.h5",
              &(known){.counts = "token",
                       .data = "multi30k-de-en",
                       .has = "decoder-norm placement source target max-tokens "});
}

static void test_values(void **state) {
    (void)state;
    sr_failure why = {0};
    char text[8];
    write_run("values.h5", "anything", "nats per token",
              "norm = \"a \\\"b\\\" c d\"\nlr = 0.5\nname = x\n" LEFT_OUT);
    sr_runfile *f = sr_run_open(program_file("values.h5"), &why);
    check_ok(why.status, &why);
    run_option(f, "norm", text, sizeof text);
    assert_string_equal(text, "a \"b\" c");
    run_option(f, "placement", text, sizeof text);
    assert_string_equal(text, "");
    check_equals(run_option_number(f, "lr"), 0.5);
    assert_true(isnan(run_option_number(f, "name")) && isnan(run_option_number(f, "batch-size")));
    sr_run_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
