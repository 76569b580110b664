/* statplot report: every figure that some runs allow, tables, and one page to look at them.
 *
 * The page needs nothing but the files beside it: no script, no font, no network. Settings of every
 * run; the ends of the runs side by side; the figures; statistics per site; with several runs,
 * their ratios; definitions with every table.
 *
 * A figure of one run is drawn once per run, another one with all of them, or several times when
 * it takes fewer. Runs that lack what a figure needs are left out of it; the page says which and
 * why, and names the figures that cannot be drawn at all. A run has the same look in every figure.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plot/labels/plot_labels.h"
#include "plot/plot_figure.h"
#include "plot/report/plot_html.h"
#include "plot/report/plot_report.h"
#include "plot/template/plot_files.h"
#include "plot/template/plot_sizes.h"
#include "plot/template/plot_template.h"

/* -- the page -------------------------------------------------------------------------------- */

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\"><title>statrec report</title>\n"
    "<link rel=\"icon\" href=\"data:,\">\n<style>\n"
    "body { font-family: sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em;"
    " color: #202020 }\n"
    "img { width: 100% } img.narrow { width: 60% } .missing { color: #777; font-size: 85% }"
    " pre, details { font-size: 85% }\n"
    "table { border-collapse: collapse; font-size: 80%; margin: 0.7em 0 }\n"
    "table.data { display: block; overflow: auto; max-height: 30em; white-space: nowrap }\n"
    "th, td { text-align: left; vertical-align: top; padding: 0.15em 0.7em 0.15em 0;"
    " border-bottom: 1px solid #ddd }\n"
    "td.n { text-align: right; font-variant-numeric: tabular-nums }\n"
    "table.settings th { font-weight: normal; color: #777 } dt { font-weight: bold }\n"
    "summary { cursor: pointer }\n"
    "</style></head><body>\n<h1>statrec report</h1>\n";

static void write_entry(FILE *page, const char *id, const char *text, const char *title) {
    fprintf(page, "<li><a href=\"#%s\">", id);
    plot_html_text(page, text);
    fputs("</a>", page);
    if (title[0]) fputs(": ", page);
    plot_html_text(page, title);
    fputs("</li>\n", page);
}

static sr_status write_figure_entry(plot_template *t, void *self, sr_failure *why) {
    const report *r = self;
    (void)why;
    write_entry(r->page, t->name, t->name, t->title);
    return SR_OK;
}

static sr_status write_contents(report *r, sr_failure *why) {
    fputs("<nav><h2>Contents</h2>\n<ul>\n", r->page);
    write_entry(r->page, "runs", "Runs", "");
    write_entry(r->page, "ends", REPORT_ENDS, "");
    write_entry(r->page, "diagnosis", REPORT_DIAGNOSIS, "");
    sr_status status = plot_template_each(write_figure_entry, r, why);
    write_entry(r->page, "per-site", REPORT_SITES, "");
    if (r->request->runs > 1) write_entry(r->page, "ratios", REPORT_RATIOS, "");
    fputs("</ul></nav>\n", r->page);
    return status;
}

static sr_status write_page(report *r, const char *path, sr_failure *why) {
    r->page = fopen(path, "w");
    if (!r->page) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    fputs(head, r->page);
    sr_status status = write_contents(r, why);
    if (status == SR_OK) status = report_write_sections(r, why);
    fputs("</body></html>\n", r->page);
    const bool bad = ferror(r->page) != 0;
    if ((fclose(r->page) != 0 || bad) && status == SR_OK)
        status = sr_fail(why, SR_IO, "%s: cannot write: %s", path, strerror(errno));
    return status;
}

/* What a report made that ends early, in the directory that it made; what somebody else put there
   stays. */
static void remove_files(const report *r) {
    char path[2 * PLOT_PATH], name[PLOT_PATH], file[2 * PLOT_PATH];
    snprintf(path, sizeof path, "%s/files", r->scratch);
    FILE *in = fopen(path, "r");
    while (in && fgets(name, sizeof name, in)) {
        name[strcspn(name, "\n")] = 0;
        snprintf(file, sizeof file, "%s/%s", r->request->output, name);
        unlink(file);
    }
    if (in) fclose(in);
    rmdir(r->request->output);
}

/* A report that ends early leaves the page of the one before, and no table that is not whole. */
static sr_status make_page(report *r, const char *output, sr_failure *why) {
    char path[2 * PLOT_PATH];
    sr_status status = plot_scratch_create(r->scratch, why);
    if (status != SR_OK && r->created) rmdir(r->request->output);
    if (status != SR_OK) return status;
    snprintf(path, sizeof path, "%s/index.html", r->scratch);
    status = write_page(r, path, why);
    if (status == SR_OK) status = plot_place_output(path, output, why);
    if (status != SR_OK && r->created) remove_files(r);
    plot_scratch_remove(r->scratch);
    if (status == SR_OK && !r->drawn)
        status =
            sr_fail(why, SR_FORMAT, "no figure can be drawn from these runs: %s says why", output);
    return status;
}

/* A page that no report wrote is somebody's work. */
static sr_status check_page(const char *path, bool force, sr_failure *why) {
    char begin[2048] = "";
    FILE *in = force ? NULL : fopen(path, "r");
    if (!in) return SR_OK;
    const size_t length = fread(begin, 1, sizeof begin - 1, in);
    fclose(in);
    begin[length] = 0;
    if (length == 0 || strstr(begin, "<title>statrec report</title>")) return SR_OK;
    sr_fail(why, SR_USAGE, "%s exists, and is no statrec report", path);
    sr_hint(why, "choose another directory, or --force to replace it");
    return SR_USAGE;
}

sr_status plot_report(const plot_request *request, sr_failure *why) {
    char path[2 * PLOT_PATH];
    report r = {.request = request};
    if (!request->output[0]) return sr_fail(why, SR_USAGE, "report needs -o DIRECTORY");
    if (request->runs == 0) return sr_fail(why, SR_USAGE, "report needs run files");
    snprintf(path, sizeof path, "%s/index.html", request->output);
    sr_status status = check_page(path, request->force, why);
    if (status == SR_OK)
        status = plot_labels_make(&r.labels, request->run, request->runs, request->labels, why);
    if (status == SR_OK) {
        r.created = mkdir(request->output, 0777) == 0;
        if (!r.created && errno != EEXIST)
            status = sr_fail(why, SR_IO, "%s: %s", request->output, strerror(errno));
    }
    if (status == SR_OK) status = make_page(&r, path, why);
    plot_labels_free(&r.labels);
    return status;
}
