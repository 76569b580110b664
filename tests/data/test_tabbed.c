/* Pairs in the columns of one file: columns and splits; the shared Tatoeba file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data_files.h"

static data_options options(const char *dir) {
    data_options o = default_options("tabbed", dir);
    strcpy(o.file, "deu.txt"), strcpy(o.columns, "en,de");
    o.valid_share = o.test_share = 0;
    return o;
}

/* Sentences e0 .. with 1 to 3 translations each; every fifth has a third column. */
static const char *write_many(int sentences) {
    const char *dir = make_folder();
    char *text = malloc((size_t)sentences * 128), *p = text;
    assert_non_null(text);
    for (int i = 0; i < sentences; i++)
        for (int k = 0; k <= i % 3; k++)
            p += sprintf(p, "e%d\td%d %d%s\n", i, i * 7, k, i % 5 ? "" : "\tsome source");
    write_text(dir, "deu.txt.gz", text);
    free(text);
    return dir;
}

static int number_in(data_line l) {
    char text[32] = "";
    assert_true(l.byte && l.length > 1 && l.length < sizeof text);
    memcpy(text, l.byte, l.length);
    return atoi(text + 1);
}

/* The split of every English sentence; 0: not seen yet. */
static void mark_splits(dataset *d, int *split_of, int sentences) {
    memset(split_of, 0, (size_t)sentences * sizeof *split_of);
    for (int s = SPLIT_VALID; s <= SPLIT_TEST; s++)
        for (int64_t i = 0; i < data_pairs(d, (data_split)s); i++) {
            int n = number_in(data_reference(d, (data_split)s, i));
            assert_true(split_of[n] == 0 || split_of[n] == s);
            assert_int_equal(number_in(data_source(d, (data_split)s, i)), 7 * n);
            split_of[n] = s;
        }
}

/* All pairs of a sentence are in one split. A sentence in validation or test has all of its
 * translations there, so training has none. */
static void no_sentence_is_in_two_splits(void **state) {
    (void)state;
    enum { N = 2000 };
    static int split[N], again[N];
    data_options o = options(write_many(N));
    o.valid_share = 0.1, o.test_share = 0.2;
    dataset *d = open_data(&o);
    mark_splits(d, split, N);
    int64_t pairs[3] = {0}, sentences[3] = {0};
    for (int i = 0; i < N; i++) pairs[split[i]] += i % 3 + 1, sentences[split[i]]++;
    for (int s = 0; s < 3; s++) assert_int_equal(data_pairs(d, (data_split)s), pairs[s]);
    assert_in_range(sentences[SPLIT_VALID], 150, 250);
    assert_in_range(sentences[SPLIT_TEST], 340, 460);
    data_close(d);
    /* another seed, a smaller validation fraction, either direction: the same test */
    o.seed = 9, o.valid_share = 0.02;
    d = open_data(&o);
    mark_splits(d, again, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(again[i] == SPLIT_TEST, split[i] == SPLIT_TEST);
        if (again[i] == SPLIT_VALID) assert_int_equal(split[i], SPLIT_VALID);
    }
    const int64_t tests = data_pairs(d, SPLIT_TEST);
    data_close(d);
    strcpy(o.source, "en"), strcpy(o.target, "de");
    d = open_data(&o);
    assert_int_equal(data_pairs(d, SPLIT_TEST), tests);
    assert_int_equal(number_in(data_source(d, SPLIT_TEST, 0)) * 7,
                     number_in(data_reference(d, SPLIT_TEST, 0)));
    data_close(d);
}

static void reads_columns(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = options(dir);
    write_text(dir, "deu.txt", "\xef\xbb\xbfHi .\tHallo !\tx\r\n\nRun !\tLauf !\r\n\t leer \n");
    dataset *d = open_data(&o);
    static const char *const want[] = {"!", ".", "Hallo", "Hi", "Lauf", "Run"};
    for (int i = 0; i < 6; i++)
        assert_string_equal(data_word(d, SIDE_SOURCE, TOKEN_FIRST_WORD + i), want[i]);
    assert_null(strstr(data_describe(d), "validation"));
    assert_non_null(strstr(data_describe(d), "tabbed de-en: from "));
    assert_non_null(strstr(data_describe(d), "deu.txt, 4 lines, split by the first column"));
    assert_non_null(strstr(data_describe(d), "training 2 pairs, 6 target tokens, 0.00 % <unk> "
                                             "(dropped: 2 with an empty side, 0 too long)"));
    data_close(d);
    strcpy(o.columns, "-,de,en"), strcpy(o.dictionary, "separate");
    write_text(dir, "deu.txt", "1\teins\tone\n2\tzwei\ttwo");
    d = open_data(&o);
    assert_string_equal(data_word(d, SIDE_TARGET, TOKEN_FIRST_WORD), "one");
    assert_string_equal(data_word(d, SIDE_SOURCE, TOKEN_FIRST_WORD), "eins");
    data_close(d);
}

static void refuses_what_it_cannot_read(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = options(dir);
    refuse_data(&o, SR_IO, "/deu.txt: No such file or directory (nor ");
    write_text(dir, "deu.txt", "Hi\tHallo\nRun\n");
    refuse_data(&o, SR_FORMAT, "deu.txt:2: 1 column, but de is column 2");
    strcpy(o.columns, "en,-,-,de");
    write_text(dir, "deu.txt", "Hi\tHallo\t\n");
    refuse_data(&o, SR_FORMAT, "deu.txt:1: 3 columns, but de is column 4");
    strcpy(o.columns, "de,en");
    write_text(dir, "deu.txt", "Hi\n");
    refuse_data(&o, SR_FORMAT, "deu.txt:1: 1 column, but en is column 2");
    strcpy(o.columns, "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,de,en"); /* after the last cut column */
    refuse_data(&o, SR_USAGE, "source language 'de' is not one of the columns");
    strcpy(o.columns, "de,en");
    write_text(dir, "deu.txt", "Hi\tHo\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13\t14\t15\t16\t17\n");
    data_close(open_data(&o));
    write_text(dir, "deu.txt", "Hi\tHallo\nRun\tLa\xfcuf\n");
    refuse_data(&o, SR_FORMAT, "deu.txt:2: byte 6 of the line is 0xfc, not UTF-8");
    write_text(dir, "deu.txt", "");
    refuse_data(&o, SR_FORMAT, "none of 0 lines is left for training");
    strcpy(o.columns, "eng,deu");
    refuse_data(&o, SR_USAGE, "source language 'de' is not one of the columns 'eng,deu'");
    strcpy(o.columns, "en,de"), strcpy(o.target, "fr");
    refuse_data(&o, SR_USAGE, "target language 'fr' is not one of the columns 'en,de'");
    strcpy(o.target, "de");
    refuse_data(&o, SR_USAGE, "source and target are one language, 'de'");
    o = options(dir);
    o.valid_share = -0.1;
    refuse_data(&o, SR_USAGE, "valid-share -0.1 and test-share 0 leave nothing for training");
    o.valid_share = 0, o.test_share = -0.1;
    refuse_data(&o, SR_USAGE, "valid-share 0 and test-share -0.1 leave nothing for training");
    o.valid_share = 0.6, o.test_share = 0.4;
    refuse_data(&o, SR_USAGE, "valid-share 0.6 and test-share 0.4 leave nothing for training");
}

static void reads_the_shared_tatoeba(void **state) {
    (void)state;
    const char *dir = check_shared("data/tatoeba-de-en");
    if (!dir) skip();
    data_options o = options(dir);
    o.valid_share = o.test_share = 0.01;
    dataset *d = open_data(&o);
    print_message("%s\n", data_describe(d));
    int64_t pairs = 0;
    for (int s = 0; s < 3; s++) pairs += data_pairs(d, (data_split)s);
    assert_int_equal(pairs, 169813);
    assert_in_range(data_pairs(d, SPLIT_VALID), 1500, 1900);
    assert_in_range(data_pairs(d, SPLIT_TEST), 1500, 1900);
    data_close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_sentence_is_in_two_splits),
        cmocka_unit_test(reads_columns),
        cmocka_unit_test(refuses_what_it_cannot_read),
        cmocka_unit_test(reads_the_shared_tatoeba),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
