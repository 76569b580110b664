/* text_codec.c -- encodes a line as token ids; see text_codec.h. */
#include "text/bpe/text_codec.h"

#include <string.h>

#include "base/containers/hash.h"
#include "text/bpe/bpe.h"

sr_status text_codec_pieces(const text_codec *c, int side, const char *line, size_t length,
                            byte_buffer *out, sr_failure *why) {
    byte_buffer raw = {0};
    length = line_content(line, length);
    /* text_check needs a zero byte after the line */
    if (!buffer_put(&raw, line, length))
        return sr_fail(why, SR_MEMORY, "out of memory for a line of text");
    file_bytes f = {.byte = (uint8_t *)raw.byte, .size = length};
    int64_t lines;
    sr_status status = text_check(&f, &lines, why);
    if (status == SR_OK && memchr(line, '\n', length))
        status = sr_fail(why, SR_USAGE, "a line of text has a newline in it");
    if (status == SR_OK)
        status = line_steps_apply(c->step, c->steps, side, raw.byte, length, out, why);
    buffer_free(&raw);
    return status;
}

int64_t text_codec_ids(const vocab *words, text_walk *w, int32_t *id, int64_t room,
                       uint64_t *hash) {
    const char *word;
    size_t length;
    const int32_t unknown = vocab_unknown(words);
    int64_t n = 0;
    uint64_t h = 0;
    for (; text_word(w, &word, &length); n++) {
        if (n >= room) continue;
        id[n] = vocab_id(words, word, length);
        h = hash_join(h, id[n] == unknown ? hash_bytes(word, length) : (uint64_t)id[n]);
    }
    if (hash) *hash = h;
    return n;
}

sr_status text_codec_encode(const text_codec *c, int side, const char *line, size_t length,
                            int32_t *id, int64_t room, int64_t *count, sr_failure *why) {
    byte_buffer ready = {0};
    *count = 0;
    sr_status status = text_codec_pieces(c, side, line, length, &ready, why);
    file_bytes f = {.byte = (uint8_t *)ready.byte, .size = ready.size};
    text_walk w = {&f, 0};
    if (status == SR_OK) *count = text_codec_ids(c->dictionary[side], &w, id, room, NULL);
    buffer_free(&ready);
    return status;
}

size_t text_codec_join(char *line, size_t length) {
    return bpe_undo(line, length, CODEC_SEPARATOR);
}
