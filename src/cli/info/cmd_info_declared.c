/* cmd_info_declared.c -- for statrec info: custom scalars of a run and their definitions. */
#include <stdio.h>
#include <string.h>

#include "base/tsv.h"
#include "cli/info/cmd_info_parts.h"

static void print_padded(const char *text, size_t width) {
    tsv_escape(stdout, text);
    printf("%*s  ", (int)(strlen(text) < width ? width - strlen(text) : 0), "");
}

void info_print_declared(const sr_runfile *f) {
    const sr_run_declared *d;
    size_t name = 0, unit = 0;
    for (int64_t i = 0; (d = sr_run_get_declared(f, i)); i++) {
        if (strlen(d->name) > name) name = strlen(d->name);
        if (strlen(d->unit) > unit) unit = strlen(d->unit);
    }
    if (name) puts("declared by the program: scope, name, unit, definition");
    for (int64_t i = 0; (d = sr_run_get_declared(f, i)); i++) {
        printf("  per %s  ", d->scope == SR_PER_SITE ? "site" : "step");
        print_padded(d->name, name);
        print_padded(d->unit, unit);
        tsv_escape(stdout, d->definition);
        putchar('\n');
    }
}

void info_note_declared(const sr_runfile *f, tsv *table) {
    const sr_run_declared *d;
    for (int64_t i = 0; (d = sr_run_get_declared(f, i)); i++)
        tsv_note(table, d->scope == SR_PER_SITE ? "declared per site" : "declared per step",
                 "%s (%s): %s", d->name, d->unit, d->definition);
}
