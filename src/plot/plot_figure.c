/* One figure, from the template to the file in its place: a directory for everything in between,
 * the tables, the data files, gnuplot. */
#include <string.h>
#include <strings.h>

#include "plot/labels/plot_comparable.h"
#include "plot/labels/plot_custom_stat.h"
#include "plot/labels/plot_labels.h"
#include "plot/labels/plot_runs.h"
#include "plot/plot_command.h"
#include "plot/plot_curves.h"
#include "plot/plot_figure.h"
#include "plot/plot_gnuplot.h"
#include "plot/template/plot_controls.h"
#include "plot/template/plot_files.h"
#include "plot/template/plot_published.h"
#include "plot/template/plot_scratch.h"
#include "plot/template/plot_sizes.h"
#include "plot/template/plot_template.h"

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

static const char *output_of(const plot_template *t, const plot_request *r, char text[PLOT_PATH]) {
    if (r->output[0]) return r->output;
    snprintf(text, PLOT_PATH, "%.1000s.pdf", t->name);
    return text;
}

static sr_status draw(const plot_sources *from, const plot_request *r, const plot_labels *labels,
                      sr_failure *why) {
    char text[PLOT_PATH];
    const plot_template *t = from->template;
    const bool wanted = r->choice.published || r->choice.published_tables[0];
    plot_format format = PLOT_PDF;
    plot_data data[PLOT_TABLES] = {{0}};
    plot_published published = {0};
    const char *output = output_of(t, r, text);
    sr_status status = choose_format(output, &format, why);
    if (status == SR_OK) status = plot_published_read(&published, t, wanted, why);
    if (status == SR_OK) status = plot_tables_make(from, data, why);
    const plot_job job = {.template = t,
                          .run = r->run,
                          .labels = labels,
                          .data = data,
                          .published = &published,
                          .controls = &r->controls,
                          .directory = from->directory,
                          .format = format,
                          .output = output,
                          .earlier = r->earlier};
    if (status == SR_OK) status = plot_draw(&job, why);
    if (status == SR_OK)
        plot_comparable_warn(t, data, from->directory, r->run, r->runs, r->warnings);
    for (int i = 0; i < t->tables; i++) plot_data_free(&data[i]);
    plot_published_free(&published);
    return status;
}

sr_status plot_figure_choose(plot_template *t, const plot_request *r, int runs, sr_failure *why) {
    char text[PLOT_PATH];
    plot_format format;
    sr_status status = choose_format(output_of(t, r, text), &format, why);
    if (status == SR_OK) status = plot_controls_choose(t, &r->controls, why);
    if (status == SR_OK) status = plot_template_choose(t, &r->choice, why);
    return status == SR_OK ? check_runs(t, runs, why) : status;
}

sr_status plot_figure(plot_template *t, const plot_request *r, sr_failure *why) {
    plot_scratch scratch = {.path = ""};
    plot_sources from = {t, r->run, r->runs, scratch.path, r->kept, r->refusal};
    plot_labels labels = {0};
    sr_status status = plot_labels_make(&labels, r->run, r->runs, r->labels, why);
    if (status == SR_OK) {
        t->stat_own =
            plot_custom_stat_unit(t->stat, r->run, r->runs, t->stat_unit, sizeof t->stat_unit);
        plot_labels_mark(&labels, t, r->run, r->labels[0] != 0);
        status = plot_scratch_create(&scratch, why);
    }
    if (status == SR_OK) status = draw(&from, r, &labels, why);
    plot_labels_free(&labels);
    if (r->keep) {
        plot_scratch_keep(&scratch);
        if (scratch.path[0]) fprintf(stderr, "statplot: kept %s\n", scratch.path);
    } else {
        plot_scratch_remove(&scratch);
    }
    return status;
}
