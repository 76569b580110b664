/* Archives of arrays as NumPy writes them.
 * Readers: src/base/npz/npz.c */

#include <stdlib.h>
#include <string.h>

#include "base/npz/npz.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sr_failure why = {0};
    npz_reader *r = npz_open(fuzz_store("a.npz", data, size), &why);
    fuzz_expect_reason(!r, &why);
    for (int64_t i = 0; r && i < npz_arrays(r) && i < 16; i++) {
        npz_array a = {0};
        char *name = strdup(npz_name(r, i));
        why = (sr_failure){0};
        const sr_status status = name ? npz_read(r, name, &a, &why) : SR_OK;
        fuzz_expect_reason(status != SR_OK, &why);
        fuzz_expect(status != SR_OK || (a.data && npz_count(&a) >= 0), "an array without data");
        if (status == SR_OK) free(a.data);
        free(name);
    }
    npz_close(r);
    return 0;
}
