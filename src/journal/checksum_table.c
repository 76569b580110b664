/* checksum_table.c -- reads the table of a final trailer, checks it, and searches it by offset. */
#include "journal/checksum_table.h"

#include <stdlib.h>

#include "base/crc32.h"
#include "journal/positional_io.h"

void checksum_table_free(checksum_table *t) {
    free(t->entry), free(t->verified);
    *t = (checksum_table){0};
}

/* Eight bytes at once: every read of a chunk looks up its entry. */
static uint64_t word_at(const unsigned char *b) {
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 |
           (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 |
           (uint64_t)b[7] << 56;
}

extent checksum_table_get(const checksum_table *t, size_t i) {
    const unsigned char *entry = t->entry + i * TRAILER_ENTRY;
    const uint64_t offset = word_at(entry), more = word_at(entry + 8);
    return (extent){.at = offset & (((uint64_t)1 << 56) - 1),
                    .length = (uint32_t)more,
                    .checksum = (uint32_t)(more >> 32),
                    .kind = (uint8_t)(offset >> 56)};
}

static bool is_possible(const checksum_table *t, uint64_t end, uint64_t *copies) {
    uint64_t done = 0;
    *copies = 0;
    for (size_t i = 0; i < t->count; i++) {
        const extent x = checksum_table_get(t, i);
        if (x.at < done || x.at + x.length > end || !x.kind || x.kind > EXTENT_METADATA)
            return false;
        if (x.kind != EXTENT_VALUES) *copies += x.length;
        done = x.at + x.length;
    }
    return true;
}

bool checksum_table_open(checksum_table *t, int fd, uint64_t at, size_t count, uint64_t end,
                         uint32_t checksum, uint64_t *copies, bool *memory) {
    const size_t size = count * TRAILER_ENTRY;
    *t = (checksum_table){count, malloc(size + 1), calloc(count / 8 + 1, 1)};
    *memory = t->entry && t->verified;
    return *memory && positional_io_read(fd, at, t->entry, size) &&
           crc32_add(0, t->entry, size) == checksum && is_possible(t, end, copies);
}

size_t checksum_table_find(const checksum_table *t, uint64_t at) {
    size_t low = 0, high = t->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const extent x = checksum_table_get(t, middle);
        if (x.at + x.length <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool checksum_table_is_verified(const checksum_table *t, size_t i) {
    return t->verified[i / 8] >> i % 8 & 1;
}

void checksum_table_set_verified(checksum_table *t, size_t i) {
    t->verified[i / 8] |= (unsigned char)(1u << i % 8);
}
