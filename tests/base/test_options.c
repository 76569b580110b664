#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options_fixture.h"

/* -- defaults and single values ---------------------------------------------------------------- */

static void defaults_fill_every_row(void **state) {
    (void)state;
    values v;
    memset(&v, 0xa5, sizeof v);
    options_set_defaults(table, &v);
    assert_int_equal(v.steps, 100);
    assert_int_equal(v.below, -1);
    check_equals(v.lr, 0.1);
    assert_true(isnan(v.eps));
    check_equals(v.decay, -0.5);
    assert_true(v.augment && !v.quiet);
    assert_string_equal(v.name, "");
    assert_string_equal(v.output, "run.h5");
    assert_string_equal(v.method, "bn");
    for (int i = 0; i < table.count; i++) assert_false(options_changed(&table.row[i], &v));
}

static void changed_follows_the_value(void **state) {
    (void)state;
    values v;
    static const char *const set[][2] = {{"max-steps", "7"},     {"lr", "0.25"}, {"eps", "0"},
                                         {"augment", "no"},      {"name", "x"},  {"output", ""},
                                         {"method", "groupnorm"}};
    options_set_defaults(table, &v);
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++) {
        sr_failure why = {0};
        assert_false(options_changed(row_of(set[i][0]), &v));
        check_ok(options_set(table, &v, set[i][0], set[i][1], "test", &why), &why);
        assert_true(options_changed(row_of(set[i][0]), &v));
        check_ok(options_set(table, &v, set[i][0], row_of(set[i][0])->default_text, "test", &why),
                 &why);
        assert_false(options_changed(row_of(set[i][0]), &v));
    }
}

static void values_are_read(void **state) {
    (void)state;
    static const struct {
        const char *key, *text, *format; /* as options_format writes it; NULL: as given */
    } good[] = {
        {"max-steps", "1", NULL},
        {"max-steps", "1000", NULL},
        {"max-steps", "+5", "5"},
        {"max-steps", "007", "7"},
        {"any", "-12", NULL},
        {"any", "9223372036854775807", NULL},
        {"any", "-9223372036854775808", NULL},
        {"seed", "9223372036854775807", NULL},
        {"seed", "0", NULL},
        {"below", "0", NULL},
        {"below", "-9223372036854775808", NULL},
        {"lr", "0", NULL},
        {"lr", "10", NULL},
        {"lr", "1e-3", "0.001"},
        {"lr", ".5", "0.5"},
        {"eps", "nan", NULL},
        {"eps", "NaN", "nan"},
        {"eps", "1e-5", "1e-05"},
        {"decay", "inf", NULL},
        {"decay", "-inf", NULL},
        {"decay", "-1e300", "-1e+300"},
        {"augment", "yes", NULL},
        {"augment", "true", "yes"},
        {"augment", "on", "yes"},
        {"augment", "1", "yes"},
        {"augment", "no", NULL},
        {"augment", "false", "no"},
        {"augment", "off", "no"},
        {"augment", "0", "no"},
        {"name", "a b  c#d", NULL},
        {"name", "", NULL},
        {"method", "groupnorm", NULL},
        {"method", "ln", NULL},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        values v;
        sr_failure why = {0};
        char text[OPTION_TEXT_SIZE];
        options_set_defaults(table, &v);
        check_ok(options_set(table, &v, good[i].key, good[i].text, "test", &why), &why);
        options_format(row_of(good[i].key), &v, text, sizeof text);
        assert_string_equal(text, good[i].format ? good[i].format : good[i].text);
    }
}

static const struct {
    const char *key, *text, *message, *hint;
} bad[] = {
    {"max-steps", "0", "where: value '0' of max-steps is too small; range 1 to 1000 steps", ""},
    {"max-steps", "1001", "where: value '1001' of max-steps is too large; range 1 to 1000 steps",
     ""},
    {"max-steps", "-3", "where: value '-3' of max-steps is too small; range 1 to 1000 steps", ""},
    {"max-steps", "1.5",
     "where: value '1.5' of max-steps is not a whole number; range 1 to 1000 steps", ""},
    {"max-steps", "1e3",
     "where: value '1e3' of max-steps is not a whole number; range 1 to 1000 steps", ""},
    {"max-steps", "12x",
     "where: value '12x' of max-steps is not a whole number; range 1 to 1000 steps", ""},
    {"max-steps", "", "where: value '' of max-steps is not a whole number; range 1 to 1000 steps",
     ""},
    {"any", "ten", "where: value 'ten' of any is not a whole number", ""},
    {"any", "9223372036854775808", "where: value '9223372036854775808' of any is too large", ""},
    {"any", "-9223372036854775809", "where: value '-9223372036854775809' of any is too small", ""},
    {"seed", "-1", "where: value '-1' of seed is too small; range at least 0", ""},
    {"below", "1", "where: value '1' of below is too large; range at most 0", ""},
    {"lr", "-0.5", "where: value '-0.5' of lr is too small; range 0 to 10", ""},
    {"lr", "10.000001", "where: value '10.000001' of lr is too large; range 0 to 10", ""},
    {"lr", "inf", "where: value 'inf' of lr is too large; range 0 to 10", ""},
    {"lr", "1e999", "where: value '1e999' of lr is too large; range 0 to 10", ""},
    {"lr", "nan", "where: value 'nan' of lr is not a number; range 0 to 10", ""},
    {"lr", "fast", "where: value 'fast' of lr is not a number; range 0 to 10", ""},
    {"lr", "", "where: value '' of lr is not a number; range 0 to 10", ""},
    {"lr", "0,1", "where: value '0,1' of lr is not a number; range 0 to 10", ""},
    {"decay", "nan", "where: value 'nan' of decay is not a number", ""},
    {"decay", "-1e999", "where: value '-1e999' of decay is too small", ""},
    {"augment", "maybe", "where: value 'maybe' of augment is not yes or no", ""},
    {"augment", "", "where: value '' of augment is not yes or no", ""},
    {"method", "xyz", "where: value 'xyz' of method is not one of bn|ln|groupnorm", ""},
    {"method", "groupnrm", "where: value 'groupnrm' of method is not one of bn|ln|groupnorm",
     "did you mean 'groupnorm'?"},
    {"method", "LN", "where: value 'LN' of method is not one of bn|ln|groupnorm",
     "did you mean 'ln'?"},
    {"method", "bn|ln", "where: value 'bn|ln' of method is not one of bn|ln|groupnorm", ""},
    {"method", "", "where: value '' of method is not one of bn|ln|groupnorm", ""},
    {"methd", "ln", "where: unknown key 'methd'", "did you mean 'method'?"},
    {"max_steps", "1", "where: unknown key 'max_steps'", "did you mean 'max-steps'?"},
    {"zzzzzz", "1", "where: unknown key 'zzzzzz'", ""},
    {"", "1", "where: unknown key ''", ""},
};

static void wrong_values_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        values v, before;
        sr_failure why = {0};
        memset(&v, 0, sizeof v);
        options_set_defaults(table, &v);
        before = v;
        assert_int_equal(options_set(table, &v, bad[i].key, bad[i].text, "where", &why), SR_USAGE);
        assert_int_equal(why.status, SR_USAGE);
        assert_string_equal(why.text, bad[i].message);
        assert_string_equal(why.hint, bad[i].hint);
        assert_memory_equal(&v, &before, sizeof v);
    }
}

static void long_text_is_refused(void **state) {
    (void)state;
    values v;
    sr_failure why = {0};
    char text[OPTION_TEXT_SIZE + 1];
    memset(text, 'x', sizeof text);
    text[OPTION_TEXT_SIZE - 1] = 0;
    options_set_defaults(table, &v);
    check_ok(options_set(table, &v, "name", text, "w", &why), &why);
    assert_int_equal(strlen(v.name), OPTION_TEXT_SIZE - 1);
    text[OPTION_TEXT_SIZE - 1] = 'x';
    text[OPTION_TEXT_SIZE] = 0;
    assert_int_equal(options_set(table, &v, "name", text, "w", &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "of name is too long; at most 511 bytes");
}

static void reals_round_trip(void **state) {
    (void)state;
    static const double real[] = {
        0.1,           1.0 / 3, 1e-300, 5e-324, 1.7976931348623157e308, -0.1, 2.0000000000000004,
        123456789.125, INFINITY};
    for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) {
        values v, w;
        sr_failure why = {0};
        char text[64];
        options_set_defaults(table, &v);
        options_set_defaults(table, &w);
        v.decay = real[i];
        options_format(row_of("decay"), &v, text, sizeof text);
        check_ok(options_set(table, &w, "decay", text, "w", &why), &why);
        check_equals(w.decay, v.decay);
    }
}

/* -- the copy ---------------------------------------------------------------------------------- */

static void dump_round_trips(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",     "plain",     " blanks ",   "a # b",        "#",           "\"quoted\"",
        "a\"b", "tab\there", "two\nlines", "cr\r",         "back\\slash", "caf\xc3\xa9",
        "a=b",  "\\n",       "\t",         "ends with \\", "\" \\ #"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        values v, w;
        sr_failure why;
        memset(&v, 0, sizeof v);
        options_set_defaults(table, &v);
        snprintf(v.name, sizeof v.name, "%s", texts[i]);
        v.lr = 1.0 / 3, v.eps = 1e-5, v.any = INT64_MIN, v.seed = INT64_MAX;
        v.augment = false, v.quiet = true, v.steps = 17;
        char *dump = options_dump(table, &v);
        assert_non_null(dump);
        check_ok(read_config(dump, &w, &why), &why);
        assert_memory_equal(&w, &v, sizeof v);
        free(dump);
    }
}

static void dump_of_the_defaults(void **state) {
    (void)state;
    values v;
    memset(&v, 0, sizeof v);
    options_set_defaults(table, &v);
    snprintf(v.config, sizeof v.config,
             "train.conf"); /* not repeated: its lines are in the values */
    char *dump = options_dump(table, &v);
    assert_string_equal(dump,
                        "max-steps = 100\nseed = 1\nany = 0\nbelow = -1\nlr = 0.1\neps = nan\n"
                        "decay = -0.5\naugment = yes\nquiet = no\nname = \noutput = run.h5\n"
                        "method = bn\n");
    values w;
    sr_failure why;
    check_ok(read_config(dump, &w, &why), &why);
    for (int i = 0; i < table.count; i++) assert_false(options_changed(&table.row[i], &w));
    free(dump);
}

static void dump_of_the_longest_texts(void **state) {
    (void)state;
    values v, w;
    sr_failure why;
    memset(&v, 0, sizeof v);
    options_set_defaults(table, &v);
    memset(v.name, '"', sizeof v.name - 1);
    memset(v.output, '\n', sizeof v.output - 1);
    char *dump = options_dump(table, &v);
    check_ok(read_config(dump, &w, &why), &why);
    assert_memory_equal(&w, &v, sizeof v);
    free(dump);
}

/* -- help -------------------------------------------------------------------------------------- */

static void help_text(void **state) {
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    options_help(table, out);
    fclose(out);
    assert_string_equal(
        text, "Training:\n"
              "  -s, --max-steps N           stop after this many updates (1 to 1000 steps; "
              "default 100)\n"
              "  --seed N                    seed of the run (at least 0; default 1)\n"
              "  --any N                     a number without range (default 0)\n"
              "  --below N                   not above 0 (at most 0; default -1)\n"
              "  --lr X                      learning rate (0 to 10; default 0.1)\n"
              "  --eps X                     nan: the method's own (0 to 1, or nan; default nan)\n"
              "  --decay X                   without range (default -0.5)\n"
              "  --[no-]augment              crop and mirror (default yes)\n"
              "\n"
              "Output:\n"
              "  -q, --[no-]quiet            no progress line (default no)\n"
              "  --name TEXT                 name of the run\n"
              "  -o, --output TEXT           run file (default run.h5)\n"
              "  --method WORD               normalization (bn|ln|groupnorm; default bn)\n"
              "  -c, --config TEXT           read options from a file\n");
    free(text);
}

static void help_breaks_long_lines(void **state) {
    (void)state;
    static const option wide[] = {
        {"G", "a-key-that-is-longer-than-the-column", 0, OPTION_INT, 0, "4", 0, 0, "seconds", NULL,
         .help = "short"},
        {"G", "words", 0, OPTION_CHOICE, 0, "one", 0, 0, "",
         "one|two|three|four|five|six|seven|eight",
         .help = "a help text that leaves no room for the words behind it"},
        {"G", "whole", 0, OPTION_INT, 0, "0", -9007199254740992.0, 9007199254740992.0, "", NULL,
         .help = "large bounds"},
        {"G", "broken", 0, OPTION_REAL, 0, "0", 1e-20, 1e20, "", NULL, .help = "large bounds"},
        {"G", "from", 'f', OPTION_TEXT, 0, "", 0, 0, "", NULL, .help = "named", .value = "FILE"},
    };
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    options_help((option_table){wide, 5}, out);
    fclose(out);
    assert_string_equal(
        text, "G:\n"
              "  --a-key-that-is-longer-than-the-column N\n"
              "                              short (seconds; default 4)\n"
              "  --words WORD                a help text that leaves no room for the words "
              "behind it\n"
              "                              (one|two|three|four|five|six|seven|eight; "
              "default one)\n"
              "  --whole N                   large bounds (-9007199254740992 to 9007199254740992; "
              "default 0)\n"
              "  --broken X                  large bounds (1e-20 to 1e+20, or 0; default 0)\n"
              "  -f, --from FILE             named\n");
    free(text);
}

/* -- options without effect --------------------------------------------------------------------
 */

typedef struct used {
    bool on;
    int64_t count, size;
    option_text conf;
} used;

static bool is_on(const void *v) {
    return ((const used *)v)->on;
}

static bool has_count(const void *v) {
    return ((const used *)v)->count > 1;
}

static const option_use of_on = {.with = "on", .holds = is_on},
                        of_count = {.with = "count", .holds = has_count, .and = &of_on};
static const option used_rows[] = {
    FLAG_OPTION("G", "on", offsetof(used, on), "no", "the switch"),
    INT_OPTION("G", "count", offsetof(used, count), "1", 1, 9, "", "how many", .use = &of_on),
    INT_OPTION("G", "size", offsetof(used, size), "4", 1, 9, "", "how large", .use = &of_count),
    {"G", "config", 'c', OPTION_TEXT, offsetof(used, conf), "", 0, 0, "", "", .help = "a file"},
};
static const option_table used_table = {used_rows, sizeof used_rows / sizeof used_rows[0]};

static void refused_use(const char *message, int argc, const char *const *argv) {
    char *copy[8];
    option_origin origin[sizeof used_rows / sizeof used_rows[0]];
    int positional;
    sr_failure why = {0};
    used v, base;
    for (int i = 0; i < argc; i++) copy[i] = (char *)(uintptr_t)argv[i];
    options_set_defaults(used_table, &v);
    base = v;
    check_ok(options_parse_noting(used_table, &v, origin, argc, copy, 0, &positional, &why), &why);
    options_check_use(used_table, &v, &base, origin, &why);
    assert_string_equal(why.text, message);
}

#define REFUSED_USE(message, ...)                                                                  \
    refused_use(message, (int)(sizeof(const char *[]){__VA_ARGS__} / sizeof(char *)),              \
                (const char *const[]){__VA_ARGS__})

static void dump_leaves_out_what_has_no_use(void **state) {
    (void)state;
    used v;
    options_set_defaults(used_table, &v);
    char *text = options_dump(used_table, &v);
    assert_string_equal(text, "on = no\n# options without effect are left out\n");
    assert_true(options_left_out(text));
    free(text);
    v.on = true, v.count = 2;
    text = options_dump(used_table, &v);
    assert_string_equal(text, "on = yes\ncount = 2\nsize = 4\n");
    assert_false(options_left_out(text));
    free(text);
}

static void use_is_checked(void **state) {
    (void)state;
    REFUSED_USE("--count has no effect without --on", "--count", "3");
    REFUSED_USE("--count has no effect without --on", "--count", "1", "--no-on");
    REFUSED_USE("", "--count", "3", "--on");
    REFUSED_USE("--size has no effect without --on", "--size", "3");
    REFUSED_USE("--size has no effect with --count 1", "--size", "3", "--on");
    REFUSED_USE("", "--size", "3", "--on", "--count", "2");
    write_config("count = 1\n", 10);
    REFUSED_USE("", "-c", config_path());
    REFUSED_USE("--count has no effect without --on", "-c", config_path(), "--count", "1");
    write_config("count = 2\n", 10);
    REFUSED_USE("--count has no effect without --on", "-c", config_path());
    REFUSED_USE("", "-c", config_path(), "--on");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_fill_every_row),
        cmocka_unit_test(changed_follows_the_value),
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(wrong_values_are_refused),
        cmocka_unit_test(long_text_is_refused),
        cmocka_unit_test(reals_round_trip),
        cmocka_unit_test(dump_round_trips),
        cmocka_unit_test(dump_of_the_defaults),
        cmocka_unit_test(dump_of_the_longest_texts),
        cmocka_unit_test(help_text),
        cmocka_unit_test(help_breaks_long_lines),
        cmocka_unit_test(use_is_checked),
        cmocka_unit_test(dump_leaves_out_what_has_no_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
