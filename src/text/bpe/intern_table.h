/* intern_table.h -- hash tables that give a number to every different string or key, in order of first
 * appearance; a zeroed struct is an empty table. */
#ifndef TEXT_BPE_INTERN_TABLE_H
#define TEXT_BPE_INTERN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes room for one element more behind count of them in *array (a pointer to a pointer). */
bool table_room(void *array, int64_t *capacity, int64_t count, size_t size);

typedef struct string_entry {
    size_t at; /* in byte */
    uint32_t length, hash;
} string_entry;

/* At most INT32_MAX strings of at most UINT32_MAX bytes. */
typedef struct string_table {
    string_entry *entry; /* [count] */
    int64_t count, capacity;
    char *byte; /* [used], string behind string, without zeros between */
    int64_t used, room;
    int32_t *slot;  /* [slots], number of an entry or -1 */
    uint32_t slots; /* a power of two, or 0 */
} string_table;

void string_table_free(string_table *t);
/* -1: absent; -1 of add: out of memory. */
int32_t string_table_find(const string_table *t, const char *text, size_t length);
int32_t string_table_add(string_table *t, const char *text, size_t length);
/* Good until the next string is added. */
const char *string_table_text(const string_table *t, int32_t id, size_t *length);

/* The same for pairs of numbers. */
typedef struct pair_key {
    int32_t left, right;
} pair_key;

typedef struct pair_table {
    pair_key *key; /* [count] */
    int64_t count, capacity;
    int32_t *slot;
    uint32_t slots;
} pair_table;

void pair_table_free(pair_table *t);
int32_t pair_table_find(const pair_table *t, int32_t left, int32_t right);
int32_t pair_table_add(pair_table *t, int32_t left, int32_t right);

#endif
