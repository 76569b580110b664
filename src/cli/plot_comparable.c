/* Drawing two runs in one panel invites to compare them: says where that is wrong. */
#include <string.h>

#include "plot.h"
#include "statrec/runfile.h"

enum { RUNS = 64 };

/* The run of a curve, opened once. */
static sr_runfile *open_run(sr_runfile *open[RUNS], char **paths, int run) {
    if (run < 1 || run > RUNS) return NULL;
    if (!open[run - 1]) open[run - 1] = sr_run_open(paths[run - 1], NULL);
    return open[run - 1];
}

/* A curve's site is the first word of its key, where it is one. */
static int64_t site_of(const sr_runfile *f, const plot_curve *c) {
    char name[SR_NAME_SIZE];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(c->key, " "), c->key);
    return sr_run_find_site(f, name);
}

static unsigned differences(const plot_data *d, sr_runfile *open[RUNS], char **paths) {
    const sr_runfile *first = NULL;
    int64_t first_site = -1;
    unsigned found = 0;
    for (int i = 0; i < d->curves; i++) {
        const sr_runfile *f = open_run(open, paths, d->curve[i].run);
        const int64_t site = f ? site_of(f, &d->curve[i]) : -1;
        if (site < 0) continue;
        if (!first) first = f, first_site = site;
        if (f != first) found |= sr_differences(first, first_site, f, site);
    }
    return found;
}

void plot_comparable_warn(const plot_template *t, const plot_data *data, char **paths, int runs) {
    sr_runfile *open[RUNS] = {NULL};
    char text[256], told[1024] = "";
    for (int i = 0; i < t->tables && runs <= RUNS; i++) {
        const unsigned found = t->table[i].curves ? differences(&data[i], open, paths) : 0;
        for (int k = 0; k < t->table[i].values; k++) {
            if (sr_comparable(t->table[i].y[k], found, text, sizeof text)) continue;
            if (strstr(told, text)) continue;
            const size_t used = strlen(told);
            snprintf(told + used, sizeof told - used, "%s\n", text);
            fprintf(stderr, "statplot: warning: %s\n", text);
        }
    }
    for (int i = 0; i < RUNS; i++) sr_run_close(open[i]);
}
