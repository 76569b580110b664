/* The frame of every analysis' main(), and the head of its table. */
#include <stdlib.h>
#include <string.h>

#include "statnet/analysis.h"

static int run_program(const analysis_program *p, bool without_runs, int argc, char **argv) {
    const tool t = {p->name, argc, argv};
    if (tool_wants_help(&t)) {
        p->help(p->self);
        return tool_finish(&t, TOOL_DONE);
    }
    run_set set = {0};
    sr_failure why = {0};
    int positional = 0;
    char *command = tool_command(&t);
    options_preset(p->options, p->settings);
    sr_status status = command ? SR_OK : sr_fail(&why, SR_MEMORY, "out of memory");
    if (status == SR_OK)
        status = options_parse(p->options, p->settings, argc, argv, 1, &positional, &why);
    if (status == SR_OK && (positional || !without_runs))
        status = run_set_open(&set, positional, argv + 1, &why);
    if (status == SR_OK) status = p->print(p->self, &set, command, &why);
    run_set_close(&set);
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
