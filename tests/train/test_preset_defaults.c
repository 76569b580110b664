/* test_preset_defaults.c -- the rows of preset_defaults.c: presets that models have, options that are there and obeyed,
 * values that they take. */
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"
#include "train/train.h"

/* True when `name` is one of the words of "a|b|c". */
static bool is_word(const char *words, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = words; *at; at += strcspn(at, "|"), at += *at == '|')
        if (strcspn(at, "|") == length && !memcmp(at, name, length)) return true;
    return false;
}

static const option *row_of(const char *key) {
    const option_table all = train_options();
    for (int i = 0; i < all.count; i++)
        if (!strcmp(all.row[i].key, key)) return &all.row[i];
    return NULL;
}

/* Every preset of every model is told of once, and no other. */
/* word: up to a bar or the end. */
static bool has_summary(const char *of, const char *word) {
    const train_preset *p;
    for (int i = 0; (p = train_preset_at(i)); i++)
        if (!strcmp(p->model, of) && strlen(p->name) == strcspn(word, "|") &&
            !strncmp(p->name, word, strlen(p->name)))
            return true;
    return false;
}

static void presets_have_summaries(void **state) {
    (void)state;
    const model_row *m;
    const train_preset *p;
    for (int i = 0; (p = train_preset_at(i)); i++) {
        assert_non_null(model_find(p->model));
        assert_true(is_word(model_find(p->model)->presets, p->name));
        assert_true(strlen(p->summary) > 10);
        for (int k = 0; k < i; k++)
            assert_false(!strcmp(train_preset_at(k)->model, p->model) &&
                         !strcmp(train_preset_at(k)->name, p->name));
    }
    for (int i = 0; (m = model_at(i)); i++)
        for (const char *at = m->presets; *at; at += strcspn(at, "|"), at += *at == '|')
            if (!has_summary(m->name, at))
                fail_msg("%s: the preset %.*s has no line in src/train/config/preset_texts.c",
                         m->name, (int)strcspn(at, "|"), at);
}

/* A recipe sets what its model or the data of the recipe obey, to values in range. */
static void recipes_are_obeyed(void **state) {
    (void)state;
    const train_recipe *r;
    for (int i = 0; (r = train_recipe_at(i)); i++) {
        static train_config c;
        sr_failure why = {0};
        memset(&c, 0, sizeof c);
        options_set_defaults(train_options(), &c);
        assert_non_null(model_find(r->model));
        assert_true(!*r->preset || is_word(model_find(r->model)->presets, r->preset));
        assert_non_null(row_of(r->key));
        check_ok(options_set(train_options(), &c, r->key, r->value, r->key, &why), &why);
    }
}

/* `statrec train --model M --preset P -o X` says nothing against itself. */
static void presets_are_whole(void **state) {
    (void)state;
    const train_preset *p;
    for (int i = 0; (p = train_preset_at(i)); i++) {
        static train_config c;
        sr_failure why = {0};
        int files = 0;
        char *argv[] = {"statrec",  "train",         "--model", (char *)p->model,
                        "--preset", (char *)p->name, "-o",      "x.h5",
                        NULL};
        check_ok(train_config_parse(&c, 8, argv, 2, &files, &why), &why);
        assert_string_equal(c.model.preset, p->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(presets_have_summaries),
                                       cmocka_unit_test(recipes_are_obeyed),
                                       cmocka_unit_test(presets_are_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
