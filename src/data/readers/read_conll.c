/* read_conll.c -- words with the tags of their entities, one file per split. The file is DIR/PREFIX
 * or DIR/PREFIX.gz, plain preferred. The name "" of validation or test means none; the test file
 * may also be missing. A line is a word in columns between blanks or tabs; all lines have the same
 * number. Blank lines and lines that start with -DOCSTART- separate sentences. Comment lines before
 * a sentence start with # and are left out. This covers
 * CoNLL-2002 and 2003 (Tjong Kim Sang, and De Meulder) and the Chinese Resume set, which has one
 * character a line.
 *
 * Tags are read by their meaning (docs/models.md 10.2) and converted to the scheme of the options.
 * A model's classes are the types of the training file. It cannot find entities of other types: a
 * warning names each type. ASCII digits become 0 in words and characters if zero_digits is set. The
 * line step (small letters) changes words alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "data/readers/sentence_lines.h"

/* A word column that only numbers: from 0 or 1 in each sentence, or from the first word on. */
typedef struct index_column {
    bool from_0, from_1, on_from_0, on_from_1; /* so far */
    int64_t words, longest;
} index_column;

/* The attention of a sentence takes the square of its words: 1 GB for 16 heads at this length. */
enum { CONLL_LONGEST = 4096 };

typedef struct conll {
    dataset *d;
    const data_options *options;
    data_split split;
    line_walk at;
    tag_types types;
    tag_column column;
    int scheme; /* scheme of the training tags */
    int64_t columns, line_of_columns;
    bool tabs; /* only they separate columns */
    int64_t comments;
    index_column index;
    /* the open sentence */
    tag_mark *mark;  /* [words] */
    data_line *word; /* [words], into the file */
    int64_t words, mark_capacity, word_capacity;
    int64_t offset, first_line; /* its first line */
    int64_t breaks;             /* lines between sentences so far */
    byte_buffer folded, spelled;
} conll;

/* -- lines */

/* Column `number` of a line, from 1; 0: the last one. tabs: only they separate, so that a word may
 * have blanks and a column be empty. */
static data_line column_of(const char *line, size_t length, bool tabs, int64_t number,
                           int64_t *columns) {
    data_line found = {0};
    *columns = 0;
    for (size_t from = 0; tabs && length > 0 && from <= length;) {
        const char *tab = memchr(line + from, '\t', length - from);
        const size_t to = tab ? (size_t)(tab - line) : length;
        ++*columns;
        if (number == 0 || *columns == number) found = (data_line){line + from, to - from};
        from = to + 1;
    }
    if (tabs) return found;
    for (size_t at = 0; at < length;) {
        while (at < length && is_blank(line[at])) at++;
        const size_t from = at;
        while (at < length && !is_blank(line[at])) at++;
        if (at == from) break;
        ++*columns;
        if (number == 0 || *columns == number) found = (data_line){line + from, at - from};
    }
    return found;
}

static sr_status check_columns(conll *c, int64_t columns, sr_failure *why) {
    const data_options *o = c->options;
    const int64_t wanted = o->word_column > o->tag_column ? o->word_column : o->tag_column;
    if (!c->columns) c->columns = columns, c->line_of_columns = c->at.number;
    if (columns != c->columns)
        return sr_fail(why, SR_FORMAT, "%s:%lld: %lld column%s, line %lld has %lld",
                       c->at.file->path, (long long)c->at.number, (long long)columns,
                       columns == 1 ? "" : "s", (long long)c->line_of_columns,
                       (long long)c->columns);
    if (columns >= wanted && (o->tag_column || columns > o->word_column)) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s:%lld: %lld column%s, word and tag are columns %lld and %lld",
                   c->at.file->path, (long long)c->at.number, (long long)columns,
                   columns == 1 ? "" : "s", (long long)o->word_column,
                   (long long)(o->tag_column ? o->tag_column : wanted + 1));
}

/* True for a tag of some scheme: O, or a letter, a hyphen and a type. */
static bool looks_like_tag(data_line tag) {
    if (tag.length < 3) return tag.length == 1 && *tag.byte == 'O';
    return *tag.byte >= 'A' && *tag.byte <= 'Z' && (tag.byte[1] == '-' || tag.byte[1] == '_');
}

/* A line between sentences that starts with #, and has another number of columns than words have,
 * or no tag. The word # has both. */
static bool is_comment(const conll *c) {
    int64_t columns, others = c->columns;
    if (c->words > 0 || c->at.length == 0 || *c->at.line != '#') return false;
    const data_line tag =
        column_of(c->at.line, c->at.length, c->tabs, c->options->tag_column, &columns);
    if (!looks_like_tag(tag)) return true;
    for (line_walk w = c->at; others == 0 && line_walk_next(&w);)
        if (w.length > 0 && *w.line != '#') column_of(w.line, w.length, c->tabs, 1, &others);
    return others > 0 && columns != others;
}

static bool is_number(data_line word, int64_t number) {
    char text[24];
    const int length = snprintf(text, sizeof text, "%lld", (long long)number);
    return word.length == (size_t)length && !memcmp(word.byte, text, word.length);
}

/* Adds word c->words of the open sentence. */
static void index_add(index_column *x, data_line word, int64_t at) {
    x->from_0 = x->from_0 && is_number(word, at);
    x->from_1 = x->from_1 && is_number(word, at + 1);
    x->on_from_0 = x->on_from_0 && is_number(word, x->words);
    x->on_from_1 = x->on_from_1 && is_number(word, x->words + 1);
    x->words++;
    if (at >= x->longest) x->longest = at + 1;
}

static sr_status check_index(const conll *c, sr_failure *why) {
    const index_column *x = &c->index;
    const int64_t column = c->options->word_column;
    if (x->longest < 2 || !(x->from_0 || x->from_1 || x->on_from_0 || x->on_from_1)) return SR_OK;
    sr_fail(why, SR_FORMAT, "%s: column %lld only numbers the %lld words", c->at.file->path,
            (long long)column, (long long)x->words);
    sr_hint(why, "--word-column %lld, if the words are in the next column",
            (long long)(column + 1));
    return SR_FORMAT;
}

/* Names a type that the training file lacks, at its first occurrence. */
static void warn_new_type(const conll *c, int64_t types) {
    if (c->split == SPLIT_TRAIN || c->types.names.count == types) return;
    dataset_warn(c->d,
                 "%s:%lld: type %s is not in the training file: its entities count as not found, "
                 "its words as O in the loss",
                 c->at.file->path, (long long)c->at.number, tag_types_name(&c->types, types));
}

static sr_status add_word(conll *c, sr_failure *why) {
    const data_options *o = c->options;
    const line_walk *w = &c->at;
    int64_t columns;
    const data_line word = column_of(w->line, w->length, c->tabs, o->word_column, &columns);
    const data_line tag = column_of(w->line, w->length, c->tabs, o->tag_column, &columns);
    sr_status status = check_columns(c, columns, why);
    if (status == SR_OK &&
        (!vector_reserve(&c->mark, &c->mark_capacity, c->words + 1, sizeof *c->mark) ||
         !vector_reserve(&c->word, &c->word_capacity, c->words + 1, sizeof *c->word)))
        status = sr_fail(why, SR_MEMORY, "out of memory for a sentence");
    const int64_t types = c->types.names.count;
    if (status == SR_OK)
        status = tag_column_add(&c->column, &c->types, w->number, tag.byte, tag.length,
                                &c->mark[c->words], why);
    if (status != SR_OK) return status;
    warn_new_type(c, types);
    if (c->words == 0) c->offset = w->line - (const char *)w->file->byte, c->first_line = w->number;
    index_add(&c->index, word, c->words);
    c->word[c->words++] = word;
    return SR_OK;
}

/* -- sentences */

/* Adds word i of the open sentence. Until all types are read, its tag is a code: part and type, 0
 * for O. */
static sr_status put_word(conll *c, int64_t i, sr_failure *why) {
    const data_line word = c->word[i];
    const tag_mark m = c->mark[i];
    c->spelled.size = 0;
    if (!buffer_put(&c->spelled, word.byte, word.length))
        return sr_fail(why, SR_MEMORY, "out of memory for a word");
    for (size_t k = 0; c->options->zero_digits && k < word.length; k++)
        if (c->spelled.byte[k] >= '0' && c->spelled.byte[k] <= '9') c->spelled.byte[k] = '0';
    const line_transform *step = c->options->tokenizer;
    const sr_status status =
        line_steps_apply(step, step ? 1 : 0, 0, c->spelled.byte, c->spelled.size, &c->folded, why);
    if (status != SR_OK) return status;
    const int32_t code = m.part == TAG_OUTSIDE ? 0 : m.type * TAG_PARTS + (int32_t)m.part;
    const sentence_word w = {c->folded.byte, c->folded.size, c->spelled.byte, c->spelled.size,
                             code};
    return sentence_set_word(&c->d->sentences, c->split, &w, why);
}

static sr_status check_length(const conll *c, sr_failure *why) {
    if (c->words <= CONLL_LONGEST) return SR_OK;
    sr_fail(why, SR_FORMAT, "%s:%lld: a sentence of %lld words, at most %d%s", c->at.file->path,
            (long long)c->first_line, (long long)c->words, CONLL_LONGEST,
            c->breaks ? "" : "; the file has no blank line");
    sr_hint(why, "blank lines end sentences: put them in, or cut the sentence");
    return SR_FORMAT;
}

static sr_status end_sentence(conll *c, sr_failure *why) {
    sr_status status = SR_OK;
    if (c->words == 0) return SR_OK;
    status = check_length(c, why);
    if (status != SR_OK) return status;
    tag_column_end_sentence(&c->column);
    tag_convert((tag_scheme)c->scheme, c->mark, c->words, c->mark);
    for (int64_t i = 0; status == SR_OK && i < c->words; i++) status = put_word(c, i, why);
    c->words = 0;
    if (status != SR_OK) return status;
    return sentence_set_end(&c->d->sentences, c->split, 0, c->offset, why);
}

/* -- files */

static sr_status read_split(conll *c, data_split split, const char *name, sr_failure *why) {
    const data_options *o = c->options;
    file_bytes *f = &c->d->tagged_file[split];
    bool found = false;
    if (split == SPLIT_TRAIN && !*name) return sr_fail(why, SR_USAGE, "trainpref is empty");
    if (!*name) return SR_OK;
    sr_status status = read_text_file(c->d, o, name, split == SPLIT_TEST, f, &found, why);
    if (status != SR_OK || !found) return status;
    c->split = split;
    c->at = (line_walk){.file = f};
    c->columns = c->comments = c->breaks = 0;
    c->index = (index_column){true, true, true, true, 0, 0};
    c->column = tag_column_start(f->path, *o->file_tag_scheme && strcmp(o->file_tag_scheme, "auto")
                                              ? tag_scheme_find(o->file_tag_scheme)
                                              : TAG_ANY);
    static const char document[] = "-DOCSTART-";
    while (status == SR_OK && line_walk_next(&c->at)) {
        int64_t columns;
        const data_line first = column_of(c->at.line, c->at.length, c->tabs, 1, &columns);
        if (is_comment(c)) {
            c->comments++;
            continue;
        }
        const bool ends = columns == 0 || (first.length == sizeof document - 1 &&
                                           !memcmp(first.byte, document, first.length));
        c->breaks += ends;
        status = ends ? end_sentence(c, why) : add_word(c, why);
    }
    if (status == SR_OK) status = end_sentence(c, why);
    if (status == SR_OK) status = check_index(c, why);
    if (status != SR_OK) return status;
    const tag_scheme scheme = tag_column_scheme(&c->column);
    const int64_t illegal = c->column.illegal[scheme];
    dataset_note(c->d, " (%s", tag_scheme_name(scheme));
    if (illegal)
        dataset_note(c->d, ", %lld tag%s against its grammar", (long long)illegal,
                     illegal == 1 ? "" : "s");
    if (c->comments)
        dataset_note(c->d, ", %lld comment line%s left out", (long long)c->comments,
                     c->comments == 1 ? "" : "s");
    dataset_note(c->d, ")");
    if (split == SPLIT_TRAIN) c->types.trained = (int32_t)c->types.names.count;
    if (c->d->sentences.split[split].count > 0) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s: no sentence in %lld lines", f->path,
                   (long long)c->at.number);
}

/* Replaces codes by numbers of tags. */
static sr_status number_tags(conll *c, sr_failure *why) {
    sentence_set *s = &c->d->sentences;
    int32_t *number = malloc(((size_t)(int32_t)c->types.names.count + 1) * sizeof *number);
    tag_set *set = number ? tag_set_create((tag_scheme)c->scheme, &c->types, number) : NULL;
    if (!set) {
        free(number);
        return sr_fail(why, SR_MEMORY, "out of memory for a dictionary of tags");
    }
    for (int k = 0; k < SENTENCE_SPLITS; k++)
        for (int64_t i = 0; i < s->split[k].words; i++) {
            const int32_t code = s->split[k].tag[i];
            tag_mark m = {TAG_OUTSIDE, -1};
            if (code) m = (tag_mark){(tag_part)(code % TAG_PARTS), number[code / TAG_PARTS]};
            s->split[k].tag[i] = tag_set_id(set, m);
        }
    free(number);
    c->d->tags = set;
    s->tags = set, s->allowed = set->allowed;
    if (c->types.trained) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s: every tag is O", c->d->tagged_file[SPLIT_TRAIN].path);
}

static sr_status check_options(conll *c, sr_failure *why) {
    const data_options *o = c->options;
    c->scheme = *o->tag_scheme ? tag_scheme_find(o->tag_scheme) : TAG_BIOES;
    if (c->scheme == TAG_ANY)
        return sr_fail(why, SR_USAGE, "tag-scheme '%.40s' is not one of " TAG_SCHEME_WORDS,
                       o->tag_scheme);
    if (o->word_column == o->tag_column)
        return sr_fail(why, SR_USAGE, "word-column and tag-column are both %lld",
                       (long long)o->tag_column);
    return SR_OK;
}

static const char *type_name(const void *types, int64_t i) {
    return ((const tag_set *)types)->type[i];
}

/* Types of one training entity. */
static sr_status check_types(dataset *d, sr_failure *why) {
    const sentence_split *p = &d->sentences.split[SPLIT_TRAIN];
    int64_t *times = calloc((size_t)d->tags->all_types + 1, sizeof *times);
    tag_span *span = malloc(CONLL_LONGEST * sizeof *span);
    for (int64_t i = 0; times && span && i < p->count; i++) {
        const int64_t spans =
            tag_set_spans(d->tags, p->tag + p->first[i], p->first[i + 1] - p->first[i], span);
        for (int64_t k = 0; k < spans; k++) times[span[k].type]++;
    }
    if (times && span)
        dataset_check_labels(d, "types of entities", times, d->tags->types, type_name, d->tags);
    const bool done = times && span;
    free(times), free(span);
    return done ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for types of entities");
}

static void note_entities(const conll *c) {
    const tag_set *set = c->d->tags;
    dataset_note(c->d, "; tags of %lld type%s as %s", (long long)set->types,
                 set->types == 1 ? "" : "s", tag_scheme_name(set->scheme));
    for (int k = 0; k < SENTENCE_SPLITS; k++) {
        const sentence_split *p = &c->d->sentences.split[k];
        int64_t entities = 0;
        for (int64_t i = 0; i < p->count; i++)
            entities +=
                tag_set_spans(set, p->tag + p->first[i], p->first[i + 1] - p->first[i], NULL);
        if (p->count) dataset_note(c->d, ", %lld %s", (long long)entities, dataset_split_titles[k]);
    }
    dataset_note(c->d, " entities");
    if (c->options->zero_digits) dataset_note(c->d, "; digits as 0");
    if (c->options->tokenizer)
        dataset_note(c->d, "; words through %s", c->options->tokenizer->name);
}

/* offset: of the sentence in the file. */
static void place_of(const void *loader, int64_t offset, char *text, size_t size) {
    const file_bytes *f = &((const conll *)loader)->d->tagged_file[SPLIT_TRAIN];
    long long line = 1;
    for (int64_t i = 0; i < offset; i++) line += f->byte[i] == '\n';
    snprintf(text, size, "%s:%lld", f->path, line);
}

sr_status conll_open(dataset *d, const data_options *o, sr_failure *why) {
    data_options own = *o;
    conll c = {.d = d, .options = &own, .tabs = strcmp(o->delimiter, "tab") == 0};
    own.max_length = own.pad_to = 0; /* a sentence is tagged as a whole */
    own.mark_start = own.mark_end = false;
    if (!own.word_column && !own.tag_column) own.word_column = 1;
    dataset_note(d, "%s: from", d->row->name);
    sr_status status = sentence_set_create(&d->sentences, &own, why);
    d->sentences.task = TASK_TAGS;
    d->sentences.place = place_of, d->sentences.loader = &c;
    d->sentences.spelled = true;
    if (status == SR_OK) status = check_options(&c, why);
    const char *const name[SENTENCE_SPLITS] = {o->trainpref, o->validpref, o->testpref};
    for (int i = 0; status == SR_OK && i < SENTENCE_SPLITS; i++)
        status = read_split(&c, (data_split)i, name[i], why);
    if (status == SR_OK) status = number_tags(&c, why);
    if (status == SR_OK) status = sentence_set_build(&d->sentences, why);
    if (status == SR_OK) dataset_finish_sentences(d, d->tags->count);
    if (status == SR_OK) note_entities(&c);
    if (status == SR_OK) status = check_types(d, why);
    /* taggers encode distances alone: other tests may have longer sentences */
    d->shape.longest = 0;
    d->word_column = own.word_column;
    d->tabs = c.tabs;
    tag_types_free(&c.types);
    free(c.mark);
    free(c.word);
    buffer_free(&c.folded);
    buffer_free(&c.spelled);
    return status;
}

const tag_set *data_tags(const dataset *d) {
    return d->tags;
}

char data_tag_separator(const dataset *d) {
    return d->tabs ? '\t' : ' ';
}

data_line data_tagged_word(const dataset *d, data_split split, int64_t sentence, int64_t word) {
    const sentence_split *p = &d->sentences.split[split];
    line_walk w = {.file = &d->tagged_file[split], .at = (size_t)p->line[sentence]};
    int64_t columns;
    for (int64_t i = 0; i <= word; i++)
        if (!line_walk_next(&w)) return (data_line){0};
    return column_of(w.line, w.length, d->tabs, d->word_column, &columns);
}
