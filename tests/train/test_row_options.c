/* test_row_options.c -- options of single models, data sets and optimizers agree with the rows that
 * list them. A listed key is an option with a use condition. An option with a condition is listed
 * somewhere and rejected elsewhere. Every row that fills their structs has a condition. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "testing/check.h"
#include "train/config/config_rows.h"

enum { WORD = 64 };

/* The three kinds of rows. */
static const struct kind {
    const char *key; /* option that chooses a row */
    bool (*asks)(const void *values, const char *key);
    bool (*obeys)(const char *name, const char *key);
    size_t first, end;  /* their fields in train_config */
    const char *common; /* keys of options for all of them */
} kinds[] = {
    {"model", config_model_lists, model_obeys, offsetof(train_config, model),
     offsetof(train_config, model) + sizeof(model_options),
     "model preset norm norm-at norm-eps norm-alpha layer-scale seed"},
    {"data", config_data_lists, data_obeys, offsetof(train_config, data),
     offsetof(train_config, data) + sizeof(data_options), "data data-dir limit prefetch seed"},
    {"optimizer", config_optim_lists, optim_obeys, offsetof(train_config, optim),
     offsetof(train_config, optim) + sizeof(optim_options), "weight-decay"},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *name_at(int kind, int i) {
    if (kind == 0) return model_at(i) ? model_at(i)->name : NULL;
    if (kind == 1) return data_name(i);
    return optim_at(i) ? optim_at(i)->name : NULL;
}

static const char *listed_at(int kind, int i) {
    return kind == 0   ? model_at(i)->options
           : kind == 1 ? data_option_keys(i)
                       : optim_at(i)->options;
}

static const option *row_of(const char *key) {
    const option_table all = train_options();
    for (int i = 0; i < all.count; i++)
        if (!strcmp(all.row[i].key, key)) return &all.row[i];
    return NULL;
}

static bool asks(const option *row, const struct kind *k) {
    for (const option_use *u = row->use; u; u = u->and)
        if (u->obeys == k->asks) return true;
    return false;
}

/* Listed keys are options whose use condition asks for their kind. A few, as --bleu-beam, ask for
 * the model and the data. */
static void words_are_options(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; name_at(kind, i); i++) {
            const char *at = listed_at(kind, i);
            char word[WORD];
            for (int length; sscanf(at, "%63s%n", word, &length) == 1; at += length) {
                const option *row = row_of(word);
                if (!row) fail_msg("%s lists %s, which is no option", name_at(kind, i), word);
                if (!asks(row, &kinds[kind]))
                    fail_msg("%s lists --%s, whose row does not ask for it (.use)",
                             name_at(kind, i), word);
            }
        }
}

static void options_are_listed(void **state) {
    (void)state;
    const option_table all = train_options();
    for (int kind = 0; kind < KINDS; kind++)
        for (int r = 0; r < all.count; r++) {
            const option *row = &all.row[r];
            int listing = 0;
            for (int i = 0; name_at(kind, i); i++)
                listing += kinds[kind].obeys(name_at(kind, i), row->key);
            if (asks(row, &kinds[kind]) != (listing > 0))
                fail_msg("--%s asks for the %s: %d, listed by %d", row->key, kinds[kind].key,
                         asks(row, &kinds[kind]), listing);
        }
}

/* Every field of the three structs has a condition, except normalization options: their rows have a
 * separate test. */
static void fields_are_asked_about(void **state) {
    (void)state;
    const option_table all = train_options();
    const size_t norms = offsetof(train_config, model.norm_param);
    for (int kind = 0; kind < KINDS; kind++)
        for (int r = 0; r < all.count; r++) {
            const option *row = &all.row[r];
            if (row->offset < kinds[kind].first || row->offset >= kinds[kind].end) continue;
            if (row->offset >= norms && row->offset < norms + NORM_OPTION_MAX * MODEL_TEXT)
                continue;
            if (!row->use && !options_lists(kinds[kind].common, row->key))
                fail_msg("--%s is accepted with every %s", row->key, kinds[kind].key);
        }
}

/* --optimizer accepts exactly the rows of the table. */
static void words_of_optimizer(void **state) {
    (void)state;
    char words[1024] = "";
    for (int i = 0; optim_at(i); i++)
        snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s", i ? "|" : "",
                 optim_at(i)->name);
    assert_string_equal(row_of("optimizer")->choices, words);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_options), cmocka_unit_test(options_are_listed),
        cmocka_unit_test(fields_are_asked_about), cmocka_unit_test(words_of_optimizer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
