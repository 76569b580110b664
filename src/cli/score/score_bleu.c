/* score_bleu.c -- `statrec score bleu` and `statrec score multi-bleu`. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command_frame.h"
#include "cli/score/scores.h"
#include "score/score.h"
#include "text/line_transform.h"
#include "text/text.h"

enum { FIRST = 3, FILES = 1 + BLEU_REFERENCES };

typedef struct bleu_options {
    option_list ref;
    option_text tokenize, smooth;
    double smooth_value;
    bool lowercase;
    int64_t bootstrap, seed, digits;
} bleu_options;

static bool has_smooth_value(const void *values) {
    const bleu_options *o = values;
    return strcmp(o->smooth, "floor") == 0 || strcmp(o->smooth, "add-k") == 0;
}

static bool draws(const void *values) {
    return ((const bleu_options *)values)->bootstrap > 0;
}

static const option_use of_smooth = {.with = "smooth", .holds = has_smooth_value};
static const option_use of_bootstrap = {.with = "bootstrap", .holds = draws};

#define AT(field) offsetof(bleu_options, field)
#define SHARED_ROWS                                                                                \
    LIST_OPTION(NULL, "ref", AT(ref),                                                              \
                "read references, one line per line of the text; may be repeated",                 \
                .value = "FILE"),                                                                  \
        INT_OPTION(NULL, "bootstrap", AT(bootstrap), "0", 0, 1000000, "resamples",                 \
                   "compute a 95 % interval from N resamples, usually 1000; 0: none"),             \
        INT_OPTION(NULL, "seed", AT(seed), "12345", 0, 9007199254740992, "", "seed the resamples", \
                   .use = &of_bootstrap)

static const option multi_rows[] = {
    SHARED_ROWS,
    FLAG_OPTION(NULL, "lowercase", AT(lowercase), "no", "compare ASCII letters in lower case"),
};
static const option bleu_rows[] = {
    SHARED_ROWS,
    FLAG_OPTION(NULL, "lowercase", AT(lowercase), "no", "compare all letters in lower case"),
    CHOICE_OPTION(NULL, "tokenize", AT(tokenize), "13a", BLEU_TOKENIZER_WORDS,
                  "split lines into words by this tokenizer"),
    CHOICE_OPTION(NULL, "smooth", AT(smooth), "exp", BLEU_SMOOTHING_WORDS,
                  "replace precisions of 0 by this smoothing"),
    REAL_OPTION(NULL, "smooth-value", AT(smooth_value), "nan", 0, 1e9, "",
                "set the value of floor (nan: 0.1) or add-k (nan: 1)", .use = &of_smooth),
    INT_OPTION(NULL, "digits", AT(digits), "2", 0, 15, "", "print N digits after the point"),
};

#define USAGE(name)                                                                                \
    "usage: statrec score " name " --ref REF [--ref REF2 ...] [OPTIONS] < HYP\n"                   \
    "       statrec score " name " --ref REF [--ref REF2 ...] [OPTIONS] HYP\n\n"
#define FILES_HELP "Reads REF0, REF1 ... where there is no file REF. Files may be gzip (.gz).\n\n"
static const command_frame multi_frame = {
    USAGE("multi-bleu") "Prints the line of multi-bleu.perl. HYP and REF are tokenized; ASCII "
                        "blanks\n"
                        "separate words. The signature goes to standard error.\n" FILES_HELP,
    {multi_rows, sizeof multi_rows / sizeof multi_rows[0]},
    NULL,
    "0 done, 1 failed or references without a word, 2 usage.",
    FIRST};
static const command_frame bleu_frame = {
    USAGE("bleu") "Computes BLEU like sacreBLEU 2. HYP and REF are plain UTF-8 text, which is\n"
                  "tokenized here. The score comes with its signature.\n" FILES_HELP,
    {bleu_rows, sizeof bleu_rows / sizeof bleu_rows[0]},
    NULL,
    "0 done, 1 failed, 2 usage.",
    FIRST};

/* -- files ------------------------------------------------------------------------------------- */

/* The hypotheses, then the references. */
typedef struct bleu_files {
    file_bytes file[FILES];
    int count;
} bleu_files;

static sr_status read_next(bleu_files *f, const char *path, sr_failure *why) {
    if (f->count == FILES)
        return sr_fail(why, SR_USAGE, "%s: one reference too many; at most %d", path,
                       BLEU_REFERENCES);
    const sr_status status = file_read(path, &f->file[f->count], why);
    if (status == SR_OK) f->count++;
    return status;
}

/* REF or REF.gz, else REF0, REF1 ... as long as there are such files. */
static sr_status read_references(bleu_files *f, const char *name, sr_failure *why) {
    char path[FILE_PATH], numbered[OPTION_TEXT_SIZE + 16];
    bool found;
    sr_status status = file_find("", name, path, &found, why);
    if (status != SR_OK || found) return status == SR_OK ? read_next(f, path, why) : status;
    for (int i = 0;; i++) {
        snprintf(numbered, sizeof numbered, "%s%d", name, i);
        status = file_find("", numbered, path, &found, why);
        if (status == SR_OK && found) status = read_next(f, path, why);
        if (status != SR_OK) return status;
        if (!found && i) return SR_OK;
        if (!found) return sr_fail(why, SR_IO, "%s: no such file, nor %s", name, numbered);
    }
}

static sr_status count_lines(const file_bytes *f, bool multi, int64_t *lines, sr_failure *why) {
    if (!multi) return text_check(f, lines, why);
    *lines = 0;
    for (size_t i = 0; i < f->size; i++) *lines += f->byte[i] == '\n';
    *lines += f->size && f->byte[f->size - 1] != '\n';
    return SR_OK;
}

/* Checks the numbers of lines; multi-bleu.perl treats missing lines as empty. */
static sr_status compare_lines(const bleu_files *f, bool multi, int64_t *lines, sr_failure *why) {
    sr_status status = count_lines(&f->file[0], multi, lines, why);
    for (int i = 1; status == SR_OK && i < f->count; i++) {
        int64_t of_ref;
        status = count_lines(&f->file[i], multi, &of_ref, why);
        if (status == SR_OK && of_ref != *lines)
            status = sr_fail(why, SR_FORMAT, "%s has %lld lines, %s has %lld", f->file[0].path,
                             (long long)*lines, f->file[i].path, (long long)of_ref);
    }
    if (status == SR_OK && *lines == 0)
        status = sr_fail(why, SR_FORMAT, "%s: no line to score", f->file[0].path);
    return status;
}

/* -- scores ------------------------------------------------------------------------------------ */

static sr_status score_lines(bleu_scorer *s, const bleu_files *f, bool multi, int64_t lines,
                             sr_failure *why) {
    size_t at[FILES] = {0};
    sr_status status = SR_OK;
    for (int64_t n = 0; status == SR_OK && n < lines; n++) {
        bleu_text line[FILES];
        sr_failure reason = {0};
        for (int i = 0; i < f->count; i++) {
            const file_bytes *file = &f->file[i];
            const char *from = (const char *)file->byte + at[i];
            const size_t left = file->size - at[i];
            const char *newline = memchr(from, '\n', left);
            /* multi-bleu.perl cuts off the last byte of a line, newline or not */
            const size_t size = newline         ? (size_t)(newline - from)
                                : multi && left ? left - 1
                                                : left;
            line[i] = (bleu_text){from, size};
            at[i] = newline ? at[i] + size + 1 : file->size;
        }
        status = bleu_add(s, line[0], line + 1, f->count - 1, &reason);
        if (status != SR_OK)
            sr_fail(why, status, "%s:%lld: %s", f->file[0].path, (long long)n + 1, reason.text);
    }
    return status;
}

static int print_multi(const tool *t, const bleu_scorer *s, const bleu_interval *interval) {
    char line[BLEU_LINE], signature[BLEU_LINE];
    const bleu_counts sum = bleu_sum(s);
    bleu_print_multi(&sum, line, sizeof line);
    puts(line);
    fflush(
        stdout); /* the two stay in this order in one file; tool_finish reports what went wrong */
    bleu_signature(s, interval, signature, sizeof signature);
    fprintf(stderr, "%s: signature %s\n", t->name, signature);
    return sum.ref_len ? TOOL_DONE : TOOL_FAILED;
}

static int print_scores(const tool *t, const bleu_scorer *s, const bleu_options *o, bool multi) {
    char line[BLEU_LINE];
    sr_failure why = {0};
    bleu_interval interval = {.resamples = o->bootstrap, .seed = (uint64_t)o->seed};
    const bleu_interval *drawn = o->bootstrap ? &interval : NULL;
    const int digits = multi ? 2 : (int)o->digits;
    int status = TOOL_DONE;
    if (drawn && bleu_bootstrap(s, &interval, &why) != SR_OK) return tool_report(t, &why);
    if (multi) {
        status = print_multi(t, s, drawn);
    } else {
        bleu_print(s, digits, drawn, line, sizeof line);
        puts(line);
    }
    if (drawn) {
        bleu_print_interval(drawn, digits, line, sizeof line);
        puts(line);
    }
    return status;
}

static void warn_tokenized(const tool *t, const file_bytes *f) {
    int64_t lines = 0;
    for (line_walk w = {.file = f}; line_walk_next(&w);)
        lines += bleu_seems_tokenized((bleu_text){w.line, w.length});
    if (lines >= BLEU_TOKENIZED_LINES)
        tool_warn(t, BLEU_TOKENIZED_WARNING, f->path, (long long)lines);
}

static int score_files(const tool *t, const bleu_files *f, const bleu_options *o, bool multi) {
    sr_failure why = {0};
    int64_t lines = 0;
    bleu_form form = {.multi = multi, .lowercase = o->lowercase};
    if (!multi) {
        form.tokenizer = (bleu_tokenizer)text_find_word(BLEU_TOKENIZER_WORDS, o->tokenize);
        form.smoothing = (bleu_smoothing)text_find_word(BLEU_SMOOTHING_WORDS, o->smooth);
        form.smooth_value =
            isnan(o->smooth_value) ? bleu_smooth_default(form.smoothing) : o->smooth_value;
    }
    if (compare_lines(f, multi, &lines, &why) != SR_OK) return tool_report(t, &why);
    for (int i = 0; i < f->count; i++) { /* surprising rules of the original programs */
        const file_bytes *file = &f->file[i];
        if (file->size >= 3 && memcmp(file->byte, "\xef\xbb\xbf", 3) == 0)
            tool_warn(t, "%s: the byte order mark at its start is taken for part of the first word",
                      file->path);
        if (!multi) warn_tokenized(t, file);
        if (multi && file->size && file->byte[file->size - 1] != '\n')
            tool_warn(
                t, "%s: no newline at its end; the last byte is cut off, as multi-bleu.perl does",
                file->path);
    }
    bleu_scorer *s = bleu_create(&form);
    if (!s) return tool_error(t, TOOL_FAILED, "out of memory");
    const int status = score_lines(s, f, multi, lines, &why) == SR_OK ? print_scores(t, s, o, multi)
                                                                      : tool_report(t, &why);
    bleu_free(s);
    return status;
}

static int score(const tool *t, bool multi) {
    bleu_options o = {0};
    bleu_files files = {0};
    sr_failure why = {0};
    int hyps = 0, code;
    if (command_ends(t, multi ? &multi_frame : &bleu_frame, &o, &hyps, &code)) return code;
    if (o.ref.count == 0) return tool_error(t, TOOL_USAGE, "--ref REF is missing");
    if (hyps > 1) return tool_error(t, TOOL_USAGE, "one file expected, %d given", hyps);
    const char *hyp = hyps ? t->argv[FIRST] : NULL;
    sr_status status = read_next(&files, hyp ? hyp : "/dev/stdin", &why);
    if (status == SR_OK && !hyp)
        snprintf(files.file[0].path, sizeof files.file[0].path, "standard input");
    for (int i = 0; status == SR_OK && i < o.ref.count; i++)
        status = read_references(&files, o.ref.text[i], &why);
    code = status == SR_OK ? score_files(t, &files, &o, multi) : tool_report(t, &why);
    for (int i = 0; i < files.count; i++) file_free(&files.file[i]);
    return code;
}

int score_multi_bleu(const tool *t) {
    return score(t, true);
}

int score_bleu(const tool *t) {
    return score(t, false);
}
