/* Warnings about odd data, and no warning about ordinary data. */
#include <string.h>

#include "data_files.h"

static const char *const good = "1 a b\n1 c d\n2 e f\n2 g h\n";

/* Expects the warnings `want`, without the folder of the files. */
static void expect_of(const data_options *o, const char *want) {
    dataset *d = open_data(o);
    const char *got = data_warnings(d);
    const size_t folder = strlen(o->dir);
    if (!strncmp(got, o->dir, folder)) got += folder + 1;
    assert_string_equal(got, want);
    data_close(d);
}

static void expect(const char *format, const char *train, const char *valid, const char *want) {
    const char *dir = make_folder();
    write_text(dir, "train", train);
    write_text(dir, "valid", valid);
    data_options o = default_options(format, dir);
    o.batch_size = o.eval_batch_size = o.window = 1;
    expect_of(&o, want);
}

static void expect_pairs(const char *const text[4], int64_t vocab_size, const char *want) {
    static const char *const name[] = {"train.de", "train.en", "valid.de", "valid.en"};
    const char *dir = make_folder();
    for (int i = 0; i < 4; i++) write_text(dir, name[i], text[i]);
    data_options o = default_options("parallel", dir);
    o.max_tokens = 8;
    o.vocab_size = vocab_size;
    expect_of(&o, want);
}

static void classes_and_sentences(void **state) {
    (void)state;
    expect("labelled", good, "1 i j\n2 k l\n", "");
    expect("labelled", good, "1 i j\n", "the validation text is one sentence");
    expect("labelled", good, "2 i j\n2 k\n", "all 2 validation sentences have one class");
    expect("labelled", good, "1 i\n2 k\n",
           "every validation sentence is one word; are words separated?");
    expect("labelled", "1 a b\n1 c d\n2 e f\n", "1 i j\n2 k l\n",
           "1 of 2 labels occurs once in the training text: '2'");
    expect("labelled", "1 a b\n2 e f\n3 x y\n4 z z\n", "1 i j\n2 k l\n",
           "4 of 4 labels occur once in the training text: '1', '2', '3' ...");
    expect("labelled", good, "1 a  b\n2 k l\n2 a\n",
           "1 of 3 validation sentences (33.3 %) are in the training text, too");
    expect("conll", "a B-X\nb O\n\nc B-X\nd O\n", "b O\nb O\n\na B-X\nb O\n",
           "1 of 2 validation sentences (50.0 %) are in the training text, too");
}

/* A class with one text may be mistaken for a header, a number among names may not. */
static void headers(void **state) {
    (void)state;
    static const char *const valid = "sad k l\nmad m n\n";
    expect("labelled", "joy a b\nsad c d\nsad e f\nmad g h\nmad i j\n", valid,
           "train:1: left out as a header, since no other line has the label 'joy'");
    expect("labelled", "4 a b\n1 c d\n1 e f\n2 g h\n2 i j\n", "1 k l\n2 m n\n",
           "train:1: left out as a header, since no other line has the label '4'");
    expect("labelled", "label text\n1 c d\n1 e f\n2 g h\n", "1 i j\n2 k l\n",
           "1 of 2 labels occurs once in the training text: '2'");
}

static void labels_without_training_text(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "train", "1 a b\n1 c d\n2 e f\n2 g h\n3 x y\n3 z z\n");
    write_text(dir, "valid", "1 i j\n2 k l\n");
    data_options o = default_options("labelled", dir);
    o.limit = 2;
    expect_of(&o, "2 of 3 labels occur nowhere in the training text: '2', '3'\n"
                  "all 2 training sentences have one class");
}

static void unknown_words(void **state) {
    (void)state;
    char known[1024] = "", half[1024] = "", other[1024] = "";
    for (int i = 0; i < 25; i++) {
        sprintf(known + strlen(known), "a b c d%d\n", i);
        sprintf(half + strlen(half), "x y%d b d%d\n", i, i);
        sprintf(other + strlen(other), "x y z w%d\n", i);
    }
    expect_pairs((const char *const[]){known, known, half, known}, 0,
                 "50.0 % of the validation source words are not in the dictionary, so <unk>");
    expect_pairs((const char *const[]){known, known, known, other}, 0,
                 "100.0 % of the validation target words are not in the dictionary, so <unk>");
    *strrchr(half, 'x') = 0; /* 96 words are few */
    *strrchr(known, 'a') = 0;
    expect_pairs((const char *const[]){known, known, half, half}, 0, "");
    const char *dir = make_folder();
    char train[1024] = "", valid[1024] = "";
    for (int i = 0; i < 50; i++) {
        sprintf(train + strlen(train), "%d a b%d\n", i % 2, i);
        sprintf(valid + strlen(valid), "%d x b%d\n", i % 2, i);
    }
    write_text(dir, "train", train), write_text(dir, "valid", valid);
    data_options o = default_options("labelled", dir);
    expect_of(&o, "50.0 % of the validation words are not in the dictionary, so <unk>");
}

/* Letters and the split in another encoding; a text that is UTF-8 except for one byte. */
static void encodings(void **state) {
    (void)state;
    const char *const utf8 = "1 caf\xc3\xa9 b\n1 c d\n2 e f\n2 g h\n";
    const char *const windows = "1 caf\xe9 j\n2 k l\n";
    const char *dir = make_folder();
    char want[1024];
    write_text(dir, "train", utf8), write_text(dir, "valid", windows);
    data_options o = default_options("labelled", dir);
    snprintf(want, sizeof want, "valid is read as Windows-1252, but %s/train as UTF-8", dir);
    expect_of(&o, want);
    expect("labelled", good, windows, "");
    expect("labelled", "1 \xe9 b\n1 c d\n2 e f\n2 g h\n", windows, "");
    expect("labelled", good, "1 caf\xc3\xa9 j\n2 k l\n2 \xff\xc3\xa9 l\n",
           "valid:3: byte 2 of the line is 0xff, not UTF-8, so the file is read as Windows-1252, "
           "and its 2 letters in UTF-8 are misread; correct the line");
    strcpy(o.encoding, "latin-1");
    expect_of(&o, "");
}

static void types_of_entities(void **state) {
    (void)state;
    expect("conll", "a B-X\nb B-Y\n\nc B-X\nd O\n", "x O\ny O\n\nz B-X\nw O\n",
           "1 of 2 types of entities occurs once in the training text: 'Y'");
}

static void pairs(void **state) {
    (void)state;
    const char *const train_de = "a b\nc d\ne f\n", *const train_en = "A B\nC D\nE F\n";
    expect_pairs((const char *const[]){train_de, train_en, "g h\ni j\n", "G H\nI J\n"}, 0, "");
    expect_pairs((const char *const[]){train_de, train_en, "g h\n", "G H\n"}, 0,
                 "the validation text is one pair");
    expect_pairs((const char *const[]){train_de, train_en, "g\ni\n", "G H\nI J\n"}, 0,
                 "every validation source of a pair is one word; are words separated?");
    expect_pairs((const char *const[]){train_de, train_en, "g h\ni j\n", "G\nI\n"}, 0,
                 "every validation target of a pair is one word; are words separated?");
    /* the pair, not one of its sides, the sides of two pairs, or the words in another order */
    expect_pairs((const char *const[]){train_de, train_en, "a  b \nc d\nf e\n", "A B\nE F\nE F\n"},
                 0, "1 of 3 validation pairs (33.3 %) are in the training text, too");
    expect_pairs((const char *const[]){"a b\n", "c d\n", "c d\ne e\n", "a b\nf f\n"}, 0,
                 "the training text is one pair");
    /* unknown words stay distinct: 8 entries of the dictionary are the special tokens and 4
     * words */
    static const char rare[] = "a b\na c\na e\na b\na c\na e\na f\n";
    expect_pairs((const char *const[]){rare, rare, "a g\na f\n", "a g\na f\n"}, 8,
                 "1 of 2 validation pairs (50.0 %) are in the training text, too");
}

static void long_pairs(void **state) {
    (void)state;
    const char *const en = "A B\nC D\nE F\nG H\n", *const valid = "x y\nz w\n";
    expect_pairs((const char *const[]){"a b\nc c c c c c c c\nd d\n\n", en, valid, valid}, 0,
                 "train.de:2: a sentence of 9 tokens, at most 8; 1 training pair is left out; cut "
                 "it, or raise --max-tokens");
    expect_pairs(
        (const char *const[]){en, "a b\nc\nd d d d d d d d d\ne e e e e e e e\n", valid, valid}, 0,
        "train.en:3: a sentence of 10 tokens, at most 8; 2 training pairs are left out; "
        "cut it, or raise --max-tokens");
    char long_valid[4096] = "x y\nz w\n";
    for (int i = 0; i < 1024; i++) strcat(long_valid, "v ");
    expect_pairs((const char *const[]){en, en, long_valid, "x y\nz w\nv v\n"}, 0,
                 "valid.de:3: a sentence of 1025 tokens, at most 1024; 1 validation pair is left "
                 "out; cut it");
}

/* Line numbers refer to the file, even if markup or other splits lie between the lines. */
static void lines_of_long_pairs(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "train.de", "<url>x</url>\na b\n<title>y</title>\nc c c c c c c c\nd d\n");
    write_text(dir, "train.en", "<url>x</url>\nA B\n<title>y</title>\nC C\nD D\n");
    write_text(dir, "valid.de", "x y\nz w\n");
    write_text(dir, "valid.en", "x y\nz w\n");
    data_options o = default_options("parallel", dir);
    o.max_tokens = 8;
    expect_of(&o, "train.de:4: a sentence of 9 tokens, at most 8; 1 training pair is left out; cut "
                  "it, or raise --max-tokens");
    char tabbed[4096] = "";
    for (int i = 0; i < 60; i++) sprintf(tabbed + strlen(tabbed), "en %d\tde %d\n", i, i);
    strcat(tabbed, "f f f f f f f f\td d\n");
    write_text(dir, "deu.txt", tabbed);
    o = default_options("tabbed", dir);
    strcpy(o.file, "deu.txt"), strcpy(o.columns, "en,de");
    o.max_tokens = 8;
    o.valid_share = 0.1, o.test_share = 0.1;
    expect_of(&o, "deu.txt:61: a sentence of 9 tokens, at most 8; 1 training pair is left out; cut "
                  "it, or raise --max-tokens");
}

/* A training sentence that is longer than a batch may be is reported with its file and line. */
static void long_sentences(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "train", "1 a b\n\n2 c c c c c c c c c\n1 d\n2 e e e e e e e e\n");
    write_text(dir, "valid", "1 f f f f f f f f f f f\n2 g\n");
    data_options o = default_options("labelled", dir);
    o.max_tokens = 8;
    strcpy(o.batch_by, "tokens");
    refuse_data(&o, SR_USAGE, "/train:3: a sentence of 9 tokens, at most 8 (--max-tokens)");
    o.mark_end = true;
    refuse_data(&o, SR_USAGE, "/train:3: a sentence of 10 tokens, at most 8 (--max-tokens)");
    o.mark_end = false, o.max_tokens = 9;
    data_close(open_data(&o)); /* validation may have longer ones */
    write_text(dir, "rt.neg", "a\nb\n"), write_text(dir, "rt.pos", "c\nd d d d d d d d d d\ne\n");
    o = default_options("polarity", dir);
    strcpy(o.batch_by, "tokens"), strcpy(o.trainpref, "rt");
    o.max_tokens = 8, o.valid_count = o.test_count = 0;
    refuse_data(&o, SR_USAGE, "/rt.pos:2: a sentence of 10 tokens, at most 8 (--max-tokens)");
    write_text(dir, "rt.neg", "d d d d d d d d d d\nb\n"), write_text(dir, "rt.pos", "c\ne\n");
    refuse_data(&o, SR_USAGE, "/rt.neg:1: a sentence of 10 tokens, at most 8 (--max-tokens)");
    write_text(dir, "train", "a B-X\n\na O\nb O\nc B-X\n\nd O\n\n");
    write_text(dir, "valid", "a B-X\n");
    o = default_options("conll", dir);
    strcpy(o.batch_by, "tokens"), o.max_tokens = 2;
    refuse_data(&o, SR_USAGE, "/train:3: a sentence of 3 tokens, at most 2 (--max-tokens)");
}

static void running_text(void **state) {
    (void)state;
    expect("text", "a b\nc d\n<unk> e\n", "b a\nd c\n", "");
    expect("text", "a b\nc d\n<unk> e\n", "b a d c\n", "the validation text is one line");
    expect("text", "a b\nc d\n<unk> e\n", "a\n\nb\n",
           "every validation line is one word; are words separated?");
    /* 2 of 42 words are below 5 %, 3 of 43 above */
    char valid[512] = "c d\n\n";
    for (int i = 0; i < 20; i++) strcat(valid, "a a\n");
    expect("text", "a b\nc d\n<unk> e\n", valid, "");
    expect("text", "a b\nc d e\n<unk> e\n", strcat(valid, "c d e\n"),
           "1 of 22 validation lines (6.7 % of the words) are in the training text, too");
    /* unknown words stay distinct */
    expect("text", "a b\nc d\n<unk> e\n", "x e\n<unk> e\n",
           "1 of 2 validation lines (50.0 % of the words) are in the training text, too");
}

#define WORD(id, form, head, label) id "\t" form "\t_\tN\tN\t_\t" head "\t" label "\t_\t_\n"
#define TWO(a, b, label)            WORD("1", a, "0", "root") WORD("2", b, "1", label) "\n"

static void trees(void **state) {
    (void)state;
    const char *const train = TWO("a", "b", "x") TWO("c", "d", "x");
    expect("trees", train, TWO("e", "f", "x") TWO("g", "h", "x"), "");
    expect("trees", train, TWO("e", "f", "x"), "the validation text is one sentence");
    expect("trees", train, WORD("1", "e", "0", "root") "\n" WORD("1", "f", "0", "root") "\n",
           "every validation sentence is one word; are words separated?");
    expect("trees", train, TWO("a", "b", "x") TWO("d", "c", "x") TWO("a", "d", "x"),
           "1 of 3 validation sentences (33.3 %) are in the training text, too");
    expect("trees", TWO("a", "b", "x") TWO("a", "b", "y") TWO("c", "d", "y"),
           TWO("e", "f", "x") TWO("g", "h", "x"),
           "1 of 3 labels of arcs occurs once in the training text: 'x'");
    const char *dir = make_folder(); /* parts of one file */
    write_text(dir, "all",
               TWO("a", "b", "x") TWO("c", "d", "x") TWO("e", "f", "x") TWO("c", "d", "x")
                   TWO("g", "h", "x") TWO("i", "j", "x"));
    data_options o = default_options("trees-cut", dir);
    strcpy(o.file, "all");
    o.valid_count = o.test_count = 2;
    expect_of(&o, "1 of 2 validation sentences (50.0 %) are in the training text, too");
}

static void images(void **state) {
    (void)state;
    unsigned char pixel[16 + 12 * 1] = {0, 0, 8, 3, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 1};
    unsigned char label[8 + 12] = {0, 0, 8, 1, 0, 0, 0, 12, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
    const char *dir = make_folder();
    data_options o = default_options("idx", dir);
    strcpy(o.idx_train_images, "i"), strcpy(o.idx_train_labels, "l");
    o.valid_images = 2;
    write_bytes(dir, "i", pixel, sizeof pixel);
    write_bytes(dir, "l", label, sizeof label);
    expect_of(&o, "");
    label[18] = 1; /* the last but one image */
    write_bytes(dir, "l", label, sizeof label);
    expect_of(&o, "all 2 validation images have one class");
}

static void numbers_as_a_language(void **state) {
    (void)state;
    char text[4096] = "";
    const char *dir = make_folder();
    for (int i = 0; i < 60; i++)
        sprintf(text + strlen(text), "%d\tein Haus %d\t%d\ta house %d\n", i, i, i, i);
    write_text(dir, "deu.txt", text);
    data_options o = default_options("tabbed", dir);
    strcpy(o.file, "deu.txt"), strcpy(o.columns, "en,de");
    o.valid_share = 0.1, o.test_share = 0.1;
    expect_of(&o, "column 1 (en) has numbers alone, which are no language (Tatoeba's export of "
                  "four columns: --columns id,A,id2,B)\n"
                  "every training target of a pair is one word; are words separated?\n"
                  "every validation target of a pair is one word; are words separated?\n"
                  "every test target of a pair is one word; are words separated?");
    strcpy(o.columns, "id,de,id2,en");
    expect_of(&o, "");
}

/* From 5 %. */
static void few_common_sentences(void **state) {
    (void)state;
    char valid[512] = "1 a b\n";
    for (int i = 0; i < 20; i++) sprintf(valid + strlen(valid), "%d x y%d\n", 1 + i % 2, i);
    expect("labelled", good, valid, "");
    *strstr(valid, "2 x y19") = 0; /* 20 lines are left */
    expect("labelled", good, valid,
           "1 of 20 validation sentences (5.0 %) are in the training text, too");
}

static void carriage_returns(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "train", "a b\r\nc d\r\n");
    write_text(dir, "valid", "a b\rc d\ra a\n");
    data_options o = default_options("text", dir);
    o.batch_size = o.eval_batch_size = o.window = 1;
    dataset *d = open_data(&o);
    assert_non_null(strstr(data_describe(d), "/train (2 lines end in CR LF) "));
    assert_non_null(strstr(data_warnings(d), "/valid: 2 carriage returns without a newline end no "
                                             "line; `tr"));
    assert_null(strstr(data_warnings(d), "/train"));
    data_close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_and_sentences),
        cmocka_unit_test(headers),
        cmocka_unit_test(labels_without_training_text),
        cmocka_unit_test(unknown_words),
        cmocka_unit_test(encodings),
        cmocka_unit_test(types_of_entities),
        cmocka_unit_test(pairs),
        cmocka_unit_test(long_pairs),
        cmocka_unit_test(lines_of_long_pairs),
        cmocka_unit_test(long_sentences),
        cmocka_unit_test(running_text),
        cmocka_unit_test(trees),
        cmocka_unit_test(images),
        cmocka_unit_test(numbers_as_a_language),
        cmocka_unit_test(few_common_sentences),
        cmocka_unit_test(carriage_returns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
