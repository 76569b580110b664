/* test_failing_report.c -- statplot report while one allocation, system call or access to its files
 * fails. It ends with a reason and keeps the earlier report, or writes the same page as without a
 * failure. Tests the whole program first, then the parts of the page in this process. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include "failing_statplot.h"
#include "plot/report/plot_report.h"

enum { PAGE = 1 << 20 };

static char page_whole[PAGE], page_found[PAGE];
static bool page_known;

static void take_page(const char *name, sr_status status) {
    if (!page_known && status == SR_OK) read_file(name, page_whole, sizeof page_whole);
    page_known = true;
}

/* Fails only the first call at each place: a report makes many. */
static void fail_firsts(const deed *d, failing_kind kind) {
    static long call[FAILING_PLACES];
    page_known = false;
    deed_note(d, kind);
    for (int i = 0; i < failing_places; i++) call[i] = failing_found[i].first;
    deed_fail_list(d, kind, call, failing_places);
}

static void each_kind(const deed *d) {
    fail_firsts(d, FAILING_ALLOCATIONS);
    fail_firsts(d, FAILING_SYSTEM);
    fail_firsts(d, FAILING_STREAMS);
}

/* -- the program ----------------------------------------------------------------------------- */

static const char mark[] = "<!-- of an earlier call -->";
static int files; /* report files, except cached tables, which unknown runs lack */

static int count_files(const char *name) {
    struct dirent *entry;
    DIR *folder = opendir(program_file(name));
    int count = -2;
    assert_non_null(folder);
    while ((entry = readdir(folder)))
        count += strncmp(entry->d_name, PLOT_TABLE_PREFIX, strlen(PLOT_TABLE_PREFIX)) != 0;
    closedir(folder);
    return count;
}

/* The earlier report: the same files, whose page has a mark. */
static void lay_report(void) {
    char from[512], to[512];
    struct dirent *entry;
    empty_folder("work"), empty_folder("drawn");
    assert_int_equal(mkdir(program_file("drawn/report"), 0777), 0);
    DIR *folder = opendir(program_file("before"));
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        snprintf(from, sizeof from, "before/%s", entry->d_name);
        snprintf(to, sizeof to, "drawn/report/%s", entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            assert_int_equal(link(from, to), 0);
    }
    closedir(folder);
}

static void make_earlier(void) {
    sr_failure why = {0};
    program_called = statplot_main, program_line = "statplot report a.h5 b.h5 -o before";
    check_ok(program_deed(&why), &why);
    FILE *page = fopen("before/index.html", "a");
    assert_non_null(page);
    assert_true(fputs(mark, page) >= 0);
    assert_int_equal(fclose(page), 0);
    files = count_files("before");
}

static sr_status report_deed(sr_failure *why) {
    const sr_status status = program_deed(why);
    take_page("drawn/report/index.html", status);
    return status;
}

static void look_at_report(const char *after, sr_status status) {
    read_file("drawn/report/index.html", page_found, sizeof page_found);
    const bool before = strstr(page_found, mark) != NULL;
    if (status != SR_OK && count_entries("work")) complain(after, "a folder is left");
    if (status != SR_OK && count_entries("drawn") != 1) complain(after, "a part is left");
    if (status == SR_OK && before) complain(after, "the report is the earlier one");
    if (!before && strcmp(page_found, page_whole) != 0) complain(after, "the page is not whole");
    if (count_files("drawn/report") != files)
        complain(after, "%d files of %d", count_files("drawn/report"), files);
}

static void test_program(void **state) {
    (void)state;
    static const char line[] = "statplot report a.h5 b.h5 -o drawn/report";
    const deed d = {.name = line,
                    .run = report_deed,
                    .look = look_at_report,
                    .prepare = lay_report,
                    .file = ""};
    program_called = statplot_main, program_line = line, program_known = false;
    each_kind(&d);
}

/* -- incomplete output of diagnose ----------------------------------------------------------- */

static void answer_with(const char *script, const char *part, bool on_page) {
    sr_failure why = {0};
    write_script("bin/statrec", script);
    empty_folder("drawn");
    program_called = statplot_main, program_known = false;
    program_line = "statplot report a.h5 b.h5 -o drawn/report --force";
    const sr_status status = program_deed(&why);
    read_file("drawn/report/index.html", page_found, sizeof page_found);
    assert_int_equal(status, on_page ? SR_OK : SR_IO);
    const char *in = on_page ? page_found : why.text;
    if (!strstr(in, part)) fail_msg("no '%s' in %.300s", part, in);
    assert_int_equal(count_entries("drawn"), on_page);
}

/* A run without diagnosis has its figures; a malformed table of diagnose ends the report. */
static void test_no_verdict(void **state) {
    (void)state;
    answer_with("#!/bin/sh\ncase $3 in b.h5) echo 'statrec: b.h5: too short' >&2; exit 1;; esac\n"
                "exec cat diagnosis.tsv\n",
                "<p class=\"missing\">No verdict: statrec: b.h5: too short</p>", true);
    answer_with("#!/bin/sh\nsed s/severity/gravity/ diagnosis.tsv\n",
                "the table of statrec diagnose has no column severity", false);
    answer_with("#!/bin/sh\necho '# none'\n", "diagnosis.1.tsv", false);
    answer_with("#!/bin/sh\nsed '$s/\t.*//' diagnosis.tsv\n", "diagnosis.1.tsv", false);
    assert_int_equal(remove(program_file("bin/statrec")), 0);
}

/* -- the parts of its page ------------------------------------------------------------------- */

static plot_runs runs;
static char drawn[4096], before[4096];

static sr_status write_figure(plot_template *t, void *self, sr_failure *why) {
    report *r = self;
    plot_template_free(t);
    sr_status status = plot_template_find(t->name, t, why);
    return status == SR_OK ? report_figure(r, t, why) : status;
}

static sr_status write_parts(report *r, sr_failure *why) {
    sr_status (*const part[])(report *, sr_failure *) = {
        report_diagnose, report_answer, report_findings, report_sites,
        report_ends,     report_ratios, report_settings};
    sr_status status = plot_scratch_create(&r->scratch, why);
    for (size_t i = 0; i < sizeof part / sizeof *part && status == SR_OK; i++)
        status = part[i](r, why);
    if (status == SR_OK) status = plot_template_each(write_figure, r, why);
    plot_scratch_remove(&r->scratch);
    return status;
}

static sr_status parts_deed(sr_failure *why) {
    const plot_request request = {
        .run = runs.run,
        .runs = 2,
        .output = drawn,
        .earlier = "",
        .labels = "",
        .choice = PLOT_NO_CHOICE,
        .controls =
            {.title = "", .size = "", .xrange = "", .yrange = "", .steps = "", .samples = ""},
        .each = 8};
    report r = {.request = &request,
                .folder = drawn,
                .earlier = before,
                .kept = {drawn, before, runs.run, 2}};
    sr_status status = plot_labels_make(&r.labels, runs.run, 2, "", why);
    const bool watched = failing_watches;
    failing_watches = false;
    r.page = fopen(program_file("drawn.html"), "w");
    failing_watches = watched;
    if (!r.page) complain("the parts", "no page");
    if (status == SR_OK) status = write_parts(&r, why);
    plot_labels_free(&r.labels);
    free(r.verdict);
    free(r.finding);
    failing_watches = false;
    fclose(r.page);
    take_page("drawn.html", status);
    failing_watches = watched;
    return status;
}

static void lay_parts(void) {
    empty_folder("work"), empty_folder("drawn");
}

static void look_at_parts(const char *after, sr_status status) {
    if (status != SR_OK && count_entries("work")) complain(after, "a folder is left");
    if (status != SR_OK) return;
    read_file("drawn.html", page_found, sizeof page_found);
    if (strstr(page_found, "failed without a message")) return; /* its file could not be read */
    if (strcmp(page_found, page_whole) != 0) complain(after, "the page is another");
}

static void test_parts(void **state) {
    (void)state;
    static char a[] = "a.h5", b[] = "b.h5";
    char *paths[] = {a, b};
    sr_failure why = {0};
    const deed d = {.name = "the parts of a report",
                    .run = parts_deed,
                    .look = look_at_parts,
                    .prepare = lay_parts,
                    .file = ""};
    snprintf(drawn, sizeof drawn, "%s", program_file("drawn"));
    snprintf(before, sizeof before, "%s", program_file("before"));
    check_ok(plot_runs_open(&runs, paths, 2, &why), &why);
    each_kind(&d);
    plot_runs_close(&runs);
}

static int prepare_reports(void **state) {
    const int status = prepare_all(state);
    assert_int_equal(chdir(check_temporary()), 0);
    make_earlier();
    return status;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_no_verdict),
    };
    return cmocka_run_group_tests(tests, prepare_reports, NULL);
}
