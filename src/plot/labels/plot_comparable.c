/* Drawing two runs in one panel suggests a comparison: warns if it is invalid. */
#include <string.h>

#include "plot/labels/plot_comparable.h"
#include "plot/plot_curves.h"
#include "plot/template/plot_sizes.h"
#include "plot/template/plot_template.h"

/* Sites of one run may differ in width and rows. Each is compared with the first run's site of its
 * name; if that run has none, with its first drawn site. */
static unsigned differences(const plot_data *d, const plot_run *run) {
    const sr_runfile *first = NULL;
    int64_t first_site = -1;
    unsigned found = 0;
    for (int i = 0; i < d->curves; i++) {
        const int number = d->curve[i].run; /* 0: of all runs */
        const sr_runfile *f = number ? run[number - 1].file : NULL;
        const char *name = d->curve[i].site;
        const int64_t site = f ? sr_run_find_site(f, name) : -1;
        if (site < 0) continue;
        if (!first) first = f, first_site = site;
        if (f == first) continue;
        const int64_t same = sr_run_find_site(first, name);
        found |= sr_differences(first, same < 0 ? first_site : same, f, site);
    }
    return found;
}

/* Lines reported so far: each once. */
typedef struct told {
    char text[4096];
    plot_warnings to;
} told;

static void tell(told *t, const char *line) {
    const size_t used = strlen(t->text);
    if (strstr(t->text, line)) return;
    snprintf(t->text + used, sizeof t->text - used, "%s\n", line);
    if (t->to.tell)
        t->to.tell(t->to.context, line);
    else
        fprintf(stderr, "statplot: warning: %s\n", line);
}

static void tell_curves(told *t, const plot_data *d, unsigned found) {
    char line[512];
    for (int k = 0; k < d->table->values; k++)
        if (d->finite[k] > 1 && !sr_comparable(d->table->y[k], found, line, sizeof line))
            tell(t, line);
}

/* Above a table's header: the `# warning:` lines, and `# alone:` of runs without a row. */
static void tell_table(told *t, const char *path) {
    static const struct {
        const char *mark, *after;
    } of[] = {{"# warning: ", ""}, {"# alone: ", "; not drawn"}};
    char line[512], text[sizeof line + 16];
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in) && line[0] == '#') {
        line[strcspn(line, "\n")] = 0;
        for (int i = 0; i < 2; i++) {
            if (strncmp(line, of[i].mark, strlen(of[i].mark)) != 0) continue;
            snprintf(text, sizeof text, "%s%s", line + strlen(of[i].mark), of[i].after);
            tell(t, text);
        }
    }
    if (in) fclose(in);
}

void plot_comparable_warn(const plot_template *t, const plot_data *data, const char *directory,
                          const plot_run *run, int runs, plot_warnings to) {
    told lines = {"", to};
    for (int i = 0; i < t->tables; i++) {
        char path[2 * PLOT_PATH];
        if (t->table[i].curves) tell_curves(&lines, &data[i], differences(&data[i], run));
        for (int number = 0; number <= runs; number++) {
            snprintf(path, sizeof path, "%s/%s.%d.tsv", directory, t->table[i].name, number);
            tell_table(&lines, path);
        }
    }
}
