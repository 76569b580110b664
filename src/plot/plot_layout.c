/* Result tables beside the figures: a layout of plots/layouts.tsv, which stat-table prints, as
 * LaTeX, Markdown or TSV by the ending of the output. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "statnet/plot.h"
#include "statnet/share.h"

/* -- the layouts ----------------------------------------------------------------------------- */

/* The text behind `key=` in the cells of a line; "" when there is none. */
static void copy_setting(const char *line, const char *key, char *text, size_t size) {
    const size_t length = strlen(key);
    text[0] = 0;
    for (const char *at = strchr(line, '\t'); at; at = strchr(at, '\t')) {
        at++;
        if (strncmp(at, key, length) == 0)
            snprintf(text, size, "%.*s", (int)strcspn(at + length, "\t\r\n"), at + length);
    }
}

/* NAME table TITLE KEY=VALUE...; false for every other line. stat-table finds the faults. */
static bool read_line(const char *line, plot_layout *l) {
    const char *part = strchr(line, '\t'), *title = part ? strchr(part + 1, '\t') : NULL;
    if (line[0] == '#' || !title || strncmp(part, "\ttable\t", 7) != 0) return false;
    snprintf(l->name, sizeof l->name, "%.*s", (int)(part - line), line);
    snprintf(l->title, sizeof l->title, "%.*s", (int)strcspn(title + 1, "\t\r\n"), title + 1);
    copy_setting(line, "samples=", l->samples, sizeof l->samples);
    for (char *comma = l->samples; (comma = strchr(comma, ','));) *comma = ' ';
    return true;
}

/* Calls visit with each until it returns true; false without the file or at its end. */
static bool each_layout(bool (*visit)(const plot_layout *l, void *self), void *self) {
    char path[2 * SHARE_PATH], *line = NULL;
    size_t size = 0;
    plot_layout l;
    bool done = false;
    if (share_find("STATREC_PLOTS", "plots", "layouts.tsv", path, NULL) != SR_OK) return false;
    FILE *in = fopen(path, "r");
    while (in && !done && getline(&line, &size, in) >= 0)
        done = read_line(line, &l) && visit(&l, self);
    free(line);
    if (in) fclose(in);
    return done;
}

static bool take_named(const plot_layout *l, void *self) {
    plot_layout *wanted = self;
    if (strcmp(l->name, wanted->name) != 0) return false;
    *wanted = *l;
    return true;
}

bool plot_layout_find(const char *name, plot_layout *l) {
    *l = (plot_layout){.title = ""};
    if (strlen(name) >= sizeof l->name) return false;
    snprintf(l->name, sizeof l->name, "%s", name);
    return each_layout(take_named, l);
}

static bool list_one(const plot_layout *l, void *self) {
    fprintf(self, "%s\t[RUN.h5...]\ttable: %s\n", l->name, l->title);
    return false;
}

void plot_layout_list(FILE *out) {
    each_layout(list_one, out);
}

/* -- a table --------------------------------------------------------------------------------- */

static sr_status choose_format(const char *output, char **format, sr_failure *why) {
    static const struct {
        const char *ending, *format;
    } formats[] = {{".tex", "latex"}, {".md", "markdown"}, {".tsv", "tsv"}};
    const char *dot = strrchr(output, '.');
    *format = "markdown";
    if (strcmp(output, "-") == 0 && isatty(STDOUT_FILENO)) {
        sr_fail(why, SR_USAGE, "-o -: Markdown with its comments is not for a terminal");
        sr_hint(why, "write it to a file, or pipe it: | less");
        return SR_USAGE;
    }
    if (strcmp(output, "-") == 0) return SR_OK;
    for (int i = 0; dot && i < 3; i++)
        if (strcasecmp(dot, formats[i].ending) == 0)
            return *format = (char *)formats[i].format, SR_OK;
    return sr_fail(why, SR_USAGE, "-o '%s': a table's name ends in .tex, .md or .tsv", output);
}

static sr_status check_choice(const plot_layout *l, const plot_request *r, sr_failure *why) {
    const plot_choice *c = &r->choice;
    const char *option = r->labels[0]             ? "labels"
                         : c->site[0]             ? "site"
                         : c->stat[0]             ? "stat"
                         : c->metric[0]           ? "metric"
                         : c->published_tables[0] ? "published-table"
                         : c->words               ? c->word[0].name
                                                  : plot_controls_first(&r->controls);
    if (!option) return SR_OK;
    return sr_fail(why, SR_USAGE, "table %s takes no --%s", l->name, option);
}

/* stat-table RUN... --layout NAME --format FORMAT, into the file `output` (NULL: stdout). */
static sr_status run_table(const plot_layout *l, const plot_request *r, char *format,
                           const char *output, const char *errors, sr_failure *why) {
    char name[sizeof l->name];
    char **argv = malloc((size_t)(r->runs + 8) * sizeof *argv);
    int count = 0;
    if (!argv) return sr_fail(why, SR_MEMORY, "out of memory");
    snprintf(name, sizeof name, "%s", l->name);
    argv[count++] = "stat-table";
    argv[count++] = "--layout";
    argv[count++] = name;
    argv[count++] = "--format";
    argv[count++] = format;
    argv[count++] = "--";
    for (int i = 0; i < r->runs; i++) argv[count++] = r->path[i];
    argv[count] = NULL;
    const plot_process p = {.argv = argv, .output = output, .errors = errors};
    sr_status status = plot_process_run(&p, why);
    free(argv);
    return status;
}

static sr_status write_table(const plot_layout *l, const plot_request *r, sr_failure *why) {
    char output[PLOT_PATH], scratch[PLOT_PATH], table[PLOT_PATH + 16], errors[PLOT_PATH + 16];
    char *format;
    if (r->output[0])
        snprintf(output, sizeof output, "%s", r->output);
    else
        snprintf(output, sizeof output, "%s.tex", l->name);
    sr_status status = choose_format(output, &format, why);
    if (status == SR_OK) status = check_choice(l, r, why);
    if (status == SR_OK) status = plot_scratch_create(scratch, why);
    if (status != SR_OK) return status;
    const bool shown = strcmp(output, "-") == 0;
    snprintf(table, sizeof table, "%s/table", scratch);
    snprintf(errors, sizeof errors, "%s/errors", scratch);
    status = run_table(l, r, format, shown ? NULL : table, errors, why);
    if (status == SR_OK && !shown) status = plot_place_output(table, output, why);
    if (r->keep)
        fprintf(stderr, "statplot: kept %s\n", scratch);
    else
        plot_scratch_remove(scratch);
    return status;
}

sr_status plot_layout_write(const plot_layout *l, const plot_request *request, sr_failure *why) {
    plot_request r = *request;
    plot_samples samples = {.runs = 0};
    sr_status status = SR_OK;
    if (r.runs == 0) {
        status = plot_samples_find(l->samples, &samples, why);
        r.path = samples.path;
        r.runs = samples.runs;
    }
    if (status == SR_OK) status = write_table(l, &r, why);
    if (status == SR_OK && samples.runs)
        fprintf(stderr, "statplot: no run file given: measured are the sample runs %s\n",
                l->samples);
    return status;
}
