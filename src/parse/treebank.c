/* treebank.c -- reads the sentences of a treebank file and writes them back. */
#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "parse/tree_lines.h"
#include "text/text.h"

/* -- storage */

/* start[sentences]: the first word of the next sentence. */
static sr_status add_start(treebank *t, int64_t count, sr_failure *why) {
    if (!vector_reserve(&t->start, &t->start_capacity, count + 1, sizeof *t->start))
        return sr_fail(why, SR_MEMORY, "%s: out of memory for its sentences", t->file.path);
    t->start[count] = t->words;
    t->sentences = count;
    return SR_OK;
}

/* -- reading */

/* Ends a sentence; without words there was none. */
static sr_status end_sentence(treebank *t, const treebank_options *o, tree_sentence *s,
                              const tree_line *line, sr_failure *why) {
    const int32_t words = (int32_t)(t->words - t->start[t->sentences]);
    sr_status status = SR_OK;
    if (s->reach > s->words)
        return tree_fail(t->file.path, s->reach_line, why,
                         "a multiword token ends at %d of %d words", s->reach, words);
    if (s->empties && words == 0)
        return tree_fail(t->file.path, line->number, why, "a sentence of empty nodes alone");
    *s = (tree_sentence){0};
    if (words == 0) return SR_OK;
    status = tree_check_sentence(t, t->word + t->start[t->sentences], words, o->any_heads, why);
    return status == SR_OK ? add_start(t, t->sentences + 1, why) : status;
}

static sr_status read_line(treebank *t, const tree_line *line, tree_sentence *s, sr_failure *why) {
    tree_word w;
    bool skip;
    if (t->format == TREES_CONLLU && tree_is_comment(line))
        return s->words || s->reach || s->empties
                   ? tree_fail(line->path, line->number, why,
                               "a comment within a sentence; put it before")
                   : SR_OK;
    const sr_status status = tree_read_word(t, line, s, &w, &skip, why);
    if (status != SR_OK || skip) return status;
    w.at = (size_t)(line->byte - (const char *)t->file.byte);
    t->labelled |= w.label.size != 1 || w.label.byte[0] != '_';
    if (!vector_reserve(&t->word, &t->word_capacity, t->words + 1, sizeof *t->word))
        return sr_fail(why, SR_MEMORY, "%s: out of memory for its words", t->file.path);
    t->word[t->words++] = w;
    return SR_OK;
}

static sr_status read_lines(treebank *t, const treebank_options *o, sr_failure *why) {
    tree_line line = {0};
    tree_sentence s = {0};
    sr_status status = add_start(t, 0, why);
    for (tree_walk w = {0}; status == SR_OK && tree_next_line(&t->file, &w, &line);)
        status = tree_line_blank(&line) ? end_sentence(t, o, &s, &line, why)
                                        : read_line(t, &line, &s, why);
    if (status == SR_OK) status = end_sentence(t, o, &s, &line, why);
    if (status == SR_OK && t->sentences == 0)
        status = sr_fail(why, SR_FORMAT, "%s: no sentence in it", t->file.path);
    return status;
}

static sr_status choose_format(treebank *t, tree_format wanted, sr_failure *why) {
    const tree_format found = tree_recognise(&t->file, &t->columns);
    t->format = wanted == TREES_AUTO ? found : wanted;
    if (t->format == TREES_AUTO && t->columns == 0)
        return sr_fail(why, SR_FORMAT, "%s: no sentence in it", t->file.path);
    if (t->format == TREES_AUTO) {
        sr_fail(why, SR_FORMAT, "%s: the first line of words has %s%d column%s, not 3, 4 or %d",
                t->file.path, t->columns == TREE_MANY ? "more than " : "",
                t->columns == TREE_MANY ? TREE_COLUMNS : t->columns, t->columns == 1 ? "" : "s",
                TREE_COLUMNS);
        sr_hint(why, "tabs separate columns; formats are " TREE_FORMAT_WORDS);
        return SR_FORMAT;
    }
    if (t->format != TREES_MALT_TAB)
        t->columns = TREE_COLUMNS;
    else if (t->columns != 4)
        t->columns = 3;
    return SR_OK;
}

sr_status treebank_read(const char *path, const treebank_options *o, treebank *t, sr_failure *why) {
    const bool standard = strcmp(path, "-") == 0;
    int64_t lines;
    *t = (treebank){0};
    sr_status status = file_read(standard ? "/dev/stdin" : path, &t->file, why);
    if (status != SR_OK) return status;
    if (standard) strcpy(t->file.path, "standard input");
    status = text_tidy(&t->file, &lines, why);
    if (status == SR_OK) status = choose_format(t, o->format, why);
    if (status == SR_OK) status = read_lines(t, o, why);
    if (status != SR_OK) treebank_free(t);
    return status;
}

void treebank_free(treebank *t) {
    file_free(&t->file);
    free(t->word);
    free(t->start);
    *t = (treebank){0};
}

const tree_word *treebank_sentence(const treebank *t, int64_t i, int32_t *words) {
    *words = (int32_t)(t->start[i + 1] - t->start[i]);
    return t->word + t->start[i];
}

const tree_field *tree_pos_of(const treebank *t, const tree_word *w, tree_pos pos) {
    const bool coarse = pos == TREE_POS_AUTO ? t->format == TREES_CONLLU : pos == TREE_POS_COARSE;
    return coarse ? &w->coarse : &w->fine;
}

/* -- writing */

static void write_field(const tree_field *f, FILE *out) {
    fwrite(f->byte, 1, (size_t)f->size, out);
}

/* The content of a column of a word with this head and label. */
static void write_column(const treebank *t, const tree_line *line, int column, int32_t head,
                         const char *label, FILE *out) {
    const bool malt = t->format == TREES_MALT_TAB;
    const int head_at = malt ? 2 : 6, label_at = malt ? 3 : 7;
    const bool repeats = !malt && (column == 8 || (column == 9 && t->format == TREES_CONLLX));
    if (column == head_at)
        fprintf(out, "%d", head);
    else if (column == label_at && label)
        fputs(label, out);
    else if (repeats)
        fputs("_", out);
    else
        write_field(&line->column[column], out);
}

/* Copies a line that is no word, except the graph of an empty node or a range. */
static void write_other(const tree_line *line, FILE *out) {
    const int columns = tree_is_comment(line) ? 0 : line->columns;
    if (columns == 0) fwrite(line->byte, 1, line->size, out);
    for (int c = 0; c < columns; c++) {
        if (c) fputc('\t', out);
        if (c == 8)
            fputs("_", out);
        else
            write_field(&line->column[c], out);
    }
    fputc('\n', out);
}

bool treebank_write(const treebank *t, int64_t i, const int32_t *head, const char *const *label,
                    FILE *out) {
    int32_t words, done = 0;
    const tree_word *word = treebank_sentence(t, i, &words);
    tree_walk w = {i ? (t->word + t->start[i] - 1)->at : 0, 0};
    tree_line line;
    /* skips the rest of the sentence before */
    while (i && tree_next_line(&t->file, &w, &line) && !tree_line_blank(&line)) continue;
    while (tree_next_line(&t->file, &w, &line)) {
        if (tree_line_blank(&line)) {
            if (done == words) break;
        } else if (done < words && line.byte == (const char *)t->file.byte + word[done].at) {
            for (int c = 0; c < line.columns; c++) {
                if (c) fputc('\t', out);
                write_column(t, &line, c, head[done], (label ? label[done] : NULL), out);
            }
            fputc('\n', out);
            done++;
        } else {
            write_other(&line, out);
        }
    }
    fputc('\n', out);
    return !ferror(out);
}
