/* Every allocation of learning, reading and applying BPE fails once: SR_MEMORY each time, no
 * leaks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpe_texts.h"
#include "testing/failing_malloc.h"
#include "text/bpe/bpe_step.h"
#include "text/bpe/text_codec.h"

/* Many different words, some with white space inside, and a frequent one: the others are set aside
 * until it is merged. */
static void make_line(char *line, size_t size) {
    size_t at = 0;
    for (int i = 0; i < 150; i++)
        at += (size_t)snprintf(line + at, size - at, "%d%c%x ", i * i, i % 3 ? 'x' : '\t', i * 7);
    for (int i = 0; i < 400; i++) at += (size_t)snprintf(line + at, size - at, "zqy ");
    /* a word that merges make as long as this */
    for (int i = 0; i < 300; i++) at += (size_t)snprintf(line + at, size - at, "o");
}

/* `count` different words of two letters, and a frequent one: after its merge no pair is left, and
 * the others come back. */
static void make_rare(char *line, size_t size, int count) {
    size_t at = 0;
    for (int i = 0; i < count; i++)
        at += (size_t)snprintf(line + at, size - at, "%c%cxy ", 'a' + i % 26, 'a' + i / 26);
    for (int i = 0; i < 40; i++)
        at += (size_t)snprintf(line + at, size - at, "12%c ", i % 2 ? '3' : '4');
}

static FILE *sink;

/* Reads files of other programs: a dictionary of words, codes. */
static sr_status read_and_write(sr_failure *why) {
    const file_bytes words = text_file("ab 3\nc 2\n"), text = text_file("#version: 0.2\na b\n");
    bpe_counts *counts = bpe_counts_create();
    sr_status status = counts ? bpe_counts_add_dictionary(counts, &words, why)
                              : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = bpe_counts_write(counts, sink, why);
    bpe_codes *codes = status == SR_OK ? bpe_codes_parse(&text, -1, why) : NULL;
    if (status == SR_OK) status = codes ? bpe_codes_write(codes, sink, why) : why->status;
    bpe_codes_free(codes), bpe_counts_free(counts);
    return status;
}

static sr_status learn_and_apply(const char *line, sr_failure *why) {
    static const char *const glossary[] = {"1(?:2|x)+", "[a-c]{2}"};
    file_bytes pieces = text_file("1@@ 5\nx@@ 7\n");
    byte_buffer out = {0};
    bpe *b = NULL;
    bpe_codes *codes = NULL;
    bpe_vocabulary *v = bpe_vocabulary_parse(&pieces, 1, why);
    bpe_counts *counts = v ? bpe_counts_create() : NULL;
    sr_status status = counts ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = bpe_counts_add_line(counts, line, strlen(line), why);
    if (status == SR_OK && !(codes = bpe_learn(counts, &(bpe_learning){250, 1, false}, why)))
        status = why->status;
    if (status == SR_OK && !(b = bpe_create(codes, &(bpe_settings){"@@", v, glossary, 2}, why)))
        status = why->status;
    if (status == SR_OK) status = bpe_apply(b, line, strlen(line), &out, why);
    bpe_free(b);
    bpe_codes_free(codes);
    bpe_counts_free(counts);
    bpe_vocabulary_free(v);
    free(out.byte);
    return status;
}

static void survives(void **state) {
    (void)state;
    char line[4096];
    long n = -1;
    sr_status status = SR_MEMORY;
    if (!failing_malloc_there()) {
        printf("skipped: the allocator cannot be replaced here\n");
        skip();
    }
    make_line(line, sizeof line);
    sink = fopen("/dev/null", "w");
    assert_non_null(sink);
    setvbuf(sink, NULL, _IONBF, 0);
    for (; n < 0 || status != SR_OK; n++) {
        sr_failure why = {0};
        failing_malloc_begin(n);
        status = learn_and_apply(line, &why);
        if (status == SR_OK) status = read_and_write(&why);
        assert_int_equal(failing_malloc_end(), 0);
        if (n < 0) check_ok(status, &why);
        if (status != SR_OK) check_failure(&why, SR_MEMORY, "memory");
        if (n < 0) status = SR_MEMORY;
    }
    fclose(sink);
    print_message("%ld allocations\n", n);
    assert_true(n > 100);
}

static sr_status learn_line(const char *line, sr_failure *why) {
    bpe_codes *codes = NULL;
    bpe_counts *counts = bpe_counts_create();
    sr_status status = counts ? bpe_counts_add_line(counts, line, strlen(line), why)
                              : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK && !(codes = bpe_learn(counts, &(bpe_learning){60, 1, false}, why)))
        status = why->status;
    bpe_codes_free(codes), bpe_counts_free(counts);
    return status;
}

/* Lists grow at another moment for every number of words. */
static void learning_survives(void **state) {
    (void)state;
    char line[1024];
    if (!failing_malloc_there()) skip();
    for (int words = 1; words < 60; words++) {
        sr_status status = SR_MEMORY;
        make_rare(line, sizeof line, words);
        for (long n = 0; status != SR_OK; n++) {
            sr_failure why = {0};
            failing_malloc_begin(n);
            status = learn_line(line, &why);
            assert_int_equal(failing_malloc_end(), 0);
            if (status != SR_OK) check_failure(&why, SR_MEMORY, "memory");
            if (status == SR_OK && failing_malloc_reached()) fail_msg("%ld was passed over", n);
        }
    }
}

/* A word with text before the glossary match, by an encoder that has split none yet. */
static void encoding_survives(void **state) {
    (void)state;
    static const char *const glossary[] = {"1(?:2|x)+"};
    const file_bytes text = text_file("#version: 0.2\na b\n");
    sr_failure why = {0};
    sr_status status = SR_MEMORY;
    if (!failing_malloc_there()) skip();
    bpe_codes *codes = bpe_codes_parse(&text, -1, &why);
    assert_non_null(codes);
    for (long n = 0; status != SR_OK; n++) {
        byte_buffer out = {0};
        why = (sr_failure){0};
        failing_malloc_begin(n);
        bpe *b = bpe_create(codes, &(bpe_settings){"@@", NULL, glossary, 1}, &why);
        status = b ? bpe_apply(b, "ab12x", 5, &out, &why) : why.status;
        if (status == SR_OK) {
            buffer_free(&out);
            status = text_codec_pieces(&(text_codec){.steps = 0}, 0, "one line", 8, &out, &why);
        }
        bpe_free(b), buffer_free(&out);
        assert_int_equal(failing_malloc_end(), 0);
        if (status != SR_OK) check_failure(&why, SR_MEMORY, "memory");
    }
    bpe_codes_free(codes);
}

/* A step takes over parsed merges; if it cannot be created, they are freed. */
static void steps_survive(void **state) {
    (void)state;
    if (!failing_malloc_there()) skip();
    const file_bytes text = text_file("#version: 0.2\na b\n");
    const line_transform other = lowercase_step();
    assert_null(bpe_step_codes(&other));
    bool whole = false;
    long n = 0;
    for (; !whole; n++) {
        sr_failure why = {0};
        line_transform step = {0};
        failing_malloc_begin(n);
        bpe_codes *codes = bpe_codes_parse(&text, -1, &why);
        if (codes) step = bpe_step_of(codes, &why);
        whole = step.apply != NULL;
        if (whole) step.free(step.self);
        assert_int_equal(failing_malloc_end(), 0);
        if (!whole) check_failure(&why, SR_MEMORY, "memory");
    }
    assert_true(n > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(survives), cmocka_unit_test(steps_survive),
                                       cmocka_unit_test(learning_survives),
                                       cmocka_unit_test(encoding_survives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
