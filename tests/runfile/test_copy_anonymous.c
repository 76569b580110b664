/* test_copy_anonymous.c -- no byte of an anonymous copy names anybody; names that must stay are
 * checked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "copied_run.h"
#include "testing/check.h"
#include "testing/damage.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

/* Texts that no anonymous copy may have. */
static const char *const secret[] = {
    COPIED_HOST, "node7",     "deadbee42",  "alice", "/home/alice/train.py",
    "scratch",   "ann@x.org", "2031-02-03", "carol", "my data",
    "mytrainer", "parentfile"};

static bool shares_lr(const char *key) {
    return strcmp(key, "lr") == 0;
}

/* Searches the bytes of a file. */
static void has_no(const char *file, const char *text) {
    size_t size;
    char *bytes = damage_load(sample_path(file), &size);
    for (size_t i = 0; i + strlen(text) <= size; i++)
        if (memcmp(bytes + i, text, strlen(text)) == 0)
            fail_msg("%s: '%s' at byte %zu", file, text, i);
    free(bytes);
}

static void anonymous(void **state) {
    (void)state;
    run_copy_options o = copied_plain();
    o.anonymous = true, o.shares = shares_lr, o.text = "--anonymous";
    copied_copy("whole.h5", "x.h5", &o);
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++) has_no("x.h5", secret[i]);
    has_no("x.h5", "whole.h5"), has_no("x.h5", check_temporary());
    copied_same_datasets("x.h5", "whole.h5", "state/");
    sr_runfile *f = sample_open(sample_path("x.h5"));
    const sr_run_info *i = sr_run_get_info(f);
    copied_same_text("model", i->model, "resnet"), copied_same_text("data", i->data, "");
    copied_same_text("config", i->config, ""), copied_same_text("created", i->created, "");
    copied_same_text("finished", i->finished, ""), copied_same_text("reason", i->reason, "");
    copied_same_text("digest", i->weights_digest, "0123abcd");
    sr_run_close(f);
}

static void anonymous_config(void **state) {
    (void)state;
    sr_options o = copied_options();
    o.program = "statrec train", o.version = "0.2.0";
    o.config =
        "lr = 0.5\nlr-x = 3\n# a note\n# of alice\ndata-dir = \"/home/alice/x\"\noutput = y\n";
    sr_recorder *r = sample_begin(sample_path("own.h5"), &o);
    check_ok(sample_steps(r, 1, 3, 0), sr_failed(r));
    run_finish(r);
    run_copy_options c = copied_plain();
    c.anonymous = true, c.shares = shares_lr;
    copied_copy("own.h5", "x.h5", &c);
    sr_runfile *f = sample_open(sample_path("x.h5"));
    copied_same_text("config", sr_run_get_info(f)->config, "lr = 0.5\n# a note\n");
    copied_same_text("program", sr_run_get_info(f)->program, "statrec train");
    sr_run_close(f);
}

static void named(const char *site, const char *metric, const char *definition) {
    sr_options o = copied_options();
    sr_recorder *r = run_create(sample_path("named.h5"), o);
    run_add_bn(r, site, 2, 0, 1e-5);
    sr_add_metric(r, metric, "1", definition, SR_BETTER_LESS);
    run_put_step(r, 1);
    run_finish(r);
}

/* Names cannot be left out. */
static void anonymous_names(void **state) {
    (void)state;
    run_copy_options o = copied_plain();
    char *path = (char *)(uintptr_t)sample_path("named.h5");
    o.anonymous = true;
    named("block.Alice.bn", "loss", "a loss");
    copied_refused(&path, 1, &o, SR_USAGE, "the name of site block.Alice.bn contains the user");
    named("bn1", "loss", "on " COPIED_HOST);
    copied_refused(&path, 1, &o, SR_USAGE, "the definition of metric loss contains the host");
    named("bn1", "loss", "as in /data/eval/run.py");
    copied_refused(&path, 1, &o, SR_USAGE, "contains a path");
    named("malice.bn", "loss", "||mu_B - mu||_2 / ||s||, sum_g/n per (a/b)"); /* no user, no path */
    copied_copy("named.h5", "x.h5", &o);
}

static int begin(void **state) {
    (void)state;
    const run_shape shape = {1, COPIED_STEPS, 77, "1", true};
    copied_write("whole.h5", &shape);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(anonymous),
                                       cmocka_unit_test(anonymous_config),
                                       cmocka_unit_test(anonymous_names)};
    return cmocka_run_group_tests(tests, begin, NULL);
}
