/* gradient_sum.c -- adds the gradients of all shards over the ranks.
 *
 * The sum over the shards 0 .. S-1 is taken in a fixed tree,
 *
 *     sum[a, b) = sum[a, m) + sum[m, b),   m = a + the largest power of two below b - a
 *
 * so that its bytes do not depend on how many ranks the shards are spread over. A rank adds up the
 * branches that it has whole. Gradients travel in buckets, the last parameters first, as backward
 * passes finish them. Every rank sends its branches of each part of a bucket to the part's owner.
 * The owner adds them by the tree and sends the sum to all. Each number is sent and received twice
 * less once per rank, as in a ring.
 *
 * A bucket leaves when the backward pass has passed every node that uses its parameters.
 * Ranks begin exchanges in the order of buckets, so that they match.
 */
#include "train/gradient_sum.h"

#include <stdlib.h>

enum { BUCKET = 1 << 20 };

typedef enum { WAITING, SENT, RETURNING } bucket_state;

typedef struct bucket {
    int64_t first, length; /* range of a block */
    int64_t uses;          /* inputs of nodes that the backward pass has not passed */
    bucket_state state;
    ranks_transfer *transfer;
} bucket;

struct gradient_sum {
    ranks *ranks;
    params *params;
    int shards, first, own; /* this rank's shards: first .. first + own - 1 */
    int threads;
    int *parts;     /* [ranks] branches that each rank has whole */
    real **branch;  /* [own] scratch: rows of the bucket that leaves */
    bucket *bucket; /* [buckets], in the order of sending */
    int buckets, sent, returned;
    sr_failure failure; /* the first of an exchange that was begun in a backward pass */
};

/* -- the tree ---------------------------------------------------------------------------------- */

static int middle(int a, int b) {
    int half = 1;
    while (2 * half < b - a) half *= 2;
    return a + half;
}

static int owner(const gradient_sum *g, int shard) {
    const int world = ranks_count(g->ranks);
    int r = (int)((int64_t)shard * world / g->shards);
    while (gradient_shard_first(g->shards, world, r + 1) <= shard) r++;
    return r;
}

static void add_to(const gradient_sum *g, real *to, const real *from, int64_t count) {
#pragma omp parallel for num_threads(g->threads) schedule(static) if (count > 65536)
    for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

/* Branches [a, b) that one rank has whole, from the left; how many each rank has. */
static void count_branches(gradient_sum *g, int a, int b) {
    if (owner(g, a) == owner(g, b - 1)) {
        g->parts[owner(g, a)]++;
        return;
    }
    count_branches(g, a, middle(a, b));
    count_branches(g, middle(a, b), b);
}

static real *row_of(const gradient_sum *g, const bucket *k, int shard) {
    return params_block(g->params, shard - g->first) + k->first;
}

/* sum[a, b) of this rank's own shards, in the row of shard a. */
static void fold_own(const gradient_sum *g, const bucket *k, int a, int b) {
    if (b - a == 1) return;
    const int m = middle(a, b);
    fold_own(g, k, a, m);
    fold_own(g, k, m, b);
    add_to(g, row_of(g, k, a), row_of(g, k, m), k->length);
}

/* This rank's whole branches into branch[]; their number so far. */
static int gather_branches(const gradient_sum *g, const bucket *k, int a, int b, int found) {
    const int end = g->first + g->own;
    if (b <= g->first || a >= end) return found;
    if (a >= g->first && b <= end) {
        fold_own(g, k, a, b);
        g->branch[found] = row_of(g, k, a);
        return found + 1;
    }
    const int m = middle(a, b);
    return gather_branches(g, k, m, b, gather_branches(g, k, a, m, found));
}

/* sum[a, b) of an owner's part, from the branches of all ranks in order. *next: row of the next
   branch. Returns the row of the sum. */
static int fold_pieces(const gradient_sum *g, real *piece, int64_t width, int a, int b, int *next) {
    if (owner(g, a) == owner(g, b - 1)) return (*next)++;
    const int left = fold_pieces(g, piece, width, a, middle(a, b), next);
    const int right = fold_pieces(g, piece, width, middle(a, b), b, next);
    add_to(g, piece + left * width, piece + right * width, width);
    return left;
}

/* -- buckets ----------------------------------------------------------------------------------- */

static void give_back(gradient_sum *g, bucket *k) {
    int64_t width;
    int next = 0;
    if (ranks_finish(k->transfer, &g->failure) != SR_OK) return;
    real *piece = ranks_pieces(k->transfer, &width);
    fold_pieces(g, piece, width, 0, g->shards, &next);
    k->state = RETURNING;
    g->returned++;
    ranks_return_pieces(k->transfer, params_block(g->params, 0) + k->first, &g->failure);
}

/* Sends and returns buckets without waiting. */
static void advance(gradient_sum *g) {
    while (g->failure.status == SR_OK && g->sent < g->buckets) {
        bucket *k = &g->bucket[g->sent];
        if (k->state != WAITING || k->uses > 0) break;
        gather_branches(g, k, 0, g->shards, 0);
        k->transfer = ranks_send_pieces(g->ranks, g->parts, g->branch, k->length, &g->failure);
        k->state = SENT;
        g->sent++;
    }
    while (g->failure.status == SR_OK && g->returned < g->sent &&
           ranks_pieces_here(g->bucket[g->returned].transfer))
        give_back(g, &g->bucket[g->returned]);
}

/* -- watching ---------------------------------------------------------------------------------- */

/* The bucket of a parameter; NULL for any other tensor. */
static bucket *bucket_of(const gradient_sum *g, const tensor *x) {
    const params *p = g->params;
    const real *block = params_block(p, g->own - 1); /* in use: the last shard's */
    if (!x || x->grad < block || x->grad >= block + p->block_length) return NULL;
    int low = 0, high = g->buckets - 1;
    while (low < high) { /* they descend */
        const int m = (low + high) / 2;
        if (g->bucket[m].first <= x->grad - block)
            high = m;
        else
            low = m + 1;
    }
    return &g->bucket[low];
}

static void count_uses(const gradient_sum *g, const tape_node *n, int64_t change) {
    for (int i = 0; i < NODE_INPUTS && n->in[i]; i++) {
        bucket *k = bucket_of(g, n->in[i]);
        if (k) k->uses += change;
    }
}

static void passed(void *context, const tape_node *n) {
    gradient_sum *g = context;
    count_uses(g, n, -1);
    advance(g);
}

void gradient_sum_watch(gradient_sum *g, tape *t) {
    for (const tape_node *n = t->last; n; n = n->before) count_uses(g, n, 1);
    t->passed = passed;
    t->passed_context = g;
}

sr_status gradient_sum_finish(gradient_sum *g, tape *t, sr_failure *why) {
    t->passed = NULL;
    for (int i = 0; i < g->buckets; i++) g->bucket[i].uses = 0; /* also of interrupted passes */
    advance(g);
    while (g->failure.status == SR_OK && g->returned < g->buckets)
        give_back(g, &g->bucket[g->returned]);
    for (int i = 0; i < g->buckets; i++) {
        bucket *k = &g->bucket[i];
        if (k->transfer && g->failure.status == SR_OK) ranks_finish(k->transfer, &g->failure);
        ranks_transfer_free(k->transfer);
        k->transfer = NULL;
        k->state = WAITING;
    }
    g->sent = g->returned = 0;
    params_use_block(g->params, 0);
    if (g->failure.status == SR_OK) return SR_OK;
    return sr_fail(why, g->failure.status, "%s", g->failure.text);
}

/* -- making ------------------------------------------------------------------------------------ */

/* From the last parameter to the first, each bucket of BUCKET numbers or one parameter at least. */
static void make_buckets(gradient_sum *g) {
    const params *p = g->params;
    int64_t end = p->block_length;
    g->buckets = 0;
    for (int i = p->count; i-- > 0;) {
        const int64_t first = p->item[i]->t.grad - params_block(p, 0);
        if (i > 0 && end - first < BUCKET) continue;
        g->bucket[g->buckets++] = (bucket){.first = first, .length = end - first};
        end = first;
    }
}

gradient_sum *gradient_sum_create(ranks *k, params *p, int shards, int threads, sr_failure *why) {
    const int world = ranks_count(k), rank = ranks_rank(k);
    const int first = gradient_shard_first(shards, world, rank);
    const int own = gradient_shard_first(shards, world, rank + 1) - first;
    gradient_sum *g = calloc(1, sizeof *g);
    if (g)
        *g = (gradient_sum){.ranks = k,
                            .params = p,
                            .shards = shards,
                            .threads = threads,
                            .first = first,
                            .own = own,
                            .parts = calloc((size_t)world, sizeof *g->parts),
                            .branch = calloc((size_t)own + 1, sizeof *g->branch),
                            .bucket = calloc((size_t)p->count + 1, sizeof *g->bucket)};
    if (!g || !g->parts || !g->branch || !g->bucket) {
        sr_fail(why, SR_MEMORY, "out of memory for sums of gradients");
    } else if (params_blocks(p, own, why) == SR_OK) {
        make_buckets(g);
        count_branches(g, 0, shards);
        return g;
    }
    gradient_sum_free(g);
    return NULL;
}

void gradient_sum_free(gradient_sum *g) {
    if (!g) return;
    free(g->parts);
    free(g->branch);
    free(g->bucket);
    free(g);
}
