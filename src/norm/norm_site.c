/* norm_site.c -- makes and frees a normalization layer: checks options, allocates parameters and
 * state. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "norm/norm_options.h"
#include "norm/norm_site.h"

static sr_status check_params(const char *name, const norm_method *m, const norm_options *o,
                              sr_failure *why) {
    for (int i = 0; i < NORM_PARAM_MAX && m->param[i].name; i++) {
        const norm_param_row *p = &m->param[i];
        if (!(o->param[i] >= p->low && o->param[i] <= p->high))
            return sr_fail(why, SR_USAGE, "%s: %s of %s is %g, not between %g and %g", name,
                           p->name, m->name, o->param[i], p->low, p->high);
    }
    return SR_OK;
}

static sr_status check_options(const char *name, int64_t features, const norm_method *m,
                               const norm_options *o, sr_failure *why) {
    size_t length = strlen("gamma");
    for (int i = 0; i < NORM_OWN_MAX && m->own[i].name; i++)
        if (strlen(m->own[i].name) > length) length = strlen(m->own[i].name);
    if (strlen(name) + 1 + length >= PARAM_NAME)
        return sr_fail(why, SR_USAGE, "name of a normalization layer too long: %s", name);
    if (features < 1) return sr_fail(why, SR_USAGE, "%s: %lld features", name, (long long)features);
    if (!(o->eps >= 0) || isinf(o->eps))
        return sr_fail(why, SR_USAGE, "%s: eps is %g, not zero or positive", name, o->eps);
    if (!(o->alpha >= 0 && o->alpha <= 1))
        return sr_fail(why, SR_USAGE, "%s: alpha is %g, not between 0 and 1", name, o->alpha);
    if (o->layer_scale < 0 || (o->layer_scale && features % o->layer_scale))
        return sr_fail(why, SR_USAGE, "%s: %lld features cannot be cut into %lld groups", name,
                       (long long)features, (long long)o->layer_scale);
    sr_status status = check_params(name, m, o, why);
    return status != SR_OK || !m->check ? status : m->check(features, o, why);
}

static real *filled(int64_t count, real value) {
    real *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; x && i < count; i++) x[i] = value;
    return x;
}

static sr_status make_state(norm_site *s, sr_failure *why) {
    const norm_method *m = s->method;
    s->ones = filled(s->features, 1);
    s->zeros = filled(s->features, 0);
    bool whole = s->ones && s->zeros;
    for (int i = 0; i < NORM_STATE_MAX && m->state[i].name; i++) {
        int64_t rows =
            m->state[i].rows ? (int64_t)s->options.param[norm_param_find(m, m->state[i].rows)] : 1;
        int64_t count = s->state_count[i] = rows * s->features;
        s->state[i] = malloc((size_t)count * sizeof *s->state[i]);
        if (!s->state[i]) whole = false;
        for (int64_t k = 0; s->state[i] && k < count; k++) s->state[i][k] = m->state[i].initial;
    }
    return whole ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for the state of %s", s->name);
}

static bool has_own(const norm_site *s, const norm_own_row *own) {
    return !own->when || s->options.param[norm_param_find(s->method, own->when)] != 0;
}

static sr_status make_parameters(norm_site *s, params *p, sr_failure *why) {
    const norm_own_row *own = s->method->own;
    if (s->method->affine) {
        s->gamma = params_add_part(p, s->name, "gamma", 1, &s->features, INIT_CONSTANT, 1);
        s->beta = params_add_part(p, s->name, "beta", 1, &s->features, INIT_CONSTANT, 0);
        if (!s->beta) return sr_fail(why, p->failure.status, "%s", p->failure.text);
    }
    for (int i = 0; i < NORM_OWN_MAX && own[i].name; i++) {
        if (!has_own(s, &own[i])) continue;
        const double initial = own[i].first ? own[i].first(&s->options, s->features)
                               : own[i].from
                                   ? s->options.param[norm_param_find(s->method, own[i].from)]
                                   : own[i].initial;
        const int64_t count = own[i].wide ? s->features : 1;
        s->own[i] = params_add_part(p, s->name, own[i].name, 1, &count, INIT_CONSTANT, initial);
        if (!s->own[i]) return sr_fail(why, p->failure.status, "%s", p->failure.text);
    }
    return SR_OK;
}

sr_status norm_site_init(norm_site *s, params *p, const char *name, const char *kind, int depth,
                         int64_t features, const norm_method *method, const norm_options *options,
                         sr_failure *why) {
    *s = (norm_site){.depth = depth, .features = features, .method = method, .options = *options};
    for (int i = 0; i < NORM_PARAM_MAX && method->param[i].name; i++)
        if (!(options->given >> i & 1)) s->options.param[i] = method->param[i].default_value;
    sr_status status = check_options(name, features, method, &s->options, why);
    if (status != SR_OK) return status;
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->kind, sizeof s->kind, "%s", kind);
    s->parameters_before = p->count;
    status = make_state(s, why);
    if (status == SR_OK) status = make_parameters(s, p, why);
    if (status != SR_OK) norm_site_free(s);
    return status;
}

void norm_site_free(norm_site *s) {
    for (int i = 0; i < NORM_STATE_MAX; i++) free(s->state[i]);
    free(s->ones);
    free(s->zeros);
    if (s->observer) free(s->observer->mu);
    free(s->observer);
    *s = (norm_site){0};
}
