/* Odd lines in data files: every path from a line to words gives the words of its reference. */
#include <string.h>

#include "data_files.h"
#include "testing/odd_lines.h"
#include "text/line_transform.h"

/* All lines after an ordinary first one, ended by LF or CRLF, after a byte order mark. */
static const char *folder_of_lines(const char *end) {
    static char text[1 << 15];
    char *at = text + sprintf(text,
                              "\xef\xbb\xbf"
                              "ab%s",
                              end);
    for (int i = 0; i < ODD_LINES; i++) at += sprintf(at, "%s%s", odd_lines[i].line, end);
    const char *dir = make_folder();
    static const char *const names[] = {"train",   "valid",   "train.a",
                                        "train.b", "valid.a", "valid.b"};
    for (int i = 0; i < 6; i++) write_text(dir, names[i], text);
    return dir;
}

/* A row of ids as words, separated by newlines; </s> and padding end it. */
static const char *row_of(const dataset *d, const int32_t *id, const uint8_t *mask,
                          int64_t length) {
    static char text[512];
    size_t used = 0;
    text[0] = 0;
    for (int64_t j = 0; j < length && mask[j] && id[j] != TOKEN_EOS; j++)
        used += (size_t)sprintf(text + used, "%s%s", used ? "\n" : "",
                                data_word(d, SIDE_SOURCE, id[j]));
    return text;
}

static const char *words_of_line(int64_t line) {
    return line ? odd_lines[line - 1].words : "ab";
}

static void pairs(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        sr_failure why = {0};
        batch b;
        data_options o = default_options("parallel", folder_of_lines(k ? "\r\n" : "\n"));
        strcpy(o.source, "a"), strcpy(o.target, "b");
        dataset *d = open_data(&o);
        int64_t seen = 0;
        for (int64_t i = 0; i < data_batches(d, SPLIT_TRAIN); i++) {
            check_ok(data_batch(d, SPLIT_TRAIN, 0, i, &b, &why), &why);
            for (int64_t r = 0; r < b.count; r++, seen++)
                assert_string_equal(row_of(d, b.source + r * b.source_length,
                                           b.source_mask + r * b.source_length, b.source_length),
                                    words_of_line(data_line_of(d, SPLIT_TRAIN, b.pair[r])));
        }
        assert_int_equal(seen, ODD_LINES + 1);
        data_close(d);
    }
}

/* One sequence: words, <eos> after each line. */
static void running_text(void **state) {
    (void)state;
    sr_failure why = {0};
    batch b;
    data_options o = default_options("text", folder_of_lines("\n"));
    o.batch_size = o.eval_batch_size = o.window = 1;
    o.eos_of_empty = true;
    dataset *d = open_data(&o);
    int64_t k = 0;
    for (int64_t line = 0; line < ODD_LINES; line++) { /* the last line ends with the last target */
        char want[512];
        const size_t size = (size_t)sprintf(want, "%s\n<eos>", words_of_line(line));
        for (char *at = want; at < want + size; k++) {
            at[strcspn(at, "\n")] = 0;
            check_ok(data_batch(d, SPLIT_TRAIN, 0, k, &b, &why), &why);
            assert_string_equal(data_word(d, SIDE_SOURCE, b.target_in[0]), at);
            at += strlen(at) + 1;
        }
    }
    data_close(d);
}

/* A sentence per line, one column per row. */
static const char *folder_of_columns(void) {
    static char text[1 << 15];
    char *at = text;
    for (int i = 0; i < ODD_LINES; i++) {
        for (const char *word = odd_lines[i].columns; *word; word += *word == '\n') {
            const size_t length = strcspn(word, "\n");
            at += sprintf(at, "%.*s\t \tB-X\n", (int)length, word);
            word += length;
        }
        at += sprintf(at, "\n");
    }
    const char *dir = make_folder();
    write_text(dir, "train", text);
    return dir;
}

static void columns(void **state) {
    (void)state;
    const line_transform lower = lowercase_step();
    for (int k = 0; k < 2; k++) {
        sr_failure why = {0};
        batch b;
        data_options o = default_options("conll", folder_of_columns());
        if (k) o.tokenizer = &lower;
        *o.validpref = 0;
        dataset *d = open_data(&o);
        int64_t seen = 0;
        for (int64_t i = 0; i < data_batches(d, SPLIT_TRAIN); i++) {
            check_ok(data_batch(d, SPLIT_TRAIN, 0, i, &b, &why), &why);
            for (int64_t r = 0; r < b.count; r++, seen++) {
                const odd_line *want = &odd_lines[b.pair[r]];
                assert_string_equal(row_of(d, b.source + r * b.source_length,
                                           b.source_mask + r * b.source_length, b.source_length),
                                    k ? want->lower : want->columns);
            }
        }
        assert_int_equal(seen, ODD_LINES);
        data_close(d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs),
        cmocka_unit_test(running_text),
        cmocka_unit_test(columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
