/* read_parallel.c -- parallel text: DIR/PREFIX.LANG or DIR/PREFIX.LANG.gz, plain preferred. Each
 * line is one sentence; line i of one side translates line i of the other.
 *
 * The prefix "" of validation or test means none; the test files may also be missing, both of them.
 */
#include <stdio.h>
#include <string.h>

#include "data/dataset.h"

static sr_status find_side(const data_options *o, const char *prefix, const char *language,
                           char path[FILE_PATH], bool *found, sr_failure *why) {
    char name[2 * DATA_TEXT + 1];
    snprintf(name, sizeof name, "%s.%s", prefix, language);
    return file_find(o->dir, name, path, found, why);
}

/* Paths of both sides; *found false when neither is there and `optional`. */
static sr_status find_sides(const data_options *o, const char *prefix, bool optional,
                            char path[SIDES][FILE_PATH], bool *found, sr_failure *why) {
    bool there[SIDES];
    sr_status status = find_side(o, prefix, o->source, path[0], &there[0], why);
    if (status == SR_OK) status = find_side(o, prefix, o->target, path[1], &there[1], why);
    if (status != SR_OK) return status;
    *found = there[0] && there[1];
    if (*found || (optional && !there[0] && !there[1])) return SR_OK;
    const char *missing = path[there[0] ? 1 : 0];
    return file_missing(missing, why);
}

static sr_status read_sides(char path[SIDES][FILE_PATH], pair_text *t, sr_failure *why) {
    int64_t lines[SIDES] = {0};
    sr_status status = SR_OK;
    for (int i = 0; status == SR_OK && i < SIDES; i++) {
        status = text_read(path[i], &t->side[i], &lines[i], why);
        if (status == SR_OK && lines[i] == 0)
            status = sr_fail(why, SR_FORMAT, "%s:1: holds no line", path[i]);
    }
    t->lines = lines[0];
    if (status != SR_OK || lines[0] == lines[1]) return status;
    return sr_fail(why, SR_FORMAT, "%s has %lld lines, but %s has %lld", path[0],
                   (long long)lines[0], path[1], (long long)lines[1]);
}

static sr_status read_texts(dataset *d, const data_options *o, pair_text text[PAIR_SPLITS],
                            sr_failure *why) {
    const char *prefix[PAIR_SPLITS] = {o->trainpref, o->validpref, o->testpref};
    for (int i = 0; i < PAIR_SPLITS; i++) {
        char path[SIDES][FILE_PATH];
        bool found;
        if (i != SPLIT_TRAIN && !*prefix[i]) continue;
        sr_status status = find_sides(o, prefix[i], i == SPLIT_TEST, path, &found, why);
        if (status == SR_OK && found) status = read_sides(path, &text[i], why);
        if (status != SR_OK) return status;
        if (found) dataset_note(d, " %s %s", path[0], path[1]);
    }
    return SR_OK;
}

static sr_status check_languages(const data_options *o, sr_failure *why) {
    if (!*o->source || !*o->target)
        return sr_fail(why, SR_USAGE, "%s is not given: files are PREFIX.LANG",
                       *o->source ? "target" : "source");
    if (!strcmp(o->source, o->target))
        return sr_fail(why, SR_USAGE, "source and target are one language, '%.40s'", o->source);
    if (!*o->trainpref) return sr_fail(why, SR_USAGE, "trainpref is empty");
    return SR_OK;
}

sr_status parallel_open(dataset *d, const data_options *o, sr_failure *why) {
    pair_text text[PAIR_SPLITS] = {0};
    sr_status status = check_languages(o, why);
    dataset_note(d, "parallel %s-%s: from", o->source, o->target);
    if (status == SR_OK) status = pair_set_create(&d->pairs, o, why);
    if (status == SR_OK) status = pair_set_prepare(&d->pairs, o, why);
    if (status == SR_OK) status = read_texts(d, o, text, why);
    if (status == SR_OK) status = pair_set_build(&d->pairs, text, why);
    for (int i = 0; i < PAIR_SPLITS; i++) pair_text_free(&text[i]);
    if (status == SR_OK) dataset_finish_pairs(d);
    return status;
}
