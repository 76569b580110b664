/* final_pairs.c -- pairs of a normalization's input and output in the final pass. Figure 2 of Zhu
 * et al., Transformers without Normalization, CVPR 2025 (arXiv 2503.10622) shows such pairs.
 *
 * The first batch with a valid row at a site gives K random entries of its [n, d], drawn with
 * replacement. Entry i of a site is number
 *
 *     rng_at(key, i) mod (n d)        key of the seed and of the site's number in the model
 *
 * counted row by row over the valid rows, shard by shard. A pair is x, the method's input, and
 *
 *     xhat = (y - beta)/gamma         its output before gain and bias; NaN where gamma is 0
 *
 * in the same pass: batch statistics (of the shard), dropout as in training, trained weights.
 *
 * n needs the last shard, when the tensors of the others are freed already. So a batch of shards
 * passes twice: the first pass counts rows, in the second every shard takes its entries.
 */
#include "observe/final_pairs.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "observe/run_record.h"
#include "observe/shard_gather.h"

/* Waiting: for a batch with valid rows. Drawing: that batch passes again. */
typedef enum { WAITING, DRAWING, DRAWN } pairs_state;

/* Pairs of one site; x NULL: not wanted. */
typedef struct site_pairs {
    final_pairs *owner;
    uint64_t key;
    pairs_state state;
    int64_t total;               /* valid rows of the batch */
    float *x, *y;                /* [wanted]; owned */
    int32_t *feature;            /* -1: another process has it, or not drawn */
    norm_hook_fn *previous_hook; /* the site's earlier hook */
    void *context;
    bool hook_in_batch_mode, want_input;
} site_pairs;

struct final_pairs {
    run_record *record;
    int64_t wanted;
    site_pairs *site; /* [sites of the model] */
    /* [own shards, sites] valid rows of the batch in a shard of this process; in all shards before
       it */
    double *rows;
    int64_t *before;
    bool watching;
};

/* Index of the passing shard and site in rows and before. */
static int64_t place_of(const site_pairs *p) {
    const run_record *r = p->owner->record;
    return r->number * r->model->sites + (p - p->owner->site);
}

/* Takes the pairs among the rows of this shard. */
static void take(site_pairs *p, const norm_view *o) {
    const norm_rows *rows = o->call->rows;
    const real *gamma = o->call->gamma, *beta = o->call->beta;
    const int64_t d = o->call->features, before = p->owner->before[place_of(p)];
    for (int64_t i = 0; i < p->owner->wanted; i++) {
        const int64_t entry = (int64_t)(rng_at(p->key, (uint64_t)i) % (uint64_t)(p->total * d));
        const int64_t row = entry / d - before, k = entry % d;
        if (row < 0 || row >= rows->valid) continue;
        const int64_t at = (rows->index ? rows->index[row] : row) * d + k;
        const double g = (double)gamma[k], raised = (double)o->y[at] - (double)beta[k];
        p->x[i] = (float)o->x[at];
        p->y[i] = g != 0 ? (float)(raised / g) : NAN;
        p->feature[i] = (int32_t)k;
    }
}

static void watch_pass(void *context, const norm_view *o) {
    site_pairs *p = context;
    const norm_rows *rows = o->call->rows;
    if (rows->mode != NORM_BATCH || rows->valid == 0) return;
    if (p->state == DRAWING) take(p, o);
    if (p->state != WAITING) return;
    p->owner->rows[place_of(p)] = (double)rows->valid;
    if (p->owner->record->shares > 1) return;
    p->total = rows->valid;
    take(p, o);
    p->state = DRAWN;
}

/* -- watching -------------------------------------------------------------------------------- */

static void unwatch(final_pairs *f) {
    for (int i = 0; f->watching && i < f->record->model->sites; i++) {
        const site_pairs *p = &f->site[i];
        norm_site *s = f->record->model->site[i];
        if (!p->x) continue;
        s->forward_hook = p->previous_hook, s->hook_context = p->context;
        s->hook_in_batch_mode = p->hook_in_batch_mode, s->want_input = p->want_input;
    }
    f->watching = false;
}

static sr_status watch_sites(final_pairs *f, uint64_t seed, sr_failure *why) {
    const rng root = rng_create(seed),
              random = rng_split(&root, UINT64_C(0x7061697273)); /* "pairs" */
    const model *m = f->record->model;
    for (int i = 0; i < m->sites; i++) {
        const size_t n = (size_t)f->wanted;
        site_pairs *p = &f->site[i];
        if (!hooks_watches(f->record->hooks, i)) continue;
        p->x = malloc(n * sizeof *p->x);
        p->y = malloc(n * sizeof *p->y);
        p->feature = malloc(n * sizeof *p->feature);
        if (!p->x || !p->y || !p->feature)
            return sr_fail(why, SR_MEMORY, "out of memory for %lld pairs of %s",
                           (long long)f->wanted, m->site[i]->name);
        for (size_t k = 0; k < n; k++) p->feature[k] = -1;
    }
    for (int i = 0; i < m->sites; i++) {
        f->site[i].owner = f;
        f->site[i].key = rng_split(&random, (uint64_t)i).key;
        if (!f->site[i].x) continue;
        site_pairs *p = &f->site[i];
        norm_site *s = m->site[i];
        p->previous_hook = s->forward_hook, p->context = s->hook_context;
        p->hook_in_batch_mode = s->hook_in_batch_mode, p->want_input = s->want_input;
        s->forward_hook = watch_pass, s->hook_context = p;
        s->hook_in_batch_mode = s->want_input = true;
    }
    f->watching = true;
    return SR_OK;
}

sr_status final_pairs_begin(run_record *r, int64_t pairs, uint64_t seed, final_pairs **made,
                            sr_failure *why) {
    *made = NULL;
    if (!r || !r->hooks || pairs == 0) return SR_OK;
    final_pairs *f = calloc(1, sizeof *f);
    const size_t sites = (size_t)r->model->sites, own = (size_t)r->own_shares;
    if (f)
        *f = (final_pairs){.record = r,
                           .wanted = pairs,
                           .site = calloc(sites + 1, sizeof *f->site),
                           .rows = calloc(own * sites + 1, sizeof *f->rows),
                           .before = calloc(own * sites + 1, sizeof *f->before)};
    if (!f || !f->site || !f->rows || !f->before)
        sr_fail(why, SR_MEMORY, "out of memory for pairs of %d sites", r->model->sites);
    else if (watch_sites(f, seed, why) == SR_OK)
        return *made = f, SR_OK;
    final_pairs_end(f);
    return why->status;
}

void final_pairs_end(final_pairs *f) {
    if (!f) return;
    unwatch(f);
    for (int i = 0; f->site && i < f->record->model->sites; i++)
        free(f->site[i].x), free(f->site[i].y), free(f->site[i].feature);
    free(f->site);
    free(f->rows);
    free(f->before);
    free(f);
}

/* -- a batch --------------------------------------------------------------------------------- */

bool final_pairs_wanted(const final_pairs *f) {
    for (int i = 0; f && i < f->record->model->sites; i++)
        if (f->site[i].x && f->site[i].state != DRAWN) return true;
    return false;
}

/* rows [shards, sites] of the batch, first: this process's first shard. False: no rows at this
   site. */
static bool begin_drawing(final_pairs *f, int i, const double *rows, int shares, int first) {
    const int sites = f->record->model->sites;
    int64_t before = 0;
    if (!f->site[i].x || f->site[i].state != WAITING) return false;
    for (int k = 0; k < shares; before += (int64_t)rows[k++ * sites + i])
        if (k >= first && k < first + f->record->own_shares)
            f->before[(k - first) * sites + i] = before;
    f->site[i].total = before;
    if (before > 0) f->site[i].state = DRAWING;
    return before > 0;
}

sr_status final_pairs_passed(final_pairs *f, const run_exchange *x, bool *again, sr_failure *why) {
    double *rows;
    bool drew = false;
    *again = false;
    if (!f || f->record->shares == 1) return SR_OK;
    const int sites = f->record->model->sites;
    for (int i = 0; i < sites; i++) {
        if (f->site[i].state != DRAWING) continue;
        f->site[i].state = DRAWN;
        drew = true;
    }
    if (drew) return SR_OK;
    sr_status status = shard_gather_shares(x, f->rows, sites, &rows, why);
    if (status != SR_OK) return status;
    for (int i = 0; i < sites; i++)
        *again |= begin_drawing(f, i, rows, shard_gather_count(x), x->first[x->rank]);
    for (int i = 0; i < f->record->own_shares * sites; i++) f->rows[i] = 0;
    free(rows);
    return SR_OK;
}

/* -- all processes --------------------------------------------------------------------------- */

enum { CHUNK = 4096, PARTS = 3 };

/* all [ranks, CHUNK, PARTS] */
static sr_status exchange_site(site_pairs *p, const run_exchange *x, double *all) {
    const int64_t wanted = p->owner->wanted, width = CHUNK * PARTS;
    sr_status status = SR_OK;
    for (int64_t i = 0; i < wanted && status == SR_OK; i += CHUNK) {
        const int64_t count = wanted - i < CHUNK ? wanted - i : CHUNK;
        double *to = all + x->rank * width;
        for (int64_t k = i; k < i + count; k++) {
            *to++ = (double)p->feature[k];
            *to++ = (double)p->x[k];
            *to++ = (double)p->y[k];
        }
        status = x->gather(x->context, all, width);
        for (int r = 0; r < x->ranks && status == SR_OK; r++) {
            const double *from = all + r * width;
            for (int64_t k = i; k < i + count; k++, from += PARTS) {
                if (from[0] < 0) continue; /* another process has it */
                p->feature[k] = (int32_t)from[0];
                p->x[k] = (float)from[1];
                p->y[k] = (float)from[2];
            }
        }
    }
    return status;
}

sr_status final_pairs_exchange(final_pairs *f, const run_exchange *x, sr_failure *why) {
    if (!f) return SR_OK;
    unwatch(f);
    if (x->ranks == 1) return SR_OK;
    double *all = calloc((size_t)x->ranks * CHUNK * PARTS, sizeof *all);
    if (!all) return sr_fail(why, SR_MEMORY, "out of memory for pairs of %d ranks", x->ranks);
    sr_status status = SR_OK;
    for (int i = 0; i < f->record->model->sites && status == SR_OK; i++)
        if (f->site[i].state == DRAWN) status = exchange_site(&f->site[i], x, all);
    free(all);
    return status;
}

void final_pairs_put(const final_pairs *f) {
    for (int i = 0; f && f->record->recorder && i < f->record->model->sites; i++) {
        const site_pairs *p = &f->site[i];
        if (p->state != DRAWN) continue;
        sr_put_pairs(f->record->recorder, hooks_site(f->record->hooks, i), p->x, p->y, p->feature);
    }
}
