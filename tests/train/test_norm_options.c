/* test_norm_options.c -- parameters of methods in the options of `statrec train`: in the value of
 * --norm and related options, and by the options of version 0.1. Those have rows and values in the
 * order of norm_option_at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"
#include "train/train.h"

static int row_of(const char *key) {
    const option_table t = train_options();
    for (int i = 0; i < t.count; i++)
        if (!strcmp(t.row[i].key, key)) return i;
    return -1;
}

static void rows(void **state) {
    (void)state;
    const int first = row_of("profile") + 1;
    const norm_option *o;
    int count = 0;
    for (; (o = norm_option_at(count)); count++) {
        const option *row = &train_options().row[first + count];
        assert_string_equal(row->key, o->key);
        assert_string_equal(row->help, o->help);
        assert_string_equal(row->default_text, "");
    }
    assert_int_equal(first + count, train_options().count);
}

static void values(void **state) {
    (void)state;
    static train_config c;
    char *args[2 * NORM_OPTION_MAX], text[NORM_OPTION_MAX][2][64];
    sr_failure why = {0};
    int positional, count = 0;
    for (; norm_option_at(count); count++) {
        snprintf(text[count][0], 64, "--%s", norm_option_at(count)->key);
        snprintf(text[count][1], 64, "value %d", count);
        args[2 * count] = text[count][0], args[2 * count + 1] = text[count][1];
    }
    options_set_defaults(train_options(), &c);
    check_ok(options_parse(train_options(), &c, 2 * count, args, 0, &positional, &why), &why);
    for (int i = 0; i < count; i++) assert_string_equal(c.model.norm_param[i], text[i][1]);
    char *dump = options_dump(train_options(), &c);
    assert_non_null(strstr(dump, "\nrbn-lambda-mean = value 4\nrbn-lambda-std = value 5\n"));
    free(dump);
}

static const char *stored(train_config *c, const char *const *pair, int pairs, char *text) {
    char *args[24], word[24][MODEL_TEXT];
    sr_failure why = {0};
    int positional;
    for (int i = 0; i < 2 * pairs; i++) {
        snprintf(word[i], sizeof word[i], "%s", pair[i]);
        args[i] = word[i];
    }
    options_set_defaults(train_options(), c);
    check_ok(options_parse(train_options(), c, 2 * pairs, args, 0, &positional, &why), &why);
    char *dump = options_dump(train_options(), c);
    check_ok(train_config_read(c, dump, "stored", &why), &why);
    free(dump);
    sprintf(text, "%s / %s / %s / %s", c->model.norm, c->model.decoder_norm, c->model.norm_at,
            c->model.qk_norm);
    return text;
}
#define STORED(...)                                                                                \
    stored(&c, (const char *const[]){__VA_ARGS__},                                                 \
           (int)(sizeof((const char *const[]){__VA_ARGS__}) / (2 * sizeof(char *))), text)

/* Reading a stored configuration moves the values of old options into --norm, if a method has the
 * parameter and its value does not set it. */
static void folded(void **state) {
    (void)state;
    static train_config c;
    char text[5 * MODEL_TEXT];
    assert_string_equal(STORED("--model", "transformer", "--data", "synth-pairs", "--record",
                               "none", "--norm", "brn", "--brn-r-max", "2"),
                        "brn(r_max=2) / ln /  / none");
    assert_string_equal(STORED("--model", "transformer", "--data", "synth-pairs", "--record",
                               "none", "--norm", "pn+ls", "--pn-alpha-bkw", "0.8",
                               "--norm-unbiased", "1", "--decoder-norm", "ln(eps=1e-6)"),
                        "pn(alpha_bwd=0.8)+ls / ln(eps=1e-6;unbiased=1) /  / none");
    assert_string_equal(
        STORED("--model", "transformer", "--data", "synth-pairs", "--record", "none", "--norm",
               "rbn(lambda=3)", "--rbn-lambda-mean", "1", "--rbn-lambda-std", "2", "--norm-at",
               "first=rbn(nu=4;lambda=5),last=rbn+ls,*.norm2=ln", "--qk-norm", "ln"),
        "rbn(lambda=3;nu=2) / ln / "
        "first=rbn(nu=4;lambda=5),last=rbn(lambda=1;nu=2)+ls,*.norm2=ln / ln");
    for (int i = 0; norm_option_at(i); i++)
        if (*c.model.norm_param[i]) fail_msg("--%s is left", norm_option_at(i)->key);
}

/* A value too long to move stays in its old option. */
static void too_long(void **state) {
    (void)state;
    static train_config c;
    char text[5 * MODEL_TEXT], at[MODEL_TEXT] = "";
    for (int i = 0; i < 15; i++)
        sprintf(at + strlen(at), "%sencoder.%d.norm1=brn(d_max=%d)", i ? "," : "", i, i);
    STORED("--model", "transformer", "--data", "synth-pairs", "--record", "none", "--norm", "brn",
           "--norm-at", at, "--brn-r-max", "2.000000001");
    assert_string_equal(c.model.norm_at, at);
    assert_string_equal(c.model.norm, "brn");
    char *dump = options_dump(train_options(), &c);
    assert_non_null(strstr(dump, "\nbrn-r-max = 2.000000001\n"));
    assert_null(strstr(dump, "\nbrn-d-max"));
    free(dump);
}

/* Each message names option, method, parameter, value and range. */
static void refused(void **state) {
    (void)state;
    static const struct {
        const char *option, *value, *message, *hint;
    } bad[] = {
        {"--norm", "brn(r_max=0.5)",
         "--norm: brn: value '0.5' of r_max is too small; range 1 to 1000000000", ""},
        {"--decoder-norm", "rbn(lambda=2e9)+ls",
         "--decoder-norm: rbn: value '2e9' of lambda is too large; range 0 to 1000000000", ""},
        {"--qk-norm", "ln(unbiased=0.5)",
         "--qk-norm: ln: value '0.5' of unbiased is not a whole number; range 0 to 1", ""},
        {"--norm", "bn(alpha=x)", "--norm: bn: value 'x' of alpha is not a number; range 0 to 1",
         ""},
        {"--norm", "bn(layer_scale=0)",
         "--norm: bn: value '0' of layer_scale is too small; range 1 to 4096", ""},
        {"--norm", "rbn(scale=max)", "--norm: rbn: value 'max' of scale is not one of: sum mean",
         ""},
        {"--norm", "brn(rmax=2)", "--norm: brn has no parameter 'rmax'", "did you mean 'r_max'?"},
        {"--norm", "ln(alpha=1)", "--norm: ln has no parameter 'alpha'",
         "its parameters: eps layer_scale unbiased"},
        {"--norm", "dyt(eps=1)", "--norm: dyt has no parameter 'eps'",
         "its parameters: layer_scale alpha0"},
        {"--norm", "brn(r_max)", "--norm: brn: 'r_max' is not NAME=VALUE", ""},
        {"--norm", "brn(r_max=2",
         "--norm: 'brn(r_max=2' is not of the form METHOD(NAME=VALUE;...)+ls", ""},
        {"--norm", "pn+ls(alpha=0.9)",
         "--norm: 'pn+ls(alpha=0.9)' is not of the form METHOD(NAME=VALUE;...)+ls", ""},
        {"--norm", "brm(r_max=2)", "--norm: 'brm' is not known",
         "did you mean 'brn'? all of them: statrec list norms"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        static train_config c;
        char word[5][64] = {"--model", "transformer", "", "", "--record=none"};
        char *args[] = {word[0], word[1], word[2], word[3], word[4]};
        int positional;
        sr_failure why = {0};
        strcpy(word[2], bad[i].option), strcpy(word[3], bad[i].value);
        train_config_parse(&c, 5, args, 0, &positional, &why);
        check_failure(&why, SR_USAGE, bad[i].message);
        assert_string_equal(why.text, bad[i].message);
        assert_string_equal(why.hint, bad[i].hint);
    }
}

/* Figures take "WORD-..." for an option of a method whose first word that is (plot_labels.c). */
static void first_words(void **state) {
    (void)state;
    for (int i = 0; norm_at(i); i++)
        for (int k = 0; k < train_options().count; k++) {
            const char *key = train_options().row[k].key, *name = norm_at(i)->name;
            const size_t length = strcspn(key, "-");
            bool of_norm = !strncmp(key, "norm-", 5);
            for (int j = 0; norm_option_at(j); j++)
                of_norm = of_norm || !strcmp(norm_option_at(j)->key, key);
            if (!of_norm && key[length] && length == strcspn(name, "-") &&
                !strncmp(key, name, length))
                fail_msg("--%s would be an option of %s", key, name);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows),    cmocka_unit_test(values),
                                       cmocka_unit_test(folded),  cmocka_unit_test(too_long),
                                       cmocka_unit_test(refused), cmocka_unit_test(first_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
