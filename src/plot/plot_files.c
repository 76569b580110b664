/* plot_files.c -- where templates and data files of figures are, and texts as gnuplot reads them. */
#include "statnet/plot.h"
#include "statnet/share.h"

const char *plot_directory(int i, char path[PLOT_PATH]) {
    return share_directory("STATREC_PLOTS", "plots", i, path);
}

void plot_quote(FILE *out, const char *text) {
    fputc('\'', out);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '\'')
            fputs("'.\"'\".'", out);
        else
            fputc(c < ' ' || c == 0x7f ? ' ' : c, out);
    }
    fputc('\'', out);
}
