/* norm_cli_options.c -- options of version 0.1 for the parameters of methods, such as --brn-r-max.
 * They are gathered from the rows of all methods; methods that name the same option share it. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "norm/norm_options.h"

static void write_key(const norm_param_row *p, char key[NORM_OPTION_KEY]) {
    snprintf(key, NORM_OPTION_KEY, "%s%s", p->option ? "" : "norm-",
             p->option ? p->option : p->name);
    for (char *c = key; *c && !p->option; c++) *c = *c == '_' ? '-' : (char)tolower(*c);
}

int norm_option_param(const norm_option *o, const norm_method *m) {
    char key[NORM_OPTION_KEY];
    for (int k = 0; k < NORM_PARAM_MAX && m->param[k].name; k++) {
        write_key(&m->param[k], key);
        if (!strcmp(key, o->key)) return k;
    }
    return -1;
}

/* -- help ------------------------------------------------------------------------------------ */

/* "set lambda of rbn, rbn-released" */
static void write_help(norm_option *o) {
    for (int i = 0; norm_at(i); i++) {
        const int k = norm_option_param(o, norm_at(i));
        const size_t used = strlen(o->help);
        if (k < 0) continue;
        if (used)
            snprintf(o->help + used, sizeof o->help - used, ", %s", norm_at(i)->name);
        else
            snprintf(o->help, sizeof o->help, "set %s of %s", norm_at(i)->param[k].name,
                     norm_at(i)->name);
    }
}

/* -- the table ------------------------------------------------------------------------------- */

static norm_option table[NORM_OPTION_MAX];
static int options;

static void add(const norm_param_row *p) {
    char key[NORM_OPTION_KEY];
    int i = 0;
    write_key(p, key);
    while (i < options && strcmp(table[i].key, key) != 0) i++;
    if (i == NORM_OPTION_MAX) return; /* a test counts them */
    if (i == options) memcpy(table[options++].key, key, sizeof key);
    if (p->place && (!table[i].place || p->place < table[i].place)) table[i].place = p->place;
}

static void gather(void) {
    for (int i = 0; norm_at(i); i++)
        for (int k = 0; k < NORM_PARAM_MAX && norm_at(i)->param[k].name; k++)
            add(&norm_at(i)->param[k]);
    for (int i = 1; i < options; i++)
        for (int k = i; k > 0; k--) { /* options without a place come last */
            const norm_option moved = table[k];
            if (!moved.place || (table[k - 1].place && table[k - 1].place <= moved.place)) break;
            table[k] = table[k - 1];
            table[k - 1] = moved;
        }
    for (int i = 0; i < options; i++) write_help(&table[i]);
}

const norm_option *norm_option_at(int i) {
    if (!options) gather();
    return i >= 0 && i < options ? &table[i] : NULL;
}
