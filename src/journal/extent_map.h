/* extent_map.h -- a map of a file: its extents in the order of their offsets, without overlaps. */
#ifndef JOURNAL_EXTENT_MAP_H
#define JOURNAL_EXTENT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    EXTENT_VALUES = 1, /* rows, mostly a chunk */
    EXTENT_STEPS,      /* step numbers, with a backup copy: a row without its step is lost */
    EXTENT_METADATA,   /* headers, indexes, declarations, counts, with a backup copy */
} extent_kind;

typedef struct extent {
    uint64_t at;
    unsigned char *copy; /* [length]; NULL: none */
    uint32_t length, checksum;
    uint32_t more; /* writer: number of equally long extents of values that follow */
    uint8_t kind;
    bool changed : 1;  /* writer: since the last commit; reader: read it from the copy */
    bool verified : 1; /* reader: its checksum was compared */
    bool bad : 1;      /* reader: the checksum differs */
    bool reported : 1; /* reader: a read of it failed */
} extent;

typedef struct extent_map {
    extent *e; /* [count] */
    size_t count;
    int64_t capacity;
} extent_map;

void extent_map_free(extent_map *m);
/* The first extent that ends after offset `at`; m->count when none does. */
size_t extent_map_find(const extent_map *m, uint64_t at);
/* Records a write. Bytes of values are not kept, and equal extents in a row share an entry: a run
 * writes millions of chunks. False when out of memory; older extents may be missing then. */
bool extent_map_put(extent_map *m, extent_kind kind, uint64_t at, uint32_t length,
                    const unsigned char *bytes);
/* Steps that did not change since the last call are in the file: keeps their checksum instead of a
   copy. */
void extent_map_settle(extent_map *m);
/* Whether the extent belongs to settled steps. */
bool extent_is_settled(const extent *e);
/* Inserts an extent that overlaps no other. Invalidates pointers to extents. NULL when out of
   memory. */
extent *extent_map_add(extent_map *m, const extent *new);

#endif
