/* plot_custom_stat.c -- the declarations of a figure's runs about the user's statistic. */
#include <stdio.h>
#include <string.h>

#include "plot/labels/plot_custom_stat.h"
#include "plot/labels/plot_runs.h"

/* True if it is already one of the units, "1 or percent". */
static bool has_unit(const char *units, const char *unit) {
    static const char between[] = " or ";
    const size_t length = strlen(unit);
    for (const char *at = units; at; at = strstr(at, between), at += at ? sizeof between - 1 : 0)
        if (strncmp(at, unit, length) == 0 &&
            (!at[length] || strncmp(at + length, between, sizeof between - 1) == 0))
            return true;
    return false;
}

bool plot_custom_stat_unit(const char *stat, const plot_run *run, int runs, char *unit,
                           size_t size) {
    bool any = false;
    unit[0] = 0;
    for (int i = 0; i < runs && stat[0]; i++) {
        const sr_run_declared *d = plot_run_declared(&run[i], stat);
        const size_t used = strlen(unit);
        any = any || d;
        if (d && d->unit[0] && !has_unit(unit, d->unit))
            snprintf(unit + used, size - used, "%s%s", used ? " or " : "", d->unit);
    }
    return any;
}

bool plot_is_vector(const char *stat) {
#define VECTOR(name, ...) #name,
    static const char *const names[] = {SR_VECTORS(VECTOR)};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], stat) == 0) return true;
    return false;
}

bool plot_is_of_steps(const char *stat, const plot_run *run, int runs) {
#define NAME(name, ...) #name,
    static const char *const names[] = {SR_STEP_INTS(NAME) SR_STEP_REALS(NAME)};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], stat) == 0) return true;
    for (int i = 0; i < runs && !found; i++) {
        const sr_run_declared *d = plot_run_declared(&run[i], stat);
        found = d && d->scope == SR_PER_STEP;
    }
    return found;
}
