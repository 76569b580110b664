/* plot_report_page.c -- headings of a report and notes on missing parts; see plot_report.h. */
#include <string.h>

#include "plot/report/plot_html.h"
#include "plot/report/plot_report.h"

void report_title(report *r, int level, const char *id, const char *text) {
    fprintf(r->page, "<h%d id=\"", level);
    plot_html_text(r->page, id);
    fputs("\">", r->page);
    plot_html_text(r->page, text);
    fprintf(r->page, "</h%d>\n", level);
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *report_run_name(const report *r, int run) {
    const char *path = r->request->run[run].path, *name = base_name(path);
    for (int i = 0; i < r->request->runs; i++)
        if (i != run && strcmp(base_name(r->request->run[i].path), name) == 0) return path;
    return name;
}

void report_run_title(report *r, int run) {
    fputs("<h4>", r->page);
    plot_html_text(r->page, report_run_name(r, run));
    fputs(": ", r->page);
    plot_html_text(r->page, r->labels.full[run]);
    fputs("</h4>\n", r->page);
}

void report_missing(FILE *out, const char *what, const sr_failure *one) {
    char text[sizeof one->text];
    snprintf(text, sizeof text, "%.*s", (int)strcspn(one->text, ";"), one->text);
    fprintf(out, "<p class=\"missing\">%s: ", what);
    plot_html_text(out, text);
    fputs("</p>\n", out);
}

int report_own(const report *r) {
    const int runs = r->request->runs, each = r->request->each;
    return runs < each ? runs : each;
}

void report_others(report *r) {
    const int others = r->request->runs - report_own(r);
    if (others)
        fprintf(r->page, "<p class=\"missing\">Left out: %d more run%s (--max-runs %d)</p>\n",
                others, others > 1 ? "s" : "", r->request->each);
}

bool report_is_fatal(sr_status status) {
    return status == SR_STATE || status == SR_IO || status == SR_MEMORY;
}
