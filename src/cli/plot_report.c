/* statplot report: every figure that some runs allow, and one page to look at them.
 *
 * A figure of one run is drawn once per run, another one with all of them. A figure that cannot be
 * drawn (other number of runs, statistics that these runs lack) is named on the page with the
 * reason.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "plot.h"

typedef struct report {
    const plot_request *request;
    plot_labels labels;
    FILE *page;
    int drawn;
} report;

static void write_html(FILE *out, const char *text) {
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '<')
            fputs("&lt;", out);
        else if (c == '>')
            fputs("&gt;", out);
        else if (c == '&')
            fputs("&amp;", out);
        else if (c == '"')
            fputs("&quot;", out);
        else
            fputc(c < ' ' || c == 0x7f ? ' ' : c, out);
    }
}

static void write_reason(report *r, const sr_failure *one) {
    fputs("<p class=\"missing\">Not drawn: ", r->page);
    write_html(r->page, one->text);
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
    write_html(r->page, name);
    fputs("\" alt=\"", r->page);
    write_html(r->page, t->title);
    fputs("\"></p>\n", r->page);
    r->drawn++;
    return SR_OK;
}

static sr_status draw_template(plot_template *t, void *self, sr_failure *why) {
    report *r = self;
    const int runs = r->request->runs;
    fputs("<h2>", r->page);
    write_html(r->page, t->name);
    fputs("</h2>\n<p>", r->page);
    write_html(r->page, t->title);
    fputs("</p>\n", r->page);
    if (t->most_runs != 1 || runs == 1) return draw_one(r, t, r->request->path, runs, 0, why);
    sr_status status = SR_OK;
    for (int i = 0; i < runs && status == SR_OK; i++) {
        fputs("<h3>", r->page);
        write_html(r->page, r->labels.full[i]);
        fputs("</h3>\n", r->page);
        status = draw_one(r, t, r->request->path + i, 1, i + 1, why);
    }
    return status;
}

static void write_head(report *r) {
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>statrec "
          "report</title>\n"
          "<style>body { font-family: sans-serif; max-width: 50em; margin: 2em auto }"
          " img { max-width: 100% } .missing { color: #777 }</style></head><body>\n"
          "<h1>statrec report</h1>\n<table>\n",
          r->page);
    for (int i = 0; i < r->request->runs; i++) {
        fputs("<tr><td>", r->page);
        write_html(r->page, r->request->path[i]);
        fputs("</td><td>", r->page);
        write_html(r->page, r->labels.full[i]);
        fputs("</td></tr>\n", r->page);
    }
    fputs("</table>\n", r->page);
}

static sr_status write_page(report *r, const char *path, sr_failure *why) {
    r->page = fopen(path, "w");
    if (!r->page) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    write_head(r);
    sr_status status = plot_template_each(draw_template, r, why);
    fputs("</body></html>\n", r->page);
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
