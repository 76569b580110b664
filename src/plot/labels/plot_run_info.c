/* plot_run_info.c -- reads a run file once for everything that labels say of it. */
#include "plot/labels/plot_run_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/runs/run_cache.h"
#include "analysis/runs/run_config.h"

static void copy(char *to, size_t size, const char *from) {
    snprintf(to, size, "%s", from && from[0] ? from : "?");
}

static double startup_percent(const sr_runfile *f) {
    const int64_t steps = sr_run_get_info(f)->steps;
    int64_t last = 0;
    if (steps) sr_run_step_ints(f, "step", steps - 1, 1, &last, NULL);
    const double percent = last ? 100 * (double)sr_run_startup(f) / (double)last : 0;
    return percent < 100 ? percent : 100;
}

static bool has_word(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && strncmp(at, word, length) == 0) return true;
    return false;
}

/* The methods of the sites, and what the first uses of a batch. */
static void read_sites(const sr_runfile *f, plot_run_info *p) {
    const sr_run_site *site = sr_run_main_site(f);
    p->has_site = site != NULL;
    if (site) p->site = *site;
    if (site && sr_run_over_batch(site)) snprintf(p->uses, sizeof p->uses, "%s", site->uses);
    for (int64_t i = 0; (site = sr_run_get_site(f, i)); i++) {
        const size_t used = strlen(p->norms);
        if (!has_word(p->norms, site->norm) && used + strlen(site->norm) + 2 <= sizeof p->norms)
            snprintf(p->norms + used, sizeof p->norms - used, "%s ", site->norm);
    }
}

/* False when out of memory. */
static bool read_declared(const sr_runfile *f, plot_run_info *p) {
    const sr_run_declared *d;
    int count = 0;
    while (sr_run_get_declared(f, count)) count++;
    p->declared = calloc((size_t)count + 1, sizeof *p->declared);
    for (; p->declared && (d = sr_run_get_declared(f, p->declares)); p->declares++) {
        facts_declared *to = &p->declared[p->declares];
        snprintf(to->name, sizeof to->name, "%s", d->name);
        snprintf(to->unit, sizeof to->unit, "%s", d->unit);
        to->of_steps = d->scope == SR_PER_STEP;
    }
    return p->declared != NULL;
}

const facts_declared *plot_run_info_find(const plot_run_info *p, const char *name) {
    for (int i = 0; i < p->declares; i++)
        if (strcmp(p->declared[i].name, name) == 0) return &p->declared[i];
    return NULL;
}

static sr_status read_run(const char *path, plot_run_info *p, sr_failure *why) {
    char name[FACTS_PART];
    sr_runfile *f = run_open(path, NULL, why);
    if (!f) return why->status;
    const sr_run_info *info = sr_run_get_info(f);
    copy(p->text[FACTS_MODEL], FACTS_PART, info->model);
    copy(p->text[FACTS_NORM], FACTS_PART, sr_run_main_norm(f));
    run_data_name(f, name, sizeof name);
    copy(p->text[FACTS_DATA], FACTS_PART, name);
    snprintf(p->text[FACTS_SEED], FACTS_PART, "seed %llu", (unsigned long long)info->seed);
    p->config = strdup(info->config ? info->config : "");
    const bool whole = read_declared(f, p);
    p->startup = startup_percent(f);
    read_sites(f, p);
    run_close(f);
    return p->config && whole ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
}

sr_status plot_run_info_read(plot_run_info **facts, char **paths, int count, sr_failure *why) {
    plot_run_info *p = *facts = calloc((size_t)count, sizeof *p);
    sr_status status = p ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < count && status == SR_OK; i++) status = read_run(paths[i], &p[i], why);
    if (status == SR_OK) return SR_OK;
    plot_run_info_free(p, count);
    *facts = NULL;
    return status;
}

void plot_run_info_free(plot_run_info *p, int count) {
    for (int i = 0; p && i < count; i++) free(p[i].config), free(p[i].declared);
    free(p);
}

plot_run_info *plot_run_info_choose(const plot_run_info *p, const int *place, int count) {
    plot_run_info *chosen = calloc((size_t)count, sizeof *chosen);
    for (int i = 0; chosen && i < count; i++) chosen[i] = p[place[i]];
    return chosen;
}
