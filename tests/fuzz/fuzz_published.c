/* Values that papers print, as of plots/published.tsv.
 * Readers: src/table/table_published.c */

#include "fuzz.h"
#include "table/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sr_failure why = {0};
    published_values p = {0};
    const sr_status status = published_read(&p, fuzz_store("published.tsv", data, size), &why);
    fuzz_expect_reason(status != SR_OK, &why);
    if (status == SR_OK) published_has_table(&p, "mine");
    published_free(&p);
    return 0;
}
