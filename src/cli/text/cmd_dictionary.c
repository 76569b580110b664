/* cmd_dictionary.c -- statrec dictionary TEXT... -o DICT: the words of texts in fairseq's form. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/options/options.h"
#include "cli/commands.h"
#include "text/text.h"
#include "text/vocab.h"

typedef struct dictionary_values {
    option_text output;
    int64_t size, pad_to;
    bool force;
} dictionary_values;

#define AT(field) offsetof(dictionary_values, field)
static const option dictionary_rows[] = {
    OUTPUT_OPTION(AT(output), "write this file; empty: standard output"),
    INT_OPTION(NULL, "size", AT(size), "0", 5, 1 << 30, "words",
               "keep the N most frequent words, the four specials included; 0: every word"),
    INT_OPTION(NULL, "pad-to", AT(pad_to), "8", 1, 4096, "words",
               "pad the dictionary with madeupword0000, ... to a multiple of N"),
    FLAG_OPTION(NULL, "force", AT(force), "no", "replace the file if it exists"),
};
static const option_table dictionary_options = {dictionary_rows,
                                                sizeof dictionary_rows / sizeof dictionary_rows[0]};

static int print_help(void) {
    printf(
        "usage: statrec dictionary [-o DICT] [--size N] TEXT...\n"
        "\n"
        "Counts the words of texts, plain or gzip. Writes `word count` lines, the most frequent\n"
        "first, in fairseq's format: without <s>, <pad>, </s> and <unk>, which begin every\n"
        "dictionary. Give texts of both languages for a joint dictionary. `statrec train\n"
        "--source-dictionary DICT` reads it.\n"
        "\n");
    options_help(dictionary_options, stdout);
    printf("\nExit status: 0 written, 1 failed, 2 usage.\n");
    return TOOL_DONE;
}

static sr_status count_text(vocab *v, const char *path, sr_failure *why) {
    file_bytes f;
    int64_t lines;
    sr_status status = text_read(path, &f, &lines, why);
    if (status != SR_OK) return status;
    text_walk w = {&f, 0};
    const char *word;
    size_t length;
    while (w.at < f.size && status == SR_OK)
        while (status == SR_OK && text_word(&w, &word, &length))
            if (!vocab_count(v, word, length, 1))
                status = sr_fail(why, SR_MEMORY, "%s: no memory for its words", path);
    file_free(&f);
    return status;
}

/* DICT.part, renamed when it is whole. */
static sr_status write_file(const vocab *v, const dictionary_values *o, sr_failure *why) {
    char part[sizeof o->output + 8];
    if (!o->force && access(o->output, F_OK) == 0) {
        sr_fail(why, SR_EXISTS, "%s: exists", o->output);
        sr_hint(why, "another name, or --force to replace it");
        return SR_EXISTS;
    }
    snprintf(part, sizeof part, "%s.part", o->output);
    FILE *out = fopen(part, "w");
    if (!out) return sr_fail(why, SR_IO, "%s: %s", part, strerror(errno));
    bool done = vocab_write(v, out) && fflush(out) == 0;
    int wrong = errno;
    if (fclose(out) != 0 && done) done = false, wrong = errno;
    if (done && rename(part, o->output) != 0) done = false, wrong = errno;
    if (done) return SR_OK;
    remove(part);
    return sr_fail(why, SR_IO, "%s: %s", o->output, strerror(wrong));
}

static sr_status make_dictionary(const tool *t, const dictionary_values *o, int texts,
                                 sr_failure *why) {
    vocab *v = vocab_create();
    sr_status status = v ? SR_OK : SR_MEMORY;
    for (int i = 0; i < texts && status == SR_OK; i++) status = count_text(v, t->argv[2 + i], why);
    if (status == SR_OK && !vocab_finish_padded(v, o->size, (int)o->pad_to)) status = SR_MEMORY;
    if (status == SR_OK && *o->output) status = write_file(v, o, why);
    if (status == SR_OK && !*o->output) vocab_write(v, stdout); /* tool_finish sees failures */
    vocab_free(v);
    return status == SR_OK ? SR_OK : sr_fail(why, status, "no memory for a dictionary");
}

int cmd_dictionary(const tool *t) {
    sr_failure why = {0};
    dictionary_values o;
    int texts = 0;
    if (tool_wants_help(t)) return print_help();
    options_set_defaults(dictionary_options, &o);
    if (options_parse(dictionary_options, &o, t->argc, t->argv, 2, &texts, &why) != SR_OK)
        return tool_report(t, &why);
    if (texts == 0) return tool_error(t, TOOL_USAGE, "no text given");
    return make_dictionary(t, &o, texts, &why) == SR_OK ? TOOL_DONE : tool_report(t, &why);
}
