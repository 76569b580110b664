/* preset_defaults.c -- default settings of a model and of its presets: share/presets/MODEL.conf and
 * MODEL-PRESET.conf, in a checkout or installed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program/install_files.h"
#include "train/trainer.h"

enum { PRESET_BYTES = 1 << 16, PRESET_PATH = 2 * INSTALL_FILES_PATH };

static sr_status find_file(const char *name, const char *preset, char path[PRESET_PATH],
                           sr_failure *why) {
    char file[2 * MODEL_TEXT];
    snprintf(file, sizeof file, "%s%s%s.conf", name, *preset ? "-" : "", preset);
    sr_status status = install_files_find("STATREC_PRESETS", "presets", file, path, why);
    return status == SR_OK ? install_files_check_file(path, why) : status;
}

char *train_preset_text(const char *name, const char *preset, sr_failure *why) {
    char path[PRESET_PATH];
    if (find_file(name, preset, path, why) != SR_OK) return NULL;
    FILE *in = fopen(path, "r");
    char *text = in ? calloc(1, PRESET_BYTES) : NULL;
    const size_t read = text ? fread(text, 1, PRESET_BYTES - 1, in) : 0;
    const bool whole = text && feof(in) && strlen(text) == read;
    if (!in || (text && ferror(in)))
        sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    else if (!text)
        sr_fail(why, SR_MEMORY, "%s: out of memory", path);
    else if (!whole)
        sr_fail(why, SR_FORMAT, "%s: not a text of at most %d bytes", path, PRESET_BYTES - 1);
    if (in) fclose(in);
    if (whole) return text;
    free(text);
    return NULL;
}

sr_status train_preset_apply(train_config *c, const char *name, const char *preset,
                             sr_failure *why) {
    const model_row *row = model_find(name);
    if (!row) return SR_OK; /* reported with the other names */
    char path[PRESET_PATH];
    sr_status status = find_file(name, "", path, why);
    if (status == SR_OK) status = options_read_file(train_options(), c, path, why);
    if (!*preset || !trainer_has_preset(row, preset)) return status;
    if (status == SR_OK) status = find_file(name, preset, path, why);
    return status == SR_OK ? options_read_file(train_options(), c, path, why) : status;
}

void train_preset_summary(const char *text, char *summary, size_t size) {
    const bool has_one = strncmp(text, "# ", 2) == 0;
    snprintf(summary, size, "%.*s", has_one ? (int)strcspn(text, "\n") - 2 : 0, text + 2 * has_one);
}
