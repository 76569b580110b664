/* stat_program.c -- main() of every stat-* program, and the head of its table. */

#include "analysis/frame/stat_program.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/runs/run_metrics.h"

/* -- options --------------------------------------------------------------------------------- */

/* Every program has --format; a program with its own formats declares and reads the option
 * itself. */
typedef struct all_options {
    option_text format;
    option_table all; /* the program's, then --format */
    bool added;
} all_options;

/* Free a->all.row. */
static sr_status all_options_make(all_options *a, option_table program, sr_failure *why) {
    const option format =
        CHOICE_OPTION("Every table", "format", 0, "tsv", TSV_FORMATS,
                      "print csv without `#` lines, or json with all", .place = a->format);
    const int count = program.count;
    option *row = malloc((size_t)(count + 1) * sizeof *row);
    if (!row) return sr_fail(why, SR_MEMORY, "out of memory");
    a->added = true;
    for (int i = 0; i < count; i++) {
        row[i] = program.row[i];
        if (strcmp(row[i].key, "format") == 0) a->added = false;
    }
    row[count] = format;
    a->all = (option_table){row, count + a->added};
    return SR_OK;
}

/* -- help ------------------------------------------------------------------------------------ */

/* "usage: NAME ..." for each line of `usage`; a line that starts with a blank continues the last
   one. */
static void print_usage(const stat_program *p) {
    const char *line = p->usage, *begin = "usage: ";
    while (*line) {
        const int length = (int)strcspn(line, "\n");
        const int blanks = (int)strlen(p->name) + 1;
        if (*line == ' ')
            printf("%s%*s%.*s\n", begin, blanks, "", length - 1, line + 1);
        else
            printf("%s%s %.*s\n", begin, p->name, length, line);
        line += length + (line[length] == '\n');
        begin = "       ";
    }
}

static int print_help(const stat_program *p, const tool *t) {
    all_options a = {.all = {0}};
    print_usage(p);
    printf("\n%s\nWrites a tab-separated table with its definitions in `#` lines.\n", p->does);
    if (p->stat) printf("\nStatistics:\n");
    for (int i = 0; i < p->statistics; i++) {
        const statistic *stat = &p->stat[i];
        const bool renamed = strcmp(stat->word, stat->name) != 0;
        printf("  %-16s %s%s%s\n", stat->word, renamed ? stat->name : "", renamed ? ": " : "",
               statistic_definition(stat));
    }
    if (p->custom) printf("  and the custom scalars of the runs, which statrec info lists\n");
    putchar('\n');
    if (p->more_help) p->more_help();
    if (p->metrics)
        printf("Metrics: those that the runs declare, with units and directions. `statrec info "
               "RUN.h5`\nlists them, `statrec list stats` those of statrec train. \"" METRIC_LEADING
               "\" is the metric\nthat each run declares first, that of its task.\n\n");
    if (all_options_make(&a, p->options, NULL) == SR_OK) options_help(a.all, stdout);
    free((void *)a.all.row);
    if (p->environment) printf("\nEnvironment: %s\n", p->environment);
    return tool_finish(t, TOOL_DONE);
}

/* -- a run of the program -------------------------------------------------------------------- */

sr_status table_choose(stat_table *t, const table_choice *c, sr_failure *why) {
    sr_status status = choice_set_sites(&t->chosen, t->set, c->site, c->source, &t->table, why);
    if (status == SR_FORMAT && c->hint) sr_hint(why, "%s", c->hint);
    if (status == SR_OK) choice_note_own(&t->chosen, t->set, true, &t->table);
    if (status == SR_OK && c->phase)
        status = windows_make(&t->window, t->set, c->startup, c->phase, &t->table, why);
    if (status == SR_OK && c->compares) comparable_warn(&t->chosen, &t->table);
    return status;
}

int numbers_of_list(const char *list, double *value, int most) {
    int count = 0;
    for (const char *at = list;; at++) {
        char *end;
        if (count == most) return -1;
        value[count++] = strtod(at, &end);
        if (end == at || (*end && *end != ',')) return -1;
        if (!*end) return count;
        at = end;
    }
}

void site_columns(tsv *table) {
    tsv_column(table, "run", "run file as given");
    tsv_column(table, "site", "normalization site");
}

void site_cells(stat_table *t, const site_choice *at) {
    tsv_text(&t->table, t->set->path[at->run]);
    tsv_text(&t->table, sr_run_get_site(t->set->run[at->run], at->site)->name);
}

static sr_status print_table(stat_table *t, const char *command, sr_failure *why) {
    const stat_program *p = t->program;
    table_head head;
    bool done = false;
    sr_status status = SR_OK;
    if (p->other) status = p->other(t, command, &done, why);
    if (status == SR_OK && !done) {
        status = table_head_begin(&head, &t->table, p->name, command, t->set, why);
        if (status == SR_OK) status = table_head_end(&head, &t->table, p->head(t, why), why);
        if (status == SR_OK && p->columns) {
            p->columns(t);
            tsv_header(&t->table);
        }
        for (int64_t k = 0; p->site && k < t->chosen.sites && status == SR_OK; k++)
            status = p->site(t, &t->chosen.site[k], why);
        if (status == SR_OK && p->rows) status = p->rows(t, why);
    }
    return status;
}

typedef struct reading {
    stat_table *table;
    sr_failure first;
} reading;

/* Faults of a run are reported after all runs were opened. */
static void read_opened(void *context, int r, const sr_runfile *run) {
    reading *of = context;
    const stat_program *p = of->table->program;
    (void)run;
    if (p->opened && of->first.status == SR_OK) p->opened(of->table, r, &of->first);
}

static sr_status open_runs(stat_table *t, run_set *set, int count, char **paths, sr_failure *why) {
    reading of = {.table = t};
    t->state = calloc(1, t->program->state + 1);
    if (!t->state) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = SR_OK;
    if (count || !t->program->without_runs)
        status = run_set_open_each(set, count, paths, read_opened, &of, why);
    if (status == SR_OK && of.first.status != SR_OK) *why = of.first, status = why->status;
    return status;
}

static void close_table(stat_table *t) {
    if (t->program->release && t->state) t->program->release(t);
    choice_free(&t->chosen);
    free(t->window);
    free(t->state);
}

static sr_status run_program(const stat_program *p, const tool *t, const char *command,
                             sr_failure *why) {
    run_set set = {0};
    all_options a = {.all = {0}};
    int positional = 0;
    void *settings = calloc(1, p->settings + 1);
    sr_status status = settings ? all_options_make(&a, p->options, why)
                                : sr_fail(why, SR_MEMORY, "out of memory for options");
    if (status == SR_OK) {
        options_set_defaults(a.all, settings);
        status = options_parse(a.all, settings, t->argc, t->argv, 1, &positional, why);
    }
    if (status == SR_OK && a.added) tsv_set_format(a.format);
    stat_table table = {.program = p, .settings = settings, .set = &set};
    if (status == SR_OK) status = open_runs(&table, &set, positional, t->argv + 1, why);
    for (int i = 0; i < set.count; i++) run_warn_damage(t, set.run[i]);
    if (status == SR_OK) status = print_table(&table, command, why);
    close_table(&table);
    if (status == SR_OK) status = tsv_finish(stdout, why);
    run_set_close(&set);
    free((void *)a.all.row);
    free(settings);
    return status;
}

int stat_program_main(const stat_program *p, int argc, char **argv) {
    tool_begin();
    sr_disable_hdf5_atexit();
    const tool t = {p->name, argc, argv};
    sr_failure why = {0};
    if (tool_wants_help(&t)) return print_help(p, &t);
    if (tool_wants_version(&t)) return tool_print_version(&t);
    char *command = tool_command(&t);
    sr_status status =
        command ? run_program(p, &t, command, &why) : sr_fail(&why, SR_MEMORY, "out of memory");
    free(command);
    return tool_finish(&t, status == SR_OK ? TOOL_DONE : tool_report(&t, &why));
}

/* -- head of a table ------------------------------------------------------------------------- */

sr_status table_head_begin(table_head *head, tsv *table, const char *program, const char *command,
                           const run_set *set, sr_failure *why) {
    *head = (table_head){0};
    head->out = open_memstream(&head->text, &head->size);
    if (!head->out) return sr_fail(why, SR_MEMORY, "out of memory");
    tsv_begin(table, head->out, program, command);
    run_set_describe(set, table);
    return SR_OK;
}

sr_status table_head_end(table_head *head, tsv *table, sr_status status, sr_failure *why) {
    const bool complete = fclose(head->out) == 0;
    if (complete && status == SR_OK) fwrite(head->text, 1, head->size, stdout);
    free(head->text);
    table->out = stdout;
    if (status != SR_OK || complete) return status;
    return sr_fail(why, SR_MEMORY, "out of memory for the head of the table");
}
