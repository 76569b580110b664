/* extent_map.c -- a sorted array of extents. Files grow at their end, so most extents are
   appended. */
#include "journal/extent_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "base/crc32.h"

void extent_map_free(extent_map *m) {
    for (size_t i = 0; i < m->count; i++) free(m->e[i].copy);
    free(m->e);
    *m = (extent_map){0};
}

static uint64_t end_of(const extent *e) {
    return e->at + (uint64_t)e->length * ((uint64_t)e->more + 1);
}

size_t extent_map_find(const extent_map *m, uint64_t at) {
    size_t low = 0, high = m->count;
    if (m->count && end_of(&m->e[m->count - 1]) <= at) return m->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (end_of(&m->e[middle]) <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static extent *insert(extent_map *m, size_t i, const extent *new) {
    if (!vector_reserve(&m->e, &m->capacity, (int64_t)m->count + 1, sizeof *m->e)) return NULL;
    memmove(&m->e[i + 1], &m->e[i], (m->count - i) * sizeof *m->e);
    m->e[i] = *new;
    m->count++;
    return &m->e[i];
}

/* Makes each extent that is partly in [at, end) a separate entry. */
static bool expose(extent_map *m, uint64_t at, uint64_t end) {
    for (size_t i = extent_map_find(m, at); i < m->count && m->e[i].at < end; i++) {
        const extent *e = &m->e[i];
        if (!e->more || (at <= e->at && end_of(e) <= end)) continue;
        const uint64_t before = at > e->at ? (at - e->at) / e->length : 0;
        const uint64_t within = at > e->at ? 1 : (end - e->at) / e->length;
        const uint64_t first = before ? before : within ? within : 1;
        extent rest = *e;
        rest.at += first * rest.length, rest.more -= (uint32_t)first;
        if (!insert(m, i + 1, &rest)) return false;
        m->e[i].more = (uint32_t)first - 1;
    }
    return true;
}

/* Extends entry e by `new` when they are equal extents in a row. */
static bool join(extent *e, const extent *new) {
    const bool values = e->kind == EXTENT_VALUES && new->kind == EXTENT_VALUES;
    const bool behind = end_of(e) == new->at && e->length == new->length;
    const bool alike = values && behind && e->more < UINT32_MAX - 1;
    if (alike) e->more++;
    return alike;
}

/* Removes [at, end) from the extents from i on; returns the index for a new extent there. An extent
 * on both sides keeps its left part only: the right part was never written by itself. */
static size_t make_room(extent_map *m, size_t i, uint64_t at, uint64_t end) {
    if (i < m->count && m->e[i].at < at) {
        m->e[i].length = (uint32_t)(at - m->e[i].at);
        i++;
    }
    while (i < m->count && end_of(&m->e[i]) <= end) {
        free(m->e[i].copy);
        memmove(&m->e[i], &m->e[i + 1], (m->count - i - 1) * sizeof *m->e);
        m->count--;
    }
    if (i < m->count && m->e[i].at < end) {
        extent *e = &m->e[i];
        const uint32_t cut = (uint32_t)(end - e->at);
        if (e->copy) memmove(e->copy, e->copy + cut, e->length - cut);
        e->at += cut, e->length -= cut;
    }
    return i;
}

extent *extent_map_add(extent_map *m, const extent *new) {
    return insert(m, extent_map_find(m, new->at), new);
}

bool extent_is_settled(const extent *e) {
    return e->kind == EXTENT_STEPS && !e->copy;
}

void extent_map_settle(extent_map *m) {
    for (size_t i = 0; i < m->count; i++) {
        extent *e = &m->e[i];
        if (e->kind == EXTENT_STEPS && e->copy && !e->changed) {
            e->checksum = crc32_add(0, e->copy, e->length);
            free(e->copy);
            e->copy = NULL;
        }
        e->changed = false;
    }
}

bool extent_map_put(extent_map *m, extent_kind kind, uint64_t at, uint32_t length,
                    const unsigned char *bytes) {
    const size_t i = extent_map_find(m, at);
    extent *in = i < m->count ? &m->e[i] : NULL;
    if (length == 0) return true;
    if (in && in->at <= at && at + length <= end_of(in) && (in->copy || kind == EXTENT_VALUES)) {
        if (in->copy) memcpy(in->copy + (at - in->at), bytes, length);
        in->changed = true;
        return true;
    }
    extent new = {.at = at, .length = length, .kind = (uint8_t)kind, .changed = true};
    if (kind != EXTENT_VALUES) {
        if (!(new.copy = malloc(length))) return false;
        memcpy(new.copy, bytes, length);
    }
    const uint64_t end = end_of(&new);
    bool put = expose(m, at, end);
    if (put) {
        const size_t k = make_room(m, extent_map_find(m, at), at, end);
        put = (k > 0 && join(&m->e[k - 1], &new)) || insert(m, k, &new);
    }
    if (!put) free(new.copy);
    return put;
}
