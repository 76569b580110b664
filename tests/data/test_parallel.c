/* Parallel text: tiny files written here, and the shared corpora if present. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data_files.h"

static const char small_de[] = "ein hund\nein kleiner hund l\xc3\xa4uft\nhund\nein ein ein\n";
static const char small_en[] = "a dog\na small dog runs\ndog\na a a\n";

static const char *write_small(void) {
    const char *dir = make_folder();
    write_text(dir, "train.de", small_de);
    write_text(dir, "train.en.gz", small_en);
    write_text(dir, "valid.de.gz", "ein katze\nhund");
    write_text(dir, "valid.en", "a cat\ndog");
    return dir;
}

static batch get(dataset *d, data_split split, int64_t epoch, int64_t index) {
    batch b;
    sr_failure why = {0};
    check_ok(data_batch(d, split, epoch, index, &b, &why), &why);
    return b;
}

/* The words of a row, separated by blanks, with </s>, without padding. */
static const char *spell(const dataset *d, const int32_t *row, const uint8_t *mask,
                         int64_t length) {
    static char text[4][4096];
    static int used;
    char *t = text[used++ % 4];
    t[0] = 0;
    for (int64_t i = 0; i < length && mask[i]; i++) {
        if (i) strcat(t, " ");
        strcat(t, data_word(d, SIDE_SOURCE, row[i]));
    }
    return t;
}

static void reads_pairs_and_dictionary(void **state) {
    (void)state;
    data_options o = default_options("parallel", write_small());
    dataset *d = open_data(&o);
    static const char *const want[] = {"a",       "ein",          "dog",  "hund",
                                       "kleiner", "l\xc3\xa4uft", "runs", "small"};
    for (int i = 0; i < 8; i++)
        assert_string_equal(data_word(d, SIDE_SOURCE, TOKEN_FIRST_WORD + i), want[i]);
    assert_int_equal(data_get_shape(d)->vocabulary, 16);
    assert_int_equal(data_get_shape(d)->longest, 5);
    assert_true(data_has_split(d, SPLIT_VALID));
    assert_false(data_has_split(d, SPLIT_TEST));
    batch b = get(d, SPLIT_VALID, 0, 0);
    assert_int_equal(b.count, 2);
    assert_int_equal(b.tokens, 5);
    assert_string_equal(spell(d, b.source, b.source_mask, b.source_length), "hund </s>");
    assert_string_equal(spell(d, b.target_out + 3, b.target_mask + 3, 3), "a <unk> </s>");
    assert_string_equal(spell(d, b.target_in + 3, b.target_mask + 3, 3), "</s> a <unk>");
    check_within(data_unknown_share(d, SPLIT_VALID), 0.2, 1e-12);
    check_equals(data_unknown_share(d, SPLIT_TRAIN), 0);
    assert_non_null(strstr(data_describe(d), "validation 2 pairs, 5 target tokens, 20.00 % <unk>, "
                                             "33.33 % of the source words"));
    assert_true(isnan(data_unknown_share(d, SPLIT_TEST)) && isnan(data_entropy(d)));
    assert_non_null(strstr(data_describe(d), "training 4 pairs, 14 target tokens, 0.00 % <unk>"));
    assert_non_null(strstr(data_describe(d), "train.en.gz"));
    data_close(d);
}

static void cuts_the_dictionary(void **state) {
    (void)state;
    data_options o = default_options("parallel", write_small());
    o.vocab_size = 8;
    dataset *d = open_data(&o);
    assert_int_equal(data_get_shape(d)->vocabulary, 8);
    assert_string_equal(data_word(d, SIDE_SOURCE, 7), "hund");
    assert_null(data_word(d, SIDE_SOURCE, 8));
    check_within(data_unknown_share(d, SPLIT_TRAIN), 2.0 / 14, 1e-12); /* small, runs */
    data_close(d);
    o.vocab_size = 4;
    refuse_data(&o, SR_USAGE, "vocab-size 4 leaves no room");
    o.vocab_size = 0;
    snprintf(o.bpe_codes, sizeof o.bpe_codes, "codes");
    o.bpe_merges = 10;
    refuse_data(&o, SR_USAGE, "bpe-codes and bpe-merges are both given");
}

static void uses_the_first_lines_only(void **state) {
    (void)state;
    data_options o = default_options("parallel", write_small());
    o.limit = 1;
    dataset *d = open_data(&o);
    batch b = get(d, SPLIT_TRAIN, 0, 0);
    assert_int_equal(b.count, 1);
    assert_string_equal(spell(d, b.target_out, b.target_mask, b.target_length), "a dog </s>");
    assert_int_equal(data_get_shape(d)->vocabulary, 8); /* ein hund a dog */
    b = get(d, SPLIT_VALID, 0, 0);
    assert_int_equal(b.count, 2); /* all pairs */
    data_close(d);
}

static void drops_empty_and_long_pairs(void **state) {
    (void)state;
    const char *dir = write_small();
    write_text(dir, "train.de", "a b\n\nc\nd e f g h\n");
    write_text(dir, "train.en", "a b\nx\n \t\r\nd\n");
    data_options o = default_options("parallel", dir);
    o.max_tokens = 5;
    dataset *d = open_data(&o);
    assert_non_null(strstr(data_describe(d), "training 1 pairs, 3 target tokens, 0.00 % <unk> "
                                             "(dropped: 2 with an empty side, 1 too long)"));
    data_close(d);
    o.max_tokens = 2;
    refuse_data(&o, SR_FORMAT, "no pair left of 4: 2 have an empty side, 2 exceed 2");
    o.max_tokens = 1;
    refuse_data(&o, SR_USAGE, "max-tokens 1");
}

/* A pair of six tokens gets a separate batch. Runs of any max-tokens are evaluated on the same
 * pairs. */
static void long_validation_pairs_stay(void **state) {
    (void)state;
    const char *dir = write_small();
    write_text(dir, "valid.de", "a\na b c d e\na\n");
    write_text(dir, "valid.en", "x\nx\nx y\n");
    data_options o = default_options("parallel", dir);
    for (o.max_tokens = 4; o.max_tokens <= 64; o.max_tokens *= 4) {
        dataset *d = open_data(&o);
        int64_t pairs = 0, tokens = 0, longest = 0;
        for (int64_t i = 0; i < data_batches(d, SPLIT_VALID); i++) {
            batch b = get(d, SPLIT_VALID, 0, i);
            pairs += b.count, tokens += b.tokens;
            if (b.source_length > longest) longest = b.source_length;
        }
        assert_true(pairs == 3 && tokens == 7 && longest == 6);
        assert_true(data_get_shape(d)->longest >= 6);
        data_close(d);
    }
}

static void reads_windows_line_ends_and_plain_first(void **state) {
    (void)state;
    const char *dir = write_small();
    write_text(dir, "train.en", "one\r\ntwo three\r\nfour\r\nfive\r\n");
    data_options o = default_options("parallel", dir);
    dataset *d = open_data(&o);
    int found = 0;
    for (int i = TOKEN_FIRST_WORD; data_word(d, SIDE_SOURCE, i); i++) {
        found += strcmp(data_word(d, SIDE_SOURCE, i), "three") == 0;
        assert_null(strchr(data_word(d, SIDE_SOURCE, i), '\r'));
    }
    assert_int_equal(found, 1);
    data_close(d);
}

static void refuses_missing_files(void **state) {
    (void)state;
    const char *dir = write_small();
    data_options o = default_options("parallel", dir);
    char part[1024];
    strcpy(o.target, "fr");
    snprintf(part, sizeof part, "%s/train.fr: No such file or directory (nor %s/train.fr.gz)", dir,
             dir);
    refuse_data(&o, SR_IO, part);
    strcpy(o.target, "en");
    write_text(dir, "test.en", "a\n");
    refuse_data(&o, SR_IO, "/test.de: No such file");
    strcpy(o.testpref, "");
    strcpy(o.validpref, "dev");
    refuse_data(&o, SR_IO, "/dev.de: No such file");
    strcpy(o.validpref, "");
    dataset *d = open_data(&o);
    assert_false(data_has_split(d, SPLIT_VALID));
    data_close(d);
    strcpy(o.source, "");
    refuse_data(&o, SR_USAGE, "source is not given");
    o = default_options("parallel", "/nonexistent");
    refuse_data(&o, SR_IO, "/nonexistent: No such file");
    o = default_options("parallel", dir);
    strcpy(o.target, "de");
    refuse_data(&o, SR_USAGE, "source and target are one language, 'de'");
}

static void refuses_a_folder_for_a_file(void **state) {
    (void)state;
    const char *dir = write_small();
    data_options o = default_options("parallel", dir);
    char path[1024];
    snprintf(path, sizeof path, "%s/train.de", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0777), 0);
    refuse_data(&o, SR_IO, "train.de: Is a directory");
}

/* In a child process that is not root, since root may read every file. */
static void refuses_a_folder_it_may_not_read(void **state) {
    (void)state;
    const char *dir = write_small();
    data_options o = default_options("parallel", dir);
    assert_int_equal(chmod(dir, 0), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        sr_failure why = {0};
        if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
        bool opened = data_open(&o, &why) != NULL;
        _exit(!opened && why.status == SR_IO && strstr(why.text, "train.de: Permission denied")
                  ? 0
                  : 1);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    assert_int_equal(chmod(dir, 0777), 0);
}

static void refuses_uneven_and_damaged_text(void **state) {
    (void)state;
    const char *dir = write_small();
    data_options o = default_options("parallel", dir);
    write_text(dir, "valid.en", "a\nb\nc\n");
    refuse_data(&o, SR_FORMAT, "valid.de.gz has 2 lines, but ");
    refuse_data(&o, SR_FORMAT, "valid.en has 3");
    write_text(dir, "valid.en", "a\nb \xff\n");
    refuse_data(&o, SR_FORMAT, "valid.en:2: byte 2 of the line is 0xff, not UTF-8");
    write_raw(dir, "valid.en", "a\nb\0", 4);
    refuse_data(&o, SR_FORMAT, "valid.en:2: byte 1 of the line is 0x00, not text");
    write_text(dir, "valid.en", "");
    refuse_data(&o, SR_FORMAT, "valid.en:1: holds no line");
}

/* Lines of the validation text, with their blanks. */
static void expect_lines(const data_options *o, const char *want) {
    char text[512] = "";
    dataset *d = open_data(o);
    for (int64_t i = 0; i < data_pairs(d, SPLIT_VALID); i++) {
        const data_line line = data_source(d, SPLIT_VALID, i);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%.*s|", (int)line.length,
                 line.byte);
    }
    data_close(d);
    assert_string_equal(text, want);
}

/* IWSLT's lines of tags in a text, and its sets of segments. */
static void takes_text_out_of_markup(void **state) {
    (void)state;
    const char *dir = write_small();
    data_options o = default_options("parallel", dir);
    static const char talk[] = "  <url>http</url>\na <url>\n\t<doc id=\"1\">\n<\n</\n<titles> x\n"
                               "<tit\n</doc>\n<keywords\tx\nlast";
    write_text(dir, "valid.de", talk), write_text(dir, "valid.en", talk);
    expect_lines(&o, "a <url>|<|</|<titles> x|<tit|<keywords\tx|last|");
    static const char set[] = "<srcset id=x><seg id=\"1\"> one </seg>\n<segment>none</segment>\n"
                              "x\n<seg>two</seg><seg>no</seg>\n<seg";
    write_text(dir, "valid.de", set), write_text(dir, "valid.en", set);
    expect_lines(&o, " one |two|");
    write_text(dir, "valid.de", "<mteval>\n<seg id=1\n");
    refuse_data(&o, SR_FORMAT, "valid.de:2: <seg without its >");
    write_text(dir, "valid.de", "<mteval>\n<seg id=1>a</se\n");
    refuse_data(&o, SR_FORMAT, "valid.de:2: <seg> without </seg> on its line");
    write_text(dir, "valid.de", "<mteval>\n");
    refuse_data(&o, SR_FORMAT, "valid.de:1: holds no line");
}

/* Sides whose markup does not match would be paired wrongly. */
static void sides_of_markup(void **state) {
    (void)state;
    const char *dir = write_small();
    data_options o = default_options("parallel", dir);
    write_text(dir, "valid.de", "<url>x</url>\na\n<title>b\nc\nd\n<doc>\n");
    write_text(dir, "valid.en", "<url>x</url>\n<doc>\n\na\n<talkid>\n<title>b\nc\nd\n");
    refuse_data(&o, SR_FORMAT, "/valid.de:4 and ");
    refuse_data(&o, SR_FORMAT,
                "/valid.en:4 would be one pair, but the lines of markup before "
                "them do not match");
    write_text(dir, "valid.en", "<url>x</url>\n<doc>\nA\n<talkid>\n<title>b\nC\nD\n");
    expect_lines(&o, "a|c|d|"); /* other numbers of tags */
    write_text(dir, "valid.en", "A\nC\nD\n");
    expect_lines(&o, "a|c|d|");
    write_text(dir, "valid.de", "<srcset>\n<seg id=\"1\">a</seg>\n<seg id=3 x=y>c</seg>\n");
    write_text(dir, "valid.en",
               "<refset>\n<doc>\n<seg id='1' l=\"en\">A</seg>\n<seg id=2>C</seg>\n");
    refuse_data(&o, SR_FORMAT, "/valid.de:3 and ");
    refuse_data(&o, SR_FORMAT,
                "/valid.en:4 would be one pair, but the ids of their segments "
                "differ");
    write_text(dir, "valid.en", "<refset>\n<seg id=1>A</seg>\n<seg idx=2>C</seg>\n");
    expect_lines(&o, "a|c|"); /* one has no id */
}

static void refuses_empty_names(void **state) {
    (void)state;
    data_options o = default_options("parallel", write_small());
    *o.target = 0;
    refuse_data(&o, SR_USAGE, "target is not given: files are PREFIX.LANG");
    strcpy(o.target, "en"), *o.source = 0;
    refuse_data(&o, SR_USAGE, "source is not given: files are PREFIX.LANG");
    strcpy(o.source, "de"), *o.trainpref = 0;
    refuse_data(&o, SR_USAGE, "trainpref is empty");
}

static void refuses_every_truncation(void **state) {
    (void)state;
    const char *dir = write_small();
    data_options o = default_options("parallel", dir);
    char path[1024], part[64];
    size_t size;
    snprintf(path, sizeof path, "%s/train.en.gz", dir);
    unsigned char *bytes = read_raw(path, &size);
    for (size_t keep = 0; keep < size; keep++) {
        write_raw(dir, "train.en.gz", bytes, keep);
        snprintf(part, sizeof part, "train.en.gz: byte %zu: ", keep);
        refuse_data(&o, SR_FORMAT, part);
    }
    free(bytes);
}

/* Writes `pairs` lines "k x x ..." on both sides, k the line's number, with different lengths. */
static const char *write_numbered(int pairs) {
    const char *dir = make_folder();
    static const char *const name[] = {"train.de", "train.en", "valid.de", "valid.en"};
    char *text = malloc((size_t)pairs * 80);
    assert_non_null(text);
    for (int f = 0; f < 4; f++) {
        char *p = text;
        for (int i = 0; i < pairs; i++) {
            p += sprintf(p, "%s%d", f % 2 ? "t" : "s", i);
            for (int j = 0; j < (i * 7 + f % 2 * 3) % 11 + i % 3; j++) p += sprintf(p, " w%d", j);
            *p++ = '\n';
        }
        write_bytes(dir, name[f], text, (size_t)(p - text));
    }
    free(text);
    return dir;
}

static void check_row(const int32_t *out, const int32_t *in, const uint8_t *mask, int64_t padded) {
    int64_t n = 0;
    while (n < padded && mask[n]) n++;
    assert_true(n >= 2);
    assert_int_equal(out[n - 1], TOKEN_EOS);
    for (int64_t i = 0; i < padded; i++) {
        assert_int_equal(mask[i], i < n);
        if (i >= n) assert_int_equal(out[i], TOKEN_PAD);
        if (i < n - 1) assert_true(out[i] >= TOKEN_UNK);
        if (in) assert_int_equal(in[i], i == 0 ? TOKEN_EOS : i < n ? out[i - 1] : TOKEN_PAD);
    }
}

/* Reads a pass; source_of[k] becomes the number of target k's source. */
static int64_t walk_pass(dataset *d, data_split split, int64_t epoch, int64_t max_tokens,
                         int *source_of, uint64_t *digest) {
    int64_t tokens = 0;
    *digest = 0;
    for (int64_t k = 0; k < data_batches(d, split); k++) {
        batch b = get(d, split, epoch, k);
        int64_t valid = 0;
        assert_true(b.count * b.source_length <= max_tokens &&
                    b.count * b.target_length <= max_tokens);
        for (int64_t i = 0; i < b.count; i++) {
            int64_t s = i * b.source_length, t = i * b.target_length;
            check_row(b.source + s, NULL, b.source_mask + s, b.source_length);
            check_row(b.target_out + t, b.target_in + t, b.target_mask + t, b.target_length);
            int target = atoi(data_word(d, SIDE_SOURCE, b.target_out[t]) + 1);
            assert_int_equal(source_of[target], -1);
            source_of[target] = atoi(data_word(d, SIDE_SOURCE, b.source[s]) + 1);
        }
        for (int64_t i = 0; i < b.count * b.target_length; i++) valid += b.target_mask[i];
        assert_int_equal(valid, b.tokens);
        tokens += b.tokens;
        *digest = *digest * 31 + digest_batch(&b);
    }
    return tokens;
}

static void visits_every_pair_once(void **state) {
    (void)state;
    enum { PAIRS = 300 };
    data_options o = default_options("parallel", write_numbered(PAIRS));
    o.max_tokens = 64;
    dataset *d = open_data(&o);
    uint64_t digest[3];
    int64_t tokens[3];
    for (int pass = 0; pass < 3; pass++) {
        int source_of[PAIRS];
        memset(source_of, -1, sizeof source_of);
        data_split split = pass < 2 ? SPLIT_TRAIN : SPLIT_VALID;
        tokens[pass] = walk_pass(d, split, pass, 64, source_of, &digest[pass]);
        for (int i = 0; i < PAIRS; i++) assert_int_equal(source_of[i], i);
    }
    assert_true(digest[0] != digest[1]);
    assert_true(tokens[0] == tokens[1] && tokens[1] == tokens[2]);
    data_close(d);
}

static void shuffles_sources_in_every_split(void **state) {
    (void)state;
    enum { PAIRS = 300 };
    data_options o = default_options("parallel", write_numbered(PAIRS));
    o.max_tokens = 64, o.shuffle_sources = true;
    dataset *d = open_data(&o);
    for (int split = SPLIT_TRAIN; split <= SPLIT_VALID; split++) {
        int source_of[PAIRS], seen[PAIRS] = {0};
        uint64_t digest;
        memset(source_of, -1, sizeof source_of);
        walk_pass(d, (data_split)split, 0, 64, source_of, &digest);
        for (int i = 0; i < PAIRS; i++) {
            assert_int_not_equal(source_of[i], i);
            seen[source_of[i]]++;
        }
        for (int i = 0; i < PAIRS; i++) assert_int_equal(seen[i], 1);
    }
    assert_non_null(strstr(data_describe(d), "sources shuffled"));
    data_close(d);
}

/* Sorted: shortest first in every epoch, random order within a length. Bucketed: any order. */
static void sorted_batches_come_shortest_first(void **state) {
    (void)state;
    data_options o = default_options("parallel", write_numbered(300));
    o.max_tokens = 64;
    for (int sorted = 0; sorted < 2; sorted++) {
        bool rising = true;
        if (sorted) strcpy(o.batching, "sorted");
        dataset *d = open_data(&o);
        int64_t last = 0;
        for (int64_t k = 0; k < data_batches(d, SPLIT_TRAIN); k++) {
            batch b = get(d, SPLIT_TRAIN, 1, k);
            rising = rising && b.source_length >= last;
            last = b.source_length;
        }
        assert_true(rising == (sorted != 0));
        data_close(d);
    }
}

static void is_a_pure_function(void **state) {
    (void)state;
    data_options o = default_options("parallel", write_numbered(200));
    o.max_tokens = 64;
    check_pure(&o, SPLIT_TRAIN);
    check_pure(&o, SPLIT_VALID);
    o.shuffle_sources = true;
    check_pure(&o, SPLIT_VALID);
}

/* Opens data/FOLDER of the shared data; expects these numbers of pairs. */
static void expect_shared(const char *folder, const char *trainpref, const char *testpref,
                          const char *counts) {
    data_options o = default_options("parallel", folder);
    o.max_tokens = 4096;
    snprintf(o.trainpref, sizeof o.trainpref, "%s", trainpref);
    snprintf(o.testpref, sizeof o.testpref, "%s", testpref);
    dataset *d = open_data(&o);
    print_message("%s\n", data_describe(d));
    char got[256];
    int64_t pairs[3] = {0};
    for (int s = 0; s < 3; s++)
        for (int64_t k = 0; k < data_batches(d, (data_split)s); k++) {
            batch b = get(d, (data_split)s, 0, k);
            pairs[s] += b.count;
        }
    snprintf(got, sizeof got, "%d %d %d", (int)pairs[0], (int)pairs[1], (int)pairs[2]);
    assert_string_equal(got, counts);
    data_close(d);
}

static void reads_the_shared_multi30k(void **state) {
    (void)state;
    const char *dir = check_shared("data/multi30k-de-en");
    if (!dir) skip();
    expect_shared(dir, "train", "test_2016_flickr", "29000 1014 1000");
}

static void reads_the_shared_iwslt(void **state) {
    (void)state;
    const char *dir = check_shared("data/iwslt14-de-en/bpe10k");
    if (!dir) skip();
    expect_shared(dir, "train-subset", "test", "14925 7283 6750");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_pairs_and_dictionary),
        cmocka_unit_test(cuts_the_dictionary),
        cmocka_unit_test(uses_the_first_lines_only),
        cmocka_unit_test(drops_empty_and_long_pairs),
        cmocka_unit_test(long_validation_pairs_stay),
        cmocka_unit_test(reads_windows_line_ends_and_plain_first),
        cmocka_unit_test(refuses_missing_files),
        cmocka_unit_test(refuses_a_folder_for_a_file),
        cmocka_unit_test(refuses_a_folder_it_may_not_read),
        cmocka_unit_test(refuses_uneven_and_damaged_text),
        cmocka_unit_test(takes_text_out_of_markup),
        cmocka_unit_test(sides_of_markup),
        cmocka_unit_test(refuses_empty_names),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(visits_every_pair_once),
        cmocka_unit_test(shuffles_sources_in_every_split),
        cmocka_unit_test(sorted_batches_come_shortest_first),
        cmocka_unit_test(is_a_pure_function),
        cmocka_unit_test(reads_the_shared_multi30k),
        cmocka_unit_test(reads_the_shared_iwslt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
