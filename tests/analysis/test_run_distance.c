/* run_distance, which skips lines that two configurations share, against a plain count of differing
 * settings. Cases: equal and different order, with and without unused options, no configuration. */
#include <stdio.h>
#include <string.h>

#include "analysis/runs/run_identity.h"
#include "base/rng.h"
#include "testing/check.h"

#define LEFT_OUT "# options without effect are left out\n"

/* `seed` and `threads` are not settings; layer-scale is part of the method's name. */
static const char *const keys[] = {"model", "norm",    "seed",  "max-tokens",  "batch-size",
                                   "lr",    "threads", "depth", "layer-scale", "dropout"};
enum { KEYS = (int)(sizeof keys / sizeof keys[0]), TEXT = 1000, CASES = 20000 };

/* All but the seed are settings of a run of another program. */
static const char *program;
static bool is_setting(int key) {
    return key != 2 && (!strcmp(program, "train.py") || (key != 1 && key != 6 && key != 8));
}

typedef struct config {
    int value[KEYS]; /* 0: without the line */
    bool left_out;
    char text[TEXT];
} config;

static void draw(rng *draws, config *c) {
    int used = 0, first = rng_below(draws, 3) ? 0 : (int)rng_below(draws, KEYS);
    c->left_out = rng_below(draws, 2);
    c->text[0] = 0;
    if (c->left_out) used += snprintf(c->text, TEXT, "%s", LEFT_OUT);
    for (int i = 0; i < KEYS; i++) {
        const int key = (first + i) % KEYS;
        c->value[key] = rng_below(draws, 8) ? 1 + (int)(rng_below(draws, 6) == 0) : 0;
        if (c->value[key])
            used += snprintf(c->text + used, TEXT - (size_t)used, "%s = %d\n", keys[key],
                             c->value[key]);
    }
}

/* Counts settings with different values, and settings missing in a configuration that lists all. */
static int count_plainly(const config *a, const config *b) {
    int count = 0;
    if (!a->text[0] || !b->text[0]) return 0;
    for (int key = 0; key < KEYS; key++) {
        const int x = a->value[key], y = b->value[key];
        if (!is_setting(key) || x == y) continue;
        count += x && y ? 1 : x ? !b->left_out : !a->left_out;
    }
    return count;
}

static int distance_of(const config *a, const config *b) {
    const sr_run_info of_a = {.config = a->text, .program = program},
                      of_b = {.config = b->text, .program = program};
    return run_distance(&(run_identity){.info = &of_a}, &(run_identity){.info = &of_b});
}

static void counts_what_differs(void **state) {
    (void)state;
    rng draws = rng_create(7);
    config a, b;
    int found = 0;
    for (int i = 0; i < CASES; i++) {
        program = i % 2 ? "statrec train" : "train.py";
        draw(&draws, &a);
        draw(&draws, &b);
        if (i % 50 == 0) a.text[0] = 0;
        const int expected = count_plainly(&a, &b);
        found += expected > 0;
        if (distance_of(&a, &b) != expected || distance_of(&b, &a) != expected)
            fail_msg("%d and %d, not %d, of\n%s-- and\n%s", distance_of(&a, &b),
                     distance_of(&b, &a), expected, a.text, b.text);
    }
    assert_in_range(found, CASES / 2, CASES - 1);
}

static void without_a_configuration(void **state) {
    (void)state;
    const config some = {.text = "model = mlp\nlr = 1\n"};
    const sr_run_info with = {.config = some.text}, without = {.config = NULL};
    const run_identity a = {.info = &with}, b = {.info = &without};
    assert_int_equal(run_distance(&a, &b), 0);
    assert_int_equal(run_distance(&b, &a), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_what_differs),
        cmocka_unit_test(without_a_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
