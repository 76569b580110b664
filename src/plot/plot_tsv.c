/* Reads the tables that analyses print (base/tsv.h) and notices when one is not whole. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_text.h"
#include "plot/plot_tsv.h"
#include "plot/template/plot_sizes.h"

enum { COLUMNS = PLOT_COLUMNS };

/* Length of the escape at `at` and its byte; 0: no escape. */
static int escape_at(const char *at, char *byte) {
    static const char letter[] = "tn\\", means[] = "\t\n\\";
    const char *found = at[0] == '\\' && at[1] ? strchr(letter, at[1]) : NULL;
    unsigned code = 0;
    int digits = 0;
    if (found) return *byte = means[found - letter], 2;
    if (strncmp(at, "\\x", 2) != 0 || sscanf(at + 2, "%2x%n", &code, &digits) != 1 || digits != 2)
        return 0;
    return *byte = (char)code, 4;
}

void plot_tsv_unescape(char *text) {
    char *to = text, byte = 0;
    for (int bytes; *text; text += bytes ? bytes : 1)
        *to++ = (bytes = escape_at(text, &byte)) ? byte : *text;
    *to = 0;
}

static int split(char *line, char *cell[COLUMNS]) {
    int count = 0;
    for (char *at = line; at; count++) {
        char *tab = strchr(at, '\t');
        if (tab) *tab++ = 0;
        plot_tsv_unescape(at);
        if (count < COLUMNS) cell[count] = at;
        at = tab;
    }
    return count;
}

/* Reads a line without its newline; *more false at the end of the file. */
static sr_status read_line(plot_tsv *t, char **line, size_t *size, bool *more, sr_failure *why) {
    errno = 0;
    const ssize_t length = getline(line, size, t->in);
    *more = length >= 0;
    if (length < 0) return errno ? sr_fail(why, SR_IO, "%s: %s", t->path, strerror(errno)) : SR_OK;
    t->at++;
    if ((*line)[length - 1] != '\n')
        return sr_fail(why, SR_FORMAT, "%s:%lld: the table breaks off in this line", t->path,
                       (long long)t->at);
    (*line)[length - 1] = 0;
    return SR_OK;
}

sr_status plot_tsv_open(plot_tsv *t, const char *path, sr_failure *why) {
    *t = (plot_tsv){.path = path, .in = fopen(path, "r")};
    if (!t->in) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    bool more;
    sr_status status;
    do status = read_line(t, &t->header, &t->header_size, &more, why);
    while (status == SR_OK && more && t->header[0] == '#');
    if (status == SR_OK && !more)
        status = sr_fail(why, SR_FORMAT, "%s: the table has no header line", path);
    if (status == SR_OK) t->columns = split(t->header, t->column);
    if (t->columns > COLUMNS)
        status = sr_fail(why, SR_FORMAT, "%s: more than %d columns", path, COLUMNS);
    if (status != SR_OK) plot_tsv_close(t);
    return status;
}

void plot_tsv_close(plot_tsv *t) {
    if (t->in) fclose(t->in);
    free(t->header);
    free(t->line);
    *t = (plot_tsv){0};
}

int plot_tsv_find(const plot_tsv *t, const char *column) {
    for (int i = 0; i < t->columns; i++)
        if (strcmp(t->column[i], column) == 0) return i;
    return -1;
}

sr_status plot_tsv_next(plot_tsv *t, bool *more, sr_failure *why) {
    sr_status status = read_line(t, &t->line, &t->line_size, more, why);
    if (status != SR_OK || !*more) return status;
    const int cells = split(t->line, t->cell);
    if (cells == t->columns) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s:%lld: %d cells under %d columns", t->path, (long long)t->at,
                   cells, t->columns);
}

sr_status plot_tsv_real(const plot_tsv *t, int column, double *value, sr_failure *why) {
    char *end;
    *value = float_text_read(t->cell[column], &end);
    if (end != t->cell[column] && !*end) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s:%lld: '%.40s' in column %s is no number", t->path,
                   (long long)t->at, t->cell[column], t->column[column]);
}
