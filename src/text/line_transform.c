/* line_transform.c -- see line_transform.h. */
#include "text/line_transform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sr_status no_memory(sr_failure *why) {
    return sr_fail(why, SR_MEMORY, "no memory for a line of text");
}

bool line_put(line_buffer *b, const char *bytes, size_t length) {
    if (length >= SIZE_MAX / 2 - b->size) return false;
    if (!b->byte || b->size + length + 1 > b->capacity) {
        size_t capacity = b->capacity ? 2 * b->capacity : 256;
        if (capacity < b->size + length + 1) capacity = b->size + length + 1;
        char *byte = realloc(b->byte, capacity);
        if (!byte) return false;
        b->byte = byte, b->capacity = capacity;
    }
    if (length) memcpy(b->byte + b->size, bytes, length);
    b->size += length;
    b->byte[b->size] = 0;
    return true;
}

void line_free(line_buffer *b) {
    free(b->byte);
    *b = (line_buffer){0};
}

size_t line_content(const char *line, size_t length) {
    if (length && line[length - 1] == '\n') length--;
    if (length && line[length - 1] == '\r') length--;
    return length;
}

sr_status line_steps_apply(const line_transform *step, int steps, int side, const char *line,
                           size_t length, line_buffer *out, sr_failure *why) {
    line_buffer before = {0};
    out->size = 0;
    sr_status status = line_put(out, line, length) ? SR_OK : no_memory(why);
    for (int i = 0; i < steps && status == SR_OK; i++) {
        line_buffer swap = before;
        before = *out, *out = swap;
        out->size = 0;
        status = line_put(out, "", 0) ? SR_OK : no_memory(why);
        if (status == SR_OK)
            status = step[i].apply(step[i].self, side, before.byte, before.size, out, why);
    }
    line_free(&before);
    return status;
}

sr_status line_transform_text(const line_transform *step, int side, const file_bytes *from,
                              file_bytes *to, sr_failure *why) {
    line_buffer all = {0};
    sr_status status = line_put(&all, "", 0) ? SR_OK : no_memory(why);
    for (size_t at = 0; at < from->size && status == SR_OK;) {
        const char *line = (const char *)from->byte + at;
        const char *end = memchr(line, '\n', from->size - at);
        size_t length = end ? (size_t)(end - line) : from->size - at;
        status = step->apply(step->self, side, line, line_content(line, length), &all, why);
        if (status == SR_OK && !line_put(&all, "\n", 1)) status = no_memory(why);
        at += length + 1;
    }
    if (status != SR_OK) line_free(&all);
    *to = (file_bytes){.byte = (uint8_t *)all.byte, .size = all.size};
    snprintf(to->path, sizeof to->path, "%s", from->path);
    return status;
}
