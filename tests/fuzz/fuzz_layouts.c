/* Layouts of tables, as of plots/layouts.tsv.
 * Readers: src/table/table_layout.c src/table/table_lines.c */

#include "fuzz.h"
#include "table/table.h"

static void look(void *context, const layout *l) {
    (void)context;
    fuzz_expect(l != NULL, "no layout");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sr_failure why = {0};
    layout l = {0};
    const char *path = fuzz_store("layouts.tsv", data, size);
    fuzz_expect_reason(layout_each(path, look, NULL, &why) != SR_OK, &why);
    why = (sr_failure){0};
    fuzz_expect_reason(layout_read(&l, path, "mine", &why) != SR_OK, &why);
    layout_free(&l);
    return 0;
}
