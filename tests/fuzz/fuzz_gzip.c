/* Files in the form of gzip or ZIP, whole and line by line: the same bytes both ways.
 * Readers: src/text/file_bytes.c src/text/file_zip.c */

#include <string.h>

#include "fuzz.h"
#include "text/file_bytes.h"
#include "text/text_lines.h"

/* Lines are checked as UTF-8, so that they may end earlier. */
static void compare(const char *path, const file_bytes *f) {
    sr_failure why = {0};
    const char *line;
    size_t length, at = 0;
    text_lines *t = text_lines_open(path, &why);
    fuzz_expect_reason(!t, &why);
    while (t && text_lines_next(t, &line, &length, &why) == SR_OK && line) {
        fuzz_expect(at + length <= f->size, "more lines than bytes");
        at += length;
    }
    fuzz_expect(why.status != SR_OK || at + 3 >= f->size, "fewer lines than bytes");
    text_lines_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sr_failure why = {0};
    file_bytes f;
    const char *path = fuzz_store("f.gz", data, size);
    const sr_status status = file_read(path, &f, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    if (status != SR_OK) return 0;
    compare(path, &f);
    file_free(&f);
    return 0;
}
