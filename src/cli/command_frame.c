/* command_frame.c -- prints the help of a command or reads its options; finds commands by name. */
#include "cli/command_frame.h"

#include <stdlib.h>
#include <string.h>

bool command_ends(const tool *t, const command_frame *c, void *values, int *count,
                  int *exit_status) {
    sr_failure why = {0};
    *exit_status = TOOL_DONE;
    if (tool_wants_help(t)) {
        fputs(c->help, stdout);
        if (c->options.count) options_help(c->options, stdout);
        if (c->notes) printf("\n%s", c->notes);
        printf("\nExit status: %s\n", c->status);
        return true;
    }
    option_origin *origin = calloc((size_t)c->options.count + 1, sizeof *origin);
    sr_status status = origin ? SR_OK : sr_fail(&why, SR_MEMORY, "out of memory");
    options_set_defaults(c->options, values);
    if (status == SR_OK)
        status = options_parse_noting(c->options, values, origin, t->argc, t->argv, c->first, count,
                                      &why);
    if (status == SR_OK) status = options_check_use(c->options, values, values, origin, &why);
    free(origin);
    if (status != SR_OK) *exit_status = tool_report(t, &why);
    return status != SR_OK;
}

bool command_stops(void *unused) {
    (void)unused;
    return tool_signal() != 0;
}

void command_warn_lines(const tool *t, const char *lines) {
    while (*lines) {
        const int length = (int)strcspn(lines, "\n");
        tool_warn(t, "%.*s", length, lines);
        lines += length + (lines[length] == '\n');
    }
}

int command_run(const tool *t, const command_row *row, int count, const char *name) {
    char title[64];
    for (int i = 0; i < count; i++) {
        if (strcmp(row[i].name, name) != 0) continue;
        snprintf(title, sizeof title, "%s %s", t->name, name);
        tool named = *t;
        named.name = title;
        return row[i].run(&named);
    }
    return -1;
}

void command_list(FILE *to, const command_row *row, int count) {
    for (int i = 0; i < count; i++) fprintf(to, "  %-11s %s\n", row[i].name, row[i].help);
}

int command_unknown(const tool *t, const command_row *row, int count, const char *kind,
                    const char *name, const char *hint) {
    const char *names[32];
    sr_failure why = {0};
    for (int i = 0; i < count; i++) names[i] = row[i].name;
    const char *nearest = tool_nearest(name, names, count);
    sr_fail(&why, SR_USAGE, "unknown %s '%.80s'", kind, name);
    if (nearest)
        sr_hint(&why, "did you mean '%s'?", nearest);
    else
        sr_hint(&why, "%s", hint);
    return tool_report(t, &why);
}
