/* bpe_pairs.c -- counts the pairs of symbols and returns the most frequent one.
 *
 * After the statistics of subword-nmt 0.3.8, Sennrich, Haddow and Birch 2016. It sets rare pairs
 * aside from time to time, so that the search for the greatest count is cheap. It corrects counts
 * around each merge. Both change the result. If two merges form one symbol, its pairs are counted
 * too high. Counts after a pair was set aside replace the earlier ones. The same is done here at
 * the same moments, but the search uses a heap:
 *   threshold = greatest count / 10 at first
 *   every 100 merges: pairs of count < threshold are set aside
 *   greatest count < threshold: all pairs are set aside and taken back, and
 *   threshold = greatest count * merges / (merges + 10000)
 * A heap entry is never smaller than its pair's count; a greater one is corrected at the top. */
#include "text/bpe/bpe_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "text/bpe/bpe_internal.h"

enum { MERGES_BETWEEN = 100 };

void bpe_pairs_free(bpe_pairs *p) {
    map_free(&p->key);
    map_free(&p->at);
    free(p->pair);
    free(p->place);
    free(p->active);
    free(p->touched);
    free(p->queued);
}

/* -- order: by count, left symbol, right symbol ------------------------------------------------ */

static int compare_symbols(const map *t, int32_t a, int32_t b) {
    size_t length_a, length_b;
    const char *x = map_text(t, a, &length_a), *y = map_text(t, b, &length_b);
    int order = memcmp(x, y, length_a < length_b ? length_a : length_b);
    return order ? order : (length_a > length_b) - (length_a < length_b);
}

static bool is_less(const bpe_pairs *p, bpe_queued a, bpe_queued b) {
    if (a.count != b.count) return a.count < b.count;
    symbol_pair x = bpe_pair_of(&p->key, a.pair), y = bpe_pair_of(&p->key, b.pair);
    if (x.left != y.left) return compare_symbols(p->symbol, x.left, y.left) < 0;
    return compare_symbols(p->symbol, x.right, y.right) < 0;
}

/* -- heap -------------------------------------------------------------------------------------- */

static void sink(bpe_pairs *p, int64_t i) {
    bpe_queued entry = p->queued[i];
    for (int64_t child; (child = 2 * i + 1) < p->queued_count; i = child) {
        if (child + 1 < p->queued_count && is_less(p, p->queued[child], p->queued[child + 1]))
            child++;
        if (!is_less(p, entry, p->queued[child])) break;
        p->queued[i] = p->queued[child];
    }
    p->queued[i] = entry;
}

static bool push(bpe_pairs *p, int32_t pair) {
    if (!vector_reserve(&p->queued, &p->queued_capacity, p->queued_count + 1, sizeof *p->queued))
        return false;
    bpe_queued entry = {p->pair[pair].count, pair};
    p->pair[pair].queued = entry.count;
    int64_t i = p->queued_count++;
    for (int64_t parent; i > 0 && is_less(p, p->queued[parent = (i - 1) / 2], entry); i = parent)
        p->queued[i] = p->queued[parent];
    p->queued[i] = entry;
    return true;
}

/* The greatest active pair; -1: none. */
static int32_t top(bpe_pairs *p) {
    while (p->queued_count) {
        bpe_queued *first = &p->queued[0];
        bpe_pair *pair = &p->pair[first->pair];
        const bool current = first->count == pair->queued; /* else a greater entry exists or did */
        if (current && pair->active && first->count <= pair->count) return first->pair;
        if (current && pair->active && pair->count >= 0) { /* now smaller */
            first->count = pair->queued = pair->count;
        } else {
            if (current) pair->queued = -1;
            p->queued[0] = p->queued[--p->queued_count];
        }
        if (p->queued_count) sink(p, 0);
    }
    return -1;
}

/* -- counts ------------------------------------------------------------------------------------ */

static bool note(int32_t **list, int64_t *capacity, int64_t *count, int32_t pair) {
    if (!vector_reserve(list, capacity, *count + 1, sizeof **list)) return false;
    (*list)[(*count)++] = pair;
    return true;
}

bool bpe_pairs_change(bpe_pairs *p, int32_t left, int32_t right, int32_t word, int32_t times,
                      int64_t count) {
    if (!vector_reserve(&p->pair, &p->pair_capacity, p->key.count + 1, sizeof *p->pair) ||
        !vector_reserve(&p->place, &p->place_capacity, p->at.count + 1, sizeof *p->place))
        return false;
    int64_t before = p->key.count;
    const int32_t number = map_add_number(&p->key, bpe_key(left, right));
    if (number < 0) return false;
    bpe_pair *pair = &p->pair[number];
    if (p->key.count > before) *pair = (bpe_pair){.queued = -1, .first = -1};
    if (!pair->active) {
        if (!note(&p->active, &p->active_capacity, &p->active_count, number)) return false;
        pair->active = true;
        pair->count = 0;
    }
    if (!pair->touched) {
        if (!note(&p->touched, &p->touched_capacity, &p->touched_count, number)) return false;
        pair->touched = true;
    }
    pair->count += times * count;
    before = p->at.count;
    const int32_t place = map_add_number(&p->at, bpe_key(number, word));
    if (place < 0) return false;
    if (p->at.count > before) {
        p->place[place] = (bpe_place){.word = word, .next = pair->first};
        pair->first = place;
    }
    p->place[place].times += times;
    return true;
}

/* Sets aside the active pairs below the threshold. */
static void set_aside(bpe_pairs *p) {
    int64_t kept = 0;
    for (int64_t i = 0; i < p->active_count; i++) {
        bpe_pair *pair = &p->pair[p->active[i]];
        pair->active = (double)pair->count >= p->threshold;
        if (pair->active)
            p->active[kept++] = p->active[i];
        else if (pair->count < 0)
            pair->set_aside += pair->count;
        else
            pair->set_aside = pair->count;
    }
    p->active_count = kept;
}

/* The greatest active pair without the heap. */
static int32_t greatest(const bpe_pairs *p) {
    bpe_queued best = {0, -1};
    for (int64_t i = 0; i < p->active_count; i++) {
        bpe_queued other = {p->pair[p->active[i]].count, p->active[i]};
        if (best.pair < 0 || is_less(p, best, other)) best = other;
    }
    return best.pair;
}

/* No active pair is below 0: at first pairs are only counted, later a threshold kept them. */
static bool queue_active(bpe_pairs *p) {
    p->queued_count = 0;
    for (int64_t i = 0; i < p->key.count; i++) p->pair[i].queued = -1;
    for (int64_t i = 0; i < p->active_count; i++)
        if (!push(p, p->active[i])) return false;
    return true;
}

static bool take_back(bpe_pairs *p, int64_t merges) {
    set_aside(p);
    p->active_count = 0;
    for (int32_t i = 0; i < p->key.count; i++) {
        if (!note(&p->active, &p->active_capacity, &p->active_count, i)) return false;
        p->pair[i].active = true;
        p->pair[i].count = p->pair[i].set_aside;
    }
    const int32_t best = greatest(p); /* there is one, since some were merged */
    p->threshold = (double)p->pair[best].count * (double)merges / ((double)merges + 10000.0);
    set_aside(p);
    return queue_active(p);
}

bool bpe_pairs_begin(bpe_pairs *p) {
    for (int64_t i = 0; i < p->touched_count; i++) {
        bpe_pair *pair = &p->pair[p->touched[i]];
        pair->touched = false;
        pair->set_aside = pair->count;
    }
    p->touched_count = 0;
    int32_t best = greatest(p);
    p->threshold = best < 0 ? 0 : (double)p->pair[best].count / 10;
    return queue_active(p);
}

bool bpe_pairs_best(bpe_pairs *p, int64_t merges, int32_t *best, int64_t *count) {
    *best = top(p);
    if (merges && (*best < 0 || (double)p->pair[*best].count < p->threshold)) {
        if (!take_back(p, merges)) return false;
        *best = top(p);
    }
    *count = *best < 0 ? 0 : p->pair[*best].count;
    return true;
}

void bpe_pairs_forget(bpe_pairs *p, int32_t pair) {
    p->pair[pair].count = 0;
    for (int32_t i = p->pair[pair].first; i >= 0; i = p->place[i].next) p->place[i].times = 0;
}

bool bpe_pairs_settle(bpe_pairs *p, int32_t pair, int64_t merges) {
    p->pair[pair].count = 0;
    for (int64_t i = 0; i < p->touched_count; i++) {
        bpe_pair *changed = &p->pair[p->touched[i]]; /* active since then */
        changed->touched = false;
        if (changed->count > changed->queued && !push(p, p->touched[i])) return false;
    }
    p->touched_count = 0;
    if (merges % MERGES_BETWEEN == 0) set_aside(p);
    return true;
}
