/* plot_report_answer.c -- the first screen of a report: a line for each run with its verdict, the
 * findings, the three figures that show them, and the differences between the runs. */
#include <math.h>
#include <string.h>

#include "analysis/runs/run_metrics.h"
#include "plot/report/plot_html.h"
#include "plot/report/plot_report.h"

enum { FIGURES = 3, FINDINGS = 6, ALL = 4, FEW = 2 };

/* -- which figures --------------------------------------------------------------------------- */

/* The figures that carry an answer. Findings come first, the weightiest before the others; then the
 * rows without a question, of every run. In the rows of a question, the first one that these runs
 * can fill is drawn. It has the options of the finding's own command if that draws this figure. */
typedef struct answer_figure {
    const char *question, *figure, *option, *value; /* option "": none */
    int runs; /* at most: the panels of more runs would be too small */
    const char *shows;
} answer_figure;

static const answer_figure carries[] = {
    {"divergence", "curves", "", "", ALL, "Did the loss fall?"},
    {"would-bn", "tiddepth", "", "", ALL, "Would running statistics represent the batches?"},
    {"inference", "modes", "", "", FEW, "What do running statistics cost in validation?"},
    {"inference", "tiddepth", "", "", ALL, "At which sites do running statistics differ?"},
    {"outliers", "layers", "stat", "dist_mu", 1, "When do single batches stray, and where?"},
    {"gradient", "layers", "stat", "g_mu_share", 1, "Which fraction of the gradient goes through?"},
    {"nu", "layers", "stat", "Gamma_max", 1, "Where does the estimate of nu grow?"},
    {"dead", "features", "quantity", "dead", FEW, "How many features have no variance?"},
    {"growth", "features", "quantity", "largest", FEW, "How large does a feature get?"},
    {"padding", "layers", "stat", "padded", 1, "How much of each batch is padding?"},
    {"rows", "layers", "stat", "rows", 1, "How many rows does a batch have?"},
    {"alike", "layers", "stat", "dist_mu_excess", 1, "How far are batches from random samples?"},
    {"alpha", "alpha", "", "", FEW, "Which weight would represent the batches best?"},
    {"momentum", "layers", "stat", "mu_moved", 1, "How far do the running values move?"},
    {"embedding", "fig6", "", "", ALL, "How many directions carry the words?"},
    {"", "modes", "", "", FEW, "What do running statistics cost in validation?"},
    {"", "tiddepth", "", "", ALL, "At which sites do running statistics differ?"},
    {"", "curves", "", "", ALL, "Did the loss fall?"},
    {"", "depth", "", "", FEW, "How does the power of the inputs grow with depth?"},
    {"", "results", "", "", ALL, "Which metrics did the runs reach?"},
    {"", "fig6", "", "", ALL, "How many directions carry the words?"},
};
enum { ROWS = sizeof carries / sizeof carries[0] };

/* A figure of the first screen as it was drawn. */
typedef struct drawn_figure {
    const answer_figure *of;
    char value[REPORT_WORD]; /* value of its option */
    int run;                 /* the first */
    char warning[1024];      /* warning against invalid comparisons in it */
} drawn_figure;

typedef struct gallery {
    drawn_figure drawn[FIGURES];
    int count;
} gallery;

/* "dist_sigma2" of "statplot layers --stat dist_sigma2"; else the row's own. */
static void choose_value(const answer_figure *of, const report_finding *found, char *value) {
    char begin[REPORT_WORD];
    const int length = snprintf(begin, sizeof begin, "statplot %s --%s ", of->figure, of->option);
    const bool same = found && of->option[0] && !strncmp(found->figure, begin, (size_t)length);
    snprintf(value, REPORT_WORD, "%s", same ? found->figure + length : of->value);
    value[strcspn(value, " ")] = 0;
}

static bool is_drawn(const gallery *g, const answer_figure *of, const char *value, int run) {
    for (int i = 0; i < g->count; i++) {
        const drawn_figure *d = &g->drawn[i];
        const bool same = strcmp(d->of->figure, of->figure) == 0 && strcmp(d->value, value) == 0;
        if (same && (of->runs > 1 || d->run == run)) return true;
    }
    return false;
}

static bool has_finding(const report *r, int run, const char *question) {
    for (int i = 0; i < r->findings; i++)
        if (r->finding[i].run == run && strcmp(r->finding[i].question, question) == 0) return true;
    return false;
}

/* The run, those with the same finding, then others: of its task, where the figure or the finding
 * is about one. Their number. */
static int choose_runs(const report *r, const plot_template *t, const answer_figure *of, int first,
                       int chosen[ALL]) {
    const bool finding = of->question[0] != 0;
    int count = 0, most = of->runs;
    if (t->most_runs && t->most_runs < most) most = t->most_runs;
    chosen[count++] = first;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < report_own(r) && count < most; i++) {
            const bool task = strcmp(r->request->run[i].task, r->request->run[first].task) == 0;
            const bool with = finding && has_finding(r, i, of->question);
            if (i != first && (task || (!finding && !t->one_task)) && with == (round == 0))
                chosen[count++] = i;
        }
    return count;
}

/* -- drawing them ---------------------------------------------------------------------------- */

static void write_command(report *r, const answer_figure *of, const char *value, const int *run,
                          int runs) {
    fprintf(r->page, "<code>statplot %s", of->figure);
    for (int i = 0; i < runs; i++) {
        fputc(' ', r->page);
        plot_html_path(r->page, r->request->run[run[i]].path);
    }
    if (of->option[0]) fprintf(r->page, " --%s ", of->option);
    plot_html_text(r->page, value);
    fputs("</code>", r->page);
}

static void write_figure(report *r, const plot_template *t, const drawn_figure *d,
                         const report_finding *found, const char *name, const int *run, int runs) {
    fprintf(r->page, "<figure><img src=\"%s\" alt=\"", name);
    plot_html_text(r->page, t->title);
    fputs("\"/>\n<figcaption><b>", r->page);
    plot_html_text(r->page, d->of->shows);
    fputs("</b> ", r->page);
    if (found) fprintf(r->page, "Finding: %s. ", d->of->question);
    write_command(r, d->of, d->value, run, runs);
    if (d->warning[0]) {
        fputs(" Note: ", r->page);
        plot_html_text(r->page, d->warning);
    }
    fputs("</figcaption></figure>\n", r->page);
}

/* The first one: the figure below has them all. */
static void keep_warning(void *context, const char *line) {
    drawn_figure *d = context;
    if (!d->warning[0]) snprintf(d->warning, sizeof d->warning, "%s.", line);
}

/* Not with the user's choices: those are for the figures below. */
static void prepare(report_drawing *w, plot_template *t, drawn_figure *d, const char *name) {
    *w = (report_drawing){
        .template = t,
        .name = name,
        .choice = PLOT_NO_CHOICE,
        .controls = {.title = "", .size = "4.1x2.9", .xrange = "", .yrange = "", .steps = ""}};
    w->controls.samples = "";
    w->warnings = (plot_warnings){keep_warning, d};
    if (strcmp(d->of->option, "stat") == 0) {
        w->choice.stat = d->value;
    } else if (d->of->option[0]) {
        w->choice.word[0].name = d->of->option;
        w->choice.word[0].value = d->value;
        w->choice.words = 1;
    }
}

/* Leaves out the runs that an analysis rejects. A figure about a finding needs the finding's run,
 * the first. *runs: those that were drawn. */
static sr_status draw_accepted(report *r, report_drawing *w, int run[ALL], bool needs_first,
                               sr_failure *why) {
    for (;;) {
        sr_failure one = {0}, refusal[ALL] = {{0}};
        int kept = 0;
        w->run = run;
        w->refusal = refusal;
        const sr_status status = report_draw(r, w, &one);
        if (status == SR_OK) return SR_OK;
        const bool lost = needs_first && refusal[0].status != SR_OK;
        for (int i = 0; i < w->runs; i++)
            if (refusal[i].status == SR_OK) run[kept++] = run[i];
        if (report_is_fatal(status) || kept == w->runs || !kept || lost) return *why = one, status;
        w->runs = kept;
    }
}

/* A figure that these runs cannot fill is no failure. */
static sr_status try_figure(report *r, gallery *g, const answer_figure *of,
                            const report_finding *found, int first, sr_failure *why) {
    char name[32];
    int run[ALL];
    plot_template t;
    report_drawing w;
    drawn_figure *d = &g->drawn[g->count];
    sr_failure one = {0};
    *d = (drawn_figure){.of = of, .run = first};
    choose_value(of, found, d->value);
    if (is_drawn(g, of, d->value, first)) return SR_OK;
    sr_status status = plot_template_find(of->figure, &t, &one);
    if (status != SR_OK) return report_is_fatal(status) ? (*why = one, status) : SR_OK;
    snprintf(name, sizeof name, "answer.%d.svg", g->count + 1);
    prepare(&w, &t, d, name);
    w.runs = choose_runs(r, &t, of, first, run);
    status = draw_accepted(r, &w, run, found != NULL, &one);
    if (status == SR_OK) {
        write_figure(r, &t, d, found, name, run, w.runs);
        g->count++;
    }
    plot_template_free(&t);
    if (report_is_fatal(status)) return *why = one, status;
    return SR_OK;
}

/* The rows of a question, until one is drawn. */
static sr_status try_question(report *r, gallery *g, const report_finding *found, sr_failure *why) {
    const int before = g->count;
    sr_status status = SR_OK;
    for (int i = 0; i < ROWS && status == SR_OK && g->count == before; i++)
        if (strcmp(carries[i].question, found->question) == 0)
            status = try_figure(r, g, &carries[i], found, found->run, why);
    return status;
}

/* The first run of the task that most runs have. */
static int first_of_most(const report *r) {
    int best = 0, most = 0;
    for (int i = 0; i < report_own(r); i++) {
        int count = 0;
        for (int k = 0; k < report_own(r); k++)
            count += strcmp(r->request->run[i].task, r->request->run[k].task) == 0;
        if (count > most) best = i, most = count;
    }
    return best;
}

static sr_status write_figures(report *r, sr_failure *why) {
    gallery g = {.count = 0};
    sr_status status = SR_OK;
    fputs("<div class=\"answer\">\n", r->page);
    for (int i = 0; i < r->findings && g.count < FIGURES && status == SR_OK; i++)
        status = try_question(r, &g, &r->finding[i], why);
    for (int i = 0; i < ROWS && g.count < FIGURES && status == SR_OK; i++)
        if (!carries[i].question[0])
            status = try_figure(r, &g, &carries[i], NULL, first_of_most(r), why);
    fputs("</div>\n", r->page);
    return status;
}

/* -- runs and findings ----------------------------------------------------------------------- */

static void write_cell(report *r, const char *class, const char *text) {
    plot_html_cell(r->page, "td", class, text && text[0] ? text : "?");
}

/* "valid_loss 3.214 nats": the last value of the metric that the run declares first. */
static void final_metric(const plot_run *run, char *text, size_t size) {
    const sr_run_metric *m = metric_named(run->file, METRIC_LEADING, strlen(METRIC_LEADING));
    double value = NAN;
    snprintf(text, size, "-");
    if (!m || metric_read_last(run->file, m->name, &value, NULL) != SR_OK || !isfinite(value))
        return;
    snprintf(text, size, "%s %.4g%s%s", m->name, value, strcmp(m->unit, "1") ? " " : "",
             strcmp(m->unit, "1") ? m->unit : "");
}

static const char *const severities[] = {"open", "minor", "notable", "severe"};

static const char *verdict_class(const report_verdict *v) {
    return !v->weight && strncmp(v->conclusion, "HEALTHY", 7) == 0 ? "good" : severities[v->weight];
}

static void write_state(report *r, const sr_run_info *info) {
    const bool running = strcmp(info->status, "running") == 0;
    const bool reason = info->reason && info->reason[0] && strcmp(info->status, "complete") != 0;
    char text[256];
    snprintf(text, sizeof text, "%s%s%s", running ? "unfinished" : info->status, reason ? ": " : "",
             reason ? info->reason : "");
    write_cell(r, "", text);
}

static void write_run(report *r, int i) {
    char text[256];
    const plot_run *run = &r->request->run[i];
    const sr_run_info *info = sr_run_get_info(run->file);
    const report_verdict *v = &r->verdict[i];
    const char *name = report_run_name(r, i);
    fprintf(r->page, "<tr><th scope=\"row\"%s><a href=\"#report-run-%d\">",
            plot_html_has_long_word(name) ? " class=\"long\"" : "", i + 1);
    plot_html_text(r->page, name);
    fputs("</a></th>", r->page);
    snprintf(text, sizeof text, "%s%s%s", info->task ? info->task : "",
             info->task && info->task[0] && run->text[RUN_DATA][0] ? ", " : "",
             run->text[RUN_DATA]);
    write_cell(r, "", text);
    write_cell(r, "", run->text[RUN_MODEL]);
    write_cell(r, "", run->text[RUN_NORM]);
    snprintf(text, sizeof text, "%lld", (long long)info->steps);
    write_cell(r, "n", text);
    write_state(r, info);
    final_metric(run, text, sizeof text);
    write_cell(r, "", text);
    if (v->conclusion[0])
        write_cell(r, verdict_class(v), v->conclusion);
    else
        write_cell(r, "open", v->failure.text[0] ? v->failure.text : "no verdict");
    fputs("</tr>\n", r->page);
}

static void write_runs(report *r) {
    fputs("<div class=\"box\"><table "
          "class=\"runs\"><thead><tr><th>run</th><th>task</th><th>model</th><th>norm</th>"
          "<th>steps</th><th>state</th><th>final metric</th><th>verdict</th></tr></thead>\n"
          "<tbody>\n",
          r->page);
    for (int i = 0; i < report_own(r); i++) write_run(r, i);
    fputs("</tbody></table></div>\n", r->page);
    report_others(r);
}

static void write_finding(report *r, const report_finding *f) {
    fprintf(r->page, "<li><b class=\"%s\">%s</b> <a href=\"#diagnosis-%d\">", severities[f->weight],
            severities[f->weight], f->run + 1);
    plot_html_text(r->page, f->question);
    fputs("</a> in ", r->page);
    plot_html_text(r->page, report_run_name(r, f->run));
    plot_html_finding(r->page, f->statistic, f->value, f->low, f->high, f->limit, f->site);
    fputs("</li>\n", r->page);
}

static void write_findings(report *r) {
    if (!r->findings) return;
    fputs("<ol class=\"findings\">\n", r->page);
    for (int i = 0; i < r->findings && i < FINDINGS; i++) write_finding(r, &r->finding[i]);
    fputs("</ol>\n", r->page);
    if (r->findings > FINDINGS)
        fprintf(r->page,
                "<p class=\"missing\">%d more: <a href=\"#q-healthy\">Is it healthy?</a>"
                "</p>\n",
                r->findings - FINDINGS);
}

sr_status report_answer(report *r, sr_failure *why) {
    write_runs(r);
    write_findings(r);
    if (r->interactive)
        fputs("<p><a href=\"" REPORT_INTERACTIVE
              "\">Interactive panels</a>: zoom, values under the "
              "pointer, more sites and statistics. One file, which needs no network.</p>\n",
              r->page);
    sr_status status = write_figures(r, why);
    if (r->request->runs < 2 || status != SR_OK) return status;
    report_title(r, 2, "report-differences", "What differs between the runs");
    fputs("<div class=\"box\">\n", r->page);
    report_differences(r, false);
    fputs("</div>\n", r->page);
    return status;
}
