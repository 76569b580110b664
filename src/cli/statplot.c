/* statplot: figures from run files. Runs the analyses that a template names, reduces their tables
 * to what a page can show, and lets gnuplot draw. */
#include <stdlib.h>
#include <string.h>

#include "plot.h"
#include "statnet/options.h"
#include "statnet/tool.h"

typedef struct settings {
    option_text output, labels, site, stat, metric, published_table;
    bool keep, published;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    {.group = "Output",
     .key = "output",
     .letter = 'o',
     .type = OPTION_TEXT,
     .offset = offsetof(settings, output),
     .preset = "",
     .unit = "",
     .help = "file to write, .pdf, .svg or .png; - draws on the terminal; default FIGURE.pdf"},
    TEXT_OPTION(
        "Output", "labels", AT(labels), "",
        "legend labels of the runs, separated by commas; default: what differs between them"),
    FLAG_OPTION("Output", "keep", AT(keep), "no",
                "keep the directory with tables, data files and gnuplot script, and name it"),
    TEXT_OPTION("Content of figures that leave it open", "site", AT(site), "",
                "sites: globs separated by commas, or first or last; default: the figure's"),
    TEXT_OPTION("Content of figures that leave it open", "stat", AT(stat), "",
                "statistic; default: the figure's"),
    TEXT_OPTION("Content of figures that leave it open", "metric", AT(metric), "",
                "name below /evals; default: the figure's"),
    FLAG_OPTION("The papers' values, in figures that can show them", "published", AT(published),
                "no", "draw them beside the measured ones"),
    TEXT_OPTION("The papers' values, in figures that can show them", "published-table",
                AT(published_table), "",
                "the same with these tables of plots/published.tsv: globs separated by commas"),
};
static const option_table options = {rows, sizeof rows / sizeof rows[0]};

static void print_help(void) {
    printf("usage: statplot FIGURE [RUN.h5...] [-o OUT.pdf|OUT.svg|OUT.png|-] [--keep]\n"
           "       statplot TABLE [RUN.h5...] [-o OUT.tex|OUT.md|OUT.tsv|-]\n"
           "       statplot report RUN.h5... -o DIRECTORY\n"
           "       statplot list\n\n"
           "Draws a figure from run files. FIGURE is a name of `statplot list`, or the path of a\n"
           "gnuplot template of your own (its first lines say which analyses it needs). TABLE is a\n"
           "result table of a paper: what the runs measured beside what is printed there, as\n"
           "stat-table --layout makes it. Without run files a figure shows small recorded ones.\n"
           "`report` draws every figure that the runs allow, and a page index.html with them.\n\n");
    options_help(options, stdout);
    printf(
        "\nEnvironment: STATREC_PLOTS and STATREC_SAMPLES, directories of templates and of sample\n"
        "runs that are searched first.\n");
}

static sr_status draw_figure(const char *figure, plot_request *request, sr_failure *why) {
    plot_template t;
    plot_samples samples = {.runs = 0};
    plot_layout layout;
    if (plot_layout_find(figure, &layout)) return plot_layout_write(&layout, request, why);
    sr_status status = plot_template_find(figure, &t, why);
    if (status != SR_OK) return status;
    if (request->runs == 0) {
        status = plot_samples_find(t.samples, &samples, why);
        request->path = samples.path;
        request->runs = samples.runs;
    }
    if (status == SR_OK) status = plot_figure(&t, request, why);
    plot_template_free(&t);
    return status;
}

static sr_status list_all(sr_failure *why) {
    sr_status status = plot_template_list(stdout, why);
    if (status == SR_OK) plot_layout_list(stdout);
    return status;
}

static sr_status run_statplot(int argc, char **argv, sr_failure *why) {
    settings s;
    int positional = 0;
    options_preset(options, &s);
    sr_status status = options_parse(options, &s, argc, argv, 1, &positional, why);
    if (status != SR_OK) return status;
    if (positional == 0) {
        sr_fail(why, SR_USAGE, "no figure given");
        sr_hint(why, "statplot list names the figures; try --help");
        return SR_USAGE;
    }
    plot_request request = {.path = argv + 2,
                            .runs = positional - 1,
                            .output = s.output,
                            .labels = s.labels,
                            .choice = {s.site, s.stat, s.metric, s.published, s.published_table},
                            .keep = s.keep};
    if (request.runs && strcmp(request.path[request.runs - 1], "-") == 0) {
        request.output = "-"; /* `statplot fig2 -` */
        request.runs--;
    }
    if (positional == 1 && strcmp(argv[1], "list") == 0) return list_all(why);
    if (strcmp(argv[1], "report") == 0) return plot_report(&request, why);
    return draw_figure(argv[1], &request, why);
}

int main(int argc, char **argv) {
    tool t = {"statplot", argc, argv};
    sr_failure why = {0};
    if (tool_wants_help(&t)) {
        print_help();
        return tool_finish(&t, TOOL_DONE);
    }
    tool_catch_signals();
    const sr_status status = run_statplot(argc, argv, &why);
    if (tool_signal()) return 128 + tool_signal();
    return tool_finish(&t, status == SR_OK ? TOOL_DONE : tool_report(&t, &why));
}
