/* bpe_step.c -- learns or reads merges and applies them to a line; see bpe_step.h. */
#include "text/bpe/bpe_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/bpe/text_codec.h"
#include "text/text_lines.h"

typedef struct bpe_self {
    char path[FILE_PATH];
    int64_t merges;
    bpe_codes *codes;
    bpe *cut;
} bpe_self;

static sr_status prepare(bpe_self *b, sr_failure *why) {
    const bpe_settings settings = {.separator = CODEC_SEPARATOR};
    if (b->codes) b->cut = bpe_create(b->codes, &settings, why);
    return b->cut ? SR_OK : why->status;
}

/* subword-nmt -i reads lines as str.splitlines does: part by part, so that training makes the
 * subwords of files from `statrec bpe apply`. */
static sr_status each_part(const char *line, size_t length,
                           sr_status (*take)(void *, const char *, size_t, sr_failure *),
                           void *context, sr_failure *why) {
    sr_status status = SR_OK;
    for (size_t bytes; length && status == SR_OK; line += bytes, length -= bytes) {
        bytes = text_first_line(line, length);
        status = take(context, line, bytes, why);
    }
    return status;
}

static sr_status count_part(void *counts, const char *line, size_t length, sr_failure *why) {
    return bpe_counts_add_line(counts, line, length, why);
}

/* Learns merges from the lines of both sides. */
static bpe_codes *learn(int64_t merges, const file_bytes *text, int sides, int64_t lines,
                        sr_failure *why) {
    const bpe_learning how = {.merges = merges, .min_frequency = 2};
    bpe_counts *counts = bpe_counts_create();
    sr_status status = counts ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for the words");
    for (int i = 0; i < sides; i++) {
        line_walk w = {.file = &text[i]};
        while (status == SR_OK && w.number < lines && line_walk_next(&w))
            status = each_part(w.line, w.length, count_part, counts, why);
    }
    bpe_codes *codes = status == SR_OK ? bpe_learn(counts, &how, why) : NULL;
    bpe_counts_free(counts);
    return codes;
}

static sr_status begin(void *self, const file_bytes *text, int sides, int64_t lines,
                       sr_failure *why) {
    bpe_self *b = self;
    if (!b->codes)
        b->codes =
            *b->path ? bpe_codes_read(b->path, -1, why) : learn(b->merges, text, sides, lines, why);
    return b->cut ? SR_OK : prepare(b, why);
}

typedef struct cutting {
    bpe *by;
    byte_buffer *out;
} cutting;

static sr_status cut_part(void *context, const char *line, size_t length, sr_failure *why) {
    const cutting *c = context;
    return bpe_apply(c->by, line, length, c->out, why);
}

static sr_status apply(void *self, int side, const char *line, size_t length, byte_buffer *out,
                       sr_failure *why) {
    cutting c = {((bpe_self *)self)->cut, out};
    (void)side;
    return each_part(line, length, cut_part, &c, why);
}

static void free_self(void *self) {
    bpe_self *b = self;
    bpe_free(b->cut);
    bpe_codes_free(b->codes);
    free(b);
}

line_transform bpe_step(const char *path, int64_t merges, sr_failure *why) {
    bpe_self *b = calloc(1, sizeof *b);
    if (!b) {
        sr_fail(why, SR_MEMORY, "out of memory for byte-pair encoding");
        return (line_transform){0};
    }
    snprintf(b->path, sizeof b->path, "%s", path);
    b->merges = merges;
    return (line_transform){
        .name = "bpe", .begin = begin, .apply = apply, .free = free_self, .self = b};
}

line_transform bpe_step_of(bpe_codes *codes, sr_failure *why) {
    line_transform step = bpe_step("", 0, why);
    if (!step.self) {
        bpe_codes_free(codes);
        return step;
    }
    ((bpe_self *)step.self)->codes = codes;
    if (prepare(step.self, why) == SR_OK) return step;
    free_self(step.self);
    return (line_transform){0};
}

const bpe_codes *bpe_step_codes(const line_transform *step) {
    return step->apply == apply ? ((const bpe_self *)step->self)->codes : NULL;
}
