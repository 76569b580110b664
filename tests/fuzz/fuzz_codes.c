/* Byte-pair encoding: merges, a vocabulary, a glossary, then text. Joining the subwords restores
 * the text.
 * Readers: src/text/bpe/bpe_codes.c src/text/bpe/bpe_apply.c src/text/bpe/bpe_glossary.c */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "text/bpe/bpe.h"
#include "text/text_lines.h"

typedef struct pieces {
    bpe_codes *codes;
    bpe_vocabulary *vocabulary;
    char *glossary;
} pieces;

static void apply(const pieces *p, const char *text_path) {
    sr_failure why = {0};
    const char *line, *const glossary[] = {p->glossary};
    size_t length;
    const bpe_settings s = {.separator = "@@",
                            .vocabulary = p->vocabulary,
                            .glossary = glossary,
                            .glossaries = p->glossary && *p->glossary};
    bpe *b = bpe_create(p->codes, &s, &why);
    fuzz_expect_reason(!b, &why);
    text_lines *t = b ? text_lines_open(text_path, &why) : NULL;
    while (t && text_lines_next(t, &line, &length, &why) == SR_OK && line) {
        byte_buffer out = {0};
        const sr_status status = bpe_apply(b, line, length, &out, &why);
        fuzz_expect_reason(status != SR_OK, &why);
        if (status == SR_OK && out.byte) bpe_undo(out.byte, out.size, "@@");
        free(out.byte);
    }
    text_lines_close(t);
    bpe_free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_part part[FUZZ_PARTS];
    sr_failure why = {0};
    pieces p = {0};
    const int parts = fuzz_split(data, size, part);
    p.codes = bpe_codes_read(fuzz_store("codes", part[0].byte, part[0].size), -1, &why);
    fuzz_expect_reason(!p.codes, &why);
    if (!p.codes) return 0;
    if (parts > 1)
        p.vocabulary =
            bpe_vocabulary_read(fuzz_store("words", part[1].byte, part[1].size), 1, &why);
    fuzz_expect_reason(parts > 1 && !p.vocabulary, &why);
    if (parts > 2) p.glossary = fuzz_text(part[2]);
    if (parts > 3) apply(&p, fuzz_store("text", part[3].byte, part[3].size));
    free(p.glossary);
    bpe_vocabulary_free(p.vocabulary);
    bpe_codes_free(p.codes);
    return 0;
}
