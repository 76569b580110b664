/* The header of an array; in the npz target, checksums reject most changed headers.
 * Readers: src/base/npz/npz_format.c */

#include <stdlib.h>
#include <string.h>

#include "base/npz/npz_format.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sr_failure why = {0};
    npz_array a = {0};
    int64_t at = -1;
    char *bytes = malloc(size + 1); /* exactly this size, for the sanitizer */
    fuzz_expect(bytes != NULL, "no memory");
    if (size > 0) memcpy(bytes, data, size);
    const sr_status status = npy_read_header(bytes, (int64_t)size, "a.npy", &a, &at, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    if (status == SR_OK) {
        fuzz_expect(at >= 0 && at <= (int64_t)size, "data outside of the entry");
        fuzz_expect(a.rank >= 0 && a.rank <= NPZ_RANK && npz_count(&a) >= 0, "a shape of nothing");
    }
    free(bytes);
    return 0;
}
