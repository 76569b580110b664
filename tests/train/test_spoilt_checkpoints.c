/* test_spoilt_checkpoints.c -- checkpoints with a missing object, one of another kind or one with
 * an impossible value are rejected with its name. Dictionaries: an empty one is left out; one that
 * does not fit into memory leaves the checkpoint unchanged. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <dlfcn.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "small_run.h"
#include "testing/check.h"
#include "train/checkpoint/checkpoint.h"
#include "train/loaded_model.h"

static train_config config;
static trainer run; /* opened with the checkpoint's options */
static const char *spoilt, *stored;

static void spoil(void (*deed)(hid_t file, const char *name), const char *name) {
    char command[2000];
    snprintf(command, sizeof command, "cp '%s' '%s'", stored, spoilt);
    assert_int_equal(system(command), 0);
    hid_t file = H5Fopen(spoilt, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    deed(file, name);
    assert_true(H5Fclose(file) >= 0);
}

static void take_away(hid_t file, const char *name) {
    assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
}

static void make_a_group(hid_t file, const char *name) {
    take_away(file, name);
    hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(group >= 0 && H5Gclose(group) >= 0);
}

static void make_99(hid_t file, const char *name) {
    const int64_t value = 99;
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0);
    assert_true(H5Dclose(set) >= 0);
}

static sr_status restore(sr_failure *why) {
    return checkpoint_restore(&run, spoilt, why);
}

static sr_status read_weights(sr_failure *why) {
    return weights_read(run.model, spoilt, why);
}

static sr_status open_model(sr_failure *why) {
    loaded_model t;
    const sr_status status =
        loaded_model_open(&t, spoilt, &(loaded_model_options){.data_dir = "", .threads = 1}, why);
    loaded_model_close(&t);
    return status;
}

static void test_objects(void **state) {
    (void)state;
    static const struct {
        void (*deed)(hid_t, const char *);
        const char *name;
        sr_status (*use)(sr_failure *why);
        const char *says, *hint;
    } row[] = {
        {take_away, "/progress/lr", restore, "spoilt.ckpt: has no progress/lr",
         "another configuration"},
        {take_away, "/parameters/encoder.0.norm1.beta", read_weights,
         "spoilt.ckpt: has no array encoder.0.norm1.beta", ""},
        {take_away, "/parameters/encoder.0.norm1.beta", open_model,
         "the model has 4960 numbers, the file 4944", ""},
        {make_a_group, "/parameters/encoder.0.norm1.beta", read_weights,
         "spoilt.ckpt: /parameters/encoder.0.norm1.beta", ""},
        {make_99, "/progress/data_batch", restore,
         "spoilt.ckpt: progress/data_batch is 99, not 0 to 3", ""},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        sr_failure why = {0};
        spoil(row[i].deed, row[i].name);
        row[i].use(&why);
        check_failure(&why, SR_FORMAT, row[i].says);
        if (!strstr(why.hint, row[i].hint)) fail_msg("%s: '%s'", row[i].says, why.hint);
    }
}

/* -- texts */

static bool full; /* a stream of memory cannot grow */

FILE *open_memstream(char **text, size_t *size) {
    typedef FILE *open_fn(char **text, size_t *size);
    union {
        void *symbol;
        open_fn *call;
    } original = {dlsym(RTLD_NEXT, "open_memstream")};
    if (!full) return original.call(text, size);
    FILE *f = fopen("/dev/full", "w");
    if (f) setvbuf(f, NULL, _IONBF, 0);
    return f;
}

static sr_status write_dictionary(const vocab *words, const char *path, sr_failure *why) {
    array_writer *w = array_writer_create(path, CHECKPOINT_FORMAT, CHECKPOINT_VERSION, why);
    assert_non_null(w);
    checkpoint_put_text(w, &(text_codec){.dictionary = {words, words}});
    array_writer_put_int(w, "updates", 7, NULL);
    return array_writer_finish(w, why);
}

/* Whether the file is whole and has a dictionary of the source. */
static bool has_dictionary(const char *path) {
    sr_failure why = {0};
    array_reader *f = array_reader_open(path, CHECKPOINT_FORMAT, CHECKPOINT_VERSION, &why);
    check_ok(why.status, &why);
    const bool has = array_reader_has(f, "text/source_dictionary");
    array_reader_close(f);
    return has;
}

static void test_dictionaries(void **state) {
    (void)state;
    char path[600];
    sr_failure why = {0};
    snprintf(path, sizeof path, "%s/text.ckpt", check_temporary());
    vocab *none = vocab_create(), *some = vocab_create();
    assert_true(none && some && vocab_count(some, "word", 4, 2));
    assert_true(vocab_finish_padded(none, 0, 1) && vocab_finish_padded(some, 0, 1));
    check_ok(write_dictionary(none, path, &why), &why);
    assert_false(has_dictionary(path));
    check_ok(write_dictionary(some, path, &why), &why);
    assert_true(has_dictionary(path));
    full = true;
    write_dictionary(some, path, &why);
    full = false;
    check_failure(&why, SR_MEMORY, "text.ckpt: no memory for text/source_dictionary");
    assert_true(has_dictionary(path)); /* the earlier one */
    vocab_free(none), vocab_free(some);
}

static int train(void **state) {
    (void)state;
    static char path[2][600];
    const char *const args[] = {"--max-steps=2", "--epochs=9", "--norm=bn",
                                "--checkpoint-every=end", NULL};
    static train_result into;
    static const train_events silent;
    train_result ended;
    sr_failure why = {0};
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "%s/%s", check_temporary(),
                 i ? "spoilt.ckpt" : "kept-0000002.ckpt");
    stored = path[0], spoilt = path[1];
    small_write_pairs(6);
    small_parse(&config, args);
    snprintf(config.checkpoint, sizeof config.checkpoint, "%s/kept", check_temporary());
    sr_run_close(small_train(&config, NULL, &ended));
    *config.output = *config.checkpoint = 0;
    run = (trainer){.config = &config, .events = &silent, .result = &into};
    check_ok(trainer_open(&run, "test", &why), &why);
    return 0;
}

static int end(void **state) {
    (void)state;
    sr_failure why = {0};
    trainer_close(&run, SR_OK, &why);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_objects),
                                       cmocka_unit_test(test_dictionaries)};
    return cmocka_run_group_tests(tests, train, end);
}
