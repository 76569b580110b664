/* The data sets of a folder: its files, each a line with the name and then the bytes, between lines
 * "%%%%".
 * Readers: src/data/find/data_find.c src/data/find/folder_files.c src/data/find/text_looks.c */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/find/data_find.h"
#include "fuzz.h"

/* A file of the folder, not of another one. */
static void store_file(const char *folder, fuzz_part part) {
    const uint8_t *end = memchr(part.byte, '\n', part.size);
    char name[64], path[128];
    const size_t length = end ? (size_t)(end - part.byte) : 0;
    if (length == 0 || length >= sizeof name || memchr(part.byte, '/', length)) return;
    memcpy(name, part.byte, length);
    name[length] = 0;
    if (strlen(name) != length || name[0] == '.') return;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    fuzz_store(path, end + 1, part.size - length - 1);
}

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
    char command[128];
    const int parts = fuzz_split(data, size, part);
    snprintf(command, sizeof command, "rm -rf %s/set", fuzz_folder());
    fuzz_expect(system(command) == 0 && mkdir(fuzz_path("set"), 0700) == 0, "no folder");
    for (int i = 0; i < parts; i++) store_file("set", part[i]);
    const sr_status status = data_find(fuzz_path("set"), &found, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    fuzz_expect(found.findings <= FIND_MOST, "more findings than there is room for");
    for (int i = 0; status == SR_OK && i < found.findings; i++) look_at(&found.finding[i]);
    data_found_free(&found);
    return 0;
}
