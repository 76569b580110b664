/* shards.c -- trains on the shards of a batch and keeps the running statistics of each.
 *
 * Every batch is cut into S shards (--shards; batch/batch_shard.c). Rank r passes the shards
 * gradient_shard_first(r) .. one after the other, each with separate statistics, running statistics
 * and gradients. The result depends on S, not on the ranks. Gradients of the summed loss are added
 * over all shards (gradient_sum.c) and divided by the tokens of the batch. Without batch statistics
 * the update equals the whole batch's.
 *
 * With --sync-norm each rank has one shard. Batch statistics cover all rows, and running statistics
 * are equal on all ranks. A rank without rows passes a sample that does not count.
 *
 * After each step, ranks exchange losses and signals; the first rank adds whether a checkpoint is
 * due. So all ranks decide the same.
 */
#include "train/shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "base/program/progress.h"

/* A running value of the model or of an observer: 8-byte numbers. The running position encoding
 * belongs to the first shard alone. */
typedef struct state_slot {
    void *value;
    int64_t words;
} state_slot;

struct shards {
    gradient_sum *sum;    /* NULL: one shard */
    int first, own, most; /* this rank's; the most that any has */
    bool sync;
    state_slot *place; /* [places] where the layers keep running values */
    int places;
    int64_t capacity;
    int64_t words;  /* words of all slots */
    uint64_t *kept; /* [own, words] of waiting shards; NULL: own is 1 */
    int live;       /* whose are in their places */
    int *firsts;    /* [ranks + 1] first shard of each rank */
    uint64_t *all;  /* [shards, words] for a checkpoint; NULL otherwise */
    double *told;   /* messages of the ranks, [ranks, most + TOLD] */
    bool stop, due; /* received */
};

enum { TOLD_STOP, TOLD_DUE, TOLD };

/* -- running values ---------------------------------------------------------------------------- */

static bool is_running(const state_item *item) {
    const size_t length = strlen(item->name), tail = sizeof ".calls" - 1;
    if (item->kind == STATE_RUNNING) return true;
    if (item->kind == STATE_OBSERVER) return !strstr(item->name, ".observed.position");
    return length > tail && !strcmp(item->name + length - tail, ".calls");
}

static sr_status add_place(void *context, const state_item *item, sr_failure *why) {
    struct shards *s = context;
    if (!is_running(item)) return SR_OK;
    if (!vector_reserve(&s->place, &s->capacity, s->places + 1, sizeof *s->place))
        return sr_fail(why, SR_MEMORY, "out of memory for running values");
    const int64_t words = npz_count(&item->array);
    s->place[s->places++] = (state_slot){item->array.data, words};
    s->words += words;
    return SR_OK;
}

static void copy_out(const struct shards *s, uint64_t *to) {
    for (int i = 0; i < s->places; to += s->place[i++].words)
        memcpy(to, s->place[i].value, (size_t)s->place[i].words * sizeof *to);
}

static void copy_in(const struct shards *s, const uint64_t *from) {
    for (int i = 0; i < s->places; from += s->place[i++].words)
        memcpy(s->place[i].value, from, (size_t)s->place[i].words * sizeof *from);
}

void shards_enter(trainer *r, int i) {
    struct shards *s = r->sharing;
    run_record_enter(r->record, i);
    if (s->sum) params_use_block(&r->model->params, i);
    if (!s->kept || s->live == i) return;
    copy_out(s, s->kept + s->live * s->words);
    copy_in(s, s->kept + i * s->words);
    s->live = i;
}

/* How many a rank has. */
static int shards_at(const struct shards *s, int rank) {
    return s->firsts[rank + 1] - s->firsts[rank];
}

/* -- opening ----------------------------------------------------------------------------------- */

static sr_status check(const trainer *r, sr_failure *why) {
    const int world = ranks_count(r->ranks);
    if (r->shards > 1 && r->memory.rows > 0)
        return sr_fail(
            why, SR_USAGE,
            "%s carries memory from batch to batch: its batches cannot be split into shards",
            r->config->model.name);
    if (world > r->shards) {
        sr_fail(why, SR_USAGE, "%d ranks, but batches of %d shard%s", world, r->shards,
                r->shards == 1 ? "" : "s");
        sr_hint(why, "--shards %d, or fewer ranks", world);
        return SR_USAGE;
    }
    if (!r->config->sync_norm) return SR_OK;
    if (r->shards != world)
        return sr_fail(why, SR_USAGE, "--sync-norm: %d shards need %d ranks, there are %d",
                       r->shards, r->shards, world);
    for (int i = 0; i < r->model->sites; i++) {
        const norm_method *m = r->model->site[i]->method;
        if (m->synchronises || strcmp(m->axis, "batch") != 0) continue;
        sr_fail(why, SR_USAGE, "--sync-norm: %s of site %s cannot be synchronized", m->name,
                r->model->site[i]->name);
        char names[128] = "";
        for (int k = 0; norm_at(k); k++) {
            const size_t used = strlen(names);
            if (norm_at(k)->synchronises)
                snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                         norm_at(k)->name);
        }
        sr_hint(why, "use one of %s", names);
        return SR_USAGE;
    }
    return SR_OK;
}

sr_status shards_open(trainer *r, sr_failure *why) {
    const int world = ranks_count(r->ranks), rank = ranks_rank(r->ranks);
    struct shards *s = r->sharing = calloc(1, sizeof *s);
    if (!s) return sr_fail(why, SR_MEMORY, "out of memory for shards");
    const sr_status status = check(r, why);
    if (status != SR_OK) return status;
    s->sync = r->config->sync_norm && world > 1;
    s->firsts = calloc((size_t)world + 1, sizeof *s->firsts);
    if (!s->firsts) return sr_fail(why, SR_MEMORY, "out of memory for %d ranks", world);
    for (int k = 0; k <= world; k++) s->firsts[k] = gradient_shard_first(r->shards, world, k);
    for (int k = 0; k < world; k++) s->most = shards_at(s, k) > s->most ? shards_at(s, k) : s->most;
    s->first = s->firsts[rank];
    s->own = shards_at(s, rank);
    s->told = calloc((size_t)(world * (s->most + TOLD)), sizeof *s->told);
    if (!s->told) return sr_fail(why, SR_MEMORY, "out of memory for %d ranks", world);
    if (r->shards == 1) return SR_OK;
    s->sum = gradient_sum_create(r->ranks, &r->model->params, r->shards, r->threads, why);
    return s->sum ? SR_OK : why->status;
}

sr_status shards_recorded(trainer *r, sr_failure *why) {
    struct shards *s = r->sharing;
    if (r->shards == 1 || s->sync) return SR_OK;
    sr_status status = train_state_each(r, add_place, s, why);
    if (status != SR_OK || s->own == 1) return status;
    s->kept = malloc((size_t)(s->own * s->words + 1) * sizeof *s->kept);
    if (!s->kept) return sr_fail(why, SR_MEMORY, "out of memory for %d shards", s->own);
    for (int i = 0; i < s->own; i++) copy_out(s, s->kept + i * s->words);
    return SR_OK;
}

int shards_of_rank(const trainer *r) {
    return r->sharing->own;
}

void shards_close(trainer *r) {
    struct shards *s = r->sharing;
    if (!s) return;
    gradient_sum_free(s->sum);
    free(s->place);
    free(s->kept);
    free(s->all);
    free(s->told);
    free(s->firsts);
    free(s);
    r->sharing = NULL;
}

/* -- a step ------------------------------------------------------------------------------------ */

static sr_status gather_for_norms(void *context, double *all, int64_t width) {
    trainer *r = context;
    return ranks_allgather(r->ranks, all, width, &r->exchange_failed);
}

/* Shard `number` of the batch; sets up its pass. */
static batch take_shard(const trainer *r, const batch *b, int number, pass *p) {
    const struct shards *s = r->sharing;
    const int64_t first = batch_shard_first(b, number, r->shards);
    const int64_t count = batch_shard_first(b, number + 1, r->shards) - first;
    p->tokens = b->tokens;
    p->absent = s->sync && count == 0;
    if (s->sync) {
        p->gather = gather_for_norms;
        p->gather_context = (void *)(uintptr_t)r;
        p->rank = ranks_rank(r->ranks), p->ranks = ranks_count(r->ranks);
    }
    r->tape->sample_first = first;
    r->tape->samples = p->absent ? 1 : count;
    return p->absent ? batch_slice(b, 0, 1) : batch_slice(b, first, count);
}

batch shards_own(const trainer *r, const batch *b, int i, pass *p) {
    return r->shards == 1 ? *b : take_shard(r, b, r->sharing->first + i, p);
}

static double own_clock_says(const trainer *r) {
    const train_interval *every = &r->checkpoint_every;
    return every->unit == EVERY_SECONDS &&
           progress_clock() - r->checkpoint_clock >= (double)every->count;
}

/* *loss: the sum over all shards in their order. */
static sr_status tell(trainer *r, double *loss, sr_failure *why) {
    struct shards *s = r->sharing;
    const int world = ranks_count(r->ranks), width = s->most + TOLD;
    double *own = s->told + ranks_rank(r->ranks) * width + s->most;
    own[TOLD_STOP] = r->events->stop && r->events->stop(r->events->context);
    own[TOLD_DUE] = own_clock_says(r);
    if (ranks_allgather(r->ranks, s->told, width, why) != SR_OK) return why->status;
    s->due = s->told[s->most + TOLD_DUE] != 0;
    *loss = 0;
    for (int k = 0; k < world; k++) {
        s->stop |= s->told[k * width + s->most + TOLD_STOP] != 0;
        for (int i = 0; i < shards_at(s, k); i++) *loss += s->told[k * width + i];
    }
    return SR_OK;
}

bool shards_stop(const trainer *r) {
    return r->sharing && r->sharing->stop;
}

bool shards_due(const trainer *r) {
    return ranks_count(r->ranks) == 1 ? own_clock_says(r) != 0 : r->sharing->due;
}

run_exchange shards_exchange(trainer *r) {
    return (run_exchange){.gather = gather_for_norms,
                          .context = r,
                          .rank = ranks_rank(r->ranks),
                          .ranks = ranks_count(r->ranks),
                          .first = r->sharing->firsts};
}

sr_status shards_pass(trainer *r, const batch *b, bool update, double *loss, sr_failure *why) {
    struct shards *s = r->sharing;
    double *own = s->told + ranks_rank(r->ranks) * (s->most + TOLD);
    sr_status status = SR_OK;
    for (int i = 0; i < s->own && status == SR_OK; i++) {
        pass p = {.tape = r->tape, .mode = NORM_TRAIN, .memory = &r->memory};
        const batch part = shards_own(r, b, i, &p);
        p.batch = &part;
        r->leaving = update && i == s->own - 1 ? s->sum : NULL;
        own[i] = 0;
        shards_enter(r, i);
        if (part.count > 0) status = trainer_pass(r, &p, &own[i], why);
    }
    r->leaving = NULL;
    r->tape->samples = r->tape->sample_first = 0;
    if (status != SR_OK) return status;
    shards_enter(r, 0);
    if (update && s->sum) status = gradient_sum_finish(s->sum, r->tape, why);
    if (status != SR_OK) return status;
    const run_exchange x = shards_exchange(r);
    status = run_record_exchange(r->record, &x, why);
    if (r->exchange_failed.status != SR_OK)
        return sr_fail(why, r->exchange_failed.status, "%s", r->exchange_failed.text);
    return status == SR_OK ? tell(r, loss, why) : status;
}

/* -- checkpoints ------------------------------------------------------------------------------- */

static bool has_replicas(const trainer *r) {
    return r->shards > 1 && !r->sharing->sync;
}

sr_status shards_reserve(trainer *r, sr_failure *why) {
    struct shards *s = r->sharing;
    if (!has_replicas(r)) return SR_OK;
    s->all = malloc((size_t)(r->shards * s->words + 1) * sizeof *s->all);
    if (!s->all) return sr_fail(why, SR_MEMORY, "out of memory for %d shards", r->shards);
    for (int k = 0; k < r->shards; k++) copy_out(s, s->all + k * s->words);
    return SR_OK;
}

sr_status shards_keep_replicas(trainer *r, sr_failure *why) {
    struct shards *s = r->sharing;
    sr_status status = shards_reserve(r, why);
    if (!has_replicas(r) || status != SR_OK) return status;
    const int64_t width = s->most * s->words;
    uint64_t *rows = calloc((size_t)(ranks_count(r->ranks) * width + 1), sizeof *rows);
    if (!rows) return sr_fail(why, SR_MEMORY, "out of memory for %d shards", r->shards);
    /* Copies this rank's shards into rows [own, words]; the live one comes from the layers. */
    uint64_t *to = rows + ranks_rank(r->ranks) * width;
    if (s->kept) memcpy(to, s->kept, (size_t)(s->own * s->words) * sizeof *to);
    copy_out(s, to + s->live * s->words);
    status = ranks_allgather(r->ranks, (double *)(void *)rows, width, why);
    for (int k = 0; status == SR_OK && k < ranks_count(r->ranks); k++)
        memcpy(s->all + s->firsts[k] * s->words, rows + k * width,
               (size_t)(shards_at(s, k) * s->words) * sizeof *rows);
    free(rows);
    return status;
}

void shards_take_replicas(trainer *r) {
    struct shards *s = r->sharing;
    if (!s->all) return;
    const uint64_t *own = s->all + s->first * s->words;
    if (s->kept) memcpy(s->kept, own, (size_t)(s->own * s->words) * sizeof *own);
    copy_in(s, own + s->live * s->words);
}

void shards_forget_replicas(trainer *r) {
    free(r->sharing->all);
    r->sharing->all = NULL;
}

/* Visits the state of a shard under the names of a replica. */
typedef struct replica_walk {
    state_visit_fn *visitor;
    void *context;
    const struct shards *shards;
    int shard, place;
    uint64_t *at;
} replica_walk;

static sr_status visit_replica(void *context, const state_item *item, sr_failure *why) {
    replica_walk *w = context;
    char name[3 * PARAM_NAME];
    if (!is_running(item)) return SR_OK;
    npz_array a = item->array;
    a.data = w->at;
    w->at += npz_count(&a);
    snprintf(name, sizeof name, "%s@%d", item->name, w->shard);
    return w->visitor(w->context, &(state_item){STATE_REPLICA, name, a}, why);
}

sr_status shards_each_replica(trainer *r, state_visit_fn *visitor, void *context, sr_failure *why) {
    const struct shards *s = r->sharing;
    sr_status status = SR_OK;
    for (int k = 1; s->all && k < r->shards && status == SR_OK; k++) {
        replica_walk w = {.visitor = visitor, .context = context, .shard = k};
        w.at = s->all + k * s->words;
        status = train_state_each(r, visit_replica, &w, why);
    }
    return status;
}
