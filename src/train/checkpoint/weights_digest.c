/* weights_digest.c -- hashes weights and running state: FNV-1a over 64-bit words, parameters in
 * order of creation, then every site's persistent vectors. Two runs with equal digests have, but
 * for a chance of 2^-64, equal bytes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "train/trainer.h"

static uint64_t add_bytes(uint64_t h, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    for (; count > 0; count -= count < 8 ? count : 8, at += 8) {
        uint64_t word = 0;
        memcpy(&word, at, count < 8 ? count : 8);
        h = (h ^ word) * 0x100000001b3ull;
        h ^= h >> 29; /* FNV alone never carries high bits down */
    }
    return h;
}

static sr_status add_item(void *context, const state_item *item, sr_failure *why) {
    uint64_t *h = context;
    (void)why;
    const npz_array *a = &item->array;
    const size_t size = a->type == NPZ_FLOAT32 ? sizeof(float) : sizeof(double);
    *h = add_bytes(*h, a->data, (size_t)npz_count(a) * size);
    return SR_OK;
}

static sr_status add_parameter(void *context, const state_item *item, sr_failure *why) {
    return item->kind == STATE_PARAMETER ? add_item(context, item, why) : SR_OK;
}

static void weights_digest_of(model *m, state_visit_fn *add, char digest[32]) {
    uint64_t h = 0xcbf29ce484222325ull;
    train_model_each(m, add, &h, NULL);
    snprintf(digest, 32, "%016" PRIx64, h);
}

void trainer_parameters_digest(model *m, char digest[32]) {
    weights_digest_of(m, add_parameter, digest);
}

void trainer_digest(model *m, char digest[32]) {
    weights_digest_of(m, add_item, digest);
}
