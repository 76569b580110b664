/* Merges learnt from a text and from a dictionary; written merges are read back.
 * Readers: src/text/bpe/bpe_counts.c src/text/bpe/bpe_learn.c */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "text/bpe/bpe_internal.h"
#include "text/text_lines.h"

/* A file of merges cannot contain a word with a CR. */
static const char *store_text(fuzz_part part) {
    char *text = fuzz_text(part);
    for (size_t i = 0; i < part.size; i++)
        if (text[i] == '\r') text[i] = 'r';
    const char *path = fuzz_store("text", text, part.size);
    free(text);
    return path;
}

static void count_lines(bpe_counts *c, const char *path) {
    sr_failure why = {0};
    const char *line;
    size_t length;
    text_lines *t = text_lines_open(path, &why);
    while (t && text_lines_next(t, &line, &length, &why) == SR_OK && line)
        if (bpe_counts_add_line(c, line, length, &why) != SR_OK) break;
    text_lines_close(t);
}

static void write_and_read(const bpe_codes *codes) {
    sr_failure why = {0};
    const char *path = fuzz_path("codes");
    FILE *out = fopen(path, "w");
    fuzz_expect(out && bpe_codes_write(codes, out, &why) == SR_OK && fclose(out) == 0, "no codes");
    bpe_codes *again = bpe_codes_read(path, -1, &why);
    fuzz_expect(again != NULL, why.text);
    fuzz_expect(again->merges == codes->merges, "another number of merges");
    bpe_codes_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_part part[FUZZ_PARTS];
    file_bytes f;
    sr_failure why = {0};
    const bpe_learning how = {.merges = 20, .min_frequency = 1};
    const int parts = fuzz_split(data, size, part);
    bpe_counts *c = bpe_counts_create();
    fuzz_expect(c != NULL, "no memory");
    count_lines(c, store_text(part[0]));
    if (parts > 1 && !memchr(part[1].byte, 0x0d, part[1].size) &&
        file_read(fuzz_store("words", part[1].byte, part[1].size), &f, &why) == SR_OK) {
        fuzz_expect_reason(bpe_counts_add_dictionary(c, &f, &why) != SR_OK, &why);
        file_free(&f);
    }
    why = (sr_failure){0};
    bpe_codes *codes = bpe_learn(c, &how, &why);
    fuzz_expect_reason(!codes, &why);
    if (codes) write_and_read(codes);
    bpe_codes_free(codes);
    bpe_counts_free(c);
    return 0;
}
