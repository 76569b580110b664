/* options_help.c -- the --help section of an option table. */
#include <string.h>

#include "base/options/options_internal.h"

enum { HELP_COLUMN = 30, HELP_WIDTH = 100 };

/* "  -o, --output FILE" */
static int format_usage(const option *row, char *text, size_t size) {
    static const char *const word[] = {
        [OPTION_FLAG] = "",     [OPTION_INT] = "N",       [OPTION_REAL] = "X",
        [OPTION_TEXT] = "TEXT", [OPTION_CHOICE] = "WORD", [OPTION_LIST] = "TEXT"};
    const char *no = row->type == OPTION_FLAG ? "[no-]" : "";
    const char *value = row->value ? row->value : word[row->type], *blank = *value ? " " : "";
    if (row->letter)
        return snprintf(text, size, "  -%c, --%s%s%s%s", row->letter, no, row->key, blank, value);
    return snprintf(text, size, "  --%s%s%s%s", no, row->key, blank, value);
}

/* "1 to 100 steps; default 4" */
static void format_details(const option *row, char *text, size_t size) {
    char range[128] = "";
    options_range_text(row, range, sizeof range);
    bool number = row->type == OPTION_INT || row->type == OPTION_REAL;
    const char *what = "", *semicolon = "; ";
    if (row->type == OPTION_CHOICE)
        what = row->choices;
    else if (number && strcmp(range, "any value") != 0)
        what = range;
    else if (number && row->unit && row->unit[0] && strcmp(row->unit, "1") != 0)
        what = row->unit;
    else
        semicolon = "";
    if (row->default_text[0])
        snprintf(text, size, "%s%sdefault %s", what, semicolon, row->default_text);
    else
        snprintf(text, size, "%s", what);
}

static void write_row(const option *row, FILE *out) {
    char usage[160], details[OPTION_TEXT_SIZE * 2];
    int used = format_usage(row, usage, sizeof usage);
    format_details(row, details, sizeof details);
    fputs(usage, out);
    if (used + 2 > HELP_COLUMN)
        fprintf(out, "\n%*s", HELP_COLUMN, "");
    else
        fprintf(out, "%*s", HELP_COLUMN - used, "");
    fputs(row->help, out);
    if (!details[0])
        fputc('\n', out);
    else if (HELP_COLUMN + strlen(row->help) + strlen(details) + 3 > HELP_WIDTH)
        fprintf(out, "\n%*s(%s)\n", HELP_COLUMN, "", details);
    else
        fprintf(out, " (%s)\n", details);
}

static void write_rows(option_table table, bool common, FILE *out) {
    const char *group = NULL;
    bool first = true;
    for (int i = 0; i < table.count; i++) {
        const option *row = &table.row[i];
        if (common && !row->common) continue;
        if (row->group && (!group || strcmp(group, row->group) != 0))
            fprintf(out, "%s%s:\n", first ? "" : "\n", row->group);
        group = row->group;
        first = false;
        write_row(row, out);
    }
}

void options_help(option_table table, FILE *out) {
    write_rows(table, false, out);
}

void options_help_common(option_table table, FILE *out) {
    write_rows(table, true, out);
}
