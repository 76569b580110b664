/* test_copy_anonymous.c -- an anonymous copy contains no byte of a user's, host's or path's name;
 * names that must stay are checked. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "copied_run.h"
#include "runfile/read/datasets/read_custom.h"
#include "runfile/read/datasets/read_metrics.h"
#include "runfile/repair/copy_anonymous.h"
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
    o.config = "lr = 0.5\nlr-x = 3\n# a note\n# of alice\nno option\ndata-dir = "
               "\"/home/alice/x\"\noutput = y\n";
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
    c.shares = NULL; /* no option may be stored */
    copied_copy("own.h5", "x.h5", &c);
    f = sample_open(sample_path("x.h5"));
    copied_same_text("config", sr_run_get_info(f)->config, "");
    sr_run_close(f);
}

/* An earlier copy's options contain a name: the next copy has empty texts. */
static void anonymous_twice(void **state) {
    (void)state;
    run_copy_options o = copied_plain();
    o.text = "--site of.alice";
    copied_copy("whole.h5", "once.h5", &o);
    o.text = "--anonymous", o.anonymous = true;
    copied_copy("once.h5", "x.h5", &o);
    copied_check_attribute("x.h5", "options", "--anonymous");
    copied_check_attribute("x.h5", "sources", "-");
    has_no("x.h5", "of.alice");
}

static void named(const char *site, const char *metric, const char *definition) {
    sr_options o = copied_options();
    sr_recorder *r = run_create(sample_path("named.h5"), o);
    run_add_bn(r, site, 2, 0, 1e-5);
    sr_add_metric(r, metric, "1", definition, SR_BETTER_LESS);
    run_put_step(r, 1);
    run_finish(r);
}

/* Names cannot be omitted. */
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
    sr_recorder *r = run_create(path, copied_options());
    run_add_bn(r, "bn1", 2, 0, 1e-5);
    sr_add_embedding(r, "words of alice", 4, 2);
    run_put_step(r, 1);
    run_finish(r);
    copied_refused(&path, 1, &o, SR_USAGE, "embedding words of alice contains the user");
    named("malice.bn", "loss", "||mu_B - mu||_2 / ||s||, sum_g/n per (a/b)"); /* no user, no path */
    copied_copy("named.h5", "x.h5", &o);
}

/* -- each text in turn, changed in memory -- */

static void check_text(const sr_runfile *f, const char *text, const char *part) {
    const copy_choice all = {0};
    sr_failure why = {0};
    const sr_status status = copy_anonymous_check(f, &all, &why);
    if ((status == SR_OK) != !part || (part && !strstr(why.text, part)))
        fail_msg("'%s': '%s', not '%s'", text, why.text, part ? part : "");
}

/* Identifying texts, and texts that a name may contain. */
static void identifying_texts(void **state) {
    (void)state;
    static const struct {
        const char *text, *found; /* NULL: nothing */
    } row[] = {{"~/x", "a path"},
               {"as C:\\x", "a path"},
               {"/home/ann", "a path"},
               {"x=/a/b", "a path"},
               {"(/a/b)", "a path"},
               {"/etc x/y", NULL},
               {"~x", NULL},
               {"a~/x", NULL},
               {"C:x", NULL},
               {"ab\\x", NULL},
               {"7:\\x", NULL},
               {"//x/y", NULL},
               {"/x", NULL},
               {"/", NULL},
               {"g / s", NULL},
               {"on NODESEVEN", "the host"},
               {"nodeseven.node7.example", "the host"},
               {"nodeseven2", NULL},
               {"mynodeseven", NULL},
               {"node_seven", NULL},
               {"of deadbee42", "the revision"},
               {"for alice", "the user"},
               {"for bob", "the user"},
               {"for carol", "the user"},
               {"for dave", "the user"},
               {"for ed", NULL}, /* too short: occurs in too many names */
               {"malice", NULL}};
    sr_runfile *f = sample_open(sample_path("whole.h5"));
    const sr_run_info was = f->info;
    f->info.config = "out = /Users/bob/x", f->info.parent = "/home/carol/a.h5 step 3";
    f->info.reason = "/users/dave; /home/ed";
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        strcpy(f->site[0].norm, row[i].text);
        check_text(f, row[i].text, row[i].found);
    }
    f->info = was;
    sr_run_close(f);
}

/* Every name, unit and definition that is copied is checked. */
static void identifying_places(void **state) {
    (void)state;
    sr_runfile *f = sample_open(sample_path("whole.h5"));
    reader_metric *m = &f->metric[0];
    reader_declared *d = &f->declared[1];
    const struct {
        char *text;
        const char *part;
    } row[] = {{f->site[1].name, "the name of site ~/x"},
               {f->site[1].norm, "the method of site encoder.0.norm1"},
               {f->site[1].kind, "the kind of site encoder.0.norm1"},
               {m->name, "metric ~/x"},
               {m->unit, "the unit of metric valid_nll"},
               {m->definition, "the definition of metric valid_nll"},
               {d->name, "scalar ~/x"},
               {d->unit, "the unit of scalar own too"},
               {d->definition, "the definition of scalar own too"},
               {f->names[READER_GROUPS - 1].name[0], "embedding ~/x"}};
    check_text(f, "nothing", NULL);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char was[SR_DEFINITION_SIZE];
        strcpy(was, row[i].text), strcpy(row[i].text, "~/x");
        check_text(f, row[i].part, row[i].part);
        strcpy(row[i].text, was);
    }
    check_text(f, "nothing", NULL);
    sr_run_close(f);
}

/* The method of an embedding is read from the file. */
static void identifying_method(void **state) {
    (void)state;
    hid_t file = damage_reopen(sample_path("odd.h5")), type = H5Tcopy(H5T_C_S1);
    hid_t space = H5Screate(H5S_SCALAR);
    const char *group = "/embeddings/shared";
    H5Tset_size(type, 4);
    H5Adelete_by_name(file, group, "method", H5P_DEFAULT);
    hid_t a = H5Acreate_by_name(file, group, "method", type, space, H5P_DEFAULT, H5P_DEFAULT,
                                H5P_DEFAULT);
    assert_true(a >= 0 && H5Awrite(a, type, "~/x") >= 0);
    H5Aclose(a), H5Sclose(space), H5Tclose(type), H5Fclose(file);
    sr_runfile *f = sample_open(sample_path("odd.h5"));
    check_text(f, "~/x", "the method of embedding shared contains a path");
    sr_run_close(f);
}

static bool keeps_no(const void *context, const char *statistic) {
    return strcmp(statistic, context) != 0;
}

/* Parts that are not copied are not checked. */
static void identifying_left_out(void **state) {
    (void)state;
    const int64_t sites[] = {0, 2};
    const copy_choice some = {.site = sites, .sites = 2, .keeps = keeps_no, .context = "own"};
    sr_failure why = {0};
    sr_runfile *f = sample_open(sample_path("whole.h5"));
    strcpy(f->site[1].norm, "~/x"), strcpy(f->declared[0].unit, "~/x");
    check_ok(copy_anonymous_check(f, &some, &why), &why);
    strcpy(f->site[2].norm, "~/x");
    assert_int_equal(copy_anonymous_check(f, &some, &why), SR_USAGE);
    sr_run_close(f);
}

static void identifying_info(void **state) {
    (void)state;
    sr_runfile *f = sample_open(sample_path("whole.h5"));
    for (int bad = 0; bad < 2; bad++) {
        const char *text = bad ? "~/x" : "x";
        sr_run_info i = f->info;
        const char **const kept[] = {&i.model, &i.data,    &i.task,          &i.loss_reduction,
                                     &i.ranks, &i.version, &i.weights_digest};
        i.program = "statrec train";
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) *kept[k] = text;
        copy_anonymous_info(f, &i);
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
            copied_same_text("a text", *kept[k], bad ? "" : "x");
        copied_same_text("program", i.program, bad ? "" : "statrec train");
    }
    sr_run_close(f);
}

/* Source names are hidden line by line. All texts are removed if another text identifies a
 * person. */
static void identifying_sources(void **state) {
    (void)state;
    static const char *const bad[][COPY_TEXTS] = {{"a.h5\n\nb.h5", "1\n2", "--site x"},
                                                  {"a.h5", "of alice", "--site x"},
                                                  {"a.h5", "1", "--site ~/x"}};
    static const char *const want[][COPY_TEXTS] = {
        {"-\n\n-", "1\n2", "--site x"}, {"", "", ""}, {"", "", ""}};
    sr_runfile *f = sample_open(sample_path("whole.h5"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char memory[COPY_TEXTS][64], *text[COPY_TEXTS];
        for (int k = 0; k < COPY_TEXTS; k++) strcpy(text[k] = memory[k], bad[i][k]);
        copy_anonymous_texts(f, text);
        for (int k = 0; k < COPY_TEXTS; k++) copied_same_text("a text", text[k], want[i][k]);
    }
    copy_anonymous_texts(f, (char *[COPY_TEXTS]){NULL}); /* the run is no copy */
    sr_run_close(f);
}

static int begin(void **state) {
    (void)state;
    const run_shape shape = {1, COPIED_STEPS, 77, "1", true};
    copied_write("whole.h5", &shape);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anonymous_twice),    cmocka_unit_test(anonymous),
        cmocka_unit_test(anonymous_config),   cmocka_unit_test(anonymous_names),
        cmocka_unit_test(identifying_texts),  cmocka_unit_test(identifying_places),
        cmocka_unit_test(identifying_method), cmocka_unit_test(identifying_left_out),
        cmocka_unit_test(identifying_info),   cmocka_unit_test(identifying_sources)};
    return cmocka_run_group_tests(tests, begin, NULL);
}
