/* config_text.c -- writes the stored configuration: every option as a .conf file, and in comments
   the resolved parameters of the normalizations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/config/config_rows.h"

enum { NORM_TEXT = 256 };

static void format_site(const model *m, int site, char text[NORM_TEXT]) {
    norm_options_format(&m->site[site]->options, m->site[site]->method, text, NORM_TEXT);
}

/* How many sites have the options of this one; 0 when one before it has them. */
static int count_like(const model *m, int site) {
    char own[NORM_TEXT], other[NORM_TEXT];
    int count = 1;
    format_site(m, site, own);
    for (int i = 0; i < m->sites; i++) {
        format_site(m, i, other);
        if (i == site || strcmp(own, other) != 0) continue;
        if (i < site) return 0;
        count++;
    }
    return count;
}

static void write_sites(const model *m, FILE *out) {
    char text[NORM_TEXT];
    for (int i = 0; i < m->sites; i++) {
        const int count = count_like(m, i);
        format_site(m, i, text);
        if (count == 1) fprintf(out, "# %s: %s\n", m->site[i]->name, text);
        if (count > 1) fprintf(out, "# %s and %d more: %s\n", m->site[i]->name, count - 1, text);
    }
}

static char *dump_options(const train_config *c) {
    train_config *stored = malloc(sizeof *stored);
    if (!stored) return NULL;
    *stored = *c;
    config_fold_norm_params(stored);
    char *text = options_dump(train_options(), stored);
    free(stored);
    return text;
}

char *trainer_config_text(const trainer *r) {
    char *text = NULL, *dump = dump_options(r->config);
    size_t size;
    FILE *out = dump ? open_memstream(&text, &size) : NULL;
    if (!out) {
        free(dump);
        return NULL;
    }
    fputs(dump, out);
    write_sites(r->model, out);
    free(dump);
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}
