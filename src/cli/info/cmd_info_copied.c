/* cmd_info_copied.c -- for statrec info: the origin of a copied run, and how the copy was made. */
#include <stdlib.h>
#include <string.h>

#include "cli/info/cmd_info_parts.h"
#include "runfile/read/datasets/read_copied.h"

/* Calls print for every copied file: "run.h5 (crc32 ... of 123 bytes), options --every 10". */
static void each_copied(const sr_runfile *f, void (*print)(void *context, const char *line),
                        void *context) {
    char *text[COPY_TEXTS], line[2048];
    const char *at[COPY_TEXTS];
    if (reader_copied(f, text, NULL) == SR_OK && text[0]) {
        for (int i = 0; i < COPY_TEXTS; i++) at[i] = text[i];
        while (*at[COPY_CHECKSUMS]) {
            int length[COPY_TEXTS];
            for (int i = 0; i < COPY_TEXTS; i++) length[i] = (int)strcspn(at[i], "\n");
            snprintf(line, sizeof line, "%.*s (%.*s), options: %.*s",
                     length[COPY_SOURCES] > 255 ? 255 : length[COPY_SOURCES], at[COPY_SOURCES],
                     length[COPY_CHECKSUMS] > 63 ? 63 : length[COPY_CHECKSUMS], at[COPY_CHECKSUMS],
                     length[COPY_OPTIONS], at[COPY_OPTIONS]);
            print(context, line);
            for (int i = 0; i < COPY_TEXTS; i++) at[i] += length[i] + (at[i][length[i]] == '\n');
        }
    }
    for (int i = 0; i < COPY_TEXTS; i++) free(text[i]);
}

static void print_line(void *context, const char *line) {
    (void)context;
    printf("%-14s", "copied from");
    tsv_escape(stdout, line);
    putchar('\n');
}

static void note_line(void *context, const char *line) {
    tsv_note(context, "copied from", "%s", line);
}

void info_print_copied(const sr_runfile *f) {
    each_copied(f, print_line, NULL);
}

void info_note_copied(const sr_runfile *f, tsv *table) {
    each_copied(f, note_line, table);
}
