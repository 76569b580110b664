/* read_parallel.c -- parallel text: DIR/PREFIX.LANG or DIR/PREFIX.LANG.gz, plain preferred. Each
 * line is one sentence; line i of one side translates line i of the other.
 *
 * Markup of IWSLT's texts is left out (parallel_layouts.h); PREFIX.LANG.xml is found, too.
 *
 * The prefix "" of validation or test means none; the test files may also be missing, both of them.
 */
#include <stdio.h>
#include <string.h>

#include "data/dataset.h"
#include "data/readers/parallel_layouts.h"

static sr_status read_sides(dataset *d, char path[SIDES][FILE_PATH], pair_text *t,
                            sr_failure *why) {
    int64_t lines[SIDES] = {0}, marked[SIDES] = {0};
    sr_status status = SR_OK;
    for (int i = 0; status == SR_OK && i < SIDES; i++)
        status = text_read(path[i], &t->side[i], &lines[i], why);
    if (status == SR_OK) status = parallel_match_sides(t->side, why);
    for (int i = 0; status == SR_OK && i < SIDES; i++) {
        status = parallel_strip_markup(&t->side[i], &lines[i], &t->number[i], &marked[i], why);
        if (status == SR_OK && lines[i] == 0)
            status = sr_fail(why, SR_FORMAT, "%s:1: holds no line", path[i]);
    }
    t->lines = lines[0];
    if (status != SR_OK) return status;
    dataset_note(d, " %s %s", path[0], path[1]);
    if (marked[0] || marked[1])
        dataset_note(d, " (%lld and %lld lines of markup left out)", (long long)marked[0],
                     (long long)marked[1]);
    if (lines[0] == lines[1]) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s has %lld lines, but %s has %lld", path[0],
                   (long long)lines[0], path[1], (long long)lines[1]);
}

/* Leaves the path unchanged if the file does not exist. */
static sr_status find_xml(const data_options *o, char name[2 * DATA_TEXT + 8], char path[FILE_PATH],
                          bool *found, sr_failure *why) {
    char other[FILE_PATH];
    strcat(name, ".xml");
    const sr_status status = file_find(o->dir, name, other, found, why);
    if (*found) memcpy(path, other, sizeof other);
    return status;
}

static sr_status read_texts(dataset *d, const data_options *o, pair_text text[PAIR_SPLITS],
                            sr_failure *why) {
    const char *const prefix[PAIR_SPLITS] = {o->trainpref, o->validpref, o->testpref};
    const char *const language[SIDES] = {o->source, o->target};
    if (!*o->source || !*o->target)
        return sr_fail(why, SR_USAGE, "%s is not given: files are PREFIX.LANG",
                       *o->source ? "target" : "source");
    if (!strcmp(o->source, o->target))
        return sr_fail(why, SR_USAGE, "source and target are one language, '%.40s'", o->source);
    if (!*o->trainpref) return sr_fail(why, SR_USAGE, "trainpref is empty");
    dataset_note(d, "parallel %s-%s: from", o->source, o->target);
    for (int i = 0; i < PAIR_SPLITS; i++) {
        char path[SIDES][FILE_PATH], name[2 * DATA_TEXT + 8];
        bool found[SIDES] = {false};
        sr_status status = SR_OK;
        if (!*prefix[i]) continue;
        for (int k = 0; k < SIDES && status == SR_OK; k++) {
            snprintf(name, sizeof name, "%s.%s", prefix[i], language[k]);
            status = file_find(o->dir, name, path[k], &found[k], why);
            if (status == SR_OK && !found[k]) status = find_xml(o, name, path[k], &found[k], why);
        }
        if (status != SR_OK) return status;
        if (i == SPLIT_TEST && !found[0] && !found[1]) continue;
        if (!found[0] || !found[1]) return file_missing(path[found[0] ? 1 : 0], why);
        status = read_sides(d, path, &text[i], why);
        if (status != SR_OK) return status;
        for (int k = 0; k < SIDES; k++) dataset_check_ends(d, &text[i].side[k]);
    }
    return SR_OK;
}

sr_status parallel_open(dataset *d, const data_options *o, sr_failure *why) {
    return dataset_open_pairs(d, o, read_texts, why);
}
