/* test_preset_defaults.c -- the files of share/presets: one for each model and preset and no other.
 * Each has a summary, existing options and valid values, and gives a complete configuration. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/program/install_files.h"
#include "testing/check.h"
#include "train/train.h"

static const option *row_of(const char *key) {
    const option_table all = train_options();
    for (int i = 0; i < all.count; i++)
        if (!strcmp(all.row[i].key, key)) return &all.row[i];
    return NULL;
}

/* Each setting of a file is a row of the table and is not repeated; the number of settings. */
static int check_file(const char *name, const char *preset) {
    static train_config c;
    char summary[256];
    int settings = 0;
    sr_failure why = {0};
    option_line l;
    memset(&c, 0, sizeof c);
    options_set_defaults(train_options(), &c);
    char *text = train_preset_text(name, preset, &why);
    if (!text) fail_msg("%s, %s: %s", name, preset, why.text);
    train_preset_summary(text, summary, sizeof summary);
    if (strlen(summary) < 11) fail_msg("%s, %s: summary '%s'", name, preset, summary);
    for (const char *at = text; options_next_line(&at, &l); settings++) {
        char key[64], value[256];
        option_line again;
        snprintf(key, sizeof key, "%.*s", l.key_length, l.key);
        options_line_value(text, key, value, sizeof value);
        if (!row_of(key) || row_of(key)->old)
            fail_msg("%s, %s: %s is no option", name, preset, key);
        if (options_find_line(at, key, l.key_length, &again))
            fail_msg("%s, %s: %s is set twice", name, preset, key);
        check_ok(options_set(train_options(), &c, key, value, key, &why), &why);
    }
    free(text);
    return settings;
}

static void each_preset(void (*look)(const char *name, const char *preset)) {
    const model_row *m;
    for (int i = 0; (m = model_at(i)); i++) {
        char presets[MODEL_TEXT], *rest = NULL;
        snprintf(presets, sizeof presets, "%s", m->presets);
        look(m->name, "");
        for (char *p = strtok_r(presets, "|", &rest); p; p = strtok_r(NULL, "|", &rest))
            look(m->name, p);
    }
}

static int files, settings;

static void count_settings(const char *name, const char *preset) {
    files++;
    settings += check_file(name, preset);
}

static void files_are_valid(void **state) {
    (void)state;
    each_preset(count_settings);
    assert_true(settings >= 220); /* as in version 0.1 */
    char directory[INSTALL_FILES_PATH];
    DIR *d = NULL;
    for (int i = 0; !d && install_files_directory("STATREC_PRESETS", "presets", i, directory); i++)
        d = opendir(directory);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) files -= strstr(e->d_name, ".conf") != NULL;
    closedir(d);
    assert_int_equal(files, 0);
}

/* `statrec train --model M --preset P -o X` fits together. */
static void parse(const char *name, const char *preset) {
    static train_config c;
    char word[6][64] = {"statrec", "train", "--output=x.h5"};
    char *argv[] = {word[0], word[1], word[2], word[3], word[4]};
    sr_failure why = {0};
    int positional = 0;
    snprintf(word[3], sizeof word[3], "--model=%s", name);
    snprintf(word[4], sizeof word[4], "--preset=%s", preset);
    check_ok(train_config_parse(&c, *preset ? 5 : 4, argv, 2, &positional, &why), &why);
    assert_string_equal(c.model.preset, preset);
}

static void presets_are_whole(void **state) {
    (void)state;
    each_preset(parse);
}

/* Preset settings override model settings; explicit options override both. */
static void order(void **state) {
    (void)state;
    static train_config c;
    char word[6][64] = {"--model=tener", "--preset=conll2003-mini", "--record=none", "--epochs=7"};
    char *argv[] = {word[0], word[1], word[2], word[3]};
    sr_failure why = {0};
    int positional = 0;
    check_ok(train_config_parse(&c, 4, argv, 0, &positional, &why), &why);
    assert_string_equal(c.optimizer, "adam");           /* the preset's; the model's is sgd */
    assert_string_equal(c.data.trainpref, "eng.train"); /* the model's */
    assert_int_equal(c.epochs, 7);                      /* 15 of the preset */
}

/* A file that is missing or wrong gives one line, a model of another name no error here. */
static void faults(void **state) {
    (void)state;
    static train_config c;
    char path[1100];
    sr_failure why = {0};
    const char *directory = check_temporary();
    options_set_defaults(train_options(), &c);
    check_ok(train_preset_apply(&c, "../tener", "", &why), &why);
    check_ok(train_preset_apply(&c, "tener", "no-such-preset", &why), &why);
    setenv("STATREC_PRESETS", directory, 1);
    snprintf(path, sizeof path, "%s/tener.conf", directory);
    check_write(path, "lr = fast\n");
    train_preset_apply(&c, "tener", "", &why);
    check_failure(&why, SR_USAGE, "tener.conf:1: value 'fast' of lr is not a number");
    unlink(path);
    mkdir(path, 0700);
    why = (sr_failure){0};
    train_preset_apply(&c, "tener", "", &why);
    check_failure(&why, SR_IO, "tener.conf: Is a directory");
    unsetenv("STATREC_PRESETS");
}

/* The text of such a file, for `statrec list presets`. */
static void text_faults(void **state) {
    (void)state;
    enum { MOST = 1 << 16 };
    static char large[MOST + 1];
    char path[1100], summary[64];
    sr_failure why = {0};
    const char *directory = check_temporary();
    setenv("STATREC_PRESETS", directory, 1);
    snprintf(path, sizeof path, "%s/own.conf", directory);
    memset(large, '#', MOST);
    check_write(path, large);
    assert_null(train_preset_text("own", "", &why));
    check_failure(&why, SR_FORMAT, "own.conf: not a text of at most 65535 bytes");
    FILE *f = fopen(path, "w");
    assert_true(f && fwrite("# a\0b\n", 1, 6, f) == 6 && fclose(f) == 0);
    why = (sr_failure){0};
    assert_null(train_preset_text("own", "", &why));
    check_failure(&why, SR_FORMAT, "own.conf: not a text");
    check_write(path, "lr = 1\n");
    char *text = train_preset_text("own", "", &why);
    assert_string_equal(text, "lr = 1\n");
    train_preset_summary(text, summary, sizeof summary);
    assert_string_equal(summary, "");
    free(text);
    unlink(path);
    why = (sr_failure){0};
    assert_null(train_preset_text("own", "", &why));
    assert_non_null(strstr(why.text, "own.conf"));
    unsetenv("STATREC_PRESETS");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(files_are_valid),
                                       cmocka_unit_test(presets_are_whole), cmocka_unit_test(order),
                                       cmocka_unit_test(faults), cmocka_unit_test(text_faults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
