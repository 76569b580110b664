/* test_failing_options.c -- a command line, a preset and the lines of a text while an allocation
 * fails. It is reported without leaks, or the result is the usual one. Options of version 0.1. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <stdio.h>
#include <string.h>

#include "testing/failing_deeds.h"
#include "train/loaded_model.h"
#include "train/trainer.h"

static train_config config;

static sr_status parse(sr_failure *why) {
    char *const word[] = {
        "statrec",           "train",         "--model=transformer", "--preset=mini",
        "--norm=brn",        "--brn-r-max=2", "--norm-at=*.1.*=brn", "--output=x.h5",
        "--data=synth-pairs"};
    int positional;
    char *argv[sizeof word / sizeof *word];
    memcpy(argv, word, sizeof word);
    const sr_status status =
        train_config_parse(&config, sizeof word / sizeof *word, argv, 2, &positional, why);
    if (status == SR_OK && strcmp(config.model.norm_at, "*.1.*=brn") != 0)
        complain("parse", "%s", config.model.norm_at);
    return status;
}

static sr_status read_preset(sr_failure *why) {
    char *text = train_preset_text("transformer", "mini", why);
    if (!text) return why->status;
    if (strncmp(text, "# ", 2) != 0) complain("preset", "%.40s", text);
    free(text);
    return SR_OK;
}

static sr_status tokenize(sr_failure *why) {
    bleu_form form;
    byte_buffer out = {0};
    const line_transform step = tokenizer_option_step("13a", true, &form);
    const sr_status status = step.apply(step.self, 0, "A b,c.", 6, &out, why);
    if (status == SR_OK && (out.size != 9 || memcmp(out.byte, "a b , c .", 9) != 0))
        complain("tokenize", "%.*s", (int)out.size, out.byte);
    buffer_free(&out);
    return status;
}

static void test_allocations(void **state) {
    (void)state;
    static const deed deeds[] = {
        {.name = "parse", .run = parse, .file = ""},
        {.name = "read a preset", .run = read_preset, .file = ""},
        {.name = "tokenize", .run = tokenize, .file = ""},
    };
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
        deed_fail_all(&deeds[i], FAILING_ALLOCATIONS);
}

/* Options of version 0.1 become parts of values. */
static void test_old_options(void **state) {
    (void)state;
    sr_failure why = {0};
    check_ok(train_config_read(&config,
                               "model = transformer\noutput = x.h5\nlr = 0.25\nnorm = brn\n"
                               "norm-at = *.1.*=brn+ls,*=ln\nbrn-r-max = 2\n",
                               "x.h5", &why),
             &why);
    check_equals(config.lr, 0.25);
    assert_string_equal(config.model.norm, "brn(r_max=2)");
    assert_string_equal(config.model.norm_at, "*.1.*=brn(r_max=2)+ls,*=ln");
}

/* A value too long to fold into --norm stays a separate option. */
static void test_long_values(void **state) {
    (void)state;
    sr_failure why = {0};
    char text[4 * MODEL_TEXT] =
        "model = transformer\noutput = x.h5\nnorm = brn\nbrn-r-max = 2\nnorm-at = ";
    const size_t before = strlen(text);
    while (strlen(text) + 12 < before + MODEL_TEXT) strcat(text, "a.norm1=brn,");
    strcpy(text + strlen(text) - 1, "\n");
    check_ok(train_config_read(&config, text, "x.h5", &why), &why);
    assert_string_equal(config.model.norm, "brn");
    assert_null(strstr(config.model.norm_at, "r_max"));
    int kept = 0;
    for (int i = 0; i < NORM_OPTION_MAX; i++) kept += !strcmp(config.model.norm_param[i], "2");
    assert_int_equal(kept, 1);
    char zeros[MODEL_TEXT] = "";
    memset(zeros, '0', MODEL_TEXT - 20);
    snprintf(text, sizeof text,
             "model = transformer\noutput = x.h5\nnorm = brn(d_max=5.%s)\nbrn-r-max = 2\n", zeros);
    assert_int_equal(train_config_read(&config, text, "x.h5", &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "brn: 'd_max' is too long");
    assert_null(strstr(config.model.norm, "r_max"));
    why = (sr_failure){0};
    const char *malformed = "model = transformer\noutput = x.h5\nnorm-at = a\nbrn-r-max = 2\n";
    assert_int_equal(train_config_read(&config, malformed, "x.h5", &why), SR_OK); /* the model's */
    assert_string_equal(config.model.norm_at, "a");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_old_options),
        cmocka_unit_test(test_long_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
