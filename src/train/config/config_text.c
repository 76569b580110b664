/* config_text.c -- writes the stored configuration: every option as a .conf file, and in comments
   the resolved parameters of the normalizations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/config/config_rows.h"

enum { NORM_TEXT = 256 };

/* text: options of the site. Returns the number of sites with the same; 0 if one before has
   them. */
static int count_like(const model *m, int site, char own[NORM_TEXT]) {
    char other[NORM_TEXT];
    int count = 1;
    norm_options_format(&m->site[site]->options, m->site[site]->method, own, NORM_TEXT);
    for (int i = 0; i < m->sites; i++) {
        norm_options_format(&m->site[i]->options, m->site[i]->method, other, NORM_TEXT);
        if (i == site || strcmp(own, other) != 0) continue;
        if (i < site) return 0;
        count++;
    }
    return count;
}

char *trainer_config_text(const trainer *r) {
    char *text = NULL, *dump = NULL, own[NORM_TEXT];
    size_t size;
    const model *m = r->model;
    train_config *stored = malloc(sizeof *stored);
    if (stored) {
        *stored = *r->config;
        config_fold_norm_params(stored);
        dump = options_dump(train_options(), stored);
        free(stored);
    }
    FILE *out = dump ? open_memstream(&text, &size) : NULL;
    if (!out) {
        free(dump);
        return NULL;
    }
    fputs(dump, out);
    for (int i = 0; i < m->sites; i++) {
        const int count = count_like(m, i, own);
        if (count == 1) fprintf(out, "# %s: %s\n", m->site[i]->name, own);
        if (count > 1) fprintf(out, "# %s and %d more: %s\n", m->site[i]->name, count - 1, own);
    }
    free(dump);
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}
