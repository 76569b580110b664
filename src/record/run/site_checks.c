/* site_checks.c -- checks of a recorder's sites, of each when it is added and of all before the
 * first row. */
#include "record/run/site_checks.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/globs.h"
#include "record/recorder_state.h"
#include "record/run/take_method.h"
#include "runfile/site_method.h"

/* -- one site -------------------------------------------------------------------------------- */

static sr_status check_texts(sr_recorder *r, const sr_site *s) {
    sr_failure *why = &r->failure;
    if (!s->name || !*s->name)
        return sr_fail(why, SR_USAGE, "%s: sr_add_site: a site has no name", r->path);
    if (strlen(s->name) >= SR_NAME_SIZE || (s->norm && strlen(s->norm) >= SR_NAME_SIZE) ||
        (s->kind && strlen(s->kind) >= SR_KIND_SIZE))
        return sr_fail(why, SR_USAGE,
                       "%s: site %s: name, norm (< %d bytes) or kind (< %d) too long", r->path,
                       s->name, SR_NAME_SIZE, SR_KIND_SIZE);
    for (const char *c = s->name; *c; c++)
        if ((unsigned char)*c < ' ')
            return sr_fail(why, SR_USAGE, "%s: a site name with control characters", r->path);
    const char *const text[] = {s->name, s->norm, s->kind};
    for (int i = 0; i < 3; i++)
        if (text[i] && !recorder_is_text(r, text[i]))
            return sr_fail(why, SR_USAGE, "%s: site number %lld: its %s is not UTF-8", r->path,
                           (long long)r->sites,
                           i == 0   ? "name"
                           : i == 1 ? "norm"
                                    : "kind");
    return SR_OK;
}

static sr_status check_numbers(sr_recorder *r, const sr_site *s) {
    sr_failure *why = &r->failure;
    if (s->width < 1 || r->width + s->width > INT32_MAX)
        return sr_fail(why, SR_USAGE, "%s: site %s: width %d", r->path, s->name, s->width);
    if ((unsigned)s->family >= SR_FAMILY_COUNT || (unsigned)s->repeat > SR_REPEAT_MERGE)
        return sr_fail(why, SR_USAGE, "%s: site %s: family %d, repeat %d", r->path, s->name,
                       (int)s->family, (int)s->repeat);
    if ((isnan(s->alpha) || (s->alpha >= 0 && s->alpha <= 1)) &&
        (isnan(s->eps) || (s->eps >= 0 && isfinite(s->eps))))
        return SR_OK;
    return sr_fail(why, SR_USAGE,
                   "%s: site %s: alpha %g is not within 0 and 1, or eps %g negative or infinite",
                   r->path, s->name, s->alpha, s->eps);
}

static sr_status check_method(sr_recorder *r, const sr_site *s) {
    sr_run_site method;
    if (!recorder_take_method(&method, s))
        return sr_fail(&r->failure, SR_USAGE,
                       "%s: site %s: axis '%.32s', uses '%.32s', constants '%.32s' do not go with "
                       "family %s",
                       r->path, s->name, s->axis ? s->axis : "", s->uses ? s->uses : "",
                       s->constants ? s->constants : "", sr_family_name(s->family));
    const bool derived =
        s->family == SR_FAMILY_SIGMA || s->family == SR_FAMILY_PSI || s->family == SR_FAMILY_PN;
    if (r->copies || !derived || !*method.constants) return SR_OK;
    return sr_fail(&r->failure, SR_USAGE,
                   "%s: site %s: constants '%s' do not go with family %s, whose formulas "
                   "differentiate its statistics; use family own and put the g_* scalars",
                   r->path, s->name, method.constants, sr_family_name(s->family));
}

sr_status site_check(sr_recorder *r, const sr_site *s) {
    sr_status status = check_texts(r, s);
    if (status == SR_OK) status = check_numbers(r, s);
    if (status == SR_OK) status = check_method(r, s);
    if (status == SR_OK && map_find(&r->names, s->name, strlen(s->name)) >= 0)
        return sr_fail(&r->failure, SR_USAGE, "%s: site %s declared twice", r->path, s->name);
    return status;
}

/* -- all sites ------------------------------------------------------------------------------- */

/* Finds the site NAME of NAME@K, for K > 1 NAME@(K-1). */
static const sr_run_site *site_before(const sr_recorder *r, const sr_run_site *s, char *wanted) {
    const int stem = (int)(strrchr(s->name, '@') - s->name);
    const long long k = atoll(s->name + stem + 1);
    if (k > 1)
        snprintf(wanted, SR_NAME_SIZE, "%.*s@%lld", stem, s->name, k - 1);
    else
        snprintf(wanted, SR_NAME_SIZE, "%.*s", stem, s->name);
    const int64_t at = map_find(&r->names, wanted, strlen(wanted));
    return at < 0 ? NULL : &r->site[at];
}

static sr_status check_replicas(sr_recorder *r) {
    for (int64_t i = 0; i < r->sites; i++) {
        const sr_run_site *s = &r->site[i];
        if (!globs_is_replica(s->name)) continue;
        char wanted[SR_NAME_SIZE];
        const sr_run_site *before = site_before(r, s, wanted);
        if (!before)
            return sr_fail(&r->failure, SR_USAGE,
                           "%s: site %s is a replica (NAME@K), but there is no site %s", r->path,
                           s->name, wanted);
        if (before->width != s->width)
            return sr_fail(&r->failure, SR_USAGE,
                           "%s: site %s has %lld features, its replica %s has %lld", r->path,
                           wanted, (long long)before->width, s->name, (long long)s->width);
    }
    return SR_OK;
}

/* Without any depth, the order of declaration is the order of the forward pass. A replica has its
 * site's depth. */
static void number_depths(sr_recorder *r) {
    int depth = 0;
    for (int64_t i = 0; i < r->sites; i++)
        if (r->site[i].depth != 0) return;
    for (int64_t i = 0; i < r->sites; i++)
        if (!globs_is_replica(r->site[i].name)) r->site[i].depth = depth++;
    for (int64_t i = 0; i < r->sites; i++) {
        char wanted[SR_NAME_SIZE];
        const sr_run_site *at = &r->site[i];
        while (at && globs_is_replica(at->name)) at = site_before(r, at, wanted);
        if (at) r->site[i].depth = at->depth;
    }
}

static int compare_depths(const void *a, const void *b) {
    const sr_run_site *x = *(const sr_run_site *const *)a, *y = *(const sr_run_site *const *)b;
    return x->depth != y->depth ? (x->depth > y->depth) - (x->depth < y->depth) : (x > y) - (x < y);
}

static sr_status check_depths(sr_recorder *r) {
    const sr_run_site **order = malloc((size_t)(r->sites + 1) * sizeof *order);
    int64_t count = 0;
    if (!order) return sr_fail(&r->failure, SR_MEMORY, "%s: depths of its sites", r->path);
    for (int64_t i = 0; i < r->sites; i++)
        if (!globs_is_replica(r->site[i].name)) order[count++] = &r->site[i];
    qsort(order, (size_t)count, sizeof(void *), compare_depths);
    for (int64_t i = 1; i < count && !sr_failed(r); i++)
        if (order[i - 1]->depth == order[i]->depth)
            sr_fail(&r->failure, SR_USAGE, "%s: sites %s and %s have the same depth %lld", r->path,
                    order[i - 1]->name, order[i]->name, (long long)order[i]->depth);
    free(order);
    if (sr_failed(r)) sr_hint(&r->failure, "set no depth at all: the order of sr_add_site counts");
    return recorder_check(r);
}

/* An alpha of 0, as SR_INIT leaves it, means none at a site without batch statistics. */
static void drop_idle_alphas(sr_recorder *r) {
    for (int64_t i = 0; i < r->sites; i++) {
        sr_run_site *s = &r->site[i];
        if (!(s->alpha > 0) && !s->observed && !sr_run_over_batch(s)) s->alpha = NAN;
    }
}

sr_status site_settle(sr_recorder *r) {
    drop_idle_alphas(r);
    sr_status status = check_replicas(r);
    if (status != SR_OK) return status;
    number_depths(r);
    return check_depths(r);
}
