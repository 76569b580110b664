/* Pretrained word vectors.
 * Readers: src/train/word_vectors.c */

#include <math.h>
#include <string.h>

#include "batch/batch.h"
#include "fuzz.h"
#include "train/loaded_model.h"

enum { WIDTH = 3, WORDS = 3, ROWS = TOKEN_FIRST_WORD + WORDS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const word[WORDS] = {"the", "0", "caf\xc3\xa9"};
    real value[ROWS * WIDTH] = {0};
    tensor table = {.rank = 2, .dim = {ROWS, WIDTH, 1, 1}, .count = ROWS * WIDTH, .value = value};
    vector_matches found;
    sr_failure why = {0};
    vocab *v = vocab_create();
    fuzz_expect(v != NULL, "no memory");
    for (int i = 0; i < WORDS; i++) vocab_count(v, word[i], strlen(word[i]), 9 - i);
    fuzz_expect(vocab_finish_padded(v, 0, 1), "no memory");
    const char *path = fuzz_store("vectors.txt", data, size);
    const sr_status status = word_vectors_read(path, v, &table, &found, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    for (int i = 0; i < ROWS * WIDTH && status == SR_OK; i++)
        fuzz_expect(isfinite(value[i]), "a vector that is no number");
    vocab_free(v);
    return 0;
}
