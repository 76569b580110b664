/* tsv.c -- writes tables as TSV, CSV or JSON. Write errors stay in the stream; tool_finish reports
   them. */
#define _GNU_SOURCE /* vasprintf */
#include "base/tsv.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_text.h"
#include "base/utf8.h"

void tsv_escape(FILE *out, const char *text) {
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        const int bytes = utf8_shown(text);
        if (c == '\t')
            fputs("\\t", out);
        else if (c == '\n')
            fputs("\\n", out);
        else if (c == '\\')
            fputs("\\\\", out);
        else if (!bytes)
            fprintf(out, "\\x%02x", c);
        else
            fwrite(text, 1, (size_t)bytes, out);
        if (bytes) text += bytes - 1;
    }
}

/* A byte from 0xa0 that begins no character of UTF-8 may be a letter of a path. */
void tsv_plain(FILE *out, const char *text, size_t length) {
    for (size_t i = 0; i < length;) {
        const unsigned char c = (unsigned char)text[i];
        const int shown = utf8_shown(text + i), whole = utf8_bytes(text + i);
        const int bytes = c == '\n' || c == '\t' || (!whole && c >= 0xa0) ? 1 : shown;
        if (bytes)
            fwrite(text + i, 1, (size_t)bytes, out);
        else
            fputc('?', out);
        i += (size_t)(bytes ? bytes : whole ? whole : 1);
    }
}

/* -- CSV and JSON ------------------------------------------------------------------------------ */

/* Characters that a cell of CSV can hold stay as they are, line ends too. */
static void write_csv(FILE *out, const char *text) {
    const bool quoted = text[strcspn(text, ",\"\r\n")];
    if (quoted) fputc('"', out);
    while (*text) {
        const int bytes = strchr("\t\r\n", *text) ? 1 : utf8_shown(text);
        if (*text == '"') fputc('"', out);
        if (bytes)
            fwrite(text, 1, (size_t)bytes, out);
        else
            fprintf(out, "\\x%02x", (unsigned char)*text);
        text += bytes ? bytes : 1;
    }
    if (quoted) fputc('"', out);
}

static void write_json(FILE *out, const char *text) {
    fputc('"', out);
    while (*text) {
        const int bytes = utf8_bytes(text);
        const unsigned char c = (unsigned char)*text;
        if (bytes == 0)
            fputs("\\ufffd", out);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < ' ' || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else if (!utf8_shown(text)) {
            /* A character of two or three bytes. */
            const unsigned char *at = (const unsigned char *)text;
            const unsigned two = (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu);
            const unsigned three = (at[0] & 0x0fu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
            fprintf(out, "\\u%04x", bytes == 2 ? two : three);
        } else
            fwrite(text, 1, (size_t)bytes, out);
        text += bytes ? bytes : 1;
    }
    fputc('"', out);
}

/* A member of the object that describes the table; the first one opens it. */
static void write_member(FILE *out, const char *before, const char *key, const char *text) {
    fprintf(out, "%s\"%s\": ", before, key);
    write_json(out, text);
}

static tsv_format chosen_format; /* set once, by main */
static bool open_json;           /* a table has its header and not its end */
static bool lost_text;           /* there was no memory for a note or a definition */

void tsv_set_format(const char *word) {
    chosen_format = !strcmp(word, "csv") ? TSV_CSV : !strcmp(word, "json") ? TSV_JSON : TSV_TABS;
}

/* -- above the rows ---------------------------------------------------------------------------- */

void tsv_begin(tsv *t, FILE *out, const char *program, const char *command) {
    *t = (tsv){.out = out, .format = chosen_format};
    if (t->format == TSV_JSON) {
        write_member(out, "{", "program", program);
        write_member(out, ", ", "version", STATREC_VERSION);
        write_member(out, ",\n ", "command", command);
        fputs(",\n \"notes\": [", out);
    }
    if (t->format != TSV_TABS) return;
    fputs("# program: ", out);
    tsv_escape(out, program);
    fputs(" " STATREC_VERSION "\n# command: ", out);
    tsv_escape(out, command);
    fputc('\n', out);
}

static void write_note(tsv *t, const char *key, const char *text) {
    if (t->format == TSV_JSON) {
        fputs(t->notes++ ? ",\n  " : "\n  ", t->out);
        write_member(t->out, "{", "key", key);
        write_member(t->out, ", ", "text", text);
        fputc('}', t->out);
    }
    if (t->format != TSV_TABS) return;
    fprintf(t->out, "# %s: ", key);
    tsv_escape(t->out, text);
    fputc('\n', t->out);
}

void tsv_note(tsv *t, const char *key, const char *format, ...) {
    char *text;
    va_list args;
    va_start(args, format);
    const int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0) {
        lost_text = true;
        return;
    }
    write_note(t, key, text);
    free(text);
}

void tsv_column(tsv *t, const char *name, const char *definition) {
    if (t->columns == TSV_COLUMNS) return;
    t->name[t->columns++] = name;
    /* JSON has all notes before the first column, and notes may follow columns. */
    if (t->format == TSV_JSON && !(t->definition[t->columns - 1] = strdup(definition)))
        lost_text = true;
    if (t->format != TSV_TABS) return;
    fputs("# column ", t->out);
    tsv_escape(t->out, name);
    fputs(": ", t->out);
    tsv_escape(t->out, definition);
    fputc('\n', t->out);
}

static void write_json_columns(tsv *t) {
    fputs("],\n \"columns\": [", t->out);
    for (int i = 0; i < t->columns; i++) {
        write_member(t->out, i ? ",\n  {" : "\n  {", "name", t->name[i]);
        write_member(t->out, ", ", "definition", t->definition[i] ? t->definition[i] : "");
        fputc('}', t->out);
        free(t->definition[i]);
        t->definition[i] = NULL;
    }
    fputs("],\n \"rows\": [", t->out);
    open_json = true;
}

static void write_name(const tsv *t, const char *name) {
    if (t->format == TSV_CSV)
        write_csv(t->out, name);
    else
        tsv_escape(t->out, name);
}

static const char *end_of_line(const tsv *t) {
    return t->format == TSV_CSV ? "\r\n" : "\n";
}

void tsv_header(tsv *t) {
    t->at = 0;
    if (t->format == TSV_JSON) {
        write_json_columns(t);
        return;
    }
    for (int i = 0; i < t->columns; i++) {
        if (i) fputc(t->format == TSV_CSV ? ',' : '\t', t->out);
        write_name(t, t->name[i]);
    }
    fputs(end_of_line(t), t->out);
}

sr_status tsv_finish(FILE *out, sr_failure *why) {
    const bool complete = !lost_text;
    if (open_json) fputs("]}\n", out);
    open_json = lost_text = false;
    return complete ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for the notes of the table");
}

/* -- rows -------------------------------------------------------------------------------------- */

static void begin_cell(tsv *t) {
    if (t->format != TSV_JSON || t->at > 0) return;
    fputs(t->rows++ ? ",\n  [" : "\n  [", t->out);
}

/* After a cell: the separator, or the end of the line. */
static void end_cell(tsv *t) {
    static const char *const between[] = {"\t", ",", ", "};
    if (++t->at < t->columns) {
        fputs(between[t->format], t->out);
        return;
    }
    t->at = 0;
    fputs(t->format == TSV_JSON ? "]" : end_of_line(t), t->out);
}

void tsv_text(tsv *t, const char *text) {
    begin_cell(t);
    if (t->format == TSV_JSON)
        write_json(t->out, text);
    else
        write_name(t, text);
    end_cell(t);
}

void tsv_int(tsv *t, int64_t value) {
    begin_cell(t);
    fprintf(t->out, "%" PRId64, value);
    end_cell(t);
}

void tsv_uint(tsv *t, uint64_t value) {
    begin_cell(t);
    fprintf(t->out, "%" PRIu64, value);
    end_cell(t);
}

void tsv_count(tsv *t, double value) {
    if (value == floor(value) && fabs(value) <= 9007199254740992.0) /* 2^53 */
        tsv_int(t, (int64_t)value);
    else
        tsv_real(t, value);
}

void tsv_real(tsv *t, double value) {
    const bool json = t->format == TSV_JSON;
    begin_cell(t);
    if (isnan(value))
        fputs(json ? "null" : "nan", t->out);
    else if (json && isinf(value))
        fputs(value > 0 ? "\"inf\"" : "\"-inf\"", t->out);
    else
        float_text_print(t->out, value);
    end_cell(t);
}
