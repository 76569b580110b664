/* test_translator.c -- the text codec of a checkpoint has the dictionaries and steps of the run's
 * data, also after averaging. Hypotheses become words of the target dictionary. The beam of BLEU in
 * training. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/array_file.h"
#include "small_run.h"
#include "task/translator.h"
#include "testing/check.h"
#include "train/loaded_model.h"

static char *path_of(const char *name) {
    static char path[4][600];
    static int used;
    char *p = path[used++ % 4];
    snprintf(p, 600, "%s/%s", check_temporary(), name);
    return p;
}

static void write_text(void) {
    small_write("Der Hund bellt.\nein hund schlaeft\nDer Kater schlaeft.\n",
                "The dog barks.\na dog sleeps\nThe cat sleeps.\n", "ein Kater bellt\n",
                "a cat barks\n");
}

static const char *const joint[] = {
    "--tokenize=13a", "--lowercase", "--bpe-merges=6", "--max-tokens=256", "--checkpoint-every=end",
    "--epochs=1",     NULL};
static const char *const separate[] = {"--dictionary=separate", "--checkpoint-every=end",
                                       "--epochs=1", NULL};

static loaded_model *train_and_open(const char *const *args) {
    train_result r;
    sr_failure why = {0};
    loaded_model *t = malloc(sizeof *t);
    assert_non_null(t);
    write_text();
    sr_run_close(small_run(args, NULL, &r));
    check_ok(loaded_model_open(t, path_of("small.h5"),
                               &(loaded_model_options){.data_dir = "", .threads = 1}, &why),
             &why);
    check_ok(loaded_model_open_data(t, &why), &why);
    return t;
}

static void close_trained(loaded_model *t) {
    loaded_model_close(t);
    free(t);
}

/* -- the text of a checkpoint */

static char *written(const vocab *v) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_true(vocab_write(v, out));
    fclose(out);
    return text;
}

static void same_dictionary(const vocab *got, const vocab *want) {
    assert_non_null(got);
    assert_true(vocab_size(got) == vocab_size(want) && vocab_size(got) > 8);
    char *text = written(got), *wanted = written(want);
    assert_string_equal(text, wanted);
    free(text), free(wanted);
}

/* The codec of the checkpoint at `path` equals the codec of the data. */
static void same_codec(const loaded_model *t, const char *path) {
    static const char line[] = "Der Kater, Zwei schlaeft.";
    loaded_model_text text;
    loaded_model of = *t;
    sr_failure why = {0};
    snprintf(of.path, sizeof of.path, "%s", path);
    check_ok(loaded_model_open_text(&of, &text, &why), &why);
    const text_codec got = loaded_model_codec(&text), want = data_codec(t->data);
    assert_int_equal(got.steps, want.steps);
    for (int side = 0; side < CODEC_SIDES; side++) {
        int32_t id[2][64] = {{0}};
        int64_t count[2];
        same_dictionary(got.dictionary[side], want.dictionary[side]);
        check_ok(text_codec_encode(&got, side, line, strlen(line), id[0], 64, &count[0], &why),
                 &why);
        check_ok(text_codec_encode(&want, side, line, strlen(line), id[1], 64, &count[1], &why),
                 &why);
        assert_int_equal(count[0], count[1]);
        assert_memory_equal(id[0], id[1], sizeof id[0]);
    }
    assert_int_equal(got.dictionary[0] == got.dictionary[1],
                     want.dictionary[0] == want.dictionary[1]);
    loaded_model_close_text(&text);
}

static void text_of_a_checkpoint(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        loaded_model *t = train_and_open(i ? separate : joint);
        assert_int_equal(data_codec(t->data).steps, i ? 0 : 2);
        same_codec(t, t->path);
        close_trained(t);
    }
}

/* The mean of checkpoints keeps text and updates, and stores its origin. */
static void text_of_a_mean(void **state) {
    (void)state;
    sr_failure why = {0};
    loaded_model *t = train_and_open(joint), mean;
    char *origin;
    check_ok(loaded_model_average(t, (char *[]){t->path, t->path}, 2, &why), &why);
    check_ok(loaded_model_write(t, path_of("mean.ckpt"), "twice the same", true, &why), &why);
    same_codec(t, path_of("mean.ckpt"));
    check_ok(loaded_model_open(&mean, path_of("mean.ckpt"),
                               &(loaded_model_options){.data_dir = "", .threads = 1}, &why),
             &why);
    assert_true(mean.updates == t->updates && t->updates > 0);
    assert_int_equal(loaded_model_write(t, path_of("mean.ckpt"), "", false, &why), SR_EXISTS);
    loaded_model_close(&mean);
    array_reader *f = array_reader_open(path_of("mean.ckpt"), "statrec-checkpoint", 1, &why);
    assert_non_null(f);
    check_ok(array_reader_text(f, "origin", &origin, &why), &why);
    assert_string_equal(origin, "twice the same");
    free(origin);
    array_reader_close(f);
    close_trained(t);
}

/* --tokenize and --lowercase, each alone and both. */
static void forms(void **state) {
    (void)state;
    static const struct {
        const char *tokenize;
        bool lowercase;
        const char *want;
    } row[] = {{"13a", false, "Ein Hund , Ja"},
               {"none", true, "ein hund, ja"},
               {"13a", true, "ein hund , ja"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        bleu_form form;
        byte_buffer out = {0};
        sr_failure why = {0};
        const line_transform s = tokenizer_option_step(row[i].tokenize, row[i].lowercase, &form);
        assert_non_null(s.apply);
        check_ok(s.apply(s.self, 0, "Ein Hund, Ja", 12, &out, &why), &why);
        assert_string_equal(out.byte, row[i].want);
        buffer_free(&out);
    }
    assert_null(tokenizer_option_step("none", false, &(bleu_form){0}).apply);
}

/* -- from tokens to text */

static void expect_text(const translator *t, const hypothesis *h, const char *want) {
    static const char source[] = "Der  Vogel singt";
    byte_buffer out = {0};
    sr_failure why = {0};
    check_ok(translator_text(t, (translator_line){source, strlen(source)}, h, &out, &why), &why);
    assert_int_equal(out.size, strlen(want));
    assert_memory_equal(out.byte, want, out.size);
    buffer_free(&out);
}

/* dog <unk> The: the source position of the unknown word selects the word to copy. */
static void words_of_a_hypothesis(void **state) {
    (void)state;
    loaded_model *t = train_and_open(separate);
    translator of = {.model = t->model, .codec = data_codec(t->data)};
    const vocab *words = of.codec.dictionary[1];
    int32_t token[] = {vocab_id(words, "dog", 3), TOKEN_UNK, vocab_id(words, "The", 3), TOKEN_EOS},
            source_at[] = {0, 1, 2, -1};
    const hypothesis h = {.length = 4, .token = token, .source_at = source_at};
    of.unknown = UNKNOWN_KEEP;
    expect_text(&of, &h, "dog <unk> The");
    of.unknown = UNKNOWN_DROP;
    expect_text(&of, &h, "dog The");
    of.unknown = UNKNOWN_COPY;
    expect_text(&of, &h, "dog Vogel The");
    source_at[1] = 2;
    expect_text(&of, &h, "dog singt The");
    close_trained(t);
}

/* -- BLEU in training */

enum { EPOCHS = 16 };

static void course(const char *beam, double *bleu) {
    const char *const args[] = {"--max-tokens=32",    "--lr=0.02",   "--lr-scheduler=fixed",
                                "--warmup-updates=0", "--epochs=16", "--bleu-every=1",
                                "--bleu-beam",        beam,          NULL};
    train_result r;
    sr_runfile *f = small_run(args, NULL, &r);
    small_evals(f, "valid_bleu", EPOCHS, bleu);
    sr_run_close(f);
}

/* One course of weights, but a beam of eight finds other translations than one of one. */
static void beam_of_bleu(void **state) {
    (void)state;
    static const char source[] = "a b c d e f\nb c d e f a\nc d e f a b\nd e f a b c\n",
                      target[] = "u v w x y z\nv w x y z u\nw x y z u v\nx y z u v w\n";
    double greedy[EPOCHS], wide[EPOCHS];
    int differ = 0, more = 0;
    small_write(source, target, source, target);
    course("1", greedy);
    course("8", wide);
    for (int i = 0; i < EPOCHS; i++) differ += greedy[i] != wide[i], more += greedy[i] > 0;
    assert_true(differ > 0 && more > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(text_of_a_checkpoint),
                                       cmocka_unit_test(text_of_a_mean), cmocka_unit_test(forms),
                                       cmocka_unit_test(words_of_a_hypothesis),
                                       cmocka_unit_test(beam_of_bleu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
