/* translator.c -- translates lines of text and scores a split; see translator.h. */
#include "task/translator.h"

#include <stdlib.h>
#include <string.h>

/* -- from lines to tokens */

enum { SOURCE, TARGET };

/* Tokens of a line and </s>; malloc'd. */
static sr_status encode(const translator *t, translator_line line, model_source *to,
                        sr_failure *why) {
    const int64_t room = 2 * (int64_t)line.length + 1; /* no step makes more subwords than bytes */
    int64_t count = 0;
    int32_t *token = malloc((size_t)(room + 1) * sizeof *token);
    *to = (model_source){0};
    if (!token) return sr_fail(why, SR_MEMORY, "out of memory for a line of text");
    sr_status status =
        text_codec_encode(&t->codec, SOURCE, line.byte, line.length, token, room, &count, why);
    if (status != SR_OK || count == 0) {
        free(token);
        return status;
    }
    if (count > room) count = room;
    token[count] = TOKEN_EOS;
    *to = (model_source){token, count + 1};
    return SR_OK;
}

/* The lines with words: their sources and numbers. */
typedef struct batch_of_lines {
    model_source *source;
    int64_t *line, count;
    translation *out; /* [count] */
} batch_of_lines;

/* Crops or empties a source of too many tokens; false: it is an error. */
static bool shorten(const translator *t, int64_t line, model_source *s) {
    if (t->on_long) t->on_long(t->context, line, s->length);
    if (t->long_lines == LONG_ERROR) return false;
    int32_t *token = (int32_t *)(uintptr_t)s->token;
    if (t->long_lines == LONG_CROP) {
        token[TRANSLATOR_LONGEST - 1] = TOKEN_EOS;
        s->length = TRANSLATOR_LONGEST;
        return true;
    }
    free(token);
    *s = (model_source){0};
    return true;
}

static sr_status collect(const translator *t, const translator_line *line, int64_t count,
                         batch_of_lines *b, int64_t *refused, sr_failure *why) {
    const size_t room = (size_t)count + 1;
    *b = (batch_of_lines){calloc(room, sizeof *b->source), calloc(room, sizeof *b->line), 0,
                          calloc(room, sizeof *b->out)};
    if (!b->source || !b->line || !b->out)
        return sr_fail(why, SR_MEMORY, "out of memory for %lld lines", (long long)count);
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; i++) {
        model_source *s = &b->source[b->count];
        sr_status status = encode(t, line[i], s, why);
        if (status != SR_OK) return *refused = i, status;
        if (s->length > TRANSLATOR_LONGEST) wrong += !shorten(t, i, s);
        if (s->length > 0) b->line[b->count++] = i;
    }
    if (!wrong || !t->on_long) return SR_OK; /* translate names the first one */
    return sr_fail(why, SR_USAGE, "%lld lines are longer than %d tokens", (long long)wrong,
                   TRANSLATOR_LONGEST);
}

static void free_lines(batch_of_lines *b) {
    for (int64_t i = 0; i < b->count; i++) free((void *)(uintptr_t)b->source[i].token);
    free(b->source), free(b->line), free(b->out);
}

sr_status translator_check(const translator *t, const translator_line *line, int64_t count,
                           sr_failure *why) {
    batch_of_lines b = {0};
    int64_t refused;
    const sr_status status = collect(t, line, count, &b, &refused, why);
    free_lines(&b);
    return status;
}

sr_status translator_run(const translator *t, const translator_line *line, int64_t count,
                         translation *out, translate_report *report, sr_failure *why) {
    batch_of_lines b = {0};
    *report = (translate_report){.refused = -1};
    sr_status status = collect(t, line, count, &b, &report->refused, why);
    if (status == SR_OK) {
        status = translate(t->model, &t->options, b.source, b.count, b.out, report, why);
        if (report->refused >= 0) report->refused = b.line[report->refused];
    }
    for (int64_t i = 0; i < b.count && status == SR_OK; i++) out[b.line[i]] = b.out[i];
    free_lines(&b);
    return status;
}

/* -- from tokens to text */

/* The j-th subword of the source's line, by the blanks of text_codec_ids. */
static const char *source_piece(const byte_buffer *pieces, int64_t j, size_t *length) {
    const file_bytes f = {.byte = (uint8_t *)pieces->byte, .size = pieces->size};
    text_walk w = {&f, 0};
    const char *at = "";
    *length = 0;
    for (; j >= 0; j--)
        if (!text_word(&w, &at, length)) break;
    return at;
}

sr_status translator_text(const translator *t, translator_line line, const hypothesis *h,
                          byte_buffer *out, sr_failure *why) {
    byte_buffer pieces = {0};
    int32_t *word = malloc((size_t)(h->length + 1) * sizeof *word);
    bool whole = word != NULL;
    sr_status status = SR_OK;
    out->size = 0;
    if (t->unknown == UNKNOWN_COPY)
        status = text_codec_pieces(&t->codec, SOURCE, line.byte, line.length, &pieces, why);
    const int64_t count = whole && status == SR_OK ? hypothesis_words(h, t->unknown, word) : 0;
    whole = whole && buffer_put(out, "", 0);
    for (int64_t i = 0; i < count && whole; i++) {
        const char *text = word[i] >= 0 ? vocab_word(t->codec.dictionary[TARGET], word[i]) : NULL;
        size_t length = text ? strlen(text) : 0;
        if (word[i] < 0) text = source_piece(&pieces, -1 - (int64_t)word[i], &length);
        whole = (i == 0 || buffer_put(out, " ", 1)) && text && buffer_put(out, text, length);
    }
    if (whole) out->size = text_codec_join(out->byte, out->size);
    buffer_free(&pieces);
    free(word);
    if (status != SR_OK || whole) return status;
    return sr_fail(why, SR_MEMORY, "out of memory for a line of text");
}

/* -- BLEU */

/* The reference in the form of the score. multi-bleu compares words of the training text: split as
 * there, but not into subwords. The other forms compare plain text: the line as it is in its
 * file. */
static sr_status reference_text(const translator *t, const bleu_form *form, data_line line,
                                byte_buffer *ref, sr_failure *why) {
    if (!form->multi)
        return buffer_put(ref, line.byte, line.length)
                   ? SR_OK
                   : sr_fail(why, SR_MEMORY, "out of memory for a line of text");
    const sr_status status = text_codec_pieces(&t->codec, TARGET, line.byte, line.length, ref, why);
    if (status == SR_OK) ref->size = text_codec_join(ref->byte, ref->size);
    return status;
}

static sr_status score_pair(const translator *t, const bleu_form *form, translator_line source,
                            const translation *h, data_line reference, bleu_scorer *s,
                            sr_failure *why) {
    byte_buffer hyp = {0}, ref = {0};
    sr_status status = reference_text(t, form, reference, &ref, why);
    if (status == SR_OK && h->count > 0)
        status = translator_text(t, source, &h->item[0], &hyp, why);
    const bleu_text of = {ref.byte, ref.size};
    if (status == SR_OK)
        status = bleu_add(s, (bleu_text){hyp.byte ? hyp.byte : "", hyp.size}, &of, 1, why);
    buffer_free(&hyp), buffer_free(&ref);
    return status;
}

static sr_status score_split(const translator *t, const dataset *d, data_split split,
                             const bleu_form *form, const translator_line *line, int64_t count,
                             bleu_scorer *s, bool *stopped, sr_failure *why) {
    translate_report report = {0};
    translation *out = calloc((size_t)count + 1, sizeof *out);
    if (!out) return sr_fail(why, SR_MEMORY, "out of memory for %lld sentences", (long long)count);
    sr_status status = translator_run(t, line, count, out, &report, why);
    *stopped = report.stopped;
    if (status != SR_OK && report.refused >= 0) {
        const sr_failure own = *why;
        *why = (sr_failure){0};
        sr_fail(why, status, "line %lld of the %s text: %s",
                (long long)data_line_of(d, split, report.refused) + 1,
                split == SPLIT_VALID ? "validation" : data_split_name(split), own.text);
        if (*own.hint) sr_hint(why, "%s", own.hint);
    }
    for (int64_t i = 0; i < count; i++) {
        if (status == SR_OK && !report.stopped)
            status = score_pair(t, form, line[i], &out[i], data_reference(d, split, i), s, why);
        translation_free(&out[i]);
    }
    free(out);
    return status;
}

bleu_scorer *translator_bleu(const translator *t, const dataset *d, data_split split,
                             const bleu_form *form, sr_failure *why) {
    const int64_t count = data_pairs(d, split);
    bool stopped = false;
    translator_line *line = malloc((size_t)(count + 1) * sizeof *line);
    bleu_scorer *s = bleu_create(form);
    sr_status status = line && s ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for a score");
    for (int64_t i = 0; i < count && status == SR_OK; i++) {
        const data_line source = data_source(d, split, i);
        if (!source.byte) status = sr_fail(why, SR_USAGE, "BLEU wants data from files of text");
        line[i] = (translator_line){source.byte, source.length};
    }
    if (status == SR_OK) status = score_split(t, d, split, form, line, count, s, &stopped, why);
    free(line);
    if (status == SR_OK && !stopped) return s;
    bleu_free(s);
    return NULL;
}

int64_t translator_tokenized(const dataset *d, data_split split) {
    int64_t lines = 0;
    for (int64_t i = 0; i < data_pairs(d, split); i++) {
        const data_line line = data_reference(d, split, i);
        lines += line.byte && bleu_seems_tokenized((bleu_text){line.byte, line.length});
    }
    return lines;
}
