/* norm_table.c -- every normalization, in the order of `statrec list norms`. A new one is a file
 * and a line here. */
#include <string.h>

#include "norm/methods/methods.h"
#include "norm/norm_options.h"

static const norm_method *const table[] = {
#define METHOD_ROW(name) &norm_##name,
    NORM_METHODS(METHOD_ROW)
#undef METHOD_ROW
};

const norm_method *norm_at(int i) {
    return i >= 0 && i < (int)(sizeof table / sizeof *table) ? table[i] : NULL;
}

const norm_method *norm_find(const char *name) {
    for (int i = 0; norm_at(i); i++)
        if (!strcmp(table[i]->name, name)) return table[i];
    return NULL;
}
