/* Roles that names tell, looks of texts, and what a folder is taken for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
         LOOKS_TEXT}, /* 2 of 4 lines: a blank is no TAB */
        {" neg\ta film\nneg\ta\n", LOOKS_TABBED},
        {"Hi.\tHallo!\nRun!\tLauf!\nI see.\tIch verstehe.\n", LOOKS_TABBED},
        {"Hi.\tHallo!\nRun!\n", LOOKS_TEXT},
        {"the cat\nthe dog\nthe end\n", LOOKS_TEXT}, /* one first word is no label */
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        if (look(want[i].text, false).kind != want[i].kind)
            fail_msg("text %zu looks %d, not %d", i, look(want[i].text, false).kind, want[i].kind);
    assert_int_equal(look("1,a title,b\n", true).kind, LOOKS_CSV);
    assert_true(look("1 Anna B-PER\n2 is O\n\n1 B B-PER\n", false).numbered);
    assert_true(look("0 Anna B-PER\n1 is O\n\n0 B B-PER\n", false).numbered);
    assert_false(look("1 Anna B-PER\n1 is O\n\n1 B B-PER\n", false).numbered);
    assert_true(look("New York\tB-LOC\nis\tO\n", false).tabs);
    assert_false(look("York\tB-LOC\nis\tO\n", false).tabs);
    assert_true(look("1\ta b\t2\tc d\n3\ta e\t4\tc f\n", false).export4);
    assert_false(look("1\ta b\t2\tc d\na\ta e\t4\tc f\n", false).export4);
    assert_true(look("__label__a __label__b x\n__label__a y\n", false).several);
    assert_false(look("__label__a x\n__label__a y\n", false).several);
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

/* The files of the same name come first, then those of the same look. */
static void splits(void **state) {
    (void)state;
    const char *dir = make_folder(), *text = "1 a b\n0 c\n";
    write_text(dir, "a.train", text), write_text(dir, "b.train", text);
    write_text(dir, "a.dev", "1 a b\n"), write_text(dir, "b.dev", "one two\n");
    expect(dir, "labelled trainpref=a.train validpref=a.dev testpref=;"
                "labelled trainpref=b.train validpref=b.dev testpref=;");
    dir = make_folder(); /* plain and packed are one file */
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

/* Any bytes look like something, and nothing is read beyond them. */
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
        cmocka_unit_test(roles),     cmocka_unit_test(looks),        cmocka_unit_test(splits),
        cmocka_unit_test(languages), cmocka_unit_test(random_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
