/* Rows and columns of a result table: first the layout's, then further ones of the runs.
 *
 * A run belongs to every row of the layout with its norm (in any form), placement and decoder.
 * Other runs get rows by their kind. Runs of one row and task with different settings get a line
 * each, after a line with the published values. A column of the layout becomes its published values
 * and one measured column per task with runs in this metric. Runs without that metric, and other
 * tasks, have columns after the paper's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "base/globs.h"
#include "table/table.h"

/* -- runs that belong to a row --------------------------------------------------------------- */

/* The decoder's norm has no forms. */
static bool fits_decoder(const layout *l, const run_identity *r) {
    if (!r->decoder[0] || !l->decoder[0]) return true;
    if (strcmp(l->decoder, "same") != 0) return strcmp(l->decoder, r->decoder) == 0;
    const size_t length = strcspn(r->norm, "/");
    return strlen(r->decoder) == length && strncmp(r->decoder, r->norm, length) == 0;
}

static bool fits_row(const layout *l, const layout_row *row, const run_identity *r) {
    if (strcmp(row->norm, r->norm) != 0 && !globs_match(row->also, r->norm)) return false;
    if (row->placement[0] && strcmp(row->placement, r->placement) != 0) return false;
    return fits_decoder(l, r);
}

static bool in_layout(const layout *l, const run_identity *r) {
    for (int i = 0; i < l->rows; i++)
        if (fits_row(l, &l->row[i], r)) return true;
    return false;
}

static const char *placement_words(const char *placement) {
    static const char *const words[][2] = {{"pre", "pre-norm"},
                                           {"post", "post-norm"},
                                           {"peri", "peri-norm"},
                                           {"scaled", "scaled pre-norm"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(placement, words[i][0]) == 0) return words[i][1];
    return "placement unknown";
}

/* Label of a run that the layout has no row for: names the reason. */
static void describe(const layout *l, const run_identity *r, table_text label) {
    snprintf(label, sizeof(table_text), "%s", r->norm);
    size_t used = strlen(label);
    if (!fits_decoder(l, r))
        snprintf(label + used, sizeof(table_text) - used, ", decoder %s", r->decoder);
    used = strlen(label);
    if (r->placement[0])
        snprintf(label + used, sizeof(table_text) - used, ", %s", placement_words(r->placement));
}

/* -- rows ------------------------------------------------------------------------------------ */

static grid_row *add_row(grid *g, int of, const char *label, table_quantity quantity) {
    if (!vector_reserve(&g->row, &g->row_capacity, g->rows + 1, sizeof *g->row)) return NULL;
    grid_row *row = &g->row[g->rows];
    *row = (grid_row){.of = of, .quantity = quantity};
    row->member = malloc((size_t)(g->runs + 1) * sizeof *row->member);
    if (!row->member) return NULL;
    snprintf(row->label, sizeof row->label, "%s", label);
    g->rows++;
    return row;
}

/* Settings that differ between a run of a row and other runs of its task. */
static sr_status settings_of(const grid *g, const bool *chosen, int run, const char *plain,
                             table_settings settings, sr_failure *why) {
    const run_identity *r = &g->run[run];
    const run_identity **same = malloc((size_t)(g->runs + 1) * sizeof *same);
    int count = 0;
    if (!same) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < g->runs; i++)
        if (chosen[i] && strcmp(g->run[i].task, r->task) == 0 &&
            strcmp(g->run[i].norm, r->norm) == 0)
            same[count++] = &g->run[i];
    char differing[sizeof(table_settings) - RUN_WORD - 1];
    run_settings(r, same, count, differing, sizeof differing);
    const bool form = plain && strcmp(plain, r->norm) != 0;
    snprintf(settings, sizeof(table_settings), "%s%s%s", form ? r->norm : "",
             form && differing[0] ? " " : "", differing);
    free(same);
    return SR_OK;
}

/* Whether the paper prints a value in this row, or in this column; -1: any. */
static bool has_published(const grid *g, int row, int column) {
    for (int i = 0; i < g->layout.rows; i++)
        for (int k = 0; k < g->layout.columns; k++) {
            const layout_row *r = &g->layout.row[i];
            table_text table;
            if ((row >= 0 && i != row) || (column >= 0 && k != column)) continue;
            snprintf(table, sizeof table, "%s%s", g->layout.column[k].table, r->suffix);
            if (row >= 0 ? published_find(&g->published, table, r->norm, "") != NULL
                         : published_has_table(&g->published, table))
                return true;
        }
    return false;
}

/* Published values get a line without settings if other lines have settings. */
static sr_status add_plain_line(grid *g, int first, sr_failure *why) {
    int plain = first;
    while (plain < g->rows && g->row[plain].settings[0]) plain++;
    if (plain == g->rows) {
        const grid_row like = g->row[first];
        if (!add_row(g, like.of, like.label, like.quantity))
            return sr_fail(why, SR_MEMORY, "out of memory");
    }
    const grid_row moved = g->row[plain];
    memmove(&g->row[first + 1], &g->row[first], (size_t)(plain - first) * sizeof moved);
    g->row[first] = moved;
    return SR_OK;
}

/* Lines of one row; `plain`: the norm that needs no words, NULL where the label has them. */
static sr_status add_lines(grid *g, int of, const char *label, const char *plain,
                           table_quantity quantity, const bool *chosen, sr_failure *why) {
    const int first = g->rows;
    for (int i = 0; i < g->runs; i++) {
        table_settings settings;
        int at = first;
        if (!chosen[i]) continue;
        sr_status status = settings_of(g, chosen, i, plain, settings, why);
        if (status != SR_OK) return status;
        while (at < g->rows && strcmp(g->row[at].settings, settings) != 0) at++;
        if (at == g->rows) {
            if (!add_row(g, of, label, quantity)) return sr_fail(why, SR_MEMORY, "out of memory");
            snprintf(g->row[at].settings, sizeof settings, "%s", settings);
        }
        g->row[at].member[g->row[at].members++] = i;
    }
    if (g->rows == first && !add_row(g, of, label, quantity))
        return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = SR_OK;
    if (of >= 0 && g->rows > first + 1 && has_published(g, of, -1))
        status = add_plain_line(g, first, why);
    g->row[first].first = true;
    return status;
}

static sr_status add_other_rows(grid *g, bool *chosen, sr_failure *why) {
    const int first = g->rows;
    sr_status status = SR_OK;
    bool takes_others = false; /* a layout of quantities has no row for another method */
    for (int i = 0; i < g->layout.rows; i++)
        takes_others = takes_others || g->layout.row[i].quantity == SHOW_METRIC;
    if (!takes_others) return SR_OK;
    for (int i = 0; i < g->runs && status == SR_OK; i++) {
        table_text label, other;
        bool seen = in_layout(&g->layout, &g->run[i]);
        describe(&g->layout, &g->run[i], label);
        for (int k = first; k < g->rows; k++) seen = seen || strcmp(g->row[k].label, label) == 0;
        if (seen) continue;
        for (int k = 0; k < g->runs; k++) {
            describe(&g->layout, &g->run[k], other);
            chosen[k] = strcmp(label, other) == 0 && !in_layout(&g->layout, &g->run[k]);
        }
        status = add_lines(g, -1, label, NULL, SHOW_METRIC, chosen, why);
    }
    return status;
}

/* -- columns --------------------------------------------------------------------------------- */

static sr_status add_column(grid *g, grid_column c, sr_failure *why) {
    for (int i = 0; i < g->columns; i++) {
        const grid_column *b = &g->column[i];
        if (b->of == c.of && b->published == c.published && strcmp(b->task, c.task) == 0 &&
            strcmp(b->metric, c.metric) == 0)
            return SR_OK;
    }
    if (!vector_reserve(&g->column, &g->column_capacity, g->columns + 1, sizeof *g->column))
        return sr_fail(why, SR_MEMORY, "out of memory");
    g->column[g->columns++] = c;
    return SR_OK;
}

static sr_status choose_metric(const grid *g, const run_identity *r, grid_column *c,
                               sr_failure *why) {
    c->other = c->of < 0;
    if (c->of >= 0) c->quantity = g->layout.column[c->of].quantity;
    snprintf(c->metric, sizeof c->metric, "%s", table_quantity_name(c->quantity));
    if (c->quantity != SHOW_METRIC) return SR_OK;
    if (c->of < 0) return table_run_leading_metric(r, c->metric, why);
    const layout_column *k = &g->layout.column[c->of];
    sr_status status = table_run_metric(r, k->measured, c->metric, why);
    c->other = !table_metric_agrees(c->metric, k->metric);
    return status;
}

const sr_run_metric *grid_metric(const grid *g, const grid_column *c) {
    const sr_run_metric *m = NULL;
    for (int i = 0; i < g->runs && !m; i++)
        if (layout_takes_run(&g->layout, &g->run[i], c->of) && strcmp(g->run[i].task, c->task) == 0)
            m = table_run_find_metric(&g->run[i], c->metric);
    return m;
}

/* other: the columns after the paper's, or the rest. */
static sr_status add_measured(grid *g, int of, bool other, sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; i < g->runs && status == SR_OK; i++) {
        const run_identity *r = &g->run[i];
        grid_column c = {.of = of};
        bool in_a_row = false;
        for (int k = 0; k < g->rows; k++)
            for (int m = 0; m < g->row[k].members; m++)
                in_a_row = in_a_row || g->row[k].member[m] == i;
        if (!in_a_row || !layout_takes_run(&g->layout, r, of)) continue;
        snprintf(c.task, sizeof c.task, "%s", r->task);
        status = choose_metric(g, r, &c, why);
        if (status == SR_OK && c.metric[0] && c.other == other) status = add_column(g, c, why);
    }
    return status;
}

static sr_status add_columns(grid *g, sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; i < g->layout.columns && status == SR_OK; i++) {
        const grid_column c = {
            .of = i, .published = true, .quantity = g->layout.column[i].quantity};
        if (has_published(g, -1, i)) status = add_column(g, c, why);
        if (status == SR_OK) status = add_measured(g, i, false, why);
    }
    for (int i = 0; i < g->layout.columns && status == SR_OK; i++)
        status = add_measured(g, i, true, why);
    return status == SR_OK ? add_measured(g, -1, true, why) : status;
}

/* -- all of it ------------------------------------------------------------------------------- */

sr_status grid_make(grid *g, const run_set *set, sr_failure *why) {
    bool *chosen = malloc((size_t)(set->count + 1) * sizeof *chosen);
    g->run = malloc((size_t)(set->count + 1) * sizeof *g->run);
    sr_status status = chosen && g->run ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (g->run) g->runs = set->count;
    for (int i = 0; i < g->runs; i++) run_identify(&g->run[i], set->run[i], set->path[i]);
    for (int i = 0; i < g->layout.rows && status == SR_OK; i++) {
        const layout_row *row = &g->layout.row[i];
        for (int k = 0; k < g->runs; k++) chosen[k] = fits_row(&g->layout, row, &g->run[k]);
        status = add_lines(g, i, row->label, row->norm, row->quantity, chosen, why);
    }
    if (status == SR_OK) status = add_other_rows(g, chosen, why);
    if (status == SR_OK) status = add_columns(g, why);
    free(chosen);
    return status == SR_OK ? grid_fill(g, why) : status;
}

void grid_free(grid *g) {
    for (int i = 0; i < g->rows; i++) free(g->row[i].member);
    free(g->row);
    free(g->column);
    free(g->cell);
    free(g->run);
    layout_free(&g->layout);
    published_free(&g->published);
    *g = (grid){.rows = 0};
}

const grid_cell *grid_at(const grid *g, int row, int column) {
    return &g->cell[(size_t)row * (size_t)g->columns + (size_t)column];
}
