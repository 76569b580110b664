/* Cells of a result table: published values, and means over the runs of a row, task and metric.
 *
 * The gap of a run is its metric against the mean of its references, positive if the run is better.
 * References have the norm `against` of the row (default: ln in any form). Their task and placement
 * are the same, their settings the nearest, and their seed is the run's if one of them has it: the
 * deviation of gaps is that of pairs then. If a paper prints no gap, the published one is the
 * difference of its values, with their digits.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "table/table.h"

static int decimals_of(const char *text) {
    const char *point = strchr(text, '.');
    return point ? (int)strspn(point + 1, "0123456789") : 0;
}

/* The difference of two printed values. False if one is missing, diverged or infinite, or if the
 * direction is unknown. */
static bool published_gap(const published_value *a, const published_value *b, const char *better,
                          char text[24]) {
    if (!a || !b || !better[0]) return false;
    const double gap = strtod(a->text, NULL) - strtod(b->text, NULL);
    const int one = decimals_of(a->text), other = decimals_of(b->text);
    if (!strpbrk(a->text, "0123456789") || !strpbrk(b->text, "0123456789")) return false;
    snprintf(text, 24, "%.*f", one > other ? one : other,
             strcmp(better, "less") == 0 ? 0 - gap : gap);
    return true;
}

static void fill_published(const grid *g, const grid_row *row, const grid_column *c,
                           grid_cell *cell) {
    if (row->of < 0 || !row->first) return;
    const layout_row *lr = &g->layout.row[row->of];
    const layout_column *lc = &g->layout.column[c->of];
    table_text table;
    const char *metric = lc->metric;
    if (row->quantity != SHOW_METRIC) metric = table_quantity_name(row->quantity);
    snprintf(table, sizeof table, "%s%s", lc->table, lr->suffix);
    const published_value *v = published_find(&g->published, table, lr->norm, metric);
    if (v) {
        cell->published = v->text;
        cell->note = v->note[0] ? v->note : NULL;
    } else if (row->quantity == SHOW_GAP &&
               published_gap(published_find(&g->published, table, lr->norm, lc->metric),
                             published_find(&g->published, table, lr->against, lc->metric),
                             lc->better, cell->difference)) {
        cell->published = cell->difference;
    }
}

/* -- measured -------------------------------------------------------------------------------- */

static bool is_reference(const run_identity *r, const run_identity *of, const char *against) {
    const size_t length = strcspn(r->norm, "/"); /* then come forms */
    return strlen(against) == length && memcmp(r->norm, against, length) == 0 &&
           strcmp(r->task, of->task) == 0 && strcmp(r->placement, of->placement) == 0;
}

/* How far a run is from its reference: settings that differ, then the seed. */
static int distance_to(const run_identity *reference, const run_identity *r) {
    return 2 * run_distance(reference, r) + (reference->info->seed != r->info->seed);
}

static sr_status measure_gap(const grid *g, const run_identity *r, const char *against,
                             const char *metric, measurement *m, sr_failure *why) {
    int least = INT_MAX, count = 0; /* distance of the nearest references */
    double sum = 0;
    for (int i = 0; i < g->runs; i++) {
        if (!is_reference(&g->run[i], r, against)) continue;
        const int distance = distance_to(&g->run[i], r);
        if (distance < least) least = distance;
    }
    measurement own;
    sr_status status = table_run_measure(r, metric, g->pick, &own, why);
    for (int i = 0; i < g->runs && status == SR_OK; i++) {
        measurement other;
        if (!is_reference(&g->run[i], r, against) || distance_to(&g->run[i], r) > least) continue;
        status = table_run_measure(&g->run[i], metric, g->pick, &other, why);
        if (status != SR_OK || other.state != MEASURED_VALUE) continue;
        sum += other.value;
        count++;
    }
    *m = own;
    if (own.state != MEASURED_VALUE) return status;
    const sr_run_metric *declared = table_run_find_metric(r, metric);
    const sr_better better = declared ? declared->better : SR_BETTER_NEITHER;
    const double gap = own.value - sum / count;
    *m = (measurement){count && better ? MEASURED_VALUE : MEASURED_NONE,
                       better == SR_BETTER_LESS ? -gap : gap};
    return status;
}

static sr_status measure(const grid *g, const run_identity *r, const grid_row *row,
                         table_quantity quantity, const char *metric, measurement *m,
                         sr_failure *why) {
    const char *against = row->of >= 0 ? g->layout.row[row->of].against : TABLE_AGAINST;
    measurement tid[2];
    *m = (measurement){MEASURED_NONE, NAN};
    if (quantity == SHOW_METRIC) return table_run_measure(r, metric, g->pick, m, why);
    if (quantity == SHOW_GAP) return measure_gap(g, r, against, metric, m, why);
    sr_status status = table_run_tid(r, tid, why);
    *m = tid[quantity == SHOW_TID_VAR];
    if (quantity == SHOW_TID_TOTAL) m->value += tid[1].value;
    return status;
}

static sr_status fill_measured(const grid *g, const grid_row *row, const grid_column *c,
                               grid_cell *cell, sr_failure *why) {
    const table_quantity quantity = row->quantity != SHOW_METRIC ? row->quantity : c->quantity;
    double *value = malloc((size_t)(row->members + 1) * sizeof *value);
    sr_status status = value ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < row->members && status == SR_OK; i++) {
        const run_identity *r = &g->run[row->member[i]];
        measurement m;
        if (strcmp(r->task, c->task) != 0 || !layout_takes_run(&g->layout, r, c->of)) continue;
        status = measure(g, r, row, quantity, c->metric, &m, why);
        if (m.state == MEASURED_VALUE) value[cell->runs++] = m.value;
        if (m.state == MEASURED_DIVERGED) cell->diverged++;
    }
    double sum = 0, square = 0;
    for (int i = 0; i < cell->runs; i++) sum += value[i];
    if (cell->runs) cell->mean = sum / cell->runs;
    for (int i = 0; i < cell->runs; i++)
        square += (value[i] - cell->mean) * (value[i] - cell->mean);
    if (cell->runs > 1) cell->deviation = sqrt(square / (cell->runs - 1));
    free(value);
    return status;
}

sr_status grid_fill(grid *g, sr_failure *why) {
    sr_status status = SR_OK;
    g->cell = malloc(((size_t)g->rows * (size_t)g->columns + 1) * sizeof *g->cell);
    if (!g->cell) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < g->rows; i++) {
        for (int k = 0; k < g->columns && status == SR_OK; k++) {
            grid_cell *cell = &g->cell[(size_t)i * (size_t)g->columns + (size_t)k];
            const grid_column *c = &g->column[k];
            *cell = (grid_cell){.mean = NAN, .deviation = NAN};
            if (c->published)
                fill_published(g, &g->row[i], c, cell);
            else
                status = fill_measured(g, &g->row[i], c, cell, why);
        }
    }
    return status;
}
