/* map.c -- numbers keys by a hash table: open addressing with linear probing, at most half full.
 * The hash is never visible outside, so it may be fast. hash.h has the one for files. */
#include "base/containers/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"

enum { FIRST_SLOTS = 64, MOST_KEYS = 1 << 30 };

void map_free(map *m) {
    free(m->entry);
    free(m->byte);
    free(m->slot);
    *m = (map){0};
}

/* A later key may reuse all memory; only the first slots are emptied now. */
void map_clear(map *m) {
    m->count = m->used = 0;
    if (m->slots) m->slots = FIRST_SLOTS;
    for (size_t s = 0; s < m->slots; s++) m->slot[s] = -1;
}

/* -- hashes ------------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t x) {
    x *= 0x9e3779b97f4a7c15ull;
    return x ^ x >> 32;
}

static uint64_t load(const char *from, size_t bytes) {
    uint32_t low, high;
    if (bytes < 4)
        return bytes ? (uint64_t)(unsigned char)from[0] |
                           (uint64_t)(unsigned char)from[bytes / 2] << 8 |
                           (uint64_t)(unsigned char)from[bytes - 1] << 16
                     : 0;
    memcpy(&low, from, sizeof low);
    memcpy(&high, from + bytes - sizeof high, sizeof high);
    return (uint64_t)high << 32 | low;
}

static uint32_t hash_key(const char *key, size_t length) {
    uint64_t h = length;
    size_t at = 0;
    for (; length - at > 8; at += 8) h = mix(h ^ load(key + at, 8));
    return (uint32_t)mix(h << 7 ^ load(key + at, length - at));
}

/* -- slots ------------------------------------------------------------------------------------- */

/* Memory for one more key. */
static bool grow(map *m) {
    size_t slots = m->slots ? 2 * m->slots : FIRST_SLOTS;
    if (2 * (size_t)(m->count + 1) <= m->slots) return true;
    if (m->count >= MOST_KEYS ||
        !vector_reserve(&m->slot, &m->slot_capacity, (int64_t)slots, sizeof *m->slot))
        return false;
    m->slots = slots;
    for (size_t s = 0; s < slots; s++) m->slot[s] = -1;
    for (int64_t i = 0; i < m->count; i++) {
        size_t s = m->entry[i].hash & (slots - 1);
        while (m->slot[s] >= 0) s = (s + 1) & (slots - 1);
        m->slot[s] = (int32_t)i;
    }
    return true;
}

/* The slot where the key is, or would be. */
static size_t find_slot(const map *m, const void *key, size_t length, uint32_t hash) {
    for (size_t s = hash & (m->slots - 1);; s = (s + 1) & (m->slots - 1)) {
        if (m->slot[s] < 0) return s;
        const struct map_entry *e = &m->entry[m->slot[s]];
        if (e->hash == hash && e->length == length && memcmp(m->byte + e->key, key, length) == 0)
            return s;
    }
}

static size_t find_number_slot(const map *m, uint64_t key, uint32_t hash) {
    for (size_t s = hash & (m->slots - 1);; s = (s + 1) & (m->slots - 1))
        if (m->slot[s] < 0 || m->entry[m->slot[s]].key == key) return s;
}

static int64_t add_entry(map *m, size_t slot, struct map_entry e) {
    if (!vector_reserve(&m->entry, &m->capacity, m->count + 1, sizeof *m->entry)) return -1;
    m->entry[m->count] = e;
    m->slot[slot] = (int32_t)m->count;
    return m->count++;
}

/* -- keys -------------------------------------------------------------------------------------- */

int64_t map_find(const map *m, const void *key, size_t length) {
    return m->slots ? m->slot[find_slot(m, key, length, hash_key(key, length))] : -1;
}

int64_t map_add(map *m, const void *key, size_t length) {
    if (!grow(m) || length > UINT32_MAX) return -1;
    const uint32_t hash = hash_key(key, length);
    const size_t slot = find_slot(m, key, length, hash);
    if (m->slot[slot] >= 0) return m->slot[slot];
    const int64_t used = m->used + (int64_t)length + 1;
    if (!vector_reserve(&m->byte, &m->byte_capacity, used, 1)) return -1;
    const int64_t number =
        add_entry(m, slot, (struct map_entry){(uint64_t)m->used, (uint32_t)length, hash});
    if (number < 0) return -1;
    if (length) memcpy(m->byte + m->used, key, length);
    m->byte[used - 1] = 0;
    m->used = used;
    return number;
}

int64_t map_find_number(const map *m, uint64_t key) {
    return m->slots ? m->slot[find_number_slot(m, key, (uint32_t)mix(key))] : -1;
}

int64_t map_add_number(map *m, uint64_t key) {
    if (!grow(m)) return -1;
    const uint32_t hash = (uint32_t)mix(key);
    const size_t slot = find_number_slot(m, key, hash);
    if (m->slot[slot] >= 0) return m->slot[slot];
    return add_entry(m, slot, (struct map_entry){key, 0, hash});
}
