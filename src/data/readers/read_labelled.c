/* read_labelled.c -- classified texts, a file for each split: DIR/PREFIX or DIR/PREFIX.gz (plain
 * preferred). The prefix is the whole name.
 *
 * "labelled": a line is the label, one blank or TAB, the text. "labelled-csv": a line is
 * `"label","text"` or has more text columns, which are joined with a blank. `""` in quotes is one
 * quote, `\n` a blank (Zhang, Zhao and LeCun, NeurIPS 2015).
 *
 * "labelled" also reads folders of classes and sentiment trees (labelled_layouts.h).
 *
 * The training file defines the classes: integers sorted by value, other labels by bytes. Without a
 * validation file the seed draws valid_share of the training lines, a tenth by default. The test
 * file may be missing. A line without a text is counted and left out. Line 1 of a file is a header
 * when no other line has its label and every other label is an integer or occurs twice. Folders and
 * trees have none.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/readers/labelled_layouts.h"
#include "data/readers/sentence_lines.h"

typedef struct labelled {
    dataset *d;
    const data_options *options;
    bool csv;
    /* byte NULL: no such split, or a share of the training file */
    file_bytes file[SENTENCE_SPLITS];
    byte_buffer names[SENTENCE_SPLITS]; /* names of the texts in folders (labelled_layouts.h) */
    bool no_header[SENTENCE_SPLITS];    /* folders and trees */
    label_set labels;
    bool first;               /* keeps the first of several labels of fastText; else rejects them */
    int64_t further;          /* labels after the first, left out */
    char header[LABEL_BYTES]; /* label of line 1 where that is a header, else "" */
    byte_buffer text;         /* text columns of a line */
} labelled;

/* A line's label and text; label.length 0: it is blank. */
typedef struct labelled_line {
    data_line label, text;
    int64_t further; /* labels of fastText between both */
} labelled_line;

/* Moves the labels of fastText at the beginning of the text out of it. */
static void cut_further_labels(labelled_line *line) {
    static const char mark[] = "__label__";
    const size_t size = sizeof mark - 1;
    const char *at = line->text.byte, *end = at + line->text.length;
    if (line->label.length < size || memcmp(line->label.byte, mark, size) != 0) return;
    for (;; line->further++) {
        const char *next = at;
        while (next < end && is_blank(*next)) next++;
        if ((size_t)(end - next) < size || memcmp(next, mark, size) != 0) break;
        while (next < end && !is_blank(*next)) next++;
        at = next;
    }
    line->text = (data_line){at, (size_t)(end - at)};
}

/* first: of several labels counts. Returns the fault, or NULL. */
static const char *cut_label(const char *line, size_t length, bool first, labelled_line *found) {
    size_t text = 0, end = 0;
    while (text < length && is_blank(line[text])) text++;
    if (text == length) return NULL; /* a blank line */
    if (text > 0) return "the line begins with a blank, not with a label";
    while (end < length && !is_blank(line[end])) end++;
    *found = (labelled_line){{line, end}, {line + end, length - end}, 0};
    cut_further_labels(found);
    if (!found->further || first) return NULL;
    return "several labels, but the model learns one; --labels first takes the first of each line";
}

/* -- columns */

/* Appends the column at *at, which moves past its comma or to the end. Returns NULL or the
 * fault. */
static const char *read_column(const char *line, size_t length, size_t *at, byte_buffer *out,
                               bool *done) {
    const bool quoted = *at < length && line[*at] == '"';
    size_t i = *at + quoted;
    for (; *done && i < length; i++) {
        if (quoted && line[i] == '"' && (i + 1 == length || line[i + 1] != '"')) break;
        if (!quoted && line[i] == ',') break;
        const bool newline = line[i] == '\\' && i + 1 < length && line[i + 1] == 'n';
        if (newline || (quoted && line[i] == '"')) i++;
        *done = buffer_put(out, newline ? " " : line + i, 1);
    }
    if (quoted && i == length) return "a quoted column does not end on this line";
    i += quoted;
    if (i < length && line[i] != ',') return "neither a comma nor the end follows a quoted column";
    *at = i + 1;
    return NULL;
}

/* The columns in l->text, the label first. */
static const char *cut_columns(labelled *l, const char *line, size_t length, labelled_line *found,
                               bool *done) {
    size_t label = 0;
    int columns = 0;
    l->text.size = 0;
    *done = buffer_put(&l->text, "", 0);
    for (size_t at = 0; *done && at <= length; columns++) {
        if (columns) *done = buffer_put(&l->text, " ", 1);
        const char *wrong = read_column(line, length, &at, &l->text, done);
        if (wrong) return wrong;
        if (columns == 0) label = l->text.size;
    }
    if (*done && columns < 2) return "one column, but label and text are two";
    *found =
        (labelled_line){{l->text.byte, label}, {l->text.byte + label, l->text.size - label}, 0};
    return NULL;
}

/* -- lines */

/* Writes FILE:LINE, number from 1; in folders FOLDER/CLASS/FILE. */
static void put_place(const labelled *l, int split, int64_t number, char *text, size_t size) {
    const char *path = l->file[split].path, *name = l->names[split].byte;
    for (int64_t i = 1; name && i < number; i++) name += strlen(name) + 1;
    if (name)
        snprintf(text, size, "%s/%s", path, name);
    else
        snprintf(text, size, "%s:%lld", path, (long long)number);
}

static int split_of(const labelled *l, const line_walk *w) {
    return (int)(w->file - l->file);
}

/* Fails with the place of the line. */
static sr_status fail_at(const labelled *l, const line_walk *w, sr_status status, const char *text,
                         sr_failure *why) {
    char place[FILE_PATH + 32];
    put_place(l, split_of(l, w), w->number, place, sizeof place);
    return sr_fail(why, status, "%s: %s", place, text);
}

static sr_status read_line(labelled *l, const line_walk *w, labelled_line *found, sr_failure *why) {
    bool done = true;
    const char *wrong = NULL;
    *found = (labelled_line){0};
    if (!l->csv) wrong = cut_label(w->line, w->length, l->first, found);
    if (l->csv && w->length > 0) {
        wrong = cut_columns(l, w->line, w->length, found, &done);
        if (!wrong && found->label.length == 0) wrong = "the label is empty";
    }
    if (!done) return fail_at(l, w, SR_MEMORY, "out of memory for its columns", why);
    return wrong ? fail_at(l, w, SR_FORMAT, wrong, why) : SR_OK;
}

static bool has_words(const labelled_line *line) {
    const file_bytes text = {.byte = (uint8_t *)line->text.byte, .size = line->text.length};
    text_walk w = {&text, 0};
    data_line word;
    return line->label.length && text_word(&w, &word.byte, &word.length);
}

static bool is_header(const labelled *l, const line_walk *w, const labelled_line *line) {
    /* unreached: a label without bytes has the length 0, the header has not */
    return w->number == 1 && *l->header && !l->no_header[split_of(l, w)] && line->label.byte &&
           strlen(l->header) == line->label.length &&
           !memcmp(l->header, line->label.byte, line->label.length);
}

static bool is_integer(data_line label) {
    const size_t sign = label.length > 1 && *label.byte == '-';
    for (size_t i = sign; i < label.length; i++)
        if (label.byte[i] < '0' || label.byte[i] > '9') return false;
    return true;
}

/* Decides by the training file; a line that cannot be read fails later. SR_MEMORY alone. */
static sr_status find_header(labelled *l, sr_failure *why) {
    line_walk w = {.file = &l->file[SPLIT_TRAIN]};
    label_set others = {0};
    int64_t count[LABELS_MAX] = {0};
    bool integers = true, first_is_one = true, header = !l->no_header[SPLIT_TRAIN];
    sr_status status = SR_OK;
    while (header && line_walk_next(&w)) {
        labelled_line line;
        status = read_line(l, &w, &line, NULL);
        if (status != SR_OK || line.label.length >= LABEL_BYTES) break;
        if (line.label.length == 0) continue;
        if (w.number == 1) {
            memcpy(l->header, line.label.byte, line.label.length);
            first_is_one = is_integer(line.label);
            continue;
        }
        header = strlen(l->header) != line.label.length ||
                 memcmp(l->header, line.label.byte, line.label.length) != 0;
        status = label_set_add(&others, line.label.byte, line.label.length, NULL);
        if (status != SR_OK) break;
        count[label_set_find(&others, line.label.byte, line.label.length)]++;
        integers = integers && is_integer(line.label);
    }
    bool twice = true;
    for (int i = 0; i < others.count; i++) twice = twice && count[i] > 1;
    header = header && w.at >= w.file->size && others.count > 1;
    if (!header || !(twice || (integers && !first_is_one))) l->header[0] = 0;
    if (*l->header) dataset_note(l->d, "; header '%s' of line 1 left out", l->header);
    if (*l->header && (!integers || first_is_one)) /* it may be a class */
        dataset_warn(l->d, "%s:1: left out as a header, since no other line has the label '%s'",
                     w.file->path, l->header);
    label_set_free(&others);
    if (status != SR_MEMORY) return SR_OK;
    return sr_fail(why, status, "%s: out of memory for its labels", w.file->path);
}

/* Collects the labels of the training file and counts its lines with a text. */
static sr_status collect_labels(labelled *l, int64_t *texts, sr_failure *why) {
    line_walk w = {.file = &l->file[SPLIT_TRAIN]};
    sr_status status = SR_OK;
    while (status == SR_OK && line_walk_next(&w)) {
        labelled_line line;
        sr_failure wrong = {0};
        status = read_line(l, &w, &line, why);
        if (status != SR_OK || line.label.length == 0 || is_header(l, &w, &line)) continue;
        status = label_set_add(&l->labels, line.label.byte, line.label.length, &wrong);
        if (status != SR_OK) fail_at(l, &w, status, wrong.text, why);
        *texts += has_words(&line);
    }
    label_set_sort(&l->labels);
    if (status != SR_OK || l->labels.count > 1) return status;
    return sr_fail(why, SR_FORMAT, "%s: %s in %lld lines, at least two classes needed",
                   w.file->path, l->labels.count ? "one label" : "no label", (long long)w.number);
}

/* is_valid [lines with a text]: those for validation; NULL: none. */
static sr_status add_file(labelled *l, data_split split, const bool *is_valid, sr_failure *why) {
    line_walk w = {.file = &l->file[split]};
    sr_status status = SR_OK;
    int64_t texts = 0;
    while (status == SR_OK && line_walk_next(&w)) {
        labelled_line line;
        status = read_line(l, &w, &line, why);
        if (status != SR_OK) break;
        if (is_header(l, &w, &line)) continue;
        l->further += line.further;
        const bool blank = line.label.length == 0;
        const int label =
            blank ? 0 : label_set_find(&l->labels, line.label.byte, line.label.length);
        if (label < 0) {
            char text[FILE_PATH + 128];
            snprintf(text, sizeof text, "label '%.*s' is none of the %d of %s",
                     (int)(line.label.length < 40 ? line.label.length : 40), line.label.byte,
                     l->labels.count, l->file[SPLIT_TRAIN].path);
            return fail_at(l, &w, SR_FORMAT, text, why);
        }
        const bool drawn = is_valid && has_words(&line) && is_valid[texts++];
        const data_split to = drawn ? SPLIT_VALID : split;
        status = sentence_set_line(&l->d->sentences, l->options, to, line.text.byte,
                                   line.text.length, label, w.number - 1, why);
    }
    return status;
}

/* -- files */

/* Draws the validation lines from the training lines with a text. */
static sr_status draw_valid(labelled *l, int64_t lines, bool **is_valid, sr_failure *why) {
    const data_options *o = l->options;
    const double share = dataset_share(o->valid_share, 0.1);
    const int64_t count = share >= 0 && share <= 1 ? llround(share * (double)lines) : 0;
    if (count < 1 || count >= lines)
        return sr_fail(why, SR_USAGE, "valid-share %g of %lld lines leaves %s", share,
                       (long long)lines, count < 1 ? "no validation" : "nothing for training");
    int64_t *order = draw_order(o->seed, lines);
    *is_valid = order ? calloc((size_t)lines, sizeof **is_valid) : NULL;
    for (int64_t i = 0; *is_valid && i < count; i++) (*is_valid)[order[i]] = true;
    free(order);
    if (!*is_valid)
        return sr_fail(why, SR_MEMORY, "out of memory for the split of %lld lines",
                       (long long)lines);
    dataset_note(l->d, "; %lld of %lld lines drawn for validation by seed %llu", (long long)count,
                 (long long)lines, (unsigned long long)o->seed);
    return SR_OK;
}

/* Reads a file, or a folder of classes; file[] stays empty for a test file that is missing. */
static sr_status read_layout(labelled *l, const char *name, int split, sr_failure *why) {
    bool found = false, trees = false;
    sr_status status = SR_OK;
    file_bytes *f = &l->file[split];
    if (!l->csv)
        status = labelled_folders(l->d, l->options, name, f, &l->names[split], &found, why);
    l->no_header[split] = found;
    if (status != SR_OK || found) return status;
    status = read_text_file(l->d, l->options, name, split == SPLIT_TEST, f, &found, why);
    if (status == SR_OK && found && !l->csv) status = labelled_trees(f, &trees, why);
    if (trees) dataset_note(l->d, " (trees: labels of the roots)");
    l->no_header[split] = trees;
    return status;
}

static const char *name_of(const void *labels, int64_t i) {
    return ((const label_set *)labels)->name[i];
}

/* Labels of one training sentence. */
static void check_labels(labelled *l) {
    const sentence_split *p = &l->d->sentences.split[SPLIT_TRAIN];
    int64_t times[LABELS_MAX] = {0};
    for (int64_t i = 0; i < p->count; i++) times[p->label[i]]++;
    dataset_check_labels(l->d, "labels", times, l->labels.count, name_of, &l->labels);
}

static void place_of(const void *loader, int64_t line, char *text, size_t size) {
    put_place(loader, SPLIT_TRAIN, line + 1, text, size);
}

static sr_status open_labelled(dataset *d, const data_options *o, bool csv, sr_failure *why) {
    labelled l = {.d = d, .options = o, .csv = csv, .first = strcmp(o->labels, "first") == 0};
    dataset_note(d, "%s: from", d->row->name);
    sr_status status = sentence_set_create(&d->sentences, o, why);
    if (status == SR_OK && !*o->trainpref) status = sr_fail(why, SR_USAGE, "trainpref is empty");
    d->sentences.place = place_of, d->sentences.loader = &l;
    const char *const name[SENTENCE_SPLITS] = {o->trainpref, o->validpref, o->testpref};
    for (int i = 0; i < SENTENCE_SPLITS && status == SR_OK; i++)
        if (*name[i]) status = read_layout(&l, name[i], i, why);
    if (status == SR_OK) status = find_header(&l, why);
    int64_t texts = 0;
    bool *is_valid = NULL;
    if (status == SR_OK) status = collect_labels(&l, &texts, why);
    if (status == SR_OK && !l.file[SPLIT_VALID].byte)
        status = draw_valid(&l, texts, &is_valid, why);
    for (int i = 0; i < SENTENCE_SPLITS && status == SR_OK; i++)
        if (l.file[i].byte)
            status = add_file(&l, (data_split)i, i == SPLIT_TRAIN ? is_valid : NULL, why);
    free(is_valid);
    if (l.further)
        dataset_note(d, "; %lld label%s after the first of a line left out", (long long)l.further,
                     l.further == 1 ? "" : "s");
    if (status == SR_OK) status = sentence_set_build(&d->sentences, why);
    for (int i = 0; i < l.labels.count; i++) dataset_add_class(d, l.labels.name[i]);
    if (status == SR_OK) {
        /* The classes by name, in their order: it shows a heading that was read as a class. */
        const int shown = l.labels.count > 10 ? 9 : l.labels.count;
        for (int i = 0; i < shown; i++)
            dataset_note(d, "%s %s", i ? "," : "; labels", l.labels.name[i]);
        if (shown < l.labels.count) dataset_note(d, " ... %s", l.labels.name[l.labels.count - 1]);
        dataset_finish_sentences(d, l.labels.count);
        check_labels(&l);
    }
    for (int i = 0; i < SENTENCE_SPLITS; i++) file_free(&l.file[i]), buffer_free(&l.names[i]);
    label_set_free(&l.labels);
    buffer_free(&l.text);
    return status;
}

sr_status labelled_open(dataset *d, const data_options *o, sr_failure *why) {
    return open_labelled(d, o, false, why);
}

sr_status labelled_csv_open(dataset *d, const data_options *o, sr_failure *why) {
    return open_labelled(d, o, true, why);
}
