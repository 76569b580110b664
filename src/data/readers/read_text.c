/* read_text.c -- running text: DIR/PREFIX or DIR/PREFIX.gz (plain preferred), one file for each
 * split, its prefix the whole name: "ptb.train.txt". Tokens are separated by blanks.
 *
 * The name "" of validation or test means none; the test file may also be missing.
 */

#include "data/dataset.h"

static sr_status read_split(const data_options *o, const char *name, bool optional, file_bytes *f,
                            int64_t *lines, sr_failure *why) {
    char path[FILE_PATH];
    bool found;
    sr_status status = file_find(o->dir, name, path, &found, why);
    if (status != SR_OK || (!found && optional)) return status;
    if (!found) return file_missing(path, why);
    status = text_read(path, f, lines, why);
    if (status == SR_OK && *lines == 0)
        status = sr_fail(why, SR_FORMAT, "%s:1: holds no line", path);
    return status;
}

sr_status text_open(dataset *d, const data_options *o, sr_failure *why) {
    const char *name[RUNNING_SPLITS] = {o->trainpref, o->validpref, o->testpref};
    file_bytes text[RUNNING_SPLITS] = {0};
    int64_t lines[RUNNING_SPLITS] = {0};
    dataset_note(d, "text: from");
    sr_status status = running_set_create(&d->running, o, false, why);
    if (status == SR_OK && !*o->trainpref) status = sr_fail(why, SR_USAGE, "trainpref is empty");
    for (int i = 0; status == SR_OK && i < RUNNING_SPLITS; i++) {
        if (!*name[i]) continue;
        status = read_split(o, name[i], i == SPLIT_TEST, &text[i], &lines[i], why);
        if (status == SR_OK && text[i].byte) {
            dataset_note(d, " %s", text[i].path);
            dataset_check_ends(d, &text[i]);
        }
    }
    if (status == SR_OK) status = running_set_build(&d->running, text, lines, why);
    for (int i = 0; i < RUNNING_SPLITS; i++) file_free(&text[i]);
    if (status == SR_OK) dataset_finish_running(d);
    return status;
}
