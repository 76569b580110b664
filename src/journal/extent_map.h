/* extent_map.h -- which bytes of a file are what: extents in the order of their places, none of which
 * overlap. */
#ifndef JOURNAL_EXTENT_MAP_H
#define JOURNAL_EXTENT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "journal/crc32.h"

typedef enum {
    EXTENT_VALUES = 1, /* rows: as HDF5 wrote them, a chunk mostly */
    EXTENT_STEPS, /* rows of which there is a second copy: without the number of its step a row is lost */
    EXTENT_STRUCTURE, /* headers, indexes, what was declared, counts: there is a second copy */
} extent_kind;

typedef struct extent {
    uint64_t at;
    unsigned char *copy; /* [length]; NULL: none */
    uint32_t length, sum;
    uint32_t more; /* of a writer: extents of the same length right behind this, all of values */
    uint8_t kind;
    bool changed : 1; /* since the last commit; of a reader: the copy is to be read, not the file */
    bool looked : 1;  /* of a reader: its bytes were held against the sum */
    bool bad : 1;     /* of a reader: and are others */
    bool told : 1;    /* of a reader: who read them was refused */
} extent;

typedef struct extent_map {
    extent *e; /* [count] */
    size_t count, capacity;
} extent_map;

void extent_map_free(extent_map *m);
/* The first extent that ends behind `at`; m->count when none does. */
size_t extent_map_find(const extent_map *m, uint64_t at);
/* Bytes are written to a place: what is known of it is made to fit. Of values no bytes are kept, and those that
 * follow others of the same length take no memory: a run writes millions of chunks. False when memory is
 * short; nothing has changed then but that older extents may be gone. */
bool extent_map_put(extent_map *m, extent_kind kind, uint64_t at, uint32_t length,
                    const unsigned char *bytes);
/* Steps that did not change since the last time have reached their place: of them the sum is kept, no copy. */
void extent_map_settle(extent_map *m, const crc_table *table);
/* Whether it is of such steps. */
bool extent_is_settled(const extent *e);
/* One that overlaps none of them, as it is; NULL when memory is short. Who has another by its address loses it. */
extent *extent_map_add(extent_map *m, const extent *new);

#endif
