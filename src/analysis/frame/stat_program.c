/* The frame of every analysis' main(), and the head of its table. */

#include "analysis/frame/stat_program.h"

#include <stdlib.h>
#include <string.h>

/* What every program takes beside its own options. */
typedef struct common_options {
    option_text format;
    option *row; /* the program's, then these */
    option_table all, own;
} common_options;

static bool has_option(option_table table, const char *key) {
    for (int i = 0; i < table.count; i++)
        if (strcmp(table.row[i].key, key) == 0) return true;
    return false;
}

/* A program that has formats of its own takes them itself. */
static sr_status common_make(common_options *c, option_table program, sr_failure *why) {
    const option format = CHOICE_OPTION(
        "Every table", "format", 0, "tsv", TSV_FORMATS,
        "as CSV without the `#` lines, or one JSON object with all of it", .place = c->format);
    const int count = program.count, more = !has_option(program, "format");
    c->row = malloc((size_t)(count + 1) * sizeof *c->row);
    if (!c->row) return sr_fail(why, SR_MEMORY, "out of memory");
    if (count) memcpy(c->row, program.row, (size_t)count * sizeof *c->row);
    if (more) c->row[count] = format;
    c->all = (option_table){c->row, count + more};
    c->own = (option_table){c->row + count, more};
    return SR_OK;
}

static int print_help(const analysis_program *p, const tool *t) {
    common_options c = {.row = NULL};
    p->help(p->self);
    if (common_make(&c, p->options, NULL) == SR_OK && c.own.count) {
        putchar('\n');
        options_help(c.own, stdout);
    }
    free(c.row);
    return tool_finish(t, TOOL_DONE);
}

static sr_status run_options(const analysis_program *p, bool without_runs, const tool *t,
                             const char *command, sr_failure *why) {
    run_set set = {0};
    common_options c = {.row = NULL};
    int positional = 0;
    sr_status status = common_make(&c, p->options, why);
    if (status != SR_OK) return status;
    options_set_defaults(c.all, p->settings);
    status = options_parse(c.all, p->settings, t->argc, t->argv, 1, &positional, why);
    if (status == SR_OK && c.own.count) tsv_set_format(c.format);
    if (status == SR_OK && (positional || !without_runs))
        status = run_set_open(&set, positional, t->argv + 1, why);
    for (int i = 0; i < set.count; i++) run_warn_mended(t, set.run[i]);
    if (status == SR_OK) status = p->print(p->self, &set, command, why);
    if (status == SR_OK) tsv_finish(stdout);
    run_set_close(&set);
    free(c.row);
    return status;
}

static int run_program(const analysis_program *p, bool without_runs, int argc, char **argv) {
    sr_disable_hdf5_atexit();
    const tool t = {p->name, argc, argv};
    sr_failure why = {0};
    if (tool_wants_help(&t)) return print_help(p, &t);
    if (tool_wants_version(&t)) return tool_print_version(&t);
    tool_refuse_plugins();
    char *command = tool_command(&t);
    sr_status status = command ? run_options(p, without_runs, &t, command, &why)
                               : sr_fail(&why, SR_MEMORY, "out of memory");
    free(command);
    return tool_finish(&t, status == SR_OK ? TOOL_DONE : tool_report(&t, &why));
}

int analysis_program_main(const analysis_program *p, int argc, char **argv) {
    return run_program(p, false, argc, argv);
}

int analysis_program_main_any(const analysis_program *p, int argc, char **argv) {
    return run_program(p, true, argc, argv);
}

sr_status table_head_begin(table_head *head, tsv *table, const char *program, const char *command,
                           const run_set *set, sr_failure *why) {
    *head = (table_head){0};
    head->out = open_memstream(&head->text, &head->size);
    if (!head->out) return sr_fail(why, SR_MEMORY, "out of memory");
    tsv_begin(table, head->out, program, command);
    run_set_describe(set, table);
    return SR_OK;
}

sr_status table_head_print(table_head *head, tsv *table, sr_failure *why) {
    const bool whole = fclose(head->out) == 0;
    if (whole) fwrite(head->text, 1, head->size, stdout);
    free(head->text);
    table->out = stdout;
    return whole ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
}

void table_head_drop(table_head *head) {
    fclose(head->out);
    free(head->text);
}
