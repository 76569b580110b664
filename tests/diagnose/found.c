/* found.c -- see found.h. */
#include "found.h"

#include <stdio.h>
#include <string.h>

#include "testing/check.h"

program_result diagnose(const char *options) {
    program_result r = program_run("statrec diagnose %s run.h5", options);
    if (r.status) fail_msg("exit %d: %s", r.status, r.err);
    return r;
}

program_result advice(plan p) {
    write_planted_run(&p);
    return diagnose("--format tsv");
}

int row_of(const program_result *r, const char *question) {
    for (int i = 0; i < table_rows(r->out); i++) {
        const char *cell = table_cell(r->out, i, "question");
        if (cell && strcmp(cell, question) == 0) return i;
    }
    fail_msg("no question %s in\n%s", question, r->out);
    return -1;
}

int findings(const program_result *r) {
    int found = 0;
    for (int i = 0; i < table_rows(r->out); i++)
        found += strcmp(table_cell(r->out, i, "verdict"), "found") == 0;
    return found;
}

/* Runs the finding's figure command, as the table and the page give it. */
static void check_figure(const program_result *r, int row) {
    char command[256];
    snprintf(command, sizeof command, "%s", table_cell(r->out, row, "figure"));
    program_result page =
        program_run("statrec diagnose run.h5 | grep -F '    see         %s run.h5'", command);
    if (page.status) fail_msg("the page does not name %s run.h5", command);
    program_free(&page);
    if (strncmp(command, "statplot", 8) == 0 && !have_gnuplot()) return;
    program_result drawn = program_run("%s run.h5", command);
    if (drawn.status) fail_msg("%s run.h5: %s", command, drawn.err);
    program_free(&drawn);
}

program_result check_found(const plan *p, const char *question, const char *severity,
                           const char *site) {
    write_planted_run(p);
    program_result r = diagnose("--format tsv");
    const int row = row_of(&r, question);
    if (findings(&r) != 1) {
        program_result page = program_run("statrec diagnose run.h5 | sed -n "
                                          "'/^ 2/,$p'");
        fail_msg("%s: %d findings\n%s", p->name, findings(&r), page.out);
    }
    check_text(&r, row, "verdict", "found");
    check_text(&r, row, "severity", severity);
    check_text(&r, row, "site", site);
    check_cell(&r, row, "rank", 1);
    const double value = table_real(r.out, row, "value"), low = table_real(r.out, row, "low"),
                 high = table_real(r.out, row, "high");
    check_at_most(low, value);
    check_at_most(value, high);
    check_figure(&r, row);
    return r;
}

void found(const plan *p, const char *question, const char *severity, const char *site, double low,
           double high) {
    program_result r = check_found(p, question, severity, site);
    const double value = table_real(r.out, row_of(&r, question), "value");
    if (!(value > low && value < high)) fail_msg("%s: %g", p->name, value);
    program_free(&r);
}

void holds(const program_result *r, const char *question, const char *column, const char *words,
           bool wanted) {
    const char *text = table_cell(r->out, row_of(r, question), column);
    if ((strstr(text, words) != NULL) != wanted)
        fail_msg("%s of %s: %s '%s': %s", column, question, wanted ? "no" : "has", words, text);
}

void says(const program_result *r, const char *question, const char *words) {
    holds(r, question, "text", words, true);
}

void advises(const program_result *r, const char *question, const char *words, bool wanted) {
    holds(r, question, "advice", words, wanted);
}
