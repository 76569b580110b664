/* cmd_list.c -- `statrec list WHAT`: every table of names, one row per line, name first. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tsv.h"
#include "cli/commands.h"
#include "data/data.h"
#include "nets/models.h"
#include "norm/norm_options.h"
#include "observe/running_moves.h"
#include "plot/template/plot_template.h"
#include "statrec/format.h"
#include "train/optim/optim.h"
#include "train/train.h"

enum { LISTING_COLUMNS = 5, CELL = 1024 };

/* A column: `width` of its cells in text, and the text after them. */
typedef struct listing_column {
    const char *name, *definition;
    int width;
    const char *gap;
} listing_column;

typedef struct listing {
    const char *name;
    int (*run)(const tool *t);
    const char *help;
    listing_column column[LISTING_COLUMNS];
} listing;

/* The listing in progress; text, one row a line, unless --format is given. */
static struct {
    const listing *listing;
    bool text;
    tsv table;
} out;

static void print_row(const char *const *cell) {
    const listing_column *c = out.listing->column;
    for (int i = 0; i < LISTING_COLUMNS && c[i].name; i++) {
        if (out.text)
            printf("%*s%s", c[i].width, cell[i], c[i].gap);
        else
            tsv_text(&out.table, cell[i]);
    }
    if (out.text) putchar('\n');
}

#define PRINT_ROW(...) print_row((const char *const[]){__VA_ARGS__})

/* Appends text to a cell. */
static void append(char cell[CELL], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(char cell[CELL], const char *format, ...) {
    const size_t used = strlen(cell);
    va_list args;
    va_start(args, format);
    vsnprintf(cell + used, CELL - used, format, args);
    va_end(args);
}

static int list_norms(const tool *t) {
    (void)t;
    const norm_method *m;
    for (int i = 0; (m = norm_at(i)); i++) {
        char cell[CELL] = "";
        append(cell, "%s (%s)", m->summary, m->citation);
        append(cell, "; state"); /* "mu=0 sigma2=1": running vectors, initial values */
        if (!m->state[0].name) append(cell, " none");
        for (int k = 0; k < NORM_STATE_MAX && m->state[k].name; k++)
            append(cell, " %s=%g", m->state[k].name, m->state[k].initial);
        for (int k = 0; k < NORM_OWN_MAX && m->own[k].name; k++) /* besides gain and bias */
            append(cell, "%s %s", k ? "" : "; learns", m->own[k].name);
        if (m->synchronises) append(cell, "; obeys --sync-norm");
        /* "eps=1e-05 alpha=0.95 lambda=0.1": defaults, first those of all methods. */
        char text[256];
        norm_options o = norm_options_default(m);
        norm_options_format(&o, m, text, sizeof text);
        append(cell, "; parameters%s", text[strlen(m->name)] ? text + strlen(m->name) : " none");
        PRINT_ROW(m->name, m->axis, cell);
    }
    return TOOL_DONE;
}

/* "; options init heads": options that only some rows obey, this one too. */
static void append_options(char cell[CELL], bool (*obeys)(const char *, const char *),
                           const char *name) {
    const option_table all = train_options();
    const char *before = "; options";
    for (int i = 0; i < all.count; i++) {
        if (!obeys(name, all.row[i].key)) continue;
        append(cell, "%s %s", before, all.row[i].key);
        before = "";
    }
}

static int list_models(const tool *t) {
    (void)t;
    const model_row *m;
    for (int i = 0; (m = model_at(i)); i++) {
        char cell[CELL] = "";
        append(cell, "%s (%s)", m->summary, m->citation);
        if (m->presets && *m->presets) append(cell, "; presets %s", m->presets);
        append_options(cell, model_obeys, m->name);
        PRINT_ROW(m->name, task_of(m->task)->name, cell);
    }
    return TOOL_DONE;
}

/* A row of the model, preset "", or of one of its presets. */
static sr_status print_preset(const char *name, const char *preset, sr_failure *why) {
    char cell[CELL] = "of the model", *text = train_preset_text(name, preset, why);
    if (!text) return why->status;
    if (*preset) train_preset_summary(text, cell, sizeof cell);
    const char *between = "; ", *at = text; /* "; lr 0.002, norm ln": options of the file */
    for (option_line l; options_next_line(&at, &l); between = ", ") {
        const bool quoted = l.value_length > 1 && l.value[0] == '"';
        append(cell, "%s%.*s %.*s", between, l.key_length, l.key, l.value_length - 2 * quoted,
               l.value + quoted);
    }
    free(text);
    PRINT_ROW(name, *preset ? preset : "-", cell);
    return SR_OK;
}

static int list_presets(const tool *t) {
    const model_row *m;
    sr_failure why = {0};
    for (int i = 0; (m = model_at(i)); i++) {
        char preset[MODEL_TEXT];
        sr_status status = print_preset(m->name, "", &why);
        for (const char *at = m->presets; *at && status == SR_OK; at += *at == '|') {
            snprintf(preset, sizeof preset, "%.*s", (int)strcspn(at, "|"), at);
            status = print_preset(m->name, preset, &why);
            at += strlen(preset);
        }
        if (status != SR_OK) return tool_report(t, &why);
    }
    return TOOL_DONE;
}

static int list_data(const tool *t) {
    (void)t;
    for (int i = 0; data_name(i); i++) {
        char cell[CELL] = "";
        append(cell, "%s", data_summary(i));
        append_options(cell, data_obeys, data_name(i));
        PRINT_ROW(data_name(i), task_of(data_task(i))->name, cell);
    }
    return TOOL_DONE;
}

static int list_tasks(const tool *t) {
    (void)t;
    const task_row *k;
    for (int i = 0; (k = task_at(i)); i++) {
        char cell[CELL] = "";
        append(cell, "%s; metrics", k->summary);
        for (int n = 0; n < task_all_metrics(k); n++) append(cell, " %s", k->metric[n].name);
        PRINT_ROW(k->name, cell);
    }
    return TOOL_DONE;
}

static int list_optimizers(const tool *t) {
    (void)t;
    const optim_row *o;
    for (int i = 0; (o = optim_at(i)); i++) {
        char cell[CELL] = "";
        append(cell, "%s (%s)", o->summary, o->citation);
        append_options(cell, optim_obeys, o->name);
        PRINT_ROW(o->name, cell);
    }
    return TOOL_DONE;
}

/* A statistic of run files, in the words of format.h. */
static void print_statistic(const char *name, const char *where, const char *unit,
                            const char *definition) {
    char cell[CELL] = "";
    append(cell, "%s%s%s%s", definition, *unit ? " [" : "", unit, *unit ? "]" : "");
    PRINT_ROW(name, where, cell);
}

typedef struct metric_list {
    train_metric metric[TRAIN_METRICS];
    int count;
} metric_list;

/* All metrics of a task's evaluations, with every option of train that adds some. */
static metric_list metrics_of(const task_row *row) {
    const train_config all = {.validate_batch = true, .validate_train = 1, .test = true};
    metric_list l;
    l.count = train_metrics_make(&all, row, l.metric);
    return l;
}

static const train_metric *find_metric(const metric_list *l, const char *name) {
    for (int i = 0; i < l->count; i++)
        if (strcmp(l->metric[i].name, name) == 0) return &l->metric[i];
    return NULL;
}

/* Prints one line for all tasks from `first`, with units "nats per image, nats per token". */
static void print_metric(int first, const train_metric *m) {
    static const char *const words[] = SR_BETTER_WORDS;
    const char *word = words[m->better + 1];
    char units[256] = "", text[512];
    for (int i = first; task_at(i); i++) {
        const metric_list l = metrics_of(task_at(i));
        const train_metric *same = find_metric(&l, m->name);
        const size_t used = strlen(units);
        if (same && !strstr(units, same->unit))
            snprintf(units + used, sizeof units - used, "%s%s", used ? ", " : "", same->unit);
    }
    snprintf(text, sizeof text, "%s%s%s", m->definition, *word ? "; better: " : "", word);
    print_statistic(m->name, "evals", units, text);
}

static void print_metrics(void) {
    for (int i = 0; task_at(i); i++) {
        const metric_list l = metrics_of(task_at(i));
        for (int n = 0; n < l.count; n++) {
            bool listed = false;
            for (int k = 0; k < i && !listed; k++) {
                const metric_list before = metrics_of(task_at(k));
                listed = find_metric(&before, l.metric[n].name) != NULL;
            }
            if (!listed) print_metric(i, &l.metric[n]);
        }
    }
}

static int list_stats(const tool *t) {
    (void)t;
#define SCALAR(name, definition)          print_statistic(#name, "scalars", "", definition);
#define VECTOR(name, definition)          print_statistic(#name, "vectors", "", definition);
#define STEP(name, definition)            print_statistic(#name, "steps", "", definition);
#define STEP_REAL(name, unit, definition) print_statistic(#name, "steps", unit, definition);
    SR_SCALARS(SCALAR)
    for (int i = 0; i < MOVES; i++)
        print_statistic(running_moves_name[i], "scalars", "", running_moves_definition[i]);
    SR_VECTORS(VECTOR)
    SR_STEP_INTS(STEP)
    SR_STEP_REALS(STEP_REAL)
    print_statistic("epoch", "evals", "epochs", "passes over the training data at this evaluation");
    print_metrics();
    return TOOL_DONE;
}

static int list_options(const tool *t) {
    (void)t;
    const option_table options = train_options();
    for (int i = 0; i < options.count; i++) {
        const option *row = &options.row[i];
        char cell[CELL] = "";
        append(cell, "%s%s%s", row->help, *row->choices ? "; one of " : "", row->choices);
        PRINT_ROW(row->key, *row->default_text ? row->default_text : "-", cell);
    }
    return TOOL_DONE;
}

/* `statrec list sites --model M [--norm N ...]`: takes the options of train. */
static int list_sites(const tool *t) {
    train_config c;
    int positional = 0;
    sr_failure why = {0};
    char none[] = "--output=none"; /* a run would want one */
    char *argv[512];
    if (t->argc + 1 > 512) return tool_error(t, TOOL_USAGE, "too many arguments");
    argv[0] = none;
    memcpy(argv + 1, t->argv + 3, (size_t)(t->argc - 3) * sizeof *argv);
    if (train_config_parse(&c, t->argc - 2, argv, 0, &positional, &why) != SR_OK)
        return tool_report(t, &why);
    if (positional)
        return tool_error(t, TOOL_USAGE, "'%s' is not an option of train, as --model is", argv[0]);
    /* names and widths of sites depend on the model's options only: any shape of data will do */
    model *m = model_create(&c.model, &task_of(model_find(c.model.name)->task)->example, &why);
    if (!m) return tool_report(t, &why);
    for (int i = 0; i < m->sites; i++) {
        const norm_site *s = m->site[i];
        char features[24];
        snprintf(features, sizeof features, "%lld", (long long)s->features);
        PRINT_ROW(s->name, s->kind, s->method->name, features);
    }
    model_free(m);
    return TOOL_DONE;
}

static int list_figures(const tool *t) {
    sr_failure why = {0};
    if (plot_template_list(stdout, &why) != SR_OK) return tool_report(t, &why);
    return TOOL_DONE;
}

#define NAME(width)                                                                                \
    { "name", "value of options", -(width), "  " }
static const listing listings[] = {
    {"norms",
     list_norms,
     "normalizations: axis, summary, source, running state, parameters",
     {NAME(12),
      {"axis", "what a statistic is computed over", -6, "  "},
      {"description", "summary, source, running state, parameters", 0, ""}}},
    {"models",
     list_models,
     "models: kind of data, summary, source, presets, options",
     {NAME(22),
      {"data", "kind of data", -7, " "},
      {"description", "summary, source, presets, options", 0, ""}}},
    {"presets",
     list_presets,
     "presets of models: sizes, and the options that they set",
     {{"model", "model of the preset", -22, "  "},
      {"name", "value of --preset; -: every preset", -23, "  "},
      {"description", "summary; options that it sets, with values", 0, ""}}},
    {"data",
     list_data,
     "data sets: kind, summary, options",
     {NAME(12), {"data", "kind of data", -7, " "}, {"description", "summary, options", 0, ""}}},
    {"tasks",
     list_tasks,
     "tasks: target, metrics",
     {NAME(12), {"description", "summary, metrics of an evaluation", 0, ""}}},
    {"stats",
     list_stats,
     "statistics of a run file: group and definition of every name",
     {NAME(17),
      {"group", "group of the run file", -8, " "},
      {"definition", "and unit in brackets", 0, ""}}},
    {"optimizers", list_optimizers, "optimizers", {NAME(12), {"description", "and source", 0, ""}}},
    {"figures", list_figures, "figures of statplot: runs they take, title", {{0}}},
    {"options",
     list_options,
     "options of train: default and meaning",
     {NAME(26),
      {"default", "-: none", -14, " "},
      {"description", "meaning, and the values of a choice", 0, ""}}},
    {"sites",
     list_sites,
     "normalization sites of a model: kind, method, features",
     {NAME(24),
      {"kind", "part of the model", -8, " "},
      {"norm", "its normalization", -12, " "},
      {"features", "its width", 6, ""}}},
};
enum { LISTINGS = sizeof listings / sizeof listings[0] };

static void print_help(FILE *to) {
    fprintf(to, "usage: statrec list WHAT [--format tsv|csv|json]\n"
                "       statrec list sites [--model M] [--norm N] [options of train]\n\n");
    for (int i = 0; i < LISTINGS; i++)
        fprintf(to, "  %-11s %s\n", listings[i].name, listings[i].help);
}

static int refuse_listing(const tool *t, const char *name) {
    const char *names[LISTINGS];
    sr_failure why = {0};
    for (int i = 0; i < LISTINGS; i++) names[i] = listings[i].name;
    const char *nearest = tool_nearest(name, names, LISTINGS);
    sr_fail(&why, SR_USAGE, "'%.80s' cannot be listed", name);
    if (nearest)
        sr_hint(&why, "did you mean '%s'?", nearest);
    else
        sr_hint(&why, "`statrec list --help` prints the names");
    return tool_report(t, &why);
}

/* Removes `--format WORD` or `--format=WORD` after the name from the arguments; NULL without. */
static const char *take_format(tool *t, char **argv) {
    const char *format = NULL;
    int kept = 0;
    for (int i = 0; i < t->argc; i++) {
        const char *word = t->argv[i];
        if (i > 2 && !strncmp(word, "--format=", 9))
            format = word + 9;
        else if (i > 2 && !strcmp(word, "--format"))
            format = i + 1 < t->argc ? t->argv[++i] : "";
        else
            argv[kept++] = t->argv[i];
    }
    t->argc = kept, t->argv = argv;
    return format;
}

static int run_listing(const tool *t, const listing *l) {
    tool rest = *t;
    char **argv = calloc((size_t)t->argc + 1, sizeof *argv);
    if (!argv) return tool_error(t, TOOL_FAILED, "out of memory");
    const char *format = take_format(&rest, argv);
    char *command = format ? tool_command(t) : NULL;
    sr_failure why = {0};
    int status;
    out.listing = l, out.text = !format;
    if (format && !(!strcmp(format, "tsv") || !strcmp(format, "csv") || !strcmp(format, "json")))
        status = tool_error(t, TOOL_USAGE, "--format: value '%.80s' is not one of %s", format,
                            TSV_FORMATS);
    else if (format && !l->column[0].name)
        status = tool_error(t, TOOL_USAGE, "%s: is no table, so it has no --format", l->name);
    else if (rest.argc > 3 && l->run != list_sites)
        status = tool_error(t, TOOL_USAGE, "%s: takes no argument, got '%.80s'", l->name, argv[3]);
    else if (!format)
        status = l->run(&rest);
    else if (!command)
        status = tool_error(t, TOOL_FAILED, "out of memory");
    else {
        tsv_set_format(format);
        tsv_begin(&out.table, stdout, "statrec list", command);
        for (int i = 0; i < LISTING_COLUMNS && l->column[i].name; i++)
            tsv_column(&out.table, l->column[i].name, l->column[i].definition);
        tsv_header(&out.table);
        status = l->run(&rest);
        if (status == TOOL_DONE && tsv_finish(stdout, &why) != SR_OK) status = tool_report(t, &why);
    }
    free(command);
    free(argv);
    return status;
}

int cmd_list(const tool *t) {
    if (tool_wants_help(t)) {
        print_help(stdout);
        return TOOL_DONE;
    }
    if (t->argc < 3) {
        print_help(stderr);
        return TOOL_USAGE;
    }
    for (int i = 0; i < LISTINGS; i++)
        if (strcmp(t->argv[2], listings[i].name) == 0) return run_listing(t, &listings[i]);
    return refuse_listing(t, t->argv[2]);
}
