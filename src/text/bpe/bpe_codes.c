/* bpe_codes.c -- merges and their file; see bpe.h.
 *
 * The file: a line "#version: 0.2", then `left right` per merge, the first one first. Without that
 * line it has version 0.1, where the end of a word, "</w>", is a separate symbol. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text/bpe/bpe_internal.h"

bpe_codes *bpe_codes_create(int version, sr_failure *why) {
    bpe_codes *codes = calloc(1, sizeof *codes);
    if (codes)
        codes->version = version;
    else
        bpe_out_of_memory(why);
    return codes;
}

void bpe_codes_free(bpe_codes *codes) {
    if (!codes) return;
    map_free(&codes->symbol);
    map_free(&codes->pair);
    free(codes->merged);
    free(codes->order);
    free(codes->origin);
    free(codes);
}

int32_t bpe_add_joined(map *symbol, int32_t left, int32_t right) {
    size_t a, b;
    const char *first = map_text(symbol, left, &a), *second = map_text(symbol, right, &b);
    char *text = malloc(a + b + 1);
    if (!text) return -1;
    memcpy(text, first, a);
    memcpy(text + a, second, b);
    const int64_t id = map_add(symbol, text, a + b);
    free(text);
    return (int32_t)id;
}

sr_status bpe_codes_add(bpe_codes *codes, const char *left, size_t left_length, const char *right,
                        size_t right_length, sr_failure *why) {
    int32_t a = map_add(&codes->symbol, left, left_length);
    int32_t b = map_add(&codes->symbol, right, right_length);
    int32_t both = a < 0 || b < 0 ? -1 : bpe_add_joined(&codes->symbol, a, b);
    if (both < 0 ||
        !vector_reserve(&codes->merged, &codes->merged_capacity, codes->pair.count + 1,
                        sizeof *codes->merged) ||
        !vector_reserve(&codes->order, &codes->order_capacity, codes->merges + 1,
                        sizeof *codes->order))
        return bpe_out_of_memory(why);
    int32_t pair = map_add_number(&codes->pair, bpe_key(a, b));
    if (pair < 0) return bpe_out_of_memory(why);
    codes->merged[pair] = both;
    codes->order[codes->merges++] = pair;
    return SR_OK;
}

/* If several pairs form one symbol, the pair whose last line comes first counts, as in the
 * original. Usually a pair has one line. */
sr_status bpe_codes_finish(bpe_codes *codes, sr_failure *why) {
    bool *seen = calloc((size_t)codes->pair.count + 1, sizeof *seen);
    codes->origin = malloc(((size_t)codes->symbol.count + 1) * sizeof *codes->origin);
    for (int64_t i = 0; codes->origin && i < codes->symbol.count; i++) codes->origin[i] = -1;
    for (int64_t i = codes->merges - 1; seen && codes->origin && i >= 0; i--) {
        int32_t pair = codes->order[i];
        if (!seen[pair]) codes->origin[codes->merged[pair]] = pair;
        seen[pair] = true;
    }
    bool done = seen && codes->origin;
    free(seen);
    return done ? SR_OK : bpe_out_of_memory(why);
}

/* -- the file ---------------------------------------------------------------------------------- */

sr_status bpe_codes_write(const bpe_codes *codes, FILE *out, sr_failure *why) {
    errno = 0;
    if (codes->version == 2) fputs("#version: 0.2\n", out);
    for (int64_t i = 0; i < codes->merges && !ferror(out); i++) {
        size_t left, right;
        const symbol_pair k = bpe_pair_of(&codes->pair, codes->order[i]);
        const char *text = map_text(&codes->symbol, k.left, &left);
        fwrite(text, 1, left, out);
        fputc(' ', out);
        text = map_text(&codes->symbol, k.right, &right);
        fwrite(text, 1, right, out);
        fputc('\n', out);
    }
    return bpe_check_write(out, why);
}

static bool begins_with(const file_bytes *f, size_t at, const char *text) {
    return f->size >= at + strlen(text) && memcmp(f->byte + at, text, strlen(text)) == 0;
}

/* Passes over a byte order mark and reads the version line, if any. */
static sr_status read_version(bpe_fields *f, int *version, sr_failure *why) {
    static const char mark[] = "#version:";
    f->at = begins_with(f->file, 0, "\xef\xbb\xbf") ? 3 : 0;
    const char *text = (const char *)f->file->byte + f->at + sizeof mark - 1;
    *version = 1;
    if (!begins_with(f->file, f->at, mark)) return SR_OK;
    size_t length = strcspn(text, "\n");
    f->at += sizeof mark - 1 + length + (text[length] == '\n');
    f->line = 1;
    while (length && (*text == ' ' || *text == '\t')) text++, length--;
    while (length && strchr(" \t\r", text[length - 1])) length--;
    if (length == 3 && memcmp(text, "0.2", 3) == 0) *version = 2;
    if (*version == 2 || (length == 3 && memcmp(text, "0.1", 3) == 0)) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s:1: version '%.*s' of codes is not 0.1 or 0.2", f->file->path,
                   (int)(length < 40 ? length : 40), text);
}

bpe_codes *bpe_codes_parse(const file_bytes *file, int64_t merges, sr_failure *why) {
    bpe_fields f = {.file = file};
    int version;
    if (read_version(&f, &version, why) != SR_OK) return NULL;
    bpe_codes *codes = bpe_codes_create(version, why);
    sr_status status = codes ? SR_OK : SR_MEMORY;
    size_t end = file->size; /* without empty lines at the end */
    while (end > f.at && file->byte[end - 1] == '\n') end--;
    while (status == SR_OK && (merges < 0 || codes->merges < merges) && f.at < end) {
        status = bpe_next_fields(&f, "left right", why);
        if (status == SR_OK)
            status = bpe_codes_add(codes, f.field[0], f.length[0], f.field[1], f.length[1], why);
    }
    if (status == SR_OK && bpe_codes_finish(codes, why) == SR_OK) return codes;
    bpe_codes_free(codes);
    return NULL;
}

bpe_codes *bpe_codes_read(const char *path, int64_t merges, sr_failure *why) {
    file_bytes file;
    if (file_read(path, &file, why) != SR_OK) return NULL;
    bpe_codes *codes = bpe_codes_parse(&file, merges, why);
    file_free(&file);
    return codes;
}
