/* Replicates: runs with the same configuration and different seeds.
 *
 * Two configurations are the same if they agree in all settings that change results
 * (run_identity.c). Threads, output and recording do not change results. Runs of one seed are no
 * replicates, nor are runs without a stored configuration.
 */

#include "analysis/runs/replicates.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/runs/run_identity.h"

static bool same_sites(const sr_runfile *a, const sr_runfile *b) {
    const sr_run_site *x;
    for (int64_t i = 0; (x = sr_run_get_site(a, i)); i++) {
        const int64_t at = sr_run_find_site(b, x->name);
        const sr_run_site *y = at < 0 ? NULL : sr_run_get_site(b, at);
        if (!y) continue;
        if (strcmp(x->norm, y->norm) != 0 || x->layer_scale != y->layer_scale) return false;
        if (x->width != y->width) return false;
    }
    return true;
}

static bool replicates(const run_identity *a, const run_identity *b) {
    const char *x = a->info->config, *y = b->info->config;
    if (a->info->seed == b->info->seed || !x || !y || !*x || !*y) return false;
    if (strcmp(a->info->model, b->info->model) != 0 || strcmp(a->info->data, b->info->data) != 0 ||
        strcmp(a->norm, b->norm) != 0 || strcmp(a->decoder, b->decoder) != 0 ||
        strcmp(a->placement, b->placement) != 0 || strcmp(a->task, b->task) != 0 ||
        !same_sites(a->run, b->run))
        return false;
    /* a configuration in another syntax than `key = value` is compared as text */
    if (!strstr(x, " = ") || !strstr(y, " = ")) return strcmp(x, y) == 0;
    return run_distance(a, b) == 0;
}

/* The first group whose runs before r are all its replicates. fits: [r + 1], scratch */
static int group_of(const run_groups *g, const run_identity *run, int r, bool *fits) {
    for (int k = 0; k <= g->count; k++) fits[k] = true;
    for (int i = 0; i < r; i++)
        if (fits[g->of[i]]) fits[g->of[i]] = replicates(&run[i], &run[r]);
    int group = 0;
    while (!fits[group]) group++;
    return group;
}

sr_status run_groups_make(run_groups *g, const run_set *set, bool alone, sr_failure *why) {
    const size_t count = (size_t)set->count + 1;
    *g = (run_groups){.of = malloc(count * sizeof *g->of)};
    run_identity *run = malloc(count * sizeof *run);
    bool *fits = malloc(count * sizeof *fits);
    const bool ok = g->of && run && fits;
    for (int r = 0; ok && r < set->count; r++) {
        run_identify(&run[r], set->run[r], set->path[r]);
        g->of[r] = alone ? r : group_of(g, run, r, fits);
        if (g->of[r] == g->count) g->count++;
    }
    free(run);
    free(fits);
    return ok ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
}

int run_groups_size(const run_groups *g, const run_set *set, int group) {
    int size = 0;
    for (int r = 0; r < set->count; r++) size += g->of[r] == group;
    return size;
}

void run_groups_describe(const run_groups *g, const run_set *set, tsv *table) {
    for (int group = 0; group < g->count; group++) {
        const int size = run_groups_size(g, set, group);
        if (size > 1)
            tsv_note(table, "group", "%d runs of one configuration, different seeds:", size);
        for (int r = 0; r < set->count && size > 1; r++)
            if (g->of[r] == group)
                tsv_note(table, "group", "  %s  seed %llu", set->path[r],
                         (unsigned long long)sr_run_get_info(set->run[r])->seed);
    }
}

void run_groups_free(run_groups *g) {
    free(g->of);
    *g = (run_groups){0};
}
