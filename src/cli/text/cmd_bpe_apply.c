/* cmd_bpe_apply.c -- statrec bpe apply: splits text into subwords. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command_frame.h"
#include "cli/text/bpe_commands.h"
#include "cli/text/text_files.h"
#include "text/bpe/bpe.h"
#include "text/text.h"

typedef struct apply_values {
    option_text codes, vocabulary, separator, glossaries, glossary_file, output;
    int64_t merges, threshold;
    bool force;
} apply_values;

static bool has_vocabulary(const void *values) {
    return ((const apply_values *)values)->vocabulary[0] != 0;
}

static const option_use with_vocabulary = {.with = "vocabulary", .holds = has_vocabulary};

#define AT(field) offsetof(apply_values, field)
static const option apply_rows[] = {
    {.key = "codes",
     .letter = 'c',
     .type = OPTION_TEXT,
     .offset = AT(codes),
     .default_text = "",
     .unit = "",
     .help = "merges, of `statrec bpe learn` or subword-nmt, version 0.1 or 0.2",
     .value = "FILE"},
    {.key = "merges",
     .letter = 'm',
     .type = OPTION_INT,
     .offset = AT(merges),
     .default_text = "-1",
     .low = -1,
     .high = 1e9,
     .unit = "merges",
     .help = "use the first ones only; -1: all"},
    TEXT_OPTION(NULL, "vocabulary", AT(vocabulary), "",
                "split subwords further that have no line `subword count` in this file",
                .value = "FILE"),
    INT_OPTION(NULL, "vocabulary-threshold", AT(threshold), "0", 0, 1e15, "",
               "ignore subwords with fewer than N occurrences", .use = &with_vocabulary),
    {.key = "separator",
     .letter = 's',
     .type = OPTION_TEXT,
     .offset = AT(separator),
     .default_text = "@@",
     .unit = "",
     .help = "append this to each subword of a word but the last"},
    TEXT_OPTION(NULL, "glossaries", AT(glossaries), "",
                "keep text whole that matches one of these expressions, separated by blanks"),
    TEXT_OPTION(NULL, "glossary-file", AT(glossary_file), "",
                "read expressions from a file, one per line", .value = "FILE"),
    OUTPUT_OPTION(AT(output), "write this file; empty: standard output"),
    FLAG_OPTION(NULL, "force", AT(force), "no", "replace the file of -o if it exists"),
};

static const command_frame frame = {
    "usage: statrec bpe apply -c CODES [OPTIONS] [TEXT...] > SUBWORDS\n"
    "\n"
    "Splits the words of all texts, in their order, into subwords, in the format of\n"
    "`subword-nmt apply-bpe`. Reads standard input without TEXT; unpacks X.gz.\n"
    "`sed -r 's/(@@ )|(@@ ?$)//g'` joins the subwords.\n"
    "\n"
    "Glossaries are regular expressions, as '<name>\\w*</name>'. They may contain characters, "
    ". [...]\n"
    "\\d \\w \\s \\D \\W \\S, (?:...), |, * + ? {m,n}, ^ and $.\n"
    "\n",
    {apply_rows, sizeof apply_rows / sizeof apply_rows[0]},
    NULL,
    "0 written, 1 failed, 2 usage.",
    3};

/* -- glossaries -------------------------------------------------------------------------------- */

/* Expressions within a text that is cut at its separators. */
typedef struct glossary_list {
    char *text;
    const char **expression; /* [count] */
    int count;
} glossary_list;

/* Reads the option's expressions as lines, then the file, if any. */
static sr_status join_lists(const apply_values *v, glossary_list *l, sr_failure *why) {
    file_bytes file = {0};
    sr_status status = v->glossary_file[0] ? file_read(v->glossary_file, &file, why) : SR_OK;
    if (status != SR_OK) return status;
    text_strip_mark(&file);
    size_t length = strlen(v->glossaries);
    if (file.size && memchr(file.byte, 0, file.size))
        status = sr_fail(why, SR_FORMAT, "%s: holds a zero byte", v->glossary_file);
    else if (!(l->text = malloc(length + file.size + 2)))
        status = sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) {
        memcpy(l->text, v->glossaries, length);
        for (size_t i = 0; i < length; i++)
            if (l->text[i] == ' ') l->text[i] = '\n';
        l->text[length] = '\n';
        if (file.size) memcpy(l->text + length + 1, file.byte, file.size);
        l->text[length + 1 + file.size] = 0;
    }
    file_free(&file);
    return status;
}

/* -- text -------------------------------------------------------------------------------------- */

typedef struct applier {
    bpe_codes *codes;
    bpe_vocabulary *vocabulary;
    bpe *bpe;
    byte_buffer pieces; /* subwords of one line */
    FILE *out;
} applier;

static sr_status make_ready(const apply_values *v, applier *a, sr_failure *why) {
    glossary_list list = {0};
    a->codes = bpe_codes_read(v->codes, v->merges, why);
    if (!a->codes) return why->status;
    if (v->vocabulary[0]) {
        a->vocabulary = bpe_vocabulary_read(v->vocabulary, v->threshold, why);
        if (!a->vocabulary) return why->status;
    }
    sr_status status = join_lists(v, &list, why);
    int lines = 1;
    for (const char *c = list.text; status == SR_OK && *c; c++) lines += *c == '\n';
    if (status == SR_OK && !(list.expression = calloc((size_t)lines, sizeof *list.expression)))
        status = sr_fail(why, SR_MEMORY, "out of memory");
    char *rest = list.text, *word;
    while (status == SR_OK && (word = strtok_r(rest, "\r\n", &rest)))
        list.expression[list.count++] = word;
    if (status == SR_OK) {
        a->bpe = bpe_create(a->codes,
                            &(bpe_settings){.separator = v->separator,
                                            .vocabulary = a->vocabulary,
                                            .glossary = list.expression,
                                            .glossaries = list.count},
                            why);
        if (!a->bpe) status = why->status;
    }
    free(list.text);
    free(list.expression);
    return status;
}

static void free_applier(applier *a) {
    bpe_free(a->bpe);
    bpe_vocabulary_free(a->vocabulary);
    bpe_codes_free(a->codes);
    free(a->pieces.byte);
}

static sr_status apply_line(void *context, const char *line, size_t length, sr_failure *why) {
    applier *a = context;
    a->pieces.size = 0;
    sr_status status = bpe_apply(a->bpe, line, length, &a->pieces, why);
    if (status != SR_OK) return status;
    errno = 0;
    if (fwrite(a->pieces.byte, 1, a->pieces.size, a->out) == a->pieces.size) return SR_OK;
    return sr_fail(why, SR_IO, "write failed%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
}

int bpe_apply_command(const tool *t) {
    apply_values values;
    sr_failure why = {0};
    applier a = {0};
    int files = 0, code;
    text_output o;
    if (command_ends(t, &frame, &values, &files, &code)) return code;
    if (!values.codes[0]) return tool_error(t, TOOL_USAGE, "-c CODES is missing");
    if (make_ready(&values, &a, &why) != SR_OK ||
        text_output_open(&o, values.output, values.force, &why) != SR_OK) {
        free_applier(&a);
        return tool_report(t, &why);
    }
    a.out = o.out;
    sr_status status = text_files_read(t->argv + 3, files, apply_line, &a, &why);
    free_applier(&a);
    return text_output_close(&o, t, status, &why);
}
