/* Distances between batch and running statistics for other values of alpha.
 *
 * The batch statistic b of every recorded step (mu_B, sigma2_B or psi2_B of /vectors) is averaged
 * again,
 *
 *     r_1 = the running value recorded at the first step,   r_{t+1} = alpha r_t + (1 - alpha) b_t
 *     distance_t = ||b_t - r_t||_2 / d                      (running value before the update)
 *
 * so alpha weighs the OLD value, as everywhere in statrec. If a smaller alpha reduces a large
 * distance, the running value lags. If it does not, the distance is noise of the batches.
 *
 * Training is not repeated. BN does not use running values while it trains: a run with that alpha
 * has these distances. PN uses them, so another alpha would have trained another network. The
 * average counts recorded steps. It equals the run's only if every step has vectors. Biased
 * variances are averaged; a run with n/(n-1) in its running variance differs by that factor.
 *
 * Burn-in: until r_1 weighs less than 1 %, a distance measures the initial value. A larger alpha
 * takes longer, so rows of a table cover different steps. --burn-in same skips the same steps for
 * every alpha. Their number is the burn-in of the largest alpha that keeps a third of the phase.
 * Larger alphas have no steps then. Distances of different alphas are comparable this way.
 *
 * Independent batch statistics about a fixed mean have E d^2 = 2/(1 + alpha) times their
 * variance, since 2/(1 + alpha) = 1 + (1 - alpha)/(1 + alpha). The distance falls by sqrt 2 from
 * alpha 0 to alpha 1. A larger distance shows that the mean itself moves.
 *
 * --running-dtype rounds r to that format after every update, like a module that stores its running
 * values in it. bfloat16 has 8 bits: it loses an update (1 - alpha)(b - r) below half a unit in the
 * last place of r.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frame/stat_program.h"
#include "analysis/runs/running_updates.h"
#include "base/bf16_number.h"

typedef struct settings {
    option_text site, stat, alpha, kept_in, startup, phase;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    SITE_OPTION(AT(site)),
    TEXT_OPTION("Choice", "stat", AT(stat), "mu,sigma2,psi2", "print these statistics",
                .value = "STAT,..."),
    TEXT_OPTION("Choice", "alpha", AT(alpha), "0,0.5,0.9,0.95,0.99,0.999",
                "try these weights of the old running value"),
    TEXT_OPTION("Choice", "running-dtype", AT(kept_in), "double",
                "round running values after every update to double, float32 or bf16",
                .value = "FORMAT,..."),
    TEXT_OPTION(
        "Steps", "burn-in", AT(startup), "auto",
        "skip the first N recorded steps; auto: N of each alpha; same: one N for all alphas",
        .value = "STEPS"),
    PHASE_OPTION(AT(phase)),
};

enum { ALPHAS = 32 };

static const statistic stats[] = {
    {"mu", "dist_mu", NULL, NEEDS(mu_B) | NEEDS(mu), first_values, NULL},
    {"sigma2", "dist_sigma2", NULL, NEEDS(sigma2_B) | NEEDS(sigma2), first_values, NULL},
    {"psi2", "dist_psi2", NULL, NEEDS(psi2_B) | NEEDS(psi2), first_values, NULL},
};
enum { STATS = sizeof stats / sizeof stats[0] };
static const char *const batch_name[] = {"mu_B", "sigma2_B", "psi2_B"};
static const char *const running_name[] = {"mu", "sigma2", "psi2"};

typedef struct alphas {
    double value[ALPHAS];
    int count;
} alphas;

/* -- formats that a running value is kept in */

static double keep_double(double r) {
    return r;
}
static double keep_float32(double r) {
    return (double)(float)r;
}
static double keep_bf16(double r) {
    return (double)bf16_nearest((float)r);
}

typedef struct kept_format {
    const char *word;
    double (*keep)(double r);
} kept_format;

static const kept_format formats[] = {
    {"double", keep_double}, {"float32", keep_float32}, {"bf16", keep_bf16}};
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* Reads a list of formats into `wanted`, in its order; NULL after the last. */
static sr_status read_formats(const char *text, const kept_format *wanted[FORMATS + 1],
                              sr_failure *why) {
    int count = 0;
    for (const char *at = text, *next; at; at = next) {
        const size_t length = strcspn(at, ",");
        next = at[length] ? at + length + 1 : NULL;
        int i = 0;
        while (i < FORMATS &&
               (strlen(formats[i].word) != length || strncmp(formats[i].word, at, length)))
            i++;
        if (i == FORMATS || count == FORMATS)
            return sr_fail(why, SR_USAGE,
                           "--running-dtype: '%s' is not a list of double, float32, bf16", text);
        wanted[count++] = &formats[i];
    }
    wanted[count] = NULL;
    return SR_OK;
}

enum { PIECE_VALUES = 1 << 12 };

/* One site and statistic while its rows pass by, maybe several times. */
typedef struct averaging {
    const sr_runfile *run;
    int64_t site, width, piece; /* rows that are read at once */
    int which;                  /* index in stats */
    const kept_format *kept;
    const alphas *alpha;
    int64_t left_out[ALPHAS]; /* rows without a distance, of each alpha */
    float *batch;             /* [rows of a chunk, width] */
    double *running;          /* [alphas, width] */
} averaging;

/* The distance to alpha i's running value, which moves on. */
static double averaging_step(averaging *a, int i, const float *batch) {
    double *r = a->running + i * a->width, sum = 0;
    const double old = a->alpha->value[i];
    for (int64_t k = 0; k < a->width; k++) {
        const double delta = batch[k] - r[k];
        sum += delta * delta;
        r[k] = a->kept->keep(old * r[k] + (1 - old) * batch[k]);
    }
    return sqrt(sum) / (double)a->width;
}

/* The first `count` rows of /vectors; NaN for those that are left out. value [alphas][count] */
static sr_status average(averaging *a, int64_t count, double *const *value, sr_failure *why) {
    const int64_t d = a->width;
    a->piece = 1 + PIECE_VALUES / d;
    a->batch = malloc((size_t)(a->piece * d) * sizeof *a->batch);
    a->running = malloc((size_t)(a->alpha->count * d) * sizeof *a->running);
    if (!a->batch || !a->running) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = sr_run_vector(a->run, running_name[a->which], a->site, 0, 1, a->batch, why);
    for (int64_t i = 0; i < a->alpha->count * d && status == SR_OK; i++)
        a->running[i] = a->kept->keep(a->batch[i % d]);
    for (int64_t done = 0, n; done < count && status == SR_OK; done += n) {
        n = count - done < a->piece ? count - done : a->piece;
        status = sr_run_vector(a->run, batch_name[a->which], a->site, done, n, a->batch, why);
        for (int64_t k = 0; k < n && status == SR_OK; k++) {
            for (int i = 0; i < a->alpha->count; i++) {
                const double distance = averaging_step(a, i, a->batch + k * d);
                value[i][done + k] = done + k < a->left_out[i] ? NAN : distance;
            }
        }
    }
    return status;
}

/* Words of --burn-in beside numbers of recorded steps. */
enum { STARTUP_AUTO = -1, STARTUP_SAME = -2 };

/* Rows begin .. end - 1 of /vectors are the phase; startup: in recorded steps, or a word. `same` is
 * the longest burn-in that keeps a third of the phase; an alpha of 1 never forgets. */
static void leave_out(averaging *a, int64_t startup, int64_t begin, int64_t end) {
    int64_t same = 0;
    for (int i = 0; i < a->alpha->count; i++) {
        const int64_t own = sr_startup_of(a->alpha->value[i]);
        if (a->alpha->value[i] < 1 && 3 * (end - own) >= end - begin && own > same) same = own;
    }
    for (int i = 0; i < a->alpha->count; i++) {
        const double alpha = a->alpha->value[i];
        const int64_t own = sr_startup_of(alpha);
        int64_t left = startup == STARTUP_AUTO ? own : startup;
        if (startup == STARTUP_SAME) left = alpha < 1 && own <= same ? same : end;
        if (left > end) left = end;
        a->left_out[i] = begin > left ? begin : left;
    }
}

/* The options as values. */
typedef struct request {
    alphas alpha;
    const kept_format *kept[FORMATS + 1];
    int64_t startup;
} request;

static sr_status print_statistic(stat_table *t, const site_choice *at, const statistic *stat,
                                 const kept_format *kept, sr_failure *why) {
    const request *q = t->state;
    const sr_runfile *run = t->set->run[at->run];
    const sr_run_site *site = sr_run_get_site(run, at->site);
    const step_window *phase = &t->window[at->run]; /* includes the burn-in */
    const series of = {run, at->site, stat, FROM_VECTORS};
    averaging a = {.run = run,
                   .site = at->site,
                   .width = site->width,
                   .which = (int)(stat - stats),
                   .kept = kept,
                   .alpha = &q->alpha};
    summary found[ALPHAS];
    int64_t first = 0, count = 0;
    double spacing = NAN, own = NAN;
    sr_status status = running_step_alpha(run, at->site, &own, why);
    if (status == SR_OK) status = window_rows(phase, &of, &first, &count, why);
    if (status == SR_OK) status = window_spacing(phase, &of, &spacing, why);
    if (status == SR_OK && q->startup >= first + count && count)
        status = sr_fail(why, SR_USAGE, "--burn-in %lld: %s has %lld recorded steps",
                         (long long)q->startup, t->set->path[at->run], (long long)(first + count));
    leave_out(&a, q->startup, first, first + count);
    column_block b = {0};
    const int64_t end = first + count;
    if (status == SR_OK) status = columns_create(&b, q->alpha.count, end, why);
    if (status == SR_OK) status = average(&a, end, b.value, why);
    if (status == SR_OK) columns_summarise(&b, q->alpha.count, end, false, found);
    columns_free(&b);
    for (int i = 0; i < q->alpha.count && status == SR_OK; i++) {
        found[i].values -= a.left_out[i]; /* counted as not finite so far */
        found[i].nonfinite -= a.left_out[i];
        site_cells(t, at);
        tsv_text(&t->table, stat->name);
        tsv_real(&t->table, q->alpha.value[i]);
        tsv_text(&t->table, kept->word);
        tsv_real(&t->table, spacing);
        tsv_real(&t->table, own);
        summary_cells(&t->table, &found[i]);
    }
    free(a.batch);
    free(a.running);
    return status;
}

static sr_status print_site(stat_table *t, const site_choice *at, sr_failure *why) {
    const request *q = t->state;
    sr_status status = SR_OK;
    for (int i = 0; i < t->chosen.statistics; i++)
        for (int f = 0; q->kept[f] && at->has[i] && status == SR_OK; f++)
            status = print_statistic(t, at, t->chosen.wanted[i], q->kept[f], why);
    return status;
}

static sr_status read_startup(const char *word, int64_t *startup, sr_failure *why) {
    char *end;
    *startup = strcmp(word, "same") == 0 ? STARTUP_SAME : STARTUP_AUTO;
    if (strcmp(word, "auto") == 0 || strcmp(word, "same") == 0) return SR_OK;
    *startup = strtoll(word, &end, 10);
    if (!*end && end != word && *startup >= 0) return SR_OK;
    return sr_fail(why, SR_USAGE, "--burn-in: '%s' is not auto, same or a number of steps", word);
}

static void declare_columns(stat_table *table) {
    tsv *t = &table->table;
    site_columns(t);
    tsv_column(t, "statistic", "the columns after run_alpha summarize it over recorded steps");
    tsv_column(t, "alpha", "weight of the old running value");
    tsv_column(t, "kept_in", "the running value is rounded to this format after every update");
    tsv_column(t, "spacing",
               "steps from one recorded step to the next; 1: alpha acts as in the run");
    tsv_column(t, "run_alpha",
               "weight of the old value over a step of the run itself: alpha^k of k updates");
    summary_columns(t);
}

static sr_status choose(stat_table *t, sr_failure *why) {
    const settings *s = t->settings;
    request *q = t->state;
    const table_choice c = {
        .source = FROM_VECTORS, .site = s->site, .startup = "0", .phase = s->phase};
    q->alpha.count = numbers_of_list(s->alpha, q->alpha.value, ALPHAS);
    bool valid = q->alpha.count > 0;
    for (int i = 0; i < q->alpha.count; i++)
        valid = valid && q->alpha.value[i] >= 0 && q->alpha.value[i] <= 1;
    if (!valid)
        return sr_fail(why, SR_USAGE, "--alpha: '%s' is not a list of up to %d numbers in [0, 1]",
                       s->alpha, ALPHAS);
    sr_status status = read_formats(s->kept_in, q->kept, why);
    if (status == SR_OK) status = read_startup(s->startup, &q->startup, why);
    if (status == SR_OK)
        status = choice_set_statistics(&t->chosen, stats, STATS, NULL, s->stat, why);
    if (status != SR_OK) return status;
    run_set_note_vectors(t->set, "alpha", &t->table);
    if (q->startup == STARTUP_SAME)
        tsv_note(&t->table, "steps",
                 "the same recorded steps for every alpha. The burn-in is the longest that "
                 "keeps a third");
    else if (q->startup == STARTUP_AUTO)
        tsv_note(&t->table, "steps",
                 "burn-in: skips ceil(ln %g / ln alpha) recorded steps of each alpha (--burn-in 0 "
                 "keeps them)",
                 SR_STARTUP_LEFT);
    else
        tsv_note(&t->table, "steps", "skips the first %lld recorded steps", (long long)q->startup);
    return table_choose(t, &c, why);
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-alpha",
        .usage = "RUN.h5... [--alpha LIST] [--site GLOB] [--stat LIST] [--phase PHASE]",
        .does =
            "Distance between batch and running statistics if the running ones had another alpha.",
        .options = {rows, sizeof rows / sizeof rows[0]},
        .settings = sizeof(settings),
        .stat = stats,
        .statistics = STATS,
        .state = sizeof(request),
        .head = choose,
        .columns = declare_columns,
        .site = print_site,
    };
    return stat_program_main(&p, argc, argv);
}
