/* `statrec score dep`: gold trees and a parser's output.
 * Readers: src/cli/score/score_dep.c src/parse/attachment.c */

#include "cli/score/scores.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_part part[FUZZ_PARTS];
    if (fuzz_split(data, size, part) < 2) return 0;
    const char *gold = fuzz_store("gold", part[0].byte, part[0].size);
    const char *found = fuzz_store("found", part[1].byte, part[1].size);
    fuzz_command(score_dep,
                 (const char *const[]){"statrec", "score", "dep", "--ref", gold, found, NULL});
    return 0;
}
