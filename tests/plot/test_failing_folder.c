/* test_failing_folder.c -- writes a report's folder while one system call fails. The earlier report
 * stays until the new one is complete, and user files are never lost. The next call removes
 * remains. Targets: a new folder; an earlier report; a file system that cannot exchange folders;
 * the working folder, which is filled file by file. */
#define _GNU_SOURCE 1 /* RTLD_NEXT, RENAME_EXCHANGE */
#include "testing/failing_deeds.h"
#include "testing/failing_streams.h"

#include "plot/report/plot_report_folder.h"
#include "testing/programs.h"

static bool exchanges; /* this file system supports it */

FAILING_CALL(int, chmod, (const char *a, mode_t b), (a, b))

int renameat2(int a, const char *b, int c, const char *d, unsigned flags) {
    FAILING_REAL(int, renameat2, (int, const char *, int, const char *, unsigned));
    if (failing_now(FAILING_SYSTEM, __builtin_return_address(0))) return -1;
    if (!exchanges && flags & RENAME_EXCHANGE) return errno = EINVAL, -1;
    return original.call(a, b, c, d, flags);
}

char *mkdtemp(char *path) {
    FAILING_REAL(char *, mkdtemp, (char *));
    return failing_now(FAILING_SYSTEM, __builtin_return_address(0)) ? NULL : original.call(path);
}

/* -- reports --------------------------------------------------------------------------------- */

static const char old_page[] = REPORT_TITLE "</title><img src=\"old.svg\">\n";
static const char new_page[] = REPORT_TITLE "</title><img src=\"new.svg\">\n";

static bool fills, there; /* the target is the working folder; it contains an earlier report */

static void write_in(const char *folder, const char *name, const char *text) {
    char path[3 * PLOT_PATH];
    const bool watched = failing_watches;
    failing_watches = false;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    if (!out || fputs(text, out) < 0 || fclose(out) != 0) complain(path, "not written");
    failing_watches = watched;
}

static void lay_out(void) {
    static char checkout[4096]; /* folder of the programs */
    if (!checkout[0]) assert_non_null(getcwd(checkout, sizeof checkout));
    assert_int_equal(chdir(checkout), 0);
    program_result r = program_run("rm -rf scene; mkdir scene%s", there ? " scene/report" : "");
    assert_int_equal(r.status, 0);
    program_free(&r);
    if (there) {
        write_in(program_file("scene/report"), "index.html", old_page);
        write_in(program_file("scene/report"), "old.svg", "old");
        write_in(program_file("scene/report"), "notes", "of somebody");
    }
    assert_int_equal(chdir(program_file(fills ? "scene/report" : "scene")), 0);
}

static sr_status make_report(sr_failure *why) {
    report_folder f;
    sr_status status = report_folder_open(&f, program_file("scene/report"), false, why);
    if (status == SR_OK) {
        write_in(f.build.path, "index.html", new_page);
        write_in(f.build.path, "new.svg", "new");
        status = report_folder_publish(&f, why);
    }
    report_folder_close(&f);
    return status;
}

/* -- remaining files ------------------------------------------------------------------------- */

static bool has(const char *name, const char *text) {
    char path[64], found[256] = "";
    snprintf(path, sizeof path, "scene/report/%s", name);
    FILE *in = fopen(program_file(path), "r");
    if (!in) return !text;
    found[fread(found, 1, sizeof found - 1, in)] = 0;
    fclose(in);
    return text && strcmp(found, text) == 0;
}

static int count_hidden(const char *folder) {
    DIR *in = opendir(program_file(folder));
    int count = -2;
    for (struct dirent *e; in && (e = readdir(in));) count += e->d_name[0] == '.';
    if (in) closedir(in);
    return count;
}

static void look_at_report(const char *after, bool is_new) {
    if (!has("index.html", is_new ? new_page : there ? old_page : NULL))
        complain(after, "the page is not the %s one", is_new ? "new" : "old");
    if (is_new && !has("new.svg", "new")) complain(after, "a new file is not there");
    if (!is_new && there && (!has("old.svg", "old") || !has("notes", "of somebody")))
        complain(after, "a file of before is not there");
}

static void look(const char *after, sr_status status) {
    sr_failure why = {0};
    look_at_report(after, status == SR_OK);
    if (make_report(&why) != SR_OK) complain(after, "the next call fails: %s", why.text);
    look_at_report(after, true);
    if (there && !has("notes", "of somebody")) complain(after, "a file of somebody is lost");
    if (status != SR_OK && !has("old.svg", NULL)) complain(after, "an old file stays");
    if (count_hidden("scene") || count_hidden("scene/report")) complain(after, "a folder is left");
}

static void fail_report(const char *name) {
    const deed d = {.name = name, .run = make_report, .look = look, .prepare = lay_out, .file = ""};
    deed_fail_all(&d, FAILING_SYSTEM);
}

static void test_new_place(void **state) {
    (void)state;
    exchanges = true, there = fills = false;
    fail_report("a report in a new place");
}

static void test_over_another(void **state) {
    (void)state;
    exchanges = there = true, fills = false;
    fail_report("a report over an earlier one");
}

static void test_two_renames(void **state) {
    (void)state;
    there = true, exchanges = fills = false;
    fail_report("a report where folders cannot be exchanged");
}

static void test_filled(void **state) {
    (void)state;
    there = fills = true, exchanges = false;
    fail_report("a report in the working folder");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_place),
        cmocka_unit_test(test_over_another),
        cmocka_unit_test(test_two_renames),
        cmocka_unit_test(test_filled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
