/* A dictionary in fairseq's form; written dictionaries are read back.
 * Readers: src/text/vocab_file.c */

#include <stdio.h>

#include "fuzz.h"
#include "text/vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sr_failure why = {0};
    vocab *v = vocab_read(fuzz_store("dict.txt", data, size), &why);
    fuzz_expect_reason(!v, &why);
    if (!v) return 0;
    FILE *out = fopen(fuzz_path("again.txt"), "w");
    fuzz_expect(out && vocab_write(v, out) && fclose(out) == 0, "no dictionary is written");
    vocab *again = vocab_read(fuzz_path("again.txt"), &why);
    fuzz_expect(again != NULL, why.text);
    fuzz_expect(vocab_size(again) == vocab_size(v), "another number of words");
    vocab_free(again);
    vocab_free(v);
    return 0;
}
