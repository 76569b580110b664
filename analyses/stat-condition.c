/* Condition numbers of site inputs and of their gradients (Regularized BN, NeurIPS 2022, slides;
 * docs/norms.md 18.4). They come from recorded spectra (statrec train --spectra-every N).
 *
 * X [N, d] is the input of a site, valid rows, not centred, or dL/dX. sigma_1 >= ... >= sigma_d are
 * its singular values, m = ceil(p d):
 *
 *     slides:     C_max = sigma_1        C_p = sigma_1 / sigma_m
 *     released:   C_max = sigma_1^2 / N  C_p = (sigma_1 / sigma_m)^2     (eigenvalues of X^T X / N)
 *
 * The release counts padded positions in N; here N is the number of valid rows. A sigma_m of zero
 * gives infinity. It is exact for m > N. Otherwise the spectra come from X^T X in double, which
 * resolves sigma_m down to 5e-7 of sigma_1 and may turn smaller ones into 0. X itself in float32
 * has a precision of about 1e-7.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frame/site_selection.h"
#include "analysis/frame/stat_program.h"
#include "base/globs.h"
#include "base/svd.h"

enum { PARTS_MAX = 16 };

typedef struct settings {
    option_text site, p, form, of, steps;
} settings;

/* --p as numbers. */
typedef struct spectrum_parts {
    double part[PARTS_MAX];
    int count;
} spectrum_parts;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    TEXT_OPTION("Choice", "site", AT(site), "*",
                "use these sites: globs, first, middle, last, last-bn", .value = "SITE,..."),
    TEXT_OPTION("Choice", "p", AT(p), "0.2,0.5,0.8",
                "use these fractions of the spectrum: above 0, at most 1"),
    CHOICE_OPTION("Choice", "form", AT(form), "slides", "slides|released",
                  "slides: of X; released: of X^T X / N"),
    CHOICE_OPTION("Choice", "of", AT(of), "both", "both|input|gradient", "X, dL/dX, or both"),
    CHOICE_OPTION("Choice", "steps", AT(steps), "all", "all|last", "recorded steps"),
};

/* -- the table ------------------------------------------------------------------------------- */

/* One spectrum and its origin. */
typedef struct spectrum {
    const char *run, *tensor;
    const sr_run_site *site;
    int64_t place; /* index of the site in the forward pass, from 1 */
    int64_t step, rows;
    const double *sigma; /* [width] */
} spectrum;

static void declare_columns(stat_table *table) {
    const bool released = strcmp(((const settings *)table->settings)->form, "released") == 0;
    tsv *t = &table->table;
    site_columns(t);
    tsv_column(t, "norm", "its normalization");
    tsv_column(t, "place", "of the site among the recorded ones, in forward order, from 1");
    tsv_column(t, "step", "forward and backward passes so far");
    tsv_column(t, "tensor", "input: X, what the site normalizes; gradient: dL/dX");
    tsv_column(t, "N", "valid rows of X");
    tsv_column(t, "statistic",
               released ? "C_max: sigma_1^2 / N; C_p: (sigma_1 / sigma_m)^2"
                        : "C_max: sigma_1; C_p: sigma_1 / sigma_m");
    tsv_column(t, "p", "part of the spectrum; nan for C_max");
    tsv_column(t, "m", "ceil(p d)");
    tsv_column(t, "value", "inf where sigma_m is 0");
    tsv_column(t, "resolved", "no: sigma_m is below 5e-7 of sigma_1, or one is not finite");
}

static void print_row(tsv *t, const spectrum *s, const char *name, double p, int64_t m,
                      double value) {
    const double most = s->sigma[0], least = s->sigma[m - 1];
    const bool lost = least < SVD_RESOLUTION * most && m <= s->rows; /* a zero is exact then */
    tsv_text(t, s->run);
    tsv_text(t, s->site->name);
    tsv_text(t, s->site->norm);
    tsv_int(t, s->place);
    tsv_int(t, s->step);
    tsv_text(t, s->tensor);
    tsv_int(t, s->rows);
    tsv_text(t, name);
    tsv_real(t, p);
    tsv_int(t, m);
    tsv_real(t, value);
    tsv_text(t, lost || !isfinite(least) || !isfinite(most) ? "no" : "yes");
}

static void print_spectrum(stat_table *table, const spectrum *s) {
    const settings *o = table->settings;
    const spectrum_parts *p = table->state;
    tsv *t = &table->table;
    const bool released = strcmp(o->form, "released") == 0;
    const double largest = s->sigma[0];
    print_row(t, s, "C_max", NAN, 1, released ? largest * largest / (double)s->rows : largest);
    for (int i = 0; i < p->count; i++) {
        /* 0.7 * 10 is a little more than 7 */
        int64_t m = (int64_t)ceil(p->part[i] * (double)s->site->width - 1e-9);
        if (m < 1) m = 1;
        const double ratio = largest / s->sigma[m - 1];
        print_row(t, s, "C_p", p->part[i], m, released ? ratio * ratio : ratio);
    }
}

static sr_status print_site(stat_table *t, int r, int64_t site, sr_failure *why) {
    const settings *o = t->settings;
    static const char *const tensor[SR_SPECTRUM_COUNT] = {"input", "gradient"};
    const sr_runfile *f = t->set->run[r];
    const int64_t records = sr_run_get_info(f)->spectra;
    spectrum s = {.run = t->set->path[r], .site = sr_run_get_site(f, site)};
    for (int64_t i = 0; i <= site; i++) s.place += !globs_is_replica(sr_run_get_site(f, i)->name);
    double *sigma = malloc((size_t)s.site->width * sizeof *sigma);
    if (!sigma) return sr_fail(why, SR_MEMORY, "out of memory");
    s.sigma = sigma;
    sr_status status = SR_OK;
    for (int64_t i = strcmp(o->steps, "last") ? 0 : records - 1; i < records; i++)
        for (int which = 0; which < SR_SPECTRUM_COUNT && status == SR_OK; which++) {
            s.tensor = tensor[which];
            if (strcmp(o->of, "both") && strcmp(o->of, s.tensor)) continue;
            status = sr_run_spectrum(f, (sr_spectrum)which, site, i, &s.step, &s.rows, sigma, why);
            if (status == SR_OK && s.rows >= 0) print_spectrum(t, &s);
        }
    free(sigma);
    return status;
}

/* Visits the chosen sites of the runs with spectra: counts them, or prints them. */
static sr_status each_site(stat_table *t, int64_t *sites, bool print, sr_failure *why) {
    const settings *o = t->settings;
    sr_status status = SR_OK;
    for (int r = 0; r < t->set->count && status == SR_OK; r++) {
        const sr_run_info *info = sr_run_get_info(t->set->run[r]);
        bool *chosen = choice_in_run(t->set->run[r], o->site);
        if (!chosen) status = sr_fail(why, SR_MEMORY, "out of memory");
        for (int64_t i = 0; i < info->sites && info->spectra && status == SR_OK; i++) {
            *sites += chosen[i];
            if (print && chosen[i]) status = print_site(t, r, i, why);
        }
        free(chosen);
    }
    return status;
}

/* Notes the runs without any; a failure when there is nothing to print. */
static sr_status find_spectra(stat_table *t, sr_failure *why) {
    const settings *o = t->settings;
    const run_set *set = t->set;
    int64_t records = 0, sites = 0;
    spectrum_parts *p = t->state;
    p->count = numbers_of_list(o->p, p->part, PARTS_MAX);
    bool valid = p->count > 0;
    for (int i = 0; i < p->count; i++) valid = valid && p->part[i] > 0 && p->part[i] <= 1;
    if (!valid)
        return sr_fail(why, SR_USAGE, "--p: '%s' is not a list of up to %d numbers in (0, 1]", o->p,
                       PARTS_MAX);
    sr_status status = each_site(t, &sites, false, why);
    if (status != SR_OK) return status;
    for (int r = 0; r < set->count; r++) {
        const int64_t spectra = sr_run_get_info(set->run[r])->spectra;
        if (!spectra) tsv_note(&t->table, "note", "%s: no spectra: left out", set->path[r]);
        records += spectra;
    }
    tsv_note(&t->table, "form", "%s", o->form);
    tsv_note(&t->table, "method", "roots of the eigenvalues of X^T X, summed in double");
    if (sites) return SR_OK;
    if (records) return sr_fail(why, SR_USAGE, "--site: '%s' matches no site", o->site);
    sr_fail(why, SR_FORMAT, "%s%s has no spectra of site inputs", set->path[0],
            set->count > 1 ? " (and no other run)" : "");
    sr_hint(why, "`statrec train --spectra-every N` records them");
    return SR_FORMAT;
}

static sr_status print_runs(stat_table *t, sr_failure *why) {
    return each_site(t, &(int64_t){0}, true, why);
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-condition",
        .usage = "RUN.h5... [--p LIST] [--form released] [--site GLOB]",
        .does = "Condition numbers C_p and C_max of site inputs and of their gradients.",
        .options = {rows, sizeof rows / sizeof rows[0]},
        .settings = sizeof(settings),
        .state = sizeof(spectrum_parts),
        .head = find_spectra,
        .columns = declare_columns,
        .rows = print_runs,
    };
    return stat_program_main(&p, argc, argv);
}
