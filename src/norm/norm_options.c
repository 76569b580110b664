/* norm_options.c -- parameters of a normalization by name, from its method's row and the shared
   ones. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program/tool.h"
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

/* Parameters outside the methods' rows. */
static const norm_param_row shared[] = {
    {.name = "eps", .low = 0, .high = 1},
    {.name = "alpha", .low = 0, .high = 1},
    {.name = "layer_scale", .low = 1, .high = 4096, .whole = true},
};
enum { SHARED_EPS, SHARED_ALPHA, SHARED_LAYER_SCALE, SHARED };

/* A layer scale has an eps, too. */
static bool has_shared(const norm_method *m, const norm_options *o, int i) {
    if (i == SHARED_EPS) return m->eps > 0 || o->layer_scale > 0;
    return i == SHARED_LAYER_SCALE || m->alpha > 0;
}

static sr_status read_number(const norm_method *m, const norm_param_row *p, const char *text,
                             double *value, sr_failure *why) {
    char *end;
    *value = strtod(text, &end);
    const char *wrong = NULL;
    if (end == text || *end || isnan(*value))
        wrong = "is not a number";
    else if (p->whole && *value != floor(*value))
        wrong = "is not a whole number";
    else if (*value < p->low || *value > p->high)
        wrong = *value < p->low ? "is too small" : "is too large";
    if (!wrong) return SR_OK;
    return sr_fail(why, SR_USAGE, "%s: value '%.80s' of %s %s; range %.15g to %.15g", m->name, text,
                   p->name, wrong, p->low, p->high);
}

static sr_status read_value(const norm_method *m, const norm_param_row *p, const char *text,
                            double *value, sr_failure *why) {
    if (!p->words) return read_number(m, p, text, value, why);
    *value = find_word(p->words, text);
    if (*value >= 0) return SR_OK;
    return sr_fail(why, SR_USAGE, "%s: value '%.80s' of %s is not one of: %s", m->name, text,
                   p->name, p->words);
}

static sr_status refuse_name(const norm_method *m, const norm_options *o, const char *name,
                             sr_failure *why) {
    const char *names[SHARED + NORM_PARAM_MAX];
    char text[SR_FAILURE_TEXT] = "";
    int count = 0;
    for (int i = 0; i < SHARED; i++)
        if (has_shared(m, o, i)) names[count++] = shared[i].name;
    for (int i = 0; i < NORM_PARAM_MAX && m->param[i].name; i++) names[count++] = m->param[i].name;
    sr_fail(why, SR_USAGE, "%s has no parameter '%.80s'", m->name, name);
    const char *nearest = tool_nearest(name, names, count);
    if (nearest) return sr_hint(why, "did you mean '%s'?", nearest), SR_USAGE;
    for (int i = 0; i < count; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, " %s", names[i]);
    }
    sr_hint(why, "its parameters:%s", text);
    return SR_USAGE;
}

sr_status norm_options_set(norm_options *o, const norm_method *m, const char *name,
                           const char *text, sr_failure *why) {
    double value;
    for (int i = 0; i < SHARED; i++) {
        if (strcmp(shared[i].name, name) != 0 || !has_shared(m, o, i)) continue;
        if (read_value(m, &shared[i], text, &value, why) != SR_OK) return SR_USAGE;
        if (i == SHARED_EPS) o->eps = value;
        if (i == SHARED_ALPHA) o->alpha = value;
        if (i == SHARED_LAYER_SCALE) o->layer_scale = (int64_t)value;
        return SR_OK;
    }
    const int i = norm_param_find(m, name);
    if (i < 0) return refuse_name(m, o, name, why);
    if (read_value(m, &m->param[i], text, &value, why) != SR_OK) return SR_USAGE;
    o->param[i] = value;
    o->given |= 1u << i;
    return SR_OK;
}

const norm_method *norm_named(const char *text, norm_value *v) {
    char name[NORM_OPTION_KEY];
    if (!norm_value_split(text, (int)strlen(text), v) || v->method_length >= NORM_OPTION_KEY)
        return NULL;
    memcpy(name, v->method, (size_t)v->method_length);
    name[v->method_length] = 0;
    return norm_find(name);
}

sr_status norm_options_read(norm_options *o, const norm_method *m, const norm_value *v,
                            sr_failure *why) {
    char name[NORM_OPTION_KEY], value[NORM_OPTION_KEY];
    option_line p;
    for (const char *at = NULL; norm_value_next(v, &at, &p);) {
        snprintf(name, sizeof name, "%.*s", p.key_length, p.key);
        if (!p.value) return sr_fail(why, SR_USAGE, "%s: '%s' is not NAME=VALUE", m->name, name);
        if (p.key_length >= NORM_OPTION_KEY || p.value_length >= NORM_OPTION_KEY)
            return sr_fail(why, SR_USAGE, "%s: '%s' is too long; at most %d bytes", m->name, name,
                           NORM_OPTION_KEY - 1);
        snprintf(value, sizeof value, "%.*s", p.value_length, p.value);
        sr_status status = norm_options_set(o, m, name, value, why);
        if (status != SR_OK) return status;
    }
    return SR_OK;
}

static void append(char *text, size_t size, const char *name, double value, const char *words) {
    const size_t used = strlen(text);
    for (int k = (int)value; words && k > 0; k--) words += strcspn(words, " ") + 1;
    if (words)
        snprintf(text + used, size - used, " %s=%.*s", name, (int)strcspn(words, " "), words);
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
