/* Tables of single features of /vectors (feature_values.c has the formulas).
 *
 *   --per-feature   a row for each feature and recorded step; --buckets N as in other tables
 *   --quantiles     a row for each feature: quantiles of its values over the steps, features in the
 *                   order of their medians
 *   --histogram N   a row for each of N bins at each step of --step: features with a value there
 *
 * All runs, sites and steps of a table share the bins of a statistic: N equal parts of the range of
 * its finite values. With --spacing log the parts are equal in the logarithm.
 */
#include "analysis/feature_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/downsample.h"
#include "analysis/feature_rows.h"
#include "analysis/frame/stat_program.h"
#include "base/buckets.h"

/* The bins of one statistic. */
typedef struct bins {
    double low, high; /* range of the values, or of their logarithms; low > high: no finite value */
    bool logarithmic;
} bins;

/* A table and its inputs. */
typedef struct feature_table {
    const features_request *q;
    const run_set *set;
    choice chosen;
    step_window *windows;      /* [runs] */
    bins bins[FEATURE_VALUES]; /* [statistics] of a histogram */
    tsv table;
} feature_table;

/* A chosen site, with the chosen statistics that it has. */
static feature_site site_of(const feature_table *t, const site_choice *at) {
    feature_site s = {.run = t->set->run[at->run],
                      .site = at->site,
                      .width = sr_run_get_site(t->set->run[at->run], at->site)->width};
    for (int i = 0; i < t->chosen.statistics; i++)
        if (at->has[i]) s.of[s.statistics++] = t->chosen.wanted[i];
    return s;
}

static sr_status rows_of(const feature_table *t, const site_choice *at, feature_rows *r,
                         sr_failure *why) {
    return feature_rows_choose(r, t->set->run[at->run], t->set->path[at->run], t->q->step,
                               &t->windows[at->run], why);
}

static void begin_row(feature_table *t, const site_choice *at) {
    tsv_text(&t->table, t->set->path[at->run]);
    tsv_text(&t->table, sr_run_get_site(t->set->run[at->run], at->site)->name);
}

static double percent_of(double step, const feature_rows *r) {
    return r->last_step ? 100 * step / (double)r->last_step : NAN;
}

/* -- a row for each feature and step --------------------------------------------------------- */

/* Some features of a site on their way into parts. */
typedef struct gathering {
    const feature_site *s;
    const int64_t *feature; /* [features] */
    int64_t features;
    parts *part; /* [features] of the step and each statistic */
} gathering;

static sr_status gather_rows(void *context, const int64_t *step, int64_t count, const double *value,
                             sr_failure *why) {
    const gathering *g = context;
    const double *column[1 + FEATURE_VALUES];
    double *memory = malloc((size_t)(count * (1 + g->s->statistics) + 1) * sizeof *memory);
    if (!memory) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = SR_OK;
    for (int c = 0; c <= g->s->statistics; c++) column[c] = memory + c * count;
    for (int64_t i = 0; i < count; i++) memory[i] = (double)step[i];
    for (int64_t k = 0; k < g->features && status == SR_OK; k++) {
        for (int c = 0; c < g->s->statistics; c++)
            for (int64_t i = 0; i < count; i++)
                memory[(1 + c) * count + i] = value[(c * count + i) * g->s->width + g->feature[k]];
        status = parts_add(&g->part[k], memory, column, count, why);
    }
    free(memory);
    return status;
}

static void print_feature(feature_table *t, const site_choice *at, const feature_rows *r,
                          int64_t feature, const parts *p) {
    for (int64_t i = 0; i < p->rows; i++) {
        const double *row = p->row + i * p->columns;
        begin_row(t, at);
        tsv_int(&t->table, feature);
        tsv_count(&t->table, row[0]);
        tsv_real(&t->table, percent_of(row[0], r));
        for (int c = 0, next = 1; c < t->chosen.statistics; c++)
            tsv_real(&t->table, at->has[c] ? row[next++] : NAN);
    }
}

/* Features of `order` as many at once as fit in memory. */
static sr_status print_in_order(feature_table *t, const site_choice *at, const feature_rows *r,
                                const int64_t *order, int64_t buckets, const double ends[2],
                                sr_failure *why) {
    const feature_site s = site_of(t, at);
    const int columns = 1 + s.statistics;
    const int64_t rows = buckets ? 6 * buckets + 2 * (r->total / buckets + 64) : 2 * r->total + 64;
    int64_t most = column_memory_limit() / (8 * columns * rows);
    most = most < 1 ? 1 : most < s.width ? most : s.width;
    parts *p = calloc((size_t)most, sizeof *p);
    sr_status status = p ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t k = 0, n; k < s.width && status == SR_OK; k += n) {
        n = s.width - k < most ? s.width - k : most;
        gathering g = {&s, order + k, n, p};
        for (int64_t i = 0; i < n; i++) parts_begin(&p[i], columns, buckets, ends[0], ends[1]);
        status = feature_rows_each(r, &s, gather_rows, &g, why);
        for (int64_t i = 0; i < n; i++) {
            if (status == SR_OK) status = parts_end(&p[i], why);
            if (status == SR_OK) print_feature(t, at, r, order[k + i], &p[i]);
            parts_free(&p[i]);
        }
    }
    free(p);
    return status;
}

static sr_status print_steps(feature_table *t, const site_choice *at, sr_failure *why) {
    const feature_site s = site_of(t, at);
    feature_rows r;
    int64_t first, last;
    int64_t *order = malloc((size_t)(s.width + 1) * sizeof *order);
    sr_status status = order ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = rows_of(t, at, &r, why);
    if (status == SR_OK) status = feature_order(&r, &s, t->q->order, order, why);
    if (status == SR_OK && r.total) {
        const int end = r.ranges - 1;
        const bool reduced = t->q->buckets && r.total > 3 * t->q->buckets;
        status = sr_run_vector_steps(s.run, r.first[0], 1, &first, why);
        if (status == SR_OK)
            status = sr_run_vector_steps(s.run, r.first[end] + r.count[end] - 1, 1, &last, why);
        if (status == SR_OK)
            status = print_in_order(t, at, &r, order, reduced ? t->q->buckets : 0,
                                    (double[]){(double)first, (double)last}, why);
    }
    free(order);
    return status;
}

static void declare_steps(feature_table *t) {
    tsv_column(&t->table, "feature", "k, from 0");
    tsv_column(&t->table, "step", "forward and backward passes so far");
    tsv_column(&t->table, "percent", "percent of training: 100 step / last step of the run");
    for (int i = 0; i < t->chosen.statistics; i++)
        tsv_column(&t->table, t->chosen.wanted[i]->name, t->chosen.wanted[i]->definition);
}

/* -- quantiles of each feature --------------------------------------------------------------- */

enum { QUANTILES = 5, MEDIAN = 2 };
static const double quantile[QUANTILES] = {0.05, 0.25, 0.5, 0.75, 0.95};
static const char *const quantile_name[QUANTILES] = {"q05", "q25", "median", "q75", "q95"};

/* Columns of features first .. first + features - 1 of a site. */
typedef struct collecting {
    int64_t width, first, features, total, at; /* at: rows so far */
    double *column;                            /* [features, total] */
} collecting;

static sr_status collect_rows(void *context, const int64_t *step, int64_t count,
                              const double *value, sr_failure *why) {
    collecting *c = context;
    (void)step, (void)why;
    for (int64_t i = 0; i < count; i++, c->at++)
        for (int64_t k = 0; k < c->features; k++)
            c->column[k * c->total + c->at] = value[i * c->width + c->first + k];
    return SR_OK;
}

/* of: [width]. */
static sr_status measure_features(const feature_rows *r, const feature_site *s,
                                  column_quantiles *of, sr_failure *why) {
    const int64_t most = columns_together(r->total, s->width);
    collecting c = {.width = s->width, .total = r->total};
    c.column = malloc((size_t)(most * r->total + 1) * sizeof *c.column);
    sr_status status = c.column ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (; c.first < s->width && status == SR_OK; c.first += c.features) {
        c.features = s->width - c.first < most ? s->width - c.first : most;
        c.at = 0;
        status = feature_rows_each(r, s, collect_rows, &c, why);
        for (int64_t k = 0; k < c.features && status == SR_OK; k++)
            of[c.first + k] =
                quantiles_make(c.column + k * r->total, r->total, quantile, QUANTILES);
    }
    free(c.column);
    return status;
}

/* The sum of squares of the noise in one range of rows of /vectors, and how many have rows. */
static sr_status add_noise(const feature_table *t, const site_choice *at, const statistic *of,
                           int64_t first, int64_t count, double *sum, int64_t *used,
                           sr_failure *why) {
    const sr_runfile *run = t->set->run[at->run];
    const series all = {.run = run, .site = at->site, .source = FROM_SCALARS};
    const double alpha = sr_run_get_site(run, at->site)->alpha;
    int64_t *step = malloc((size_t)(count + 1) * sizeof *step);
    sr_status status = step ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = sr_run_vector_steps(run, first, count, step, why);
    for (int64_t i = 0; i < count && status == SR_OK; i++) {
        int64_t row;
        float rows = 0;
        status = series_find_row(&all, step[i], &row, why);
        if (status == SR_OK) status = sr_run_scalar(run, "rows", at->site, row, 1, &rows, why);
        if (status != SR_OK || !(rows > 0)) continue;
        const double one = feature_noise(of, (double)rows, alpha);
        *sum += one * one;
        ++*used;
    }
    free(step);
    return status;
}

/* The root of the mean square over the recorded steps, by their valid rows. */
static sr_status measure_noise(const feature_table *t, const site_choice *at, const feature_rows *r,
                               const statistic *of, double *noise, sr_failure *why) {
    int64_t used = 0;
    double sum = 0;
    sr_status status = SR_OK;
    *noise = NAN;
    if (!sr_run_has_scalar(t->set->run[at->run], "rows")) return SR_OK;
    for (int i = 0; i < r->ranges && status == SR_OK; i++)
        status = add_noise(t, at, of, r->first[i], r->count[i], &sum, &used, why);
    if (used) *noise = sqrt(sum / (double)used);
    return status;
}

static void print_quantiles(feature_table *t, const site_choice *at, const feature_rows *r,
                            const statistic *of, const int64_t *order, const column_quantiles *q,
                            double noise) {
    const int64_t width = sr_run_get_site(t->set->run[at->run], at->site)->width;
    tsv *table = &t->table;
    for (int64_t place = 0; place < width; place++) {
        const column_quantiles *of_this = &q[order[place]];
        begin_row(t, at);
        tsv_text(table, of->name);
        tsv_int(table, order[place]);
        tsv_real(table, 100 * ((double)place + 0.5) / (double)width);
        tsv_int(table, r->total);
        tsv_int(table, r->total - of_this->finite);
        for (int i = 0; i < QUANTILES; i++) tsv_real(table, of_this->at[i]);
        tsv_real(table, noise);
    }
}

static sr_status print_statistic(feature_table *t, const site_choice *at, const feature_rows *r,
                                 const statistic *of, sr_failure *why) {
    feature_site s = site_of(t, at);
    const size_t width = (size_t)s.width + 1;
    double *median = malloc(width * sizeof *median), noise;
    int64_t *order = malloc(width * sizeof *order);
    column_quantiles *q = malloc(width * sizeof *q);
    sr_status status = median && order && q ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    s.of[0] = of, s.statistics = 1;
    if (status == SR_OK) status = measure_features(r, &s, q, why);
    if (status == SR_OK) status = measure_noise(t, at, r, of, &noise, why);
    for (int64_t k = 0; k < s.width && status == SR_OK; k++) median[k] = q[k].at[MEDIAN];
    if (status == SR_OK) status = feature_sort(median, true, order, s.width, why);
    if (status == SR_OK) print_quantiles(t, at, r, of, order, q, noise);
    free(median);
    free(order);
    free(q);
    return status;
}

static sr_status print_site_quantiles(feature_table *t, const site_choice *at, sr_failure *why) {
    feature_rows r;
    sr_status status = rows_of(t, at, &r, why);
    for (int i = 0; i < t->chosen.statistics && status == SR_OK; i++)
        if (at->has[i]) status = print_statistic(t, at, &r, t->chosen.wanted[i], why);
    return status;
}

static void declare_quantiles(feature_table *t) {
    tsv *table = &t->table;
    tsv_column(table, "statistic", "what the quantiles are of");
    tsv_column(table, "feature", "k, from 0; in the order of their medians");
    tsv_column(table, "percent",
               "place of the feature in that order: percent of the features, (place - 1/2)/d");
    tsv_column(table, "steps", "recorded steps");
    tsv_column(table, "nonfinite", "steps with NaN or infinity, in no other column");
    for (int i = 0; i < QUANTILES; i++)
        tsv_column(table, quantile_name[i],
                   i == MEDIAN ? "exact median over the steps"
                               : "quantile over the steps, percent");
    tsv_column(table, "noise",
               "standard deviation over steps that independent normal rows would give: of mu_shift "
               "the root of the mean of 2/((1 + alpha) n) over the steps, of sigma_ratio that / "
               "sqrt(2)");
}

/* -- histograms ------------------------------------------------------------------------------ */

typedef struct binning {
    const feature_site *s; /* sites with one statistic */
    bins *of;
    int64_t count, *features; /* number of bins; [count] of one row */
    feature_table *table;
    const site_choice *at;
    const feature_rows *rows;
} binning;

static sr_status take_range(void *context, const int64_t *step, int64_t count, const double *value,
                            sr_failure *why) {
    const binning *b = context;
    (void)step, (void)why;
    for (int64_t k = 0; k < count * b->s->width; k++) {
        if (!isfinite(value[k])) continue;
        b->of->low = fmin(b->of->low, value[k]);
        b->of->high = fmax(b->of->high, value[k]);
    }
    return SR_OK;
}

/* auto: in the logarithm from two decades on. Equal values get a range around them. */
static sr_status settle_bins(bins *b, const char *spacing, const char *name, sr_failure *why) {
    const bool log = strcmp(spacing, "log") == 0;
    if (log && b->low <= 0)
        return sr_fail(why, SR_USAGE, "--spacing log: %s has values down to %g", name, b->low);
    b->logarithmic = log || (strcmp(spacing, "auto") == 0 && b->low > 0 && b->high >= 100 * b->low);
    if (b->logarithmic) b->low = log10(b->low), b->high = log10(b->high);
    if (b->high > b->low) return SR_OK;
    const double room = b->low != 0 ? 0.1 * fabs(b->low) : 0.5;
    b->low -= room, b->high += room;
    return SR_OK;
}

static double edge_of(const bins *b, int64_t count, int64_t i) {
    const double at = b->low + (b->high - b->low) * (double)i / (double)count;
    return b->logarithmic ? pow(10, at) : at;
}

static sr_status print_bins(void *context, const int64_t *step, int64_t count, const double *value,
                            sr_failure *why) {
    binning *b = context;
    tsv *t = &b->table->table;
    (void)why;
    for (int64_t i = 0; i < count; i++, value += b->s->width) {
        memset(b->features, 0, (size_t)b->count * sizeof *b->features);
        int64_t finite = 0;
        for (int64_t k = 0; k < b->s->width; k++) {
            if (!isfinite(value[k])) continue;
            const double x = b->of->logarithmic ? log10(value[k]) : value[k];
            b->features[bucket_of(x, b->of->low, b->of->high, b->count)]++;
            finite++;
        }
        for (int64_t k = 0; k < b->count; k++) {
            begin_row(b->table, b->at);
            tsv_text(t, b->s->of[0]->name);
            tsv_int(t, step[i]);
            tsv_real(t, percent_of((double)step[i], b->rows));
            tsv_int(t, k + 1);
            tsv_real(t, edge_of(b->of, b->count, k));
            tsv_real(t, edge_of(b->of, b->count, k + 1));
            tsv_int(t, b->features[k]);
            tsv_real(t, finite ? (double)b->features[k] / (double)finite : NAN);
            tsv_int(t, b->s->width - finite);
        }
    }
    return SR_OK;
}

/* Visits the rows of every site with statistic i. */
static sr_status each_site(feature_table *t, int i, feature_visit *visit, binning *b,
                           sr_failure *why) {
    sr_status status = SR_OK;
    for (int64_t k = 0; k < t->chosen.sites && status == SR_OK; k++) {
        const site_choice *at = &t->chosen.site[k];
        feature_rows r;
        feature_site s = site_of(t, at);
        if (!at->has[i]) continue;
        s.of[0] = t->chosen.wanted[i], s.statistics = 1;
        b->s = &s, b->at = at, b->rows = &r;
        status = rows_of(t, at, &r, why);
        if (status == SR_OK) status = feature_rows_each(&r, &s, visit, b, why);
    }
    return status;
}

static sr_status choose_bins(feature_table *t, sr_failure *why) {
    binning b = {.table = t};
    bool any = false;
    sr_status status = SR_OK;
    for (int i = 0; i < t->chosen.statistics && status == SR_OK; i++) {
        bins *of = b.of = &t->bins[i];
        *of = (bins){.low = INFINITY, .high = -INFINITY};
        status = each_site(t, i, take_range, &b, why);
        if (status != SR_OK || of->low > of->high) continue;
        status = settle_bins(of, t->q->spacing, t->chosen.wanted[i]->name, why);
        any = true;
    }
    if (status != SR_OK || any) return status;
    return sr_fail(why, SR_FORMAT, "%s has no finite value at these steps: --step chooses others",
                   t->set->path[0]);
}

static sr_status print_histograms(feature_table *t, sr_failure *why) {
    binning b = {.count = t->q->bins, .table = t};
    b.features = malloc((size_t)b.count * sizeof *b.features);
    sr_status status = b.features ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < t->chosen.statistics && status == SR_OK; i++) {
        b.of = &t->bins[i];
        if (b.of->low <= b.of->high) status = each_site(t, i, print_bins, &b, why);
    }
    free(b.features);
    return status;
}

static void declare_bins(feature_table *t) {
    tsv *table = &t->table;
    tsv_column(table, "statistic", "what the bins are of");
    tsv_column(table, "step", "forward and backward passes so far");
    tsv_column(table, "percent", "percent of training: 100 step / last step of the run");
    tsv_column(table, "bin", "number of the bin, from 1; the bins are the same at all steps");
    tsv_column(table, "from", "where it begins, included");
    tsv_column(table, "to", "where it ends; the last bin includes it");
    tsv_column(table, "features", "features with a value in it");
    tsv_column(table, "share", "features / features with a finite value");
    tsv_column(table, "nonfinite", "features with NaN or infinity, in no bin");
}

/* -- the table ------------------------------------------------------------------------------- */

static const char *statistics_of(const features_request *q) {
    if (q->stat[0]) return q->stat;
    return q->quantiles ? "mu_shift,sigma_ratio,psi_ratio" : "mu_B";
}

static sr_status choose(feature_table *t, sr_failure *why) {
    const features_request *q = t->q;
    choice *c = &t->chosen;
    tsv_note(&t->table, "source", "/vectors");
    sr_status status =
        choice_set_statistics(c, feature_values, FEATURE_VALUES, NULL, statistics_of(q), why);
    if (status == SR_OK)
        status = choice_set_sites(c, t->set, q->sites, FROM_VECTORS, &t->table, why);
    if (status == SR_FORMAT && q->hint) sr_hint(why, "%s", q->hint);
    if (q->buckets && !q->quantiles && !q->bins)
        tsv_note(
            &t->table, "note",
            "three rows for each feature and 1/%lld of these steps: smallest, median, largest; "
            "of at most %lld steps every row",
            (long long)q->buckets, 3 * (long long)q->buckets);
    for (int i = 0; i < c->statistics && status == SR_OK && (q->quantiles || q->bins); i++)
        tsv_note(&t->table, "statistic", "%s: %s", c->wanted[i]->name, c->wanted[i]->definition);
    if (status == SR_OK)
        status = windows_make(&t->windows, t->set, q->startup, q->phase,
                              q->step[0] ? NULL : &t->table, why);
    if (status == SR_OK) comparable_warn(c, &t->table);
    if (status == SR_OK && q->step[0]) tsv_note(&t->table, "steps", "%s, of each run", q->step);
    for (int64_t k = 0; k < c->sites && status == SR_OK; k++) { /* before a line is printed */
        feature_rows r;
        status = rows_of(t, &c->site[k], &r, why);
    }
    return status == SR_OK && q->bins ? choose_bins(t, why) : status;
}

sr_status feature_table_print(const features_request *q, const run_set *set, const char *command,
                              sr_failure *why) {
    feature_table t = {.q = q, .set = set};
    table_head head;
    sr_status status = table_head_begin(&head, &t.table, q->program, command, set, why);
    if (status != SR_OK) return status;
    status = table_head_end(&head, &t.table, choose(&t, why), why);
    if (status == SR_OK) {
        site_columns(&t.table);
        (q->quantiles ? declare_quantiles : q->bins ? declare_bins : declare_steps)(&t);
        tsv_header(&t.table);
    }
    if (status == SR_OK && q->bins) status = print_histograms(&t, why);
    for (int64_t k = 0; k < t.chosen.sites && status == SR_OK && !q->bins; k++)
        status = (q->quantiles ? print_site_quantiles : print_steps)(&t, &t.chosen.site[k], why);
    choice_free(&t.chosen);
    free(t.windows);
    return status;
}
