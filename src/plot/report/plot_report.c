/* statplot report: one page on some runs that starts with the answer.
 *
 * First come the runs, the findings of statrec diagnose on each, the three figures that show them,
 * and the differences between the runs. Then come figures and tables by question. At the end are
 * configurations, and the figures that these runs cannot fill. The page needs nothing but the files
 * beside it: no script, no font, no network.
 *
 * A figure of one run is drawn once per run, another one with all of them, or several times when
 * it takes fewer. Runs without the data for a figure are left out of it; the page names them and
 * the reason. A run has the same look in every figure.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plot/labels/plot_labels.h"
#include "plot/plot_figure.h"
#include "plot/report/plot_html.h"
#include "plot/report/plot_report.h"
#include "plot/report/plot_report_folder.h"

/* -- the page -------------------------------------------------------------------------------- */

/* Figures are drawn for paper: dark pages put them on white. Every table fits the page, as its
 * words may break anywhere. */
static const char style[] =
    "<style>\n"
    ":root { color-scheme: light dark; --text: #202020; --page: #fff; --dim: #666; --line: #ddd;"
    " --link: #005b96; --severe: #b00020; --notable: #a34a00; --minor: #6b5d00; --good: #1b6e37 }\n"
    "@media (prefers-color-scheme: dark) { :root { --text: #e4e4e4; --page: #16181b;"
    " --dim: #a2a2a2; --line: #3c4046; --link: #7cc0f5; --severe: #ff7b87; --notable: #ffb066;"
    " --minor: #e6d36a; --good: #74d292 } }\n"
    "body { font: 15px/1.4 system-ui, sans-serif; max-width: 76rem; margin: 0 auto;"
    " padding: 0 1.2rem 3rem; color: var(--text); background: var(--page) }\n"
    "a { color: var(--link) } h1 { font-size: 1.4rem; margin: 0.8rem 0 0.5rem }"
    " h2 { font-size: 1.25rem; margin: 1.6rem 0 0.5rem }\n"
    "h3 { font-size: 1.05rem; margin: 1.4rem 0 0.3rem } h4, h5 { font-size: 0.95rem;"
    " margin: 0.9rem 0 0.2rem } p { margin: 0.4rem 0; max-width: 60rem }\n"
    "figure { margin: 0.3rem 0 } img { max-width: 100%; height: auto; background: #fff }"
    " section img { width: 60rem } section img.narrow { width: 29rem }\n"
    ".answer { display: grid; gap: 0.4rem 1rem; margin: 0.6rem 0;"
    " grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)) }\n"
    ".answer img { width: 100% } figcaption { font-size: 0.85rem; color: var(--dim) }"
    " figcaption b { color: var(--text) }\n"
    "table { border-collapse: collapse; font-size: 0.85rem; margin: 0.5rem 0; max-width: 100% }\n"
    "th, td { text-align: left; vertical-align: top; padding: 0.15em 0.8em 0.15em 0;"
    " border-bottom: 1px solid var(--line) } .long, h4 { overflow-wrap: anywhere }\n"
    "thead th, .settings th, .differences th { font-weight: normal; color: var(--dim) }\n"
    "td.n { text-align: right; font-variant-numeric: tabular-nums }\n"
    ".box { max-height: max(12rem, 38vh); overflow-y: auto } table.runs { width: 100% } .findings "
    "{ margin: "
    "0.4rem 0; padding-left: 1.4rem }\n"
    ".missing { color: var(--dim); font-size: 0.85rem } .verdict { font-weight: bold }\n"
    ".severe { color: var(--severe) } .notable { color: var(--notable) }"
    " .minor { color: var(--minor) } .good { color: var(--good) }\n"
    ".finding { border-left: 3px solid var(--line); padding-left: 0.8rem; margin: 0.6rem 0 }\n"
    "dl { font-size: 0.85rem; max-width: 60rem } dt { font-weight: bold } dd { margin: 0 0 0.3em }"
    " code, pre { font-size: 0.85em; overflow-wrap: anywhere; white-space: pre-wrap }\n"
    "summary { cursor: pointer } nav ul { padding: 0; margin: 1rem 0; list-style: none;"
    " font-size: 0.9rem } nav li a { margin-right: 0.6em } nav li a:first-child"
    " { font-weight: bold }\n"
    "@media print { :root { --text: #000; --page: #fff; --dim: #444; --line: #bbb; --link: #000 }"
    " body { max-width: none; padding: 0; font-size: 10pt } nav { display: none }"
    " .box { max-height: none } figure, .finding, tr { break-inside: avoid } h2, h3, h4 { "
    "break-after: avoid }"
    " .answer { grid-template-columns: repeat(3, 1fr) } }\n"
    "</style>\n";

static void write_head(report *r) {
    const int runs = r->request->runs;
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
          "<meta name=\"generator\" content=\"statplot report\"/>\n" REPORT_TITLE,
          r->page);
    fprintf(r->page, ": %d run%s</title>\n<link rel=\"icon\" href=\"data:,\"/>\n%s</head><body>\n",
            runs, runs > 1 ? "s" : "", style);
    fprintf(r->page, "<main>\n<h1>statrec report: %d run%s</h1>\n", runs, runs > 1 ? "s" : "");
}

static sr_status write_page(report *r, sr_failure *why) {
    char path[2 * PLOT_PATH];
    snprintf(path, sizeof path, "%s/index.html", r->folder);
    r->page = fopen(path, "w");
    if (!r->page) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    write_head(r);
    sr_status status = report_write_sections(r, why);
    fputs("</main>\n</body></html>\n", r->page);
    const bool bad = ferror(r->page) != 0;
    if ((fclose(r->page) != 0 || bad) && status == SR_OK)
        status = sr_fail(why, SR_IO, "%s: cannot write: %s", path, strerror(errno));
    return status;
}

/* In a folder that takes the place of the report before when it is whole. */
static sr_status make_report(report *r, sr_failure *why) {
    report_folder folder;
    sr_failure lacking = {0};
    sr_status status = report_folder_open(&folder, r->request->output, r->request->force, why);
    r->folder = folder.build.path;
    r->earlier = folder.target;
    r->kept = (plot_table_cache){r->folder, r->earlier, r->request->run, r->request->runs};
    if (status == SR_OK) status = plot_scratch_create(&r->scratch, why);
    if (status == SR_OK) status = report_diagnose(r, why);
    /* without it the report is unchanged, and the failure is reported at the end */
    if (status == SR_OK && r->request->interactive) report_interactive(r, &lacking);
    if (status == SR_OK) status = write_page(r, why);
    if (status == SR_OK) status = report_folder_publish(&folder, why);
    plot_scratch_remove(&r->scratch);
    report_folder_close(&folder);
    if (status == SR_OK && !r->drawn)
        status = sr_fail(why, SR_FORMAT,
                         "no figure can be drawn from these runs: %s/index.html says why",
                         r->request->output);
    if (status == SR_OK && lacking.status != SR_OK) *why = lacking, status = lacking.status;
    return status;
}

sr_status plot_report(const plot_request *request, sr_failure *why) {
    report r = {.request = request};
    if (!request->output[0]) return sr_fail(why, SR_USAGE, "report needs -o DIRECTORY");
    if (request->runs == 0) return sr_fail(why, SR_USAGE, "report needs run files");
    sr_status status =
        plot_labels_make(&r.labels, request->run, request->runs, request->labels, why);
    if (status == SR_OK) status = make_report(&r, why);
    plot_labels_free(&r.labels);
    free(r.verdict);
    free(r.finding);
    return status;
}
