/* The command line of `statrec train`: an argument a line; `-c` means a file of the second part.
 * Readers: src/base/options/options.c src/base/options/options_read.c */

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "train/train.h"

enum { WORDS = 40 };

/* Parsed options read back unchanged from the text that run files store. */
static void read_again(const train_config *c) {
    static train_config again;
    sr_failure why = {0};
    char *text = options_dump(train_options(), c);
    fuzz_expect(text != NULL, "no memory for the options");
    options_set_defaults(train_options(), &again);
    fuzz_expect(options_read_text(train_options(), &again, text, "again", &why) == SR_OK, why.text);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static train_config c;
    char *argv[WORDS + 1] = {"statrec", "train"}, *rest;
    int argc = 2, positional = 0;
    sr_failure why = {0};
    fuzz_part part[FUZZ_PARTS];
    const int parts = fuzz_split(data, size, part);
    char *words = fuzz_text(part[0]);
    if (parts > 1) fuzz_store("c.conf", part[1].byte, part[1].size);
    for (char *w = strtok_r(words, "\n", &rest); w && argc < WORDS; w = strtok_r(NULL, "\n", &rest))
        argv[argc++] = w;
    if (argc < WORDS - 1 && parts > 1) {
        argv[argc++] = "-c";
        argv[argc++] = (char *)fuzz_path("c.conf");
    }
    memset(&c, 0, sizeof c);
    const sr_status status = train_config_parse(&c, argc, argv, 2, &positional, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    if (status == SR_OK) read_again(&c);
    free(words);
    return 0;
}
