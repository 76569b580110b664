/* A result table as TSV, LaTeX or Markdown, after comments with provenance and definitions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frame/stat_program.h"
#include "analysis/runs/run_metrics.h"
#include "table/table.h"

/* -- notes on a table ------------------------------------------------------------------------- */

static const layout_column *layout_of(const grid *g, const grid_column *c) {
    return c->of >= 0 ? &g->layout.column[c->of] : NULL;
}

static bool is_tid(table_quantity q) {
    return q == SHOW_TID_MEAN || q == SHOW_TID_VAR || q == SHOW_TID_TOTAL;
}

/* The metric that a column shows: a run's, or the paper's. */
static const char *metric_of(const grid *g, const grid_column *c) {
    return c->published ? layout_of(g, c)->metric : c->metric;
}

/* As the runs declare it, or the layout of the paper's metric. */
static sr_better better_of(const grid *g, const grid_column *c) {
    const sr_run_metric *m = c->published ? NULL : grid_metric(g, c);
    const char *word = layout_of(g, c) ? layout_of(g, c)->better : "";
    if (is_tid(c->quantity)) return SR_BETTER_LESS;
    if (m) return m->better;
    return !strcmp(word, "less") ? SR_BETTER_LESS : *word ? SR_BETTER_MORE : SR_BETTER_NEITHER;
}

static const char *arrow(const grid *g, const grid_column *c) {
    const char *const arrows[] = {"↓", "", "↑"};
    return arrows[better_of(g, c) + 1];
}

static void note_source(const grid *g, const grid_column *c, tsv *t) {
    const layout_column *lc = layout_of(g, c);
    const char *before = "";
    table_text table;
    for (int i = 0; i < g->layout.rows; i++) {
        const layout_row *row = &g->layout.row[i];
        snprintf(table, sizeof table, "%s%s", lc->table, row->suffix);
        const published_value *v = published_find(&g->published, table, row->norm, "");
        if (!v || strcmp(v->source, before) == 0) continue;
        tsv_note(t, "published", "%s, %s: %s", lc->label, row->label, v->source);
        before = v->source;
    }
}

/* Runs that are averaged should differ in the seed. */
static void note_members(const grid *g, const grid_row *row, tsv *t) {
    for (int i = 0; i < row->members; i++) {
        const run_identity *r = &g->run[row->member[i]];
        tsv_note(t, "measured", "%s%s%s: %s, task %s", row->label, row->settings[0] ? " " : "",
                 row->settings, r->path, r->task);
        for (int k = 0; k < i; k++) {
            const run_identity *b = &g->run[row->member[k]];
            if (strcmp(r->task, b->task) == 0 && r->info->seed == b->info->seed)
                tsv_note(t, "note", "%s and %s have the same seed, and are averaged", b->path,
                         r->path);
        }
    }
}

/* Notes runs in no row, and runs of the paper's task without the paper's metric. */
static void note_other_runs(const grid *g, tsv *t) {
    for (int r = 0; r < g->runs; r++) {
        bool found = false;
        for (int i = 0; i < g->rows; i++)
            for (int k = 0; k < g->row[i].members; k++) found = found || g->row[i].member[k] == r;
        if (!found)
            tsv_note(t, "note", "%s (%s, task %s) has no row in this table", g->run[r].path,
                     g->run[r].norm, g->run[r].task);
    }
    for (int k = 0; k < g->columns; k++) {
        const grid_column *c = &g->column[k];
        if (!c->other || c->of < 0) continue;
        tsv_note(t, "note", "task %s has no %s, the metric of %s: its %s comes last", c->task,
                 layout_of(g, c)->metric, layout_of(g, c)->label, c->metric);
    }
}

/* Notes on published values, as print_notes (a table of numbers has no marks); or on runs. */
static void note_cells(const grid *g, bool published, tsv *t) {
    for (int i = 0; i < g->rows; i++)
        for (int k = 0; k < g->columns; k++) {
            const grid_cell *cell = grid_at(g, i, k);
            const grid_column *c = &g->column[k];
            if (published && cell->note)
                tsv_note(t, "note", "%s, %s, published %s: %s", g->row[i].label,
                         layout_of(g, c)->label, cell->published, cell->note);
            if (!published && cell->diverged && cell->runs)
                tsv_note(t, "note", "%s, %s %s: skipped %d of %d runs: diverged", g->row[i].label,
                         c->task, c->metric, cell->diverged, cell->diverged + cell->runs);
        }
}

/* Writes ", from the final pass", or the steps that a mean covers. */
static void say_source(const sr_runfile *run, const char *from, char *text, size_t size) {
    const int64_t steps = sr_run_get_info(run)->steps, last = table_last_tenth(steps);
    if (strcmp(from, "steps") != 0)
        snprintf(text, size, ", from the final pass");
    else
        snprintf(text, size, ", from the last %lld of %lld steps%s", (long long)last,
                 (long long)steps, table_has_startup(run) ? "; includes the burn-in" : "");
}

/* Which site is a run's last BN layer, and from where its TID comes. */
static sr_status note_tid_sites(const grid *g, tsv *t, sr_failure *why) {
    bool shown = false;
    sr_status status = SR_OK;
    for (int i = 0; i < g->rows; i++) shown = shown || is_tid(g->row[i].quantity);
    for (int k = 0; k < g->columns; k++) shown = shown || is_tid(g->column[k].quantity);
    for (int i = 0; i < g->runs && shown && status == SR_OK; i++) {
        int64_t site = -1;
        double tid[2];
        const char *from;
        char source[128];
        const sr_runfile *run = g->run[i].run;
        status = table_tid_site(run, true, &site, why);
        if (status == SR_OK && site >= 0) status = table_tid(run, site, tid, &from, why);
        if (status != SR_OK || site < 0) continue;
        say_source(run, from, source, sizeof source);
        tsv_note(t, "note", "%s: tid_* of %s%s", g->run[i].path, sr_run_get_site(run, site)->name,
                 source);
    }
    return status;
}

/* Each metric once. */
static void warn_of_units(const grid *g, const run_set *set, tsv *t) {
    for (int k = 0; k < g->columns; k++) {
        const sr_run_metric *m = grid_metric(g, &g->column[k]);
        bool seen = !m || g->column[k].published;
        for (int i = 0; i < k && !seen; i++) {
            const sr_run_metric *before = grid_metric(g, &g->column[i]);
            seen = before && strcmp(before->name, m->name) == 0;
        }
        if (!seen) metric_warn(set, m->name, strlen(m->name), t);
    }
}

static sr_status note_all(const grid *g, const run_set *set, tsv *t, sr_failure *why) {
    tsv_note(t, "layout", "%s: %s", g->layout.name, g->layout.title);
    tsv_note(t, "source", "%s", g->layout.source);
    tsv_note(t, "definition", "↑ more is better, ↓ less is better");
    for (int k = 0; k < g->columns; k++)
        if (g->column[k].published) note_source(g, &g->column[k], t);
    note_cells(g, true, t);
    if (!g->runs) return SR_OK;
    tsv_note(t, "definition", "%s",
             g->pick == PICK_LAST ? "measured values: from the last evaluation with the metric"
                                  : "measured values: from the evaluation with the smallest "
                                    "valid_loss. Without valid_loss: the metric's best");
    tsv_note(t, "definition",
             "runs that differ only in the seed: mean and standard deviation (n - 1). settings: "
             "other differences between runs of a row");
    tsv_note(
        t, "definition",
        "tid_*: percent, at the last BN layer (--site last-bn). It comes from the final pass, else "
        "it is a mean over the last tenth of the steps. gap: difference to norm ln, or to the "
        "row's norm. The reference runs have the same task, the nearest settings and the run's "
        "seed if one has it; + is better. A gap that the paper does not print is a difference of "
        "its values");
    warn_of_units(g, set, t);
    sr_status status = note_tid_sites(g, t, why);
    for (int i = 0; i < g->rows; i++)
        if (g->row[i].quantity == SHOW_METRIC || g->row[i].quantity == SHOW_GAP)
            note_members(g, &g->row[i], t);
    note_other_runs(g, t);
    note_cells(g, false, t);
    return status;
}

/* -- TSV ------------------------------------------------------------------------------------- */

enum { OF_MEASURED = 3 }; /* TSV columns of a measured column */
typedef char column_name[2 * RUN_WORD + 16];

static void declare_measured(const grid *g, const grid_column *c, column_name name[OF_MEASURED],
                             tsv *t) {
    char definition[2 * SR_DEFINITION_SIZE];
    const char *const what[OF_MEASURED] = {arrow(g, c), "sd", "runs"};
    for (int i = 0; i < OF_MEASURED; i++)
        snprintf(name[i], sizeof name[i], "%s %s%s%s", c->task, c->metric, *what[i] ? " " : "",
                 what[i]);
    const sr_run_metric *m = grid_metric(g, c);
    if (strcmp(c->metric, "bpc") == 0)
        snprintf(definition, sizeof definition, "valid_nll / ln 2 (bits per token)");
    else if (m)
        snprintf(definition, sizeof definition, "%s (%s)", m->definition, m->unit);
    else
        snprintf(definition, sizeof definition, "%s", c->metric);
    tsv_column(t, name[0], definition);
    tsv_column(t, name[1], "its standard deviation over the runs (n - 1); -: one run");
    tsv_column(t, name[2], "runs with a value");
}

static void declare_columns(const grid *g, column_name *name, tsv *t) {
    tsv_column(t, "row", "the paper's row, or the normalization of runs that the paper lacks");
    tsv_column(t, "settings", "in which these runs differ from others of the row");
    for (int k = 0; k < g->columns; k++) {
        const grid_column *c = &g->column[k];
        if (!c->published) {
            declare_measured(g, c, name, t);
            name += OF_MEASURED;
            continue;
        }
        snprintf(*name, sizeof *name, "%s published %s%s%s", layout_of(g, c)->label,
                 metric_of(g, c), *arrow(g, c) ? " " : "", arrow(g, c));
        tsv_column(t, *name++, "as printed in the paper; Div.: diverged, -: none");
    }
    tsv_header(t);
}

static sr_status print_tsv(const grid *g, tsv *t, sr_failure *why) {
    column_name *name = malloc((size_t)(OF_MEASURED * g->columns + 1) * sizeof *name);
    if (!name) return sr_fail(why, SR_MEMORY, "out of memory");
    declare_columns(g, name, t);
    for (int i = 0; i < g->rows; i++) {
        tsv_text(t, g->row[i].label);
        tsv_text(t, g->row[i].settings[0] ? g->row[i].settings : "-");
        for (int k = 0; k < g->columns; k++) {
            const grid_cell *cell = grid_at(g, i, k);
            if (g->column[k].published) {
                tsv_text(t, cell->published ? cell->published : "-");
                continue;
            }
            if (cell->runs)
                tsv_real(t, cell->mean);
            else
                tsv_text(t, cell->diverged ? "Div." : "-");
            if (cell->runs > 1)
                tsv_real(t, cell->deviation);
            else
                tsv_text(t, "-");
            tsv_int(t, cell->runs);
        }
    }
    free(name);
    return SR_OK;
}

/* -- LaTeX and Markdown ----------------------------------------------------------------------- */

typedef void escape_fn(FILE *out, const char *text);

typedef struct style {
    escape_fn *escape;
    const char *plus_minus, *none, *infinite, *math, *end_math, *dagger, *less, *more;
} style;

static const style latex = {
    .escape = table_latex,
    .plus_minus = " \\pm ",
    .none = "--",
    .infinite = "\\infty",
    .math = "$",
    .end_math = "$",
    .dagger = "\\textdagger{}",
    .less = "$\\downarrow$",
    .more = "$\\uparrow$",
};
static const style markdown = {
    .escape = table_markdown,
    .plus_minus = " ± ",
    .none = "",
    .infinite = "∞",
    .math = "",
    .end_math = "",
    .dagger = "†",
    .less = "↓",
    .more = "↑",
};

/* A line below the table for every value with a dagger: before, ROW, COLUMN: note, after. */
static void print_notes(const grid *g, const style *s, const char *before, const char *after) {
    for (int i = 0; i < g->rows; i++)
        for (int k = 0; k < g->columns; k++) {
            const char *note = grid_at(g, i, k)->note;
            if (!note) continue;
            printf("%s%s ", before, s->dagger);
            s->escape(stdout, g->row[i].label);
            printf(", ");
            s->escape(stdout, layout_of(g, &g->column[k])->label);
            printf(": ");
            s->escape(stdout, note);
            printf("%s", after);
        }
}

static void print_cell(const grid *g, int row, int column, const style *s) {
    const grid_cell *cell = grid_at(g, row, column);
    const grid_column *c = &g->column[column];
    const sr_run_metric *m = c->published ? NULL : grid_metric(g, c);
    const bool metric = g->row[row].quantity == SHOW_METRIC && c->quantity == SHOW_METRIC;
    /* nats and bits differ in the third digit */
    const int digits = metric && m && strncmp(m->unit, "nats", 4) == 0 ? 3 : 2;
    if (c->published && !cell->published)
        fputs(s->none, stdout);
    else if (c->published && strcmp(cell->published, "inf") == 0)
        printf("%s%s%s", s->math, s->infinite, s->end_math);
    else if (c->published)
        s->escape(stdout, cell->published);
    else if (!cell->runs)
        fputs(cell->diverged ? "Div." : s->none, stdout);
    else if (cell->runs == 1)
        printf("%s%.*f%s", s->math, digits, cell->mean, s->end_math);
    else
        printf("%s%.*f%s%.*f%s (%d)", s->math, digits, cell->mean, s->plus_minus, digits,
               cell->deviation, s->end_math, cell->runs);
    if (c->published && cell->note) fputs(s->dagger, stdout);
}

static void print_label(const grid_row *row, const style *s) {
    s->escape(stdout, row->label);
    if (!row->settings[0]) return;
    fputs(" (", stdout);
    s->escape(stdout, row->settings);
    fputs(")", stdout);
}

/* Prints its metric and its direction, in any column of the paper. */
static void print_heading(const grid *g, const grid_column *c, const style *s) {
    s->escape(stdout, c->published ? "published" : c->task);
    fputs(", ", stdout);
    s->escape(stdout, metric_of(g, c));
    const sr_better better = better_of(g, c);
    if (better != SR_BETTER_NEITHER) printf(" %s", better == SR_BETTER_LESS ? s->less : s->more);
}

/* Its column of the layout; -1: after them. */
static int group_of(const grid_column *c) {
    return c->other ? -1 : c->of;
}

/* Columns k .. end - 1 belong to one column of the layout. */
static int end_of_group(const grid *g, int k) {
    int end = k + 1;
    while (end < g->columns && group_of(&g->column[end]) == group_of(&g->column[k])) end++;
    return end;
}

/* Two lines: labels of the layout over their columns, then the columns' own. */
static void print_headings(const grid *g) {
    for (int k = 0, end; k < g->columns; k = end) {
        const int group = group_of(&g->column[k]);
        end = end_of_group(g, k);
        printf(" & \\multicolumn{%d}{c}{", end - k);
        table_latex(stdout, group >= 0 ? g->layout.column[group].label : "other metrics or data");
        printf("}");
    }
    printf(" \\\\\n");
    for (int k = 0, end; k < g->columns; k = end) {
        end = end_of_group(g, k);
        printf("\\cmidrule(lr){%d-%d}", k + 2, end + 1);
    }
    printf("\n");
    for (int k = 0; k < g->columns; k++) {
        printf(" & ");
        print_heading(g, &g->column[k], &latex);
    }
    printf(" \\\\\n");
}

/* A rule between pre- and post-norm, and before columns that the paper lacks. */
static bool begins_block(const grid *g, int row) {
    const grid_row *a = &g->row[row - 1], *b = &g->row[row];
    if (a->of < 0 || b->of < 0) return a->of != b->of;
    return strcmp(g->layout.row[a->of].placement, g->layout.row[b->of].placement) != 0;
}

static void print_latex(const grid *g) {
    printf("%% needs \\usepackage{booktabs,textcomp}\n"
           "\\begin{table}\n\\centering\n");
    printf("\\caption{");
    table_latex(stdout, g->layout.title);
    printf(". Published: ");
    table_latex(stdout, g->layout.source);
    if (g->runs)
        printf(". Measured: %s evaluation; mean $\\pm$ standard deviation (number of runs) over "
               "seeds",
               g->pick == PICK_LAST ? "last" : "best");
    printf(".}\n\\begin{tabular}{l");
    for (int k = 0; k < g->columns; k++) printf("r");
    printf("}\n\\toprule\n");
    print_headings(g);
    printf("\\midrule\n");
    for (int i = 0; i < g->rows; i++) {
        if (i && begins_block(g, i)) printf("\\midrule\n");
        print_label(&g->row[i], &latex);
        for (int k = 0; k < g->columns; k++) {
            printf(" & ");
            print_cell(g, i, k, &latex);
        }
        printf(" \\\\\n");
    }
    printf("\\bottomrule\n\\end{tabular}\n");
    print_notes(g, &latex, "\n\\smallskip\\footnotesize ", "\n");
    printf("\\end{table}\n");
}

static void print_markdown(const grid *g) {
    table_markdown(stdout, g->layout.title);
    printf("\n\n|  |");
    for (int k = 0; k < g->columns; k++) {
        const grid_column *c = &g->column[k];
        printf(" ");
        if (group_of(c) >= 0) table_markdown(stdout, layout_of(g, c)->label);
        if (group_of(c) >= 0) printf(": ");
        print_heading(g, c, &markdown);
        printf(" |");
    }
    printf("\n|---|");
    for (int k = 0; k < g->columns; k++) printf("---:|");
    printf("\n");
    for (int i = 0; i < g->rows; i++) {
        printf("| ");
        print_label(&g->row[i], &markdown);
        for (int k = 0; k < g->columns; k++) {
            printf(" | ");
            print_cell(g, i, k, &markdown);
        }
        printf(" |\n");
    }
    print_notes(g, &markdown, "\n", "\n");
}

/* -- all of it -------------------------------------------------------------------------------- */

/* Lines `# text` as comments: of LaTeX, or inside of <!-- -->, where two dashes may end it. */
static void print_comments(const char *text, bool html) {
    if (html) printf("<!--\n");
    for (const char *c = text; *c; c++) {
        const bool begins = c == text || c[-1] == '\n';
        if (begins && !html)
            fputc('%', stdout);
        else if (html && *c == '-' && c > text && c[-1] == '-')
            fputs(" -", stdout);
        else if (!html || !begins)
            fputc(*c, stdout);
    }
    if (html) printf("-->\n\n");
}

sr_status grid_print(const grid *g, const char *format, const run_set *set, const char *command,
                     sr_failure *why) {
    table_head head;
    tsv t;
    const bool is_latex = strcmp(format, "latex") == 0;
    const bool is_tsv = !is_latex && strcmp(format, "markdown") != 0; /* or CSV or JSON */
    if (2 + OF_MEASURED * g->columns > TSV_COLUMNS)
        return sr_fail(why, SR_FORMAT, "%d columns are too many for one table", g->columns);
    sr_status status = table_head_begin(&head, &t, "stat-table", command, set, why);
    if (status != SR_OK) return status;
    status = note_all(g, set, &t, why);
    if (is_tsv) {
        status = table_head_end(&head, &t, status, why);
        return status == SR_OK ? print_tsv(g, &t, why) : status;
    }
    if (fclose(head.out) != 0 && status == SR_OK) status = sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) print_comments(head.text, !is_latex);
    if (status == SR_OK && is_latex) print_latex(g);
    if (status == SR_OK && !is_latex) print_markdown(g);
    free(head.text);
    return status;
}
