/* Steps that are outliers in time, by the test of Unified Normalization (Yang et al., ACM MM 2022,
 * arXiv 2208.01313).
 *
 * v_t [d] is a batch statistic of step t (psi2_B, or sigma2_B). The window of the last M recorded
 * steps contains v_{t-M+1} .. v_t. For each feature k
 *
 *     AM_k = mean over the window of v,   GM_k = exp(mean over the window of ln v)
 *     V    = variance of sqrt(v) over all features of the M steps before, t-M .. t-1 (divided by
 *            M d - 1)
 *     outlier:   AM_k - GM_k > M V   for any feature k
 *
 * AM >= GM, and AM - GM <= M Var(sqrt v) within one window. So a step beyond the bound is further
 * from the others than they are from each other.
 *
 * The released code (unified_normalization.py, UN2dFunction) takes V from the steps before, over
 * all features at once, and one feature suffices. It also replaces an outlier in the window by the
 * running value r, r <- a r + (1 - a) u. u is the geometric mean of the window; it is v_t at an
 * outlier and while the window fills. This program does the same, with one difference: r starts at
 * the first recorded step, not at 1. It counts steps with a value that is not finite, and skips
 * them in the window.
 *
 * ratio: the largest AM_k / GM_k; excess: the largest (AM_k - GM_k) / (M V), above 1 at an outlier.
 * Features with 0 at all steps of the window are ignored. A feature with 0 at some steps has GM 0
 * and an infinite ratio. The excess is infinite only if V = 0: all features had one value at M
 * steps.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frame/stat_program.h"

typedef struct settings {
    option_text site, stat, phase;
    int64_t window;
    double alpha;
    bool per_step;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    SITE_OPTION(AT(site)),
    CHOICE_OPTION("Choice", "stat", AT(stat), "psi2_B", "psi2_B|sigma2_B",
                  "test the steps of this statistic"),
    PHASE_OPTION(AT(phase)),
    INT_OPTION("Definition", "window", AT(window), "4", 2, 4096, "steps",
               "average N recorded steps: M"),
    REAL_OPTION("Definition", "alpha", AT(alpha), "0.9", 0, 1, "",
                "weigh the old value of r by X; r replaces an outlier"),
    FLAG_OPTION("Output", "per-step", AT(per_step), "no",
                "print a row for each tested step instead of a summary"),
};

static const statistic stats[] = {
    {"psi2_B", "psi2_B", "mean square over valid rows", NEEDS(psi2_B), first_values, NULL},
    {"sigma2_B", "sigma2_B", "biased variance over valid rows", NEEDS(sigma2_B), first_values,
     NULL},
};

/* -- the test -------------------------------------------------------------------------------- */

/* A site while its rows pass by. */
typedef struct tested {
    int64_t width, window, seen; /* seen: finite rows so far */
    double alpha;
    float *raw;      /* [width] */
    double *kept;    /* [window, width] of row i at i % window */
    double *running; /* [width] */
    double *next;    /* [width] */
} tested;

/* Results at a step. */
typedef struct finding {
    bool tested, outlier, finite;
    double ratio, excess;
} finding;

/* V: of the square roots of all that is in the window. */
static double variance_of_roots(const tested *a) {
    const int64_t count = a->window * a->width;
    double mean = 0, sum = 0;
    for (int64_t i = 0; i < count; i++) mean += sqrt(a->kept[i]);
    mean /= (double)count;
    for (int64_t i = 0; i < count; i++) {
        const double from = sqrt(a->kept[i]) - mean;
        sum += from * from;
    }
    return sum / (double)(count - 1);
}

static void means_of(const tested *a, int64_t k, double *am, double *gm) {
    double sum = 0, logs = 0;
    for (int64_t i = 0; i < a->window; i++) {
        const double v = a->kept[i * a->width + k];
        sum += v;
        logs += log(v);
    }
    *am = sum / (double)a->window;
    *gm = exp(logs / (double)a->window);
}

/* The window is full; its newest row is the tested one. */
static void compare_means(const tested *a, double bound, finding *f) {
    f->tested = true;
    for (int64_t k = 0; k < a->width; k++) {
        double am, gm;
        means_of(a, k, &am, &gm);
        if (am == 0) continue; /* a dead feature */
        const double over = am - gm > 0 ? am - gm : 0;
        f->ratio = fmax(f->ratio, am / gm);
        f->excess = fmax(f->excess, over > 0 ? over / bound : 0);
        f->outlier |= over > bound;
    }
}

/* a->raw is the row of the step. */
static finding look_at(tested *a) {
    const size_t bytes = (size_t)a->width * sizeof *a->kept;
    double *place = a->kept + a->seen % a->window * a->width;
    finding f = {.ratio = NAN, .excess = NAN, .finite = true};
    const bool full = a->seen >= a->window;
    for (int64_t k = 0; k < a->width; k++) f.finite = f.finite && isfinite(a->raw[k]);
    if (!f.finite) return f;
    const double bound = full ? (double)a->window * variance_of_roots(a) : NAN;
    for (int64_t k = 0; k < a->width; k++)
        a->next[k] = place[k] = a->raw[k] > 0 ? (double)a->raw[k] : 0;
    if (a->seen++ == 0) memcpy(a->running, place, bytes);
    if (full) compare_means(a, bound, &f);
    if (f.outlier) memcpy(place, a->running, bytes);
    for (int64_t k = 0; k < a->width; k++) {
        double am;
        if (full && !f.outlier) means_of(a, k, &am, &a->next[k]);
        a->running[k] = a->alpha * a->running[k] + (1 - a->alpha) * a->next[k];
    }
    return f;
}

/* -- the table ------------------------------------------------------------------------------- */

static void declare_columns(stat_table *table) {
    const bool per_step = ((const settings *)table->settings)->per_step;
    tsv *t = &table->table;
    site_columns(t);
    if (per_step) {
        tsv_column(t, "step", "forward and backward passes so far");
        tsv_column(t, "percent", "percent of training: 100 step / last step of the run");
        tsv_column(t, "ratio", "largest AM/GM of a feature over the last M recorded steps");
        tsv_column(t, "excess", "largest (AM - GM)/(M V) of a feature");
        tsv_column(t, "outlier", "1: excess is above 1");
        tsv_column(t, "infinite", "1: excess is infinite, V was 0");
    } else {
        tsv_column(t, "statistic", "what is tested");
        tsv_column(t, "steps", "tested steps: those with M recorded steps before them");
        tsv_column(t, "nonfinite", "recorded steps with NaN or infinity, which are not tested");
        tsv_column(t, "outliers", "tested steps with AM - GM > M V at a feature");
        tsv_column(t, "share", "outliers / steps");
        tsv_column(t, "ratio", "largest AM/GM of a feature, of all tested steps");
        tsv_column(t, "excess", "largest (AM - GM)/(M V)");
        tsv_column(t, "excess_step", "first step with it; -1: none");
        tsv_column(t, "infinite", "tested steps with an infinite excess: V was 0");
        tsv_column(t, "spacing", "steps from one recorded step to the next");
    }
}

typedef struct sum_of_site {
    int64_t steps, nonfinite, outliers, excess_step, infinite;
    double ratio, excess, spacing;
} sum_of_site;

static void add_finding(sum_of_site *s, const finding *f, int64_t step) {
    s->nonfinite += !f->finite;
    if (!f->tested) return;
    s->steps++;
    s->outliers += f->outlier;
    s->infinite += isinf(f->excess) != 0;
    s->ratio = fmax(s->ratio, f->ratio);
    if (!(f->excess <= s->excess) && !isnan(f->excess)) {
        s->excess = f->excess;
        s->excess_step = step;
    }
}

/* Tests rows from the beginning, so that the window before the first step of the phase is full if
   possible. */
static sr_status test_rows(stat_table *t, const site_choice *at, tested *a, sum_of_site *sum,
                           sr_failure *why) {
    const settings *s = t->settings;
    const sr_runfile *run = t->set->run[at->run];
    const step_window *w = &t->window[at->run];
    int64_t last, step;
    sr_status status = run_last_step(run, &last, why);
    for (int64_t row = 0; row < sr_run_get_info(run)->vectors && status == SR_OK; row++) {
        status = sr_run_vector_steps(run, row, 1, &step, why);
        if (status == SR_OK && step > w->last) break;
        if (status == SR_OK)
            status = sr_run_vector(run, t->chosen.wanted[0]->name, at->site, row, 1, a->raw, why);
        if (status != SR_OK) break;
        const finding f = look_at(a);
        if (step < w->first) continue;
        add_finding(sum, &f, step);
        if (!s->per_step || !f.tested) continue;
        site_cells(t, at);
        tsv_int(&t->table, step);
        tsv_real(&t->table, last ? 100.0 * (double)step / (double)last : NAN);
        tsv_real(&t->table, f.ratio);
        tsv_real(&t->table, f.excess);
        tsv_int(&t->table, f.outlier);
        tsv_int(&t->table, isinf(f.excess) != 0);
    }
    return status;
}

static sr_status print_site(stat_table *table, const site_choice *at, sr_failure *why) {
    const settings *s = table->settings;
    const series of = {table->set->run[at->run], at->site, table->chosen.wanted[0], FROM_VECTORS};
    const int64_t d = sr_run_get_site(of.run, at->site)->width;
    tested a = {.width = d, .window = s->window, .alpha = s->alpha};
    sum_of_site sum = {.ratio = NAN, .excess = NAN, .excess_step = -1};
    tsv *t = &table->table;
    double *memory = malloc((size_t)((a.window + 2) * d) * sizeof *memory);
    a.raw = malloc((size_t)d * sizeof *a.raw);
    a.kept = memory, a.running = memory + a.window * d, a.next = a.running + d;
    sr_status status = memory && a.raw ? SR_OK
                                       : sr_fail(why, SR_MEMORY, "out of memory for %lld steps",
                                                 (long long)a.window);
    if (status == SR_OK) status = window_spacing(&table->window[at->run], &of, &sum.spacing, why);
    if (status == SR_OK) status = test_rows(table, at, &a, &sum, why);
    free(memory);
    free(a.raw);
    if (status != SR_OK || s->per_step) return status;
    site_cells(table, at);
    tsv_text(t, of.stat->name);
    tsv_int(t, sum.steps);
    tsv_int(t, sum.nonfinite);
    tsv_int(t, sum.outliers);
    tsv_real(t, sum.steps ? (double)sum.outliers / (double)sum.steps : NAN);
    tsv_real(t, sum.ratio);
    tsv_real(t, sum.excess);
    tsv_int(t, sum.excess_step);
    tsv_int(t, sum.infinite);
    tsv_real(t, sum.spacing);
    return SR_OK;
}

/* A table per step has no row for a run without tested steps; fails if no run has one. */
static sr_status check_recorded(const stat_table *t, sr_failure *why) {
    const settings *s = t->settings;
    int64_t first = 0, count = 0;
    for (int64_t k = 0; k < t->chosen.sites; k++) {
        const site_choice *at = &t->chosen.site[k];
        const series of = {t->set->run[at->run], at->site, t->chosen.wanted[0], FROM_VECTORS};
        sr_status status = window_rows(&t->window[at->run], &of, &first, &count, why);
        if (status != SR_OK) return status;
        if (count > 0 && first + count > s->window) return SR_OK;
    }
    const sr_run_info *info = sr_run_get_info(t->set->run[0]);
    const step_window *w = &t->window[0];
    sr_fail(why, SR_FORMAT,
            "%s: no test in steps %lld to %lld: it needs %lld recorded steps, vectors are at %lld "
            "of %lld steps",
            t->set->path[0], (long long)w->first, (long long)w->last, (long long)s->window + 1,
            (long long)info->vectors, (long long)info->steps);
    sr_hint(why, "`statrec train --vectors-every 1` records them at every step");
    return SR_FORMAT;
}

static sr_status choose(stat_table *t, sr_failure *why) {
    const settings *s = t->settings;
    const table_choice c = {
        .source = FROM_VECTORS, .site = s->site, .startup = "0", .phase = s->phase};
    tsv_note(&t->table, "window", "M = %lld recorded steps, alpha %g", (long long)s->window,
             s->alpha);
    run_set_note_vectors(t->set, "M", &t->table);
    t->chosen = (choice){.wanted = {&stats[!strcmp(s->stat, "sigma2_B")]}, .statistics = 1};
    sr_status status = table_choose(t, &c, why);
    return status == SR_OK && s->per_step ? check_recorded(t, why) : status;
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-amgm",
        .usage = "RUN.h5... [--window M] [--stat psi2_B|sigma2_B] [--site GLOB] [--per-step]",
        .does =
            "Steps that are outliers in time: the arithmetic mean of a batch statistic over the "
            "last steps\n"
            "exceeds the geometric mean by more than earlier steps allow (Unified Normalization).",
        .options = {rows, sizeof rows / sizeof rows[0]},
        .settings = sizeof(settings),
        .head = choose,
        .columns = declare_columns,
        .site = print_site,
    };
    return stat_program_main(&p, argc, argv);
}
