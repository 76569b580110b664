/* Written tables: whatever a text contains, each row keeps its number of cells.
 * Readers: src/base/tsv.c */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tsv.h"
#include "fuzz.h"

static char *write_table(const char *format, const char *text, double value) {
    char *table = NULL;
    size_t room = 0;
    FILE *out = open_memstream(&table, &room);
    fuzz_expect(out != NULL, "no memory for a table");
    tsv t;
    tsv_set_format(format);
    tsv_begin(&t, out, "fuzz", text);
    tsv_note(&t, "note", "%s", text);
    tsv_column(&t, "text", text);
    tsv_column(&t, "value", "a number");
    tsv_header(&t);
    for (int row = 0; row < 2; row++) {
        tsv_text(&t, text);
        tsv_real(&t, value);
    }
    fuzz_expect(tsv_finish(out, NULL) == SR_OK, "no memory for a table");
    fuzz_expect(fclose(out) == 0, "no memory for a table");
    return table;
}

static size_t count(const char *table, const char *line, char what) {
    size_t found = 0;
    for (const char *c = line ? line : table; *c && (!line || *c != '\n'); c++) found += *c == what;
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    double value = 0;
    char *text = fuzz_text((fuzz_part){data, size});
    if (size >= sizeof value) memcpy(&value, data, sizeof value);
    char *table = write_table("tsv", text, value);
    const char *rows = strstr(table, "\ntext\t");
    fuzz_expect(rows && count(rows + 1, NULL, '\n') == 3, "a table of two rows has another number");
    const char *first = strchr(rows + 1, '\n') + 1;
    fuzz_expect(count(table, first, '\t') == 1, "a row of two cells has another number");
    free(table);
    table = write_table("csv", text, value);
    fuzz_expect(strncmp(table, "text,value", 10) == 0, "csv without its header");
    free(table);
    table = write_table("json", text, value);
    for (const char *c = table; *c; c++)
        fuzz_expect((unsigned char)*c >= 0x20 || *c == '\n', "a control byte in JSON");
    free(table);
    free(text);
    return 0;
}
