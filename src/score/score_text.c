/* score_text.c -- see score_text.h. */
#include "score/score_text.h"

#include <stdlib.h>
#include <string.h>

void score_text_clear(score_text *t) {
    t->size = 0;
}

static void grow(score_text *t, size_t wanted) {
    size_t capacity = t->capacity ? t->capacity : 1024;
    while (capacity < wanted) capacity *= 2;
    uint8_t *larger = realloc(t->byte, capacity);
    t->failed = !larger;
    if (!larger) return;
    t->byte = larger;
    t->capacity = capacity;
}

void score_text_put(score_text *t, const void *bytes, size_t count) {
    if (!t->failed && t->size + count >= t->capacity) grow(t, t->size + count + 1);
    if (t->failed) return;
    if (count) memcpy(t->byte + t->size, bytes, count);
    t->size += count;
    t->byte[t->size] = 0;
}

void score_text_free(score_text *t) {
    free(t->byte);
    *t = (score_text){0};
}
