/* final_pairs.c -- pairs of a normalization's input and output in the final pass: what figure 2 of Zhu et
 * al., Transformers without Normalization, CVPR 2025 (arXiv 2503.10622) shows of layer normalization.
 *
 * Of the first batch of the pass that has a valid row at a site, K entries of its [n, d] are drawn, each
 * of the n d with the same probability, so that one may be drawn twice: entry i of a site is number
 *
 *     rng_at(key, i) mod (n d)        key of the seed and of the site's number in the model
 *
 * counted row by row over the valid rows. A pair is x, what the method normalises, and
 *
 *     xhat = (y - beta)/gamma         its output before gain and bias; NaN where gamma is 0
 *
 * of the same pass: batch statistics, dropout as in training, trained weights.
 */
#include "final_pairs.h"

#include <math.h>
#include <stdlib.h>

#include "run_record.h"
#include "statnet/rng.h"

/* Those of one site; x NULL where it is not recorded. */
typedef struct site_pairs {
    uint64_t key;
    int64_t count; /* 0 until its batch has come, then those of final_pairs */
    int64_t wanted;
    float *x, *y; /* [wanted]; owned */
    int32_t *feature;
    norm_watcher_fn *watcher; /* what the site had before */
    void *context;
    bool watched, want_input;
} site_pairs;

struct final_pairs {
    run_record *record;
    int64_t wanted;
    site_pairs *site; /* [sites of the model] */
};

static void take(site_pairs *p, const norm_view *o) {
    const norm_rows *rows = o->call->rows;
    const real *gamma = o->call->gamma, *beta = o->call->beta;
    const int64_t d = o->call->features;
    for (int64_t i = 0; i < p->wanted; i++) {
        const int64_t entry = (int64_t)(rng_at(p->key, (uint64_t)i) % (uint64_t)(rows->valid * d));
        const int64_t row = entry / d, k = entry % d;
        const int64_t at = (rows->index ? rows->index[row] : row) * d + k;
        const double g = (double)gamma[k], raised = (double)o->y[at] - (double)beta[k];
        p->x[i] = (float)o->x[at];
        p->y[i] = g != 0 ? (float)(raised / g) : NAN;
        p->feature[i] = (int32_t)k;
    }
    p->count = p->wanted;
}

static void watch_pass(void *context, const norm_view *o) {
    site_pairs *p = context;
    const norm_rows *rows = o->call->rows; /* x is missing where memory is: the tape tells */
    if (rows->mode == NORM_BATCH && rows->valid > 0 && p->count == 0 && o->x) take(p, o);
    if (p->watched && p->watcher) p->watcher(p->context, o);
}

/* -- watching -------------------------------------------------------------------------------- */

static bool reserve(site_pairs *p, int64_t wanted) {
    const size_t n = (size_t)wanted;
    p->wanted = wanted;
    p->x = malloc(n * sizeof *p->x);
    p->y = malloc(n * sizeof *p->y);
    p->feature = malloc(n * sizeof *p->feature);
    return p->x && p->y && p->feature;
}

static void watch(site_pairs *p, norm_site *s) {
    p->watcher = s->forward_watcher, p->context = s->watcher_context;
    p->watched = s->watch_frozen, p->want_input = s->want_input;
    s->forward_watcher = watch_pass, s->watcher_context = p;
    s->watch_frozen = s->want_input = true;
}

static void unwatch(const site_pairs *p, norm_site *s) {
    s->forward_watcher = p->watcher, s->watcher_context = p->context;
    s->watch_frozen = p->watched, s->want_input = p->want_input;
}

static bool is_recorded(const final_pairs *f, int i) {
    return hooks_site(f->record->hooks, i) >= 0;
}

static sr_status watch_sites(final_pairs *f, uint64_t seed, sr_failure *why) {
    const rng root = rng_create(seed),
              random = rng_split(&root, UINT64_C(0x7061697273)); /* "pairs" */
    const model *m = f->record->model;
    for (int i = 0; i < m->sites; i++)
        if (is_recorded(f, i) && !reserve(&f->site[i], f->wanted))
            return sr_fail(why, SR_MEMORY, "out of memory for %lld pairs of %s",
                           (long long)f->wanted, m->site[i]->name);
    for (int i = 0; i < m->sites; i++) {
        if (!is_recorded(f, i)) continue;
        f->site[i].key = rng_split(&random, (uint64_t)i).key;
        watch(&f->site[i], m->site[i]);
    }
    return SR_OK;
}

static void drop(final_pairs *f) {
    for (int i = 0; f->site && i < f->record->model->sites; i++)
        free(f->site[i].x), free(f->site[i].y), free(f->site[i].feature);
    free(f->site);
    free(f);
}

sr_status final_pairs_begin(run_record *r, int64_t pairs, uint64_t seed, final_pairs **made,
                            sr_failure *why) {
    *made = NULL;
    if (!r || !r->recorder || !r->hooks || pairs == 0) return SR_OK;
    final_pairs *f = calloc(1, sizeof *f);
    if (f) *f = (final_pairs){r, pairs, calloc((size_t)r->model->sites + 1, sizeof *f->site)};
    if (!f || !f->site)
        sr_fail(why, SR_MEMORY, "out of memory for pairs of %d sites", r->model->sites);
    if (f && f->site && watch_sites(f, seed, why) == SR_OK) {
        *made = f;
        return SR_OK;
    }
    if (f) drop(f);
    return why->status;
}

void final_pairs_put(const final_pairs *f) {
    for (int i = 0; f && i < f->record->model->sites; i++) {
        const site_pairs *p = &f->site[i];
        if (p->count == 0) continue;
        sr_put_pairs(f->record->recorder, hooks_site(f->record->hooks, i), p->x, p->y, p->feature);
    }
}

void final_pairs_end(final_pairs *f) {
    if (!f) return;
    for (int i = 0; i < f->record->model->sites; i++)
        if (f->site[i].x) unwatch(&f->site[i], f->record->model->site[i]);
    drop(f);
}
