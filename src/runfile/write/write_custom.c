/* write_custom.c -- declares custom scalars, and sets their values of the row in progress. */
#include "runfile/write/write_custom.h"

#include <math.h>
#include <stdlib.h>

run_declared *writer_add_declared(run_writer *w, sr_failure *why) {
    const size_t size = (size_t)(w->declared_count + 1) * sizeof *w->declared;
    run_declared *grown = realloc(w->declared, size);
    if (!grown) {
        sr_fail(why, SR_MEMORY, "%s: %d scalars", w->path, w->declared_count + 1);
        return NULL;
    }
    w->declared = grown;
    run_declared *d = &grown[w->declared_count++];
    *d = (run_declared){0};
    return d;
}

/* A scalar has no dataset if scalars are not recorded. */
sr_status writer_put_declared(run_writer *w, int i, int64_t site, double value, sr_failure *why) {
    run_declared *d = &w->declared[i];
    const int64_t sites = w->layout.sites;
    if (!d->set) return SR_OK;
    if (d->scope == SR_PER_STEP) {
        d->step_value[w->steps.count] = value;
        return SR_OK;
    }
    if (!d->site_value) {
        const int64_t count = w->steps.capacity * sites;
        d->site_value = malloc((size_t)count * sizeof *d->site_value);
        if (!d->site_value)
            return sr_fail(why, SR_MEMORY, "%s: %lld values of %s", w->path, (long long)count,
                           d->name);
        for (int64_t k = 0; k < count; k++) d->site_value[k] = NAN;
    }
    d->site_value[w->steps.count * sites + site] = (float)value;
    return SR_OK;
}
