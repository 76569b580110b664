/* plot_report_figures.c -- the part of a figure: once for each run, once, for each task, or with
   all runs. */
#include <stdlib.h>
#include <string.h>

#include "plot/labels/plot_comparable.h"
#include "plot/labels/plot_custom_stat.h"
#include "plot/plot_command.h"
#include "plot/plot_figure.h"
#include "plot/report/plot_html.h"
#include "plot/report/plot_report.h"
#include "plot/template/plot_controls.h"
#include "plot/template/plot_sizes.h"
#include "plot/template/plot_template.h"

/* Runs that a figure has not shown yet, by their number in the report. */
typedef struct waiting {
    int *run, count;
    int room;            /* runs that may still be shown */
    sr_failure *refusal; /* [count at first] of the last attempt */
} waiting;

static void waiting_remove(waiting *w, int first, int count) {
    memmove(w->run + first, w->run + first + count,
            (size_t)(w->count - first - count) * sizeof *w->run);
    w->count -= count;
}

/* A statistic of steps, a vector of sites (averaged ones: mu, psi2_B), or a scalar of sites. */
typedef enum stat_kind { OF_STEPS, VECTOR_OF_SITES, SCALAR_OF_SITES } stat_kind;

static stat_kind kind_of(const report *r, const char *stat) {
    if (plot_is_of_steps(stat, r->request->run, r->request->runs)) return OF_STEPS;
    return plot_is_vector(stat) ? VECTOR_OF_SITES : SCALAR_OF_SITES;
}

/* The figure uses the parts of the choice that it can: a statistic of the kind of its own one. */
static plot_choice choice_for(const report *r, const plot_template *t, plot_choice c) {
    if (!t->site[0]) c.site = "";
    if (!t->stat[0] || (c.stat[0] && kind_of(r, c.stat) != kind_of(r, t->stat))) c.stat = "";
    if (!t->metric[0]) c.metric = "";
    if (!t->step[0]) c.step = "";
    if (!t->prints) c.published = false, c.published_tables = "";
    int words = 0;
    for (int i = 0; i < c.words; i++)
        if (plot_placeholders_take(t, c.word[i].name, c.word[i].value)) c.word[words++] = c.word[i];
    c.words = words;
    return c;
}

static plot_controls controls_for(const plot_template *t, plot_controls c) {
    if (!t->takes_control[PLOT_X]) c.xrange = "";
    if (!t->takes_control[PLOT_Y]) c.yrange = "";
    if (!t->takes_control[PLOT_SCALE]) c.log = c.linear = false;
    if (!t->takes_control[PLOT_SMOOTH]) c.smooth = 0;
    if (!t->takes_control[PLOT_STEPS]) c.steps = "";
    return c;
}

/* The labels of these runs, as for --labels, when the user gave any; text is large enough for
 * them. */
static void labels_for(const report *r, const int *run, int runs, char *text) {
    for (int i = 0; r->request->labels[0] && i < runs; i++) {
        if (i) *text++ = ',';
        for (const char *c = r->labels.label[run[i]]; *c; *text++ = *c++)
            if (*c == ',' || *c == '\\') *text++ = '\\';
    }
    *text = 0;
}

/* Beside the figure, as a reader of the page sees nothing else. */
static void write_warning(void *context, const char *line) {
    fputs("<p class=\"missing\">Note: ", context);
    plot_html_text(context, line);
    fputs("</p>\n", context);
}

sr_status report_draw(report *r, const report_drawing *d, sr_failure *why) {
    char output[2 * PLOT_PATH], earlier[2 * PLOT_PATH];
    const size_t capacity = 2 * (size_t)d->runs * sizeof *r->labels.label + 1;
    plot_run *chosen = calloc((size_t)d->runs, sizeof *chosen);
    char *labels = malloc(capacity);
    sr_status status = chosen && labels ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) {
        snprintf(output, sizeof output, "%s/%s", r->folder, d->name);
        snprintf(earlier, sizeof earlier, "%s/%s", r->earlier, d->name);
        labels_for(r, d->run, d->runs, labels);
        for (int i = 0; i < d->runs; i++) chosen[i] = r->request->run[d->run[i]];
        plot_request request = *r->request;
        request.run = chosen;
        request.runs = d->runs;
        request.refusal = d->refusal;
        plot_table_cache kept = r->kept;
        kept.run = chosen, kept.runs = d->runs;
        request.kept = &kept;
        request.warnings = d->warnings;
        request.output = output;
        request.earlier = earlier;
        request.labels = labels;
        request.choice = d->choice;
        request.controls = d->controls;
        status = plot_figure_choose(d->template, &request, d->runs, why);
        if (status == SR_OK) status = plot_figure(d->template, &request, why);
    }
    free(chosen);
    free(labels);
    return status;
}

/* With those of the user's options that the figure takes. */
static sr_status draw_runs(report *r, plot_template *t, const int *run, int runs, const char *name,
                           sr_failure *refusal, sr_failure *why) {
    return report_draw(r,
                       &(report_drawing){.template = t,
                                         .run = run,
                                         .runs = runs,
                                         .name = name,
                                         .choice = choice_for(r, t, r->request->choice),
                                         .controls = controls_for(t, r->request->controls),
                                         .warnings = {write_warning, r->page},
                                         .refusal = refusal},
                       why);
}

/* Figures of one column of a paper would be as wide as the page with letters twice as large. */
static void write_image(report *r, const plot_template *t, const char *name) {
    fprintf(r->page, "<figure><img%s src=\"", t->width < 5 ? " class=\"narrow\"" : "");
    plot_html_text(r->page, name);
    fputs("\" alt=\"", r->page);
    plot_html_text(r->page, t->title);
    fputs("\"/></figure>\n", r->page);
    r->drawn++;
}

/* Writes the first reason beside the figure, or at the end of the page without a figure. */
static void write_lacking(report *r, FILE *notes, const sr_failure *one) {
    if (!r->lacking[0])
        snprintf(r->lacking, sizeof r->lacking, "%.*s", (int)strcspn(one->text, ";"), one->text);
    report_missing(notes, "Not drawn", one);
}

/* Removes the rejected runs from the first `runs` waiting runs. False if too few are left, more
 * than request->each were rejected, or none was: then `one` has the reason. */
static bool leave_out(const report *r, const plot_template *t, waiting *w, int runs, int *refused,
                      sr_failure *one, FILE *notes) {
    bool any = false;
    for (int i = 0, at = 0; i < runs; i++) {
        if (w->refusal[i].status == SR_OK) {
            at++;
            continue;
        }
        any = true;
        if (w->count <= t->least_runs || (*refused)++ == r->request->each)
            return *one = w->refusal[i], false;
        report_missing(notes, "Left out", &w->refusal[i]);
        waiting_remove(w, at, 1);
    }
    return any;
}

/* Draws as many of the waiting runs as the figure takes. The next ones replace those that an
 * analysis rejects. number: appended to the file's name, 0 for none. */
static sr_status draw_next(report *r, plot_template *t, waiting *w, int number, FILE *notes,
                           sr_failure *why) {
    char name[PLOT_PATH + 32], part[16] = "";
    if (number) snprintf(part, sizeof part, ".%d", number);
    snprintf(name, sizeof name, "%s%s.svg", t->name, part);
    for (int refused = 0;;) {
        sr_failure one = {0};
        int runs = w->count < w->room ? w->count : w->room;
        if (t->most_runs && t->most_runs < runs) runs = t->most_runs;
        memset(w->refusal, 0, (size_t)runs * sizeof *w->refusal);
        const sr_status status = draw_runs(r, t, w->run, runs, name, w->refusal, &one);
        if (report_is_fatal(status)) return *why = one, status;
        if (status == SR_OK) {
            write_image(r, t, name);
            w->room -= runs;
            return waiting_remove(w, 0, runs), SR_OK;
        }
        if (!leave_out(r, t, w, runs, &refused, &one, notes)) {
            write_lacking(r, notes, &one);
            return w->count = 0, SR_OK;
        }
    }
}

/* The figure of one run below the run's name; without a figure, a line with the reason. */
static sr_status draw_one(report *r, plot_template *t, int run, sr_failure *why) {
    char *text = NULL;
    size_t size = 0;
    const int before = r->drawn;
    sr_failure refusal;
    waiting w = {&run, 1, 1, &refusal};
    FILE *page = r->page, *part = open_memstream(&text, &size);
    if (!part) return sr_fail(why, SR_MEMORY, "out of memory");
    r->page = part;
    const int number = run + 1;
    sr_status status = draw_next(r, t, &w, number, part, why);
    r->page = page;
    if (fclose(part) != 0 && status == SR_OK) status = sr_fail(why, SR_MEMORY, "out of memory");
    if (r->drawn > before) report_run_title(r, number - 1);
    if (text) fputs(text, page);
    free(text);
    return status;
}

/* A figure of one run, once for each of the first runs. */
static sr_status draw_each(report *r, plot_template *t, sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; i < report_own(r) && status == SR_OK; i++) status = draw_one(r, t, i, why);
    report_others(r);
    return status;
}

/* A figure of a fixed number of runs: with the first of one task that it takes, once. */
static sr_status draw_once(report *r, plot_template *t, waiting *w, FILE *notes, sr_failure *why) {
    const int before = r->drawn, runs = r->request->runs;
    sr_status status = SR_OK;
    for (int i = 0; i < runs && status == SR_OK && r->drawn == before; i++) {
        bool told = false;
        w->count = 0;
        for (int k = 0; k < runs; k++) {
            if (strcmp(r->request->run[i].task, r->request->run[k].task) != 0) continue;
            told = told || k < i;
            w->run[w->count++] = k;
        }
        if (!told && w->count >= t->least_runs) status = draw_next(r, t, w, 0, notes, why);
    }
    if (status != SR_OK || r->drawn > before) return status;
    sr_failure one = {0};
    sr_fail(&one, SR_USAGE, "takes %d runs of one task", t->least_runs);
    write_lacking(r, notes, &one);
    return SR_OK;
}

/* The waiting runs in one drawing, or in as many as needed, each run once. number: at the end of
 * the last file's name. */
static sr_status draw_waiting(report *r, plot_template *t, waiting *w, int *number, FILE *notes,
                              sr_failure *why) {
    sr_status status = SR_OK;
    for (bool more = true; more && status == SR_OK;) {
        ++*number;
        status = draw_next(r, t, w, *number > 1 ? *number : 0, notes, why);
        more = t->most_runs > t->least_runs && w->count && w->count >= t->least_runs &&
               w->room >= t->least_runs;
    }
    if (status == SR_OK && w->count && w->room < t->least_runs)
        fprintf(notes, "<p class=\"missing\">Left out: %d more run%s (--max-runs %d)</p>\n",
                w->count, w->count > 1 ? "s" : "", r->request->each);
    return status;
}

/* The runs of the task of run `of`; none when an earlier run has it too. */
static void take_task(const report *r, int of, waiting *w, int room) {
    w->count = 0;
    w->room = room;
    for (int i = 0; i < r->request->runs; i++) {
        if (strcmp(r->request->run[i].task, r->request->run[of].task) != 0) continue;
        if (i < of) return;
        w->run[w->count++] = i;
    }
}

static void write_least(report *r, const plot_template *t) {
    sr_failure one = {0};
    sr_fail(&one, SR_USAGE, "takes at least %d runs of one task", t->least_runs);
    write_lacking(r, r->page, &one);
}

/* Losses of images and of text have nothing to do on one axis: a drawing for each task. */
static sr_status draw_tasks(report *r, plot_template *t, waiting *w, FILE *notes, sr_failure *why) {
    sr_status status = SR_OK;
    const int room = w->room;
    int number = 0;
    for (int i = 0; i < r->request->runs && status == SR_OK; i++) {
        take_task(r, i, w, room);
        if (!w->count) continue;
        if (w->count < r->request->runs) {
            fputs("<h4>", r->page);
            plot_html_text(r->page, r->request->run[i].task);
            fputs("</h4>\n", r->page);
        }
        if (w->count >= t->least_runs)
            status = draw_waiting(r, t, w, &number, notes, why);
        else
            write_least(r, t);
    }
    return status;
}

/* A run with its own line in a figure counts as one with its own figure. Points of an analysis of
 * all runs do not count, unless few runs fit into the figure: 63 drawings show less than one. */
static int room_of(const report *r, const plot_template *t) {
    if (t->most_runs || t->lines_of_runs) return r->request->each;
    for (int i = 0; i < t->tables; i++)
        if (plot_table_of_each(&t->table[i])) return r->request->each;
    return r->request->runs;
}

sr_status report_figure(report *r, plot_template *t, sr_failure *why) {
    char *text = NULL;
    size_t size = 0;
    int number = 0;
    report_title(r, 3, t->name, t->name);
    fputs("<p>", r->page);
    plot_html_text(r->page, t->title);
    fputs("</p>\n", r->page);
    const int runs = r->request->runs, room = room_of(r, t);
    waiting w = {calloc((size_t)runs, sizeof *w.run), runs,
                 room < t->least_runs ? t->least_runs : room,
                 calloc((size_t)runs, sizeof *w.refusal)};
    FILE *notes = open_memstream(&text, &size);
    sr_status status =
        w.run && w.refusal && notes ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; w.run && i < w.count; i++) w.run[i] = i;
    if (status == SR_OK && t->most_runs == 1 && w.count > 1)
        status = draw_each(r, t, why);
    else if (status == SR_OK && t->most_runs > 1 && t->most_runs == t->least_runs)
        status = draw_once(r, t, &w, notes, why);
    else if (status == SR_OK && t->one_task)
        status = draw_tasks(r, t, &w, notes, why);
    else if (status == SR_OK)
        status = draw_waiting(r, t, &w, &number, notes, why);
    if (notes && fclose(notes) != 0 && status == SR_OK)
        status = sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) fputs(text, r->page);
    free(text);
    free(w.run);
    free(w.refusal);
    return status;
}
