/* plot_reuse.c -- a drawing depends on the script and the data files that gnuplot reads, and on
 * on gnuplot itself, whose version is not asked. A report appends a hash of them to each drawing,
 * and a hash of the drawing. An earlier report's drawing from the same inputs is copied. Analyses
 * always run again, so an old drawing cannot show a changed run file. gnuplot takes a third of the
 * time of a report.
 */
#include "plot/plot_reuse.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/hash.h"
#include "plot/template/plot_sizes.h"

enum { LINE = 96 };

static const char line_format[] =
    "<!-- statplot: inputs %016llx of %llu bytes, drawing %016llx -->\n";

/* malloc'd; NULL with errno. */
static char *read_file(const char *path, size_t *size) {
    char *text = NULL, block[65536];
    FILE *in = fopen(path, "r"), *out = in ? open_memstream(&text, size) : NULL;
    for (size_t n; out && (n = fread(block, 1, sizeof block, in)) > 0;) fwrite(block, 1, n, out);
    bool good = out && !ferror(in) && !ferror(out);
    if (in) fclose(in);
    if (out && fclose(out) != 0) good = false;
    if (good) return text;
    free(text);
    return NULL;
}

static int is_input(const struct dirent *e) {
    const char *dot = strrchr(e->d_name, '.');
    return e->d_name[0] != '.' && !(dot && strcmp(dot, ".stderr") == 0);
}

static sr_status add_file(plot_key *k, const char *directory, const char *name, sr_failure *why) {
    char path[2 * PLOT_PATH];
    size_t size = 0;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    char *text = read_file(path, &size);
    if (!text) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    k->inputs = hash_join(k->inputs, hash_bytes(name, strlen(name)));
    k->inputs = hash_join(k->inputs, hash_bytes(text, size));
    k->bytes += size;
    free(text);
    return SR_OK;
}

sr_status plot_key_make(plot_key *k, const char *directory, sr_failure *why) {
    struct dirent **entry = NULL;
    const int count = scandir(directory, &entry, is_input, alphasort);
    sr_status status =
        count >= 0 ? SR_OK : sr_fail(why, SR_IO, "%s: %s", directory, strerror(errno));
    *k = (plot_key){hash_bytes(STATREC_VERSION, strlen(STATREC_VERSION)), 0};
    for (int i = 0; i < count; i++) {
        if (status == SR_OK) status = add_file(k, directory, entry[i]->d_name, why);
        free(entry[i]);
    }
    free(entry);
    return status;
}

static void write_line(const plot_key *k, uint64_t drawing, char line[LINE]) {
    snprintf(line, LINE, line_format, (unsigned long long)k->inputs, (unsigned long long)k->bytes,
             (unsigned long long)drawing);
}

bool plot_key_fits(const plot_key *k, const char *drawing) {
    char line[LINE];
    size_t size = 0;
    char *text = read_file(drawing, &size);
    if (!text) return false;
    size_t begin = size ? size - 1 : 0; /* start of the last line */
    while (begin > 0 && text[begin - 1] != '\n') begin--;
    write_line(k, hash_bytes(text, begin), line);
    const bool fits = size - begin == strlen(line) && memcmp(text + begin, line, size - begin) == 0;
    free(text);
    return fits;
}

sr_status plot_key_append(const plot_key *k, const char *drawing, sr_failure *why) {
    char line[LINE];
    size_t size = 0;
    char *text = read_file(drawing, &size);
    FILE *out = text ? fopen(drawing, "a") : NULL;
    bool good = out != NULL;
    if (good) {
        write_line(k, hash_bytes(text, size), line);
        good = fputs(line, out) >= 0;
    }
    if (out && fclose(out) != 0) good = false;
    free(text);
    return good ? SR_OK : sr_fail(why, SR_IO, "%s: %s", drawing, strerror(errno));
}
