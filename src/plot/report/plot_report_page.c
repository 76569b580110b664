/* plot_report_page.c -- headings of a report and what it lacks; see plot_report.h. */
#include <errno.h>
#include <string.h>

#include "plot/report/plot_html.h"
#include "plot/report/plot_report.h"
#include "plot/template/plot_sizes.h"

void report_title(report *r, int level, const char *text) {
    fprintf(r->page, "<h%d>", level);
    plot_html_text(r->page, text);
    fprintf(r->page, "</h%d>\n", level);
}

void report_section(report *r, const char *id, const char *text) {
    fprintf(r->page, "<h2 id=\"%s\">", id);
    plot_html_text(r->page, text);
    fputs("</h2>\n", r->page);
}

void report_run_title(report *r, int run) {
    const char *path = r->request->run[run].path, *slash = strrchr(path, '/');
    fputs("<h3>", r->page);
    plot_html_text(r->page, slash ? slash + 1 : path);
    fputs(": ", r->page);
    plot_html_text(r->page, r->labels.full[run]);
    fputs("</h3>\n", r->page);
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

/* A line for each, as sections are processes. */
sr_status report_note_file(const report *r, const char *name, sr_failure *why) {
    char path[2 * PLOT_PATH];
    if (!r->created) return SR_OK;
    snprintf(path, sizeof path, "%s/files", r->scratch);
    FILE *out = fopen(path, "a");
    if (!out) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    fprintf(out, "%s\n", name);
    return fclose(out) == 0 ? SR_OK : sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
}

bool report_is_fatal(sr_status status) {
    return status == SR_STATE || status == SR_IO || status == SR_MEMORY;
}
