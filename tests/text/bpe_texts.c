#include "bpe_texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

file_bytes text_file(const char *text) {
    file_bytes f = {.byte = (uint8_t *)(uintptr_t)text, .size = strlen(text)};
    strcpy(f.path, "FILE");
    return f;
}

static size_t line_bytes(const char *text) {
    size_t length = strcspn(text, "\n");
    return length + (text[length] == '\n');
}

bpe_counts *counts_of(const char *text) {
    sr_failure why = {0};
    bpe_counts *c = bpe_counts_create();
    assert_non_null(c);
    for (size_t length; *text; text += length) {
        length = line_bytes(text);
        check_ok(bpe_counts_add_line(c, text, length, &why), &why);
    }
    return c;
}

char *codes_text(const bpe_codes *codes) {
    sr_failure why = {0};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    check_ok(bpe_codes_write(codes, out, &why), &why);
    assert_int_equal(fclose(out), 0);
    return text;
}

char *learned(const char *text, int64_t merges, int64_t min_frequency) {
    sr_failure why = {0};
    bpe_counts *counts = counts_of(text);
    bpe_codes *codes =
        bpe_learn(counts, &(bpe_learning){.merges = merges, .min_frequency = min_frequency}, &why);
    if (!codes) check_ok(why.status, &why);
    char *result = codes_text(codes);
    bpe_codes_free(codes);
    bpe_counts_free(counts);
    return result;
}

static char *apply_all(const char *codes_file, const char *text, const bpe_settings *settings) {
    sr_failure why = {0};
    file_bytes file = text_file(codes_file);
    bpe_codes *codes = bpe_codes_parse(&file, -1, &why);
    bpe *b = codes ? bpe_create(codes, settings, &why) : NULL;
    if (!b) check_ok(why.status, &why);
    byte_buffer out = {0};
    for (size_t length; *text; text += length) {
        length = line_bytes(text);
        check_ok(bpe_apply(b, text, length, &out, &why), &why);
    }
    bpe_free(b);
    bpe_codes_free(codes);
    return out.byte ? out.byte : strdup("");
}

char *applied(const char *codes, const char *text, const char *vocabulary, int64_t threshold) {
    sr_failure why = {0};
    file_bytes file = text_file(vocabulary ? vocabulary : "");
    bpe_vocabulary *v = bpe_vocabulary_parse(&file, threshold, &why);
    if (!v) check_ok(why.status, &why);
    char *result = apply_all(
        codes, text, &(bpe_settings){.separator = "@@", .vocabulary = vocabulary ? v : NULL});
    bpe_vocabulary_free(v);
    return result;
}

char *applied_with(const char *codes, const char *text, const char *const *glossary) {
    bpe_settings settings = {.separator = "@@", .glossary = glossary};
    while (glossary[settings.glossaries]) settings.glossaries++;
    return apply_all(codes, text, &settings);
}

void check_text(char *got, const char *want) {
    assert_string_equal(got, want);
    free(got);
}
