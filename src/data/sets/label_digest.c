/* label_digest.c -- a digest of the names of all ids of a data set, in their order: words,
 * characters, POS tags, labels, tags, classes. A trained model needs data with the same digest. */
#include <string.h>

#include "base/containers/hash.h"
#include "data/dataset.h"

/* Appends a name; 0 means "nothing". */
static void add_name(int64_t *digest, const char *name) {
    const uint64_t pair[2] = {(uint64_t)*digest, hash_bytes(name, strlen(name) + 1)};
    *digest = (int64_t)(hash_bytes(pair, sizeof pair) | 1);
}

static void add_words(int64_t *digest, const vocab *v) {
    for (int64_t i = 0; v && i < vocab_size(v); i++) add_name(digest, vocab_word(v, i));
}

void dataset_add_class(dataset *d, const char *name) {
    add_name(&d->classes_meaning, name);
}

int64_t dataset_meaning(const dataset *d) {
    int64_t digest = d->classes_meaning;
    const set_kind *kind = &set_kinds[d->row->task];
    const vocab *source = kind->words ? kind->words(d, SIDE_SOURCE) : NULL,
                *target = kind->words ? kind->words(d, SIDE_TARGET) : NULL;
    add_words(&digest, source);
    if (target != source) add_words(&digest, target);
    add_words(&digest, d->sentences.characters);
    add_words(&digest, d->trees.pos);
    add_words(&digest, d->trees.labels);
    for (int32_t i = 0; d->tags && i < d->tags->count; i++) add_name(&digest, d->tags->name[i]);
    return digest;
}
