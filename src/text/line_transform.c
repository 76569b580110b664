/* line_transform.c -- applies steps to a line or a text; see line_transform.h. */
#include "text/line_transform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/unicode.h"

static sr_status no_memory(sr_failure *why) {
    return sr_fail(why, SR_MEMORY, "out of memory for a line of text");
}

size_t line_content(const char *line, size_t length) {
    if (length && line[length - 1] == '\n') length--;
    if (length && line[length - 1] == '\r') length--;
    return length;
}

bool line_walk_next(line_walk *w) {
    if (w->at >= w->file->size) return false;
    w->line = (const char *)w->file->byte + w->at;
    const char *end = memchr(w->line, '\n', w->file->size - w->at);
    const size_t size = end ? (size_t)(end - w->line) + 1 : w->file->size - w->at;
    w->length = line_content(w->line, size);
    w->at += size;
    w->number++;
    return true;
}

sr_status line_steps_apply(const line_transform *step, int steps, int side, const char *line,
                           size_t length, byte_buffer *out, sr_failure *why) {
    byte_buffer before = {0};
    out->size = 0;
    sr_status status = buffer_put(out, line, length) ? SR_OK : no_memory(why);
    for (int i = 0; i < steps && status == SR_OK; i++) {
        byte_buffer swap = before;
        before = *out, *out = swap;
        out->size = 0;
        status = buffer_put(out, "", 0) ? SR_OK : no_memory(why);
        if (status == SR_OK)
            status = step[i].apply(step[i].self, side, before.byte, before.size, out, why);
    }
    buffer_free(&before);
    return status;
}

sr_status line_transform_text(const line_transform *step, int side, const file_bytes *from,
                              file_bytes *to, sr_failure *why) {
    byte_buffer all = {0};
    line_walk w = {.file = from};
    sr_status status = buffer_put(&all, "", 0) ? SR_OK : no_memory(why);
    while (status == SR_OK && line_walk_next(&w)) {
        status = step->apply(step->self, side, w.line, w.length, &all, why);
        if (status == SR_OK && !buffer_put(&all, "\n", 1)) status = no_memory(why);
    }
    if (status != SR_OK) buffer_free(&all);
    *to = (file_bytes){.byte = (uint8_t *)all.byte, .size = all.size};
    snprintf(to->path, sizeof to->path, "%s", from->path);
    return status;
}

static sr_status lowercase(void *self, int side, const char *line, size_t length, byte_buffer *out,
                           sr_failure *why) {
    size_t size = 0;
    (void)self, (void)side;
    uint8_t *small = unicode_lower((const uint8_t *)line, length, &size);
    const bool done = small && buffer_put(out, small, size);
    free(small);
    return done ? SR_OK : no_memory(why);
}

line_transform lowercase_step(void) {
    return (line_transform){.name = "lowercase", .apply = lowercase};
}
