/* cmd_list.c -- `statrec list WHAT`: every table of names, one row per line, name first. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "statnet/data.h"
#include "statnet/models.h"
#include "statnet/norm.h"
#include "statnet/optim.h"
#include "statnet/plot.h"
#include "statnet/train.h"
#include "statrec/format.h"

typedef struct listing {
    const char *name;
    int (*run)(const tool *t);
    const char *help;
} listing;

/* The first column, wide enough to stay aligned. */
static void print_name(const char *name, int width) {
    printf("%-*s  ", width, name);
}

/* "mu=0 sigma2=1": the running vectors and their initial values. */
static void print_running_state(const norm_method *m) {
    printf("; state");
    if (!m->state[0].name) printf(" none");
    for (int k = 0; k < NORM_STATE_MAX && m->state[k].name; k++)
        printf(" %s=%g", m->state[k].name, m->state[k].initial);
}

/* "eps=1e-05 alpha=0.95 lambda=0.1": defaults, first what every method shares. */
static void print_norm_parameters(const norm_method *m) {
    char text[256];
    norm_options o = norm_options_preset(m);
    norm_options_format(&o, m, text, sizeof text);
    printf("; parameters%s", text[strlen(m->name)] ? text + strlen(m->name) : " none");
}

static int list_norms(const tool *t) {
    (void)t;
    const norm_method *m;
    for (int i = 0; (m = norm_at(i)); i++) {
        print_name(m->name, 12);
        printf("%-6s  %s (%s)", m->axis, m->summary, m->citation);
        print_running_state(m);
        print_norm_parameters(m);
        printf("\n");
    }
    return TOOL_DONE;
}

static int list_models(const tool *t) {
    (void)t;
    const model_row *m;
    for (int i = 0; (m = model_at(i)); i++) {
        print_name(m->name, 12);
        printf("%-7s %s (%s)", task_of(m->task)->name, m->summary, m->citation);
        if (m->presets && *m->presets) printf("; presets %s", m->presets);
        putchar('\n');
    }
    return TOOL_DONE;
}

static int list_data(const tool *t) {
    (void)t;
    for (int i = 0; data_name(i); i++) {
        print_name(data_name(i), 12);
        printf("%-7s %s\n", task_of(data_task(i))->name, data_summary(i));
    }
    return TOOL_DONE;
}

static int list_tasks(const tool *t) {
    (void)t;
    const task_row *k;
    for (int i = 0; (k = task_at(i)); i++) {
        print_name(k->name, 12);
        printf("%s; metrics", k->summary);
        for (int n = 0; n < task_metrics(k); n++) printf(" %s", k->metric[n].name);
        putchar('\n');
    }
    return TOOL_DONE;
}

static int list_optimizers(const tool *t) {
    (void)t;
    const optim_row *o;
    for (int i = 0; (o = optim_at(i)); i++) {
        print_name(o->name, 12);
        printf("%s (%s)\n", o->summary, o->citation);
    }
    return TOOL_DONE;
}

/* Everything that a run file may hold; the words are those of format.h. */
static void print_statistic(const char *name, const char *where, const char *unit,
                            const char *definition) {
    print_name(name, 17);
    printf("%-8s %s%s%s%s\n", where, definition, *unit ? " [" : "", unit, *unit ? "]" : "");
}

static int list_stats(const tool *t) {
    (void)t;
#define SCALAR(name, definition)          print_statistic(#name, "scalars", "", definition);
#define VECTOR(name, definition)          print_statistic(#name, "vectors", "", definition);
#define STEP(name, definition)            print_statistic(#name, "steps", "", definition);
#define STEP_REAL(name, unit, definition) print_statistic(#name, "steps", unit, definition);
#define EVAL(name, unit, definition)      print_statistic(#name, "evals", unit, definition);
    SR_SCALARS(SCALAR)
    SR_VECTORS(VECTOR)
    SR_STEP_INTS(STEP)
    SR_STEP_REALS(STEP_REAL)
    SR_EVALS(EVAL)
    return TOOL_DONE;
}

static int list_options(const tool *t) {
    (void)t;
    const option_table options = train_options();
    for (int i = 0; i < options.count; i++) {
        const option *row = &options.row[i];
        print_name(row->key, 26);
        printf("%-14s %s%s%s\n", *row->preset ? row->preset : "-", row->help,
               *row->choices ? "; one of " : "", row->choices);
    }
    return TOOL_DONE;
}

static void print_sites(const model *m) {
    for (int i = 0; i < m->sites; i++) {
        const norm_site *s = m->site[i];
        print_name(s->name, 24);
        printf("%-8s %-12s %6lld\n", s->kind, s->method->name, (long long)s->features);
    }
}

/* `statrec list sites --model M [--norm N ...]`: the options are those of train. */
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
    print_sites(m);
    model_free(m);
    return TOOL_DONE;
}

static int list_figures(const tool *t) {
    sr_failure why = {0};
    if (plot_template_list(stdout, &why) != SR_OK) return tool_report(t, &why);
    return TOOL_DONE;
}

static const listing listings[] = {
    {"norms", list_norms, "normalizations: axis, summary, source, running state, defaults"},
    {"models", list_models, "models: data they take, summary, source, presets"},
    {"data", list_data, "data sets"},
    {"tasks", list_tasks, "tasks: what is learnt, metrics"},
    {"stats", list_stats, "what a run file holds: group and definition of every name"},
    {"optimizers", list_optimizers, "optimizers"},
    {"figures", list_figures, "figures of statplot: runs they take, title"},
    {"options", list_options, "options of train: default and meaning"},
    {"sites", list_sites, "normalization sites of a model: kind, method, features"},
};
enum { LISTINGS = sizeof listings / sizeof listings[0] };

static void print_help(FILE *out) {
    fprintf(out, "usage: statrec list WHAT\n"
                 "       statrec list sites [--model M] [--norm N] [options of train]\n\n");
    for (int i = 0; i < LISTINGS; i++)
        fprintf(out, "  %-11s %s\n", listings[i].name, listings[i].help);
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
        sr_hint(&why, "statrec list --help says what can");
    return tool_report(t, &why);
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
    for (int i = 0; i < LISTINGS; i++) {
        if (strcmp(t->argv[2], listings[i].name) != 0) continue;
        if (t->argc > 3 && listings[i].run != list_sites)
            return tool_error(t, TOOL_USAGE, "%s: takes no argument, got '%.80s'", listings[i].name,
                              t->argv[3]);
        return listings[i].run(t);
    }
    return refuse_listing(t, t->argv[2]);
}
