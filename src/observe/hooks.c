/* hooks.c -- passes statistics of the normalization layers to the recorder; the only file that uses
 * both. After a layer's backward pass its norm_call holds the statistics of both passes. Only
 * spectra are computed here, if wanted (spectra.c).
 */
#include "observe/hooks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/globs.h"
#include "base/program/progress.h"
#include "observe/running_moves.h"
#include "observe/shard_gather.h"
#include "observe/spectra.h"

typedef struct hook {
    hooks *owner;
    int site;         /* number in the recorder */
    double alpha;     /* weight of the old running value, NaN without any */
    double *position; /* [features] running mean of the position encoding; NULL: none */
} hook;

struct hooks {
    sr_recorder *recorder;
    model *model;
    hook *hook; /* [sites of the model] */
    double seconds;
    const char *bad_input, *bad_gradient; /* sites, see hooks_nonfinite */
    bool spectra, look_at_rows;
    hooks_look_fn *look_at; /* called for forward passes; NULL: none */
    void *look_context;
    hooks_looks passes;
    hooks_shares shares;
    int number;           /* the shard that passes, of this process's */
    shard_stats *parcels; /* sent to the first process; NULL: nothing is sent */
    /* [shards - 1, sites of the model] numbers of NAME@1 ... in the recorder */
    int *replica;
    int move[MOVES]; /* numbers of mu_moved and mu_apart in the recorder */
    sr_failure failure;
};

#define MAP_VECTOR(name) [NORM_##name] = SR_##name,
#define MAP_SCALAR(name) [NORM_SCALAR_##name] = SR_SCALAR_##name,
static const sr_vector vector_of[] = {NORM_VECTORS(MAP_VECTOR)};
static const sr_scalar scalar_of[] = {NORM_SCALARS(MAP_SCALAR)};

static const sr_family family_of[] = {
    [NORM_FAMILY_NONE] = SR_FAMILY_NONE, [NORM_FAMILY_SIGMA] = SR_FAMILY_SIGMA,
    [NORM_FAMILY_PSI] = SR_FAMILY_PSI,   [NORM_FAMILY_PN] = SR_FAMILY_PN,
    [NORM_FAMILY_ROW] = SR_FAMILY_ROW,   [NORM_FAMILY_OWN] = SR_FAMILY_OWN,
};

/* The running mean starts at 0, as mu does. */
static void hand_over_position(const hook *k, const double *mean, int64_t features) {
    sr_recorder *r = k->owner->recorder;
    sr_put_vector(r, k->site, SR_position_B, mean);
    if (isnan(k->alpha)) return;
    sr_put_vector(r, k->site, SR_position, k->position);
    if (k->owner->model->site[k - k->owner->hook]->frozen) return;
    for (int64_t i = 0; i < features; i++)
        k->position[i] = k->alpha * k->position[i] + (1 - k->alpha) * mean[i];
}

/* Records rows and scalars of a site. */
static void put_scalars(const hooks *h, int site, const norm_site *s, const parcel *of) {
    const uint32_t scalars = norm_site_scalars(s);
    sr_recorder *r = h->recorder;
    sr_put_rows(r, site, (int64_t)of->rows);
    sr_put_scalar(r, site, SR_SCALAR_samples, of->samples);
    sr_put_scalar(r, site, SR_SCALAR_padded, of->padded);
    for (int i = 0; i < NORM_SCALAR_COUNT; i++)
        if (scalars & (1u << i)) sr_put_scalar(r, site, scalar_of[i], of->scalar[i]);
    for (int i = 0; i < MOVES && running_moves_of(s); i++)
        sr_put_scalar(r, site, h->move[i], of->move[i]);
}

/* Frozen statistics pass no gradient, so their vectors of the backward pass are skipped. */
static void put_vectors(sr_recorder *r, int site, const norm_site *s, const double *const *value) {
    static const uint32_t backward =
        NORM_BIT(sum_g) | NORM_BIT(sum_gx) | NORM_BIT(nu) | NORM_BIT(Gamma_t) | NORM_BIT(Lambda_t);
    const uint32_t vectors = norm_site_vectors(s) & ~(s->frozen ? backward : 0);
    for (int v = 0; v < NORM_VECTOR_COUNT; v++)
        if (vectors & (1u << v)) sr_put_vector(r, site, vector_of[v], value[v]);
}

/* With rows in several processes, scalars are merged first (hooks_exchange). */
static void hand_over(const hook *k, const norm_view *o) {
    sr_recorder *r = k->owner->recorder;
    const norm_rows *rows = o->call->rows;
    parcel own = {.rows = (double)rows->valid,
                  .samples = (double)(rows->sample ? rows->samples : rows->valid),
                  .padded = (double)(rows->rows - rows->valid)};
    memcpy(own.scalar, o->call->scalar, sizeof own.scalar);
    put_vectors(r, k->site, o->site, (const double *const *)o->call->stat);
    if (k->owner->shares.together) return;
    running_moves_take(o, own.move);
    put_scalars(k->owner, k->site, o->site, &own);
    if (k->position && rows->position_mean && rows->valid > 0)
        hand_over_position(k, rows->position_mean, o->call->features);
}

static void hand_over_spectra(const hook *k, const norm_view *o) {
    const norm_rows *rows = o->call->rows;
    int64_t d = o->call->features;
    sr_failure *why = &k->owner->failure;
    double *memory = malloc(2 * (size_t)d * sizeof *memory);
    if (!memory) {
        sr_fail(why, SR_MEMORY, "out of memory for the spectra of %s", o->site->name);
        return;
    }
    const double *const value[] = {
        [SR_SPECTRUM_input] = memory,
        [SR_SPECTRUM_gradient] = memory + d,
    };
    if (spectrum_of_rows(rows, o->x, d, memory, why) == SR_OK &&
        spectrum_of_rows(rows, o->dx, d, memory + d, why) == SR_OK)
        sr_put_spectrum(k->owner->recorder, k->site, rows->valid, value);
    free(memory);
}

/* 0 * v is NaN for an infinite v, too. */
static bool vector_is_bad(const norm_view *o, norm_vector v) {
    double sum = 0;
    if (o->call->rows->valid == 0) return false;
    for (int64_t k = 0; k < o->call->features; k++) sum += 0 * o->call->stat[v][k];
    return isnan(sum);
}

static bool rows_are_bad(const norm_view *o, const real *x) {
    const norm_rows *r = o->call->rows;
    int64_t d = o->call->features;
    double sum = 0;
    for (int64_t i = 0; x && i < r->valid; i++) {
        const real *row = x + (r->index ? r->index[i] : i) * d;
        for (int64_t k = 0; k < d; k++) sum += 0 * (double)row[k];
    }
    return isnan(sum);
}

/* A sum over rows is finite only when every term is. */
static void look(hooks *h, const norm_view *o) {
    uint32_t vectors = norm_site_vectors(o->site);
    bool statistics = vectors & NORM_BIT(psi2_B), sums = vectors & NORM_BIT(sum_g);
    if (statistics ? vector_is_bad(o, NORM_psi2_B) : h->look_at_rows && rows_are_bad(o, o->x))
        h->bad_input = o->site->name; /* a backward pass reaches the first site last */
    if (h->bad_gradient) return;
    if (sums ? vector_is_bad(o, NORM_sum_g) || vector_is_bad(o, NORM_sum_gx)
             : h->look_at_rows && rows_are_bad(o, o->dy))
        h->bad_gradient = o->site->name;
}

static void watch(void *context, const norm_view *o) {
    hook *k = context;
    double start = progress_clock();
    hooks *h = k->owner;
    if (h->parcels) shard_stats_take(h->parcels, h->number, (int)(k - h->hook), o);
    if (h->recorder && h->number == 0) {
        hand_over(k, o);
        if (h->spectra) hand_over_spectra(k, o);
        if (h->passes.backward && o->call->rows->mode == NORM_TRAIN)
            h->passes.backward(h->passes.context, (int)(k - h->hook), o, &h->failure);
        look(h, o);
    }
    h->seconds += progress_clock() - start;
}

static void watch_forward(void *context, const norm_view *o) {
    hook *k = context;
    hooks *h = k->owner;
    const int site = (int)(k - h->hook);
    const bool training = o->call->rows->mode == NORM_TRAIN || o->call->rows->frozen;
    double start = progress_clock();
    if (training && h->look_at) h->look_at(h->look_context, site, o, &h->failure);
    if (training && h->passes.forward && h->number == 0)
        h->passes.forward(h->passes.context, site, o, &h->failure);
    h->seconds += progress_clock() - start;
}

static double alpha_of(const norm_site *s) {
    if (s->observer) return s->observer->alpha;
    return s->method->alpha > 0 ? s->options.alpha : NAN;
}

/* As bits of sr_vector. */
static uint32_t vectors_of(const norm_site *s) {
    uint32_t vectors = 0;
    for (int v = 0; v < NORM_VECTOR_COUNT; v++)
        if (norm_site_vectors(s) >> v & 1) vectors |= 1u << vector_of[v];
    return vectors;
}

/* NORM_BITs as in /sites/uses. */
static void write_uses(uint32_t bits, char text[SR_KIND_SIZE]) {
    snprintf(text, SR_KIND_SIZE, "%s%s%s", bits & NORM_BIT(mu) ? ",mu" : "",
             bits & NORM_BIT(sigma2) ? ",sigma2" : "", bits & NORM_BIT(psi2) ? ",psi2" : "");
    memmove(text, text + (*text == ','), strlen(text) + (*text != ','));
}

static int declare_as(sr_recorder *r, const norm_site *s, const char *name) {
    const norm_observer_state *shadow = s->observer;
    const norm_method *m = s->method;
    char uses[SR_KIND_SIZE], constants[SR_KIND_SIZE];
    write_uses(m->uses, uses);
    write_uses(m->constants, constants);
    int site = sr_add_site(r, &(sr_site){
                                  .size = sizeof(sr_site),
                                  .name = name,
                                  .norm = m->name,
                                  .kind = s->kind,
                                  .family = family_of[m->family],
                                  .width = (int)s->features,
                                  .depth = s->depth,
                                  .layer_scale = (int)s->options.layer_scale,
                                  .eps = shadow ? shadow->eps : s->options.eps,
                                  .alpha = alpha_of(s),
                                  .axis = m->axis,
                                  .uses = uses,
                                  .constants = constants,
                                  .layer_scale_own = m->layer_scale > 0,
                              });
    const int backward = norm_param_find(m, "alpha_bwd");
    if (site >= 0) sr_expect_vectors(r, site, vectors_of(s));
    if (site >= 0 && backward >= 0) sr_set_alpha_backward(r, site, s->options.param[backward]);
    if (site >= 0 && shadow) sr_set_observed(r, site);
    return site;
}

/* Declares NAME@1 ... for the shards after the first. */
static sr_status declare_replicas(hooks *h, const bool *chosen, sr_failure *why) {
    const int sites = h->model->sites, more = h->shares.shares - 1;
    h->replica = calloc((size_t)(more * sites) + 1, sizeof *h->replica);
    if (!h->replica) return sr_fail(why, SR_MEMORY, "out of memory for %d sites", sites);
    for (int i = 0; i < more * sites; i++) {
        char name[PARAM_NAME + 16];
        const norm_site *s = h->model->site[i % sites];
        if (!chosen[i % sites]) continue;
        snprintf(name, sizeof name, "%s@%d", s->name, 1 + i / sites);
        h->replica[i] = declare_as(h->recorder, s, name);
    }
    const sr_failure *failed = sr_failed(h->recorder);
    return failed ? sr_fail(why, failed->status, "%s", failed->text) : SR_OK;
}

static const char *name_of_site(const void *context, int64_t i) {
    return ((const model *)context)->site[i]->name;
}

static bool any_layer(const void *context, int64_t i, bool bn) {
    const norm_site *s = ((const model *)context)->site[i];
    return !bn || s->observer || s->method->vectors & NORM_BIT(psi2_B);
}

/* Every observed layer has batch statistics. */
static bool observed_layer(const void *context, int64_t i, bool bn) {
    (void)context, (void)i, (void)bn;
    return true;
}

bool *hooks_choose(const model *m, const char *list, bool observed, sr_failure *why) {
    const globs_sites sites = {m->sites, m, name_of_site, observed ? observed_layer : any_layer};
    char missed[GLOBS_WORD];
    bool *chosen = calloc((size_t)m->sites + 1, sizeof *chosen);
    if (!chosen) sr_fail(why, SR_MEMORY, "out of memory for %d sites", m->sites);
    if (!chosen || globs_choose(list, &sites, chosen, missed)) return chosen;
    sr_fail(why, SR_USAGE, "--record-sites '%.200s' matches no site of %s", missed, m->row->name);
    free(chosen);
    return NULL;
}

/* Declares the moves of running means if a chosen site has one. */
static sr_status declare_moves(hooks *h, const bool *chosen, sr_failure *why) {
    bool any = false;
    for (int i = 0; i < h->model->sites; i++)
        any |= chosen[i] && running_moves_of(h->model->site[i]);
    if (any && h->recorder) running_moves_declare(h->recorder, h->move);
    const sr_failure *failed = h->recorder ? sr_failed(h->recorder) : NULL;
    return failed ? sr_fail(why, failed->status, "%s", failed->text) : SR_OK;
}

static sr_status watch_sites(hooks *h, const bool *chosen, bool want_rows, sr_failure *why) {
    for (int i = 0; i < h->model->sites; i++) {
        norm_site *s = h->model->site[i];
        hook *k = &h->hook[i];
        k->site = -1;
        if (!chosen[i]) continue;
        *k = (hook){h, -1, alpha_of(s), NULL};
        s->backward_hook = watch;
        s->hook_context = k;
        s->want_rows = want_rows;
        if (!h->recorder) continue;
        k->site = declare_as(h->recorder, s, s->name);
        if (s->takes_positions && s->options.layer_scale == 0) { /* else mu_B is from x/s */
            const uint32_t running = isnan(k->alpha) ? 0 : 1u << SR_position;
            k->position = calloc((size_t)s->features, sizeof *k->position);
            if (!k->position) return sr_fail(why, SR_MEMORY, "out of memory for site %s", s->name);
            sr_expect_vectors(h->recorder, k->site, vectors_of(s) | 1u << SR_position_B | running);
        }
        const sr_failure *failed = sr_failed(h->recorder);
        if (failed) return sr_fail(why, failed->status, "%s", failed->text);
    }
    return SR_OK;
}

hooks *hooks_create(model *m, sr_recorder *r, const bool *chosen, bool want_rows,
                    const hooks_shares *shares, sr_failure *why) {
    hooks *h = calloc(1, sizeof *h);
    if (h) h->hook = calloc((size_t)m->sites, sizeof *h->hook);
    if (!h || !h->hook) {
        sr_fail(why, SR_MEMORY, "out of memory for %d sites", m->sites);
        hooks_free(h);
        return NULL;
    }
    h->recorder = r;
    h->model = m;
    h->shares = shares ? *shares : (hooks_shares){.shares = 1, .own = 1};
    const bool each = h->shares.each;
    sr_status status = watch_sites(h, chosen, want_rows, why);
    if (status == SR_OK) status = declare_moves(h, chosen, why);
    if (status == SR_OK && (each || h->shares.together)) {
        h->parcels = shard_stats_create(m, chosen, h->shares.own, each && want_rows, why);
        if (!h->parcels) status = why->status;
    }
    if (status == SR_OK && each && r) status = declare_replicas(h, chosen, why);
    if (status == SR_OK) return h;
    hooks_free(h);
    return NULL;
}

void hooks_free(hooks *h) {
    if (!h) return;
    for (int i = 0; h->model && i < h->model->sites; i++) {
        h->model->site[i]->forward_hook = h->model->site[i]->backward_hook = NULL;
        h->model->site[i]->hook_context = NULL;
        free(h->hook[i].position);
    }
    shard_stats_free(h->parcels);
    free(h->replica);
    free(h->hook);
    free(h);
}

/* -- several passes and processes */

void hooks_begin_step(hooks *h) {
    if (h->parcels) shard_stats_clear(h->parcels);
}

void hooks_enter(hooks *h, int number) {
    h->number = number;
}

static void put_merged_position(const hook *k, const parcel *part, int count) {
    const int64_t d = k->owner->model->site[k - k->owner->hook]->features;
    double *mean = malloc((size_t)d * sizeof *mean);
    if (mean) {
        shard_stats_merge_positions(part, count, d, mean);
        hand_over_position(k, mean, d);
    } else {
        sr_fail(&k->owner->failure, SR_MEMORY, "out of memory for positions of %lld features",
                (long long)d);
    }
    free(mean);
}

/* all: the numbers of every shard. */
static sr_status put_merged(hooks *h, int shares, const double *all, sr_failure *why) {
    parcel *part = malloc((size_t)shares * sizeof *part);
    if (!part) return sr_fail(why, SR_MEMORY, "out of memory for %d shares", shares);
    for (int i = 0; i < h->model->sites; i++) {
        if (h->hook[i].site < 0) continue;
        for (int k = 0; k < shares; k++) part[k] = shard_stats_at(h->parcels, all, k, i);
        const parcel whole = shard_stats_merge(part, shares);
        put_scalars(h, h->hook[i].site, h->model->site[i], &whole);
        if (h->hook[i].position && whole.rows > 0) put_merged_position(&h->hook[i], part, shares);
    }
    free(part);
    return SR_OK;
}

sr_status hooks_exchange(hooks *h, const run_exchange *x, sr_failure *why) {
    const int shares = shard_gather_count(x);
    double *all;
    if (!h->parcels) return SR_OK;
    sr_status status = shard_gather_shares(x, shard_stats_numbers(h->parcels),
                                           shard_stats_each(h->parcels), &all, why);
    if (status != SR_OK) return status;
    if (h->recorder && h->shares.together) status = put_merged(h, shares, all, why);
    for (int k = 1; k < shares && h->recorder && h->shares.each; k++)
        for (int i = 0; i < h->model->sites; i++) {
            const norm_site *s = h->model->site[i];
            const parcel found = shard_stats_at(h->parcels, all, k, i);
            const int site = h->replica[(k - 1) * h->model->sites + i];
            if (h->hook[i].site < 0 || isnan(found.rows)) continue;
            put_scalars(h, site, s, &found);
            if (found.vector[NORM_gamma]) put_vectors(h->recorder, site, s, found.vector);
        }
    free(all);
    return status;
}

static void want_inputs(hooks *h) {
    const bool any = h->look_at || h->passes.forward || h->passes.backward;
    for (int i = 0; i < h->model->sites; i++) h->model->site[i]->want_input = h->spectra || any;
}

static void hook_forward(hooks *h) {
    norm_hook_fn *fn = h->look_at || h->passes.forward ? watch_forward : NULL;
    want_inputs(h);
    for (int i = 0; i < h->model->sites; i++)
        if (hooks_watches(h, i)) h->model->site[i]->forward_hook = fn;
}

void hooks_want_spectra(hooks *h, bool wanted) {
    h->spectra = wanted;
    want_inputs(h);
}

void hooks_on_forward(hooks *h, hooks_look_fn *fn, void *context) {
    h->look_at = fn, h->look_context = context;
    hook_forward(h);
}

void hooks_on_passes(hooks *h, const hooks_looks *looks) {
    h->passes = *looks;
    hook_forward(h);
}

const sr_failure *hooks_failure(const hooks *h) {
    return h->failure.status != SR_OK ? &h->failure : NULL;
}

bool hooks_watches(const hooks *h, int site_of_model) {
    return h->hook[site_of_model].owner;
}

int hooks_site(const hooks *h, int site_of_model) {
    return h->hook[site_of_model].site;
}

double *hooks_position(const hooks *h, int site_of_model) {
    return h->hook[site_of_model].position;
}

double hooks_seconds(hooks *h) {
    double seconds = h->seconds;
    h->seconds = 0;
    return seconds;
}

void hooks_look_at_rows(hooks *h, bool look) {
    h->look_at_rows = look;
}

const char *hooks_nonfinite(hooks *h, const char **what) {
    const char *name = h->bad_input ? h->bad_input : h->bad_gradient;
    *what = h->bad_input ? "input" : "gradient";
    h->bad_input = h->bad_gradient = NULL;
    return name;
}
