/* model_presets.c -- sizes of a model: the option's, else the preset's. */
#include <math.h>
#include <string.h>

#include "nets/model_rows.h"

const void *model_preset_find(const model_row *m, const char *name, const void *table, size_t count,
                              size_t size, sr_failure *why) {
    if (!*name) return table;
    for (size_t i = 0; i < count; i++) {
        const void *row = (const char *)table + i * size;
        if (!strcmp(*(const char *const *)row, name)) return row;
    }
    sr_fail(why, SR_USAGE, "preset '%s' of model %s is not one of %s", name, m->name, m->presets);
    return NULL;
}

double model_default(double given, double otherwise) {
    return isnan(given) ? otherwise : given;
}

int64_t model_size(int64_t given, int64_t otherwise) {
    return given ? given : otherwise;
}
