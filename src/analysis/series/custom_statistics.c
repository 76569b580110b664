/* custom_statistics.c -- numbers that the programs of the runs declare (sr_declare_scalar), by
   name. */

#include "analysis/series/custom_statistics.h"

#include <string.h>

const sr_run_declared *declared_named(const sr_runfile *run, const char *name, sr_scope scope) {
    const sr_run_declared *d;
    for (int64_t i = 0; (d = sr_run_get_declared(run, i)); i++)
        if (d->scope == scope && strcmp(d->name, name) == 0) return d;
    return NULL;
}

const sr_run_declared *declared_find(const run_set *set, const char *name, sr_scope scope) {
    const sr_run_declared *d = NULL;
    for (int r = 0; r < set->count && !d; r++) d = declared_named(set->run[r], name, scope);
    return d;
}

int declared_list(const run_set *set, sr_scope scope, const char **names, int most) {
    const sr_run_declared *d;
    int count = 0;
    for (int r = 0; r < set->count; r++)
        for (int64_t i = 0; count < most && (d = sr_run_get_declared(set->run[r], i)); i++) {
            bool seen = d->scope != scope;
            for (int k = 0; k < count && !seen; k++) seen = strcmp(names[k], d->name) == 0;
            if (!seen) names[count++] = d->name;
        }
    return count;
}

void declared_text(const sr_run_declared *d, char text[DECLARED_TEXT]) {
    const char *unit = d->unit;
    snprintf(text, DECLARED_TEXT, "%s%s%s%s%s", d->definition, *d->definition && *unit ? " " : "",
             *unit ? "(" : "", unit, *unit ? ")" : "");
}

void declared_warn(const run_set *set, const char *name, sr_scope scope, tsv *table) {
    const sr_run_declared *first = NULL;
    int of = 0;
    bool warned = false;
    for (int r = 0; r < set->count; r++) {
        const sr_run_declared *d = declared_named(set->run[r], name, scope);
        if (!d) continue;
        if (!first) first = d, of = r;
        if (strcmp(d->definition, first->definition) != 0)
            tsv_note(table, "note", "%s defines %s as: %s", set->path[r], name, d->definition);
        if (warned || strcmp(d->unit, first->unit) == 0) continue;
        tsv_note(table, "warning", "%s: its unit is '%s' in %s and '%s' in %s", name, first->unit,
                 set->path[of], d->unit, set->path[r]);
        warned = true;
    }
}
