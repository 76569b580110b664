/* Pairs of a normalization's input and output, as they were drawn in the final pass (statrec train
 * --final-tid --pairs K): the points of figure 2 of Zhu et al., Transformers without Normalization,
 * CVPR 2025 (arXiv 2503.10622).
 *
 *     x       an entry of the tensor that the site normalises, of a valid row
 *     xhat    (y - beta)/gamma, the output there before gain and bias; NaN where gamma is 0
 *
 * In the order of their drawing; float32 as recorded.
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
                "sites, separated by commas: globs, first, middle, last, last-bn",
                .value = "SITE,..."),
};

static void declare_columns(tsv *t) {
    tsv_column(t, "run", "run file as given");
    tsv_column(t, "site", "normalization site");
    tsv_column(t, "feature", "of the entry, from 0");
    tsv_column(t, "x",
               "entry of the tensor that the site normalises, drawn at random from the "
               "valid rows and all features of one batch");
    tsv_column(t, "y",
               "the output at that entry before gain and bias, (y - beta)/gamma; nan where "
               "gamma is 0");
    tsv_header(t);
}

/* The pairs of one site. */
typedef struct pairs {
    int64_t count;
    float *x, *y;
    int32_t *feature;
} pairs;

static sr_status make_pairs(pairs *p, int64_t count, sr_failure *why) {
    const size_t n = (size_t)count + 1;
    *p = (pairs){count, malloc(n * sizeof *p->x), malloc(n * sizeof *p->y),
                 malloc(n * sizeof *p->feature)};
    return p->x && p->y && p->feature ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
}

static void drop_pairs(pairs *p) {
    free(p->x), free(p->y), free(p->feature);
}

/* Calls `use` for each chosen site of a run that kept pairs. */
typedef void use_pairs(void *context, const char *path, const sr_run_site *site, const pairs *p);

static sr_status each_site(const settings *o, const run_set *set, int r, use_pairs *use,
                           void *context, sr_failure *why) {
    const sr_runfile *run = set->run[r];
    const sr_run_info *info = sr_run_get_info(run);
    pairs p;
    bool *chosen = choice_in_run(run, o->site);
    sr_status status = make_pairs(&p, info->pairs, why);
    if (!chosen) status = sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; i < info->sites && info->pairs && status == SR_OK; i++) {
        if (!chosen[i]) continue;
        status = sr_run_pairs(run, i, p.x, p.y, p.feature, why);
        if (status == SR_OK && p.feature[0] >= 0)
            use(context, set->path[r], sr_run_get_site(run, i), &p);
    }
    drop_pairs(&p);
    free(chosen);
    return status;
}

static void count_site(void *context, const char *path, const sr_run_site *site, const pairs *p) {
    int64_t *sites = context;
    (void)path, (void)site, (void)p;
    ++*sites;
}

static void print_site(void *context, const char *path, const sr_run_site *site, const pairs *p) {
    tsv *t = context;
    for (int64_t i = 0; i < p->count; i++) {
        tsv_text(t, path);
        tsv_text(t, site->name);
        tsv_int(t, p->feature[i]);
        tsv_real(t, (double)p->x[i]);
        tsv_real(t, (double)p->y[i]);
    }
}

static sr_status nothing_found(const settings *o, const run_set *set, bool recorded,
                               sr_failure *why) {
    if (recorded) return sr_fail(why, SR_USAGE, "--site: '%s' matches no site with pairs", o->site);
    sr_fail(why, SR_FORMAT, "%s%s has no pairs of input and output", set->path[0],
            set->count > 1 ? " (and no other run)" : "");
    sr_hint(why, "`statrec train --final-tid --pairs 1000` records them");
    return SR_FORMAT;
}

/* Notes the runs without any; a failure when there is nothing to print. */
static sr_status find_pairs(const settings *o, const run_set *set, tsv *t, sr_failure *why) {
    int64_t total = 0;
    bool recorded = false;
    for (int r = 0; r < set->count; r++) {
        int64_t sites = 0;
        sr_status status = each_site(o, set, r, count_site, &sites, why);
        if (status != SR_OK) return status;
        if (!sites) tsv_note(t, "note", "%s: no pairs: left out", set->path[r]);
        recorded = recorded || sr_run_get_info(set->run[r])->pairs > 0;
        total += sites;
    }
    return total ? SR_OK : nothing_found(o, set, recorded, why);
}

static sr_status print_table(const void *self, const void *settings_of, const run_set *set,
                             const char *command, sr_failure *why) {
    (void)self;
    const settings *s = settings_of;
    tsv table;
    table_head head;
    sr_status status = table_head_begin(&head, &table, "stat-pairs", command, set, why);
    if (status != SR_OK) return status;
    status = find_pairs(s, set, &table, why);
    status = table_head_end(&head, &table, status, why);
    if (status == SR_OK) declare_columns(&table);
    for (int r = 0; r < set->count && status == SR_OK; r++)
        status = each_site(s, set, r, print_site, &table, why);
    return status;
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-pairs",
        .usage = "RUN.h5... [--site LIST]",
        .does = "Pairs of a site's input and of its output before gain and bias, a row each.",
        .options = {rows, sizeof rows / sizeof rows[0]},
        .settings = sizeof(settings),
        .print = print_table,
    };
    return stat_program_main(&p, argc, argv);
}
