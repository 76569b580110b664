/* Printed values of the papers beside measured ones: rows of published.tsv.
 *
 * The file has one value a row: table, source, norm, metric, value. A figure names its metrics
 * (`#: published TABLES METRICS`). The values of one table, source and norm become one row with a
 * value per metric, so that a figure can draw one over the other. gnuplot gets arrays:
 *
 *     published_rows                       0 unless --published was given
 *     published_norm[i], published_source[i], published_table[i], published_group[i]
 *     published_y1[i], published_y2[i]     the metrics in the template's order
 *     published_groups, published_name[g]  tables, with name and source of each for the legend
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/globs.h"
#include "plot/plot_gnuplot.h"
#include "plot/template/plot_files.h"
#include "plot/template/plot_published.h"
#include "plot/template/plot_sizes.h"
#include "plot/template/plot_template.h"
#include "table/table.h"

/* Beside the template, else where templates are. */
static sr_status find_file(const plot_template *t, char path[2 * PLOT_PATH], sr_failure *why) {
    char directory[PLOT_PATH];
    snprintf(path, 2 * PLOT_PATH, "%s", t->path);
    char *slash = strrchr(path, '/');
    snprintf(slash ? slash + 1 : path, 16, "published.tsv");
    for (int i = 0; access(path, R_OK) != 0; i++) {
        if (!plot_directory(i, directory)) return sr_fail(why, SR_IO, "cannot find published.tsv");
        snprintf(path, 2 * PLOT_PATH, "%s/published.tsv", directory);
    }
    return SR_OK;
}

/* The row of this table, source and norm, made when it is not there; NULL: out of memory. */
static plot_published_row *find_row(plot_published *p, const published_value *v) {
    int group = 0;
    for (int i = 0; i < p->rows; i++) {
        plot_published_row *r = &p->row[i];
        if (strcmp(r->table, v->table) != 0) continue;
        group = r->group;
        if (strcmp(r->source, v->source) == 0 && strcmp(r->norm, v->norm) == 0) return r;
    }
    plot_published_row *grown = realloc(p->row, (size_t)(p->rows + 1) * sizeof *grown);
    if (!grown) return NULL;
    p->row = grown;
    plot_published_row *r = &grown[p->rows++];
    snprintf(r->table, sizeof r->table, "%s", v->table);
    snprintf(r->source, sizeof r->source, "%s", v->source);
    snprintf(r->norm, sizeof r->norm, "%s", v->norm);
    r->group = group ? group : ++p->groups;
    for (int i = 0; i < PLOT_VALUES; i++) r->value[i] = NAN;
    return r;
}

static sr_status add_value(plot_published *p, const plot_template *t, const published_value *v,
                           sr_failure *why) {
    int metric = 0;
    while (metric < t->prints && strcmp(t->print[metric], v->metric) != 0) metric++;
    if (metric == t->prints || !globs_match(t->published, v->table)) return SR_OK;
    plot_published_row *row = find_row(p, v);
    if (!row) return sr_fail(why, SR_MEMORY, "out of memory");
    row->value[metric] = v->number;
    return SR_OK;
}

sr_status plot_published_read(plot_published *p, const plot_template *t, bool wanted,
                              sr_failure *why) {
    char path[2 * PLOT_PATH];
    *p = (plot_published){0};
    if (!wanted) return SR_OK;
    published_values all = {0};
    sr_status status = find_file(t, path, why);
    if (status == SR_OK) status = published_read(&all, path, why);
    for (int i = 0; i < all.count && status == SR_OK; i++)
        status = add_value(p, t, &all.value[i], why);
    published_free(&all);
    if (status == SR_OK && !p->rows) {
        status = sr_fail(why, SR_USAGE, "no published value of %s%s in a table '%s'", t->print[0],
                         t->prints > 1 ? " and others" : "", t->published);
        sr_hint(why, "tables and metrics are in %s", path);
    }
    if (status != SR_OK) plot_published_free(p);
    return status;
}

void plot_published_free(plot_published *p) {
    free(p->row);
    *p = (plot_published){0};
}

void plot_published_write(const plot_published *p, const plot_template *t, FILE *out) {
    if (!t->prints) return;
    const int capacity = p->rows ? p->rows : 1;
    fprintf(out, "published_rows = %d\npublished_groups = %d\n", p->rows, p->groups);
    fprintf(out, "array published_table[%d]\narray published_source[%d]\n", capacity, capacity);
    fprintf(out, "array published_norm[%d]\narray published_group[%d]\n", capacity, capacity);
    fprintf(out, "array published_name[%d]\n", p->groups ? p->groups : 1);
    for (int k = 0; k < t->prints; k++) fprintf(out, "array published_y%d[%d]\n", k + 1, capacity);
    /* gnuplot reads the first element even for a loop from 1 to 0 */
    if (!p->rows) fputs("published_group[1] = 1\n", out);
    for (int i = 0; i < p->rows; i++) {
        const plot_published_row *r = &p->row[i];
        plot_assign(out, r->table, "published_table[%d]", i + 1);
        plot_assign(out, r->source, "published_source[%d]", i + 1);
        plot_assign(out, r->norm, "published_norm[%d]", i + 1);
        char name[sizeof r->table + sizeof r->source + 2];
        snprintf(name, sizeof name, "%s, %s", r->table, r->source);
        plot_assign(out, name, "published_name[%d]", r->group);
        fprintf(out, "published_group[%d] = %d\n", i + 1, r->group);
        for (int k = 0; k < t->prints; k++)
            if (isfinite(r->value[k]))
                fprintf(out, "published_y%d[%d] = %.9g\n", k + 1, i + 1, r->value[k]);
            else
                fprintf(out, "published_y%d[%d] = NaN\n", k + 1, i + 1);
    }
}
