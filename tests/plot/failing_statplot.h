/* failing_statplot.h -- statplot's main() as a deed (failing_programs.h) on two small runs. Scripts
 * replace gnuplot and statrec, which have separate tests. A drawing has the checksum of its input.
 * Child processes of statplot do not fail. Include it once, with _GNU_SOURCE. */
#ifndef TESTS_PLOT_FAILING_STATPLOT_H
#define TESTS_PLOT_FAILING_STATPLOT_H

#include <ftw.h>
#include <pthread.h>

#include "few_runs.h"
#include "testing/failing_programs.h"

int statplot_main(int argc, char **argv);

/* -- setup ----------------------------------------------------------------------------------- */

static void spare_child(void) {
    failing_watches = false;
}

static void write_script(const char *name, const char *text) {
    program_write(name, text);
    assert_int_equal(chmod(program_file(name), 0755), 0);
}

static void write_scripts(void) {
    char text[8192];
    write_script("bin/gnuplot", "#!/bin/sh\nsum=$(cat figure.gp *.dat | cksum)\n"
                                "echo \"<svg>GNUPLOT $sum\n<image x=\"1\"/></svg>\" >figure.svg\n"
                                "echo \"%PDF-1 $sum /CreationDate (D:2)\" >figure.pdf\n"
                                "echo $sum >figure.txt\n");
    program_result r = program_run("statrec diagnose --format=tsv a.h5 >diagnosis.tsv");
    assert_in_range(r.status, 0, 1);
    program_free(&r);
    snprintf(text, sizeof text, "#!/bin/sh\nexec cat %s\n", program_file("diagnosis.tsv"));
    write_script("bin/statrec", text);
}

/* Few templates, because a report tries each. */
static void link_templates(void) {
    static const char *const names[] = {"style.gp",  "published.tsv", "layouts.tsv", "fig2.gp",
                                        "curves.gp", "gap.gp",        "tid.gp"};
    char from[4096], to[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(from, sizeof from, "%s/../../../plots/%s", program_directory(), names[i]);
        snprintf(to, sizeof to, "plots/%s", names[i]);
        assert_int_equal(symlink(from, program_file(to)), 0);
    }
}

static int prepare_all(void **state) {
    (void)state;
    char path[8192];
    const char *const folders[] = {"plots", "bin", "work", "drawn"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_int_equal(mkdir(program_file(folders[i]), 0777), 0);
    write_few_run(&(few_run){"a.h5", "bn", 0.1, 1, 1, false, false});
    write_few_run(&(few_run){"b.h5", "bn", 0.2, 2, 2, false, false});
    write_scripts();
    link_templates();
    snprintf(path, sizeof path, "%s:%s", program_file("bin"), getenv("PATH"));
    setenv("PATH", path, 1);
    setenv("STATREC_PLOTS", program_file("plots"), 1);
    setenv("TMPDIR", program_file("work"), 1);
    return pthread_atfork(NULL, NULL, spare_child);
}

/* -- remaining files ------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)type;
    return at->level ? remove(path) : 0;
}

static void empty_folder(const char *name) {
    assert_int_equal(nftw(program_file(name), remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static int count_entries(const char *name) {
    DIR *folder = opendir(program_file(name));
    int count = -2;
    assert_non_null(folder);
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

/* Reads a file; "" if it does not exist. */
static void read_file(const char *name, char *text, size_t size) {
    FILE *in = fopen(program_file(name), "r");
    const size_t length = in ? fread(text, 1, size - 1, in) : 0;
    if (in) fclose(in);
    text[length] = 0;
}

#endif
