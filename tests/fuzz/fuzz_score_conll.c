/* `statrec score conll`: a file of columns.
 * Readers: src/cli/score/score_conll.c src/score/conll_score.c */

#include "cli/score/scores.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *file = fuzz_store("tags", data, size);
    fuzz_command(score_conll, (const char *const[]){"statrec", "score", "conll", file, NULL});
    return 0;
}
