/* Pairs of a normalization's input and output, drawn in the final pass (statrec train --final-tid
 * --pairs K). They are the points of figure 2 of Zhu et al., Transformers without Normalization,
 * CVPR 2025 (arXiv 2503.10622).
 *
 *     x       an entry of the input of the site, of a valid row
 *     xhat    (y - beta)/gamma, the output there before gain and bias; NaN if gamma is 0
 *
 * Pairs are in the order in which they were drawn, float32 as recorded.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/frame/site_selection.h"
#include "analysis/frame/stat_program.h"

typedef struct settings {
    option_text site;
} settings;

static const option rows[] = {
    TEXT_OPTION("Choice", "site", offsetof(settings, site), "*",
                "use these sites: globs, first, middle, last, last-bn", .value = "SITE,..."),
};

static void declare_columns(stat_table *table) {
    tsv *t = &table->table;
    site_columns(t);
    tsv_column(t, "feature", "of the entry, from 0");
    tsv_column(t, "x",
               "entry of the site's input, drawn at random from the valid rows of one batch");
    tsv_column(t, "y", "output there before gain and bias, (y - beta)/gamma; nan if gamma is 0");
}

/* Visits each chosen site of a run that has pairs: counts it, or prints them. */
static sr_status each_site(stat_table *table, int r, int64_t *sites, bool print, sr_failure *why) {
    const settings *s = table->settings;
    const sr_runfile *run = table->set->run[r];
    const sr_run_info *info = sr_run_get_info(run);
    const size_t n = (size_t)info->pairs + 1;
    tsv *t = &table->table;
    float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    int32_t *feature = malloc(n * sizeof *feature);
    bool *chosen = choice_in_run(run, s->site);
    sr_status status =
        x && y && feature && chosen ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; i < info->sites && info->pairs && status == SR_OK; i++) {
        if (!chosen[i]) continue;
        status = sr_run_pairs(run, i, x, y, feature, why);
        if (status != SR_OK || feature[0] < 0) continue;
        ++*sites;
        for (int64_t k = 0; k < info->pairs && print; k++) {
            tsv_text(t, table->set->path[r]);
            tsv_text(t, sr_run_get_site(run, i)->name);
            tsv_int(t, feature[k]);
            tsv_real(t, (double)x[k]);
            tsv_real(t, (double)y[k]);
        }
    }
    free(x), free(y), free(feature), free(chosen);
    return status;
}

/* Notes the runs without any; a failure when there is nothing to print. */
static sr_status find_pairs(stat_table *t, sr_failure *why) {
    const settings *s = t->settings;
    int64_t total = 0;
    bool recorded = false;
    for (int r = 0; r < t->set->count; r++) {
        int64_t sites = 0;
        sr_status status = each_site(t, r, &sites, false, why);
        if (status != SR_OK) return status;
        if (!sites) tsv_note(&t->table, "note", "%s: no pairs: left out", t->set->path[r]);
        recorded = recorded || sr_run_get_info(t->set->run[r])->pairs > 0;
        total += sites;
    }
    if (total) return SR_OK;
    if (recorded) return sr_fail(why, SR_USAGE, "--site: '%s' matches no site with pairs", s->site);
    sr_fail(why, SR_FORMAT, "%s%s has no pairs of input and output", t->set->path[0],
            t->set->count > 1 ? " (and no other run)" : "");
    sr_hint(why, "`statrec train --final-tid --pairs 1000` records them");
    return SR_FORMAT;
}

static sr_status print_runs(stat_table *t, sr_failure *why) {
    int64_t sites = 0;
    sr_status status = SR_OK;
    for (int r = 0; r < t->set->count && status == SR_OK; r++)
        status = each_site(t, r, &sites, true, why);
    return status;
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-pairs",
        .usage = "RUN.h5... [--site LIST]",
        .does = "Pairs of a site's input and its output before gain and bias.",
        .options = {rows, sizeof rows / sizeof rows[0]},
        .settings = sizeof(settings),
        .head = find_pairs,
        .columns = declare_columns,
        .rows = print_runs,
    };
    return stat_program_main(&p, argc, argv);
}
