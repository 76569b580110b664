/* Which rows of /vectors, and which order of features. */
#include "analysis/feature_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/column_summary.h"
#include "base/buckets.h"

/* -- rows ------------------------------------------------------------------------------------ */

static void add_row(feature_rows *r, int64_t row) {
    int at = r->ranges;
    for (int i = 0; i < r->ranges; i++)
        if (r->first[i] == row) return;
    for (; at > 0 && r->first[at - 1] > row; at--) r->first[at] = r->first[at - 1];
    r->first[at] = row;
    r->count[r->ranges++] = 1;
    r->total++;
}

static sr_status not_recorded(const series *all, const char *path, int64_t row, int64_t wanted,
                              sr_failure *why) {
    const int64_t end = series_length(all);
    int64_t before = -1, after = -1;
    sr_status status = row ? series_read_steps(all, row - 1, 1, &before, why) : SR_OK;
    if (status == SR_OK && row < end) status = series_read_steps(all, row, 1, &after, why);
    if (status != SR_OK) return status;
    sr_fail(why, SR_USAGE, "--step %lld: %s has no vectors at this step", (long long)wanted, path);
    if (before < 0 || after < 0)
        sr_hint(why, "the nearest step with vectors is %lld",
                (long long)(before < 0 ? after : before));
    else
        sr_hint(why, "the nearest steps with vectors are %lld and %lld", (long long)before,
                (long long)after);
    return SR_USAGE;
}

/* Adds the row nearest to `row`, first in direction `way`, at which the site was recorded. */
static sr_status add_recorded(feature_rows *r, const series *all, int64_t row, int way,
                              sr_failure *why) {
    int64_t found;
    sr_status status = series_recorded_row(all, row, way, &found, why);
    if (status == SR_OK && found < 0) status = series_recorded_row(all, row, -way, &found, why);
    if (status == SR_OK) add_row(r, found < 0 ? row : found);
    return status;
}

static sr_status add_word(feature_rows *r, const series *all, const char *path, const char *word,
                          sr_failure *why) {
    const int64_t end = series_length(all);
    int64_t row, step;
    char *rest;
    if (r->ranges == FEATURE_STEPS_MOST)
        return sr_fail(why, SR_USAGE, "--step: more than %d steps", FEATURE_STEPS_MOST);
    if (strcmp(word, "first") == 0) return add_recorded(r, all, 0, 1, why);
    if (strcmp(word, "middle") == 0) return add_recorded(r, all, (end - 1) / 2, -1, why);
    if (strcmp(word, "last") == 0) return add_recorded(r, all, end - 1, -1, why);
    const long long wanted = strtoll(word, &rest, 10);
    if (rest == word || *rest || wanted < 0)
        return sr_fail(why, SR_USAGE, "--step: '%.40s' is not first, middle, last or a step", word);
    sr_status status = series_find_row(all, wanted, &row, why);
    step = -1;
    if (status == SR_OK && row < end) status = series_read_steps(all, row, 1, &step, why);
    if (status != SR_OK) return status;
    if (step != wanted) return not_recorded(all, path, row, wanted, why);
    add_row(r, row);
    return SR_OK;
}

sr_status feature_rows_choose(feature_rows *r, const sr_runfile *run, int64_t site,
                              const char *path, const char *step, const step_window *window,
                              sr_failure *why) {
    const series all = {.run = run, .site = site, .source = FROM_VECTORS};
    option_text words;
    *r = (feature_rows){.ranges = 0};
    sr_status status = run_last_step(run, &r->last_step, why);
    if (status != SR_OK) return status;
    if (!step[0]) {
        status = window_rows(window, &all, &r->first[0], &r->count[0], why);
        r->ranges = 1;
        r->total = r->count[0];
        return status;
    }
    snprintf(words, sizeof words, "%s", step);
    for (char *word = words, *comma; word && status == SR_OK; word = comma) {
        if ((comma = strchr(word, ','))) *comma++ = 0;
        status = add_word(r, &all, path, word, why);
    }
    return status;
}

sr_status feature_rows_each(const feature_rows *r, const feature_site *s, feature_visit *visit,
                            void *context, sr_failure *why) {
    int64_t most;
    sr_status status = feature_rows_together(s, &most, why);
    if (status != SR_OK) return status;
    const int64_t fit = most < r->total ? most : r->total;
    double *value = malloc((size_t)(s->statistics * fit * s->width + 1) * sizeof *value);
    int64_t *step = malloc((size_t)(fit + 1) * sizeof *step);
    if (!value || !step) status = sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < r->ranges && status == SR_OK; i++) {
        const int64_t end = r->first[i] + r->count[i];
        for (int64_t at = r->first[i], n; at < end && status == SR_OK; at += n) {
            n = most - at % most; /* up to where a block of the file ends */
            n = n < end - at ? n : end - at;
            status = sr_run_vector_steps(s->run, at, n, step, why);
            if (status == SR_OK) status = feature_rows_read(s, at, n, value, why);
            if (status == SR_OK) status = visit(context, step, n, value, why);
        }
    }
    free(value);
    free(step);
    return status;
}

/* -- order ----------------------------------------------------------------------------------- */

typedef struct scored {
    double score;
    int64_t feature;
} scored;

static int compare_falling(const void *a, const void *b) {
    const scored *x = a, *y = b;
    if (isnan(x->score) != isnan(y->score)) return isnan(x->score) ? 1 : -1;
    if (x->score != y->score && !isnan(x->score)) return x->score < y->score ? 1 : -1;
    return x->feature < y->feature ? -1 : 1;
}

sr_status feature_sort(const double *score, bool rising, int64_t *feature, int64_t width,
                       sr_failure *why) {
    scored *of = malloc((size_t)(width + 1) * sizeof *of);
    if (!of) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t k = 0; k < width; k++) of[k] = (scored){rising ? -score[k] : score[k], k};
    qsort(of, (size_t)width, sizeof *of, compare_falling);
    for (int64_t k = 0; k < width; k++) feature[k] = of[k].feature;
    free(of);
    return SR_OK;
}

typedef struct scoring {
    int64_t width;
    bool outlier;
    double *score, *scratch; /* [width] */
    int64_t *rows;           /* [width] with a deviation */
} scoring;

/* Deviation of a feature from the others, as stat-outlier's from other steps: infinite where half
 * of the features are equal and this one is not. */
static void add_deviations(const scoring *c, const double *value) {
    for (int64_t k = 0; k < c->width; k++) c->scratch[k] = value[k];
    const double median = bucket_measure(c->scratch, c->width).median;
    for (int64_t k = 0; k < c->width; k++) c->scratch[k] = fabs(value[k] - median);
    const double mad = bucket_measure(c->scratch, c->width).median;
    for (int64_t k = 0; k < c->width; k++) {
        const double from = fabs(value[k] - median);
        if (!isfinite(from)) continue;
        c->score[k] += from == 0 ? 0 : from / mad;
        c->rows[k]++;
    }
}

static sr_status score_rows(void *context, const int64_t *step, int64_t count, const double *value,
                            sr_failure *why) {
    const scoring *c = context;
    (void)step, (void)why;
    for (int64_t i = 0; i < count; i++, value += c->width) {
        if (c->outlier) {
            add_deviations(c, value);
            continue;
        }
        for (int64_t k = 0; k < c->width; k++) {
            if (!isfinite(value[k])) continue;
            c->score[k] = fmax(c->score[k], fabs(value[k]));
            c->rows[k]++;
        }
    }
    return SR_OK;
}

sr_status feature_order(const feature_rows *r, const feature_site *s, const char *word,
                        int64_t *feature, sr_failure *why) {
    const size_t width = (size_t)s->width + 1;
    const bool by_number = strcmp(word, "feature") == 0;
    feature_site first = *s;
    first.statistics = 1;
    for (int64_t k = 0; k < s->width; k++) feature[k] = k;
    if (by_number) return SR_OK;
    scoring c = {.width = s->width,
                 .outlier = strcmp(word, "outlier") == 0,
                 .score = calloc(width, sizeof *c.score),
                 .scratch = malloc(width * sizeof *c.scratch),
                 .rows = calloc(width, sizeof *c.rows)};
    sr_status status =
        c.score && c.scratch && c.rows ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = feature_rows_each(r, &first, score_rows, &c, why);
    for (int64_t k = 0; k < s->width && status == SR_OK; k++)
        c.score[k] = !c.rows[k] ? NAN : c.outlier ? c.score[k] / (double)c.rows[k] : c.score[k];
    if (status == SR_OK) status = feature_sort(c.score, false, feature, s->width, why);
    free(c.score);
    free(c.scratch);
    free(c.rows);
    return status;
}
