/* test_failing_tasks.c -- predictions and scores of a split while one allocation fails: each call
 * reports the failure and leaks nothing, or returns its usual result. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#define DEEDS_WITHOUT_HDF5
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "task/task.h"
#include "task/translator.h"
#include "testing/failing_deeds.h"

/* -- a model and its data ---------------------------------------------------------------------- */

static dataset *data;
static model *m;
static tape *t;
static const task_options plain = {.label_smoothing = 0, .beam = 2};

static void write_file(const char *name, const char *text) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", check_temporary(), name);
    FILE *f = fopen(path, "w");
    assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void open_model(const char *model_name, const char *preset, const char *data_name,
                       const char *prefix) {
    sr_failure why = {0};
    data_options d = {.batch_size = 2,
                      .eval_batch_size = 1,
                      .window = 4,
                      .max_tokens = 16,
                      .word_column = 1,
                      .bpe_merges = !strcmp(data_name, "parallel") ? 2 : 0,
                      .seed = 1,
                      .source = "de",
                      .target = "en"};
    model_options o = {.norm = "bn",
                       .decoder_norm = "ln",
                       .norm_eps = NAN,
                       .norm_alpha = NAN,
                       .dropout = NAN,
                       .attention_dropout = NAN,
                       .relu_dropout = NAN,
                       .lm_mask = "causal",
                       .embed_dim = 8,
                       .hidden_dim = 8,
                       .ffn_dim = 8,
                       .word_dim = 8,
                       .heads = 2,
                       .seed = 1};
    snprintf(d.name, sizeof d.name, "%s", data_name);
    snprintf(d.dir, sizeof d.dir, "%s", check_temporary());
    snprintf(d.trainpref, sizeof d.trainpref, "%s", prefix);
    snprintf(d.validpref, sizeof d.validpref, "%s", prefix);
    snprintf(o.name, sizeof o.name, "%s", model_name);
    snprintf(o.preset, sizeof o.preset, "%s", preset);
    if (!(data = data_open(&d, &why))) fail_msg("%s", why.text);
    if (!(m = model_create(&o, data_get_shape(data), &why))) fail_msg("%s", why.text);
    assert_non_null(t = tape_create(1, &why));
}

static void close_model(void) {
    tape_free(t);
    model_free(m);
    data_close(data);
}

static task_decoding decoding(void) {
    return (task_decoding){
        .options = &plain, .model = m, .tape = t, .data = data, .split = SPLIT_VALID};
}

/* -- operations -------------------------------------------------------------------------------- */

static char text[4096], wanted[4096]; /* result, and the result without a failure */

static void check_text(const char *name) {
    if (failing_at == 0) strcpy(wanted, text);
    if (strlen(text) < 3) complain(name, "'%s' is nothing", text);
    if (strcmp(text, wanted) != 0) complain(name, "'%s', not '%s'", text, wanted);
}

static sr_status predict(sr_failure *why) {
    const task_decoding d = decoding();
    const bool watched = failing_watches;
    failing_watches = false;
    FILE *to = fmemopen(text, sizeof text, "w");
    failing_watches = watched;
    if (!to) complain("predict", "no memory stream");
    const sr_status status = task_of(m->row->task)->predict(&d, to, why);
    failing_watches = false;
    fclose(to);
    failing_watches = watched;
    if (status == SR_OK) check_text("predict");
    return status;
}

static sr_status decode(sr_failure *why) {
    const task_decoding d = decoding();
    double value[TASK_METRICS];
    char line[TASK_DECODED];
    bool stopped;
    const sr_status status = task_of(m->row->task)->decode(&d, value, line, &stopped, why);
    if (status != SR_OK) return status;
    snprintf(text, sizeof text, "%g %s", value[0], line);
    check_text("decode");
    return status;
}

/* Unknown words are copied from the source. */
static sr_status translate_lines(sr_failure *why) {
    static const translator_line line[] = {{"s a b", 5}, {"", 0}, {"q a r", 5}};
    translator r = {.model = m,
                    .codec = data_codec(data),
                    .unknown = UNKNOWN_COPY,
                    .options = translate_options_default()};
    translation out[3] = {{0}};
    translate_report report;
    byte_buffer words = {0};
    r.options.beam.max_b = 4;
    sr_status status = translator_check(&r, line, 3, why);
    if (status == SR_OK) status = translator_run(&r, line, 3, out, &report, why);
    *text = 0;
    for (int i = 0; i < 3; i++) {
        if (status == SR_OK && out[i].count > 0)
            status = translator_text(&r, line[i], &out[i].item[0], &words, why);
        if (status == SR_OK)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%.*s\n", (int)words.size,
                     words.byte ? words.byte : "");
        translation_free(&out[i]);
    }
    buffer_free(&words);
    if (status == SR_OK) check_text("translate");
    return status;
}

static sr_status evaluate(sr_failure *why) {
    task_sums sum;
    sr_status status = task_evaluate(task_of(m->row->task), &plain, m, t, data, SPLIT_VALID,
                                     NORM_RUNNING, &sum, why);
    if (status == SR_OK)
        status = task_evaluate_training(task_of(m->row->task), &plain, m, t, data, 9, &sum, why);
    if (status != SR_OK) return status;
    snprintf(text, sizeof text, "%.9g", sum.loss);
    check_text("evaluate");
    return status;
}

/* -- failing ----------------------------------------------------------------------------------- */

static void fail_allocations(const char *name, sr_status (*run)(sr_failure *why)) {
    const deed d = {.name = name, .run = run, .file = ""};
    deed_fail_each(&d, FAILING_ALLOCATIONS);
}

/* Each allocation of the tape. */
static void fail_tape(sr_status (*run)(sr_failure *why), const char *what) {
    sr_failure why = {0};
    failing_at = 0;
    arena_fail_after(t->arena, -1);
    check_ok(run(&why), &why);
    const int64_t needed = arena_fail_after(t->arena, -1);
    assert_true(needed > 3);
    failing_at = 1;
    for (int64_t k = 0; k < needed; k++) {
        why = (sr_failure){0};
        arena_fail_after(t->arena, k);
        assert_int_equal(run(&why), SR_MEMORY);
        if (!strstr(why.text, "memory") || !strstr(why.text, what))
            fail_msg("allocation %lld of %lld: '%s'", (long long)k, (long long)needed, why.text);
    }
    arena_fail_after(t->arena, -1);
    check_ok(run(&why), &why);
    failing_at = 0;
}

static void test_tags(void **state) {
    (void)state;
    write_file("tags", "Anna B-P\nsaw O\n\nBo B-P\nAx I-P\nran O\n\nAx B-P\nsat O\n\n");
    open_model("tener", "conll2003-mini", "conll", "tags");
    fail_allocations("tag", predict);
    fail_tape(predict, "");
    fail_tape(evaluate, ": out of memory");
    close_model();
}

static void test_trees(void **state) {
    (void)state;
    write_file("trees", "a\tX\t2\tl\nb\tY\t0\tm\n\nc\tX\t0\tm\nb\tY\t1\tl\n\na\tX\t0\tm\n");
    open_model("mlp_parser", "", "trees", "trees");
    fail_allocations("parse", predict);
    fail_allocations("score trees", decode);
    fail_allocations("evaluate trees", evaluate);
    close_model();
}

static void test_pairs(void **state) {
    (void)state;
    write_file("pairs.de", "s a b\nt a b\nu a b\nv a b\ns a c\n");
    write_file("pairs.en", "x t y\nx u y\nx v y\nx w y\nz t y\n");
    open_model("transformer", "mini", "parallel", "pairs");
    fail_allocations("score a translation", decode);
    fail_allocations("translate lines", translate_lines);
    fail_tape(evaluate, ": out of memory");
    close_model();
}

/* With a memory that is kept from step to step. */
static void test_language(void **state) {
    (void)state;
    write_file("text", "a b c a d b\nc a b\nd d a c b a\nb a\na b c d a b a c\n");
    open_model("transformer_xl", "enwik8-mini", "text", "text");
    fail_allocations("evaluate a language model", evaluate);
    close_model();
}

/* -- rejected calls ---------------------------------------------------------------------------- */

static bool stop(void *context) {
    (void)context;
    return true;
}

static void test_trees_that_are_not_written(void **state) {
    (void)state;
    sr_failure why = {0};
    open_model("mlp_parser", "", "trees", "trees");
    task_decoding d = decoding();
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    setvbuf(full, NULL, _IONBF, 0);
    assert_int_equal(task_of(TASK_TREES)->predict(&d, full, &why), SR_IO);
    check_failure(&why, SR_IO, "the trees could not be written");
    why = (sr_failure){0};
    d.stop = stop;
    assert_int_equal(task_of(TASK_TREES)->predict(&d, full, &why), SR_STATE);
    check_failure(&why, SR_STATE, "stopped by a signal");
    why = (sr_failure){0};
    d.split = SPLIT_TEST;
    assert_int_equal(task_of(TASK_TREES)->predict(&d, full, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "parses no sentences of the test split");
    fclose(full);
    close_model();
}

static tensor *nothing(model *of, pass *p) {
    (void)of, (void)p;
    return NULL;
}

/* A model that gives neither a loss nor a failure. */
static void test_no_loss(void **state) {
    (void)state;
    static const model_row row = {.name = "mute", .task = TASK_LM, .forward = nothing};
    model mute = {.row = &row};
    sr_failure why = {0};
    t = tape_create(1, &why);
    tape_reset(t, rng_create(1), false, false);
    pass p = {.tape = t};
    assert_null(task_loss(task_of(TASK_LM), &plain, &mute, &p, NULL));
    check_failure(tape_failure(t), SR_USAGE, "model mute gave no loss");
    tape_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tags),    cmocka_unit_test(test_trees),
        cmocka_unit_test(test_pairs),   cmocka_unit_test(test_language),
        cmocka_unit_test(test_no_loss), cmocka_unit_test(test_trees_that_are_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
