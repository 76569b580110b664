/* cmd_translate.c -- statrec translate: translates text. Only '\n' ends a line, so that output line
 * i belongs to input line i. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program/progress.h"
#include "cli/command_frame.h"
#include "cli/commands.h"
#include "cli/decode_options.h"
#include "cli/text/text_files.h"
#include "text/text.h"
#include "text/text_lines.h"
#include "train/loaded_model.h"

typedef struct translate_values {
    decode_values decode; /* first: DECODE_ROWS */
    option_text output, long_lines;
    int64_t best, threads;
    bool quiet, force;
} translate_values;

#define AT(field) offsetof(translate_values, field)
static const option translate_rows[] = {
    DECODE_ROWS(NULL),
    INT_OPTION(NULL, "best", AT(best), "1", 1, 1000, "hypotheses",
               "write N hypotheses per sentence; above 1 as lines `NUMBER ||| TEXT ||| SCORE`, "
               "sentences from 0"),
    CHOICE_OPTION(NULL, "long", AT(long_lines), "error", "error|crop|skip",
                  "lines of more than 1,024 tokens: name all and stop, cut their end off, or write "
                  "an empty line"),
    OUTPUT_OPTION(AT(output), "write this file instead of standard output"),
    FLAG_OPTION(NULL, "force", AT(force), "no", "replace the file of -o if it exists"),
    INT_OPTION(NULL, "threads", AT(threads), "0", 1, 1024, "threads",
               "use N threads; 0: every core; the result does not depend on it"),
    FLAG_OPTION(NULL, "quiet", AT(quiet), "no", "print no progress line"),
};

static const command_frame frame = {
    "usage: statrec translate RUN.h5|X.ckpt [TEXT] [OPTIONS] < TEXT > TRANSLATION\n"
    "\n"
    "Translates a text by beam search, one sentence per line. The model is X.ckpt or the newest\n"
    "checkpoint of a run. The text is tokenized and split into subwords like the training text\n"
    "(--tokenize, --lowercase, --bpe-merges of statrec train). The translation has joined\n"
    "subwords. The translation of a sentence does not depend on other sentences.\n"
    "\n",
    {translate_rows, sizeof translate_rows / sizeof translate_rows[0]},
    NULL,
    "0 done, 1 failed, 2 usage, 128+n after signal n.",
    2};

void decode_choose(const decode_values *v, translator *t) {
    beam_options *b = &t->options.beam;
    const bool forbid = !strcmp(v->unknown, "forbid");
    t->options = translate_options_default();
    *b = (beam_options){.beam = v->beam,
                        .best = 1,
                        .lenpen = v->lenpen,
                        .unk_penalty = forbid ? INFINITY : v->unk_penalty,
                        .min_len = v->min_len,
                        .max_a = v->max_a,
                        .max_b = v->max_b};
    t->options.max_tokens = v->max_tokens;
    t->unknown = !strcmp(v->unknown, "drop")   ? UNKNOWN_DROP
                 : !strcmp(v->unknown, "copy") ? UNKNOWN_COPY
                                               : UNKNOWN_KEEP;
}

/* -- lines ----------------------------------------------------------------------------------- */

enum { LINES_AT_ONCE = 8192 };

/* Lines that are translated together. */
typedef struct lines {
    translator_line line[LINES_AT_ONCE];
    translation out[LINES_AT_ONCE];
    int64_t count;
} lines;

static sr_status read_lines(text_lines *in, lines *l, sr_failure *why) {
    const char *line;
    size_t length;
    sr_status status = SR_OK;
    while (l->count < LINES_AT_ONCE &&
           (status = text_lines_next(in, &line, &length, why)) == SR_OK && line) {
        char *copy = malloc(length + 1);
        if (!copy) return sr_fail(why, SR_MEMORY, "out of memory for a line");
        memcpy(copy, line, length);
        copy[length] = 0;
        l->line[l->count] = (translator_line){copy, line_content(copy, length)};
        l->out[l->count++] = (translation){0};
    }
    return status;
}

/* -- the command ----------------------------------------------------------------------------- */

typedef struct session {
    const tool *tool;
    const translate_values *values;
    translator translator;
    text_lines *in;
    int64_t long_count;
    progress progress;
    int64_t lines, sentences, words; /* before this call of translator_run */
    double start;
} session;

static void on_progress(void *context, int64_t sentences, int64_t words) {
    session *s = context;
    char detail[64];
    const double seconds = progress_clock() - s->start;
    snprintf(detail, sizeof detail, "%.0f words/s", (double)(s->words + words) / seconds);
    progress_show(&s->progress, s->sentences + sentences, detail);
}

static void on_long(void *context, int64_t line, int64_t tokens) {
    session *s = context;
    char text[80];
    sr_failure place = {0};
    static const char *const done[] = {"", ": cropped", ": skipped"};
    snprintf(text, sizeof text, "%lld tokens, more than %d%s", (long long)tokens,
             TRANSLATOR_LONGEST, done[s->translator.long_lines]);
    text_lines_fail_at(s->in, s->lines + line + 1, SR_USAGE, text, &place);
    tool_warn(s->tool, "%s", place.text);
    s->long_count++;
}

static sr_status print_line(const session *s, const lines *l, int64_t i, FILE *out,
                            sr_failure *why) {
    byte_buffer text = {0};
    sr_status status = SR_OK;
    const translation *t = &l->out[i];
    if (s->values->best == 1 && t->count == 0) fputc('\n', out);
    for (int64_t k = 0; k < t->count && status == SR_OK; k++) {
        status = translator_text(&s->translator, l->line[i], &t->item[k], &text, why);
        if (status != SR_OK) break;
        if (s->values->best > 1) fprintf(out, "%lld ||| ", (long long)(s->lines + i));
        fwrite(text.byte, 1, text.size, out);
        if (s->values->best > 1) fprintf(out, " ||| %.9g", t->item[k].score);
        fputc('\n', out);
    }
    buffer_free(&text);
    return status;
}

static void free_lines(session *s, lines *l) {
    s->lines += l->count;
    for (int64_t i = 0; i < l->count; i++) {
        free((void *)(uintptr_t)l->line[i].byte);
        translation_free(&l->out[i]);
    }
    l->count = 0;
}

/* After the first long line that is an error: also names the long lines after it. */
static void name_long_lines(session *s, lines *l, sr_failure *why) {
    sr_failure own = {0};
    while (read_lines(s->in, l, &own) == SR_OK && l->count > 0) {
        translator_check(&s->translator, l->line, l->count, &own);
        free_lines(s, l);
    }
    free_lines(s, l);
    *why = (sr_failure){0};
    sr_fail(why, SR_USAGE, "%lld line%s longer than %d tokens", (long long)s->long_count,
            s->long_count == 1 ? " is" : "s are", TRANSLATOR_LONGEST);
    sr_hint(why, "--long crop or --long skip translates the rest");
}

/* Translates up to LINES_AT_ONCE lines; *more: false at the end of the text. */
static sr_status translate_some(session *s, text_lines *in, lines *l, FILE *out, bool *more,
                                sr_failure *why) {
    translate_report report = {.refused = -1};
    sr_status status = read_lines(in, l, why);
    *more = l->count > 0;
    if (status == SR_OK && *more)
        status = translator_run(&s->translator, l->line, l->count, l->out, &report, why);
    *more &= !report.stopped;
    for (int64_t i = 0; i < l->count && status == SR_OK && !report.stopped; i++)
        status = print_line(s, l, i, out, why);
    if (status != SR_OK && report.refused >= 0) {
        const sr_failure own = *why;
        *why = (sr_failure){0};
        text_lines_fail_at(in, s->lines + report.refused + 1, status, own.text, why);
        if (*own.hint) sr_hint(why, "%s", own.hint);
    }
    s->sentences += report.sentences, s->words += report.words;
    free_lines(s, l);
    if (status != SR_OK && s->long_count && s->translator.long_lines == LONG_ERROR)
        name_long_lines(s, l, why);
    return status;
}

static sr_status translate_text(session *s, const char *path, FILE *out, sr_failure *why) {
    text_lines *in = s->in = text_lines_open(path, why);
    lines *l = calloc(1, sizeof *l);
    sr_status status = in ? SR_OK : why->status;
    if (in && !l) status = sr_fail(why, SR_MEMORY, "out of memory for lines");
    progress_begin(&s->progress, s->tool->name, "sentences", 0, s->values->quiet);
    s->start = progress_clock();
    for (bool more = true; status == SR_OK && more;)
        status = translate_some(s, in, l, out, &more, why);
    progress_end(&s->progress);
    free(l);
    text_lines_close(in);
    return status;
}

static sr_status open_and_translate(session *s, loaded_model *t, loaded_model_text *text,
                                    const char *path, FILE *out, sr_failure *why) {
    const loaded_model_options o = {.data_dir = "", .threads = (int)s->values->threads};
    sr_status status = loaded_model_open(t, s->tool->argv[2], &o, why);
    if (status == SR_OK) status = loaded_model_open_text(t, text, why);
    if (status == SR_OK && !text->dictionary[0])
        status = sr_fail(why, SR_USAGE, "%s: model %s writes no sentences", t->path,
                         t->config.model.name);
    if (status != SR_OK) return status;
    s->translator.model = t->model;
    s->translator.codec = loaded_model_codec(text);
    decode_choose(&s->values->decode, &s->translator);
    s->translator.long_lines = (long_lines)text_find_word("error|crop|skip", s->values->long_lines);
    s->translator.on_long = on_long, s->translator.context = s;
    translate_options *d = &s->translator.options;
    d->beam.best = s->values->best;
    d->threads = t->threads, d->context = s;
    d->progress = on_progress, d->stop = command_stops;
    tool_catch_signals();
    status = translate_text(s, path, out, why);
    const double seconds = progress_clock() - s->start;
    if (status == SR_OK && !s->values->quiet)
        fprintf(stderr, "%s: %s: %lld lines, %lld words, %.1f s, %.0f words/s\n", s->tool->name,
                t->path, (long long)s->lines, (long long)s->words, seconds,
                (double)s->words / seconds);
    return status;
}

static int run(const tool *t, const translate_values *v, const char *path) {
    session s = {.tool = t, .values = v};
    loaded_model_text text = {0};
    text_output out;
    sr_failure why = {0};
    loaded_model *of = calloc(1, sizeof *of);
    if (!of) return tool_error(t, TOOL_FAILED, "out of memory");
    if (text_output_open(&out, v->output, v->force, &why) != SR_OK) {
        free(of);
        return tool_report(t, &why);
    }
    sr_status status = open_and_translate(&s, of, &text, path, out.out, &why);
    int code = text_output_close(&out, t, status, &why);
    loaded_model_close_text(&text);
    loaded_model_close(of);
    free(of);
    return code == TOOL_DONE && tool_signal() ? 128 + tool_signal() : code;
}

int cmd_translate(const tool *t) {
    translate_values v;
    int files = 0, code;
    if (command_ends(t, &frame, &v, &files, &code)) return code;
    if (files < 1 || files > 2)
        return tool_error(t, TOOL_USAGE, "a run or checkpoint, and a text or none expected");
    if (v.best > v.decode.beam)
        return tool_error(t, TOOL_USAGE, "--best %lld is more than --beam %lld", (long long)v.best,
                          (long long)v.decode.beam);
    return run(t, &v, files == 2 ? t->argv[3] : "-");
}
