/* final_pass.c -- forward passes after training, with frozen weights and running statistics, over
 * batches of the next epoch, with dropout.
 *
 * First the wanted pairs of input and output over all shards of a batch: every rank passes its own.
 * Then the discrepancy: the first rank passes the first shard alone; with --sync-norm every rank
 * passes its shard.
 */
#include <math.h>
#include <string.h>

#include "base/program/progress.h"
#include "train/shards.h"

/* The i-th of this rank's shards of batch number `index`. */
static sr_status frozen_shard(trainer *r, const batch *b, int64_t index, int i, model_memory *k,
                              sr_failure *why) {
    pass p = {.tape = r->tape, .mode = NORM_BATCH, .memory = k};
    r->tape->profiling = false;
    tape_reset(r->tape, rng_split(&r->random, (uint64_t)(r->result->steps + 1 + index)), true,
               false);
    const batch part = shards_own(r, b, i, &p);
    p.batch = &part;
    shards_enter(r, i);
    if (part.count == 0) return SR_OK;
    if (task_loss(r->task, &r->task_options, r->model, &p, NULL)) return SR_OK;
    const sr_failure *f = tape_failure(r->tape);
    if (r->exchange_failed.status != SR_OK) f = &r->exchange_failed;
    return sr_fail(why, f->status, "final pass: %s", f->text);
}

/* The first `shards` of this rank's. */
static sr_status frozen_pass(trainer *r, int64_t index, int shards, model_memory *k,
                             sr_failure *why) {
    batch b;
    sr_status status = data_batch(r->data, SPLIT_TRAIN, (int64_t)ceil(r->epoch), index, &b, why);
    for (int i = 0; i < shards && status == SR_OK; i++)
        status = frozen_shard(r, &b, index, i, k, why);
    shards_enter(r, 0);
    r->tape->samples = r->tape->sample_first = 0;
    return status;
}

static int64_t frozen_batches(const trainer *r) {
    const int64_t wanted = r->config->final_batches;
    return wanted && wanted < r->batches ? wanted : r->batches;
}

/* -- pairs */

/* (all) The passes that pairs are drawn in. */
static sr_status pass_pairs(trainer *r, final_pairs *pairs, sr_failure *why) {
    const int64_t count = frozen_batches(r);
    const run_exchange x = shards_exchange(r);
    bool again = false;
    model_memory k;
    sr_status status = task_memory(&k, r->model, r->data, SPLIT_TRAIN, true, why);
    for (int64_t i = 0; i < count && final_pairs_wanted(pairs) && status == SR_OK; i += !again) {
        status = frozen_pass(r, i, shards_of_rank(r), &k, why);
        status = ranks_agree(r->ranks, status, why);
        if (status == SR_OK) status = final_pairs_passed(pairs, &x, &again, why);
    }
    model_memory_free(&k);
    return status == SR_OK ? final_pairs_exchange(pairs, &x, why) : status;
}

/* -- discrepancy */

/* The passes of this rank; *done of them. A signal is looked for where one rank passes alone. */
static sr_status frozen_passes(trainer *r, int64_t count, int64_t *done, sr_failure *why) {
    const bool alone = !r->config->sync_norm || ranks_count(r->ranks) == 1;
    model_memory k;
    sr_status status = task_memory(&k, r->model, r->data, SPLIT_TRAIN, true, why);
    for (*done = 0; *done < count && status == SR_OK; ++*done) {
        if (alone && r->events->stop && r->events->stop(r->events->context)) break;
        status = frozen_pass(r, *done, 1, &k, why);
    }
    model_memory_free(&k);
    return status;
}

static sr_status pass_frozen(trainer *r, const final_pairs *pairs, sr_failure *why) {
    const int64_t count = frozen_batches(r);
    int64_t done = 0;
    final_tid *f = final_tid_begin(r->model, why);
    if (!f) return why->status;
    sr_status status = frozen_passes(r, count, &done, why);
    r->finished = done == count;
    if (status == SR_OK && r->finished) status = run_record_final(r->record, f, pairs, done, why);
    final_tid_end(f);
    return status;
}

sr_status trainer_final_pass(trainer *r, sr_failure *why) {
    const double start = progress_clock();
    const uint64_t seed = (uint64_t)r->config->seed;
    final_pairs *pairs = NULL;
    if (!strcmp(r->config->record, "none")) return SR_OK;
    sr_status status = trainer_writes(r) ? trainer_flush(r, why) : SR_OK;
    if (status == SR_OK) status = final_pairs_begin(r->record, r->config->pairs, seed, &pairs, why);
    status = ranks_agree(r->ranks, status, why);
    if (status == SR_OK && pairs) {
        status = pass_pairs(r, pairs, why);
        if (r->exchange_failed.status != SR_OK)
            status =
                sr_fail(why, r->exchange_failed.status, "final pass: %s", r->exchange_failed.text);
    }
    if (status == SR_OK) {
        if (trainer_writes(r) || r->config->sync_norm) status = pass_frozen(r, pairs, why);
        status = ranks_agree(r->ranks, status, why);
    }
    if (status == SR_OK) status = ranks_broadcast(r->ranks, &r->finished, sizeof r->finished, why);
    final_pairs_end(pairs);
    r->result->times.validation += progress_clock() - start;
    return status;
}
