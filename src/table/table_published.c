/* Values of the papers: plots/published.tsv, one value a line (table, source, norm, metric, value).
 * A line with the metric METRIC.note has a text: a doubt about an earlier value of that table, norm
 * and metric.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "table/table.h"

enum { TABLE, SOURCE, NORM, METRIC, VALUE, CELLS };

static const char *const header[CELLS] = {"table", "source", "norm", "metric", "value"};

static const char note_mark[] = ".note";

/* length: of the metric without the mark. */
static sr_status add_note(published_values *p, const table_lines *l, size_t length,
                          sr_failure *why) {
    for (int i = 0; i < p->count; i++) {
        published_value *v = &p->value[i];
        if (strcmp(v->table, l->cell[TABLE]) != 0 || strcmp(v->norm, l->cell[NORM]) != 0 ||
            strlen(v->metric) != length || strncmp(v->metric, l->cell[METRIC], length) != 0)
            continue;
        snprintf(v->note, sizeof v->note, "%s", l->cell[VALUE]);
        return SR_OK;
    }
    return table_lines_wrong(l, why, "a note on no value above it: %s %s", l->cell[TABLE],
                             l->cell[NORM]);
}

static sr_status add_value(published_values *p, const table_lines *l, sr_failure *why) {
    char *end;
    const double value = strtod(l->cell[VALUE], &end);
    if (end == l->cell[VALUE] || *end)
        return table_lines_wrong(l, why, "the value '%s' is not a number", l->cell[VALUE]);
    if (!vector_reserve(&p->value, &p->capacity, p->count + 1, sizeof *p->value))
        return sr_fail(why, SR_MEMORY, "out of memory");
    published_value *v = &p->value[p->count];
    *v = (published_value){.note = "", .number = value};
    snprintf(v->table, sizeof v->table, "%s", l->cell[TABLE]);
    snprintf(v->source, sizeof v->source, "%s", l->cell[SOURCE]);
    snprintf(v->norm, sizeof v->norm, "%s", l->cell[NORM]);
    snprintf(v->metric, sizeof v->metric, "%s", l->cell[METRIC]);
    snprintf(v->text, sizeof v->text, "%s", isnan(value) ? "Div." : l->cell[VALUE]);
    if (published_find(p, v->table, v->norm, v->metric))
        return table_lines_wrong(l, why, "a second value of %s %s %s", v->table, v->norm,
                                 v->metric);
    p->count++;
    return SR_OK;
}

static sr_status read_line(published_values *p, const table_lines *l, bool *begun,
                           sr_failure *why) {
    if (l->cells != CELLS)
        return table_lines_wrong(l, why, "%d cells instead of %d", l->cells, CELLS);
    bool names = !*begun;
    for (int i = 0; i < CELLS; i++) names = names && strcmp(l->cell[i], header[i]) == 0;
    *begun = true;
    if (names) return SR_OK;
    const size_t length = strlen(l->cell[METRIC]), mark = sizeof note_mark - 1;
    if (length > mark && strcmp(l->cell[METRIC] + length - mark, note_mark) == 0)
        return add_note(p, l, length - mark, why);
    return add_value(p, l, why);
}

sr_status published_read(published_values *p, const char *given, sr_failure *why) {
    table_lines l;
    bool more = true, begun = false;
    *p = (published_values){.count = 0};
    sr_status status = table_lines_open(&l, given, "published.tsv", p->path, why);
    while (status == SR_OK) {
        status = table_lines_next(&l, &more, why);
        if (status != SR_OK || !more) break;
        status = read_line(p, &l, &begun, why);
    }
    table_lines_close(&l);
    return status;
}

void published_free(published_values *p) {
    free(p->value);
    p->value = NULL;
    p->count = 0, p->capacity = 0;
}

bool published_has_table(const published_values *p, const char *table) {
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->value[i].table, table) == 0) return true;
    return false;
}

const published_value *published_find(const published_values *p, const char *table,
                                      const char *norm, const char *metric) {
    for (int i = 0; i < p->count; i++) {
        const published_value *v = &p->value[i];
        if (strcmp(v->table, table) == 0 && strcmp(v->norm, norm) == 0 &&
            (!metric[0] || strcmp(v->metric, metric) == 0))
            return v;
    }
    return NULL;
}
