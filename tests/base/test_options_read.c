#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options_fixture.h"

/* -- command line ------------------------------------------------------------------------------ */

enum { ARGUMENTS = 16 };

typedef struct line {
    char *argv[ARGUMENTS + 1];
    int argc, positional;
    sr_failure why;
    values v;
} line;

/* Parses "program" and the given words (ends with NULL). */
static sr_status parse(line *l, const char *const *words) {
    static char program[] = "program";
    memset(l, 0, sizeof *l);
    options_set_defaults(table, &l->v);
    l->argv[l->argc++] = program;
    for (; *words; words++) l->argv[l->argc++] = (char *)(uintptr_t)*words;
    return options_parse(table, &l->v, l->argc, l->argv, 1, &l->positional, &l->why);
}

#define PARSE(l, ...) parse(&(l), (const char *const[]){__VA_ARGS__, NULL})

static void both_ways_to_write_a_value(void **state) {
    (void)state;
    line l;
    check_ok(
        PARSE(l, "--max-steps", "7", "--lr=0.5", "-o", "a.h5", "--name=", "--decay", "-3", "-s9"),
        &l.why);
    assert_int_equal(l.v.steps, 9);
    check_equals(l.v.lr, 0.5);
    check_equals(l.v.decay, -3);
    assert_string_equal(l.v.output, "a.h5");
    assert_string_equal(l.v.name, "");
    assert_int_equal(l.positional, 0);
}

static void nothing_is_fine(void **state) {
    (void)state;
    line l;
    const char *none[] = {NULL};
    check_ok(parse(&l, none), &l.why);
    assert_int_equal(l.positional, 0);
    assert_int_equal(l.v.steps, 100);
}

static void values_may_hold_equals_and_dashes(void **state) {
    (void)state;
    line l;
    check_ok(PARSE(l, "--name=a=b=c", "--output=--x", "--any", "-5", "--decay=-1e-3"), &l.why);
    assert_string_equal(l.v.name, "a=b=c");
    assert_string_equal(l.v.output, "--x");
    assert_int_equal(l.v.any, -5);
    check_equals(l.v.decay, -1e-3);
    check_ok(PARSE(l, "--name", "-", "--output", "-x.h5"), &l.why);
    assert_string_equal(l.v.name, "-");
    assert_string_equal(l.v.output, "-x.h5");
}

static void flags_on_and_off(void **state) {
    (void)state;
    line l;
    check_ok(PARSE(l, "--no-augment", "-q"), &l.why);
    assert_true(!l.v.augment && l.v.quiet);
    check_ok(PARSE(l, "--no-augment", "--quiet", "--augment", "--no-quiet"), &l.why);
    assert_true(l.v.augment && !l.v.quiet);
}

static void last_one_wins(void **state) {
    (void)state;
    line l;
    check_ok(PARSE(l, "--lr", "1", "--lr=2", "--lr", "3", "-o", "a", "--output", "b"), &l.why);
    check_equals(l.v.lr, 3);
    assert_string_equal(l.v.output, "b");
}

static void positional_arguments_come_first(void **state) {
    (void)state;
    line l;
    check_ok(PARSE(l, "one", "--lr", "1", "two", "-q", "-", "--", "--lr", "three"), &l.why);
    assert_int_equal(l.positional, 5);
    static const char *const want[] = {"one", "two", "-", "--lr", "three"};
    for (int i = 0; i < 5; i++) assert_string_equal(l.argv[1 + i], want[i]);
    check_equals(l.v.lr, 1);
    assert_true(l.v.quiet);
    assert_string_equal(l.argv[6], "--lr"); /* nothing is lost */
    assert_string_equal(l.argv[7], "1");
    assert_string_equal(l.argv[8], "-q");
    assert_string_equal(l.argv[9], "--");
}

static void parsing_twice_gives_the_same(void **state) {
    (void)state;
    line l;
    check_ok(PARSE(l, "one", "--lr", "1", "two", "-q"), &l.why);
    int again = 0;
    check_ok(options_parse(table, &l.v, l.argc, l.argv, 1, &again, &l.why), &l.why);
    assert_int_equal(again, 2);
    assert_string_equal(l.argv[1], "one");
    assert_string_equal(l.argv[2], "two");
}

static void wrong_command_lines(void **state) {
    (void)state;
    static const struct {
        const char *words[4], *message, *hint;
    } bad[] = {
        {{"--max-stps", "4"}, "unknown option '--max-stps'", "did you mean --max-steps?"},
        {{"--max_steps=4"}, "unknown option '--max_steps=4'", "did you mean --max-steps?"},
        {{"-lr", "4"}, "unknown option '-lr'", "did you mean --lr?"},
        {{"-name=x"}, "unknown option '-name=x'", "did you mean --name?"},
        {{"-output", "x"}, "unknown option '-output'", "did you mean --output?"},
        {{"-x"}, "unknown option '-x'", ""},
        {{"-qv"}, "unknown option '-qv'", ""},
        {{"--qqqqqqq"}, "unknown option '--qqqqqqq'", ""},
        {{"--=5"}, "unknown option '--=5'", ""},
        {{"--no-lr"}, "unknown option '--no-lr'", ""},
        {{"--no-augmnt"}, "unknown option '--no-augmnt'", ""},
        {{"--augment=no"},
         "--augment: takes no value, got 'no'",
         "write --augment or --no-augment"},
        {{"--no-augment=yes"},
         "--no-augment: takes no value, got 'yes'",
         "write --augment or --no-augment"},
        {{"--lr"}, "--lr: needs a value", ""},
        {{"-o"}, "-o: needs a value", ""},
        {{"--lr", "--seed", "1"},
         "--lr: needs a value",
         "a value that begins with '-' is written --lr=VALUE"},
        {{"-o", "-q"},
         "-o: needs a value",
         "a value that begins with '-' is written --output=VALUE"},
        {{"--output", "--", "x"},
         "--output: needs a value",
         "a value that begins with '-' is written --output=VALUE"},
        {{"--lr", "x"}, "--lr: value 'x' is not a number; range 0 to 10", ""},
        {{"--lr=11"}, "--lr: value '11' is too large; range 0 to 10", ""},
        {{"-s", "0"}, "-s: value '0' is too small; range 1 to 1000 steps", ""},
        {{"--max-steps", "-4"}, "--max-steps: value '-4' is too small; range 1 to 1000 steps", ""},
        {{"--method", "lm"},
         "--method: value 'lm' is not one of bn|ln|groupnorm",
         "did you mean 'ln'?"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        line l;
        const char *words[5] = {bad[i].words[0], bad[i].words[1], bad[i].words[2], bad[i].words[3],
                                NULL};
        assert_int_equal(parse(&l, words), SR_USAGE);
        assert_string_equal(l.why.text, bad[i].message);
        assert_string_equal(l.why.hint, bad[i].hint);
    }
}

static void over_long_names_are_cut(void **state) {
    (void)state;
    line l;
    char word[600];
    memset(word, 'a', sizeof word);
    memcpy(word, "--", 2);
    word[sizeof word - 1] = 0;
    assert_int_equal(PARSE(l, word), SR_USAGE);
    check_failure(&l.why, SR_USAGE, "unknown option '--aaa");
    word[1] = 'a';
    assert_int_equal(PARSE(l, word), SR_USAGE);
    check_failure(&l.why, SR_USAGE, "unknown option '-aaa");
}

/* -- config files ------------------------------------------------------------------------------ */

static void config_lines(void **state) {
    (void)state;
    values v;
    sr_failure why;
    check_ok(read_config("# a comment = 3\n"
                         "\n"
                         "   \t \n"
                         "lr = 0.25\n"
                         "\t max-steps=12   # updates\n"
                         "name =  two words # comment\n"
                         "output = /tmp/run#3.h5\n"
                         "augment = no\n"
                         "quiet = yes\t#\n"
                         "decay = -2\n"
                         "method = groupnorm", /* no newline at the end */
                         &v, &why),
             &why);
    check_equals(v.lr, 0.25);
    assert_true(v.steps == 12 && !v.augment && v.quiet);
    check_equals(v.decay, -2);
    assert_string_equal(v.name, "two words");
    assert_string_equal(v.output, "/tmp/run#3.h5");
    assert_string_equal(v.method, "groupnorm");
}

static void config_from_windows(void **state) {
    (void)state;
    values v;
    sr_failure why;
    check_ok(read_config("\xef\xbb\xbflr = 0.25\r\nname = x y \r\n\r\n# comment\r\noutput = a\r",
                         &v, &why),
             &why);
    check_equals(v.lr, 0.25);
    assert_string_equal(v.name, "x y");
    assert_string_equal(v.output, "a");
}

static void config_repeats_and_empties(void **state) {
    (void)state;
    values v;
    sr_failure why;
    check_ok(read_config("lr = 1\nlr = 2\noutput =\nname = # nothing\nlr = 3\n", &v, &why), &why);
    check_equals(v.lr, 3);
    assert_string_equal(v.output, "");
    assert_string_equal(v.name, "");
    check_ok(read_config("", &v, &why), &why);
    check_equals(v.lr, 0.1);
}

static void config_quotes(void **state) {
    (void)state;
    values v;
    sr_failure why;
    check_ok(
        read_config("name = \" a # b \" # comment\noutput = \"q\\\"\\\\\\n\\t\\r\"\n", &v, &why),
        &why);
    assert_string_equal(v.name, " a # b ");
    assert_string_equal(v.output, "q\"\\\n\t\r");
}

static void config_errors_name_the_line(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int number;
        const char *message, *hint;
    } bad[] = {
        {"lr = 1\n\nlr = x\n", 3, "value 'x' of lr is not a number; range 0 to 10", ""},
        {"# c\r\nmax-steps = 0\r\n", 2,
         "value '0' of max-steps is too small; range 1 to 1000 steps", ""},
        {"max-stps = 4", 1, "unknown key 'max-stps'", "did you mean 'max-steps'?"},
        {"lr 0.1\n", 1, "'lr 0.1' is not of the form 'key = value'", ""},
        {"= 3\n", 1, "'= 3' is not of the form 'key = value'", ""},
        {"lr # = 3\n", 1, "'lr # = 3' is not of the form 'key = value'", ""},
        {"augment\n", 1, "'augment' is not of the form 'key = value'", ""},
        {"augment = perhaps\n", 1, "value 'perhaps' of augment is not yes or no", ""},
        {"--lr = 1\n", 1, "unknown key '--lr'", "did you mean 'lr'?"},
        {"name = \"open\n", 1, "value of name: the closing quote is missing", ""},
        {"name = \"open\\\n", 1, "value of name: the closing quote is missing", ""},
        {"name = \"a\" b\n", 1, "value of name: there is text after the closing quote", ""},
        {"name = \"\\x\"\n", 1,
         "value of name: a backslash in quotes is followed by none of \" \\ n r t", ""},
        {"lr = 1\nconfig = other.conf\n", 2, "a config file cannot name another config file", ""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        values v;
        sr_failure why;
        char want[5000];
        assert_int_equal(read_config(bad[i].text, &v, &why), SR_USAGE);
        snprintf(want, sizeof want, "%s:%d: %s", config_path(), bad[i].number, bad[i].message);
        assert_string_equal(why.text, want);
        assert_string_equal(why.hint, bad[i].hint);
    }
}

static void config_with_a_zero_byte(void **state) {
    (void)state;
    values v;
    sr_failure why = {0};
    static const char text[] = "lr = 1\nname = a\0b\n";
    write_config(text, sizeof text - 1);
    options_set_defaults(table, &v);
    assert_int_equal(options_read_file(table, &v, config_path(), &why), SR_USAGE);
    check_failure(&why, SR_USAGE, ":2: the line holds a zero byte");
}

static void config_that_cannot_be_read(void **state) {
    (void)state;
    values v;
    sr_failure why = {0};
    options_set_defaults(table, &v);
    assert_int_equal(options_read_file(table, &v, "/nowhere/train.conf", &why), SR_IO);
    assert_string_equal(why.text, "/nowhere/train.conf: No such file or directory");
    why = (sr_failure){0};
    assert_int_equal(options_read_file(table, &v, check_temporary(), &why), SR_IO);
    check_failure(&why, SR_IO, ": Is a directory");
    why = (sr_failure){0};
    assert_int_equal(options_read_file(table, &v, "/dev/zero", &why), SR_IO);
    assert_string_equal(why.text, "/dev/zero: not a regular file, as a config file is");
}

/* A file up to 1 MiB: comments first, then one option, which is ignored beyond the limit. */
static void config_that_is_too_long(void **state) {
    (void)state;
    enum { MOST = 1 << 20 };
    char *text = malloc(MOST + 1);
    assert_non_null(text);
    for (int more = 0; more < 2; more++) {
        values v;
        sr_failure why = {0};
        options_set_defaults(table, &v);
        memset(text, '#', MOST + 1);
        memcpy(text + MOST + more - 8, "\nlr = 2\n", 8);
        write_config(text, (size_t)(MOST + more));
        assert_int_equal(options_read_file(table, &v, config_path(), &why),
                         more ? SR_USAGE : SR_OK);
        check_equals(v.lr, (more ? 0.1 : 2));
        if (more)
            check_failure(&why, SR_USAGE, "1048577 bytes are no config file; at most 1048576");
    }
    free(text);
}

static void config_option_is_obeyed_where_it_stands(void **state) {
    (void)state;
    line l;
    const char *text = "lr = 2\nmax-steps = 20\nname = file\n";
    write_config(text, strlen(text));
    check_ok(PARSE(l, "--lr", "1", "--name", "before", "-c", config_path(), "--max-steps", "30"),
             &l.why);
    check_equals(l.v.lr, 2);
    assert_true(l.v.steps == 30);
    assert_string_equal(l.v.name, "file");
    assert_string_equal(l.v.config, config_path());
    assert_int_equal(PARSE(l, "--config=/nowhere/x.conf"), SR_IO);
    check_failure(&l.why, SR_IO, "/nowhere/x.conf: No such file");
    write_config("lr = -1", 7);
    assert_int_equal(PARSE(l, "--config", config_path()), SR_USAGE);
    check_failure(&l.why, SR_USAGE, "train.conf:1: value '-1' of lr is too small; range 0 to 10");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_to_write_a_value),
        cmocka_unit_test(nothing_is_fine),
        cmocka_unit_test(values_may_hold_equals_and_dashes),
        cmocka_unit_test(flags_on_and_off),
        cmocka_unit_test(last_one_wins),
        cmocka_unit_test(positional_arguments_come_first),
        cmocka_unit_test(parsing_twice_gives_the_same),
        cmocka_unit_test(wrong_command_lines),
        cmocka_unit_test(over_long_names_are_cut),
        cmocka_unit_test(config_lines),
        cmocka_unit_test(config_from_windows),
        cmocka_unit_test(config_repeats_and_empties),
        cmocka_unit_test(config_quotes),
        cmocka_unit_test(config_errors_name_the_line),
        cmocka_unit_test(config_with_a_zero_byte),
        cmocka_unit_test(config_that_cannot_be_read),
        cmocka_unit_test(config_that_is_too_long),
        cmocka_unit_test(config_option_is_obeyed_where_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
