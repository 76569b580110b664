/* test_differences.c -- a report's list of differences between runs: model, norm, data, seed and
 * options. Also for runs without some options or without a configuration. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plot/report/plot_report.h"
#include "testing/check.h"

enum { RUNS = 7 };

static plot_run run[RUNS];
static char path[RUNS][16];

static void set_run(int i, const char *seed, const char *config) {
    snprintf(path[i], sizeof path[i], "in/%c.h5", 'a' + i);
    run[i] = (plot_run){.path = path[i], .config = config};
    strcpy(run[i].text[RUN_MODEL], "toy");
    strcpy(run[i].text[RUN_NORM], "bn");
    snprintf(run[i].text[RUN_SEED], RUN_PART, "seed %s", seed);
}

/* Extracts its texts, with one | for the tags between two of them. */
static char *strip_tags(char *page) {
    char *to = page;
    bool inside = false;
    for (const char *at = page; *at; at++) {
        const char c = *at;
        if (c == '<' && (to == page || to[-1] != '|')) *to++ = '|';
        inside = c == '<' || (inside && c != '>');
        if (!inside && c != '>' && c != '\n') *to++ = c;
    }
    *to = 0;
    return page;
}

static char *differences(int runs, int each, bool all) {
    char *page = NULL;
    size_t size = 0;
    const plot_request request = {.run = run, .runs = runs, .each = each};
    report r = {.request = &request, .page = open_memstream(&page, &size)};
    assert_non_null(r.page);
    report_differences(&r, all);
    assert_int_equal(fclose(r.page), 0);
    return strip_tags(page);
}

static void check_page(int runs, bool all, const char *want) {
    char *page = differences(runs, RUNS, all);
    assert_string_equal(page, want);
    free(page);
}

static void test_none(void **state) {
    (void)state;
    static const char none[] = "|No difference in model, data, normalization, seed and options.|";
    set_run(0, "1", "lr = 0.1\n");
    set_run(1, "1", "lr = 0.1\n");
    check_page(2, true, none);
    set_run(1, "1", ""); /* no configuration is no difference */
    check_page(2, true, none);
    set_run(1, "1", "lr = 0.1\nthreads = 4\n");
    check_page(2, false, none); /* without a description of the training */
    set_run(1, "1", "lr = 0.1\nclip = 0\n");
    check_page(2, true, none); /* an option that is off equals an absent one */
    for (int i = 0; i < 2; i++) run[i].text[RUN_MODEL][0] = 0;
    check_page(2, true, none);
}

static void test_columns(void **state) {
    (void)state;
    set_run(0, "1", "lr = 0.1\nnorm = bn(alpha=0.9)\nclip = 1\nname = \"\"\n");
    set_run(1, "2", "lr = 0.2\nnorm = bn(alpha=0.5)\nname = x\n");
    set_run(2, "2", "lr = 0.2\nnorm = bn(alpha=0.5)\nname = x\nthreads = 2\n");
    strcpy(run[1].text[RUN_DATA], "digits");
    check_page(3, false,
               "|setting|a.h5|b.h5|c.h5|norm|bn(alpha=0.9)|bn(alpha=0.5)|bn(alpha=0.5)|"
               "data|default|digits|default|seed|1|2|2|lr|0.1|0.2|0.2|clip|1|-|-|"
               "name|default|x|x|");
    char *page = differences(3, RUNS, true);
    assert_non_null(strstr(page, "|threads|-|-|2|"));
    free(page);
    page = differences(3, 2, false);
    assert_non_null(strstr(page, "|setting|a.h5|b.h5|"));
    assert_non_null(strstr(page, "|Left out: 1 more run (--max-runs 2)|"));
    free(page);
}

/* Some configurations omit options without effect: their values are unknown. */
static void test_left_out(void **state) {
    (void)state;
    set_run(0, "1", "clip = 1\n");
    set_run(1, "1", "# options without effect are left out\nlr = 0.1\n");
    char *page = differences(2, RUNS, false);
    assert_null(strstr(page, "clip"));
    assert_non_null(strstr(page, "|lr|-|0.1|"));
    free(page);
}

/* More than six values: a line for each. */
static void test_values(void **state) {
    (void)state;
    for (int i = 0; i < RUNS; i++) set_run(i, i == 3 ? "2" : "1", i % 2 ? "lr = 1\n" : "lr = 2\n");
    strcpy(path[6], "other/a.h5");
    check_page(RUNS, false,
               "|setting|value: runs|seed|1|: in/a.h5, b.h5, c.h5, e.h5, f.h5, other/a.h5|2|: "
               "d.h5|lr|2|: in/a.h5, c.h5, e.h5, other/a.h5|1|: b.h5, d.h5, f.h5|");
}

/* An untrusted file: lines after the 500th and texts above 64 KiB are ignored. */
static void test_hostile(void **state) {
    (void)state;
    static char many[1 << 15], longest[(1 << 16) + 64];
    for (int i = 0; i < 600; i++) snprintf(many + strlen(many), 32, "key%d = 1\n", i);
    set_run(0, "1", many);
    set_run(1, "1", "lr = 1\n");
    char *page = differences(2, RUNS, true);
    assert_non_null(strstr(page, "|key399|1|-|")); /* a page has at most 400 rows */
    assert_null(strstr(page, "key400"));
    free(page);
    memset(longest, '\n', sizeof longest - 1);
    memcpy(longest, "lr = 2\n", 7);
    set_run(0, "1", longest);
    page = differences(2, RUNS, true);
    assert_null(strstr(page, "|lr|"));
    free(page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),     cmocka_unit_test(test_columns),
        cmocka_unit_test(test_left_out), cmocka_unit_test(test_values),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
