/* Roles derived from names, kinds derived from text, and the data sets recognized in a folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "data/find/data_find.h"
#include "data_files.h"

static void roles(void **state) {
    (void)state;
    static const struct {
        const char *name, *rest;
        file_role role;
    } want[] = {
        {"train", "*", ROLE_TRAIN},
        {"eng.train", "eng.*", ROLE_TRAIN},
        {"eng.testa", "eng.*", ROLE_VALID},
        {"eng.testb", "eng.*", ROLE_TEST},
        {"en_ewt-ud-dev.conllu", "en_ewt-ud-*.conllu", ROLE_VALID},
        {"IWSLT14.TED.dev2010.de-en", "IWSLT14.TED.*.de-en", ROLE_VALID},
        {"test_2016_flickr.lc", "*_2016_flickr.lc", ROLE_TEST},
        {"training.txt", "*.txt", ROLE_TRAIN},
        {"t10k-images-idx3-ubyte", "*-images-idx3-ubyte", ROLE_TEST},
        {"trainer.txt", "trainer.txt", ROLE_NONE},
        {"latest.txt", "latest.txt", ROLE_NONE},
        {"value", "value", ROLE_NONE},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        char rest[FOLDER_NAME];
        assert_int_equal(folder_role(want[i].name, rest), want[i].role);
        assert_string_equal(rest, want[i].rest);
    }
}

static text_looks look(const char *text, bool csv) {
    char copy[4096];
    snprintf(copy, sizeof copy, "%s", text);
    const file_bytes f = {.byte = (uint8_t *)copy, .size = strlen(copy)};
    return text_look(&f, csv);
}

#define TREE_LINE "1\ta\t_\tN\tN\t_\t0\troot\t_\t_\n"

static void looks(void **state) {
    (void)state;
    static const struct {
        const char *text;
        text_kind kind;
    } want[] = {
        {"", LOOKS_NOTHING},
        {"\n\n", LOOKS_NOTHING},
        {"a\1b\n", LOOKS_NOTHING},
        {"<?xml version=\"1.0\"?>\n<svg>\n", LOOKS_NOTHING},
        {"<!DOCTYPE html>\none word\n", LOOKS_NOTHING},
        {"<url>a b\nthe text\n", LOOKS_TEXT},
        {"#version: 0.2\na b\n", LOOKS_MERGES},
        {"(3 (2 a) (3 b))\n", LOOKS_LABELLED},
        {TREE_LINE "\n", LOOKS_TREES},
        {"# id\n" TREE_LINE "\n", LOOKS_TREES},
        {"a\tN\t0\nb\tN\t1\n\n", LOOKS_TREES},
        {"a\tN\t0\nb\tN\t1\n", LOOKS_TABBED}, /* no sentence ends */
        {"Anna NNP B-PER\nlives VB O\n\n", LOOKS_TAGGED},
        {"-DOCSTART- -X- O O\n\nAnna N B B-PER\n\n", LOOKS_TAGGED},
        {"# id 1\nAnna B-PER\nis O\n", LOOKS_TAGGED},
        {"Anna O\nis O\n", LOOKS_TEXT}, /* no entity */
        {"Anna N B-PER\nis O\n", LOOKS_TEXT},
        {"2 3\nanna 1 -2.5 3e4\nis 1 2 3\n", LOOKS_VECTORS},
        {"\"1\",\"title\",\"text\"\n", LOOKS_CSV},
        {"1 a b\n0 c\n", LOOKS_LABELLED},
        {"\xef\xbb\xbf"
         "1 a b\n0 c\n",
         LOOKS_LABELLED},
        {"class text\n1 a b\n0 c\n", LOOKS_LABELLED},
        {"__label__a one\n__label__b two\n", LOOKS_LABELLED},
        {"neg\ta film\npos\ta film\nneg\tb\npos\tc\n", LOOKS_LABELLED},
        {"neg a film\npos a film\nneg b\npos c\n",
         LOOKS_TEXT}, /* 2 of 4 lines: a blank is not a TAB */
        {" neg\ta film\nneg\ta\n", LOOKS_TABBED},
        {"Hi.\tHallo!\nRun!\tLauf!\nI see.\tIch verstehe.\n", LOOKS_TABBED},
        {"Hi.\tHallo!\nRun!\n", LOOKS_TEXT},
        {"the cat\nthe dog\nthe end\n", LOOKS_TEXT}, /* a single first word is not a label */
        {"w +1 -2 3\nv 1 2 3\n", LOOKS_VECTORS},
        {"\ta\t_\tN\tN\t_\t0\troot\t_\t_\n\n", LOOKS_TABBED}, /* a tree's word has a number */
        {"x\ta\t_\tN\tN\t_\t0\troot\t_\t_\n\n", LOOKS_TABBED},
        {"1 a\n2 b\n3 c\n4 d\n5 e\n6 f\n7 g\n8 h\n9 i\n10 j\n11 k\n", LOOKS_TEXT},
        {"1 a\n2 b\n3 c\n4 d\n5 e\n6 f\n7 g\n8 h\n9 i\n10 j\n", LOOKS_LABELLED},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        if (look(want[i].text, false).kind != want[i].kind)
            fail_msg("text %zu looks %d, not %d", i, look(want[i].text, false).kind, want[i].kind);
    assert_int_equal(look("1,a title,b\n", true).kind, LOOKS_CSV);
    assert_true(look("1 Anna B-PER\n2 is O\n\n1 B B-PER\n", false).numbered);
    assert_true(look("0 Anna B-PER\n1 is O\n\n0 B B-PER\n", false).numbered);
    assert_false(look("1 Anna B-PER\n1 is O\n\n1 B B-PER\n", false).numbered);
    assert_false(look("1 Anna B-PER\n", false).numbered);
    assert_true(look("New York\tB-LOC\nis\tO\n", false).tabs);
    assert_false(look("York\tB-LOC\nis\tO\n", false).tabs);
    assert_true(look("1\ta b\t2\tc d\n3\ta e\t4\tc f\n", false).export4);
    assert_false(look("1\ta b\t2\tc d\na\ta e\t4\tc f\n", false).export4);
    assert_true(look("__label__a __label__b x\n__label__a y\n", false).several);
    assert_false(look("__label__a x\n__label__a y\n", false).several);
}

static text_kind kind_of(const char *text, size_t size) {
    file_bytes f = {.byte = malloc(size + 1), .size = size};
    assert_non_null(f.byte);
    memcpy(f.byte, text, size);
    f.byte[size] = 0;
    const text_kind kind = text_look(&f, false).kind;
    free(f.byte);
    return kind;
}

/* Texts longer than a reader's internal buffers. */
static void looks_of_long_texts(void **state) {
    (void)state;
    enum { ROOM = 1 << 17, FAR = 65600 };
    char *text = calloc(1, ROOM), *at = text;
    assert_non_null(text);
    for (int line = 0; line < 2; line++) {
        *at++ = 'w';
        for (int i = 0; i < 100; i++) *at++ = ' ', *at++ = '1';
        *at++ = '\n';
    }
    assert_int_equal(kind_of(text, (size_t)(at - text)), LOOKS_VECTORS); /* 100 numbers */
    at[-2] = 'x'; /* the last columns are not inspected */
    assert_int_equal(kind_of(text, (size_t)(at - text)), LOOKS_VECTORS);
    text[2 * 63] = 'x';
    assert_int_equal(kind_of(text, (size_t)(at - text)), LOOKS_TEXT);
    memset(text, 'w', FAR); /* a zero byte after the inspected columns is not a digit */
    memcpy(text + FAR, " 1 2\0 3\nv 1 2 3\n", 16);
    assert_int_equal(kind_of(text, FAR + 16), LOOKS_TEXT);
    text[FAR + 4] = '0';
    assert_int_equal(kind_of(text, FAR + 16), LOOKS_VECTORS);
    for (at = text; at < text + 2000 * 6; at += 6) memcpy(at, "a b\tc\n", 6);
    memcpy(at, "lines after 2000\n", 17);
    assert_int_equal(kind_of(text, 2000 * 6 + 17), LOOKS_TABBED);
    assert_int_equal(kind_of(text + 6, 1999 * 6 + 17), LOOKS_LABELLED); /* another label */
    for (int i = 0; i < 20; i++) memcpy(text + 6 * i, i % 2 ? "neg a\n" : "pos b\n", 6);
    assert_int_equal(kind_of(text, 20 * 6), LOOKS_LABELLED); /* ten lines of each label */
    assert_int_equal(kind_of(text, 19 * 6), LOOKS_TEXT);
    for (int i = 0; i < 250; i++) /* first words that also occur in other lines */
        sprintf(text + 8 * i, "w%02d w%02d\n", i % 25, i % 13);
    assert_int_equal(kind_of(text, 250 * 8), LOOKS_TEXT);
    for (int i = 0; i < 250; i++) sprintf(text + 8 * i, "w%02d w%02d\n", i % 25, i % 12);
    assert_int_equal(kind_of(text, 250 * 8), LOOKS_LABELLED); /* 12 of 25 are */
    for (int i = 0; i < 250; i++) sprintf(text + 8 * i, "w%02d w%02d\n", i % 20, i % 20);
    assert_int_equal(kind_of(text, 250 * 8), LOOKS_LABELLED); /* few labels may be words */
    memset(text, 'n', 64), memcpy(text + 64, "\ta\n", 3);
    memcpy(text + 67, text, 67);
    assert_int_equal(kind_of(text, 2 * 67), LOOKS_TABBED); /* too long for a label */
    free(text);
}

/* Each finding as "data key=value ...;". */
static void expect(const char *path, const char *want) {
    static data_found found;
    sr_failure why = {0};
    char got[4096] = "";
    assert_int_equal(data_find(path, &found, &why), SR_OK);
    for (int i = 0; i < found.findings; i++) {
        const data_finding *f = &found.finding[i];
        sprintf(got + strlen(got), "%s", f->data);
        for (int k = 0; k < f->options; k++)
            sprintf(got + strlen(got), " %s=%s", f->option[k].key, f->option[k].value);
        strcat(got, ";");
    }
    assert_string_equal(got, want);
    data_found_free(&found);
}

/* Files of the same name come first, then files of the same kind. */
static void splits(void **state) {
    (void)state;
    const char *dir = make_folder(), *text = "1 a b\n0 c\n";
    write_text(dir, "a.train", text), write_text(dir, "b.train", text);
    write_text(dir, "a.dev", "1 a b\n"), write_text(dir, "b.dev", "one two\n");
    expect(dir, "labelled trainpref=a.train validpref=a.dev testpref=;"
                "labelled trainpref=b.train validpref=b.dev testpref=;");
    dir = make_folder(); /* plain and packed count as one file */
    write_text(dir, "train.txt", text), write_text(dir, "train.txt.gz", text);
    expect(dir, "labelled trainpref=train.txt validpref= testpref=;");
    dir = make_folder();
    write_text(dir, "train.txt", text), write_text(dir, "notes.dev", "one two\n");
    write_text(dir, "other.dev", text), write_text(dir, "x.test.gz", text);
    expect(dir, "labelled trainpref=train.txt validpref=other.dev testpref=x.test;");
}

static void languages(void **state) {
    (void)state;
    static const char *const names[] = {"train.cs", "train.de", "train.en", "val.cs", "val.en"};
    const char *dir = make_folder();
    for (size_t i = 0; i < 5; i++) write_text(dir, names[i], "a b\n");
    expect(dir, "parallel trainpref=train validpref= testpref= source=de target=en;");
    write_text(dir, "val.de", "a b\n");
    expect(dir, "parallel trainpref=train validpref=val testpref= source=de target=en;");
    dir = make_folder();
    static const char *const two[] = {"a.dev.de", "a.train.de", "b.dev.de", "b.train.de"};
    for (int i = 0; i < 4; i++) {
        char name[16];
        write_text(dir, two[i], "a b\n");
        snprintf(name, sizeof name, "%.*sen", (int)strlen(two[i]) - 2, two[i]);
        write_text(dir, name, "a b\n");
    }
    expect(dir, "parallel trainpref=a.train validpref=a.dev testpref= source=de target=en;"
                "parallel trainpref=b.train validpref=b.dev testpref= source=de target=en;");
    dir = make_folder();
    write_text(dir, "news.fr", "a b\n"), write_text(dir, "news.cs", "a b\n");
    write_text(dir, "news.txt", "a b\n");
    expect(dir, "parallel trainpref=news validpref= testpref= source=cs target=fr;");
}

/* A folder with figures and settings has no text for a language model. */
static void no_corpus(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "a.svg", "<?xml version=\"1.0\"?>\n<svg>\n<text>one</text>\n");
    write_text(dir, "figure", "<svg>\n<text>one</text>\n");
    write_text(dir, "run.conf", "norm = bn\nseed = 1\n");
    write_text(dir, "README.md", "one two\nthree\n");
    expect(dir, "");
    write_text(dir, "book.txt", "one two\nthree\n");
    expect(dir, "text trainpref=book.txt validpref= testpref=;");
}

/* German without English: the first two. */
static void german_alone(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "x.fr", "a b\n"), write_text(dir, "x.de", "a b\n");
    write_text(dir, "x.cs", "a b\n");
    expect(dir, "parallel trainpref=x validpref= testpref= source=cs target=de;");
}

/* Names that the formats of images have. */
static void images(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "data_batch_1.bin", "x"), write_text(dir, "test_batch.bin", "x");
    write_text(dir, "train.bin", "x"), write_text(dir, "test.bin", "x");
    expect(dir, "cifar10;cifar100;");
    dir = make_folder();
    write_text(dir, "train-images-idx3-ubyte", "x"),
        write_text(dir, "train-labels-idx1-ubyte", "x");
    write_text(dir, "t10k-images-idx3-ubyte", "x"), write_text(dir, "t10k-labels-idx1-ubyte", "x");
    expect(dir, "idx;");
    dir = make_folder();
    write_text(dir, "train-images.idx3-ubyte", "x");
    expect(dir, "idx;");
    dir = make_folder();
    write_text(dir, "qmnist-train-images-idx3-ubyte", "x");
    write_text(dir, "qmnist-train-labels-idx2-int", "x");
    expect(dir, "idx;");
    dir = make_folder(); /* labels are found by their count alone */
    write_text(dir, "train-idx3-ubyte", "x"), write_text(dir, "train-idx1-ubyte", "x");
    expect(dir, "idx idx-train-images=train-idx3-ubyte idx-train-labels=train-idx1-ubyte "
                "idx-test-images= idx-test-labels=;");
    dir = make_folder(); /* without labels, the test images are ignored */
    write_text(dir, "emnist-a-train-images-idx3-ubyte", "x");
    write_text(dir, "emnist-a-train-labels-idx1-ubyte", "x");
    write_text(dir, "emnist-a-test-images-idx3-ubyte", "x");
    expect(dir, "idx idx-transpose=yes idx-train-images=emnist-a-train-images-idx3-ubyte "
                "idx-train-labels=emnist-a-train-labels-idx1-ubyte idx-test-images= "
                "idx-test-labels=;");
    write_text(dir, "emnist-a-test-labels-idx1-ubyte", "x");
    write_text(dir, "README.md.gz", "x");
    expect(dir, "idx idx-transpose=yes idx-train-images=emnist-a-train-images-idx3-ubyte "
                "idx-train-labels=emnist-a-train-labels-idx1-ubyte "
                "idx-test-images=emnist-a-test-images-idx3-ubyte "
                "idx-test-labels=emnist-a-test-labels-idx1-ubyte;");
}

static void folders_of_classes(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_in(dir, "train/a", "1", "x\n"), write_in(dir, "train/b", "1", "x\n");
    write_in(dir, "test/a", "1", "x\n"), write_in(dir, "test/b", "1", "x\n");
    write_in(dir, "valid/a", "1", "x\n"); /* one class is not enough */
    expect(dir, "labelled trainpref=train validpref= testpref=test;");
    write_in(dir, "valid/b", "1", "x\n");
    expect(dir, "labelled trainpref=train validpref=valid testpref=test;");
    dir = make_folder();
    write_in(dir, "train/a", "1", "x\n"), write_in(dir, "test/a", "1", "x\n");
    expect(dir, "");
    write_in(dir, "train-old/a", "1", "x\n"), write_in(dir, "train-old/b", "1", "x\n");
    write_in(dir, "train.gz", "1", "x\n"); /* a folder, whatever its name */
    expect(dir, "");
}

/* One data set per kind, from files whose names give a split and from others. */
static void texts_by_their_look(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "rt.neg", "a b\n"), write_text(dir, "rt.pos", "c\n");
    write_text(dir, "alone.neg", "a b\n"), write_text(dir, "other.neg", "x\n");
    write_in(dir, "other.pos", "file", "a folder is no text\n");
    expect(dir, "polarity trainpref=rt;");
    dir = make_folder();
    write_text(dir, "all.conllu", TREE_LINE "\n"), write_text(dir, "x.test.conllu", TREE_LINE "\n");
    expect(dir, "trees-cut data-file=all.conllu;");
    dir = make_folder();
    write_text(dir, "ner.train", "1\tNew York\tB-LOC\n2\tis\tO\n");
    write_text(dir, "few.txt", "__label__a __label__b x\n__label__a y\n");
    write_text(dir, "rows.csv", "1,a title,b\n2,c,d\n");
    expect(dir, "conll trainpref=ner.train validpref= testpref= word-column=2 delimiter=tab;"
                "labelled trainpref=few.txt validpref= testpref= labels=first;"
                "labelled-csv trainpref=rows.csv validpref= testpref=;");
    dir = make_folder();
    write_text(dir, "deu.txt", "Hi.\tHallo!\nRun!\tLauf!\n");
    write_text(dir, "fra.txt", "1\ta b\t2\tc d\n3\ta e\t4\tc f\n");
    write_text(dir, "fra1.txt", "Hi.\tSalut !\nRun!\tCours !\n");
    expect(dir, "tabbed data-file=deu.txt columns=en,de source=de;"
                "tabbed data-file=fra.txt columns=id,en,id2,fra source=fra;"
                "tabbed data-file=fra1.txt columns=en,de source=de;");
    dir = make_folder();
    write_text(dir, "enwik8", "the cat\n"), write_text(dir, "text8", "the cat\n");
    expect(dir, "bytes data-file=enwik8;bytes data-file=text8;");
    dir = make_folder();
    write_text(dir, "book", "the cat\nthe dog\nthe end\n"), write_text(dir, "README", "1 a\n");
    expect(dir, "text trainpref=book validpref= testpref=;");
}

static void odd_languages(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "a.train.de.xml", "a\n"), write_text(dir, "a.train.en.xml", "a\n");
    write_text(dir, "b.dev.de", "a\n"), write_text(dir, "b.dev.en", "a\n");
    write_text(dir, "c.dev.de", "a\n"), write_text(dir, "c.dev.en", "a\n");
    write_text(dir, "d.test.de", "a\n"); /* in one language */
    expect(dir, "parallel trainpref=a.train validpref=b.dev testpref= source=de target=en;");
    dir = make_folder();
    write_text(dir, "x.en_GB", "a\n"), write_text(dir, "x.zh-Hans", "a\n");
    write_text(dir, "x.fr", "a\n"), write_text(dir, "x.abcd", "a\n"),
        write_text(dir, "x.en1", "a\n");
    write_text(dir, "x.en_aaaaaaaaaaaaaaaaaaaaaa", "a\n");
    expect(dir, "parallel trainpref=x validpref= testpref= source=en_GB target=fr;");
    dir = make_folder();
    for (int i = 0; i < 20; i++) { /* more languages than the limit */
        char name[16];
        snprintf(name, sizeof name, "x.a%c", 'a' + i);
        write_text(dir, name, "a\n");
    }
    expect(dir, "parallel trainpref=x validpref= testpref= source=aa target=ab;");
    dir = make_folder();
    for (int i = 0; i < FIND_MOST + 2; i++) {
        char name[32];
        snprintf(name, sizeof name, "%02d.train.de", i), write_text(dir, name, "a\n");
        snprintf(name, sizeof name, "%02d.train.en", i), write_text(dir, name, "a\n");
    }
    static data_found found;
    sr_failure why = {0};
    check_ok(data_find(dir, &found, &why), &why);
    assert_int_equal(found.findings, FIND_MOST);
    assert_true(found.more);
    data_found_free(&found);
}

/* One file of a folder, through several of its paths. */
static void one_file(void **state) {
    (void)state;
    const char *dir = make_folder();
    char path[FILE_PATH], here[FILE_PATH], long_path[DATA_TEXT + 1];
    static data_found found;
    sr_failure why = {0};
    write_text(dir, "train.txt", "1 a b\n0 c\n"), write_text(dir, "valid.txt", "1 a b\n");
    snprintf(path, sizeof path, "%s/train.txt", dir);
    expect(path, "labelled trainpref=train.txt validpref= testpref=;");
    snprintf(path, sizeof path, "%s//", dir);
    expect(path, "labelled trainpref=train.txt validpref=valid.txt testpref=;");
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(dir), 0);
    expect("train.txt", "labelled trainpref=train.txt validpref= testpref=;");
    assert_int_equal(chdir(here), 0);
    assert_int_equal(data_find("/dev/null", &found, &why), SR_IO);
    check_failure(&why, SR_IO, "/dev/null: not a regular file");
    data_found_free(&found), why = (sr_failure){0};
    assert_int_equal(data_find("/nowhere", &found, &why), SR_IO);
    check_failure(&why, SR_IO, "/nowhere: No such file");
    data_found_free(&found), why = (sr_failure){0};
    memset(long_path, 'x', DATA_TEXT), long_path[DATA_TEXT] = 0;
    assert_int_equal(data_find(long_path, &found, &why), SR_USAGE);
    data_found_free(&found);
}

/* Pipes, names with control characters and links out of the folder are counted, not read. */
static void what_is_left_out(void **state) {
    (void)state;
    const char *dir = make_folder();
    char path[FILE_PATH], target[FILE_PATH];
    static data_found found;
    sr_failure why = {0};
    write_text(dir, "train.txt", "1 a b\n0 c\n"), write_text(dir, "a\033b", "1 a\n");
    write_text(dir, ".hidden", "1 a\n"), write_text(dir, "x.gz", "1 a\n");
    write_raw(dir, "x.npz", "PK\003\004", 4), write_raw(dir, "y.bin", "\x89HDF\r\n\x1a\n", 8);
    snprintf(path, sizeof path, "%s/pipe", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/out", dir);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    snprintf(path, sizeof path, "%s/broken", dir);
    assert_int_equal(symlink("nothing", path), 0);
    snprintf(path, sizeof path, "%s/beside", dir); /* a folder whose name extends this one's */
    snprintf(target, sizeof target, "%sx", dir);
    FILE *beside = fopen(target, "w");
    assert_non_null(beside);
    fclose(beside);
    assert_int_equal(symlink(target, path), 0);
    check_ok(data_find(dir, &found, &why), &why);
    assert_int_equal(found.files.links, 3);
    assert_int_equal(found.files.others, 2);
    assert_null(folder_files_find(&found.files, ".hidden"));
    const folder_file *binary = folder_files_find(&found.files, "y.bin");
    assert_true(binary && *binary->why.text);
    data_found_free(&found);
}

static void more_files_than_are_kept(void **state) {
    (void)state;
    const char *dir = make_folder();
    static data_found found;
    sr_failure why = {0};
    for (int i = 0; i <= FOLDER_FILES_MOST; i++) {
        char path[FILE_PATH];
        snprintf(path, sizeof path, "%s/%d", dir, i);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fclose(file);
    }
    check_ok(data_find(dir, &found, &why), &why);
    assert_true(found.files.more);
    assert_int_equal(found.files.count, FOLDER_FILES_MOST);
    data_found_free(&found);
}

/* Any bytes have a kind, and no byte after them is read. */
static void random_bytes(void **state) {
    (void)state;
    static const char alphabet[] = "01 \t\t\n\n\r,\"()#-_OBI.a\200\0\001";
    rng random = rng_create(7);
    for (int round = 0; round < 20000; round++) {
        const size_t size = rng_below(&random, 60);
        uint8_t *byte = malloc(size + 1); /* a zero byte follows a text */
        assert_non_null(byte);
        for (size_t i = 0; i < size; i++)
            byte[i] = (uint8_t)alphabet[rng_below(&random, sizeof alphabet - 1)];
        byte[size] = 0;
        const file_bytes f = {.byte = byte, .size = size};
        const text_kind kind = text_look(&f, round % 2).kind;
        if (memchr(byte, 0, size) || memchr(byte, 1, size)) assert_int_equal(kind, LOOKS_NOTHING);
        free(byte);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles),
        cmocka_unit_test(looks),
        cmocka_unit_test(looks_of_long_texts),
        cmocka_unit_test(splits),
        cmocka_unit_test(languages),
        cmocka_unit_test(no_corpus),
        cmocka_unit_test(german_alone),
        cmocka_unit_test(random_bytes),
        cmocka_unit_test(images),
        cmocka_unit_test(folders_of_classes),
        cmocka_unit_test(texts_by_their_look),
        cmocka_unit_test(odd_languages),
        cmocka_unit_test(one_file),
        cmocka_unit_test(what_is_left_out),
        cmocka_unit_test(more_files_than_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
