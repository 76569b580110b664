/* figure_values.c -- checks a drawing's marks against a table's values. */
#include "figure_values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "few_runs.h"
#include "testing/check.h"

int figure_runs(void **state) {
    (void)state;
    write_few_run(&(few_run){"few.h5", "bn", 0.5, 1, 1, false, false});
    write_few_run(&(few_run){"other.h5", "bn", 0.3, 2, 2, false, false});
    write_few_run(&(few_run){"pnv.h5", "pnv", 0.5, 1, 3, false, false});
    write_few_run(&(few_run){"single.h5", "bn", 0.5, 1, 4, true, false});
    write_few_run(&(few_run){"bare.h5", "bn", 0.5, 1, 5, true, true});
    return 0;
}

program_result table_of(const char *command) {
    program_result r = program_run("%s", command);
    if (r.status != 0) fail_msg("%s: exit %d: %s", command, r.status, r.err);
    return r;
}

static bool row_is(const program_result *t, int row, const char *where) {
    char column[64], want[64];
    int used = 0;
    for (const char *at = where; sscanf(at, " %63[^=]=%63s%n", column, want, &used) == 2;
         at += used)
        if (strcmp(table_cell(t->out, row, column), want) != 0) return false;
    return true;
}

reading cell(const char *column) {
    return (reading){column, 1, 0};
}

reading percent_of(const char *column) {
    return (reading){column, 100, 0};
}

reading place_plus(double plus) {
    return (reading){"#", 1, plus};
}

static double read_cell(const program_result *t, int row, int place, reading r) {
    return r.times * (strcmp(r.column, "#") == 0 ? place : table_real(t->out, row, r.column)) +
           r.plus;
}

void check_rows(const drawing *d, int panel, mark_kind kind, int look, const program_result *t,
                const char *where, reading x, reading y) {
    int place = 0, found = 0;
    for (int row = 0; row < table_rows(t->out); row++) {
        if (!row_is(t, row, where)) continue;
        const double u = read_cell(t, row, ++place, x), v = read_cell(t, row, place, y);
        if (!isfinite(u) || !isfinite(v)) continue;
        check_mark(d, panel, kind, look, u, v);
        found++;
    }
    if (!found) fail_msg("%s: no row with %s in:\n%.600s", d->command, where, t->out);
}

void check_course(const drawing *d, int panel, int look, const program_result *t, const char *where,
                  double times, const char *column) {
    check_rows(d, panel, MARK_LINE, look, t, where, cell("percent"), (reading){column, times, 0});
}

double burn_in(const char *run) {
    int from = 0, to = 0, steps = 0;
    char command[64];
    snprintf(command, sizeof command, "stat-tid %s", run);
    program_result t = table_of(command);
    const char *line = strstr(t.out, "# steps: ");
    if (!line || sscanf(strchr(line + 9, ' '), " %d to %d of %d", &from, &to, &steps) != 3)
        fail_msg("%s does not print its steps: %s", command, t.out);
    assert_true(from > 1 && from < steps);
    program_free(&t);
    return 100.0 * (from - 1) / steps;
}
