/* model_sites.c -- assigns a normalization to each site.
 *
 * norm_at is a list SITES=METHOD,... with the words of globs.h for sites: a glob, "first" or
 * "last". The first pattern that matches a site decides: "encoder.0.*=bn,encoder.*=ln" puts BN into
 * the first encoder layer only. "last" needs the names of all sites, so they come from a model that
 * was built without the list.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "base/globs.h"
#include "nets/model_rows.h"

/* One SITES=METHOD of the list. */
typedef struct assignment {
    char pattern[MODEL_TEXT], method[MODEL_TEXT];
} assignment;

/* Reads the next one from *at; false at the end or, with *why, when it is not SITES=METHOD. */
static bool next_assignment(const char **at, assignment *a, sr_failure *why) {
    if (!**at) return false;
    size_t length = norm_value_entry(*at), equals = strcspn(*at, "=,");
    if (equals >= length || equals == 0 || length >= MODEL_TEXT) {
        sr_fail(why, SR_USAGE, "--norm-at: '%.*s' is not SITES=METHOD", (int)length, *at);
        return false;
    }
    memcpy(a->pattern, *at, equals);
    a->pattern[equals] = 0;
    memcpy(a->method, *at + equals + 1, length - equals - 1);
    a->method[length - equals - 1] = 0;
    *at += length + ((*at)[length] == ',');
    return true;
}

static const char *name_of_site(const void *context, int64_t i) {
    return ((const model *)context)->site[i]->name;
}

/* The list itself decides which layer is the last BN, so "last-bn" matches nothing in it. */
static bool any_but_bn(const void *context, int64_t i, bool bn) {
    (void)context, (void)i;
    return !bn;
}

/* Gives assignment i the sites that it matches first; at least one. */
static sr_status assign(model *m, const globs_sites *sites, const assignment *a, int i,
                        bool *chosen, sr_failure *why) {
    char missed[GLOBS_WORD];
    bool decides = false;
    memset(chosen, 0, (size_t)sites->count * sizeof *chosen);
    if (!globs_choose(a->pattern, sites, chosen, missed)) {
        sr_fail(why, SR_USAGE, "--norm-at: '%s' matches no site of %s", a->pattern, m->row->name);
        if (globs_is_place(missed))
            sr_hint(why, "name the site; --norm-at decides which sites have batch statistics");
        return SR_USAGE;
    }
    for (int64_t k = 0; k < sites->count; k++) {
        if (!chosen[k] || m->assigned[k] >= 0) continue;
        m->assigned[k] = i;
        decides = true;
    }
    if (decides) return SR_OK;
    return sr_fail(why, SR_USAGE, "--norm-at: '%s' never applies: an earlier pattern matches first",
                   a->pattern);
}

sr_status model_assign_norms(model *m, const model *named, const model_options *o,
                             sr_failure *why) {
    const globs_sites sites = {named->sites, named, name_of_site, any_but_bn};
    const char *at = o->norm_at;
    assignment a;
    sr_failure malformed = {0};
    bool *chosen = malloc((size_t)named->sites + 1);
    m->assigned = malloc(((size_t)named->sites + 1) * sizeof *m->assigned);
    sr_status status = chosen && m->assigned
                           ? SR_OK
                           : sr_fail(why, SR_MEMORY, "out of memory for %d sites", named->sites);
    for (int k = 0; k < named->sites && status == SR_OK; k++) m->assigned[k] = -1;
    for (int i = 0; status == SR_OK && next_assignment(&at, &a, &malformed); i++)
        status = assign(m, &sites, &a, i, chosen, why);
    if (status == SR_OK && malformed.status != SR_OK)
        status = sr_fail(why, malformed.status, "%s", malformed.text);
    free(chosen);
    return status;
}

/* The parameters that the user set and this method has. */
static sr_status set_params(norm_options *n, const model_options *o, const norm_method *method,
                            sr_failure *why) {
    const norm_option *row;
    for (int i = 0; (row = norm_option_at(i)); i++) {
        const int k = norm_option_param(row, method);
        sr_failure refused = {0};
        if (!*o->norm_param[i] || k < 0) continue;
        if (norm_options_set(n, method, method->param[k].name, o->norm_param[i], &refused) != SR_OK)
            return sr_fail(why, SR_USAGE, "--%s: %s", row->key, refused.text);
    }
    return SR_OK;
}

/* Rejects an option without effect. */
sr_status model_check_norm_params(const model *m, const model_options *o, sr_failure *why) {
    const norm_option *row;
    for (int i = 0; (row = norm_option_at(i)); i++) {
        bool obeyed = !*o->norm_param[i];
        for (int k = 0; k < m->sites && !obeyed; k++)
            obeyed = norm_option_param(row, m->site[k]->method) >= 0;
        if (!obeyed)
            return sr_fail(why, SR_USAGE, "--%s: no site's normalization has this parameter",
                           row->key);
    }
    return SR_OK;
}

/* The 0.95 in a method's row is the value of the text releases; other models have their own
   (docs/norms.md 2). */
double model_norm_alpha(const model *m, const model_options *o, const norm_method *method) {
    const bool own = m->row->alpha > 0 && method->alpha == 0.95;
    return model_default(o->norm_alpha, own ? m->row->alpha : method->alpha);
}

static const double LAYER_SCALE_EPS = 1e-5; /* before a method without eps */

/* The method's defaults, then the options, then the parameters in the value of --norm. The layer
 * scale of METHOD+ls and pn-released has one group per head, in image networks one group
 * (docs/norms.md 12, 13). */
static sr_status options_at(const model *m, const model_options *o, const norm_method *method,
                            const norm_value *v, norm_options *n, sr_failure *why) {
    *n = norm_options_default(method);
    if (method->alpha > 0) n->alpha = model_norm_alpha(m, o, method);
    if (v->layer_scale || method->scale_by_heads) n->layer_scale = o->heads > 0 ? o->heads : 1;
    if (o->layer_scale) n->layer_scale = o->layer_scale;
    if (n->layer_scale && method->eps == 0) n->eps = LAYER_SCALE_EPS;
    n->eps = model_default(o->norm_eps, n->eps);
    sr_status status = set_params(n, o, method, why);
    return status == SR_OK ? norm_options_read(n, method, v, why) : status;
}

/* The method and the options of the next site. */
static const norm_method *next_norm(const model *m, const model_options *o, const char *norm,
                                    norm_options *n, sr_failure *why) {
    char value[MODEL_TEXT];
    norm_value v;
    sr_failure refused = {0};
    /* The value of the next site's normalization, from norm_at or `norm`. */
    assignment a;
    const char *at = o->norm_at;
    sr_failure malformed = {0};
    snprintf(value, MODEL_TEXT, "%s", norm);
    for (int i = m->assigned ? m->assigned[m->sites] : -1; i >= 0; i--)
        if (next_assignment(&at, &a, &malformed)) memcpy(value, a.method, sizeof a.method);
    const norm_method *method = norm_named(value, &v);
    if (!method)
        sr_fail(&refused, SR_USAGE, "unknown normalization '%s'", value);
    else if (options_at(m, o, method, &v, n, &refused) == SR_OK)
        return method;
    sr_fail(why, refused.status, "%s%s", strcmp(value, norm) ? "--norm-at: " : "", refused.text);
    if (*refused.hint) sr_hint(why, "%s", refused.hint);
    return NULL;
}

norm_site *model_add_site(model *m, const model_options *o, const char *name, const char *kind,
                          int64_t features, const char *norm, sr_failure *why) {
    norm_options n;
    const norm_method *method = next_norm(m, o, norm, &n, why);
    if (!method) return NULL;
    norm_site *s = NULL;
    if (vector_reserve(&m->site, &m->site_capacity, m->sites + 1, sizeof(*m->site)))
        s = calloc(1, sizeof *s);
    if (!s) {
        sr_fail(why, SR_MEMORY, "out of memory for site %s", name);
        return NULL;
    }
    if (norm_site_init(s, &m->params, name, kind, m->sites, features, method, &n, why) == SR_OK)
        return m->site[m->sites++] = s;
    norm_site_free(s);
    free(s);
    return NULL;
}

model_attention *model_add_attention(model *m, const norm_site *site, int64_t heads,
                                     sr_failure *why) {
    model_attention *a = NULL;
    if (vector_reserve(&m->attention, &m->attention_capacity, m->attentions + 1,
                       sizeof(*m->attention)))
        a = calloc(1, sizeof *a);
    if (!a) {
        sr_fail(why, SR_MEMORY, "out of memory for attention %d", m->attentions);
        return NULL;
    }
    *a = (model_attention){.site = site, .heads = (int)heads};
    return m->attention[m->attentions++] = a;
}

void model_vary_gains(model *m, double deviation) {
    for (int i = 0; i < m->sites; i++) {
        tensor *gamma = m->site[i]->gamma;
        rng r = rng_split(&m->params.random, (UINT64_C(1) << 32) + (uint64_t)i);
        for (int64_t k = 0; gamma && k < gamma->count; k++)
            gamma->value[k] += (real)(deviation * rng_normal(&r));
    }
}

const norm_rows *model_rows_for(const norm_site *s, tape *t, const norm_rows *rows) {
    if (!s->method->token_samples || !rows->sample) return rows;
    norm_rows *own = tape_alloc(t, sizeof *own);
    if (!own) return NULL;
    *own = *rows;
    own->sample = NULL;
    own->samples = 0;
    return own;
}
