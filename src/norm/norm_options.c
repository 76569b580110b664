/* norm_options.c -- the options of a layer by name, from the rows of its method. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "norm/norm_options.h"

int norm_param_find(const norm_method *m, const char *name) {
    for (int i = 0; i < NORM_PARAM_MAX && m->param[i].name; i++)
        if (!strcmp(m->param[i].name, name)) return i;
    return -1;
}

norm_options norm_options_default(const norm_method *m) {
    norm_options o = {.eps = m->eps, .alpha = m->alpha, .layer_scale = m->layer_scale};
    for (int i = 0; i < NORM_PARAM_MAX && m->param[i].name; i++)
        o.param[i] = m->param[i].default_value;
    return o;
}

/* Number of a word in "first second third", or -1. */
static int find_word(const char *words, const char *text) {
    size_t length = strlen(text);
    for (int i = 0; *words; i++) {
        size_t n = strcspn(words, " ");
        if (n == length && !memcmp(words, text, n)) return i;
        words += n + strspn(words + n, " ");
    }
    return -1;
}

static sr_status read_number(const norm_method *m, const norm_param_row *p, const char *text,
                             double *value, sr_failure *why) {
    char *end;
    *value = strtod(text, &end);
    if (end == text || *end)
        return sr_fail(why, SR_USAGE, "%s of %s: '%s' is not a number", p->name, m->name, text);
    if (p->whole && *value != floor(*value))
        return sr_fail(why, SR_USAGE, "%s of %s: %s is not a whole number", p->name, m->name, text);
    if (!(*value >= p->low && *value <= p->high))
        return sr_fail(why, SR_USAGE, "%s of %s: %s is not between %g and %g", p->name, m->name,
                       text, p->low, p->high);
    return SR_OK;
}

sr_status norm_options_set(norm_options *o, const norm_method *m, const char *name,
                           const char *text, sr_failure *why) {
    int i = norm_param_find(m, name);
    if (i < 0) return sr_fail(why, SR_USAGE, "%s has no option '%s'", m->name, name);
    const norm_param_row *p = &m->param[i];
    double value;
    if (p->words) {
        value = find_word(p->words, text);
        if (value < 0)
            return sr_fail(why, SR_USAGE, "%s of %s: '%s' is none of: %s", p->name, m->name, text,
                           p->words);
    } else {
        sr_status status = read_number(m, p, text, &value, why);
        if (status != SR_OK) return status;
    }
    o->param[i] = value;
    o->given |= 1u << i;
    return SR_OK;
}

/* The k-th of the words of a parameter. */
static int word_at(const char *words, int k, const char **word) {
    for (; k > 0; k--) words += strcspn(words, " ") + 1;
    *word = words;
    return (int)strcspn(words, " ");
}

static void append(char *text, size_t size, const char *name, double value, const char *words) {
    size_t used = strlen(text);
    const char *word;
    int length = words ? word_at(words, (int)value, &word) : 0;
    if (words)
        snprintf(text + used, size - used, " %s=%.*s", name, length, word);
    else
        snprintf(text + used, size - used, " %s=%.9g", name, value);
}

void norm_options_format(const norm_options *o, const norm_method *m, char *text, size_t size) {
    snprintf(text, size, "%s", m->name);
    if (m->eps > 0) append(text, size, "eps", o->eps, NULL);
    if (m->alpha > 0) append(text, size, "alpha", o->alpha, NULL);
    if (o->layer_scale) append(text, size, "layer_scale", (double)o->layer_scale, NULL);
    for (int k = 0; k < NORM_PARAM_MAX && m->param[k].name; k++)
        append(text, size, m->param[k].name, o->param[k], m->param[k].words);
}
