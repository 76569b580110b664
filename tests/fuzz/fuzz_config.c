/* The configuration that run files and checkpoints keep.
 * Readers: src/base/options/options_read.c src/train/config/config_read.c
 *   src/train/config/config_check.c */

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "train/train.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static train_config c;
    sr_failure why = {0};
    char *text = fuzz_text((fuzz_part){data, size});
    memset(&c, 0, sizeof c);
    sr_status status = train_config_read(&c, text, "r.h5", &why);
    if (status == SR_OK) status = train_config_check(&c, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    free(text);
    return 0;
}
