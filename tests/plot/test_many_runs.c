/* test_many_runs.c -- {runs} in an analysis' command is replaced by all runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plot/plot_command.h"
#include "plot/plot_curves.h"
#include "plot/template/plot_template.h"
#include "testing/check.h"

enum { RUNS = 1500 };

/* Counts the command's arguments, which are its output, separated by blanks. */
static int words_of(const char *path, const char *last) {
    static char line[64 * RUNS];
    int words = 0;
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    assert_non_null(fgets(line, sizeof line, in));
    fclose(in);
    char *word = NULL;
    for (char *next = strtok(line, " \n"); next; next = strtok(NULL, " \n")) {
        word = next, words++;
        if (words == RUNS + 1) assert_string_equal(word, "run1.h5"); /* {run2} */
    }
    assert_string_equal(word, last);
    return words;
}

static void all_runs_are_named(void **state) {
    (void)state;
    static char name[RUNS][32];
    static plot_run run[RUNS];
    char echo[] = "/bin/echo", runs[] = "{runs}", one[] = "{run2}", output[4096];
    static plot_template t = {.tables = 1};
    plot_sources from = {.template = &t, .run = run, .runs = RUNS, .directory = check_temporary()};
    plot_data data = {0};
    t.table[0] = (plot_table){.name = "many", .word = {echo, runs, one, runs}, .words = 4};
    sr_failure why = {0};
    for (int i = 0; i < RUNS; i++) {
        snprintf(name[i], sizeof name[i], "run%d.h5", i);
        run[i].path = name[i];
    }
    check_ok(plot_tables_make(&from, &data, &why), &why);
    plot_data_free(&data);
    snprintf(output, sizeof output, "%s/many.0.tsv", check_temporary());
    assert_int_equal(words_of(output, "run1499.h5"), 2 * RUNS + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_runs_are_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
