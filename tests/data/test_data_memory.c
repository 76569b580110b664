/* Every allocation while opening a data set fails once: SR_MEMORY each time, no leaks. Every system
 * call fails once: it is reported, or the data are the same. A row of the table without a case here
 * fails. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/data_counts.h"
#include "data/find/data_find.h"
#include "data_files.h"
#include "testing/failing_malloc.h"
/* after failing_malloc.h, which then counts the allocations */
#include "testing/failing_calls.h"

static char tried[4096]; /* " cifar10 idx ..." */

/* Opens and closes with allocation n failing; returns true if allocation n was not reached. */
static bool try_open(const data_options *o, long n) {
    sr_failure why = {0};
    failing_malloc_begin(n);
    dataset *d = data_open(o, &why);
    data_close(d);
    assert_int_equal(failing_malloc_end(), 0);
    if (!d) check_failure(&why, SR_MEMORY, "memory");
    /* Only glibc's qsort continues without memory: it then sorts large dictionaries in place. */
    if (d && n >= 0 && failing_malloc_reached() && strncmp(o->name, "synth", 5) != 0)
        fail_msg("allocation %ld was passed over", n);
    return d != NULL;
}

/* The description that a user sees of the data. */
static void describe(const dataset *d, char text[4096]) {
    snprintf(text, 4096, "%s; %s; %lld", data_describe(d), data_warnings(d),
             (long long)data_tokens(d, SPLIT_TRAIN));
}

/* Opens and closes with system call k failing; returns false if call k was not reached. */
static bool try_call(const data_options *o, long k, const char *whole) {
    char text[4096];
    sr_failure why = {0};
    const int descriptors = check_descriptors();
    failing_begin(FAILING_SYSTEM, k);
    dataset *d = data_open(o, &why);
    const bool reached = failing_end();
    if (!d && (why.status != SR_IO || !strstr(why.text, strerror(EIO))))
        fail_msg("%s, call %ld at 0x%zx: %s: %s", o->name, k, failing_offset,
                 sr_status_name(why.status), why.text);
    if (d) describe(d, text);
    if (d && strcmp(text, whole) != 0)
        fail_msg("%s, call %ld at 0x%zx: other data: %s", o->name, k, failing_offset, text);
    data_close(d);
    assert_int_equal(check_descriptors(), descriptors);
    return reached;
}

static void check_calls(const data_options *o) {
    char whole[4096];
    sr_failure why = {0};
    dataset *d = data_open(o, &why);
    assert_non_null(d);
    describe(d, whole);
    data_close(d);
    long k = 1;
    while (try_call(o, k, whole)) k++;
    print_message("%s: %ld calls\n", o->name, k - 1);
    assert_true(k > 5 || !data_reads_files(o->name));
}

static void check_allocations(const data_options *o) {
    long n = 0;
    if (!failing_malloc_there()) {
        printf("skipped: %s: the allocator cannot be replaced here\n", o->name);
        skip();
    }
    snprintf(tried + strlen(tried), sizeof tried - strlen(tried), " %s ", o->name);
    assert_true(try_open(o, -1));
    while (!try_open(o, n)) n++;
    print_message("%s: %ld allocations\n", o->name, n);
    assert_true(n > 5);
    check_calls(o);
}

static void images_survive(void **state) {
    (void)state;
    const char *dir = make_folder();
    unsigned char record[2 * 3073] = {3};
    write_bytes(dir, "data_batch_1.bin.gz", record, sizeof record);
    write_bytes(dir, "test_batch.bin", record, sizeof record);
    data_options o = default_options("cifar10", dir);
    check_allocations(&o);
    o.valid_images = 1;
    check_allocations(&o);
    unsigned char images[20] = {0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1};
    unsigned char labels[12] = {0, 0, 8, 1, 0, 0, 0, 4, 0, 1, 0, 1};
    write_bytes(dir, "train-images-idx3-ubyte", images, sizeof images);
    write_bytes(dir, "train-labels-idx1-ubyte.gz", labels, sizeof labels);
    write_bytes(dir, "t10k-images-idx3-ubyte.gz", images, sizeof images);
    write_bytes(dir, "t10k-labels-idx1-ubyte", labels, sizeof labels);
    o = default_options("idx", dir);
    o.valid_images = 1;
    check_allocations(&o);
    o = default_options("synth-images", "");
    unsigned char fine[3074] = {3, 7};
    write_bytes(dir, "train.bin.gz", fine, sizeof fine);
    write_bytes(dir, "test.bin", fine, sizeof fine);
    o = default_options("cifar100", dir);
    check_allocations(&o);
    o = default_options("synth-images", "");
    o.limit = 3;
    check_allocations(&o);
}

static void parallel_text_survives(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "train.de.gz", "ein hund\nein kleiner hund\n");
    write_text(dir, "train.en", "a dog\na small dog\n");
    write_text(dir, "valid.de", "hund\n");
    write_text(dir, "valid.en", "dog\n");
    data_options o = default_options("parallel", dir);
    o.shuffle_sources = true;
    o.prefetch = true;
    check_allocations(&o);
}

static void tabbed_text_survives(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "deu.txt.gz", "Go.\tGeh.\nRun!\tLauf!\nStay.\tBleib.\nI see.\tAha.\n");
    data_options o = default_options("tabbed", dir);
    strcpy(o.file, "deu.txt"), strcpy(o.columns, "en,de");
    o.valid_share = 0.5, o.test_share = 0.2;
    check_allocations(&o);
}

static sr_status copy_line(void *self, int side, const char *line, size_t length, byte_buffer *out,
                           sr_failure *why) {
    (void)self, (void)side;
    if (buffer_put(out, line, length)) return SR_OK;
    return sr_fail(why, SR_MEMORY, "no memory for a copy");
}

static void dictionaries_and_steps_survive(void **state) {
    (void)state;
    const line_transform step = {.name = "copy", .apply = copy_line};
    const char *dir = make_folder();
    write_text(dir, "train.de", "ein hund\nein kleiner hund\n");
    write_text(dir, "train.en", "a dog\na small dog\n");
    write_text(dir, "valid.de", "hund\n");
    write_text(dir, "valid.en", "dog\n");
    data_options o = default_options("parallel", dir);
    snprintf(o.target_dictionary, DATA_TEXT, "%s", write_text(dir, "dict.en", "a 2\ndog 1\n"));
    strcpy(o.dictionary, "separate");
    o.tokenizer = &step;
    check_allocations(&o);
    o.bpe_merges = 3; /* a second step */
    check_allocations(&o);
}

static void generated_pairs_survive(void **state) {
    (void)state;
    data_options o = default_options("synth-pairs", "");
    o.limit = 10;
    check_allocations(&o);
}

static void running_text_survives(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "train", "a b c d\n\nb a\n");
    write_text(dir, "valid.gz", "a a b\nb\n");
    data_options o = default_options("text", dir);
    o.batch_size = o.eval_batch_size = 2, o.window = 2;
    check_allocations(&o);
}

static void running_bytes_survive(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "text.gz", "a b c d\n\nb aq");
    data_options o = default_options("bytes", dir);
    strcpy(o.file, "text");
    o.batch_size = o.eval_batch_size = 1, o.window = 2, o.valid_bytes = o.test_bytes = 3;
    check_allocations(&o);
}

static void trees_survive(void **state) {
    (void)state;
    const line_transform step = {.name = "copy", .apply = copy_line};
    const char *dir = make_folder();
    write_text(dir, "train.gz", "a\tX\t2\tl\nb\tY\t0\tm\n\nc\tX\t0\tm\n");
    write_text(dir, "valid", "a\tX\t0\tm\n");
    data_options o = default_options("trees", dir);
    o.prefetch = true;
    o.tokenizer = &step;
    check_allocations(&o);
    write_text(dir, "all", "a\tX\t2\tl\nb\tY\t0\tm\n\nc\tX\t0\tm\n\na\tX\t0\tm\n");
    o = default_options("trees-cut", dir);
    strcpy(o.file, "all");
    o.valid_count = o.test_count = 1;
    check_allocations(&o);
}

static void classified_sentences_survive(void **state) {
    (void)state;
    const line_transform step = {.name = "copy", .apply = copy_line};
    const char *dir = make_folder();
    write_text(dir, "train", "0\n0 a b\n1 b \xe9\n"); /* the first line has no words */
    write_text(dir, "test.gz", "1 a\n");
    data_options o = default_options("labelled", dir);
    *o.validpref = 0, o.valid_share = 0.5;
    o.tokenizer = &step;
    check_allocations(&o);
    write_text(dir, "train", "\"0\",\"a\",\"b\"\n1,c\n");
    write_text(dir, "test.gz", "1,a\n");
    o = default_options("labelled-csv", dir);
    strcpy(o.validpref, "train");
    check_allocations(&o);
    write_text(dir, "rt.neg", "a b\nc\n");
    write_text(dir, "rt.pos", "d\n\xe9 e\n");
    o = default_options("polarity", dir);
    strcpy(o.trainpref, "rt");
    o.valid_count = o.test_count = 1, o.prefetch = true;
    check_allocations(&o);
}

/* Folders of classes, and sentiment trees. */
static void layouts_of_labels_survive(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_in(dir, "train/neg", "a.txt", "a b\n"), write_in(dir, "train/neg", "b.txt", "c\n");
    write_in(dir, "train/pos", "a.txt", "d\r\ne\n"), write_in(dir, "train/unsup", "c", "f\n");
    write_text(dir, "valid", "pos a\n");
    data_options o = default_options("labelled", dir);
    strcpy(o.trainpref, "train.txt");
    check_allocations(&o);
    write_text(dir, "trees", "(3 (2 a) (3 b))\n(1 (2 c) (1 d))\n");
    strcpy(o.trainpref, "trees"), strcpy(o.validpref, "trees");
    check_allocations(&o);
}

static void tagged_words_survive(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "train", "a B-P\nb I-P\n\nc\303\261 O\nd B-Q\n");
    write_text(dir, "valid.gz", "a B-P\n\361 I-R\n");
    data_options o = default_options("conll", dir);
    check_allocations(&o);
}

static void count_without_memory(dataset *d, data_split split) {
    bool counted = false;
    long n = 0;
    for (; !counted; n++) {
        sr_failure why = {0};
        data_counts c;
        failing_malloc_begin(n);
        counted = data_count(d, split, &c, &why) == SR_OK;
        assert_int_equal(failing_malloc_end(), 0);
        if (!counted) check_failure(&why, SR_MEMORY, "memory");
    }
    assert_true(n > 1);
}

/* Counts of a set that was opened with enough memory. */
static void counts_survive(void **state) {
    (void)state;
    if (!failing_malloc_there()) skip();
    const char *dir = make_folder();
    write_text(dir, "train", "0 a b\n1 b c\n");
    write_text(dir, "valid", "1 a\n");
    data_options o = default_options("labelled", dir);
    o.survey = true;
    dataset *d = open_data(&o);
    count_without_memory(d, SPLIT_VALID);
    data_close(d);
    o = default_options("synth-images", "");
    o.limit = 50;
    d = open_data(&o);
    count_without_memory(d, SPLIT_TRAIN);
    count_without_memory(d, SPLIT_VALID);
    data_close(d);
}

/* Describes the found sets. *told: some file was not read; it has a reason, or is counted. */
static void describe_found(const data_found *found, char text[4096], bool *told) {
    const folder_files *f = &found->files;
    *text = 0, *told = f->others || f->links;
    for (int i = 0; i < f->count; i++) *told = *told || *f->file[i].why.text;
    for (int i = 0; i < found->findings; i++) {
        const data_finding *set = &found->finding[i];
        snprintf(text + strlen(text), 4096 - strlen(text), "%s", set->data);
        for (int k = 0; k < set->options; k++)
            snprintf(text + strlen(text), 4096 - strlen(text), " %s", set->option[k].value);
    }
}

/* A system call fails: the same sets are found, or the failure is reported. */
static void finding_tells(const char *dir, long least) {
    static data_found found;
    char whole[4096], text[4096];
    bool reached = true, told;
    sr_failure why = {0};
    check_ok(data_find(dir, &found, &why), &why);
    describe_found(&found, whole, &told);
    assert_false(told);
    data_found_free(&found);
    long k = 1;
    for (; reached; k++) {
        why = (sr_failure){0};
        const int descriptors = check_descriptors();
        failing_begin(FAILING_SYSTEM, k);
        const sr_status status = data_find(dir, &found, &why);
        reached = failing_end();
        if (status != SR_OK) check_failure(&why, SR_IO, strerror(EIO));
        if (status == SR_OK) describe_found(&found, text, &told);
        if (status == SR_OK && !told && strcmp(text, whole) != 0)
            fail_msg("call %ld at 0x%zx: '%s', not '%s'", k, failing_offset, text, whole);
        data_found_free(&found);
        assert_int_equal(check_descriptors(), descriptors);
    }
    print_message("finding: %ld calls\n", k - 2);
    assert_true(k > least);
}

/* Without memory, a file or the folder is not read; nothing leaks. */
static void finding_survives(void **state) {
    (void)state;
    if (!failing_malloc_there()) skip();
    static data_found found;
    const char *dir = make_folder();
    write_text(dir, "train.txt.gz", "0 a b\n1 b c\n");
    write_text(dir, "valid", "1 a\n");
    write_in(dir, "train", "neg", "not a folder"), write_in(dir, "train/pos", "a", "text\n");
    write_in(dir, "train/bad", "b", "text\n");
    write_text(dir, "test.de", "a\n"), write_text(dir, "test.en", "b\n");
    char link[FILE_PATH], target[FILE_PATH];
    snprintf(link, sizeof link, "%s/linked", dir), snprintf(target, sizeof target, "%s/valid", dir);
    assert_int_equal(symlink(target, link), 0);
    finding_tells(dir, 20);
    finding_tells(target, 3);
    long n = 0;
    do {
        sr_failure why = {0};
        failing_malloc_begin(n++);
        if (data_find(dir, &found, &why) != SR_OK) assert_true(*why.text != 0);
        data_found_free(&found);
        assert_int_equal(failing_malloc_end(), 0);
    } while (failing_malloc_reached());
    assert_true(n > 5);
}

static void every_row_was_tried(void **state) {
    (void)state;
    if (!failing_malloc_there()) skip();
    for (int i = 0; data_name(i); i++) {
        char word[64];
        snprintf(word, sizeof word, " %s ", data_name(i));
        if (!strstr(tried, word)) fail_msg("%s has no case above", data_name(i));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_survive),
        cmocka_unit_test(parallel_text_survives),
        cmocka_unit_test(tabbed_text_survives),
        cmocka_unit_test(dictionaries_and_steps_survive),
        cmocka_unit_test(generated_pairs_survive),
        cmocka_unit_test(running_text_survives),
        cmocka_unit_test(running_bytes_survive),
        cmocka_unit_test(trees_survive),
        cmocka_unit_test(classified_sentences_survive),
        cmocka_unit_test(layouts_of_labels_survive),
        cmocka_unit_test(tagged_words_survive),
        cmocka_unit_test(counts_survive),
        cmocka_unit_test(finding_survives),
        cmocka_unit_test(every_row_was_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
