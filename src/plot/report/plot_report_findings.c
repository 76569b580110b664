/* plot_report_findings.c -- the findings of statrec diagnose for each run: its verdict, its
 * findings with their numbers and advice, and a row for every other question. */
#include <stdlib.h>
#include <string.h>

#include "plot/plot_tsv.h"
#include "plot/report/plot_html.h"
#include "plot/report/plot_report.h"

/* The cell of a column; "" where the table has none of this name. */
static const char *cell(const plot_tsv *t, const char *column) {
    const int at = plot_tsv_find(t, column);
    return at < 0 ? "" : t->cell[at];
}

static void write_line(FILE *page, const char *name, const char *text) {
    if (!text[0] || strcmp(text, "-") == 0) return;
    fprintf(page, "<dt>%s</dt><dd>", name);
    plot_html_text(page, text);
    fputs("</dd>\n", page);
}

static void write_finding(report *r, const plot_tsv *t, int run) {
    FILE *page = r->page;
    fputs("<div class=\"finding\"><h5><b class=\"", page);
    plot_html_text(page, cell(t, "severity"));
    fputs("\">", page);
    plot_html_text(page, cell(t, "severity"));
    fputs("</b> ", page);
    plot_html_text(page, cell(t, "question"));
    plot_html_finding(page, cell(t, "statistic"), cell(t, "value"), cell(t, "low"), cell(t, "high"),
                      cell(t, "limit"), cell(t, "site"));
    fputs("</h5>\n<p>", page);
    plot_html_text(page, cell(t, "text"));
    fputs("</p>\n<dl>\n", page);
    write_line(page, "Try", cell(t, "advice"));
    write_line(page, "Criterion", cell(t, "criterion"));
    write_line(page, "Source", cell(t, "source"));
    fputs("<dt>See</dt><dd><code>", page);
    plot_html_text(page, cell(t, "figure"));
    fputc(' ', page);
    plot_html_path(page, r->request->run[run].path);
    fputs("</code></dd>\n</dl></div>\n", page);
}

static void write_answer(FILE *page, const plot_tsv *t) {
    static const char *const words[] = {"question", "verdict", "statistic"};
    const bool asked = strcmp(cell(t, "verdict"), "not-asked") != 0;
    fputs("<tr>", page);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        plot_html_cell(page, "td", "", cell(t, words[i]));
    }
    fputs("<td>", page);
    if (asked) plot_html_estimate(page, cell(t, "value"), cell(t, "low"), cell(t, "high"));
    fputs("</td><td>", page);
    if (asked) plot_html_number(page, cell(t, "limit"));
    fputs("</td>", page);
    plot_html_cell(page, "td", "", cell(t, "site"));
    plot_html_cell(page, "td", "", cell(t, "text"));
    fputs("</tr>\n", page);
}

/* The finding of this rank; 0: the other questions. */
static sr_status write_rows(report *r, const char *path, int run, int rank, sr_failure *why) {
    plot_tsv t;
    bool more;
    sr_status status = plot_tsv_open(&t, path, why);
    if (status != SR_OK) return status;
    while ((status = plot_tsv_next(&t, &more, why)) == SR_OK && more) {
        if (atoi(cell(&t, "rank")) != rank) continue;
        if (rank)
            write_finding(r, &t, run);
        else
            write_answer(r->page, &t);
    }
    plot_tsv_close(&t);
    return status;
}

/* By rank: the table has the order of the questions. */
static sr_status write_findings(report *r, const char *path, int run, sr_failure *why) {
    int found = 0;
    sr_status status = SR_OK;
    for (int i = 0; i < r->findings; i++) found += r->finding[i].run == run;
    for (int rank = 1; rank <= found && status == SR_OK; rank++)
        status = write_rows(r, path, run, rank, why);
    return status;
}

static sr_status write_run(report *r, int run, sr_failure *why) {
    char path[2 * PLOT_PATH], name[32];
    const report_verdict *v = &r->verdict[run];
    fprintf(r->page, "<div id=\"diagnosis-%d\">\n", run + 1);
    report_run_title(r, run);
    if (v->failure.status != SR_OK) {
        report_missing(r->page, "No verdict", &v->failure);
        return fputs("</div>\n", r->page), SR_OK;
    }
    fputs("<p class=\"verdict\">", r->page);
    plot_html_text(r->page, v->conclusion);
    fputs("</p>\n", r->page);
    snprintf(name, sizeof name, "diagnosis.%d.tsv", run + 1);
    snprintf(path, sizeof path, "%s/%s", r->folder, name);
    sr_status status = write_findings(r, path, run, why);
    if (status != SR_OK) return status;
    fputs("<details><summary>Other questions</summary>\n<table><thead><tr><th>question</th>"
          "<th>answer</th><th>statistic</th><th>worst [95 %]</th><th>limit</th><th>site</th>"
          "<th>text</th></tr></thead>\n<tbody>\n",
          r->page);
    status = write_rows(r, path, run, 0, why);
    fputs("</tbody></table>\n", r->page);
    plot_html_link(r->page, name);
    if (status == SR_OK) status = plot_html_definitions(r->page, path, why);
    fputs("</details>\n</div>\n", r->page);
    return status;
}

sr_status report_findings(report *r, sr_failure *why) {
    sr_status status = SR_OK;
    report_title(r, 3, "report-diagnosis", "Verdicts of statrec diagnose");
    for (int i = 0; i < report_own(r) && status == SR_OK; i++) status = write_run(r, i, why);
    report_others(r);
    return status;
}
