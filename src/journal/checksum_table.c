/* checksum_table.c -- see checksum_table.h. */
#include "journal/checksum_table.h"

#include <errno.h>
#include <stdlib.h>

#include "journal/positional_io.h"

/* As many pages as a run of ordinary length has. */
enum { PAGE_ENTRIES = 256, PAGE = PAGE_ENTRIES * END_ENTRY, SLOTS = 256 };

static size_t pages_of(size_t count) {
    return (count + PAGE_ENTRIES - 1) / PAGE_ENTRIES;
}

void checksum_table_free(checksum_table *t) {
    free(t->first), free(t->sum), free(t->looked), free(t->page), free(t->number);
    *t = (checksum_table){0};
}

static bool reserve(checksum_table *t) {
    const size_t pages = pages_of(t->count);
    t->slots = pages < SLOTS ? pages : SLOTS;
    t->first = malloc((pages + 1) * sizeof *t->first);
    t->sum = malloc((pages + 1) * sizeof *t->sum);
    t->looked = calloc(t->count / 8 + 1, 1);
    t->page = malloc(t->slots * PAGE + 1);
    t->number = calloc(t->slots + 1, sizeof *t->number);
    return t->first && t->sum && t->looked && t->page && t->number;
}

static size_t entries_of(const checksum_table *t, size_t page) {
    const size_t left = t->count - page * PAGE_ENTRIES;
    return left < PAGE_ENTRIES ? left : PAGE_ENTRIES;
}

/* Eight bytes at once: this is asked for at every chunk that is read. */
static uint64_t word_at(const unsigned char *b) {
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 |
           (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 |
           (uint64_t)b[7] << 56;
}

static extent extent_at(const unsigned char *entry) {
    const uint64_t place = word_at(entry), more = word_at(entry + 8);
    return (extent){.at = place & (((uint64_t)1 << 56) - 1),
                    .length = (uint32_t)more,
                    .sum = (uint32_t)(more >> 32),
                    .kind = (uint8_t)(place >> 56)};
}

/* Into its slot, whatever it holds; NULL with errno. */
static const unsigned char *read_page(checksum_table *t, int fd, size_t page) {
    const size_t slot = page % t->slots;
    unsigned char *bytes = t->page + slot * PAGE;
    t->number[slot] = 0;
    if (!positional_io_read(fd, t->at + page * PAGE, bytes, entries_of(t, page) * END_ENTRY))
        return NULL;
    t->number[slot] = page + 1;
    return bytes;
}

/* *done: where the extent before ends. */
static bool take_page(checksum_table *t, const unsigned char *bytes, size_t page, uint64_t end,
                      uint64_t *done, uint64_t *copies) {
    for (size_t i = 0; i < entries_of(t, page); i++) {
        const extent x = extent_at(bytes + i * END_ENTRY);
        if (x.at < *done || x.at + x.length > end || !x.kind || x.kind > EXTENT_STRUCTURE)
            return false;
        if (x.kind != EXTENT_VALUES) *copies += x.length;
        *done = x.at + x.length;
    }
    t->first[page] = extent_at(bytes).at;
    return true;
}

bool checksum_table_open(checksum_table *t, const crc_table *crc, int fd, uint64_t at, size_t count,
                         uint64_t end, uint32_t sum, uint64_t *copies, bool *memory) {
    uint64_t done = 0;
    uint32_t all = 0;
    *t = (checksum_table){.crc = crc, .at = at, .count = count};
    *copies = 0;
    if (!reserve(t)) return *memory = false;
    for (size_t page = 0; page < pages_of(count); page++) {
        const unsigned char *bytes = read_page(t, fd, page);
        if (!bytes || !take_page(t, bytes, page, end, &done, copies)) return false;
        t->sum[page] = crc_add(crc, 0, bytes, entries_of(t, page) * END_ENTRY);
        all = crc_add(crc, all, bytes, entries_of(t, page) * END_ENTRY);
    }
    return all == sum;
}

/* Now or before; NULL with errno. */
static const unsigned char *page_at(checksum_table *t, int fd, size_t page) {
    const size_t slot = page % t->slots;
    if (t->number[slot] == page + 1) return t->page + slot * PAGE;
    const unsigned char *bytes = read_page(t, fd, page);
    if (!bytes || crc_add(t->crc, 0, bytes, entries_of(t, page) * END_ENTRY) == t->sum[page])
        return bytes;
    t->number[slot] = 0;
    errno = EIO;
    return NULL;
}

bool checksum_table_get(checksum_table *t, int fd, size_t i, extent *x) {
    const unsigned char *bytes = page_at(t, fd, i / PAGE_ENTRIES);
    if (bytes) *x = extent_at(bytes + i % PAGE_ENTRIES * END_ENTRY);
    return bytes != NULL;
}

/* The last page that begins at or before `at`, or the first. */
static size_t page_of(const checksum_table *t, uint64_t at) {
    size_t low = 0, high = pages_of(t->count);
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (t->first[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

bool checksum_table_find(checksum_table *t, int fd, uint64_t at, size_t *i) {
    *i = 0;
    if (!t->count) return true;
    const size_t page = page_of(t, at);
    const unsigned char *bytes = page_at(t, fd, page);
    size_t low = 0, high = entries_of(t, page);
    if (!bytes) return false;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const extent x = extent_at(bytes + middle * END_ENTRY);
        if (x.at + x.length <= at)
            low = middle + 1;
        else
            high = middle;
    }
    *i = page * PAGE_ENTRIES + low;
    return true;
}

bool checksum_table_is_verified(const checksum_table *t, size_t i) {
    return t->looked[i / 8] >> i % 8 & 1;
}

void checksum_table_set_verified(checksum_table *t, size_t i) {
    t->looked[i / 8] |= (unsigned char)(1u << i % 8);
}
