/* plot_report_tables.c -- the tables of a report: ends of the runs, statistics per site, ratios,
 * settings. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plot/plot_command.h"
#include "plot/plot_process.h"
#include "plot/report/plot_html.h"
#include "plot/report/plot_report.h"
#include "plot/template/plot_sizes.h"

typedef struct report_table {
    const char *title, *name; /* name: of the file, without .tsv */
    const char *words[8];     /* the analysis and its options; the runs follow */
    const char *omit;         /* columns that only the file has */
} report_table;

static const report_table ends = {
    "The ends of the runs", "runs", {"stat-table"}, "status model data seed"};
static const report_table sites = {
    "Statistics per site",
    "sites",
    {"stat-scalar", "--stat",
     "dist_mu,dist_sigma2,dist_psi2,tid_mean,tid_var,g_mu,g_sigma2,g_psi2,row_grad_mean,row_grad_"
     "var,Gamma_max,nonfinite"},
    "run norm"};
static const report_table ratios = {
    "Ratios to the first run, sites of the same name",
    "compare",
    {"stat-compare"},
    "first first_site steps nonfinite first_steps first_nonfinite block first_block"};

/* Into the file `name`. */
static sr_status run_table(const report *r, const report_table *t, char **path, int runs,
                           const char *name, sr_failure *why) {
    char output[2 * PLOT_PATH], errors[2 * PLOT_PATH];
    int argc = 0;
    char **argv = calloc((size_t)runs + 9, sizeof *argv);
    if (!argv) return sr_fail(why, SR_MEMORY, "out of memory");
    for (; t->words[argc]; argc++) argv[argc] = (char *)(uintptr_t)t->words[argc];
    for (int i = 0; i < runs; i++) argv[argc++] = path[i];
    snprintf(output, sizeof output, "%s/%s", r->folder, name);
    snprintf(errors, sizeof errors, "%s/%s.stderr", r->scratch.path, name);
    const plot_process p = {.argv = argv, .output = output, .errors = errors};
    sr_failure one = {0};
    sr_status status = plot_table_cache_run(&r->kept, &p, 1, &one, why);
    if (status == SR_OK && one.status != SR_OK) *why = one, status = one.status;
    if (status != SR_OK) unlink(output);
    free(argv);
    return status;
}

/* number: at the end of the file's name, 0 for none. Runs that the analysis rejects are reported.
 * Then it is tried without the first of them while `least` are left. */
static sr_status write_table(report *r, const report_table *t, char **path, int runs, int least,
                             int number, sr_failure *why) {
    char name[64], part[16] = "", output[2 * PLOT_PATH];
    if (number) snprintf(part, sizeof part, ".%d", number);
    snprintf(name, sizeof name, "%s%s.tsv", t->name, part);
    snprintf(output, sizeof output, "%s/%s", r->folder, name);
    for (;; path++, runs--) {
        sr_failure one = {0};
        const sr_status status = run_table(r, t, path, runs, name, &one);
        if (status == SR_OK) return plot_html_table(r->page, output, name, t->omit, why);
        if (report_is_fatal(status)) return *why = one, status;
        report_missing(r->page, runs > least ? "Left out" : "No table", &one);
        if (runs <= least) return SR_OK;
    }
}

sr_status report_sites(report *r, sr_failure *why) {
    sr_status status = SR_OK;
    report_title(r, 3, "report-sites", sites.title);
    for (int i = 0; i < report_own(r) && status == SR_OK; i++) {
        char *path = r->request->run[i].path;
        report_run_title(r, i);
        fputs("<details><summary>Table</summary>\n", r->page);
        status = write_table(r, &sites, &path, 1, 1, i + 1, why);
        fputs("</details>\n", r->page);
    }
    report_others(r);
    return status;
}

static void write_task(report *r, const char *task) {
    fputs("<h4>", r->page);
    plot_html_text(r->page, task);
    fputs("</h4>\n", r->page);
}

/* A table of the first `runs` runs for each task that has `least` of them, under its name where
 * `named`; their number. */
static sr_status write_by_task(report *r, const report_table *t, int runs, int least, bool named,
                               int *tables, sr_failure *why) {
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
        if (named) write_task(r, r->request->run[i].task);
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

/* Tasks have different metrics: a table for each. */
sr_status report_ends(report *r, sr_failure *why) {
    int tables;
    report_title(r, 3, "report-ends", ends.title);
    return write_by_task(r, &ends, r->request->runs, 1, has_tasks(r), &tables, why);
}

static bool has_pair(const report *r) {
    for (int i = 0; i < report_own(r); i++)
        for (int k = 0; k < i; k++)
            if (strcmp(r->request->run[i].task, r->request->run[k].task) == 0) return true;
    return false;
}

/* Runs of other tasks than the first run's have no site in common with it. A run has a row for each
 * site and statistic, so only runs with their own tables are compared. */
sr_status report_ratios(report *r, sr_failure *why) {
    int tables;
    if (!has_pair(r)) return SR_OK;
    report_title(r, 3, "report-ratios", ratios.title);
    sr_status status = write_by_task(r, &ratios, report_own(r), 2, true, &tables, why);
    report_others(r);
    return status;
}

/* The differences between the runs come first. */
sr_status report_settings(report *r, sr_failure *why) {
    (void)why;
    report_title(r, 2, "report-settings", "Runs and configurations");
    if (r->request->runs > 1) {
        report_title(r, 3, "report-all-differences", "All differences");
        report_differences(r, true);
    }
    for (int i = 0; i < report_own(r); i++) {
        fprintf(r->page, "<div id=\"report-run-%d\">\n", i + 1);
        report_run_title(r, i);
        plot_html_settings(r->page, &r->request->run[i]);
        fputs("</div>\n", r->page);
    }
    report_others(r);
    return SR_OK;
}
