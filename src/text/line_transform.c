/* line_transform.c -- applies steps to a line or a text; see line_transform.h. */
#include "text/line_transform.h"

#include <stdio.h>
#include <string.h>

static sr_status no_memory(sr_failure *why) {
    return sr_fail(why, SR_MEMORY, "out of memory for a line of text");
}

size_t line_content(const char *line, size_t length) {
    if (length && line[length - 1] == '\n') length--;
    if (length && line[length - 1] == '\r') length--;
    return length;
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
    sr_status status = buffer_put(&all, "", 0) ? SR_OK : no_memory(why);
    for (size_t at = 0; at < from->size && status == SR_OK;) {
        const char *line = (const char *)from->byte + at;
        const char *end = memchr(line, '\n', from->size - at);
        size_t length = end ? (size_t)(end - line) : from->size - at;
        status = step->apply(step->self, side, line, line_content(line, length), &all, why);
        if (status == SR_OK && !buffer_put(&all, "\n", 1)) status = no_memory(why);
        at += length + 1;
    }
    if (status != SR_OK) buffer_free(&all);
    *to = (file_bytes){.byte = (uint8_t *)all.byte, .size = all.size};
    snprintf(to->path, sizeof to->path, "%s", from->path);
    return status;
}
