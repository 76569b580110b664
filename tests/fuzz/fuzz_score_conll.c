/* `statrec score conll`: a file of columns, with each kind of options.
 * Readers: src/cli/score/score_conll.c src/score/conll_score.c */

#include "cli/score/scores.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *file = fuzz_store("tags", data, size);
    const char *const option[][4] = {{"--no-latex"},
                                     {"--latex", "--scheme", "auto"},
                                     {"--raw", "--outside", "X"},
                                     {"--delimiter", "\\t", "--scheme", "bioes"}};
    for (size_t i = 0; i < sizeof option / sizeof *option; i++) {
        const char *words[9] = {"statrec", "score", "conll", file};
        for (int k = 0; k < 4 && option[i][k]; k++) words[4 + k] = option[i][k];
        fuzz_command(score_conll, words);
    }
    return 0;
}
