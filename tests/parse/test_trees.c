/* Files of trees: content of each format, detection of the format, rejected lines and their
 * position. A written file equals the file read except for the trees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse/trees.h"
#include "testing/check.h"

static const char *put(const char *name, const char *text) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", check_temporary(), name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
    return path;
}

static void read_as(treebank *t, const char *name, const char *text, tree_format format) {
    sr_failure why = {0};
    const treebank_options o = {.format = format};
    check_ok(treebank_read(put(name, text), &o, t, &why), &why);
}

/* "form/coarse/fine/head/label ... |" for each sentence. */
static void expect(const treebank *t, const char *want) {
    char got[2048] = "";
    size_t n = 0;
    for (int64_t i = 0; i < t->sentences; i++) {
        int32_t words;
        const tree_word *w = treebank_sentence(t, i, &words);
        for (int32_t k = 0; k < words; k++, w++)
            n += (size_t)snprintf(got + n, sizeof got - n, "%.*s/%.*s/%.*s/%d/%.*s ", w->form.size,
                                  w->form.byte, w->coarse.size, w->coarse.byte, w->fine.size,
                                  w->fine.byte, w->head, w->label.size, w->label.byte);
        n += (size_t)snprintf(got + n, sizeof got - n, "|");
    }
    assert_string_equal(got, want);
}

#define X(id, form, head, label) id "\t" form "\tl\tC\tF\t_\t" head "\t" label "\t_\t_\n"

static const char conllu[] = "# sent_id = 1\n# text = Don't go\n"
                             "1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
                             "1\tDo\tdo\tAUX\tVB\t_\t3\taux\t3:aux\t_\n"
                             "2\tn't\tnot\tPART\tRB\t_\t3\tadvmod:neg\t3:advmod\t_\n"
                             "2.1\tyou\tyou\tPRON\tPRP\t_\t_\t_\t3:nsubj\t_\n"
                             "3\tgo\tgo\tVERB\tVB\t_\t0\troot\t0:root\t_\n"
                             "3.1\there\t_\t_\t_\t_\t_\t_\t3:obl\t_\n"
                             "\n"
                             "# newpar\n"
                             "0.1\t_\t_\t_\t_\t_\t_\t_\t2:x\t_\n"
                             "1\t#\t#\tSYM\tNN\t_\t2\tdep\t_\t_\n"
                             "2\tnew york\t_\tPROPN\tNNP\t_\t0\troot\t_\tId=2\n"
                             "\n";

static void formats(void **state) {
    (void)state;
    treebank t;
    read_as(&t, "u", conllu, TREES_AUTO);
    assert_int_equal(t.format, TREES_CONLLU);
    assert_true(t.labelled);
    expect(&t, "Do/AUX/VB/3/aux n't/PART/RB/3/advmod:neg go/VERB/VB/0/root |"
               "#/SYM/NN/2/dep new york/PROPN/NNP/0/root |");
    assert_int_equal(t.word[0].line, 4);
    assert_int_equal(t.word[4].line, 13);
    assert_ptr_equal(tree_pos_of(&t, t.word, TREE_POS_AUTO), &t.word[0].coarse);
    assert_ptr_equal(tree_pos_of(&t, t.word, TREE_POS_FINE), &t.word[0].fine);
    treebank_free(&t);
    /* no blank line at the end, several in the middle, CR LF, a mark in front */
    read_as(&t, "x",
            "\xef\xbb\xbf" X("1", "a", "2", "x")
                X("2", "b", "0", "y") "\n \t\n" X("1", "c", "0", "z"),
            TREES_AUTO);
    assert_int_equal(t.format, TREES_CONLLX);
    expect(&t, "a/C/F/2/x b/C/F/0/y |c/C/F/0/z |");
    assert_ptr_equal(tree_pos_of(&t, t.word, TREE_POS_AUTO), &t.word[0].fine);
    assert_ptr_equal(tree_pos_of(&t, t.word, TREE_POS_COARSE), &t.word[0].coarse);
    treebank_free(&t);
    read_as(&t, "m", "#\t#\t2\r\nb\tNN\t0\r\n\r\nc\tNN\t0", TREES_AUTO);
    assert_int_equal(t.format, TREES_MALT_TAB);
    assert_false(t.labelled);
    expect(&t, "#/#/#/2/_ b/NN/NN/0/_ |c/NN/NN/0/_ |");
    treebank_free(&t);
    read_as(&t, "m4", "a\tDT\t2\tdet\nb\tNN\t0\troot\n", TREES_AUTO);
    assert_true(t.labelled);
    expect(&t, "a/DT/DT/2/det b/NN/NN/0/root |");
    treebank_free(&t);
}

/* Ten columns without a mark of conllu are conllx unless the file name ends in .conllu. */
static void recognised(void **state) {
    (void)state;
    treebank t;
    const char plain[] = X("1", "a", "0", "x");
    read_as(&t, "plain.conllu", plain, TREES_AUTO);
    assert_int_equal(t.format, TREES_CONLLU);
    treebank_free(&t);
    read_as(&t, "plain.conll", plain, TREES_AUTO);
    assert_int_equal(t.format, TREES_CONLLX);
    treebank_free(&t);
    read_as(&t, "plain.conll", plain, TREES_CONLLU);
    assert_int_equal(t.format, TREES_CONLLU);
    treebank_free(&t);
    read_as(&t, "late",
            X("1", "a", "0", "x") "\n" X("1", "a", "0", "x") "1.1"
                                                             "\t_\t_\t_\t_\t_\t_\t_\t_\t_\n",
            TREES_AUTO);
    assert_int_equal(t.format, TREES_CONLLU);
    treebank_free(&t);
    read_as(&t, "roots", X("1", "a", "0", "x") X("2", "a", "0", "_"), TREES_CONLLX);
    assert_int_equal(t.sentences, 1);
    treebank_free(&t);
    read_as(&t, "none", X("1", "a", "0", "_") X("2", "a", "1", "_"), TREES_CONLLX);
    assert_false(t.labelled);
    treebank_free(&t);
}

static void refuse(const char *text, tree_format format, const char *part) {
    treebank t;
    sr_failure why = {0};
    const treebank_options o = {.format = format};
    assert_int_equal(treebank_read(put("wrong", text), &o, &t, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, part);
    assert_null(t.word);
    assert_null(t.file.byte);
}

#define OTHER(id) id "\tx\t_\t_\t_\t_\t_\t_\t_\t_\n"

static void refusals_of_lines(void **state) {
    (void)state;
    refuse("a\tb\n", TREES_AUTO, "wrong: the first line of words has 2 columns, not 3, 4 or 10");
    refuse("a b 0\n", TREES_AUTO, "wrong: the first line of words has 1 column, not");
    refuse("", TREES_AUTO, "wrong: no sentence in it");
    refuse("# a\n\n# b\n", TREES_AUTO, "wrong: no sentence in it");
    refuse("\n\n", TREES_CONLLX, "wrong: no sentence in it");
    refuse(X("1", "a", "0", "x") "2\tb\n", TREES_AUTO, "wrong:2: 2 columns where conllx has 10");
    refuse("a\tb\t0\nc\tb\t1\tx\n", TREES_AUTO, "wrong:2: 4 columns where malt-tab has 3");
    refuse("1\ta\t_\t_\t_\t_\t0\tx\t_\t_\t_\n", TREES_CONLLU, "wrong:1: more than 10 columns");
    refuse("a\tb\t0\n", TREES_CONLLU, "wrong:1: 3 columns where conllu has 10");
    refuse(X("1", "a", "0", "x") "2\t\tl\tC\tF\t_\t1\tx\t_\t_\n", TREES_CONLLX,
           "wrong:2: column 2, FORM, is empty");
    refuse("1\ta\tl\tC\tF\t_\t0\tx\t_\t\n", TREES_CONLLU, "wrong:1: column 10, MISC, is empty");
    refuse("a\t\t0\n", TREES_AUTO, "wrong:1: column 2, POSTAG, is empty");
    refuse(X("1", "a", "0", "x") X("3", "b", "1", "x"), TREES_AUTO,
           "wrong:2: id '3' where 2 is due");
    refuse(X("2", "a", "0", "x"), TREES_AUTO, "wrong:1: id '2' where 1 is due");
    refuse(X("x", "a", "0", "x"), TREES_AUTO, "wrong:1: id 'x' where 1 is due");
    refuse(X("1", "a", "0", "x") OTHER("2-3"), TREES_CONLLX, "wrong:2: id '2-3' where 2 is due");
    refuse(X("1", "a", "0", "x") OTHER("1.1"), TREES_CONLLX, "wrong:2: id '1.1' where 2 is due");
    refuse("a\tb\tx\n", TREES_AUTO, "wrong:1: head 'x' of 'a' is not a word number");
    refuse("a\tb\t-1\n", TREES_AUTO, "wrong:1: head '-1' of 'a'");
    refuse(X("1", "a", "_", "x"), TREES_AUTO, "wrong:1: head '_' of 'a'");
    refuse(X("1", "a", "99999999999", "x"), TREES_AUTO, "wrong:1: head '99999999999' of 'a'");
    refuse("a\tb\t0\n\xff\tb\t1\n", TREES_AUTO, "wrong:2: byte 0 of the line is 0xff, not UTF-8");
}

static void refusals_of_conllu(void **state) {
    (void)state;
    refuse(OTHER("2-3") X("1", "a", "0", "x"), TREES_AUTO,
           "wrong:1: multiword token 2-3 does not begin with 1");
    refuse(OTHER("1-0") X("1", "a", "0", "x"), TREES_AUTO, "wrong:1: multiword token 1-0");
    refuse(OTHER("1-2") X("1", "a", "0", "x") OTHER("2-3"), TREES_AUTO,
           "wrong:3: multiword token 2-3 within the one of line 1");
    refuse(OTHER("1-2") X("1", "a", "0", "x") "\n", TREES_AUTO,
           "wrong:1: a multiword token ends at 2 of 1 words");
    refuse(X("1", "a", "0", "x") OTHER("2.1"), TREES_AUTO,
           "wrong:2: empty node 2.1 where 1.1 is due");
    refuse(X("1", "a", "0", "x") OTHER("1.2"), TREES_AUTO,
           "wrong:2: empty node 1.2 where 1.1 is due");
    refuse(OTHER("0.1") "\n", TREES_CONLLU, "wrong:2: a sentence of empty nodes alone");
    refuse(X("1", "a", "0", "x") "# b\n", TREES_CONLLU, "wrong:2: a comment within a sentence");
    refuse(X("1", "a", "0", "x") X("2", "b", "0", "x"), TREES_CONLLU,
           "wrong:2: word 2 'b' is a second root after word 1 'a'");
}

static void refusals_of_trees(void **state) {
    (void)state;
    refuse("x\ty\t0\n\na\tb\t0\nc\tb\t3\n", TREES_AUTO,
           "wrong:4: head 3 of word 2 'c'; the sentence has 2 words: 0 to 2");
    refuse("x\ty\t2\n", TREES_AUTO,
           "wrong:1: head 2 of word 1 'x'; the sentence has 1 word: 0 to 1");
    refuse("x\ty\t0\n\na\tb\t2\nc\tb\t1\n", TREES_AUTO,
           "wrong:3: no word of this sentence has head 0");
    refuse("a\tb\t0\nc\td\t4\ne\td\t2\nf\td\t3\n", TREES_AUTO,
           "wrong:2: word 2 'c' is its own ancestor: cycle 2 -> 4 -> 3 -> 2");
    refuse("a\tb\t0\nc\td\t3\ne\td\t3\n", TREES_AUTO,
           "wrong:3: word 3 'e' is its own ancestor: cycle 3 -> 3");
}

/* A parser's output need not be trees, but its heads are words. */
static void any_heads(void **state) {
    (void)state;
    treebank t;
    sr_failure why = {0};
    const treebank_options o = {.format = TREES_CONLLU, .any_heads = true};
    check_ok(treebank_read(put("any", X("1", "a", "2", "x") X("2", "b", "1", "x")), &o, &t, &why),
             &why);
    treebank_free(&t);
    check_ok(treebank_read(put("any", X("1", "a", "0", "x") X("2", "b", "0", "x")), &o, &t, &why),
             &why);
    treebank_free(&t);
    assert_int_equal(treebank_read(put("any", X("1", "a", "2", "x")), &o, &t, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "any:1: head 2 of word 1");
}

static void expect_written(const char *text, const int32_t *head, const char *const *label,
                           const char *want) {
    treebank t;
    char *got = NULL;
    size_t size = 0;
    read_as(&t, "w", text, TREES_AUTO);
    FILE *out = open_memstream(&got, &size);
    for (int64_t i = 0; i < t.sentences; i++)
        assert_true(
            treebank_write(&t, i, head + t.start[i], label ? label + t.start[i] : NULL, out));
    assert_int_equal(fclose(out), 0);
    assert_string_equal(got, want);
    free(got);
    treebank_free(&t);
}

static void written(void **state) {
    (void)state;
    expect_written(conllu, (const int32_t[]){2, 0, 2, 0, 1},
                   (const char *const[]){"p", "q", "r", "s", "t"},
                   "# sent_id = 1\n# text = Don't go\n"
                   "1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
                   "1\tDo\tdo\tAUX\tVB\t_\t2\tp\t_\t_\n"
                   "2\tn't\tnot\tPART\tRB\t_\t0\tq\t_\t_\n"
                   "2.1\tyou\tyou\tPRON\tPRP\t_\t_\t_\t_\t_\n"
                   "3\tgo\tgo\tVERB\tVB\t_\t2\tr\t_\t_\n"
                   "3.1\there\t_\t_\t_\t_\t_\t_\t_\t_\n"
                   "\n"
                   "# newpar\n"
                   "0.1\t_\t_\t_\t_\t_\t_\t_\t_\t_\n"
                   "1\t#\t#\tSYM\tNN\t_\t0\ts\t_\t_\n"
                   "2\tnew york\t_\tPROPN\tNNP\t_\t1\tt\t_\tId=2\n"
                   "\n");
    expect_written("1\ta\tl\tC\tF\tf\t0\tx\t0\tx\r\n2\tb\tl\tC\tF\tf\t1\ty\t1\ty",
                   (const int32_t[]){2, 0}, NULL,
                   "1\ta\tl\tC\tF\tf\t2\tx\t_\t_\n2\tb\tl\tC\tF\tf\t0\ty\t_\t_\n\n");
    expect_written("\n\na\tb\t0\n\n\nc\td\t0\ne\tf\t1", (const int32_t[]){0, 2, 0}, NULL,
                   "a\tb\t0\n\nc\td\t2\ne\tf\t0\n\n");
}

/* The published counts of the shared treebanks, plain and gzip. */
static void shared_treebanks(void **state) {
    (void)state;
    static const struct {
        const char *path;
        int64_t sentences, words;
        tree_format format;
    } file[] = {
        {"data/ud-english-ewt/en_ewt-ud-train.conllu.gz", 12544, 204577, TREES_CONLLU},
        {"data/ud-english-ewt/en_ewt-ud-test.conllu.gz", 2077, 25094, TREES_CONLLU},
        {"data/ptb-dependency-sample/wsj_0001-0199.dp.gz", 3914, 94084, TREES_MALT_TAB},
    };
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        treebank t;
        sr_failure why = {0};
        const treebank_options o = {0};
        const char *path = check_shared(file[i].path);
        if (!path) skip();
        check_ok(treebank_read(path, &o, &t, &why), &why);
        assert_int_equal(t.sentences, file[i].sentences);
        assert_int_equal(t.words, file[i].words);
        assert_int_equal(t.format, file[i].format);
        treebank_free(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats),           cmocka_unit_test(recognised),
        cmocka_unit_test(refusals_of_lines), cmocka_unit_test(refusals_of_conllu),
        cmocka_unit_test(refusals_of_trees), cmocka_unit_test(any_heads),
        cmocka_unit_test(written),           cmocka_unit_test(shared_treebanks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
