/* map.h -- a hash table that numbers keys: each new key gets the next number, from 0.
 *
 *     map words = {0};
 *     map_add(&words, "ein", 3);      0, also the second time
 *     map_add(&words, "hund", 4);     1
 *     map_find(&words, "haus", 4);    -1
 *     map_free(&words);
 *
 * Values lie in the caller's own arrays, indexed by this number (vector.h). Keys are bytes, which
 * the map copies, or 64-bit numbers. All keys of one map have one kind.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

/* The caller owns the struct, zero at first; read `count` only. */
typedef struct map {
    struct map_entry {
        uint64_t key; /* the number, or the offset of the bytes */
        uint32_t length, hash;
    } * entry;     /* [count] */
    int64_t count; /* different keys */
    int64_t capacity;
    char *byte; /* [used], the keys, a zero byte after each */
    int64_t used, byte_capacity;
    int32_t *slot; /* [slots], number of an entry or -1 */
    size_t slots;  /* a power of two, or 0 */
    int64_t slot_capacity;
} map;

void map_free(map *m);
/* Removes all keys and keeps the memory. */
void map_clear(map *m);

/* The key's number; -1 when absent. */
int64_t map_find(const map *m, const void *key, size_t length);
int64_t map_find_number(const map *m, uint64_t key);
/* The key's number, a new one when absent. -1 when out of memory or beyond 2^30 keys; the map stays
 * as it was. */
int64_t map_add(map *m, const void *key, size_t length);
int64_t map_add_number(map *m, uint64_t key);

/* The key with this number, a zero byte after it. Valid until the next map_add. */
static inline const char *map_text(const map *m, int64_t number, size_t *length) {
    if (length) *length = m->entry[number].length;
    return m->byte + m->entry[number].key;
}

static inline uint64_t map_number(const map *m, int64_t number) {
    return m->entry[number].key;
}

#endif
