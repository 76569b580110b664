/* intern_table.c -- see intern_table.h. Open addressing, at most half full. */
#include "text/bpe/intern_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { FIRST_CAPACITY = 64, MOST_SLOTS = 1 << 30 };

bool table_room(void *array, int64_t *capacity, int64_t count, size_t size) {
    void **place = array;
    if (count < *capacity) return true;
    int64_t larger = *capacity ? 2 * *capacity : FIRST_CAPACITY;
    void *moved = realloc(*place, (size_t)larger * size);
    if (!moved) return false;
    *place = moved;
    *capacity = larger;
    return true;
}

/* Empty slots for at least one entry more than count, *slots of them; NULL when there is no need to
 * grow (*slots stays) or no memory (*slots is 0). */
static int32_t *more_slots(int64_t count, uint32_t *slots) {
    if (2 * count < (int64_t)*slots) return NULL;
    uint32_t larger = *slots ? 2 * *slots : 2 * FIRST_CAPACITY;
    int32_t *slot = *slots < MOST_SLOTS ? malloc(larger * sizeof *slot) : NULL;
    *slots = slot ? larger : 0;
    for (uint32_t s = 0; slot && s < larger; s++) slot[s] = -1;
    return slot;
}

/* -- strings ----------------------------------------------------------------------------------- */

static uint32_t hash_of(const char *text, size_t length) {
    const uint64_t h = hash_bytes(text, length);
    return (uint32_t)(h ^ h >> 32);
}

static uint32_t string_slot(const string_table *t, const char *text, size_t length, uint32_t hash) {
    for (uint32_t s = hash & (t->slots - 1);; s = (s + 1) & (t->slots - 1)) {
        if (t->slot[s] < 0) return s;
        const string_entry *e = &t->entry[t->slot[s]];
        if (e->hash == hash && e->length == length && memcmp(t->byte + e->at, text, length) == 0)
            return s;
    }
}

static bool grow_string_slots(string_table *t) {
    uint32_t slots = t->slots;
    int32_t *slot = more_slots(t->count, &slots);
    if (!slot) return slots > 0;
    free(t->slot);
    t->slot = slot;
    t->slots = slots;
    for (int64_t i = 0; i < t->count; i++) {
        uint32_t s = t->entry[i].hash & (slots - 1);
        while (slot[s] >= 0) s = (s + 1) & (slots - 1);
        slot[s] = (int32_t)i;
    }
    return true;
}

static bool room_for_bytes(string_table *t, size_t length) {
    int64_t needed = t->used + (int64_t)length, larger = t->room ? t->room : 1024;
    if (needed <= t->room) return true;
    while (larger < needed) larger *= 2;
    char *moved = realloc(t->byte, (size_t)larger);
    if (!moved) return false;
    t->byte = moved;
    t->room = larger;
    return true;
}

int32_t string_table_find(const string_table *t, const char *text, size_t length) {
    if (!t->slots) return -1;
    return t->slot[string_slot(t, text, length, hash_of(text, length))];
}

int32_t string_table_add(string_table *t, const char *text, size_t length) {
    if (!grow_string_slots(t)) return -1;
    uint32_t hash = hash_of(text, length), s = string_slot(t, text, length, hash);
    if (t->slot[s] >= 0) return t->slot[s];
    if (length > UINT32_MAX || !table_room(&t->entry, &t->capacity, t->count, sizeof *t->entry) ||
        !room_for_bytes(t, length))
        return -1;
    memcpy(t->byte + t->used, text, length);
    t->entry[t->count] = (string_entry){(size_t)t->used, (uint32_t)length, hash};
    t->used += (int64_t)length;
    t->slot[s] = (int32_t)t->count++;
    return t->slot[s];
}

const char *string_table_text(const string_table *t, int32_t id, size_t *length) {
    *length = t->entry[id].length;
    return t->byte + t->entry[id].at;
}

void string_table_free(string_table *t) {
    free(t->entry);
    free(t->byte);
    free(t->slot);
    *t = (string_table){0};
}

/* -- pairs of numbers -------------------------------------------------------------------------- */

static uint32_t pair_slot(const pair_table *t, int32_t left, int32_t right) {
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15ull;
    for (uint32_t s = (uint32_t)(h >> 32) & (t->slots - 1);; s = (s + 1) & (t->slots - 1)) {
        if (t->slot[s] < 0) return s;
        const pair_key *k = &t->key[t->slot[s]];
        if (k->left == left && k->right == right) return s;
    }
}

static bool grow_pair_slots(pair_table *t) {
    uint32_t slots = t->slots;
    int32_t *slot = more_slots(t->count, &slots);
    if (!slot) return slots > 0;
    free(t->slot);
    t->slot = slot;
    t->slots = slots;
    for (int64_t i = 0; i < t->count; i++)
        slot[pair_slot(t, t->key[i].left, t->key[i].right)] = (int32_t)i;
    return true;
}

int32_t pair_table_find(const pair_table *t, int32_t left, int32_t right) {
    return t->slots ? t->slot[pair_slot(t, left, right)] : -1;
}

int32_t pair_table_add(pair_table *t, int32_t left, int32_t right) {
    if (!grow_pair_slots(t)) return -1;
    uint32_t s = pair_slot(t, left, right);
    if (t->slot[s] >= 0) return t->slot[s];
    if (!table_room(&t->key, &t->capacity, t->count, sizeof *t->key)) return -1;
    t->key[t->count] = (pair_key){left, right};
    t->slot[s] = (int32_t)t->count++;
    return t->slot[s];
}

void pair_table_free(pair_table *t) {
    free(t->key);
    free(t->slot);
    *t = (pair_table){0};
}
