/* plot_files.c -- paths of templates and data files of figures, and texts as gnuplot reads them. */
#include "plot/template/plot_files.h"

#include <stdarg.h>

#include "base/program/install_files.h"
#include "base/utf8.h"
#include "plot/plot_gnuplot.h"
#include "plot/template/plot_sizes.h"

const char *plot_directory(int i, char path[PLOT_PATH]) {
    return install_files_directory("STATREC_PLOTS", "plots", i, path);
}

void plot_quote(FILE *out, const char *text) {
    fputc('\'', out);
    for (int bytes; *text; text += bytes ? bytes : 1) {
        const unsigned char c = (unsigned char)*text;
        bytes = utf8_shown(text);
        if (c == '\'')
            fputs("'.\"'\".'", out);
        else
            fwrite(bytes ? text : " ", 1, bytes ? (size_t)bytes : 1, out);
    }
    fputc('\'', out);
}

void plot_assign(FILE *out, const char *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
    fputs(" = ", out);
    plot_quote(out, text);
    fputc('\n', out);
}
