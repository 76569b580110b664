/* step_range.c -- the steps of a run that a summary uses.
 *
 * --burn-in skips the first steps, where running values still depend on initial ones: until these
 * weigh less than 1 % at every site (sr_run_startup of statrec/runfile.h). It counts passes
 * (run_burn_in_end).
 *
 * --phase: a half of training, or a phase of the learning rate. A phase is a longest run of updates
 * over which the rate rises, falls or stays. The update before a jump (a milestone) is the last of
 * its phase. Steps without an update have the rate of their update.
 */

#include "analysis/frame/step_range.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096, PHASES_MOST = 99, STARTUP_MOST = 1 << 30 };

/* -- phases of the learning rate ------------------------------------------------------------- */

typedef struct update {
    int64_t step; /* the last pass of the update */
    double rate;
} update;

typedef struct phase {
    int64_t first_step, last_step;
    char text[96];
} phase;

static const int64_t STEP_MOST = (int64_t)1 << 53; /* exact as a double */

/* Updates one after the other; first to last belong to the current phase. */
typedef struct phase_walk {
    int64_t wanted; /* its number from 1; 0: the last one */
    int64_t phases; /* that have begun */
    update first, last;
    int64_t before; /* step of the update before the phase; -1: none */
    bool turned;    /* there is a change in the phase */
    int way;        /* direction of the rate */
    phase *found;
} phase_walk;

static void phase_end(const phase_walk *w) {
    phase *p = w->found;
    if (!w->phases || (w->wanted && w->phases != w->wanted)) return;
    p->first_step = w->before + 1;
    p->last_step = w->last.step;
    if (!w->turned || w->way == 0)
        snprintf(p->text, sizeof p->text, "learning rate %g", w->last.rate);
    else
        snprintf(p->text, sizeof p->text, "learning rate %s from %g to %g",
                 w->way > 0 ? "rising" : "falling", w->first.rate, w->last.rate);
}

static void phase_add(phase_walk *w, update next) {
    const int way = (next.rate > w->last.rate) - (next.rate < w->last.rate);
    if (w->phases && (!w->turned || way == w->way)) {
        w->way = way, w->turned = true;
        w->last = next;
        return;
    }
    phase_end(w);
    w->before = w->phases ? w->last.step : -1;
    w->first = w->last = next;
    w->turned = false;
    w->phases++;
}

/* Number `wanted` from 1, or the last one for 0; *phases: how many there are. */
static sr_status phase_find(const sr_runfile *run, int64_t wanted, phase *found, int64_t *phases,
                            sr_failure *why) {
    const int64_t steps = sr_run_get_info(run)->steps;
    phase_walk w = {.wanted = wanted, .found = found};
    sr_status status = SR_OK;
    for (int64_t at = 0; at < steps && status == SR_OK; at += BLOCK) {
        const int64_t count = steps - at < BLOCK ? steps - at : BLOCK;
        int64_t step[BLOCK];
        double rate[BLOCK];
        status = sr_run_step_ints(run, "step", at, count, step, why);
        if (status == SR_OK) status = sr_run_step_reals(run, "lr", at, count, rate, why);
        for (int64_t i = 0; i < count && status == SR_OK; i++)
            if (!isnan(rate[i])) phase_add(&w, (update){step[i], rate[i]}); /* NaN: no update */
    }
    if (status == SR_OK) phase_end(&w);
    *phases = status == SR_OK ? w.phases : 0;
    return status;
}

/* -- the window ------------------------------------------------------------------------------ */

static sr_status set_phase(step_window *w, const sr_runfile *run, const char *path,
                           const char *word, sr_failure *why) {
    char *end;
    const bool last = strcmp(word, "last") == 0;
    const long number = last ? 0 : strtol(word, &end, 10);
    if (!last && (*end || end == word || number < 1 || number > PHASES_MOST))
        return sr_fail(why, SR_USAGE,
                       "--phase: '%s' is not all, first-half, second-half, last, N or FROM:TO",
                       word);
    phase p = {0};
    int64_t phases;
    sr_status status = phase_find(run, number, &p, &phases, why);
    if (status != SR_OK) return status;
    if (!phases || number > phases)
        return sr_fail(why, SR_USAGE, "--phase %s: %s has %lld phases of the learning rate", word,
                       path, (long long)phases);
    w->first = p.first_step, w->last = p.last_step;
    snprintf(w->what, sizeof w->what, "phase %lld of %lld, %s", (long long)(last ? phases : number),
             (long long)phases, p.text);
    return SR_OK;
}

/* "100:200", both included. False when it is no such word. */
static bool set_steps(step_window *w, const char *word) {
    char *middle, *end;
    const long long first = strtoll(word, &middle, 10);
    const long long last = middle > word && *middle == ':' ? strtoll(middle + 1, &end, 10) : 0;
    if (middle == word || *middle != ':' || end == middle + 1 || *end || first < 0 || first > last)
        return false;
    w->first = first, w->last = last;
    snprintf(w->what, sizeof w->what, "as asked for");
    return true;
}

int64_t second_half_from(int64_t last) {
    return last / 2 + 1;
}

/* A burn-in that the user gave leaves a step. */
static sr_status check_burn_in(const step_window *w, const sr_runfile *run, const char *path,
                               const char *phase_word, sr_failure *why) {
    const int64_t steps = sr_run_get_info(run)->steps;
    if (!w->given || w->first <= w->last) return SR_OK;
    if (w->startup >= steps)
        return sr_fail(why, SR_USAGE, "--burn-in %lld: %s has %lld steps", (long long)w->startup,
                       path, (long long)steps);
    return sr_fail(why, SR_USAGE, "--burn-in %lld: %s has no later step in --phase %s",
                   (long long)w->startup, path, phase_word);
}

/* A site whose running values have no known weight, such as a cumulative average; NULL: none. */
static const char *site_without_alpha(const sr_runfile *run) {
    const sr_run_site *site;
    for (int64_t i = 0; (site = sr_run_get_site(run, i)); i++)
        if (isnan(site->alpha) && (site->observed || sr_run_over_batch(site))) return site->name;
    return NULL;
}

/* Leaves out the burn-in of w->startup steps. */
static sr_status skip_burn_in(step_window *w, const sr_runfile *run, sr_failure *why) {
    sr_status status = run_nth_step(run, 0, &w->begin, why);
    w->begin++;
    if (status == SR_OK)
        status = (w->given ? run_nth_step : run_burn_in_end)(run, w->startup, &w->startup_end, why);
    if (status != SR_OK) return status;
    if (w->first < w->begin) w->first = w->begin;
    if (!w->given && w->startup == 0 && w->first == w->begin) w->no_alpha = site_without_alpha(run);
    if (w->first > w->startup_end) return SR_OK;
    w->first = w->startup_end + 1, w->cut = w->startup > 0;
    return SR_OK;
}

sr_status window_make(step_window *w, const sr_runfile *run, const char *path, const char *startup,
                      const char *phase_word, sr_failure *why) {
    int64_t last;
    char *end;
    *w = (step_window){0};
    sr_status status = run_last_step(run, &last, why);
    if (status != SR_OK) return status;
    if (last > STEP_MOST)
        return sr_fail(why, SR_FORMAT, "%s: its last step is %lld, not 0 to %lld", path,
                       (long long)last, (long long)STEP_MOST);
    w->given = strcmp(startup, "auto") != 0;
    w->startup = w->given ? strtoll(startup, &end, 10) : sr_run_startup(run);
    if (w->given && (*end || end == startup || w->startup < 0 || w->startup >= STARTUP_MOST))
        return sr_fail(why, SR_USAGE, "--burn-in: '%s' is not auto or a number of steps", startup);
    w->last = w->end = last;
    if (strcmp(phase_word, "first-half") == 0)
        w->last = second_half_from(last) - 1, snprintf(w->what, sizeof w->what, "first half");
    else if (strcmp(phase_word, "second-half") == 0)
        w->first = second_half_from(last), snprintf(w->what, sizeof w->what, "second half");
    else if (strcmp(phase_word, "all") != 0 && !set_steps(w, phase_word))
        status = set_phase(w, run, path, phase_word, why);
    if (status == SR_OK && w->first > last)
        return sr_fail(why, SR_USAGE, "--phase %s: %s has %lld steps", phase_word, path,
                       (long long)last);
    if (w->last > last) w->last = last;
    if (status == SR_OK) status = skip_burn_in(w, run, why);
    return status == SR_OK ? check_burn_in(w, run, path, phase_word, why) : status;
}

void window_describe(const step_window *w, const char *path, tsv *table) {
    char startup[224] = "";
    if (w->cut && w->given)
        snprintf(startup, sizeof startup, "; the first %lld left out (--burn-in)",
                 (long long)w->startup);
    else if (w->cut && w->startup_end != w->startup)
        snprintf(startup, sizeof startup,
                 "; burn-in skipped: the first %lld recorded steps, until step %lld, in which "
                 "running values may hold over %g %% of initial ones (--burn-in 0 keeps it)",
                 (long long)w->startup, (long long)w->startup_end, 100 * SR_STARTUP_LEFT);
    else if (w->cut)
        snprintf(startup, sizeof startup,
                 "; burn-in skipped: until step %lld running values hold over %g %% of initial "
                 "ones (--burn-in 0 keeps it)",
                 (long long)w->startup, 100 * SR_STARTUP_LEFT);
    else if (w->no_alpha)
        snprintf(startup, sizeof startup,
                 "; no burn-in skipped: site %.40s has no alpha (--burn-in N skips N steps)",
                 w->no_alpha);
    if (w->first > w->last)
        tsv_note(table, "steps", "%s: none of %lld%s%s%s", path, (long long)w->end,
                 w->what[0] ? "; " : "", w->what, startup);
    else
        tsv_note(table, "steps", "%s: %lld to %lld of %lld%s%s%s", path, (long long)w->first,
                 (long long)w->last, (long long)w->end, w->what[0] ? "; " : "", w->what, startup);
}

/* First step of the part. */
static int64_t part_begin(int64_t from, int64_t length, int64_t cuts, int64_t number) {
    /* without the product of number and length, which may overflow */
    return from + number * (length / cuts) + (number * (length % cuts) + cuts - 1) / cuts;
}

step_window window_part(const step_window *w, int64_t cuts, int64_t number) {
    step_window part = *w;
    const int64_t length = w->last >= w->first ? w->last - w->first + 1 : 0;
    part.first = part_begin(w->first, length, cuts, number);
    part.last = part_begin(w->first, length, cuts, number + 1) - 1;
    return part;
}

void window_part_columns(tsv *t) {
    tsv_column(t, "part", "part of training, from 1");
    tsv_column(t, "to", "percent of these steps at which the part ends");
}

void window_part_cells(tsv *t, int64_t cuts, int64_t number) {
    tsv_int(t, number + 1);
    tsv_real(t, 100.0 * (double)(number + 1) / (double)cuts);
}

sr_status window_rows(const step_window *w, const series *s, int64_t *first, int64_t *count,
                      sr_failure *why) {
    int64_t end = 0;
    sr_status status = series_find_row(s, w->first, first, why);
    if (status == SR_OK) status = series_find_row(s, w->last + 1, &end, why);
    *count = end > *first ? end - *first : 0;
    return status;
}

sr_status window_spacing(const step_window *w, const series *s, double *spacing, sr_failure *why) {
    int64_t first = 0, count = 0, from = 0, to = 0;
    *spacing = NAN;
    sr_status status = window_rows(w, s, &first, &count, why);
    if (status != SR_OK || count < 2) return status;
    status = series_read_steps(s, first, 1, &from, why);
    if (status == SR_OK) status = series_read_steps(s, first + count - 1, 1, &to, why);
    if (status == SR_OK) *spacing = (double)(to - from) / (double)(count - 1);
    return status;
}

/* A table over all of training mixes the phases of a learning rate that jumps or turns. */
static sr_status note_phases(const sr_runfile *run, const char *path, tsv *table, sr_failure *why) {
    phase unused;
    int64_t phases;
    sr_status status = phase_find(run, 0, &unused, &phases, why);
    if (status == SR_OK && phases > 1 && phases <= PHASES_MOST)
        tsv_note(table, "note", "%s: includes %lld learning-rate phases; --phase chooses one", path,
                 (long long)phases);
    return status;
}

sr_status run_tokens(const sr_runfile *run, summary *s, int64_t *few, sr_failure *why) {
    const int64_t steps = sr_run_get_info(run)->steps;
    column_block b = {0};
    *few = 0;
    sr_status status = columns_create(&b, 1, steps, why);
    if (status == SR_OK && steps)
        status = sr_run_step_reals(run, "tokens", 0, steps, b.memory, why);
    if (status == SR_OK) summary_range(b.memory, steps, s);
    for (int64_t i = 0; i < steps && status == SR_OK; i++) *few += b.memory[i] < s->median / 2;
    columns_free(&b);
    return status;
}

/* Passes with far fewer tokens, such as the last of an epoch, have noisier batch statistics and
 * often the largest values. */
static sr_status note_short_passes(sr_runfile *run, const char *path, tsv *table, sr_failure *why) {
    const int64_t steps = sr_run_get_info(run)->steps;
    summary s;
    int64_t count;
    sr_status status = run_tokens(run, &s, &count, why);
    if (status == SR_OK && count)
        tsv_note(table, "note",
                 "%s: %lld of %lld passes have less than half of the usual %g tokens or images. "
                 "They may cause the largest values",
                 path, (long long)count, (long long)steps, s.median);
    return status;
}

/* A note that fails does not stop the table, which does not use its column. */
static sr_status without_note(const sr_failure *why_not, tsv *table, sr_failure *why) {
    if (why_not->status == SR_MEMORY) return sr_fail(why, SR_MEMORY, "%s", why_not->text);
    if (why_not->status != SR_OK) tsv_note(table, "warning", "%s", why_not->text);
    return SR_OK;
}

sr_status windows_make(step_window **windows, const run_set *set, const char *startup,
                       const char *phase_word, tsv *table, sr_failure *why) {
    sr_status status = SR_OK;
    *windows = calloc((size_t)set->count + 1, sizeof **windows);
    if (!*windows) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int r = 0; r < set->count && status == SR_OK; r++) {
        status = window_make(&(*windows)[r], set->run[r], set->path[r], startup, phase_word, why);
        if (status != SR_OK || !table) continue;
        window_describe(&(*windows)[r], set->path[r], table);
        sr_failure phases = {0}, passes = {0};
        if (strcmp(phase_word, "all") == 0) note_phases(set->run[r], set->path[r], table, &phases);
        note_short_passes(set->run[r], set->path[r], table, &passes);
        status = without_note(&phases, table, why);
        if (status == SR_OK) status = without_note(&passes, table, why);
    }
    return status;
}
