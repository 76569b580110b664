/* tsv.h -- self-describing tables on a stream: `#` lines with provenance and column definitions, a
 * header line of names, tab-separated rows. Or the same as CSV (RFC 4180, the `#` lines left out)
 * or JSON (RFC 8259):
 *   {"program": "stat-distance", "version": "0.2.0", "command": "...",
 *    "notes": [{"key": "run", "text": "..."}], "columns": [{"name": "site", "definition": "..."}],
 *    "rows": [["stem", 64, null]]}
 * NaN is null there, and infinities are the texts "inf" and "-inf".
 *
 *   # program: stat-distance 0.2.0
 *   # command: stat-distance cv.h5
 *   # run: cv.h5  resnet20 bn cifar10 seed 1 complete
 *   # column dist_mu: ||mu_B - mu||_2 / d ...
 *   run     site    step    dist_mu
 */
#ifndef BASE_TSV_H
#define BASE_TSV_H

#include <stdint.h>
#include <stdio.h>

#include "statrec/base.h"

/* Tabs, newlines, backslashes and other control bytes become \t \n \\ \xNN. So a table stays a
 * table whatever a run file holds. */
enum { TSV_COLUMNS = 256 };

typedef enum { TSV_TABS, TSV_CSV, TSV_JSON } tsv_format;
#define TSV_FORMATS "tsv|csv|json"

/* Sets the format, by its word, of the tables that this process begins from now on; other words are
 * TSV. */
void tsv_set_format(const char *word);

typedef struct tsv {
    FILE *out;
    tsv_format format;
    int columns, at; /* declared columns; next column of the current row */
    int notes;
    int64_t rows; /* begun */
    const char *name[TSV_COLUMNS];
    char *definition[TSV_COLUMNS]; /* JSON, until the header; NULL otherwise */
} tsv;

/* program: the bare name; the version is added here. */
void tsv_begin(tsv *t, FILE *out, const char *program, const char *command);
/* `# key: formatted text`. Before the first row only. */
void tsv_note(tsv *t, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Declares the next column; name must outlive the table. At most TSV_COLUMNS. */
void tsv_column(tsv *t, const char *name, const char *definition);
/* Writes the header line. */
void tsv_header(tsv *t);
/* Cells, in the order of the columns; the last one ends the line. */
void tsv_text(tsv *t, const char *text);
void tsv_int(tsv *t, int64_t value);
void tsv_uint(tsv *t, uint64_t value);
void tsv_real(tsv *t, double value); /* %.9g; nan, inf, -inf */
/* A number of steps, with all digits; the median of two steps is printed as by tsv_real. */
void tsv_count(tsv *t, double value);
/* After the last row of the last table on `out`; only JSON has an end. SR_MEMORY: a note or a
 * definition is missing in one of them. */
sr_status tsv_finish(FILE *out, sr_failure *why);
/* Writes text with the escapes above. */
void tsv_escape(FILE *out, const char *text);
/* Writes the first `length` bytes of a text as they are, its lines and tabs too, with ? for bytes
 * that could control a terminal. */
void tsv_plain(FILE *out, const char *text, size_t length);

#endif
