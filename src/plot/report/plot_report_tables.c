/* plot_report_tables.c -- the tables of a report: settings and ends of the runs, diagnosis,
 * statistics per site, ratios. */
#include <stdlib.h>
#include <string.h>

#include "plot/plot_command.h"
#include "plot/plot_process.h"
#include "plot/report/plot_html.h"
#include "plot/report/plot_report.h"
#include "plot/template/plot_files.h"
#include "plot/template/plot_sizes.h"

typedef struct report_table {
    const char *title, *name; /* name: of the file, without .tsv */
    const char *words[8];     /* the analysis and its options; the runs follow */
    const char *omit;         /* columns that only the file has */
} report_table;

static const report_table ends = {REPORT_ENDS, "runs", {"stat-table"}, "status"};
static const report_table sites = {
    REPORT_SITES,
    "sites",
    {"stat-scalar", "--stat",
     "dist_mu,dist_sigma2,dist_psi2,tid_mean,tid_var,g_mu,g_sigma2,g_psi2,row_grad_mean,row_grad_"
     "var,Gamma_max,nonfinite"},
    "run norm"};
static const report_table diagnosis = {
    REPORT_DIAGNOSIS,
    "diagnosis",
    {"statrec", "diagnose", "--format", "tsv"},
    "run rank sites_beyond first_step last_step at_step usual_runs figure"};
static const report_table ratios = {
    REPORT_RATIOS,
    "compare",
    {"stat-compare"},
    "first first_site steps nonfinite first_steps first_nonfinite block first_block"};

/* Into the file `name`. */
static sr_status run_table(const report *r, const report_table *t, char **path, int runs,
                           const char *name, sr_failure *why) {
    char output[2 * PLOT_PATH], placed[2 * PLOT_PATH], errors[2 * PLOT_PATH + 64];
    int argc = 0;
    char **argv = calloc((size_t)runs + 9, sizeof *argv);
    if (!argv) return sr_fail(why, SR_MEMORY, "out of memory");
    for (; t->words[argc]; argc++) argv[argc] = (char *)(uintptr_t)t->words[argc];
    for (int i = 0; i < runs; i++) argv[argc++] = path[i];
    snprintf(output, sizeof output, "%s/%s", r->scratch, name);
    snprintf(placed, sizeof placed, "%s/%s", r->request->output, name);
    snprintf(errors, sizeof errors, "%s.stderr", output);
    const plot_process p = {.argv = argv, .output = output, .errors = errors};
    sr_status status = plot_process_run(&p, why);
    if (status == SR_OK) status = report_note_file(r, name, why);
    if (status == SR_OK) status = plot_place_output(output, placed, why);
    free(argv);
    return status;
}

/* number: behind the name of the file, 0 for none. Runs that the analysis refuses are told; then
 * it is tried without the first of them while `least` are left. */
static sr_status write_table(report *r, const report_table *t, char **path, int runs, int least,
                             int number, sr_failure *why) {
    char name[64], part[16] = "", output[2 * PLOT_PATH];
    if (number) snprintf(part, sizeof part, ".%d", number);
    snprintf(name, sizeof name, "%s%s.tsv", t->name, part);
    snprintf(output, sizeof output, "%s/%s", r->request->output, name);
    for (;; path++, runs--) {
        sr_failure one = {0};
        const sr_status status = run_table(r, t, path, runs, name, &one);
        if (status == SR_OK) return plot_html_table(r->page, output, name, t->omit, why);
        if (report_is_fatal(status)) return *why = one, status;
        report_missing(r->page, runs > least ? "Left out" : "No table", &one);
        if (runs <= least) return SR_OK;
    }
}

sr_status report_settings(report *r, sr_failure *why) {
    (void)why;
    report_section(r, "runs", "Runs");
    for (int i = 0; i < report_own(r); i++) {
        report_run_title(r, i);
        plot_html_settings(r->page, &r->request->run[i]);
    }
    report_others(r);
    return SR_OK;
}

/* A section with a table for each of the first runs. */
static sr_status write_by_run(report *r, const report_table *t, const char *id, sr_failure *why) {
    sr_status status = SR_OK;
    report_section(r, id, t->title);
    for (int i = 0; i < report_own(r) && status == SR_OK; i++) {
        char *path = r->request->run[i].path;
        report_run_title(r, i);
        status = write_table(r, t, &path, 1, 1, i + 1, why);
    }
    report_others(r);
    return status;
}

sr_status report_diagnosis(report *r, sr_failure *why) {
    return write_by_run(r, &diagnosis, "diagnosis", why);
}

sr_status report_sites(report *r, sr_failure *why) {
    return write_by_run(r, &sites, "per-site", why);
}

/* A table of the runs of each task that has `least` of them, under its name where `named`; their
 * number. */
static sr_status write_by_task(report *r, const report_table *t, int least, bool named, int *tables,
                               sr_failure *why) {
    const int runs = r->request->runs;
    char **path = calloc((size_t)runs, sizeof *path);
    sr_status status = path ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    *tables = 0;
    for (int i = 0; i < runs && status == SR_OK; i++) {
        int count = 0;
        bool before = false;
        for (int k = 0; k < runs; k++) {
            if (strcmp(r->request->run[i].task, r->request->run[k].task) != 0) continue;
            before = before || k < i;
            path[count++] = r->request->run[k].path;
        }
        if (before || count < least) continue;
        if (named) report_title(r, 3, r->request->run[i].task);
        status = write_table(r, t, path, count, least, *tables ? *tables + 1 : 0, why);
        (*tables)++;
    }
    free(path);
    return status;
}

static bool has_tasks(const report *r) {
    for (int i = 1; i < r->request->runs; i++)
        if (strcmp(r->request->run[0].task, r->request->run[i].task) != 0) return true;
    return false;
}

/* Tasks have metrics of their own: a table for each. */
sr_status report_ends(report *r, sr_failure *why) {
    int tables;
    report_section(r, "ends", ends.title);
    return write_by_task(r, &ends, 1, has_tasks(r), &tables, why);
}

/* Runs of other tasks than the first run's have no site in common with it. */
sr_status report_ratios(report *r, sr_failure *why) {
    int tables;
    report_section(r, "ratios", ratios.title);
    sr_status status = write_by_task(r, &ratios, 2, true, &tables, why);
    if (status == SR_OK && !tables) fputs("<p class=\"missing\">One run per task.</p>\n", r->page);
    return status;
}
