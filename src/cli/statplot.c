/* statplot: figures from run files. Runs the analyses that a template names, reduces their tables
 * to what a page can show, and lets gnuplot draw. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "plot.h"
#include "statnet/options.h"
#include "statnet/tool.h"

typedef struct settings {
    option_text output, labels, site, stat;
    bool keep;
} settings;

static const option rows[] = {
    {.group = "Output",
     .key = "output",
     .letter = 'o',
     .type = OPTION_TEXT,
     .offset = offsetof(settings, output),
     .preset = "",
     .unit = "",
     .help = "file to write, .pdf, .svg or .png; - draws on the terminal; default FIGURE.pdf"},
    {.group = "Output",
     .key = "labels",
     .type = OPTION_TEXT,
     .offset = offsetof(settings, labels),
     .preset = "",
     .unit = "",
     .help = "legend labels of the runs, separated by commas; default: what differs between them"},
    {.group = "Output",
     .key = "keep",
     .type = OPTION_FLAG,
     .offset = offsetof(settings, keep),
     .preset = "no",
     .unit = "",
     .help = "keep the directory with tables, data files and gnuplot script, and name it"},
    {.group = "Content of figures that leave it open",
     .key = "site",
     .type = OPTION_TEXT,
     .offset = offsetof(settings, site),
     .preset = "",
     .unit = "",
     .help = "sites: globs separated by commas, or first or last; default: the figure's"},
    {.group = "Content of figures that leave it open",
     .key = "stat",
     .type = OPTION_TEXT,
     .offset = offsetof(settings, stat),
     .preset = "",
     .unit = "",
     .help = "statistic; default: the figure's"},
};
static const option_table options = {rows, sizeof rows / sizeof rows[0]};

static void print_help(void) {
    printf("usage: statplot FIGURE RUN.h5... [-o OUT.pdf|OUT.svg|OUT.png|-] [--keep]\n"
           "       statplot list\n\n"
           "Draws a figure from run files. FIGURE is a name of `statplot list`, or the path of a\n"
           "gnuplot template of your own (its first lines say which analyses it needs).\n\n");
    options_help(options, stdout);
    printf("\nEnvironment: STATREC_PLOTS, a directory of templates that is searched first.\n");
}

/* -- temporary directory --------------------------------------------------------------------- */

static sr_status directory_create(char path[PLOT_PATH], sr_failure *why) {
    const char *base = getenv("TMPDIR");
    const int length =
        snprintf(path, PLOT_PATH, "%s/statplot.XXXXXX", base && base[0] ? base : "/tmp");
    if (length >= PLOT_PATH - 64) return sr_fail(why, SR_IO, "TMPDIR is too long");
    if (mkdtemp(path)) return SR_OK;
    sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    path[0] = 0;
    return SR_IO;
}

static void directory_remove(const char *path) {
    char file[2 * PLOT_PATH];
    struct dirent *entry;
    DIR *directory = opendir(path);
    if (!directory) return;
    while ((entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        unlink(file);
    }
    closedir(directory);
    rmdir(path);
}

/* -- a figure -------------------------------------------------------------------------------- */

static sr_status choose_format(const char *output, plot_format *format, sr_failure *why) {
    static const char *const ending[] = {".pdf", ".svg", ".png"};
    if (strcmp(output, "-") == 0) return *format = PLOT_SCREEN, SR_OK;
    const char *dot = strrchr(output, '.');
    for (int i = 0; dot && i < 3; i++)
        if (strcasecmp(dot, ending[i]) == 0) return *format = (plot_format)i, SR_OK;
    return sr_fail(why, SR_USAGE, "-o '%s': a figure's name ends in .pdf, .svg or .png", output);
}

static sr_status check_runs(const plot_template *t, int runs, sr_failure *why) {
    if (runs >= t->least_runs && (!t->most_runs || runs <= t->most_runs)) return SR_OK;
    sr_fail(why, SR_USAGE, "figure %s takes %s%d run%s, not %d", t->name,
            t->most_runs == t->least_runs ? ""
            : runs < t->least_runs        ? "at least "
                                          : "at most ",
            runs < t->least_runs ? t->least_runs : t->most_runs,
            (runs < t->least_runs ? t->least_runs : t->most_runs) == 1 ? "" : "s", runs);
    sr_hint(why, "statplot %s %s", t->name, t->takes);
    return SR_USAGE;
}

static sr_status draw(const plot_sources *from, const plot_labels *labels, plot_format format,
                      const char *output, sr_failure *why) {
    const plot_template *t = from->template;
    plot_data data[PLOT_TABLES] = {{0}};
    sr_status status = SR_OK;
    for (int i = 0; i < t->tables && status == SR_OK; i++)
        status = plot_table_make(from, &t->table[i], &data[i], why);
    const plot_job job = {t, labels, data, from->directory, format, output};
    if (status == SR_OK) status = plot_draw(&job, why);
    for (int i = 0; i < t->tables; i++) plot_data_free(&data[i]);
    return status;
}

static sr_status make_figure(plot_template *t, const settings *s, char **paths, int runs,
                             sr_failure *why) {
    char output[PLOT_PATH], directory[PLOT_PATH] = "";
    const plot_sources from = {t, paths, runs, directory};
    plot_labels labels = {0};
    plot_format format = PLOT_PDF;
    snprintf(output, sizeof output, "%s", s->output);
    if (!output[0]) snprintf(output, sizeof output, "%.1000s.pdf", t->name);
    sr_status status = choose_format(output, &format, why);
    if (status == SR_OK) status = check_runs(t, runs, why);
    if (status == SR_OK) status = plot_template_choose(t, s->site, s->stat, why);
    if (status == SR_OK) status = plot_labels_make(&labels, paths, runs, s->labels, why);
    if (status == SR_OK) status = directory_create(directory, why);
    if (status == SR_OK) status = draw(&from, &labels, format, output, why);
    plot_labels_free(&labels);
    if (directory[0] && s->keep)
        fprintf(stderr, "statplot: kept %s\n", directory);
    else if (directory[0])
        directory_remove(directory);
    return status;
}

static sr_status run_statplot(int argc, char **argv, sr_failure *why) {
    settings s;
    int positional = 0;
    plot_template t;
    options_preset(options, &s);
    sr_status status = options_parse(options, &s, argc, argv, 1, &positional, why);
    if (status != SR_OK) return status;
    if (positional == 0) {
        sr_fail(why, SR_USAGE, "no figure given");
        sr_hint(why, "statplot list names the figures; try --help");
        return SR_USAGE;
    }
    if (positional == 1 && strcmp(argv[1], "list") == 0) return plot_template_list(stdout, why);
    status = plot_template_find(argv[1], &t, why);
    if (status != SR_OK) return status;
    status = make_figure(&t, &s, argv + 2, positional - 1, why);
    plot_template_free(&t);
    return status;
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
