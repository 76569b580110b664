/* Words with tags in columns: file formats, the resulting words and tags, errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data_files.h"
#include "text/line_transform.h"
#include "text/tag_set.h"

/* IOB1, as in CoNLL-2003; two sentences of a document, one of another. */
static const char train[] =
    "-DOCSTART- -X- O O\n\n"
    "EU NNP I-NP I-ORG\nrejects VBZ I-VP O\nGerman JJ I-NP I-MISC\n. . O O\n\n"
    "Peter NNP I-NP I-PER\nBlackburn NNP I-NP I-PER\nEU NNP I-NP I-ORG\n\n"
    "-DOCSTART- -X- O O\n\n"
    "U.S. NNP I-NP I-LOC\nIraq NNP I-NP B-LOC\n1996-12 CD I-NP O\n";
static const char valid[] = "Ekeus NNP I-NP I-PER\n3 CD I-NP O\n";

static data_options options_of(const char *dir) {
    data_options o = default_options("conll", dir);
    o.batch_size = 8;
    strcpy(o.batching, "sorted");
    o.zero_digits = true;
    return o;
}

static const char *folder_of(const char *training, const char *validation) {
    const char *dir = make_folder();
    write_text(dir, "train", training);
    write_text(dir, "valid", validation);
    return dir;
}

/* Sentence `number` of a split, as "word/tag" with the dictionary's words. */
static void expect_sentence(dataset *d, data_split split, int64_t number, const char *want) {
    sr_failure why = {0};
    batch b;
    char text[512] = "";
    for (int64_t k = 0; k < data_batches(d, split); k++) {
        check_ok(data_batch(d, split, 0, k, &b, &why), &why);
        for (int64_t i = 0; i < b.count; i++) {
            if (b.pair[i] != number) continue;
            for (int64_t j = i * b.source_length; j < (i + 1) * b.source_length; j++)
                if (b.source_mask[j])
                    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s/%s",
                             *text ? " " : "", data_word(d, SIDE_SOURCE, b.source[j]),
                             b.tags->name[b.tag[j]]);
        }
    }
    assert_string_equal(text, want);
}

static void expect_note(const dataset *d, const char *part) {
    if (!strstr(data_describe(d), part)) fail_msg("no '%s' in: %s", part, data_describe(d));
}

static void conll_2003(void **state) {
    (void)state;
    data_options o = options_of(folder_of(train, valid));
    dataset *d = open_data(&o);
    expect_sentence(d, SPLIT_TRAIN, 0, "EU/S-ORG rejects/O German/S-MISC ./O");
    expect_sentence(d, SPLIT_TRAIN, 1, "Peter/B-PER Blackburn/E-PER EU/S-ORG");
    expect_sentence(d, SPLIT_TRAIN, 2, "U.S./S-LOC Iraq/S-LOC 0000-00/O");
    expect_sentence(d, SPLIT_TRAIN, 3, "");
    expect_sentence(d, SPLIT_VALID, 0, "<unk>/S-PER <unk>/O");
    const data_shape *s = data_get_shape(d);
    assert_int_equal(s->task, TASK_TAGS);
    assert_int_equal(s->classes, 17);
    assert_int_equal(data_tags(d)->count, 17);
    assert_int_equal(s->vocabulary, 4 + 9);
    assert_int_equal(s->longest, 0);
    assert_false(data_has_split(d, SPLIT_TEST));
    expect_note(d, "/train (iob1) ");
    expect_note(d, "; tags of 4 types as bioes, 6 training, 1 validation entities; digits as 0");
    const data_line word = data_tagged_word(d, SPLIT_TRAIN, 2, 2);
    assert_int_equal(word.length, 7);
    assert_memory_equal(word.byte, "1996-12", 7);
    data_close(d);
    o.batch_size = 1;
    check_pure(&o, SPLIT_TRAIN);
}

static void batches_have_what_taggers_take(void **state) {
    (void)state;
    sr_failure why = {0};
    data_options o = options_of(folder_of("ab B-X\nb O\n\nba I-X\n", "b O\nc7 B-X\n"));
    dataset *d = open_data(&o);
    batch b;
    check_ok(data_batch(d, SPLIT_TRAIN, 0, 0, &b, &why), &why);
    assert_int_equal(b.task, TASK_TAGS);
    assert_int_equal(b.count, 2);
    assert_int_equal(b.tokens, 2); /* sentences */
    assert_int_equal(b.word_length, 2);
    assert_ptr_equal(b.tags, data_tags(d));
    assert_ptr_equal(b.allowed, b.tags->allowed);
    for (int64_t i = 0; i < 2; i++) { /* characters: b 3 times is 2, a twice is 3 */
        const int32_t two[] = {3, 2, 2, 0}, one[] = {2, 3, 0, 0};
        assert_memory_equal(b.character + 4 * i, b.pair[i] == 0 ? two : one, sizeof two);
        assert_int_equal(b.tag[2 * i], 4); /* S-X */
        assert_int_equal(b.tag[2 * i + 1], 0);
        assert_int_equal(b.source_mask[2 * i + 1], b.pair[i] == 0);
    }
    check_ok(data_batch(d, SPLIT_VALID, 0, 0, &b, &why), &why);
    assert_int_equal(b.character[2], 1); /* c and 0 are not in training */
    assert_int_equal(b.character[3], 1);
    assert_int_equal(data_get_shape(d)->characters, 4);
    data_close(d);
}

static void other_forms(void **state) {
    (void)state;
    const char *dir = make_folder(); /* Resume: tabs, BMES, CRLF, gzip */
    write_text(dir, "train.gz",
               "\xe9\xab\x98\tB-NAME\r\n\xe9\xab\x98\tM-NAME\r\n\xe5\x8b\x87\tE-"
               "NAME\r\n\xe7\x94\xb7\tS-RACE"
               "\r\n\t\r\n\xe5\x8b\x87\tO\r\n");
    write_text(dir, "valid", "\xe9\xab\x98 O\n");
    data_options o = options_of(dir);
    strcpy(o.tag_scheme, "bmes");
    dataset *d = open_data(&o);
    expect_note(d, "/train.gz (6 lines end in CR LF) (bmes)");
    expect_sentence(
        d, SPLIT_TRAIN, 0,
        "\xe9\xab\x98/B-NAME \xe9\xab\x98/M-NAME \xe5\x8b\x87/E-NAME \xe7\x94\xb7/S-RACE");
    expect_sentence(d, SPLIT_TRAIN, 1, "\xe5\x8b\x87/O");
    data_close(d);
    o = options_of(folder_of("1 Abc B-P x\n2 D I-P x\n\n1 E O x\n", "1 D O x\n"));
    o.word_column = 2, o.tag_column = 3;
    strcpy(o.tag_scheme, "iob1");
    d = open_data(&o);
    expect_sentence(d, SPLIT_TRAIN, 0, "Abc/I-P D/I-P");
    assert_int_equal(data_tagged_word(d, SPLIT_TRAIN, 0, 0).byte[0], 'A');
    assert_int_equal(data_get_shape(d)->classes, 3);
    data_close(d);
}

/* The numbers of training's types do not depend on other types in the test. */
static void types_of_training_stand_first(void **state) {
    (void)state;
    const char *const names[] = {"O", "I-M", "I-P", "I-A", "I-Z"};
    data_options o = options_of(folder_of("a I-P\nb O\nc I-M\n", "a I-Z\nb O\nc I-A\n"));
    strcpy(o.tag_scheme, "iob1");
    dataset *d = open_data(&o);
    assert_int_equal(data_tags(d)->count, 1 + 2 * 2); /* classes */
    assert_int_equal(data_get_shape(d)->classes, 1 + 2 * 2);
    for (int i = 1; i < 5; i++) assert_string_equal(data_tags(d)->name[2 * i], names[i]);
    data_close(d);
}

/* A document starts even without a blank line before it. */
static void documents(void **state) {
    (void)state;
    data_options o = options_of(folder_of("a I-P\n-DOCSTART- O\nb I-P\nc I-P\n", "a O\n"));
    dataset *d = open_data(&o);
    expect_sentence(d, SPLIT_TRAIN, 0, "a/S-P");
    expect_sentence(d, SPLIT_TRAIN, 1, "b/B-P c/E-P");
    assert_int_equal(data_tagged_word(d, SPLIT_TRAIN, 1, 1).byte[0], 'c');
    data_close(d);
}

static sr_status shrink(void *self, int side, const char *line, size_t length, byte_buffer *out,
                        sr_failure *why) {
    (void)self, (void)side, (void)why;
    for (size_t i = 0; i < length; i++) {
        const char c = line[i] >= 'A' && line[i] <= 'Z' ? (char)(line[i] + 32) : line[i];
        if (!buffer_put(out, &c, 1)) return SR_MEMORY;
    }
    return SR_OK;
}

/* Words are lowered, characters keep their case; digits stay if the options say so. */
static void case_and_digits(void **state) {
    (void)state;
    const line_transform step = {.name = "shrink", .apply = shrink};
    sr_failure why = {0};
    batch b;
    data_options o = options_of(folder_of("Aa7 B-P\naA1 O\n", "AA O\n"));
    o.tokenizer = &step;
    dataset *d = open_data(&o);
    expect_sentence(d, SPLIT_TRAIN, 0, "aa0/S-P aa0/O");
    expect_note(d, "words through shrink");
    check_ok(data_batch(d, SPLIT_TRAIN, 0, 0, &b, &why), &why);
    assert_int_equal(b.source[0], b.source[1]);
    assert_int_equal(b.character[0], b.character[4]);
    assert_int_equal(b.character[1], b.character[3]);
    assert_int_not_equal(b.character[0], b.character[1]);
    assert_int_equal(b.character[2], b.character[5]);
    data_close(d);
    o.tokenizer = NULL, o.zero_digits = false;
    d = open_data(&o);
    expect_sentence(d, SPLIT_TRAIN, 0, "Aa7/S-P aA1/O");
    data_close(d);
}

/* Text with one byte per character, as in CoNLL-2002 Spanish. */
static void latin(void **state) {
    (void)state;
    data_options o = options_of(folder_of("La O\nCoru\361a B-LOC\n", "a O\n"));
    dataset *d = open_data(&o);
    expect_sentence(d, SPLIT_TRAIN, 0, "La/O Coru\303\261a/S-LOC");
    expect_note(d, "not UTF-8");
    const data_line word = data_tagged_word(d, SPLIT_TRAIN, 0, 1);
    assert_int_equal(word.length, 7);
    data_close(d);
    strcpy(o.encoding, "utf-8");
    refuse_data(&o, SR_FORMAT, "train:2: byte 4 of the line is 0xf1, not UTF-8");
}

static void schemes_of_files(void **state) {
    (void)state;
    const char *dir = folder_of("a B-P\nb I-P\n\nc O\n", "a B-P\nb E-P\nc S-L\nd I-L\n");
    write_text(dir, "test", "a I-P\nb I-P\n\nb I-L\n\nb B-P\n");
    data_options o = options_of(dir);
    dataset *d = open_data(&o); /* each file separately */
    expect_note(d, "/train (iob2) ");
    expect_note(d, "/valid (bioes, 2 tags against its grammar) ");
    const char *warning = "/valid:3: type L is not in the training file: its entities count as not "
                          "found, its words as O in the loss";
    assert_non_null(strstr(data_warnings(d), warning));
    expect_note(d, "/test (iob1, 1 tag against its grammar)");
    expect_sentence(d, SPLIT_VALID, 0, "a/B-P b/E-P c/S-L <unk>/S-L");
    data_close(d);
    strcpy(o.file_tag_scheme, "iob2");
    refuse_data(&o, SR_FORMAT, "valid:2: tag 'E-P' is not of iob2 (O B I), '-' and a type");
    strcpy(o.file_tag_scheme, "auto");
    strcpy(o.tag_scheme, "iob9");
    refuse_data(&o, SR_USAGE, "tag-scheme 'iob9' is not one of iob2|iob1|");
}

/* Lines with # between sentences, without a tag or with other columns than words. */
static void comments(void **state) {
    (void)state;
    data_options o =
        options_of(folder_of("#\n# id\n# a b-P\n# a Bx\n\n# a _-P\n# x y B-P\n# O\na B-P\n# O\n\n"
                             "# B-P\nb O\n",
                             "# B-P\n# B-P\n"));
    dataset *d = open_data(&o);
    expect_note(d, ", 6 comment lines left out");
    expect_sentence(d, SPLIT_TRAIN, 0, "#/O a/S-P #/O");
    expect_sentence(d, SPLIT_TRAIN, 1, "#/S-P b/O");
    expect_sentence(d, SPLIT_VALID, 0, "#/S-P #/S-P"); /* no other line gives their columns */
    data_close(d);
    o = options_of(folder_of("# id\n\na B-P\n", "a O\n"));
    d = open_data(&o);
    expect_note(d, ", 1 comment line left out");
    data_close(d);
}

static void columns_between_tabs(void **state) {
    (void)state;
    data_options o = options_of(folder_of("a b\t\tB-P\n\n\tx\tO\nc\t\tO\n", "a b\ty\tO\n"));
    strcpy(o.delimiter, "tab");
    dataset *d = open_data(&o);
    expect_sentence(d, SPLIT_TRAIN, 0, "a b/S-P");
    const data_line word = data_tagged_word(d, SPLIT_TRAIN, 0, 0);
    assert_int_equal(word.length, 3);
    assert_null(data_tagged_word(d, SPLIT_VALID, 0, 9).byte); /* past the end of the file */
    data_close(d);
    o = options_of(folder_of("B-P a\nO b\n", "O a\n"));
    o.word_column = 0, o.tag_column = 1; /* the last one */
    d = open_data(&o);
    expect_sentence(d, SPLIT_TRAIN, 0, "a/S-P b/O");
    data_close(d);
}

/* A word column that only numbers the words. */
static void numbering_columns(void **state) {
    (void)state;
    static const char *const numbered[] = {"0 B-P\n1 O\n\n0 O\n", "1 B-P\n2 O\n\n1 O\n",
                                           "0 B-P\n1 O\n\n2 O\n", "1 B-P\n2 O\n\n3 O\n"};
    for (int i = 0; i < 4; i++) {
        data_options o = options_of(folder_of(numbered[i], "x O\n"));
        refuse_data(&o, SR_FORMAT, "train: column 1 only numbers the 3 words");
    }
    data_options o = options_of(folder_of("0 B-P\n\n0 O\n", "1 O\n3 O\n"));
    data_close(open_data(&o)); /* words that are numbers */
}

/* The attention of a sentence needs the square of its length. */
static void long_sentences(void **state) {
    (void)state;
    enum { WORDS = 4097 };
    char *text = malloc(WORDS * 6 + 3);
    assert_non_null(text);
    for (int i = 0; i < WORDS; i++) memcpy(text + 6 * i, "a B-P\n", 6);
    text[6 * WORDS] = 0;
    data_options o = options_of(folder_of(text, "a O\n"));
    refuse_data(&o, SR_FORMAT,
                "train:1: a sentence of 4097 words, at most 4096; the file has no blank line");
    memmove(text + 1, text, 6 * WORDS + 1), text[0] = '\n';
    o = options_of(folder_of(text, "a O\n"));
    refuse_data(&o, SR_FORMAT, "train:2: a sentence of 4097 words, at most 4096");
    text[6 * (WORDS - 1) + 1] = 0; /* one word less */
    o = options_of(folder_of(text, "a O\n"));
    data_close(open_data(&o));
    free(text);
}

static void refuse(const char *training, const char *validation, const char *part) {
    data_options o = options_of(folder_of(training, validation));
    refuse_data(&o, SR_FORMAT, part);
}

/* 251 words, each of a different type. */
static const char *many_types(void) {
    static char text[251 * 16];
    for (int i = 0, used = 0; i < 251; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "a B-%d\n", i);
    return text;
}

static void refusals(void **state) {
    (void)state;
    refuse("a B-P\nb B-\n", valid, "train:2: tag 'B-' is of no scheme: ");
    refuse(many_types(), valid, "train:251: tag 'B-250' is of a further type than 250");
    refuse("a B-P\nb Q-P\n", valid, "train:2: tag 'Q-P' is of no scheme: ");
    refuse("a B-P\n\n# B_P\n", valid, "train:3: tag 'B_P' is of no scheme: "); /* no comment */
    refuse("a B-P\nb M-P\nc I-P\n", valid, "train:3: tag 'I-P' contradicts earlier tags: ");
    refuse("a B-P\n\nb\n", valid, "train:3: 1 column, line 1 has 2");
    refuse("a\n", valid, "train:1: 1 column, word and tag are columns 1 and 2");
    refuse("a B-P\n", "a B-P\nb x O\n", "valid:2: 3 columns, line 1 has 2");
    refuse("a O\n", "b O\n", "train: every tag is O");
    refuse("a B-P\n", "\n-DOCSTART- O\n", "valid: no sentence in 2 lines");
    refuse("\n\n", valid, "train: no sentence in 2 lines");
    data_options o = options_of(folder_of("a B-P\n", "a O\n"));
    o.word_column = o.tag_column = 2;
    refuse_data(&o, SR_USAGE, "word-column and tag-column are both 2");
    o.tag_column = 3;
    refuse_data(&o, SR_FORMAT, "train:1: 2 columns, word and tag are columns 2 and 3");
    o = options_of(folder_of("a B-P\n", "a O\n"));
    o.validpref[0] = 0; /* none */
    dataset *d = open_data(&o);
    assert_false(data_has_split(d, SPLIT_VALID));
    data_close(d);
    o.trainpref[0] = 0;
    refuse_data(&o, SR_USAGE, "trainpref is empty");
    o = options_of(make_folder());
    refuse_data(&o, SR_IO, "train: No such file or directory");
}

/* The published counts. */
static void shared_set(void **state) {
    (void)state;
    const char *dir = check_shared("data/conll2003");
    if (!dir) skip();
    data_options o = options_of(dir);
    strcpy(o.trainpref, "eng.train"), strcpy(o.validpref, "eng.testa"),
        strcpy(o.testpref, "eng.testb");
    dataset *d = open_data(&o);
    expect_note(d, "tags of 4 types as bioes, 23499 training, 5942 validation, 5648 test entities");
    expect_note(d, "training 14041 sentences, 203621 words");
    expect_note(d, "validation 3250 sentences, 51362 words");
    expect_note(d, "test 3453 sentences, 46435 words");
    data_close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conll_2003),
        cmocka_unit_test(batches_have_what_taggers_take),
        cmocka_unit_test(other_forms),
        cmocka_unit_test(documents),
        cmocka_unit_test(types_of_training_stand_first),
        cmocka_unit_test(case_and_digits),
        cmocka_unit_test(latin),
        cmocka_unit_test(schemes_of_files),
        cmocka_unit_test(comments),
        cmocka_unit_test(columns_between_tabs),
        cmocka_unit_test(numbering_columns),
        cmocka_unit_test(long_sentences),
        cmocka_unit_test(refusals),
        cmocka_unit_test(shared_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
