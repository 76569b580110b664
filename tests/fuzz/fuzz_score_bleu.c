/* `statrec score bleu` and `multi-bleu`: options by a letter, a hypothesis and references.
 * Readers: src/cli/score/score_bleu.c src/score/bleu_scorer.c src/score/bleu_tokenize_13a.c
 *   src/score/bleu_tokenize_intl.c */

#include "cli/score/scores.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const tokenizer[] = {"13a", "intl", "none", "13a"};
    static const char *const smooth[] = {"exp", "floor", "add-k", "none"};
    fuzz_part part[FUZZ_PARTS];
    if (size == 0) return 0;
    if (fuzz_split(data + 1, size - 1, part) < 3) return 0;
    const char *hyp = fuzz_store("hyp", part[0].byte, part[0].size);
    const char *one = fuzz_store("ref1", part[1].byte, part[1].size);
    const char *two = fuzz_store("ref2", part[2].byte, part[2].size);
    fuzz_command(score_bleu,
                 (const char *const[]){"statrec", "score", "bleu", "--ref", one, "--ref", two,
                                       "--tokenize", tokenizer[data[0] & 3], "--smooth",
                                       smooth[data[0] >> 2 & 3],
                                       data[0] & 16 ? "--lowercase" : "--no-lowercase", hyp, NULL});
    fuzz_command(score_multi_bleu, (const char *const[]){"statrec", "score", "multi-bleu", "--ref",
                                                         one, "--ref", two, hyp, NULL});
    return 0;
}
