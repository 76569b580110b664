/* Rows and columns of the papers' tables: plots/layouts.tsv, whose first lines have its grammar. */
#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "base/globs.h"
#include "table/table.h"

enum { NAME, PART, LABEL, SETTINGS }; /* cells; KEY=VALUE from SETTINGS on */

static const char *const quantities[] = {"metric", "tid_mean", "tid_var", "tid_total", "gap"};
enum { QUANTITIES = sizeof quantities / sizeof quantities[0] };

const char *table_quantity_name(table_quantity q) {
    return quantities[q];
}

/* -- one line -------------------------------------------------------------------------------- */

/* Destination of a KEY=VALUE of a part. */
typedef struct field {
    const char *key;
    char *text;
    size_t size;
} field;

static sr_status set_field(const table_lines *l, const field *fields, char *setting,
                           table_quantity *q, sr_failure *why) {
    char *value = strchr(setting, '=');
    if (!value) return table_lines_wrong(l, why, "'%s' is not KEY=VALUE", setting);
    *value++ = 0;
    if (q && strcmp(setting, "quantity") == 0) {
        for (int i = 0; i < QUANTITIES; i++)
            if (strcmp(quantities[i], value) == 0) return *q = (table_quantity)i, SR_OK;
        return table_lines_wrong(l, why, "unknown quantity '%s'", value);
    }
    for (const field *f = fields; f->key; f++) {
        if (strcmp(f->key, setting) != 0) continue;
        if (snprintf(f->text, f->size, "%s", value) < (int)f->size) return SR_OK;
        return table_lines_wrong(l, why, "%s is too long", setting);
    }
    return table_lines_wrong(l, why, "a %s has no '%s'", l->cell[PART], setting);
}

static sr_status set_fields(const table_lines *l, const field *fields, table_quantity *q,
                            sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = SETTINGS; i < l->cells && status == SR_OK; i++)
        status = set_field(l, fields, l->cell[i], q, why);
    return status;
}

#define FIELD(key, array)                                                                          \
    { key, array, sizeof array }

static sr_status read_table(layout *t, const table_lines *l, sr_failure *why) {
    const field fields[] = {FIELD("source", t->source),
                            FIELD("decoder", t->decoder),
                            FIELD("placement", t->placement),
                            FIELD("samples", t->samples),
                            {0}};
    if (t->title[0]) return table_lines_wrong(l, why, "a second table %s", t->name);
    snprintf(t->title, sizeof t->title, "%s", l->cell[LABEL]);
    return set_fields(l, fields, NULL, why);
}

static sr_status read_row(layout *t, const table_lines *l, sr_failure *why) {
    if (!vector_reserve(&t->row, &t->row_capacity, t->rows + 1, sizeof *t->row))
        return sr_fail(why, SR_MEMORY, "out of memory");
    layout_row *r = &t->row[t->rows++];
    *r = (layout_row){.quantity = SHOW_METRIC, .against = TABLE_AGAINST};
    snprintf(r->label, sizeof r->label, "%s", l->cell[LABEL]);
    snprintf(r->placement, sizeof r->placement, "%s", t->placement);
    const field fields[] = {FIELD("norm", r->norm),           FIELD("also", r->also),
                            FIELD("placement", r->placement), FIELD("suffix", r->suffix),
                            FIELD("against", r->against),     {0}};
    sr_status status = set_fields(l, fields, &r->quantity, why);
    if (status != SR_OK || r->norm[0]) return status;
    return table_lines_wrong(l, why, "a row without norm=");
}

static sr_status read_column(layout *t, const table_lines *l, sr_failure *why) {
    if (!vector_reserve(&t->column, &t->column_capacity, t->columns + 1, sizeof *t->column))
        return sr_fail(why, SR_MEMORY, "out of memory");
    layout_column *c = &t->column[t->columns++];
    *c = (layout_column){.quantity = SHOW_METRIC};
    snprintf(c->label, sizeof c->label, "%s", l->cell[LABEL]);
    const field fields[] = {FIELD("table", c->table),   FIELD("metric", c->metric),
                            FIELD("better", c->better), FIELD("measured", c->measured),
                            FIELD("tasks", c->tasks),   {0}};
    sr_status status = set_fields(l, fields, &c->quantity, why);
    if (status == SR_OK && c->better[0] && strcmp(c->better, "less") && strcmp(c->better, "more"))
        return table_lines_wrong(l, why, "better=%s is neither less nor more", c->better);
    if (status != SR_OK || (c->table[0] && c->metric[0])) return status;
    return table_lines_wrong(l, why, "a column without table= and metric=");
}

/* -- the file -------------------------------------------------------------------------------- */

/* Next line of a layout, without the header line. */
static sr_status next_line(table_lines *l, bool *more, sr_failure *why) {
    sr_status status;
    do {
        status = table_lines_next(l, more, why);
        if (status != SR_OK || !*more) return status;
        if (l->cells <= LABEL)
            return table_lines_wrong(l, why, "%d cells instead of layout, part and label",
                                     l->cells);
    } while (strcmp(l->cell[NAME], "layout") == 0 && strcmp(l->cell[PART], "part") == 0);
    return SR_OK;
}

static sr_status read_lines(layout *t, table_lines *l, char *names, size_t size, sr_failure *why) {
    bool more = true;
    sr_status status = SR_OK;
    while (status == SR_OK) {
        status = next_line(l, &more, why);
        if (status != SR_OK || !more) break;
        const char *part = l->cell[PART];
        /* for the hint, all names */
        if (strcmp(part, "table") == 0) text_append(names, size, ", ", l->cell[NAME]);
        if (strcmp(l->cell[NAME], t->name) != 0) continue;
        if (strcmp(part, "table") == 0)
            status = read_table(t, l, why);
        else if (!t->title[0])
            status = table_lines_wrong(l, why, "a %s of %s before its table", part, t->name);
        else if (strcmp(part, "row") == 0)
            status = read_row(t, l, why);
        else if (strcmp(part, "column") == 0)
            status = read_column(t, l, why);
        else
            status = table_lines_wrong(l, why, "'%s' is neither table, row nor column", part);
    }
    return status;
}

sr_status layout_read(layout *t, const char *given, const char *name, sr_failure *why) {
    char names[512] = "";
    table_lines l;
    *t = (layout){.rows = 0};
    snprintf(t->name, sizeof t->name, "%s", name);
    sr_status status = table_lines_open(&l, given, "layouts.tsv", t->path, why);
    if (status == SR_OK) status = read_lines(t, &l, names, sizeof names, why);
    table_lines_close(&l);
    if (status != SR_OK) return status;
    if (t->title[0] && t->rows && t->columns) return SR_OK;
    if (t->title[0])
        return sr_fail(why, SR_FORMAT, "%s: layout %s has no rows or no columns", t->path, name);
    sr_fail(why, SR_USAGE, "--layout: unknown layout '%s'", name);
    sr_hint(why, "layouts of %s: %s", t->path, names);
    return SR_USAGE;
}

void layout_free(layout *t) {
    free(t->row);
    free(t->column);
    *t = (layout){.rows = 0};
}

sr_status layout_each(const char *given, layout_visit_fn *visit, void *context, sr_failure *why) {
    char path[TABLE_PATH];
    table_lines l;
    bool more = true;
    sr_status status = table_lines_open(&l, given, "layouts.tsv", path, why);
    while (status == SR_OK) {
        layout t = {.rows = 0};
        status = next_line(&l, &more, why);
        if (status != SR_OK || !more) break;
        if (strcmp(l.cell[PART], "table") != 0) continue;
        snprintf(t.name, sizeof t.name, "%s", l.cell[NAME]);
        status = read_table(&t, &l, why);
        if (status == SR_OK) visit(context, &t);
    }
    table_lines_close(&l);
    return status;
}

/* The table that lists layouts. Its head waits for the first one: an earlier failure prints
 * nothing. */
typedef struct listing {
    tsv table;
    const char *command;
    bool begun;
} listing;

static void list_one(void *context, const layout *l) {
    listing *s = context;
    tsv *t = &s->table;
    if (!s->begun) {
        tsv_begin(t, stdout, "stat-table", s->command);
        tsv_column(t, "layout", "name for --layout");
        tsv_column(t, "samples", "sample runs that statplot shows it with, separated by commas");
        tsv_column(t, "title", "what the table has");
        tsv_column(t, "source", "where it stands");
        tsv_header(t);
    }
    s->begun = true;
    tsv_text(t, l->name);
    tsv_text(t, l->samples);
    tsv_text(t, l->title);
    tsv_text(t, l->source);
}

sr_status layout_list(const char *given, const char *command, sr_failure *why) {
    listing s = {.command = command};
    return layout_each(given, list_one, &s, why);
}

/* -- runs ------------------------------------------------------------------------------------ */

bool layout_takes_run(const layout *l, const run_identity *r, int column) {
    bool any = false;
    for (int i = 0; i < l->columns; i++) {
        const layout_column *c = &l->column[i];
        const bool fits = globs_match(c->tasks, r->task);
        if (i == column) return fits;
        any = any || fits;
    }
    return !any;
}
