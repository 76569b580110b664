/* The data sets of a folder: its files, each a line with the name and then the bytes, between lines
 * "%%%%".
 * Readers: src/data/find/data_find.c src/data/find/folder_files.c src/data/find/text_looks.c */
#include <string.h>

#include "data/find/data_find.h"
#include "fuzz.h"

static void look_at(const data_finding *f) {
    fuzz_expect(f->data && *f->data, "a data set without a name");
    fuzz_expect(f->options >= 0 && f->options <= FIND_OPTIONS, "another number of options");
    for (int i = 0; i < f->options; i++)
        fuzz_expect(f->option[i].key && memchr(f->option[i].value, 0, DATA_TEXT),
                    "an option without a value");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static data_found found;
    sr_failure why = {0};
    fuzz_part part[FUZZ_PARTS];
    const int parts = fuzz_split(data, size, part);
    const char *folder = fuzz_empty_folder("set");
    for (int i = 0; i < parts; i++) fuzz_store_named("set", part[i], 0);
    const sr_status status = data_find(folder, &found, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    fuzz_expect(found.findings <= FIND_MOST, "more findings than there is room for");
    for (int i = 0; status == SR_OK && i < found.findings; i++) look_at(&found.finding[i]);
    data_found_free(&found);
    return 0;
}
