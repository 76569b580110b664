/* tsv.c -- see tsv.h. Write errors stay in the stream; tool_finish reports them. */
#include "statnet/tsv.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void tsv_escape(FILE *out, const char *text) {
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '\t')
            fputs("\\t", out);
        else if (c == '\n')
            fputs("\\n", out);
        else if (c == '\\')
            fputs("\\\\", out);
        else if (c < ' ' || c == 0x7f)
            fprintf(out, "\\x%02x", c);
        else
            fputc(c, out);
    }
}

void tsv_begin(tsv *t, FILE *out, const char *program, const char *command) {
    *t = (tsv){.out = out};
    fputs("# program: ", out);
    tsv_escape(out, program);
    fputs(" " STATREC_VERSION "\n# command: ", out);
    tsv_escape(out, command);
    fputc('\n', out);
}

void tsv_note(tsv *t, const char *key, const char *format, ...) {
    char text[2048], *longer = NULL;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length >= (int)sizeof text && (longer = malloc((size_t)length + 1))) {
        va_start(args, format);
        vsnprintf(longer, (size_t)length + 1, format, args);
        va_end(args);
    }
    fprintf(t->out, "# %s: ", key);
    tsv_escape(t->out, longer ? longer : text);
    fputc('\n', t->out);
    free(longer);
}

void tsv_column(tsv *t, const char *name, const char *definition) {
    if (t->columns == TSV_COLUMNS) return;
    t->name[t->columns++] = name;
    fputs("# column ", t->out);
    tsv_escape(t->out, name);
    fputs(": ", t->out);
    tsv_escape(t->out, definition);
    fputc('\n', t->out);
}

void tsv_header(tsv *t) {
    for (int i = 0; i < t->columns; i++) {
        if (i) fputc('\t', t->out);
        tsv_escape(t->out, t->name[i]);
    }
    fputc('\n', t->out);
    t->at = 0;
}

/* Behind a cell: a tab, or the end of the line. */
static void end_cell(tsv *t) {
    t->at++;
    bool last = t->at >= t->columns;
    if (last) t->at = 0;
    fputc(last ? '\n' : '\t', t->out);
}

void tsv_text(tsv *t, const char *text) {
    tsv_escape(t->out, text);
    end_cell(t);
}

void tsv_int(tsv *t, int64_t value) {
    fprintf(t->out, "%" PRId64, value);
    end_cell(t);
}

void tsv_real(tsv *t, double value) {
    if (isnan(value))
        fputs("nan", t->out);
    else
        fprintf(t->out, "%.9g", value);
    end_cell(t);
}
