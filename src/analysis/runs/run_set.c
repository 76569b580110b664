/* Run files of one analysis: opening, provenance, percent of training. */

#include "analysis/runs/run_set.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/runs/run_cache.h"
#include "analysis/runs/run_config.h"

enum { RUN_SET_OPEN = 32 }; /* files that stay open: open_file_cache.c */

sr_status run_set_open(run_set *set, int count, char **paths, sr_failure *why) {
    return run_set_open_each(set, count, paths, NULL, NULL, why);
}

sr_status run_set_open_each(run_set *set, int count, char **paths, run_opened_fn *opened,
                            void *context, sr_failure *why) {
    *set = (run_set){.path = paths};
    if (count == 0) {
        sr_fail(why, SR_USAGE, "no run file given");
        sr_hint(why, "try --help");
        return SR_USAGE;
    }
    set->run = calloc((size_t)count, sizeof *set->run);
    if (!set->run) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < count; i++) {
        set->run[i] = run_open(paths[i], i ? set->run[0] : NULL, why);
        if (!set->run[i]) return why->status;
        set->count = i + 1;
        int64_t last; /* tables ask for it before they read; the run keeps the answer */
        if (count > RUN_SET_OPEN) run_last_step(set->run[i], &last, NULL);
        if (opened) opened(context, i, set->run[i]);
    }
    return SR_OK;
}

void run_set_close(run_set *set) {
    for (int i = 0; i < set->count; i++) run_close(set->run[i]);
    free(set->run);
    *set = (run_set){0};
}

void run_warn_damage(const tool *t, const sr_runfile *run) {
    const char *first = sr_run_damage(run, 0);
    int more = 0;
    if (!first) return;
    while (sr_run_damage(run, more + 1)) more++;
    if (more)
        tool_warn(t, "%s, and %d more, which `statrec check` lists", first, more);
    else
        tool_warn(t, "%s", first);
}

void run_warn_damage_paths(const tool *t, int count, char **paths) {
    for (int i = 0; i < count; i++) {
        sr_runfile *run = run_open(paths[i], NULL, NULL);
        if (run) run_warn_damage(t, run);
        run_close(run);
    }
}

static const char *word(const char *text) {
    return text && text[0] ? text : "?";
}

void run_set_describe(const run_set *set, tsv *table) {
    for (int i = 0; i < set->count; i++) {
        const sr_run_info *info = sr_run_get_info(set->run[i]);
        tsv_note(table, "run",
                 "%s  model %s, norm %s, data %s, seed %llu, %lld steps, %s, by %s %s",
                 set->path[i], word(info->model), sr_run_main_norm(set->run[i]), word(info->data),
                 (unsigned long long)info->seed, (long long)info->steps, word(info->status),
                 word(info->program), word(info->version));
        if (strcmp(info->path, set->path[i]) != 0)
            tsv_note(table, "note", "%s does not exist yet: read from %s", set->path[i],
                     info->path);
        if (strcmp(info->status, "diverged") == 0)
            tsv_note(table, "note", "%s diverged: %s", set->path[i], word(info->reason));
        else if (strcmp(info->status, "complete") != 0)
            tsv_note(table, "note", "%s is %s: percent counts from its last recorded step",
                     set->path[i],
                     strcmp(info->status, "running") == 0 ? "unfinished" : word(info->status));
    }
}

void run_set_note_vectors(const run_set *set, const char *what, tsv *table) {
    for (int r = 0; r < set->count; r++) {
        const sr_run_info *info = sr_run_get_info(set->run[r]);
        if (info->vectors == info->steps) continue;
        tsv_note(table, "note", "%s: %lld of %lld steps have vectors; %s counts these",
                 set->path[r], (long long)info->vectors, (long long)info->steps, what);
    }
}

sr_status run_last_step(const sr_runfile *run, int64_t *last, sr_failure *why) {
    const int64_t steps = sr_run_get_info(run)->steps;
    *last = 0;
    if (steps == 0) return SR_OK;
    return sr_run_step_ints(run, "step", steps - 1, 1, last, why);
}

sr_status run_nth_step(const sr_runfile *run, int64_t n, int64_t *step, sr_failure *why) {
    const int64_t steps = sr_run_get_info(run)->steps;
    const int64_t nearest = n < 1 ? 1 : n < steps ? n : steps;
    *step = n;
    if (steps == 0) return SR_OK;
    sr_status status = sr_run_step_ints(run, "step", nearest - 1, 1, step, why);
    *step += n - nearest;
    return status;
}

sr_status run_burn_in_end(const sr_runfile *run, int64_t passes, int64_t *step, sr_failure *why) {
    *step = passes;
    return run_is_trained(sr_run_get_info(run)) ? SR_OK : run_nth_step(run, passes, step, why);
}
