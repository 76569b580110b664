/* test_failing_checkpoints.c -- checkpoints are written, kept, read and averaged while one call
 * fails: an allocation, a system call, an HDF5 call. A call either succeeds with its usual result
 * or reports why it failed. The previous checkpoint stays valid. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <glob.h>
#include <stdio.h>

#include "small_run.h"
#include "testing/failing_deeds.h"
#include "testing/failing_streams.h"
#include "train/checkpoint/checkpoint.h"
#include "train/loaded_model.h"

static train_config alone;
static trainer run; /* opened with these options */
/* Result of an operation, and of the same one without a failure; "": nothing to compare. */
static char result[4096], whole[4096];

static char *path_of(const char *name) {
    static char path[8][600];
    static int used;
    char *p = path[used++ % 8];
    snprintf(p, 600, "%s/%s", check_temporary(), name);
    return p;
}

static int count_files(const char *pattern) {
    glob_t found;
    const int count = glob(path_of(pattern), 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    globfree(&found);
    return count;
}

/* -- operations -------------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static void set_result(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result, sizeof result, format, arguments);
    va_end(arguments);
    if (failing_at == 0) strcpy(whole, result);
}

static void set_digest(model *m) {
    char digest[32];
    trainer_digest(m, digest);
    set_result("%s", digest);
}

static const loaded_model_options plain = {.data_dir = "", .threads = 1};
static loaded_model opened;

static sr_status open_model(sr_failure *why) {
    loaded_model_text text = {0};
    char digest[32] = "";
    sr_status status = loaded_model_open(&opened, path_of("small-0000006.ckpt"), &plain, why);
    if (status == SR_OK) status = loaded_model_open_text(&opened, &text, why);
    if (status == SR_OK) {
        const text_codec codec = loaded_model_codec(&text);
        trainer_digest(opened.model, digest);
        set_result("%s, %lld updates, %lld and %lld words, %d steps", digest,
                   (long long)opened.updates, (long long)vocab_size(codec.dictionary[0]),
                   (long long)vocab_size(codec.dictionary[1]), codec.steps);
    }
    loaded_model_close_text(&text);
    loaded_model_close(&opened);
    return status;
}

static sr_status inspect(sr_failure *why) {
    checkpoint_card card;
    bool weights_only = false;
    sr_status status = checkpoint_info_read(path_of("small-0000006.ckpt"), &card, why);
    if (status == SR_OK)
        status = loaded_model_check(path_of("small-0000006.ckpt"), &weights_only, why);
    if (status == SR_OK)
        set_result("%s, %s, %lld steps, %lld arrays of %lld, %d, '%s'", card.model,
                   card.weights_digest, (long long)card.steps, (long long)card.arrays,
                   (long long)card.parameters, weights_only, card.origin);
    checkpoint_info_free(&card);
    return status;
}

static sr_status average(sr_failure *why) {
    char *const names[] = {path_of("small-0000002.ckpt"), path_of("small-0000006.ckpt")};
    sr_status status = loaded_model_open(&opened, names[1], &plain, why);
    if (status == SR_OK) status = loaded_model_average(&opened, names, 2, why);
    if (status == SR_OK)
        status = loaded_model_write(&opened, path_of("written.ckpt"), "two", true, why);
    if (status == SR_OK) set_digest(opened.model);
    loaded_model_close(&opened);
    return status;
}

static sr_status archive(sr_failure *why) {
    sr_status status = loaded_model_open(&opened, path_of("small-0000002.ckpt"), &plain, why);
    if (status == SR_OK)
        status = weights_write_npz(opened.model, path_of("written.npz"), true, why);
    if (status == SR_OK) opened.model->params.item[0]->t.value[0] = 99;
    if (status == SR_OK) status = weights_read(opened.model, path_of("written.npz"), why);
    if (status == SR_OK) set_digest(opened.model);
    loaded_model_close(&opened);
    return status;
}

static sr_status find_resumed(sr_failure *why) {
    static train_config c;
    train_resume from;
    sr_status status = train_resume_find(path_of("small.h5"), "", &from, &c, why);
    /* if the newest is unreadable, an older one is used, with a message */
    if (status == SR_OK && !*from.passed_over)
        set_result("%lld updates, %s, %s", (long long)from.updates, from.command, from.parent);
    train_resume_free(&from);
    return status;
}

static sr_status restore(sr_failure *why) {
    char digest[32];
    run.model->params.item[0]->t.value[0] = 99;
    const sr_status status = checkpoint_restore(&run, path_of("small-0000006.ckpt"), why);
    if (status == SR_OK)
        set_result("%s, %lld updates", (trainer_digest(run.model, digest), digest),
                   (long long)run.result->updates);
    return status;
}

static sr_status write_one(sr_failure *why) {
    const sr_status status = checkpoint_write(&run, path_of("written.ckpt"), why);
    if (status == SR_OK) set_digest(run.model);
    return status;
}

/* A best one and a newest one, and the older ones go. */
static sr_status keep_two(sr_failure *why) {
    run.better = true, run.result->updates = 8, run.checkpoint_newest = run.checkpoint_update = 6;
    const sr_status status = trainer_checkpoint_between(&run, false, why);
    if (status == SR_OK) set_result("%lld", (long long)run.checkpoint_update);
    return status;
}

/* A run with --force that fails at the start, and one that succeeds. */
static sr_status replace(sr_failure *why) {
    const char *prefix = path_of("small");
    sr_status status = checkpoint_sweep(prefix, why);
    if (status == SR_OK) status = checkpoint_set_aside(prefix, why);
    if (status == SR_OK) status = checkpoint_put_back(prefix, why);
    if (status == SR_OK) status = checkpoint_set_aside(prefix, why);
    if (status == SR_OK) status = checkpoint_drop_old(prefix, why);
    if (status == SR_OK) set_result("replaced");
    return status;
}

/* A run with --force sets the older ones aside, then fails at the start. */
static sr_status begin_in_vain(sr_failure *why) {
    sr_status status = trainer_checkpoints_open(&run, why);
    if (status == SR_OK) status = trainer_checkpoints_close(&run, false, false, why);
    if (status == SR_OK && count_files("small-*.ckpt") != 3)
        complain("begin in vain", "they are not put back");
    return status;
}

/* Without --force it does not start. */
static sr_status begin_beside(sr_failure *why) {
    sr_failure own = {0};
    alone.force = false;
    sr_status status = trainer_checkpoints_open(&run, &own);
    alone.force = true;
    if (status == SR_EXISTS) return set_result("%s", own.text), SR_OK;
    if (status == SR_OK) complain("begin beside", "it began");
    *why = own;
    return status;
}

/* A resumed run removes the .part of a killed writer. */
static sr_status begin_again(sr_failure *why) {
    static const train_resume from;
    run.from = &from;
    const sr_status status = trainer_checkpoints_open(&run, why);
    run.from = NULL;
    if (status == SR_OK) set_result("after update %lld", (long long)run.checkpoint_newest);
    return status;
}

/* -- files that must remain -------------------------------------------------------------------- */

/* A file of this name is whole. */
static void expect_whole(const char *after, const char *name) {
    checkpoint_card card;
    sr_failure why = {0};
    bool weights_only;
    if (access(path_of(name), F_OK) != 0) complain(after, "%s is not there", name);
    if (checkpoint_info_read(path_of(name), &card, &why) != SR_OK ||
        loaded_model_check(path_of(name), &weights_only, &why) != SR_OK)
        complain(after, "%s", why.text);
    checkpoint_info_free(&card);
}

static void look_at_result(const char *after, sr_status status) {
    if (status == SR_OK && *result && strcmp(result, whole) != 0)
        complain(after, "%s, not %s", result, whole);
}

static void look_at_written(const char *after, sr_status status) {
    look_at_result(after, status);
    expect_whole(after, "written.ckpt");
}

/* At least one of the checkpoints, and the newest one if no call failed. */
static void look_at_kept(const char *after, sr_status status) {
    int64_t *update;
    int count;
    char name[64];
    sr_failure why = {0};
    look_at_result(after, status);
    if (checkpoint_list(path_of("small"), &update, &count, &why) != SR_OK || count == 0)
        complain(after, "no checkpoint is left: %s", why.text);
    if (status == SR_OK && (update[0] != 8 || count != 2))
        complain(after, "%d checkpoints, the newest of %lld", count, (long long)update[0]);
    snprintf(name, sizeof name, "small-%07lld.ckpt", (long long)update[0]);
    free(update);
    expect_whole(after, name);
}

/* They are under one of their names, until the run that replaces them has its own: then those that
 * are left are all set aside. */
static void look_at_replaced(const char *after, sr_status status) {
    const int named = count_files("small-*.ckpt"), aside = count_files("small-*.ckpt.old");
    look_at_result(after, status);
    if (status == SR_OK && named + aside != 0) complain(after, "%d are left", named + aside);
    if (status != SR_OK && named > 0 && named + aside != 3)
        complain(after, "%d and %d of 3", named, aside);
}

/* All exist, under one of their names; the .part only until a run has begun. */
static void look_at_begun(const char *after, sr_status status) {
    const int named = count_files("small-*.ckpt"), aside = count_files("small-*.ckpt.old");
    look_at_result(after, status);
    if (named + aside != 3) complain(after, "%d and %d of 3", named, aside);
    if (status == SR_OK && strstr(after, "begin again") && count_files("small-*.part"))
        complain(after, "a part is left");
}

/* -- failing ----------------------------------------------------------------------------------- */

static void forget(void) {
    *result = 0;
}

static void prepare(void) {
    char command[3000];
    const char *at = check_temporary();
    snprintf(command, sizeof command,
             "cd '%s' && rm -f small*.ckpt* written* && cp keep/small-* . && "
             "cp keep/small-0000004.ckpt written.ckpt && cp keep/small-0000004.ckpt "
             "small-0000004.ckpt.part",
             at);
    assert_int_equal(system(command), 0);
    forget();
}

static const deed deeds[] = {
    {"open", open_model, look_at_result, forget, "", false},
    {"inspect", inspect, look_at_result, forget, "", false},
    {"find the one to resume", find_resumed, look_at_result, forget, "", false},
    {"average", average, look_at_written, prepare, "", true},
    {"archive", archive, look_at_result, forget, "", true},
    {"restore", restore, look_at_result, forget, "", false},
    {"write", write_one, look_at_written, prepare, "statrec-test", true},
    {"keep", keep_two, look_at_kept, prepare, "statrec-test", true},
    {"replace", replace, look_at_replaced, prepare, "statrec-test", true},
    {"begin in vain", begin_in_vain, look_at_begun, prepare, "statrec-test", true},
    {"begin beside", begin_beside, look_at_begun, prepare, "statrec-test", true},
    {"begin again", begin_again, look_at_begun, prepare, "statrec-test", true},
};

static void fail_all(failing_kind kind) {
    prepare(); /* the last operation of a test leaves no checkpoint */
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++) deed_fail_each(&deeds[i], kind);
}

static void test_allocations(void **state) {
    (void)state;
    fail_all(FAILING_ALLOCATIONS);
}

static void test_system(void **state) {
    (void)state;
    fail_all(FAILING_SYSTEM);
}

static void test_hdf5(void **state) {
    (void)state;
    fail_all(FAILING_HDF5);
}

/* -- the run whose checkpoints these are ------------------------------------------------------- */

static int train(void **state) {
    (void)state;
    const char *const args[] = {
        "--max-steps=6", "--checkpoint-every=2", "--keep=9", "--bpe-merges=3", "--norm=bn", NULL};
    const char *const options[] = {"--epochs=9",
                                   "--checkpoint-every=1",
                                   "--keep=2",
                                   "--bpe-merges=3",
                                   "--norm=bn",
                                   "--record=none",
                                   "--keep-best=valid_loss",
                                   "--shards=2",
                                   NULL};
    static train_result into;
    static const train_events silent;
    train_result ended;
    char command[3000];
    sr_failure why = {0};
    small_write_pairs(6);
    sr_run_close(small_run(args, NULL, &ended));
    snprintf(command, sizeof command, "cd '%s' && mkdir keep && mv small-*.ckpt keep",
             check_temporary());
    assert_int_equal(system(command), 0);
    small_parse(&alone, options);
    *alone.output = 0; /* only the process that created a run file can write it */
    snprintf(alone.checkpoint, sizeof alone.checkpoint, "%s", path_of("small"));
    run = (trainer){.config = &alone, .events = &silent, .result = &into};
    check_ok(trainer_open(&run, "test", &why), &why);
    prepare();
    return 0;
}

int main(void) {
    /* hundreds of files, each with an fsync: in memory if possible */
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_system),
        cmocka_unit_test(test_hdf5),
    };
    return cmocka_run_group_tests(tests, train, NULL);
}
