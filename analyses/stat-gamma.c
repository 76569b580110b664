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

static const statistic ratio = {
    "ratio",      "gamma/psi_B", "|gamma| / sqrt(psi2_B + eps)", NEEDS(gamma) | NEEDS(psi2_B),
    first_values, NULL};

static const double decile[] = {0, 0.1, 0.25, 0.5, 0.75, 0.9, 1};
static const char *const decile_name[] = {"min", "q10", "q25", "median", "q75", "q90", "max"};
enum { DECILES = sizeof decile / sizeof decile[0] };

static void declare_columns(stat_table *table) {
    const bool per_feature = ((const settings *)table->settings)->per_feature;
    tsv *t = &table->table;
    site_columns(t);
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
}

/* value [width] is reordered. */
static void print_deciles(tsv *t, double *value, int64_t width) {
    int64_t n = 0, above = 0;
    for (int64_t k = 0; k < width; k++) {
        if (!isfinite(value[k])) continue;
        above += value[k] > 1;
        value[n++] = value[k];
    }
    sort_reals(value, n);
    tsv_int(t, width);
    tsv_int(t, width - n);
    for (int i = 0; i < DECILES; i++) tsv_real(t, quantile_of_sorted(value, n, decile[i]));
    tsv_real(t, n ? (double)above / (double)n : NAN);
}

static sr_status print_site(stat_table *t, const site_choice *at, sr_failure *why) {
    const settings *s = t->settings;
    const sr_runfile *run = t->set->run[at->run];
    const sr_run_site *site = sr_run_get_site(run, at->site);
    const int64_t d = site->width, end = sr_run_get_info(run)->vectors;
    float *raw = malloc((size_t)(2 * d) * sizeof *raw);
    double *value = malloc((size_t)d * sizeof *value);
    sr_status status = raw && value ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t row = strcmp(s->steps, "all") == 0 ? 0 : end - 1; row < end && status == SR_OK;
         row++) {
        int64_t step = 0;
        status = sr_run_vector_steps(run, row, 1, &step, why);
        if (status == SR_OK) status = sr_run_vector(run, "gamma", at->site, row, 1, raw, why);
        if (status == SR_OK) status = sr_run_vector(run, "psi2_B", at->site, row, 1, raw + d, why);
        if (status != SR_OK) break;
        for (int64_t k = 0; k < d; k++) value[k] = fabs(raw[k]) / sqrt(raw[d + k] + site->eps);
        for (int64_t k = 0; k < d && s->per_feature; k++) {
            site_cells(t, at);
            tsv_int(&t->table, step);
            tsv_int(&t->table, k);
            tsv_real(&t->table, value[k]);
        }
        if (s->per_feature) continue;
        site_cells(t, at);
        tsv_int(&t->table, step);
        print_deciles(&t->table, value, d);
    }
    free(raw);
    free(value);
    return status;
}

static sr_status choose(stat_table *t, sr_failure *why) {
    const settings *s = t->settings;
    t->chosen = (choice){.wanted = {&ratio}, .statistics = 1};
    return table_choose(t, &(table_choice){.source = FROM_VECTORS, .site = s->site}, why);
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-gamma",
        .usage = "RUN.h5... [--site GLOB] [--steps all] [--per-feature]",
        .does =
            "Distribution over features of |gamma| / sqrt(psi2_B + eps), and the fraction above 1.",
        .options = {rows, sizeof rows / sizeof rows[0]},
        .settings = sizeof(settings),
        .head = choose,
        .columns = declare_columns,
        .site = print_site,
    };
    return stat_program_main(&p, argc, argv);
}
