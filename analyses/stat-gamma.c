/* Distribution over features of gamma / psi_B (PowerNorm, ICML 2020, figure 7 and Lemma 2;
 * docs/norms.md 18.5).
 *
 *     ratio_k = |gamma_k| / sqrt(psi2_B[k] + eps),  k = 1 .. d
 *
 * Lemma 2 needs ratio <= 1 in every feature; the paper omits the absolute value. Default: deciles
 * at the last recorded step; --steps all: at every recorded step; --per-feature: the ratios
 * themselves.
 *
 * --bounds: assumptions and conclusions of the paper's Lemma 2 and Theorem 4, from the scalars of
 * statrec train --theorems-every (src/observe/theorem_scalars.c). Prints the largest value of all
 * steps, against the limit if it has one. docs/definitions.md names the paper's equations.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frame/stat_program.h"
#include "analysis/runs/run_config.h"
#include "analysis/series/custom_statistics.h"
#include "base/sort.h"

typedef struct settings {
    option_text site, steps;
    bool per_feature, bounds;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    SITE_OPTION(AT(site)),
    CHOICE_OPTION("Choice", "steps", AT(steps), "last", "last|all",
                  "use these recorded steps of /vectors"),
    FLAG_OPTION("Output", "per-feature", AT(per_feature), "no",
                "print a row for each feature instead of each site and step"),
    FLAG_OPTION("Output", "bounds", AT(bounds), "no",
                "print what Lemma 2 and Theorem 4 assume and conclude, a row for each statement"),
};

static const statistic ratio = {
    "ratio",      "gamma/psi_B", "|gamma| / sqrt(psi2_B + eps)", NEEDS(gamma) | NEEDS(psi2_B),
    first_values, NULL};

static const double decile[] = {0, 0.1, 0.25, 0.5, 0.75, 0.9, 1};
static const char *const decile_name[] = {"min", "q10", "q25", "median", "q75", "q90", "max"};
enum { DECILES = sizeof decile / sizeof decile[0] };

/* -- bounds ---------------------------------------------------------------------------------- */

/* limit: of Theorem 4, 1/(1 - alpha_bwd) */
typedef enum { NO_LIMIT, ONE, OF_ALPHA } bound_limit;

/* value = first, or first^2, or sqrt(first/second) */
typedef struct bound {
    const char *statement, *quantity, *first, *second;
    bool squared;
    bound_limit limit;
} bound;

static const bound bounds[] = {
    {"lemma 2", "||dx_k||^2/||g_k||^2", "lemma2_max", NULL, false, ONE},
    {"theorem 4 (25)", "C1 = ||xhat_i||", "row_xhat_max", NULL, false, NO_LIMIT},
    {"theorem 4 (26)", "C2 = ||gamma g_i||", "row_q_max", NULL, false, NO_LIMIT},
    {"theorem 4 (27)", "C1^2", "row_xhat_max", NULL, true, OF_ALPHA},
    {"theorem 4 (27 by feature)", "Gamma", "Gamma_max", NULL, false, OF_ALPHA},
    {"theorem 4 (28)", "R = ||xhat_k||/||xhat_j||", "Gamma_max", "Gamma_min", false, NO_LIMIT},
    {"theorem 4", "||gamma g_i - nu xhat_i||", "row_dxhat_max", NULL, false, NO_LIMIT},
};
enum { BOUNDS = sizeof bounds / sizeof bounds[0], BLOCK = 4096 };

static void bound_columns(tsv *t) {
    tsv_column(t, "statement", "of PowerNorm's paper, with the number of its equation");
    tsv_column(t, "quantity", "largest of the rows i, features k or pairs of features k, j");
    tsv_column(t, "steps", "steps with a value");
    tsv_column(t, "value", "largest of the steps");
    tsv_column(t, "step", "where it is");
    tsv_column(t, "limit", "nan: the statement asks for a constant, which the value is");
    tsv_column(t, "holds", "yes: value is below the limit (lemma 2: not above), no, -: no limit");
}

/* The largest value of all steps, over those with one. */
typedef struct largest {
    int64_t steps, step;
    double value;
} largest;

static void take_largest(const bound *b, const double *first, const double *second,
                         const int64_t *step, int64_t count, largest *to) {
    for (int64_t i = 0; i < count; i++) {
        double v = second ? sqrt(first[i] / second[i]) : first[i];
        if (b->squared) v *= v;
        if (isnan(v)) continue;
        if (!to->steps++ || v > to->value) to->value = v, to->step = step[i];
    }
}

static sr_status find_largest(const sr_runfile *run, int64_t site, const bound *b, largest *to,
                              sr_failure *why) {
    const statistic stat[] = {{b->first, b->first, NULL, 0, NULL, NULL},
                              {b->second, b->second, NULL, 0, NULL, NULL}};
    const series s[] = {{run, site, &stat[0], FROM_SCALARS}, {run, site, &stat[1], FROM_SCALARS}};
    const int64_t end = series_length(&s[0]);
    double *value = malloc(2 * BLOCK * sizeof *value), *second = b->second ? value + BLOCK : NULL;
    int64_t *step = malloc(BLOCK * sizeof *step);
    sr_status status = value && step ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    *to = (largest){0, 0, NAN};
    for (int64_t at = 0, n; at < end && status == SR_OK; at += n) {
        n = end - at < BLOCK ? end - at : BLOCK;
        status = series_read(&s[0], at, n, value, step, why);
        if (status == SR_OK && second) status = series_read(&s[1], at, n, second, NULL, why);
        if (status == SR_OK) take_largest(b, value, second, step, n, to);
    }
    free(value);
    free(step);
    return status;
}

/* Theorem 4 is about nu, which uses alpha of the backward pass. */
static double limit_of(const sr_runfile *run, const sr_run_site *site, const bound *b) {
    if (b->limit != OF_ALPHA) return b->limit == ONE ? 1 : NAN;
    return 1 / (1 - run_alpha_backward(run, site));
}

static sr_status print_bounds(stat_table *t, const site_choice *at, sr_failure *why) {
    const sr_runfile *run = t->set->run[at->run];
    for (int i = 0; i < BOUNDS; i++) {
        const bound *b = &bounds[i];
        const double limit = limit_of(run, sr_run_get_site(run, at->site), b);
        largest found;
        if (!sr_run_has_scalar(run, b->first) || (b->second && !sr_run_has_scalar(run, b->second)))
            continue; /* a copy may have some of them */
        sr_status status = find_largest(run, at->site, b, &found, why);
        if (status != SR_OK) return status;
        if (!found.steps) continue;
        site_cells(t, at);
        tsv_text(&t->table, b->statement);
        tsv_text(&t->table, b->quantity);
        tsv_int(&t->table, found.steps);
        tsv_real(&t->table, found.value);
        tsv_int(&t->table, found.step);
        tsv_real(&t->table, limit);
        const bool holds = b->limit == ONE ? found.value <= limit : found.value < limit;
        tsv_text(&t->table, isnan(limit) ? "-" : holds ? "yes" : "no");
    }
    return SR_OK;
}

/* -- gamma/psi_B ------------------------------------------------------------------------------ */

static void declare_columns(stat_table *table) {
    const settings *s = table->settings;
    const bool per_feature = s->per_feature;
    tsv *t = &table->table;
    site_columns(t);
    if (s->bounds) {
        bound_columns(t);
        return;
    }
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
    if (s->bounds) return print_bounds(t, at, why);
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
    sr_status status = SR_OK;
    t->chosen = (choice){.wanted = {&ratio}, .statistics = 1};
    if (s->bounds && (s->per_feature || strcmp(s->steps, "last") != 0))
        return sr_fail(why, SR_USAGE, "%s has no effect with --bounds",
                       s->per_feature ? "--per-feature" : "--steps");
    if (s->bounds && !declared_find(t->set, "lemma2_max", SR_PER_SITE))
        status = sr_fail(why, SR_FORMAT, "no run has lemma2_max: statrec train --theorems-every N");
    if (s->bounds && status == SR_OK)
        status = choice_set_statistics(&t->chosen, NULL, 0, t->set, "lemma2_max", why);
    if (status != SR_OK) return status;
    return table_choose(
        t, &(table_choice){.source = s->bounds ? FROM_SCALARS : FROM_VECTORS, .site = s->site},
        why);
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-gamma",
        .usage = "RUN.h5... [--site GLOB] [--steps all] [--per-feature]\nRUN.h5... --bounds "
                 "[--site GLOB]",
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
