/* A validation metric against the size of the micro-batch (PowerNorm, ICML 2020, figure 5).
 *
 * One row per model, data, normalization and size: mean, smallest and largest value of the metric
 * over the runs of that kind (seeds). A run contributes its last evaluation with a finite value.
 * The size is an option of the run: `max-tokens` for losses per token, `batch-size` for losses per
 * image, sentence or transition. Other runs use the median of /steps/tokens. An update may have
 * several micro-batches; batch statistics see one of them. A warning reports runs of one row that
 * differ beyond the seed (batching, schedule).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frame/stat_program.h"
#include "analysis/frame/step_range.h"
#include "analysis/runs/replicates.h"
#include "analysis/runs/run_config.h"
#include "analysis/runs/run_metrics.h"

typedef struct settings {
    option_text metric;
} settings;

#define USUAL     "valid_ppl"
#define AT(field) offsetof(settings, field)
static const option rows[] = {
    TEXT_OPTION("Choice", "metric", AT(metric), USUAL, "name of a metric", .value = "METRIC"),
};

typedef struct point {
    const char *model, *data, *norm;
    const sr_run_metric *metric; /* as the run declares it */
    int group;                   /* group of replicates */
    double size, value;
    int64_t updates;
} point;

/* In running text neither option bounds the tokens of a pass: batch-size counts sequences there. */
static sr_status read_size(sr_runfile *run, double *size, sr_failure *why) {
    run_word counts;
    summary s = {.median = NAN};
    run_counts(run, counts);
    const bool tokens = strcmp(counts, "token") == 0;
    *size = counts[0] ? run_option_number(run, tokens ? "max-tokens" : "batch-size") : NAN;
    if (*size > 0) return SR_OK;
    sr_status status = run_tokens(run, &s, &(int64_t){0}, why);
    *size = s.median;
    return status;
}

static sr_status read_point(sr_runfile *run, const char *metric, point *p, sr_failure *why) {
    const sr_run_info *info = sr_run_get_info(run);
    *p = (point){.model = info->model,
                 .data = info->data,
                 .norm = sr_run_main_norm(run),
                 .metric = sr_run_find_metric(run, metric)};
    sr_status status = read_size(run, &p->size, why);
    if (status == SR_OK) status = metric_read_last(run, metric, &p->value, why);
    if (status == SR_OK && info->steps)
        status = sr_run_step_ints(run, "update", info->steps - 1, 1, &p->updates, why);
    return status;
}

static int by_kind_size(const point *a, const point *b) {
    int order = strcmp(a->model, b->model);
    if (!order) order = strcmp(a->data, b->data);
    if (!order) order = strcmp(a->norm, b->norm);
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

/* Replicates of a row become neighbours. */
static int by_row_and_group(const void *x, const void *y) {
    const point *a = x, *b = y;
    const int order = by_kind_size(a, b);
    return order ? order : (a->group > b->group) - (a->group < b->group);
}

static void declare_columns(stat_table *table) {
    tsv *t = &table->table;
    tsv_column(t, "norm",
               "the first normalization among the run's sites, +ls behind a layer scale");
    tsv_column(t, "model", "model");
    tsv_column(t, "data", "data set");
    tsv_column(t, "micro_batch",
               "tokens, images, sentences or transitions that a micro-batch may have");
    tsv_column(t, "runs", "runs of this kind with a finite value");
    tsv_column(t, "updates_least", "fewest optimizer updates of such a run");
    tsv_column(t, "updates_most", "most: runs of different length are not comparable");
    tsv_column(t, "mean", "mean of the metric over these runs, at their last evaluation");
    tsv_column(t, "least", "smallest");
    tsv_column(t, "largest", "largest");
    tsv_column(t, "unit", "of the metric");
    tsv_column(t, "better", "which of two values is better: less, more, - for neither");
}

/* p[count]: the points of one row, all finite, so that their runs declare the metric. */
static void print_row(tsv *t, const point *p, int64_t count) {
    double sum = 0, least = p->value, largest = p->value;
    int64_t few = p->updates, many = p->updates;
    for (int64_t i = 0; i < count; i++) {
        sum += p[i].value;
        least = fmin(least, p[i].value);
        largest = fmax(largest, p[i].value);
        few = p[i].updates < few ? p[i].updates : few;
        many = p[i].updates > many ? p[i].updates : many;
    }
    tsv_text(t, p->norm);
    tsv_text(t, p->model);
    tsv_text(t, p->data);
    tsv_real(t, p->size);
    tsv_int(t, count);
    tsv_int(t, few);
    tsv_int(t, many);
    tsv_real(t, sum / (double)count);
    tsv_real(t, least);
    tsv_real(t, largest);
    tsv_text(t, p->metric->unit);
    tsv_text(t, metric_better(p->metric));
}

/* The points of the runs with a finite value, sorted. */
typedef struct points {
    point *point;
    int64_t count;
} points;

/* Finite points to the front; notes the other runs. */
static sr_status read_points(stat_table *t, const char *metric, const run_groups *groups,
                             sr_failure *why) {
    points *all = t->state;
    point *p = all->point = calloc((size_t)t->set->count + 1, sizeof *p);
    if (!p) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < t->set->count; i++) {
        point *next = &p[all->count];
        sr_status status = read_point(t->set->run[i], metric, next, why);
        if (status != SR_OK) return status;
        next->group = groups->of[i];
        all->count += isfinite(next->value) != 0;
        if (!isfinite(next->value))
            tsv_note(&t->table, "note", "%s: no finite %s: left out", t->set->path[i], metric);
    }
    qsort(p, (size_t)all->count, sizeof *p, by_row_and_group);
    for (int64_t i = 1; i < all->count; i++) {
        if (by_kind_size(&p[i - 1], &p[i]) || p[i].group == p[i - 1].group) continue;
        tsv_note(&t->table, "warning", "runs of a row differ beyond the seed: %s, size %g",
                 p[i].norm, p[i].size);
        break;
    }
    if (all->count) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s%s has no finite %s", t->set->path[0],
                   t->set->count > 1 ? " (and no other run)" : "", metric);
}

static sr_status choose(stat_table *t, sr_failure *why) {
    const char *name = ((const settings *)t->settings)->metric;
    sr_status status = metric_check(t->set, name, USUAL, &t->table, why);
    const sr_run_metric *m = metric_find(t->set, name, strlen(name));
    if (!m) return status == SR_OK ? sr_fail(why, SR_USAGE, "--metric: one metric") : status;
    const char *direction = metric_direction(m);
    tsv_note(&t->table, "metric", "%s, %s%s%s: %s", name, m->unit, *direction ? ", " : "",
             direction, m->definition);
    run_groups groups;
    status = run_groups_make(&groups, t->set, false, why);
    if (status == SR_OK) status = read_points(t, name, &groups, why);
    run_groups_free(&groups);
    return status;
}

static sr_status print_rows(stat_table *t, sr_failure *why) {
    const points *p = t->state;
    (void)why;
    for (int64_t first = 0, end; first < p->count; first = end) {
        for (end = first + 1; end < p->count && !by_kind_size(&p->point[first], &p->point[end]);)
            end++;
        print_row(&t->table, p->point + first, end - first);
    }
    return SR_OK;
}

static void release(stat_table *t) {
    free(((points *)t->state)->point);
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-batch",
        .usage = "RUN.h5... [--metric NAME]",
        .does = "The last value of a validation metric against the size of the micro-batch.",
        .options = {rows, sizeof rows / sizeof rows[0]},
        .settings = sizeof(settings),
        .metrics = true,
        .state = sizeof(points),
        .head = choose,
        .columns = declare_columns,
        .rows = print_rows,
        .release = release,
    };
    return stat_program_main(&p, argc, argv);
}
