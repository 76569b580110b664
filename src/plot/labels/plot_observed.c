/* Labels of runs whose curves are only observed: "ln (observed)". A figure of batch statistics also
 * draws an LN run that was trained with --observe batch. The label shows that LN does not use them.
 */
#include <string.h>

#include "plot/labels/plot_labels.h"
#include "plot/template/plot_template.h"

/* The statistics that a table shows of run number `run` (from 1), "" if it shows nothing of this
 * run or nothing of batches. Lists have one kind; a list with psi counts as psi (overview.gp, which
 * lists all, distinguishes them itself). */
static const char *statistic_of(const plot_table *table, int run) {
    static const char *const program[] = {"stat-distance", "stat-tid",   "stat-gradnorm",
                                          "stat-scalar",   "stat-alpha", "stat-amgm",
                                          "stat-gamma"};
    enum { PROGRAMS = sizeof program / sizeof program[0], GAMMA = PROGRAMS - 1 };
    char this_run[32];
    const char *statistic = "";
    snprintf(this_run, sizeof this_run, "{run%d}", run);
    for (int i = 0; i < PROGRAMS; i++)
        if (strcmp(table->word[0], program[i]) == 0) statistic = i == GAMMA ? "psi2_B" : "mu_B";
    bool here = false;
    for (int i = 1; i < table->words && statistic[0]; i++) {
        const char *word = table->word[i];
        here = here || strcmp(word, this_run) == 0 || strcmp(word, "{run}") == 0 ||
               strcmp(word, "{runs}") == 0;
        if (strcmp(table->word[i - 1], "--stat") == 0) statistic = word;
    }
    return here ? statistic : "";
}

static void append(char text[128]) {
    const size_t used = strlen(text);
    snprintf(text + used, 128 - used, " (observed)");
}

/* Custom scalars are the host program's own. */
static bool observed_at(const plot_table *table, const plot_run *p, int run,
                        const sr_run_site *site) {
    const char *statistic = statistic_of(table, run);
    return statistic[0] && !plot_run_declared(p, statistic) &&
           sr_run_only_observed(site, statistic);
}

bool plot_only_observed(const plot_table *table, const plot_run *p, int run, const char *name) {
    const sr_run_site *site;
    for (int64_t i = 0; (site = sr_run_get_site(p->file, i)); i++)
        if (strcmp(site->name, name) == 0) return observed_at(table, p, run, site);
    return false;
}

int64_t plot_site_depth(const plot_run *p, const char *name) {
    const int64_t site = sr_run_find_site(p->file, name);
    return site < 0 ? -1 : sr_run_get_site(p->file, site)->depth;
}

/* Checks the main site, as the label does. */
static bool only_observed(const plot_template *t, const plot_run *p, int run) {
    const sr_run_site *site = sr_run_main_site(p->file);
    for (int k = 0; k < t->tables && site; k++)
        if (observed_at(&t->table[k], p, run, site)) return true;
    return false;
}

void plot_labels_mark(plot_labels *l, const plot_template *t, const plot_run *p, bool given) {
    for (int i = 0; i < l->runs; i++) {
        if (!only_observed(t, &p[i], i + 1)) continue;
        if (!given) append(l->label[i]);
        append(l->full[i]);
    }
}
