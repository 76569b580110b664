/* Lines of sentence pairs: their ids, and the lines kept. Dictionaries of one or both sides,
 * counted or read. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data_files.h"

static const char *write_pairs(void) {
    const char *dir = make_folder();
    write_text(dir, "train.de", "ein hund\nein Hund bellt\nzwei hund\n");
    write_text(dir, "train.en", "a dog\na dog barks\ntwo dog\n");
    write_text(dir, "valid.de", "hund\r\n\r\nein  katze\r\nein ein\n");
    write_text(dir, "valid.en", "dog\nnothing\na cat \n a  a");
    return dir;
}

static batch get(dataset *d, data_split split, int64_t index) {
    batch b;
    sr_failure why = {0};
    check_ok(data_batch(d, split, 0, index, &b, &why), &why);
    return b;
}

static void expect_line(data_line l, const char *want) {
    assert_non_null(l.byte);
    assert_int_equal(l.length, strlen(want));
    assert_memory_equal(l.byte, want, l.length);
}

static sr_status encode(dataset *d, data_side side, const char *line, size_t length, int32_t *id,
                        int64_t room, int64_t *count, sr_failure *why) {
    const text_codec c = data_codec(d);
    return text_codec_encode(&c, side, line, length, id, room, count, why);
}

/* The tokens of a line, spelled, blanks between them. */
static void expect_tokens(dataset *d, data_side side, const char *line, const char *want) {
    int32_t id[16];
    int64_t count;
    char got[256] = "";
    sr_failure why = {0};
    check_ok(encode(d, side, line, strlen(line), id, 16, &count, &why), &why);
    assert_in_range(count, 0, 16);
    for (int64_t i = 0; i < count; i++) {
        if (i) strcat(got, " ");
        strcat(got, data_word(d, side, id[i]));
    }
    assert_string_equal(got, want);
}

/* The words of the dictionary, without special tokens and padding words. */
static void expect_words(dataset *d, data_side side, const char *want) {
    char got[256] = "";
    for (int64_t i = TOKEN_FIRST_WORD; data_word(d, side, i); i++) {
        if (!strncmp(data_word(d, side, i), "madeup", 6)) break;
        if (*got) strcat(got, " ");
        strcat(got, data_word(d, side, i));
    }
    assert_string_equal(got, want);
}

static void keeps_the_lines_of_evaluation(void **state) {
    (void)state;
    data_options o = default_options("parallel", write_pairs());
    dataset *d = open_data(&o);
    assert_int_equal(data_pairs(d, SPLIT_VALID), 3);
    assert_int_equal(data_pairs(d, SPLIT_TEST), 0);
    static const int lines[] = {0, 2, 3};
    static const char *const source[] = {"hund", "ein  katze", "ein ein"};
    static const char *const target[] = {"dog", "a cat ", " a  a"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(data_line_of(d, SPLIT_VALID, i), lines[i]);
        expect_line(data_source(d, SPLIT_VALID, i), source[i]);
        expect_line(data_reference(d, SPLIT_VALID, i), target[i]);
    }
    assert_null(data_source(d, SPLIT_VALID, 3).byte);
    assert_null(data_reference(d, SPLIT_VALID, -1).byte);
    assert_int_equal(data_line_of(d, SPLIT_VALID, 3), -1);
    assert_int_equal(data_pairs(d, SPLIT_TRAIN), 3);
    assert_null(data_source(d, SPLIT_TRAIN, 0).byte); /* not stored */
    data_close(d);
}

/* The rows of every batch are the tokens of the lines given by b.pair. */
static void rows_are_those_of_their_pairs(void **state) {
    (void)state;
    data_options o = default_options("parallel", write_pairs());
    for (int shuffled = 0; shuffled < 2; shuffled++) {
        o.max_tokens = 4, o.shuffle_sources = shuffled;
        dataset *d = open_data(&o);
        int seen[3] = {0};
        for (int64_t k = 0; k < data_batches(d, SPLIT_VALID); k++) {
            batch b = get(d, SPLIT_VALID, k);
            for (int64_t i = 0; i < b.count; i++) {
                int32_t id[8];
                int64_t n;
                data_line s = data_source(d, SPLIT_VALID, b.pair[i]),
                          t = data_reference(d, SPLIT_VALID, b.pair[i]);
                check_ok(encode(d, SIDE_SOURCE, s.byte, s.length, id, 8, &n, NULL), NULL);
                assert_memory_equal(id, b.source + i * b.source_length, (size_t)n * sizeof *id);
                assert_int_equal(b.source[i * b.source_length + n], TOKEN_EOS);
                check_ok(encode(d, SIDE_TARGET, t.byte, t.length, id, 8, &n, NULL), NULL);
                assert_memory_equal(id, b.target_out + i * b.target_length, (size_t)n * sizeof *id);
                assert_int_equal(b.target_out[i * b.target_length + n], TOKEN_EOS);
                seen[b.pair[i]]++;
            }
        }
        for (int i = 0; i < 3; i++) assert_int_equal(seen[i], 1);
        data_close(d);
    }
}

static void encodes_lines(void **state) {
    (void)state;
    data_options o = default_options("parallel", write_pairs());
    dataset *d = open_data(&o);
    int32_t id[2] = {-1, -1};
    int64_t count;
    sr_failure why = {0};
    expect_tokens(d, SIDE_SOURCE, "ein hund", "ein hund");
    expect_tokens(d, SIDE_SOURCE, " der\thund \r\n", "<unk> hund");
    expect_tokens(d, SIDE_TARGET, "", "");
    expect_tokens(d, SIDE_TARGET, "</s> a", "<unk> a");
    check_ok(encode(d, SIDE_SOURCE, "ein ein ein", 11, id, 1, &count, &why), &why);
    assert_int_equal(count, 3);
    assert_int_equal(id[1], -1); /* no capacity */
    /* a character cut by the end of the line */
    assert_int_equal(encode(d, SIDE_SOURCE, "a \xc3\xa4", 3, id, 2, &count, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "byte 2 of the line is 0xc3, not UTF-8");
    assert_int_equal(encode(d, SIDE_SOURCE, "a\nb", 3, id, 2, &count, NULL), SR_USAGE);
    data_close(d);
    o = default_options("synth-images", "");
    o.limit = 1;
    d = open_data(&o);
    assert_null(data_dictionary(d, SIDE_SOURCE));
    data_close(d);
}

/* -- line transforms */

static sr_status lower(void *self, int side, const char *line, size_t length, byte_buffer *out,
                       sr_failure *why) {
    (void)why;
    if (side == SIDE_SOURCE) ++*(int *)self;
    for (size_t i = 0; i < length; i++) {
        char c = (char)tolower((unsigned char)line[i]);
        if (!buffer_put(out, &c, 1)) return SR_MEMORY;
    }
    return SR_OK;
}

/* The lowered line is counted and looked up; the original line is stored. */
static void lines_go_through_the_tokenizer(void **state) {
    (void)state;
    int calls = 0;
    line_transform step = {.name = "lower", .apply = lower, .self = &calls};
    const char *dir = write_pairs();
    write_text(dir, "valid.de", "HUND\nEin\n");
    write_text(dir, "valid.en", "Dog\nA\n");
    data_options o = default_options("parallel", dir);
    o.tokenizer = &step;
    dataset *d = open_data(&o);
    assert_int_equal(calls, 5);
    expect_words(d, SIDE_SOURCE, "dog hund a ein barks bellt two zwei");
    check_equals(data_unknown_share(d, SPLIT_VALID), 0);
    expect_line(data_reference(d, SPLIT_VALID, 0), "Dog");
    expect_tokens(d, SIDE_SOURCE, "EIN HUND", "ein hund");
    assert_non_null(strstr(data_describe(d), "lines through lower"));
    data_close(d);
    calls = 0, o.limit = 1;
    d = open_data(&o);
    assert_int_equal(calls, 3); /* training: the first line only */
    data_close(d);
}

typedef struct learner {
    int64_t lines;
    char text[64];
} learner;

static sr_status learn(void *self, const file_bytes *text, int sides, int64_t lines,
                       sr_failure *why) {
    (void)why;
    learner *l = self;
    assert_int_equal(sides, 2);
    l->lines = lines;
    snprintf(l->text, sizeof l->text, "%.*s|%.*s", (int)text[0].size, (char *)text[0].byte,
             (int)text[1].size, (char *)text[1].byte);
    return *l->text == 'x' ? sr_fail(why, SR_FORMAT, "an x") : SR_OK;
}

static sr_status as_it_is(void *self, int side, const char *line, size_t length, byte_buffer *out,
                          sr_failure *why) {
    (void)self, (void)side, (void)why;
    return buffer_put(out, line, length) ? SR_OK : SR_MEMORY;
}

static void a_step_learns_from_training_lines(void **state) {
    (void)state;
    learner l = {0};
    line_transform step = {.name = "learn", .begin = learn, .apply = as_it_is, .self = &l};
    const char *dir = write_pairs();
    data_options o = default_options("parallel", dir);
    o.tokenizer = &step, o.limit = 2;
    data_close(open_data(&o));
    assert_int_equal(l.lines, 2);
    assert_string_equal(l.text, "ein hund\nein Hund bellt\n|a dog\na dog barks\n");
    write_text(dir, "train.de", "x\nx\nx\n");
    refuse_data(&o, SR_FORMAT, "an x");
}

/* -- dictionaries */

static void each_side_has_its_own(void **state) {
    (void)state;
    data_options o = default_options("parallel", write_pairs());
    strcpy(o.dictionary, "separate");
    dataset *d = open_data(&o);
    const data_shape *shape = data_get_shape(d);
    expect_words(d, SIDE_SOURCE, "ein hund Hund bellt zwei");
    expect_words(d, SIDE_TARGET, "dog a barks two");
    assert_true(shape->vocabulary == 16 && shape->target_vocabulary == 8);
    assert_ptr_not_equal(data_dictionary(d, SIDE_SOURCE), data_dictionary(d, SIDE_TARGET));
    expect_tokens(d, SIDE_SOURCE, "ein dog", "ein <unk>");
    expect_tokens(d, SIDE_TARGET, "ein dog", "<unk> dog");
    assert_non_null(strstr(data_describe(d),
                           "; source dictionary 16 (5 words); target dictionary 8 "
                           "(4 words)"));
    data_close(d);
    o.vocab_size = 6;
    d = open_data(&o);
    expect_words(d, SIDE_SOURCE, "ein hund");
    expect_words(d, SIDE_TARGET, "dog a");
    data_close(d);
}

static void one_dictionary_serves_both(void **state) {
    (void)state;
    data_options o = default_options("parallel", write_pairs());
    dataset *d = open_data(&o);
    const data_shape *shape = data_get_shape(d);
    assert_true(shape->target_vocabulary == 0 && shape->vocabulary == 16);
    assert_ptr_equal(data_dictionary(d, SIDE_SOURCE), data_dictionary(d, SIDE_TARGET));
    data_close(d);
}

static void reads_the_joint_dictionary(void **state) {
    (void)state;
    const char *dir = write_pairs();
    data_options o = default_options("parallel", dir);
    char *const place[] = {o.source_dictionary, o.target_dictionary};
    const char *path = write_text(dir, "dict.txt", "dog 7\nein 5\nkatze 5\n");
    for (int i = 0; i < 2; i++) {
        *o.source_dictionary = *o.target_dictionary = 0;
        snprintf(place[i], DATA_TEXT, "%s", path);
        dataset *d = open_data(&o);
        expect_words(d, SIDE_TARGET, "dog ein katze");
        assert_int_equal(data_get_shape(d)->vocabulary, 7);
        batch b = get(d, SPLIT_VALID, 0); /* longest last */
        assert_int_equal(b.target_out[0], TOKEN_FIRST_WORD);
        assert_non_null(strstr(data_describe(d), "; dictionary as given, 7 (3 words)"));
        data_close(d);
    }
    strcpy(o.source_dictionary, o.target_dictionary);
    refuse_data(&o, SR_USAGE, "a joint dictionary takes one of");
}

static void reads_one_side_and_counts_the_other(void **state) {
    (void)state;
    const char *dir = write_pairs();
    data_options o = default_options("parallel", dir);
    strcpy(o.dictionary, "separate");
    snprintf(o.target_dictionary, DATA_TEXT, "%s", write_text(dir, "dict.en", "barks 1\na 1\n"));
    dataset *d = open_data(&o);
    expect_words(d, SIDE_SOURCE, "ein hund Hund bellt zwei");
    expect_words(d, SIDE_TARGET, "barks a");
    data_close(d);
    snprintf(o.source_dictionary, DATA_TEXT, "%s", write_text(dir, "dict.de", "bellt 1\n"));
    d = open_data(&o);
    expect_words(d, SIDE_SOURCE, "bellt");
    expect_words(d, SIDE_TARGET, "barks a");
    data_close(d);
    write_text(dir, "dict.de", "bellt 1\nbellt 2\n");
    refuse_data(&o, SR_FORMAT, "dict.de:2: 'bellt' is already in line 1");
}

/* -- forms of text files */

static void marks_and_ends_are_no_words(void **state) {
    (void)state;
    static const char *const de[] = {"ein hund\nzwei\n",
                                     "\xef\xbb\xbf"
                                     "ein hund\r\nzwei\r\n",
                                     "ein hund\r\nzwei",
                                     "\xef\xbb\xbf"
                                     "ein hund\nzwei"};
    for (int i = 0; i < 4; i++) {
        const char *dir = make_folder();
        write_text(dir, i % 2 ? "train.de.gz" : "train.de", de[i]);
        write_text(dir, "train.en", "a dog\ntwo\n");
        write_text(dir, "valid.de", de[i]);
        write_text(dir, "valid.en",
                   "\xef\xbb\xbf"
                   "a dog\r\ntwo");
        data_options o = default_options("parallel", dir);
        dataset *d = open_data(&o);
        expect_words(d, SIDE_SOURCE, "a dog ein hund two zwei");
        expect_line(data_source(d, SPLIT_VALID, 0), "ein hund");
        expect_line(data_reference(d, SPLIT_VALID, 0), "a dog");
        expect_line(data_reference(d, SPLIT_VALID, 1), "two");
        check_equals(data_unknown_share(d, SPLIT_VALID), 0);
        data_close(d);
    }
}

/* Each split counts its own drops; a pair with an empty side does not count as too long, too. */
static void counts_what_it_drops(void **state) {
    (void)state;
    const char *dir = write_pairs();
    write_text(dir, "train.de", "a\n\na b c d e f g h\na a a a a a a a\na\n");
    write_text(dir, "train.en", "a\na a a a a a a a\na\n \na a a a a a a\n");
    data_options o = default_options("parallel", dir);
    o.max_tokens = 8;
    dataset *d = open_data(&o);
    assert_non_null(strstr(data_describe(d), "; training 2 pairs, 10 target tokens, 0.00 % <unk> "
                                             "(dropped: 2 with an empty side, 1 too long)"));
    assert_non_null(strstr(data_describe(d),
                           "(dropped: 1 with an empty side, 0 too long); 2 training batches"));
    data_close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_lines_of_evaluation),
        cmocka_unit_test(rows_are_those_of_their_pairs),
        cmocka_unit_test(encodes_lines),
        cmocka_unit_test(lines_go_through_the_tokenizer),
        cmocka_unit_test(a_step_learns_from_training_lines),
        cmocka_unit_test(each_side_has_its_own),
        cmocka_unit_test(one_dictionary_serves_both),
        cmocka_unit_test(reads_the_joint_dictionary),
        cmocka_unit_test(reads_one_side_and_counts_the_other),
        cmocka_unit_test(marks_and_ends_are_no_words),
        cmocka_unit_test(counts_what_it_drops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
