/* cmd_bpe.c -- statrec bpe: the table of its subcommands; learn and vocab. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command_frame.h"
#include "cli/commands.h"
#include "cli/text/bpe_commands.h"
#include "cli/text/text_files.h"
#include "text/bpe/bpe.h"
#include "text/text.h"

/* -- learn and vocab --------------------------------------------------------------------------- */

typedef struct learn_values {
    option_text output;
    int64_t symbols, min_frequency;
    bool dict_input, total_symbols, force;
} learn_values;

#define AT(field) offsetof(learn_values, field)
static const option learn_rows[] = {
    {.key = "symbols",
     .letter = 's',
     .type = OPTION_INT,
     .offset = AT(symbols),
     .default_text = "10000",
     .low = 0,
     .high = 1e8,
     .unit = "merges",
     .help = "learn at most N merges"},
    INT_OPTION(NULL, "min-frequency", AT(min_frequency), "2", 1, 1e15, "",
               "stop when every pair of symbols has fewer than N occurrences"),
    {.key = "total-symbols",
     .letter = 't',
     .type = OPTION_FLAG,
     .offset = AT(total_symbols),
     .default_text = "no",
     .unit = "",
     .help = "count the different characters among --symbols"},
    FLAG_OPTION(NULL, "dict-input", AT(dict_input), "no",
                "read a dictionary of lines `word count`"),
    OUTPUT_OPTION(AT(output), "write this file; empty: standard output"),
    FLAG_OPTION(NULL, "force", AT(force), "no", "replace the file of -o if it exists"),
};

typedef struct vocab_values {
    option_text output;
    bool force;
} vocab_values;

static const option vocab_rows[] = {
    OUTPUT_OPTION(offsetof(vocab_values, output), "write this file; empty: standard output"),
    FLAG_OPTION(NULL, "force", offsetof(vocab_values, force), "no",
                "replace the file of -o if it exists"),
};

static const command_frame learn_frame = {
    "usage: statrec bpe learn [OPTIONS] [TEXT...] > CODES\n"
    "\n"
    "Learns merges of byte-pair encoding from the words of all texts, in the format of\n"
    "`subword-nmt learn-bpe`. Reads standard input without TEXT; unpacks X.gz.\n"
    "\n",
    {learn_rows, sizeof learn_rows / sizeof learn_rows[0]},
    NULL,
    "0 written, 1 failed, 2 usage.",
    3};

static const command_frame vocab_frame = {
    "usage: statrec bpe vocab [OPTIONS] [TEXT...] > VOCABULARY\n"
    "\n"
    "Counts the subwords of all texts. Writes lines `subword count`, the most frequent first,\n"
    "in the format of `subword-nmt get-vocab`, for `statrec bpe apply --vocabulary`. Reads\n"
    "standard input without TEXT; unpacks X.gz.\n"
    "\n",
    {vocab_rows, sizeof vocab_rows / sizeof vocab_rows[0]},
    NULL,
    "0 written, 1 failed, 2 usage.",
    3};

static sr_status count_line(void *counts, const char *line, size_t length, sr_failure *why) {
    return bpe_counts_add_line(counts, line, length, why);
}

static sr_status count_dictionary(bpe_counts *counts, const char *path, sr_failure *why) {
    file_bytes file;
    sr_status status = file_read(path, &file, why);
    if (status != SR_OK) return status;
    text_strip_mark(&file);
    status = bpe_counts_add_dictionary(counts, &file, why);
    file_free(&file);
    return status;
}

static sr_status count_all(bpe_counts *counts, char *const *path, int files, bool dictionaries,
                           sr_failure *why) {
    if (!counts) return sr_fail(why, SR_MEMORY, "out of memory");
    if (!dictionaries) return text_files_read(path, files, count_line, counts, why);
    sr_status status = files ? SR_OK : count_dictionary(counts, "/dev/stdin", why);
    for (int i = 0; status == SR_OK && i < files; i++)
        status = count_dictionary(counts, path[i], why);
    return status;
}

int bpe_learn_command(const tool *t) {
    learn_values values;
    sr_failure why = {0};
    int files = 0, code;
    text_output o;
    if (command_ends(t, &learn_frame, &values, &files, &code)) return code;
    if (text_output_open(&o, values.output, values.force, &why) != SR_OK)
        return tool_report(t, &why);
    bpe_counts *counts = bpe_counts_create();
    sr_status status = count_all(counts, t->argv + 3, files, values.dict_input, &why);
    const bpe_learning how = {values.symbols, values.min_frequency, values.total_symbols};
    bpe_codes *codes = status == SR_OK ? bpe_learn(counts, &how, &why) : NULL;
    if (status == SR_OK) status = codes ? bpe_codes_write(codes, o.out, &why) : why.status;
    bpe_codes_free(codes);
    bpe_counts_free(counts);
    return text_output_close(&o, t, status, &why);
}

int bpe_vocab_command(const tool *t) {
    vocab_values values;
    sr_failure why = {0};
    int files = 0, code;
    text_output o;
    if (command_ends(t, &vocab_frame, &values, &files, &code)) return code;
    if (text_output_open(&o, values.output, values.force, &why) != SR_OK)
        return tool_report(t, &why);
    bpe_counts *counts = bpe_counts_create();
    sr_status status = count_all(counts, t->argv + 3, files, false, &why);
    if (status == SR_OK) status = bpe_counts_write(counts, o.out, &why);
    bpe_counts_free(counts);
    return text_output_close(&o, t, status, &why);
}

/* -- statrec bpe ------------------------------------------------------------------------------- */

static const command_row rows[] = {
    {"learn", bpe_learn_command, "learn merges from text"},
    {"apply", bpe_apply_command, "split text into subwords by merges"},
    {"vocab", bpe_vocab_command, "count the subwords of a text"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

int cmd_bpe(const tool *t) {
    const char *name = t->argc > 2 ? t->argv[2] : "";
    const int status = command_run(t, rows, ROWS, name);
    if (status >= 0) return status;
    if (!tool_wants_help(t))
        return command_unknown(t, rows, ROWS, "subcommand", name, "learn, apply or vocab");
    printf("usage: statrec bpe learn|apply|vocab [OPTIONS] [TEXT...]\n"
           "\n"
           "Byte-pair encoding, compatible with subword-nmt 0.3:\n");
    command_list(stdout, rows, ROWS);
    printf("\n`statrec bpe learn --help` prints the help of one.\n");
    return TOOL_DONE;
}
