/* checkpoint_text.c -- dictionaries and BPE merges in a checkpoint, so that it translates without
 * the training text. /text/source_dictionary and /text/target_dictionary (if it differs) have
 * fairseq's form, /text/bpe_codes has the merges. Tokenizer and lowercasing are options of the
 * run. */
#include <stdio.h>
#include <stdlib.h>

#include "text/bpe/bpe_step.h"
#include "train/checkpoint/checkpoint.h"
#include "train/loaded_model.h"

/* -- writing */

/* Adds a text: a dictionary, or merges. A stream of memory fails when out of memory. */
static void put_text(array_writer *w, const char *name, const vocab *v, const bpe_codes *codes) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out && v) vocab_write(v, out);
    if (out && codes) bpe_codes_write(codes, out, NULL);
    const bool written = out && !ferror(out);
    const bool whole = out && fclose(out) == 0 && written;
    const npz_array a = {NPZ_UINT8, 1, {whole ? (int64_t)size : 1}, whole ? text : NULL};
    if (!whole || size > 0) array_writer_add(w, name, &a, NULL); /* not an empty one */
    free(text);
}

void checkpoint_put_text(array_writer *w, const text_codec *codec) {
    const vocab *source = codec->dictionary[0], *target = codec->dictionary[1];
    if (source) put_text(w, "text/source_dictionary", source, NULL);
    if (target && target != source) put_text(w, "text/target_dictionary", target, NULL);
    for (int i = 0; i < codec->steps; i++) {
        const bpe_codes *codes = bpe_step_codes(&codec->step[i]);
        if (codes) put_text(w, "text/bpe_codes", NULL, codes);
    }
}

/* -- reading */

/* Bytes of a text; byte NULL: none. */
static sr_status read_text(const array_reader *f, const char *name, file_bytes *to,
                           sr_failure *why) {
    npz_array a;
    *to = (file_bytes){0};
    snprintf(to->path, sizeof to->path, "%s: /%s", array_reader_path(f), name);
    if (!array_reader_has(f, name)) return SR_OK;
    sr_status status = array_reader_shape(f, name, &a, why);
    if (status != SR_OK) return status;
    if (a.type != NPZ_UINT8 || a.rank != 1)
        return sr_fail(why, SR_FORMAT, "%s is no text", to->path);
    to->size = (size_t)a.dim[0];
    a.data = to->byte = calloc(to->size + 1, 1);
    if (!to->byte) return sr_fail(why, SR_MEMORY, "%s: out of memory", to->path);
    return array_reader_fill(f, name, &a, why);
}

static sr_status read_dictionary(const array_reader *f, const char *name, vocab **to,
                                 sr_failure *why) {
    file_bytes text;
    sr_status status = read_text(f, name, &text, why);
    if (status == SR_OK && text.byte && !(*to = vocab_parse(&text, why))) status = why->status;
    file_free(&text);
    return status;
}

static sr_status read_merges(const array_reader *f, loaded_model_text *to, sr_failure *why) {
    file_bytes text;
    sr_status status = read_text(f, "text/bpe_codes", &text, why);
    if (status == SR_OK && text.byte) {
        bpe_codes *codes = bpe_codes_parse(&text, -1, why);
        const line_transform step = codes ? bpe_step_of(codes, why) : (line_transform){0};
        if (step.apply)
            to->step[to->steps++] = step;
        else
            status = why->status;
    }
    file_free(&text);
    return status;
}

/* Every word has its row in the embedding, and every row its word. */
static sr_status check_dictionary(const loaded_model *t, const char *name, const vocab *v,
                                  int64_t rows, sr_failure *why) {
    if (!v || vocab_size(v) == rows) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s: /text/%s has %lld words, the model %lld", t->path, name,
                   (long long)vocab_size(v), (long long)rows);
}

sr_status loaded_model_open_text(const loaded_model *t, loaded_model_text *text, sr_failure *why) {
    *text = (loaded_model_text){0};
    array_reader *f = array_reader_open(t->path, CHECKPOINT_FORMAT, CHECKPOINT_VERSION, why);
    if (!f) return why->status;
    const line_transform form =
        tokenizer_option_step(t->config.tokenize, t->config.lowercase, &text->text.form);
    if (form.apply) text->step[text->steps++] = form;
    sr_status status = read_dictionary(f, "text/source_dictionary", &text->dictionary[0], why);
    if (status == SR_OK)
        status = read_dictionary(f, "text/target_dictionary", &text->dictionary[1], why);
    const data_shape *s = &t->shape;
    if (status == SR_OK)
        status = check_dictionary(t, "source_dictionary", text->dictionary[0], s->vocabulary, why);
    if (status == SR_OK)
        status = check_dictionary(t, "target_dictionary", text->dictionary[1],
                                  s->target_vocabulary ? s->target_vocabulary : s->vocabulary, why);
    text->joint = text->dictionary[0] && !text->dictionary[1];
    if (text->joint) text->dictionary[1] = text->dictionary[0];
    if (status == SR_OK) status = read_merges(f, text, why);
    array_reader_close(f);
    if (status != SR_OK) loaded_model_close_text(text);
    return status;
}

void loaded_model_close_text(loaded_model_text *text) {
    vocab_free(text->dictionary[0]);
    if (!text->joint) vocab_free(text->dictionary[1]);
    for (int i = 0; i < text->steps; i++)
        if (text->step[i].free) text->step[i].free(text->step[i].self);
    *text = (loaded_model_text){0};
}

text_codec loaded_model_codec(const loaded_model_text *text) {
    return (text_codec){{text->dictionary[0], text->dictionary[1]}, text->step, text->steps};
}
