/* diagnosed_run.c -- a run as a diagnosis sees it: the steps that count.
 *
 * It skips the burn-in of the running statistics (sr_run_startup). It also skips passes with less
 * than half of the usual tokens, such as the last pass of an epoch: fewer rows alone make batch
 * statistics noisier.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/runs/run_config.h"
#include "base/globs.h"
#include "diagnose/diagnosis.h"

static sr_status mark_usual(subject *s, sr_failure *why) {
    double *tokens = malloc(2 * (size_t)(s->count + 1) * sizeof *tokens);
    if (!tokens) return sr_fail(why, SR_MEMORY, "out of memory");
    double *sorted = tokens + s->count + 1;
    summary usual;
    sr_failure unread = {0};
    const bool known =
        sr_run_step_reals(s->run, "tokens", s->first, s->count, tokens, &unread) == SR_OK;
    memcpy(sorted, tokens, (size_t)(known ? s->count : 0) * sizeof *tokens);
    summary_range(sorted, known ? s->count : 0, &usual);
    for (int64_t i = 0; i < s->count; i++) {
        s->usual[i] = !known || !(tokens[i] < usual.median / 2);
        s->shorter += !s->usual[i];
    }
    free(tokens);
    return SR_OK;
}

sr_status subject_open(subject *s, const sr_runfile *run, const char *path, sr_failure *why) {
    const sr_run_site *site;
    static const char ours[] = "statrec train", watch[] = "statrec.watch ";
    *s = (subject){.run = run, .info = sr_run_get_info(run), .path = path};
    s->trained = s->info->program && strncmp(s->info->program, ours, sizeof ours - 1) == 0;
    s->watched = s->info->version && strncmp(s->info->version, watch, sizeof watch - 1) == 0;
    for (int64_t i = 0; (site = sr_run_get_site(run, i)); i++) {
        if (globs_is_replica(site->name)) continue;
        s->sites++;
        s->batch_sites += sr_run_over_batch(site);
        s->observed_sites += site->observed == 1;
        s->merged_sites += site->merged == 1;
    }
    const series any = {run, 0, &recorded_statistics[0], FROM_SCALARS};
    sr_status status = window_make(&s->window, run, path, "auto", "all", why);
    if (status == SR_OK) status = window_rows(&s->window, &any, &s->first, &s->count, why);
    if (status != SR_OK) return status;
    s->step = malloc((size_t)(s->count + 1) * sizeof *s->step);
    s->usual = malloc((size_t)(s->count + 1) * sizeof *s->usual);
    s->columns = columns_keep();
    if (!s->step || !s->usual || !s->columns) return sr_fail(why, SR_MEMORY, "out of memory");
    status = sr_run_step_ints(run, "step", 0, s->info->steps > 0, &s->begin, why);
    if (status != SR_OK) return status;
    status = sr_run_step_ints(run, "step", s->first, s->count, s->step, why);
    return status == SR_OK ? mark_usual(s, why) : status;
}

void subject_free(subject *s) {
    free(s->step);
    free(s->usual);
    columns_drop(s->columns);
}

bool subject_has(const subject *s, const char *name) {
    const stat_form *f = form_find(name);
    if (!f) return sr_run_has_scalar(s->run, name);
    /* the last terms of a fraction and of an excess are for observed sites */
    return sr_run_has_scalar(s->run, f->term[0]);
}

bool subject_is_replica(const subject *s, int64_t site) {
    return globs_is_replica(sr_run_get_site(s->run, site)->name);
}

sr_status subject_vectors(const subject *s, int64_t *first, int64_t *count, sr_failure *why) {
    const series of = {s->run, 0, &recorded_statistics[0], FROM_VECTORS};
    return window_rows(&s->window, &of, first, count, why);
}

sr_status subject_begins_with(const subject *s, int64_t site, const char *vector, float start,
                              bool *begins, sr_failure *why) {
    const int64_t width = sr_run_get_site(s->run, site)->width;
    option_text from;
    run_option(s->run, "weights", from, sizeof from);
    *begins = !from[0];
    if (!*begins || !sr_run_has_vector(s->run, vector) || s->info->vectors == 0) return SR_OK;
    float *value = malloc((size_t)width * sizeof *value);
    if (!value) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = sr_run_vector(s->run, vector, site, 0, 1, value, why);
    int64_t step = 0;
    if (status == SR_OK) status = sr_run_vector_steps(s->run, 0, 1, &step, why);
    for (int64_t k = 0; k < width && status == SR_OK && step == 1; k++)
        if (isfinite(value[k]) && value[k] != start) *begins = false;
    free(value);
    return status;
}

const char *subject_how(const subject *s, const char *how) {
    return s->trained ? how : "";
}

double *subject_room(const subject *s, int columns, sr_failure *why) {
    double *room = malloc((size_t)columns * (size_t)(s->info->steps + 1) * sizeof *room);
    if (!room) sr_fail(why, SR_MEMORY, "out of memory");
    return room;
}
