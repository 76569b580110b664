/* Distribution over features of gamma / psi_B (PowerNorm, ICML 2020, figure 7 and Lemma 2;
 * docs/norms.md 18.5).
 *
 *     ratio_k = |gamma_k| / sqrt(psi2_B[k] + eps),  k = 1 .. d
 *
 * Lemma 2 needs ratio <= 1 in every feature; the paper omits the absolute value. Default: deciles
 * at the last recorded step; --steps all: at every recorded step; --per-feature: the ratios
 * themselves.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frame/site_table.h"
#include "analysis/frame/stat_program.h"
#include "base/sort.h"

typedef struct settings {
    option_text site, steps;
    bool per_feature;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    SITE_OPTION(AT(site)),
    CHOICE_OPTION("Choice", "steps", AT(steps), "last", "last|all",
                  "use these recorded steps of /vectors"),
    FLAG_OPTION("Output", "per-feature", AT(per_feature), "no",
                "print a row for each feature instead of each site and step"),
};

/* Only there to let the frame find the sites with both vectors. */
static double has_both(const vector_row *r) {
    return r->v[SR_gamma][0] + r->v[SR_psi2_B][0];
}
static const statistic ratio = {
    "ratio",  "gamma/psi_B", "|gamma| / sqrt(psi2_B + eps)", NEEDS(gamma) | NEEDS(psi2_B),
    has_both, NULL};

static const double decile[] = {0, 0.1, 0.25, 0.5, 0.75, 0.9, 1};
static const char *const decile_name[] = {"min", "q10", "q25", "median", "q75", "q90", "max"};
enum { DECILES = sizeof decile / sizeof decile[0] };

static void declare_columns(tsv *t, bool per_feature) {
    tsv_column(t, "run", "run file as given");
    tsv_column(t, "site", "normalization site");
    tsv_column(t, "step", "forward and backward passes so far");
    if (per_feature) {
        tsv_column(t, "feature", "k, from 0");
        tsv_column(t, "ratio", "|gamma_k| / sqrt(psi2_B[k] + eps)");
    } else {
        tsv_column(t, "features", "d");
        tsv_column(t, "nonfinite", "features with NaN or infinity, in no other column");
        for (int i = 0; i < DECILES; i++)
            tsv_column(t, decile_name[i], "of |gamma| / sqrt(psi2_B + eps) over features");
        tsv_column(t, "above", "share of features with a ratio above 1");
    }
    tsv_header(t);
}

typedef struct site_step {
    const run_set *set;
    const site_choice *at;
    const sr_run_site *site;
    int64_t step;
} site_step;

static void begin_row(tsv *t, const site_step *p) {
    tsv_text(t, p->set->path[p->at->run]);
    tsv_text(t, p->site->name);
    tsv_int(t, p->step);
}

static void print_features(tsv *t, const site_step *p, const double *value) {
    for (int64_t k = 0; k < p->site->width; k++) {
        begin_row(t, p);
        tsv_int(t, k);
        tsv_real(t, value[k]);
    }
}

static void print_deciles(tsv *t, const site_step *p, double *value) {
    int64_t n = 0, above = 0;
    for (int64_t k = 0; k < p->site->width; k++) {
        if (!isfinite(value[k])) continue;
        above += value[k] > 1;
        value[n++] = value[k];
    }
    sort_reals(value, n);
    begin_row(t, p);
    tsv_int(t, p->site->width);
    tsv_int(t, p->site->width - n);
    for (int i = 0; i < DECILES; i++) tsv_real(t, quantile_of_sorted(value, n, decile[i]));
    tsv_real(t, n ? (double)above / (double)n : NAN);
}

static sr_status read_ratios(const site_step *p, int64_t row, float *raw, double *value,
                             sr_failure *why) {
    const sr_runfile *run = p->set->run[p->at->run];
    const int64_t d = p->site->width;
    sr_status status = sr_run_vector(run, "gamma", p->at->site, row, 1, raw, why);
    if (status == SR_OK) status = sr_run_vector(run, "psi2_B", p->at->site, row, 1, raw + d, why);
    for (int64_t k = 0; k < d && status == SR_OK; k++)
        value[k] = fabs(raw[k]) / sqrt(raw[d + k] + p->site->eps);
    return status;
}

static sr_status print_site(const settings *s, const run_set *set, const site_choice *at, tsv *t,
                            sr_failure *why) {
    const sr_runfile *run = set->run[at->run];
    site_step p = {set, at, sr_run_get_site(run, at->site), 0};
    const int64_t rows_of_run = sr_run_get_info(run)->vectors;
    float *raw = malloc((size_t)(2 * p.site->width) * sizeof *raw);
    double *value = malloc((size_t)p.site->width * sizeof *value);
    sr_status status = raw && value ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t row = strcmp(s->steps, "all") == 0 ? 0 : rows_of_run - 1;
         row < rows_of_run && status == SR_OK; row++) {
        status = sr_run_vector_steps(run, row, 1, &p.step, why);
        if (status == SR_OK) status = read_ratios(&p, row, raw, value, why);
        if (status != SR_OK) break;
        if (s->per_feature)
            print_features(t, &p, value);
        else
            print_deciles(t, &p, value);
    }
    free(raw);
    free(value);
    return status;
}

static sr_status print_rows(site_table *t, sr_failure *why) {
    const settings *s = t->settings;
    sr_status status = SR_OK;
    declare_columns(&t->table, s->per_feature);
    for (int64_t k = 0; k < t->chosen.sites && status == SR_OK; k++)
        status = print_site(s, t->set, &t->chosen.site[k], &t->table, why);
    return status;
}

static sr_status print_table(const void *self, const void *settings_of, const run_set *set,
                             const char *command, sr_failure *why) {
    (void)self;
    const settings *s = settings_of;
    site_table t = {.program = "stat-gamma",
                    .settings = s,
                    .set = set,
                    .chosen = {.wanted = {&ratio}, .statistics = 1},
                    .source = FROM_VECTORS,
                    .site = s->site,
                    .rows = print_rows};
    return site_table_print(&t, command, why);
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-gamma",
        .usage = "RUN.h5... [--site GLOB] [--steps all] [--per-feature]",
        .does =
            "Distribution over features of |gamma| / sqrt(psi2_B + eps), and the fraction above 1.",
        .options = {rows, sizeof rows / sizeof rows[0]},
        .settings = sizeof(settings),
        .print = print_table,
    };
    return stat_program_main(&p, argc, argv);
}
