/* Result tables beside the figures: a layout of plots/layouts.tsv, which stat-table prints, as
 * LaTeX, Markdown or TSV by the ending of the output. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "plot/plot_figure.h"
#include "plot/plot_layout.h"
#include "plot/plot_process.h"
#include "plot/template/plot_controls.h"
#include "plot/template/plot_files.h"
#include "plot/template/plot_scratch.h"
#include "plot/template/plot_sizes.h"
#include "plot/template/plot_template.h"
#include "table/table.h"

/* -- the layouts ----------------------------------------------------------------------------- */

/* The layout of this name; title "" until it came by. */
static void take_named(void *context, const layout *l) {
    plot_layout *wanted = context;
    if (strcmp(l->name, wanted->name) != 0) return;
    snprintf(wanted->title, sizeof wanted->title, "%s", l->title);
    snprintf(wanted->samples, sizeof wanted->samples, "%s", l->samples);
    for (char *comma = wanted->samples; (comma = strchr(comma, ','));) *comma = ' ';
}

bool plot_layout_find(const char *name, plot_layout *l, sr_failure *unread) {
    *l = (plot_layout){.title = ""};
    if (strlen(name) >= sizeof l->name) return false;
    snprintf(l->name, sizeof l->name, "%s", name);
    layout_each("", take_named, l, unread);
    return l->title[0] != 0;
}

static void list_one(void *context, const layout *l) {
    fprintf(context, "%s\t[RUN.h5...]\ttable: %s\n", l->name, l->title);
}

sr_status plot_layout_list(FILE *out, sr_failure *why) {
    return layout_each("", list_one, out, why);
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
    const char *refused = r->labels[0]             ? "labels"
                          : c->site[0]             ? "site"
                          : c->stat[0]             ? "stat"
                          : c->metric[0]           ? "metric"
                          : c->step[0]             ? "step"
                          : c->published_tables[0] ? "published-table"
                          : c->words               ? c->word[0].name
                                                   : plot_controls_first(&r->controls);
    if (!refused) return SR_OK;
    return sr_fail(why, SR_USAGE, "table %s takes no --%s", l->name, refused);
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
    for (int i = 0; i < r->runs; i++) argv[count++] = r->run[i].path;
    argv[count] = NULL;
    const plot_process p = {.argv = argv, .output = output, .errors = errors};
    sr_status status = plot_process_run(&p, why);
    free(argv);
    return status;
}

sr_status plot_layout_write(const plot_layout *l, const plot_request *r, sr_failure *why) {
    char output[PLOT_PATH], table[PLOT_PATH + 16], errors[PLOT_PATH + 16];
    plot_scratch scratch = {.path = ""};
    char *format;
    if (r->output[0])
        snprintf(output, sizeof output, "%s", r->output);
    else
        snprintf(output, sizeof output, "%s.tex", l->name);
    sr_status status = choose_format(output, &format, why);
    if (status == SR_OK) status = check_choice(l, r, why);
    if (status == SR_OK) status = plot_scratch_create(&scratch, why);
    if (status != SR_OK) return status;
    const bool shown = strcmp(output, "-") == 0;
    snprintf(table, sizeof table, "%s/table", scratch.path);
    snprintf(errors, sizeof errors, "%s/errors", scratch.path);
    status = run_table(l, r, format, shown ? NULL : table, errors, why);
    if (status == SR_OK && !shown) status = plot_place_output(table, output, why);
    if (r->keep) {
        plot_scratch_keep(&scratch);
        fprintf(stderr, "statplot: kept %s\n", scratch.path);
    } else {
        plot_scratch_remove(&scratch);
    }
    return status;
}
