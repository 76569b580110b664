#include "testing/programs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/check.h"

/* -- programs -------------------------------------------------------------------------------- */

const char *program_directory(void) {
    static char path[1024];
    if (path[0]) return path;
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    assert_true(length > 0);
    path[length] = 0;
    for (int up = 0; up < 3; up++) *strrchr(path, '/') = 0; /* BUILD/tests/record/test_x */
    strcat(path, "/bin");
    char statplot[1100];
    snprintf(statplot, sizeof statplot, "%s/statplot", path);
    if (access(statplot, X_OK) != 0) fail_msg("%s is not built: make all first", statplot);
    return path;
}

bool have_gnuplot(void) {
    if (system("command -v gnuplot >/dev/null 2>&1") == 0) return true;
    print_message("skipped: gnuplot not found\n");
    return false;
}

const char *program_file(const char *name) {
    static char path[4][1024];
    static int next;
    char *to = path[next++ % 4];
    snprintf(to, sizeof path[0], "%s/%s", check_temporary(), name);
    return to;
}

void program_write(const char *name, const char *text) {
    check_write(program_file(name), text);
}

static char *read_whole(const char *path) {
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    char *text = NULL;
    size_t size = 0;
    if (getdelim(&text, &size, 0, in) < 0) {
        free(text);
        text = calloc(1, 1);
    }
    fclose(in);
    assert_non_null(text);
    return text;
}

program_result program_run(const char *format, ...) {
    char command[4096], line[10240];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    char checkout[1024];
    assert_non_null(getcwd(checkout, sizeof checkout - 16));
    snprintf(line, sizeof line,
             "export TMPDIR=. PATH='%s':\"$PATH\" STATREC_PLOTS='%s/plots' "
             "STATREC_SAMPLES='%s/sample_runs' STATREC_PRESETS='%s/share/presets' && cd '%s' && "
             "{ %s\n} >out 2>err",
             program_directory(), checkout, checkout, checkout, check_temporary(), command);
    const int state = system(line);
    return (program_result){
        .status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state),
        .out = read_whole(program_file("out")),
        .err = read_whole(program_file("err")),
    };
}

void program_free(program_result *r) {
    free(r->out);
    free(r->err);
}

/* -- tables ---------------------------------------------------------------------------------- */

static const char *skip_line(const char *at) {
    const char *end = strchr(at, '\n');
    return end ? end + 1 : at + strlen(at);
}

static const char *header_of(const char *table) {
    while (*table == '#') table = skip_line(table);
    return table;
}

static bool copy_cell(const char *line, int column, char *cell, size_t size) {
    const char *end = line + strcspn(line, "\n");
    for (; column > 0; column--) {
        line = memchr(line, '\t', (size_t)(end - line));
        if (!line++) return false;
    }
    snprintf(cell, size, "%.*s", (int)strcspn(line, "\t\n"), line);
    return line < end;
}

const char *table_cell(const char *table, int row, const char *column) {
    static char cell[4096];
    const char *header = header_of(table), *line = header;
    for (int i = 0; i <= row; i++) line = skip_line(line);
    for (int i = 0; copy_cell(header, i, cell, sizeof cell); i++)
        if (strcmp(cell, column) == 0)
            return *line && copy_cell(line, i, cell, sizeof cell) ? cell : NULL;
    return NULL;
}

double table_real(const char *table, int row, const char *column) {
    const char *cell = table_cell(table, row, column);
    if (!cell) fail_msg("no row %d or no column %s in:\n%s", row, column, table);
    return strtod(cell, NULL);
}

int table_rows(const char *table) {
    int rows = 0;
    for (const char *at = skip_line(header_of(table)); *at; at = skip_line(at)) rows++;
    return rows;
}

void check_cell(const program_result *r, int row, const char *column, double want) {
    const double got = table_real(r->out, row, column);
    check_near_double(column, &got, &want, 1, 1e-6, 1e-12);
}

void check_text(const program_result *r, int row, const char *column, const char *want) {
    const char *cell = table_cell(r->out, row, column);
    if (!cell) fail_msg("no cell %s in row %d of:\n%s", column, row, r->out);
    assert_string_equal(cell, want);
}
