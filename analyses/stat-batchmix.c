/* The fraction of mu_B - mu that depends on the composition of the batches: row positions, sentence
 * lengths, padding.
 *
 * If batches hold sentences of similar length, the batch mean of the position encoding differs from
 * batch to batch. So does every feature that depends on length. mu_B then moves away from mu
 * without any change of the words. With delta_t = mu_B - mu of step t, a vector of d features,
 *
 *     share = 1 - sum_t ||delta_t - part_t||^2 / sum_t ||delta_t||^2
 *
 *     position         part_t = position_B - position: recorded at the first site of a stack, exact
 *     length, padding  part_t = B' z_t, the covariates of batchmix_covariates.c by least squares
 *                      out of sample (batchmix_fit.c)
 *
 * A share is negative if subtracting the part lengthens delta: a fit to noise, or a position part
 * that the rest of the mean cancels. With slope = sum <delta, p>/sum ||p||^2 the share of the
 * position is (2 slope - 1) sum ||p||^2/sum ||delta||^2, negative below slope 1/2. A slope of 1
 * means that the rest is unrelated to p.
 *
 * Folds: blocks of neighbouring rows, twice as long as the memory of the running mean, go to ten
 * folds in turn. Control: the same regression after `shifts` circular shifts of the covariates in
 * time: its result without any relation. Without a relation, a share lies outside the range of n
 * shifts with probability 2/(n + 1). Intervals: circular block bootstrap of the ratio of the two
 * sums, with fixed coefficients. They cover steps of this run, not other seeds.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/batchmix/batchmix.h"
#include "analysis/frame/stat_program.h"

typedef struct settings {
    option_text site, startup, phase;
    int64_t length_terms, padding_terms;
    mix_intervals of;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    SITE_OPTION(AT(site)),
    WINDOW_OPTIONS(AT(startup), AT(phase)),
    INT_OPTION("Covariates", "length-terms", AT(length_terms), "4", 1, MIX_TERMS, "",
               "fit N terms of sentence length"),
    INT_OPTION("Covariates", "padding-terms", AT(padding_terms), "2", 1, MIX_TERMS, "",
               "fit N terms of the padded fraction"),
    INT_OPTION("Intervals", "shifts", AT(of.shifts), "39", 0, 999, "",
               "compute the control from N time shifts of the covariates"),
    LEVEL_OPTION(AT(of.level)),
    RESAMPLES_OPTION(AT(of.resamples)),
    SEED_OPTION(AT(of.seed)),
};

static const statistic found[] = {
    {"mu", "mu", "mu_B - mu", NEEDS(mu_B) | NEEDS(mu) | NEEDS(sigma2), first_values, NULL},
    {"position", "position", "position_B - position", NEEDS(position_B) | NEEDS(position),
     first_values, NULL},
};

/* -- the table ------------------------------------------------------------------------------- */

/* A row for every part of it. */
typedef struct result {
    const char *path;
    const sr_run_site *site;
    int terms[MIX_PARTS];
    mix_known known[2];
    int64_t block, rows, first_step, last_step;
    mix_outcome outcome;
} result;

static void declare_columns(stat_table *table) {
    tsv *t = &table->table;
    site_columns(t);
    tsv_column(t, "norm", "its normalization");
    tsv_column(t, "part",
               "part subtracted from delta = mu_B - mu. position: position_B - position, exact. "
               "length: rows/samples, padding: padded/(rows + padded), by regression");
    tsv_column(t, "terms", "coefficients for each feature that the regression has");
    tsv_column(t, "first_step", "first recorded step that is used");
    tsv_column(t, "last_step", "last recorded step that is used");
    tsv_column(t, "steps", "recorded steps from first to last that are finite");
    tsv_column(t, "nonfinite", "the others, in no other column");
    tsv_column(t, "share",
               "1 - sum_t ||delta - part||^2 / sum_t ||delta||^2, out of sample. Below 0: "
               "subtracting the part lengthens delta");
    tsv_column(t, "low", "lower end of the interval of share over blocks of steps of this run");
    tsv_column(t, "high", "upper end");
    tsv_column(t, "control_low",
               "least share with the covariates moved in time: the result without any relation");
    tsv_column(t, "control_high", "largest share with the covariates moved in time");
    tsv_column(t, "tid", "mean_t ||delta - part||_2 / ||sigma||_2: mean TID without the part");
    tsv_column(t, "slope",
               "sum <delta, p> / sum ||p||^2, p the position part. 1: the rest of delta is "
               "unrelated to p. Below 1/2 the share is negative");
    tsv_column(t, "independent",
               "fraction of ||delta||^2 with n independent rows: 2/(1 + alpha) sum_t ||sigma||^2/n "
               "/ sum_t ||delta||^2");
}

static void print_result(const result *r, tsv *t) {
    const mix_outcome *o = &r->outcome;
    for (int part = 0; part < MIX_PARTS; part++) {
        const mix_share *s = &o->part[part];
        if (!s->there) continue;
        tsv_text(t, r->path);
        tsv_text(t, r->site->name);
        tsv_text(t, r->site->norm);
        tsv_text(t, mix_part_name[part]);
        tsv_int(t, r->terms[part]);
        tsv_int(t, r->first_step);
        tsv_int(t, r->last_step);
        tsv_int(t, o->used);
        tsv_int(t, o->nonfinite);
        tsv_real(t, s->share);
        tsv_real(t, s->low);
        tsv_real(t, s->high);
        tsv_real(t, s->control_low);
        tsv_real(t, s->control_high);
        tsv_real(t, s->tid);
        tsv_real(t, part == MIX_POSITION ? o->slope : NAN);
        tsv_real(t, o->independent);
    }
}

/* -- notes above it -------------------------------------------------------------------------- */

/* Once for all sites of a run that leave a covariate out for the same reason. */
static void note_covariate(const result *r, int64_t count, int covariate, mix_known why, tsv *t) {
    static const char *const name[2] = {"length", "padding"};
    int64_t sites = 0;
    const result *example = NULL;
    for (int64_t i = 0; i < count; i++) {
        if (!r[i].rows || r[i].known[covariate] != why) continue;
        if (!sites++) example = &r[i];
    }
    if (!sites) return;
    tsv_note(t, "note", "%s: %s is %s at %lld of %lld sites (%s%s): left out", r->path,
             name[covariate], why == MIX_CONSTANT ? "constant" : "not recorded", (long long)sites,
             (long long)count, example->site->name, sites > 1 ? ", ..." : "");
}

/* r [count]: the sites of one run. Notes a block length that differs from the site before. */
static void note_run(const result *r, int64_t count, tsv *t) {
    for (int64_t i = 0; i < count; i++) {
        if (!r[i].rows)
            tsv_note(t, "note", "%s: %s: no recorded steps: left out", r->path, r[i].site->name);
        else if (!i || r[i].block != r[i - 1].block)
            tsv_note(t, "blocks", "%s: from %s on: %lld recorded steps stay together", r->path,
                     r[i].site->name, (long long)r[i].block);
    }
    for (int covariate = 0; covariate < 2; covariate++) {
        note_covariate(r, count, covariate, MIX_CONSTANT, t);
        note_covariate(r, count, covariate, MIX_UNKNOWN, t);
    }
}

/* -- the sites ------------------------------------------------------------------------------- */

/* Chooses the parts of the analysis, and notes why others are left out. */
static void choose_parts(const mix_site *m, result *r, tsv *t) {
    for (int part = 0; part < MIX_PARTS && m->rows > 0; part++) {
        const mix_model model = mix_model_of(m, (mix_part)part);
        const bool whole = !model.target || m->position;
        r->terms[part] = model.count;
        if (!whole || (part >= MIX_LENGTH && !model.count)) continue;
        if (m->rows >= MIX_STEPS_PER_TERM * model.count)
            r->outcome.part[part].there = true;
        else
            tsv_note(t, "note",
                     "%s: %s: %s: skipped: %lld recorded steps; needs %d for each of %d terms",
                     r->path, r->site->name, mix_part_name[part], (long long)r->rows,
                     MIX_STEPS_PER_TERM, r->terms[part]);
    }
}

static sr_status examine(stat_table *t, const site_choice *at, bool position, mix_site *m,
                         result *r, sr_failure *why) {
    const settings *s = t->settings;
    const mix_wanted wanted = {&t->window[at->run], (int)s->length_terms, (int)s->padding_terms};
    m->at = r->site = sr_run_get_site(m->run, at->site);
    m->site = at->site;
    m->position = position;
    sr_status status = mix_site_read(m, &wanted, why);
    r->block = m->block, r->rows = m->rows;
    memcpy(r->known, m->known, sizeof r->known);
    if (status != SR_OK || !m->rows) return status;
    r->first_step = m->step[0], r->last_step = m->step[m->rows - 1];
    choose_parts(m, r, &t->table);
    return mix_explain(m, &s->of, &r->outcome, why);
}

/* The sites of one run, from the first-th chosen one on; *count of them. r: their results. */
static sr_status examine_run(stat_table *t, int64_t first, int64_t *count, result *r,
                             sr_failure *why) {
    const choice *c = &t->chosen;
    const int run = c->site[first].run;
    const sr_runfile *file = t->set->run[run];
    bool *position = calloc((size_t)sr_run_get_info(file)->sites + 1, sizeof *position);
    sr_status status = position ? series_recorded(file, &found[1], FROM_VECTORS, position, why)
                                : sr_fail(why, SR_MEMORY, "out of memory");
    for (*count = 0; first + *count < c->sites && status == SR_OK; ++*count) {
        const site_choice *at = &c->site[first + *count];
        mix_site m = {.run = file};
        if (at->run != run) break;
        r[*count].path = t->set->path[run];
        status = examine(t, at, position[at->site], &m, &r[*count], why);
        mix_site_free(&m);
    }
    if (status == SR_OK) note_run(r, *count, &t->table);
    free(position);
    return status;
}

static sr_status examine_all(stat_table *t, sr_failure *why) {
    const settings *s = t->settings;
    const table_choice c = {.source = FROM_VECTORS, .site = s->site};
    int64_t some, rows_left = 0;
    t->chosen = (choice){.wanted = {&found[0]}, .statistics = 1};
    sr_status status = windows_make(&t->window, t->set, s->startup, s->phase, &t->table, why);
    if (status == SR_OK) status = table_choose(t, &c, why);
    if (status != SR_OK) return status;
    result *r = *(result **)t->state = calloc((size_t)t->chosen.sites + 1, sizeof *r);
    if (!r) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; i < t->chosen.sites && status == SR_OK; i += some)
        status = examine_run(t, i, &some, r + i, why);
    for (int64_t i = 0; i < t->chosen.sites; i++) rows_left += r[i].rows;
    if (status != SR_OK || rows_left) return status;
    const step_window *w = &t->window[0];
    if (w->first > w->last)
        sr_fail(why, SR_FORMAT, "%s: the burn-in of %lld steps leaves none up to step %lld",
                r->path, (long long)w->startup, (long long)w->last);
    else
        sr_fail(why, SR_FORMAT, "%s: no vectors recorded in steps %lld to %lld", r->path,
                (long long)w->first, (long long)w->last);
    sr_hint(why, "`--burn-in N` leaves out fewer steps at the beginning");
    return SR_FORMAT;
}

static sr_status print_results(stat_table *t, sr_failure *why) {
    (void)why;
    for (int64_t i = 0; i < t->chosen.sites; i++) print_result(*(result **)t->state + i, &t->table);
    return SR_OK;
}

static void release(stat_table *t) {
    free(*(result **)t->state);
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-batchmix",
        .usage = "RUN.h5... [--site GLOB] [--burn-in N] [--phase P]",
        .does = "Fraction of ||mu_B - mu||^2 that sentence length, padding and position explain.\n"
                "Keeps up to 21 numbers in memory for each row of vectors.",
        .options = {rows, sizeof rows / sizeof rows[0]},
        .settings = sizeof(settings),
        .state = sizeof(result *), /* results of the chosen sites */
        .head = examine_all,
        .columns = declare_columns,
        .rows = print_results,
        .release = release,
    };
    return stat_program_main(&p, argc, argv);
}
