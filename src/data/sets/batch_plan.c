/* batch_plan.c -- batches of sentence pairs, or of sentences, at most max_tokens each.
 *
 * Order: a random permutation; unless batching is random then stably sorted by target length, then
 * stably by source length. The length of a pair is the longer of its sides. Pairs are taken in this
 * order. The open batch is closed when the candidate would take it over max_tokens. These are
 * padded positions, (count + 1) * longest, or (valid_only) tokens of either side. Closing cuts a
 * batch to a multiple of PLAN_MULTIPLE if it has that many; the rest starts the next batch. Smaller
 * batches and the last one stay. With rule.pairs, every batch but the last has that many pairs.
 *
 * Deviation from fairseq: after closing, the rest and the candidate are tested again. So max_tokens
 * holds even where the candidate is much longer.
 */
#include "data/sets/batch_plan.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int64_t longer(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Stable counting sort of pair[] by length. scratch [pairs], place [longest + 2]. */
static void sort_by(const int64_t *length, int64_t longest, int64_t *pair, int64_t pairs,
                    int64_t *scratch, int64_t *place) {
    for (int64_t n = 0; n <= longest + 1; n++) place[n] = 0;
    for (int64_t i = 0; i < pairs; i++) place[length[pair[i]] + 1]++;
    for (int64_t n = 0; n <= longest; n++) place[n + 1] += place[n];
    for (int64_t i = 0; i < pairs; i++) scratch[place[length[pair[i]]]++] = pair[i];
    for (int64_t i = 0; i < pairs; i++) pair[i] = scratch[i];
}

static sr_status sort_pairs(batch_plan *p, const int64_t *source_length,
                            const int64_t *target_length, int64_t pairs, batching order,
                            rng random) {
    int64_t longest = 0;
    for (int64_t i = 0; i < pairs; i++)
        longest = longer(longest, longer(source_length[i], target_length[i]));
    int64_t *scratch = calloc((size_t)pairs + 1, sizeof *scratch);
    int64_t *place = calloc((size_t)longest + 2, sizeof *place);
    if (scratch && place) {
        for (int64_t i = 0; i < pairs; i++) p->pair[i] = i;
        rng_shuffle(&random, p->pair, pairs);
    }
    if (scratch && place && order != BATCHING_RANDOM) {
        sort_by(target_length, longest, p->pair, pairs, scratch, place);
        sort_by(source_length, longest, p->pair, pairs, scratch, place);
    }
    bool done = scratch && place;
    free(scratch);
    free(place);
    return done ? SR_OK : SR_MEMORY;
}

/* Contents of a batch. */
typedef struct load {
    int64_t pairs, longest, source, target;
} load;

static load load_with(load l, int64_t source, int64_t target) {
    return (load){l.pairs + 1, longer(l.longest, longer(source, target)), l.source + source,
                  l.target + target};
}

static void cut_batches(batch_plan *p, const int64_t *source_length, const int64_t *target_length,
                        int64_t pairs, const batch_rule *rule) {
    int64_t start = 0; /* first pair of the open batch, pair[start .. i - 1] */
    const int64_t most = rule->max_tokens;
    load open = {0};
    p->count = 0;
    p->first[0] = 0;
    for (int64_t i = 0; i < pairs; i++) {
        const int64_t source = source_length[p->pair[i]], target = target_length[p->pair[i]];
        while (i > start) {
            const load with = load_with(open, source, target);
            const bool fits = rule->pairs > 0    ? with.pairs <= rule->pairs
                              : rule->valid_only ? longer(with.source, with.target) <= most
                                                 : with.longest <= most / with.pairs;
            if (fits) break;
            const int64_t count = i - start;
            const bool all = rule->pairs > 0 || count < PLAN_MULTIPLE;
            start += all ? count : count - count % PLAN_MULTIPLE;
            p->first[++p->count] = start;
            open = (load){0};
            for (int64_t j = start; j < i; j++)
                open = load_with(open, source_length[p->pair[j]], target_length[p->pair[j]]);
        }
        open = load_with(open, source, target);
    }
    if (pairs > start) p->first[++p->count] = pairs;
}

batching batching_named(const char *word) {
    if (!strcmp(word, "random")) return BATCHING_RANDOM;
    return !strcmp(word, "sorted") ? BATCHING_SORTED : BATCHING_BUCKETED;
}

sr_status batch_plan_make(batch_plan *p, const int64_t *source_length, const int64_t *target_length,
                          int64_t pairs, const batch_rule *rule, rng random, sr_failure *why) {
    *p = (batch_plan){0};
    p->first = malloc((size_t)(pairs + 1) * sizeof *p->first);
    p->pair = malloc((size_t)(pairs + 1) * sizeof *p->pair);
    sr_status status = p->first && p->pair ? SR_OK : SR_MEMORY;
    if (status == SR_OK)
        status = sort_pairs(p, source_length, target_length, pairs, rule->batching, random);
    if (status != SR_OK) {
        batch_plan_free(p);
        return sr_fail(why, status, "out of memory for batches of %lld pairs", (long long)pairs);
    }
    cut_batches(p, source_length, target_length, pairs, rule);
    return SR_OK;
}

void batch_plan_free(batch_plan *p) {
    free(p->first);
    free(p->pair);
    *p = (batch_plan){0};
}
