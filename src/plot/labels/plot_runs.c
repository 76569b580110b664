/* plot_runs.c -- opens the runs of a figure once. */
#include "plot/labels/plot_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/runs/run_cache.h"
#include "analysis/runs/run_config.h"

static void copy(char *to, size_t size, const char *from) {
    snprintf(to, size, "%s", from ? from : "");
}

/* Analyses report damaged values of a file. */
static sr_status find_startup(plot_run *r, sr_failure *why) {
    const int64_t startup = sr_run_startup(r->file);
    int64_t last = 0, end = 0;
    sr_failure unread = {0};
    sr_status status = run_last_step(r->file, &last, &unread);
    if (status == SR_OK && startup) status = run_burn_in_end(r->file, startup, &end, &unread);
    if (status == SR_MEMORY || status == SR_IO) return *why = unread, status;
    const double percent = last ? 100 * (double)end / (double)last : 0;
    r->startup = percent < 100 ? percent : 100;
    return SR_OK;
}

static bool has_word(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && strncmp(at, word, length) == 0) return true;
    return false;
}

static void describe(plot_run *r) {
    char name[RUN_PART];
    const sr_run_info *info = sr_run_get_info(r->file);
    copy(r->text[RUN_MODEL], RUN_PART, info->model);
    copy(r->text[RUN_NORM], RUN_PART, sr_run_main_norm(r->file));
    run_data_name(r->file, name, sizeof name);
    copy(r->text[RUN_DATA], RUN_PART, name);
    snprintf(r->text[RUN_SEED], RUN_PART, "seed %llu", (unsigned long long)info->seed);
    snprintf(r->task, sizeof r->task, "%s%s%s", r->text[RUN_MODEL],
             r->text[RUN_DATA][0] ? ", " : "", r->text[RUN_DATA]);
    r->config = info->config ? info->config : "";
    const sr_run_site *site = sr_run_main_site(r->file);
    if (site && sr_run_over_batch(site)) snprintf(r->uses, sizeof r->uses, "%s", site->uses);
    for (int64_t i = 0; (site = sr_run_get_site(r->file, i)); i++) {
        const size_t used = strlen(r->norms);
        if (!has_word(r->norms, site->norm) && used + strlen(site->norm) + 2 <= sizeof r->norms)
            snprintf(r->norms + used, sizeof r->norms - used, "%s ", site->norm);
    }
}

/* A copy that analyses cannot take for an option. */
static char *path_word(const char *path) {
    const size_t size = strlen(path) + 3;
    char *text = malloc(size);
    if (text) snprintf(text, size, "%s%s", path[0] == '-' ? "./" : "", path);
    return text;
}

static void take_run(void *context, int i, const sr_runfile *run) {
    const tool program = {.name = "statplot"};
    plot_runs *r = context;
    r->run[i] = (plot_run){.file = run, .path = r->path[i], .look = i};
    describe(&r->run[i]);
    r->run[i].known = reader_identify(run, r->run[i].identity);
    run_warn_damage(&program, run);
}

sr_status plot_runs_open(plot_runs *r, char **paths, int count, sr_failure *why) {
    *r = (plot_runs){.path = calloc((size_t)count + 1, sizeof *r->path),
                     .run = calloc((size_t)count + 1, sizeof *r->run)};
    bool complete = r->path && r->run;
    while (complete && r->count < count)
        complete = (r->path[r->count] = path_word(paths[r->count])) != NULL && ++r->count;
    if (!complete) return sr_fail(why, SR_MEMORY, "out of memory for %d runs", count);
    if (count == 0) return SR_OK;
    sr_status status = run_set_open_each(&r->set, count, r->path, take_run, r, why);
    for (int i = 0; i < count && status == SR_OK; i++) status = find_startup(&r->run[i], why);
    if (status == SR_OK) run_cache_offer(r->set.run, count);
    return status;
}

void plot_runs_close(plot_runs *r) {
    run_cache_offer(NULL, 0);
    run_set_close(&r->set);
    for (int i = 0; i < r->count; i++) free(r->path[i]);
    free(r->path);
    free(r->run);
}

const sr_run_declared *plot_run_declared(const plot_run *run, const char *name) {
    const sr_run_declared *d;
    int64_t i = 0;
    while ((d = sr_run_get_declared(run->file, i)) && strcmp(d->name, name) != 0) i++;
    return d;
}
