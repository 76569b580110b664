/* cmd_bpe.c -- statrec bpe: the table of its subcommands; learn and vocab. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/text/bpe_commands.h"
#include "cli/text/text_files.h"
#include "text/bpe/bpe.h"

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
     .help = "how many to learn at most"},
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
static const option_table learn_options = {learn_rows, sizeof learn_rows / sizeof learn_rows[0]};

typedef struct vocab_values {
    option_text output;
    bool force;
} vocab_values;

static const option vocab_rows[] = {
    OUTPUT_OPTION(offsetof(vocab_values, output), "write this file; empty: standard output"),
    FLAG_OPTION(NULL, "force", offsetof(vocab_values, force), "no",
                "replace the file of -o if it exists"),
};
static const option_table vocab_options = {vocab_rows, sizeof vocab_rows / sizeof vocab_rows[0]};

static int print_learn_help(void) {
    printf("usage: statrec bpe learn [OPTIONS] [TEXT...] > CODES\n"
           "\n"
           "Learns merges of byte-pair encoding from the words of all texts, in the format of\n"
           "`subword-nmt learn-bpe`. Reads standard input without TEXT; unpacks X.gz.\n"
           "\n");
    options_help(learn_options, stdout);
    printf("\nExit status: 0 written, 1 failed, 2 usage.\n");
    return TOOL_DONE;
}

static int print_vocab_help(void) {
    printf(
        "usage: statrec bpe vocab [OPTIONS] [TEXT...] > VOCABULARY\n"
        "\n"
        "Counts the subwords of all texts. Writes lines `subword count`, the most frequent first,\n"
        "in the format of `subword-nmt get-vocab`, for `statrec bpe apply --vocabulary`. Reads\n"
        "standard input without TEXT; unpacks X.gz.\n"
        "\n");
    options_help(vocab_options, stdout);
    printf("\nExit status: 0 written, 1 failed, 2 usage.\n");
    return TOOL_DONE;
}

static sr_status count_line(void *counts, const char *line, size_t length, sr_failure *why) {
    return bpe_counts_add_line(counts, line, length, why);
}

static sr_status count_dictionary(bpe_counts *counts, const char *path, sr_failure *why) {
    file_bytes file;
    sr_status status = file_read(path, &file, why);
    if (status != SR_OK) return status;
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

static sr_status learn(const learn_values *v, const bpe_counts *counts, FILE *out,
                       sr_failure *why) {
    const bpe_learning how = {v->symbols, v->min_frequency, v->total_symbols};
    bpe_codes *codes = bpe_learn(counts, &how, why);
    sr_status status = codes ? bpe_codes_write(codes, out, why) : why->status;
    bpe_codes_free(codes);
    return status;
}

int bpe_learn_command(const tool *t) {
    learn_values values;
    sr_failure why = {0};
    int files = 0;
    text_output o;
    if (tool_wants_help(t)) return print_learn_help();
    options_set_defaults(learn_options, &values);
    if (options_parse(learn_options, &values, t->argc, t->argv, 3, &files, &why) != SR_OK ||
        text_output_open(&o, values.output, values.force, &why) != SR_OK)
        return tool_report(t, &why);
    bpe_counts *counts = bpe_counts_create();
    sr_status status = count_all(counts, t->argv + 3, files, values.dict_input, &why);
    if (status == SR_OK) status = learn(&values, counts, o.out, &why);
    bpe_counts_free(counts);
    return text_output_close(&o, t, status, &why);
}

int bpe_vocab_command(const tool *t) {
    vocab_values values;
    sr_failure why = {0};
    int files = 0;
    text_output o;
    if (tool_wants_help(t)) return print_vocab_help();
    options_set_defaults(vocab_options, &values);
    if (options_parse(vocab_options, &values, t->argc, t->argv, 3, &files, &why) != SR_OK ||
        text_output_open(&o, values.output, values.force, &why) != SR_OK)
        return tool_report(t, &why);
    bpe_counts *counts = bpe_counts_create();
    sr_status status = count_all(counts, t->argv + 3, files, false, &why);
    if (status == SR_OK) status = bpe_counts_write(counts, o.out, &why);
    bpe_counts_free(counts);
    return text_output_close(&o, t, status, &why);
}

/* -- statrec bpe ------------------------------------------------------------------------------- */

static const struct subcommand {
    const char *name;
    int (*run)(const tool *t);
    const char *help;
} subcommands[] = {
    {"learn", bpe_learn_command, "learn merges from text"},
    {"apply", bpe_apply_command, "split text into subwords by merges"},
    {"vocab", bpe_vocab_command, "count the subwords of a text"},
};
enum { SUBCOMMANDS = sizeof subcommands / sizeof subcommands[0] };

static int print_help(void) {
    printf("usage: statrec bpe learn|apply|vocab [OPTIONS] [TEXT...]\n"
           "\n"
           "Byte-pair encoding, compatible with subword-nmt 0.3:\n");
    for (int i = 0; i < SUBCOMMANDS; i++)
        printf("  %-6s %s\n", subcommands[i].name, subcommands[i].help);
    printf("\n`statrec bpe learn --help` and so on say more.\n");
    return TOOL_DONE;
}

static int refuse(const tool *t, const char *name) {
    const char *names[SUBCOMMANDS];
    sr_failure why = {0};
    for (int i = 0; i < SUBCOMMANDS; i++) names[i] = subcommands[i].name;
    const char *nearest = tool_nearest(name, names, SUBCOMMANDS);
    sr_fail(&why, SR_USAGE, "learn, apply or vocab expected, not '%.80s'", name);
    if (nearest) sr_hint(&why, "did you mean '%s'?", nearest);
    return tool_report(t, &why);
}

int cmd_bpe(const tool *t) {
    char title[64];
    const char *name = t->argc > 2 ? t->argv[2] : "";
    for (int i = 0; i < SUBCOMMANDS; i++) {
        if (strcmp(subcommands[i].name, name) != 0) continue;
        snprintf(title, sizeof title, "%s %s", t->name, name);
        tool of_subcommand = *t;
        of_subcommand.name = title;
        return subcommands[i].run(&of_subcommand);
    }
    return tool_wants_help(t) ? print_help() : refuse(t, name);
}
