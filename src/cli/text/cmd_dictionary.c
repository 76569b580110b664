/* cmd_dictionary.c -- statrec dictionary TEXT... -o DICT: counts words in fairseq's format. */
#include <stdio.h>

#include "cli/command_frame.h"
#include "cli/commands.h"
#include "cli/text/text_files.h"
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

static const command_frame frame = {
    "usage: statrec dictionary [-o DICT] [--size N] TEXT...\n"
    "\n"
    "Counts the words of texts, plain or gzip. Writes `word count` lines in fairseq's format,\n"
    "the most frequent first. <s>, <pad>, </s> and <unk>, which begin every dictionary, are\n"
    "not written. Give texts of both languages for a joint dictionary. `statrec train\n"
    "--source-dictionary DICT` reads it.\n"
    "\n",
    {dictionary_rows, sizeof dictionary_rows / sizeof dictionary_rows[0]},
    NULL,
    "0 written, 1 failed, 2 usage.",
    2};

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
                status = sr_fail(why, SR_MEMORY, "%s: out of memory for its words", path);
    file_free(&f);
    return status;
}

int cmd_dictionary(const tool *t) {
    sr_failure why = {0};
    dictionary_values o;
    int texts = 0, code;
    if (command_ends(t, &frame, &o, &texts, &code)) return code;
    if (texts == 0) return tool_error(t, TOOL_USAGE, "no text given");
    vocab *v = vocab_create();
    sr_status status = v ? SR_OK : SR_MEMORY;
    for (int i = 0; i < texts && status == SR_OK; i++) status = count_text(v, t->argv[2 + i], &why);
    if (status == SR_OK && !vocab_finish_padded(v, o.size, (int)o.pad_to)) status = SR_MEMORY;
    text_output out;
    if (status == SR_OK) status = text_output_open(&out, o.output, o.force, &why);
    if (status == SR_OK) {
        vocab_write(v, out.out); /* finish and tool_finish see failures */
        status = text_output_finish(&out, SR_OK, &why);
    }
    vocab_free(v);
    if (status == SR_MEMORY) sr_fail(&why, status, "out of memory for a dictionary");
    return status == SR_OK ? TOOL_DONE : tool_report(t, &why);
}
