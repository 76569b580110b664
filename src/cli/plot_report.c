/* statplot report: every figure that some runs allow, tables, and one page to look at them.
 *
 * The page needs nothing but the files beside it: no script, no font, no network. Settings of every
 * run; the ends of the runs side by side; the figures; statistics per site; with several runs,
 * their ratios; definitions with every table.
 *
 * A figure of one run is drawn once per run, another one with all of them. A figure that cannot be
 * drawn (other number of runs, statistics that these runs lack) is named on the page with the
 * reason.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plot.h"

typedef struct report {
    const plot_request *request;
    plot_labels labels;
    FILE *page;
    int drawn;
} report;

static void write_title(report *r, int level, const char *text) {
    fprintf(r->page, "<h%d>", level);
    plot_html_text(r->page, text);
    fprintf(r->page, "</h%d>\n", level);
}

static void write_run_title(report *r, int run) {
    const char *path = r->request->path[run], *slash = strrchr(path, '/');
    fputs("<h3>", r->page);
    plot_html_text(r->page, slash ? slash + 1 : path);
    fputs(": ", r->page);
    plot_html_text(r->page, r->labels.full[run]);
    fputs("</h3>\n", r->page);
}

static void write_reason(report *r, const sr_failure *one) {
    fputs("<p class=\"missing\">Not drawn: ", r->page);
    plot_html_text(r->page, one->text);
    fputs("</p>\n", r->page);
}

/* One drawing with `runs` runs from path on; number: behind the name of the file, 0 for none. */
static sr_status draw_one(report *r, plot_template *t, char **path, int runs, int number,
                          sr_failure *why) {
    char name[PLOT_PATH + 16], output[2 * PLOT_PATH + 16];
    sr_failure one = {0};
    if (number)
        snprintf(name, sizeof name, "%s.%d.svg", t->name, number);
    else
        snprintf(name, sizeof name, "%s.svg", t->name);
    snprintf(output, sizeof output, "%s/%s", r->request->output, name);
    plot_request request = *r->request;
    request.path = path;
    request.runs = runs;
    request.output = output;
    request.labels = runs == r->request->runs ? r->request->labels : "";
    const sr_status status = plot_figure(t, &request, &one);
    if (status == SR_STATE || status == SR_IO || status == SR_MEMORY) {
        *why = one;
        return status;
    }
    if (status != SR_OK) {
        write_reason(r, &one);
        return SR_OK;
    }
    fprintf(r->page, "<p><img src=\"");
    plot_html_text(r->page, name);
    fputs("\" alt=\"", r->page);
    plot_html_text(r->page, t->title);
    fputs("\"></p>\n", r->page);
    r->drawn++;
    return SR_OK;
}

static sr_status draw_template(plot_template *t, void *self, sr_failure *why) {
    report *r = self;
    const int runs = r->request->runs;
    fputs("<h2>", r->page);
    plot_html_text(r->page, t->name);
    fputs("</h2>\n<p>", r->page);
    plot_html_text(r->page, t->title);
    fputs("</p>\n", r->page);
    if (t->most_runs != 1 || runs == 1) return draw_one(r, t, r->request->path, runs, 0, why);
    sr_status status = SR_OK;
    for (int i = 0; i < runs && status == SR_OK; i++) {
        write_run_title(r, i);
        status = draw_one(r, t, r->request->path + i, 1, i + 1, why);
    }
    return status;
}

/* -- tables ---------------------------------------------------------------------------------- */

typedef struct report_table {
    const char *title, *name; /* name: of the file, without .tsv */
    const char *words[8];     /* the analysis and its options; the runs follow */
    const char *omit;         /* columns that only the file has */
} report_table;

static const report_table ends = {"The ends of the runs", "runs", {"stat-table"}, "status"};
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

/* A run stands beside options, so a name that begins with a dash gets a path in front. */
static char *run_word(const char *path) {
    const size_t room = strlen(path) + 3;
    char *text = malloc(room);
    if (text) snprintf(text, room, "%s%s", path[0] == '-' ? "./" : "", path);
    return text;
}

static sr_status run_table(const report_table *t, char **path, int runs, const char *output,
                           sr_failure *why) {
    char errors[2 * PLOT_PATH + 64];
    int argc = 0;
    char **argv = calloc((size_t)runs + 9, sizeof *argv);
    bool whole = argv != NULL;
    while (whole && t->words[argc]) {
        argv[argc] = strdup(t->words[argc]);
        whole = argv[argc++] != NULL;
    }
    for (int i = 0; whole && i < runs; i++) whole = (argv[argc++] = run_word(path[i])) != NULL;
    snprintf(errors, sizeof errors, "%s.stderr", output);
    const plot_process p = {argv, NULL, output, errors};
    sr_status status = whole ? plot_process_run(&p, why) : sr_fail(why, SR_MEMORY, "out of memory");
    unlink(errors);
    if (status != SR_OK) unlink(output);
    for (int i = 0; argv && i < argc; i++) free(argv[i]);
    free(argv);
    return status;
}

/* number: behind the name of the file, 0 for none. An analysis that refuses these runs is told. */
static sr_status write_table(report *r, const report_table *t, char **path, int runs, int number,
                             sr_failure *why) {
    char name[64], output[2 * PLOT_PATH];
    sr_failure one = {0};
    if (number)
        snprintf(name, sizeof name, "%s.%d.tsv", t->name, number);
    else
        snprintf(name, sizeof name, "%s.tsv", t->name);
    snprintf(output, sizeof output, "%s/%s", r->request->output, name);
    const sr_status status = run_table(t, path, runs, output, &one);
    if (status == SR_OK) return plot_html_table(r->page, output, name, t->omit, why);
    if (status == SR_STATE || status == SR_IO || status == SR_MEMORY) {
        *why = one;
        return status;
    }
    fputs("<p class=\"missing\">", r->page);
    plot_html_text(r->page, one.text);
    fputs("</p>\n", r->page);
    return SR_OK;
}

static sr_status write_sites(report *r, sr_failure *why) {
    sr_status status = SR_OK;
    write_title(r, 2, sites.title);
    for (int i = 0; i < r->request->runs && status == SR_OK; i++) {
        write_run_title(r, i);
        status = write_table(r, &sites, r->request->path + i, 1, i + 1, why);
    }
    return status;
}

/* -- the page -------------------------------------------------------------------------------- */

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\"><title>statrec report</title>\n"
    "<link rel=\"icon\" href=\"data:,\">\n<style>\n"
    "body { font-family: sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em;"
    " color: #202020 }\n"
    "img { max-width: 100% } .missing { color: #777 } pre, details { font-size: 85% }\n"
    "table { border-collapse: collapse; font-size: 80%; margin: 0.7em 0 }\n"
    "table.data { display: block; overflow: auto; max-height: 30em; white-space: nowrap }\n"
    "th, td { text-align: left; vertical-align: top; padding: 0.15em 0.7em 0.15em 0;"
    " border-bottom: 1px solid #ddd }\n"
    "td.n { text-align: right; font-variant-numeric: tabular-nums }\n"
    "table.settings th { font-weight: normal; color: #777 } dt { font-weight: bold }\n"
    "summary { cursor: pointer }\n"
    "</style></head><body>\n<h1>statrec report</h1>\n";

static sr_status write_settings(report *r, sr_failure *why) {
    sr_status status = SR_OK;
    write_title(r, 2, "Runs");
    for (int i = 0; i < r->request->runs && status == SR_OK; i++) {
        write_run_title(r, i);
        status = plot_html_settings(r->page, r->request->path[i], why);
    }
    return status;
}

static sr_status write_body(report *r, sr_failure *why) {
    char **path = r->request->path;
    const int runs = r->request->runs;
    fputs(head, r->page);
    sr_status status = write_settings(r, why);
    if (status == SR_OK) {
        write_title(r, 2, ends.title);
        status = write_table(r, &ends, path, runs, 0, why);
    }
    if (status == SR_OK) status = plot_template_each(draw_template, r, why);
    if (status == SR_OK) status = write_sites(r, why);
    if (status == SR_OK && runs > 1) {
        write_title(r, 2, ratios.title);
        status = write_table(r, &ratios, path, runs, 0, why);
    }
    fputs("</body></html>\n", r->page);
    return status;
}

static sr_status write_page(report *r, const char *path, sr_failure *why) {
    r->page = fopen(path, "w");
    if (!r->page) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    sr_status status = write_body(r, why);
    const bool bad = ferror(r->page) != 0;
    if ((fclose(r->page) != 0 || bad) && status == SR_OK)
        status = sr_fail(why, SR_IO, "%s: cannot write: %s", path, strerror(errno));
    if (status == SR_OK && !r->drawn)
        status =
            sr_fail(why, SR_FORMAT, "no figure can be drawn from these runs: %s says why", path);
    return status;
}

sr_status plot_report(const plot_request *request, sr_failure *why) {
    char path[2 * PLOT_PATH];
    report r = {.request = request};
    if (!request->output[0]) return sr_fail(why, SR_USAGE, "report needs -o DIRECTORY");
    if (request->runs == 0) return sr_fail(why, SR_USAGE, "report needs run files");
    if (mkdir(request->output, 0777) != 0 && errno != EEXIST)
        return sr_fail(why, SR_IO, "%s: %s", request->output, strerror(errno));
    snprintf(path, sizeof path, "%s/index.html", request->output);
    sr_status status =
        plot_labels_make(&r.labels, request->path, request->runs, request->labels, why);
    if (status == SR_OK) status = write_page(&r, path, why);
    plot_labels_free(&r.labels);
    return status;
}
