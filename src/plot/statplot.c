/* statplot: figures from run files. Runs the analyses that a template names, reduces their tables
 * to the resolution of a page, and lets gnuplot draw. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options/options.h"
#include "base/program/tool.h"
#include "plot/labels/plot_runs.h"
#include "plot/plot_figure.h"
#include "plot/plot_layout.h"
#include "plot/plot_process.h"
#include "plot/template/plot_controls.h"
#include "plot/template/plot_scratch.h"
#include "plot/template/plot_sizes.h"
#include "plot/template/plot_template.h"
#include "statrec/runfile.h"

enum { CHOICES = 32 }; /* choices of all figures */
#define EACH "24"      /* runs of a report with their own figures */

typedef struct settings {
    option_text output, labels, title, size, site, stat, metric, step, published_table, xrange,
        yrange, steps;
    bool keep, force, interactive, published, log, linear;
    int64_t smooth, each;
    option_text word[CHOICES];
} settings;

#define AT(field) offsetof(settings, field)
#define DATA      "Data, for figures that take these options"
#define PAPERS    "The papers' values, for figures that take these options"
#define AXES      "Axes and curves, for figures that take these options"
static const option rows[] = {
    {.group = "Output",
     .key = "output",
     .letter = 'o',
     .type = OPTION_TEXT,
     .offset = offsetof(settings, output),
     .default_text = "",
     .unit = "",
     .help = "file to write, .pdf, .svg or .png, of a table .tex, .md or .tsv; - prints on the "
             "terminal; default FIGURE.pdf or TABLE.tex",
     .value = "FILE"},
    TEXT_OPTION(
        "Output", "labels", AT(labels), "",
        "legend labels of the runs, separated by commas (\\, for a comma); default: the settings "
        "that differ"),
    TEXT_OPTION("Output", "title", AT(title), "", "text above the figure"),
    TEXT_OPTION(
        "Output", "size", AT(size), "",
        "WIDTHxHEIGHT in inches, as 3.25x2.5, or the text width of a venue: icml, acl, springer "
        "(a column), icml-wide, acl-wide, springer-wide (both), neurips, iclr"),
    FLAG_OPTION("Output", "force", AT(force), "no",
                "report: replace an index.html that no report wrote"),
    FLAG_OPTION("Output", "interactive", AT(interactive), "no",
                "report: add the panels of statrec view as one file, interactive.html"),
    INT_OPTION("Output", "max-runs", AT(each), EACH, 1, 1000000, "",
               "report: draw separate figures, tables and curves for the first N runs"),
    FLAG_OPTION("Output", "keep", AT(keep), "no",
                "keep and name the directory of tables, data files and gnuplot script"),
    TEXT_OPTION(
        DATA, "site", AT(site), "",
        "sites, separated by commas: globs, first, middle, last, last-bn (the last with batch "
        "statistics except final norms); default: the figure's",
        .value = "SITE,..."),
    TEXT_OPTION(DATA, "stat", AT(stat), "", "statistic or custom scalar; default: the figure's",
                .value = "STAT"),
    TEXT_OPTION(DATA, "metric", AT(metric), "", "name below /evals; default: the figure's",
                .value = "METRIC"),
    TEXT_OPTION(DATA, "step", AT(step), "",
                "recorded steps, separated by commas: numbers, first, middle, last; default: the "
                "figure's",
                .value = "STEP,..."),
    TEXT_OPTION(AXES, "xrange", AT(xrange), "", "FROM:TO, the ends of the x axes"),
    TEXT_OPTION(AXES, "yrange", AT(yrange), "",
                "FROM:TO, the ends of the y axes, or of the colours"),
    FLAG_OPTION(AXES, "log", AT(log), "no", "logarithmic y axes"),
    FLAG_OPTION(AXES, "linear", AT(linear), "no", "linear y axes"),
    INT_OPTION(AXES, "smooth", AT(smooth), "0", 3, 999, "buckets",
               "running medians over N buckets of training, N odd; 0: none"),
    TEXT_OPTION(AXES, "steps", AT(steps), "", "FROM:TO, only these steps of the runs"),
    FLAG_OPTION(PAPERS, "published", AT(published), "no", "draw them beside the measured ones"),
    TEXT_OPTION(PAPERS, "published-table", AT(published_table), "",
                "draw values of these tables in plots/published.tsv: globs, separated by commas",
                .value = "PUBLISHED,..."),
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* -- options that figures declare ------------------------------------------------------------ */

/* The rows above and one for every choice. Choices of the requested figure have its words and its
 * default. Choices of other figures are there to distinguish them from misspellings. */
typedef struct choices {
    option row[ROWS + CHOICES];
    struct {
        plot_name name;
        char words[2 * PLOT_PART], help[PLOT_PART], default_text[PLOT_PART];
    } of[CHOICES];
    int count, own; /* the first `own` are the figure's */
} choices;

static option_table choices_table(const choices *c) {
    return (option_table){c->row, ROWS + c->count};
}

static int find_choice(const choices *c, const char *name) {
    for (int i = 0; i < c->count; i++)
        if (strcmp(c->of[i].name, name) == 0) return i;
    return -1;
}

static void add_choice(choices *c, const plot_template *t, const plot_word *w, bool own) {
    if (c->count == CHOICES) return;
    const int i = c->count++;
    snprintf(c->of[i].name, PLOT_NAME, "%s", w->name);
    snprintf(c->of[i].words, sizeof c->of[i].words, "%s", w->texts);
    snprintf(c->of[i].default_text, PLOT_PART, "%s", own ? w->value : "");
    snprintf(c->of[i].help, PLOT_PART, "%s%.60s%s%.180s", own ? "" : "of ", own ? "" : t->name,
             own ? "" : ": ", w->help[0] ? w->help : "see the figure's template");
    c->row[ROWS + i] = (option)CHOICE_OPTION(
        own ? "Choices of this figure" : "Choices of some figures", c->of[i].name,
        offsetof(settings, word) + (size_t)i * sizeof(option_text), c->of[i].default_text,
        c->of[i].words, c->of[i].help);
}

/* Words of a choice that another figure has too. */
static void merge_words(choices *c, int i, const plot_word *w) {
    char *words = c->of[i].words, part[PLOT_PART + 2], all[2 * PLOT_PART + 2];
    for (const char *at = w->texts; *at; at += strcspn(at, "|"), at += *at == '|') {
        snprintf(part, sizeof part, "|%.*s|", (int)strcspn(at, "|"), at);
        snprintf(all, sizeof all, "|%s|", words);
        const size_t used = strlen(words), more = strlen(part) - 1;
        if (!strstr(all, part) && used + more < sizeof c->of[i].words)
            snprintf(words + used, sizeof c->of[i].words - used, "%.*s", (int)more, part);
    }
}

static void add_choices(choices *c, const plot_template *t, bool own) {
    for (int k = 0; k < t->words; k++) {
        const int i = find_choice(c, t->word[k].name);
        if (t->word[k].choice != k || (i >= 0 && i < c->own)) continue;
        if (i < 0)
            add_choice(c, t, &t->word[k], own);
        else
            merge_words(c, i, &t->word[k]);
    }
    if (own) c->own = c->count;
}

static sr_status add_others(plot_template *t, void *self, sr_failure *why) {
    (void)why;
    add_choices(self, t, false);
    return SR_OK;
}

/* figure: NULL, or the template whose choices come first. */
static void choices_make(choices *c, const plot_template *figure) {
    sr_failure ignored = {0}; /* drawing reports faults of the templates */
    *c = (choices){.count = 0};
    memcpy(c->row, rows, sizeof rows);
    if (figure) add_choices(c, figure, true);
    plot_template_each(add_others, c, &ignored);
}

/* Whether the figure (NULL: a table) takes one of the rows that all figures share. */
static bool takes_row(const plot_template *t, const char *key) {
    static const struct {
        const char *key;
        plot_control control;
    } of[] = {{"xrange", PLOT_X},     {"yrange", PLOT_Y},      {"log", PLOT_SCALE},
              {"linear", PLOT_SCALE}, {"smooth", PLOT_SMOOTH}, {"steps", PLOT_STEPS}};
    if (strcmp(key, "output") == 0 || strcmp(key, "keep") == 0) return true;
    if (!t || strcmp(key, "force") == 0 || strcmp(key, "max-runs") == 0) return false;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        if (strcmp(key, of[i].key) == 0) return t->takes_control[of[i].control];
    if (strcmp(key, "site") == 0) return t->site[0];
    if (strcmp(key, "stat") == 0) return t->stat[0];
    if (strcmp(key, "metric") == 0) return t->metric[0];
    if (strcmp(key, "step") == 0) return t->step[0];
    if (strncmp(key, "published", 9) == 0) return t->prints > 0;
    return true;
}

/* Keeps the options that the figure takes: its help lists nothing that it rejects. */
static void keep_own(choices *c, const plot_template *t) {
    int kept = 0;
    for (int i = 0; i < ROWS + (t ? c->own : 0); i++)
        if (i >= ROWS || takes_row(t, c->row[i].key)) c->row[kept++] = c->row[i];
    c->count = kept - ROWS;
}

static void choices_take(const choices *c, const settings *s, plot_choice *to) {
    for (int i = 0; i < c->count && to->words < PLOT_CHOICES; i++) {
        if (!s->word[i][0]) continue;
        to->word[to->words].name = c->of[i].name;
        to->word[to->words++].value = s->word[i];
    }
}

/* The first argument that is no option, nor an option's value: options that are not in the table
 * are choices, which have one. NULL without any. */
static const char *first_argument(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (word[0] != '-' || !word[1]) return word;
        if (strcmp(word, "--") == 0) return i + 1 < argc ? argv[i + 1] : NULL;
        bool flag = strncmp(word, "--no-", 5) == 0 || strcmp(word, "--help") == 0 ||
                    strcmp(word, "-h") == 0 || strchr(word, '=') || (word[1] != '-' && word[2]);
        for (int k = 0; k < ROWS; k++)
            flag = flag || (rows[k].type == OPTION_FLAG && strcmp(word + 2, rows[k].key) == 0);
        if (!flag) i++;
    }
    return NULL;
}

/* False when it is no figure. */
static bool find_figure(const char *name, plot_template *t) {
    sr_failure ignored = {0};
    return name && plot_template_find(name, t, &ignored) == SR_OK;
}

/* -- help and running ------------------------------------------------------------------------ */

static void print_general_help(void) {
    printf(
        "usage: statplot FIGURE [RUN.h5...] [-o OUT.pdf|OUT.svg|OUT.png|-] [--keep]\n"
        "       statplot TABLE [RUN.h5...] [-o OUT.tex|OUT.md|OUT.tsv|-]\n"
        "       statplot report RUN.h5... -o DIRECTORY\n"
        "       statplot list\n\n"
        "Draws a figure from run files. FIGURE is a name of `statplot list` or the path of your\n"
        "own gnuplot template, whose first lines name its analyses. TABLE is a result table of a\n"
        "paper: measured values beside printed ones, as stat-table --layout prints them. Without\n"
        "run files a figure shows sample runs. `report` draws every figure that the runs allow,\n"
        "and a page index.html with them. `statplot FIGURE --help` lists the options of one\n"
        "figure.\n\n");
}

static void print_figure_help(const plot_template *t) {
    char takes[2 * PLOT_PATH];
    plot_template_takes(t, takes, sizeof takes);
    printf("usage: statplot %s %s [-o OUT.pdf|OUT.svg|OUT.png|-] [--keep]\n\n%s.\n", t->name, takes,
           t->title);
    if (t->samples[0]) printf("Without run files: the sample runs %s.\n", t->samples);
    if (t->site[0]) printf("--site: %s unless given.\n", t->site);
    if (t->stat[0]) printf("--stat: %s unless given.\n", t->stat);
    if (t->metric[0]) printf("--metric: %s unless given.\n", t->metric);
    if (t->step[0]) printf("--step: %s unless given.\n", t->step);
    putchar('\n');
}

static void print_layout_help(const plot_layout *l) {
    printf("usage: statplot %s [RUN.h5...] [-o OUT.tex|OUT.md|OUT.tsv|-] [--keep]\n\n%s.\n",
           l->name, l->title);
    if (l->samples[0]) printf("Without run files: the sample runs %s.\n", l->samples);
    putchar('\n');
}

static void print_help(int argc, char **argv) {
    plot_template t;
    plot_layout l;
    choices c;
    const char *name = first_argument(argc, argv);
    const bool table = name && plot_layout_find(name, &l, NULL),
               figure = !table && find_figure(name, &t);
    choices_make(&c, figure ? &t : NULL);
    if (figure)
        print_figure_help(&t);
    else if (table)
        print_layout_help(&l);
    else
        print_general_help();
    if (figure || table) keep_own(&c, figure ? &t : NULL);
    if (figure) plot_template_free(&t);
    options_help(choices_table(&c), stdout);
    printf(
        "\nEnvironment: STATREC_PLOTS and STATREC_SAMPLES, directories of templates and of sample\n"
        "runs to search first.\n");
}

/* The analyses are part of this program: their processes load nothing, and find the runs open. */
#define ANALYSES(DO)                                                                               \
    DO(alpha)                                                                                      \
    DO(amgm)                                                                                       \
    DO(batch)                                                                                      \
    DO(batchmix)                                                                                   \
    DO(compare)                                                                                    \
    DO(condition)                                                                                  \
    DO(curve)                                                                                      \
    DO(depth)                                                                                      \
    DO(distance)                                                                                   \
    DO(features)                                                                                   \
    DO(gamma)                                                                                      \
    DO(gap)                                                                                        \
    DO(gradnorm)                                                                                   \
    DO(lngrad)                                                                                     \
    DO(outlier)                                                                                    \
    DO(pairs)                                                                                      \
    DO(scalar)                                                                                     \
    DO(svd)                                                                                        \
    DO(table)                                                                                      \
    DO(tid)
#define DECLARE(name) int stat_##name##_main(int argc, char **argv);
#define LINK(name)    {"stat-" #name, stat_##name##_main},
ANALYSES(DECLARE)
static const plot_program analyses[] = {ANALYSES(LINK)};

/* Whether a file exists in none of the formats that statplot writes: PDF, PNG, gnuplot's SVG,
 * stat-table's tables. */
static bool is_other_file(const char *path) {
    char first[1024] = "";
    FILE *in = fopen(path, "r");
    if (!in) return errno != ENOENT;
    const size_t size = fread(first, 1, sizeof first - 1, in);
    fclose(in);
    return memcmp(first, "%PDF-", 5) != 0 && memcmp(first, "\x89PNG", 4) != 0 &&
           (size == 0 || (!strstr(first, "GNUPLOT") && !strstr(first, "program: stat-table ")));
}

/* Prints on standard output, as other programs do: a name that the user did not give, and the loss
 * of a file that no call of statplot wrote. */
static void tell_written(const char *output, bool named, bool replaces) {
    if (*output && strcmp(output, "-") != 0 && (!named || replaces))
        printf("%s: written%s\n", output, replaces ? ", in place of another file" : "");
}

/* Draws a report, a table or a figure; names are looked up in this order. The runs are opened here
 * and nowhere else. */
static sr_status draw(const char *name, char **paths, int count, plot_request *request,
                      sr_failure *why) {
    plot_template t;
    plot_layout l;
    plot_samples samples = {.runs = 0};
    plot_runs runs = {.run = NULL};
    const bool report = strcmp(name, "report") == 0;
    sr_failure unread = {0};
    const bool table = !report && plot_layout_find(name, &l, &unread), figure = !report && !table;
    sr_status status = figure ? plot_template_find(name, &t, why) : SR_OK;
    if (status == SR_USAGE && unread.status != SR_OK) *why = unread, status = unread.status;
    if (status != SR_OK) return status;
    if (count == 0 && !report) {
        const char *names = request->controls.samples = table ? l.samples : t.samples;
        status = plot_samples_find(names, &samples, why);
        paths = samples.path;
        count = samples.runs;
    }
    if (status == SR_OK && figure) status = plot_figure_choose(&t, request, count, why);
    if (status == SR_OK) status = plot_runs_open(&runs, paths, count, why);
    request->run = runs.run;
    request->runs = count;
    char usual[PLOT_PATH];
    snprintf(usual, sizeof usual, "%.1000s.%s", name, table ? "tex" : "pdf");
    const char *output = report ? "" : *request->output ? request->output : usual;
    const bool replaces = *output && is_other_file(output);
    if (status == SR_OK)
        status = report  ? plot_report(request, why)
                 : table ? plot_layout_write(&l, request, why)
                         : plot_figure(&t, request, why);
    if (status == SR_OK) tell_written(output, *request->output, replaces);
    if (status == SR_OK && samples.runs)
        fprintf(stderr, "statplot: no run file given: using the sample runs %s\n",
                request->controls.samples);
    plot_runs_close(&runs);
    if (figure) plot_template_free(&t);
    return status;
}

static sr_status read_options(int argc, char **argv, choices *c, settings *s, int *positional,
                              sr_failure *why) {
    plot_template t;
    const bool figure = find_figure(first_argument(argc, argv), &t);
    choices_make(c, figure ? &t : NULL);
    if (figure) plot_template_free(&t);
    options_set_defaults(choices_table(c), s);
    return options_parse(choices_table(c), s, argc, argv, 1, positional, why);
}

static sr_status run_statplot(int argc, char **argv, sr_failure *why) {
    settings s;
    choices c;
    int positional = 0;
    sr_status status = read_options(argc, argv, &c, &s, &positional, why);
    if (status != SR_OK) return status;
    if (positional == 0) {
        sr_fail(why, SR_USAGE, "no figure given");
        sr_hint(why, "statplot list names the figures; try --help");
        return SR_USAGE;
    }
    plot_request request = {.output = s.output,
                            .earlier = "",
                            .labels = s.labels,
                            .choice = {.site = s.site,
                                       .stat = s.stat,
                                       .metric = s.metric,
                                       .step = s.step,
                                       .published = s.published,
                                       .published_tables = s.published_table},
                            .controls = {.title = s.title,
                                         .size = s.size,
                                         .xrange = s.xrange,
                                         .yrange = s.yrange,
                                         .steps = s.steps,
                                         .log = s.log,
                                         .linear = s.linear,
                                         .smooth = s.smooth,
                                         .samples = ""},
                            .keep = s.keep,
                            .force = s.force,
                            .interactive = s.interactive,
                            .each = (int)s.each};
    choices_take(&c, &s, &request.choice);
    int count = positional - 1;
    if (count && strcmp(argv[1 + count], "-") == 0) {
        request.output = "-"; /* `statplot fig2 -` */
        count--;
    }
    if (positional == 1 && strcmp(argv[1], "list") == 0) {
        status = plot_template_list(stdout, why);
        return status == SR_OK ? plot_layout_list(stdout, why) : status;
    }
    plot_process_link(analyses, sizeof analyses / sizeof analyses[0]);
    plot_scratch_sweep();
    if (strcmp(argv[1], "report") != 0 && (s.force || s.interactive || s.each != atoi(EACH)))
        return sr_fail(why, SR_USAGE, "--%s applies to report alone",
                       s.force         ? "force"
                       : s.interactive ? "interactive"
                                       : "max-runs");
    return draw(argv[1], argv + 2, count, &request, why);
}

int main(int argc, char **argv) {
    tool t = {"statplot", argc, argv};
    sr_failure why = {0};
    tool_begin();
    sr_disable_hdf5_atexit();
    if (tool_wants_help(&t)) {
        print_help(argc, argv);
        return tool_finish(&t, TOOL_DONE);
    }
    if (tool_wants_version(&t)) return tool_print_version(&t);
    tool_catch_signals();
    const sr_status status = run_statplot(argc, argv, &why);
    if (tool_signal()) return 128 + tool_signal();
    return tool_finish(&t, status == SR_OK ? TOOL_DONE : tool_report(&t, &why));
}
