/* test_file_kind.c -- bytes that identify a kind of file, and bytes that must not (cli/file_kinds
 * tries every kind in every input). */
#include <string.h>

#include "base/file_kind.h"
#include "testing/check.h"

static const char *name_of(const void *bytes, size_t size) {
    const file_kind *k = file_kind_of(bytes, size);
    return k ? k->name : "";
}
#define NAME(text) name_of(text, sizeof(text) - 1)

static void texts_are_of_no_kind(void **state) {
    (void)state;
    static const char *const text[] = {"",
                                       "P",
                                       "PK",
                                       "BZhang wrote it\n",
                                       "PAR1 and PAR2\n",
                                       "ARROW1 of three\n",
                                       "version 1\n",
                                       "2 4\nanna 1 2 3 4\n",
                                       "2 4\nM\374ller 1 2 3 4\n",
                                       "<mediawiki>\n",
                                       "<h>tml\n",
                                       "(dp\n",
                                       "\357\273\277words\n"};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        assert_string_equal(name_of(text[i], strlen(text[i])), "");
    char prose[FILE_KIND_BYTES];
    memset(prose, 'a', sizeof prose);
    memcpy(prose + 257, "ustar ", 6);
    assert_string_equal(name_of(prose, sizeof prose), "");
}

/* Bytes that end within a signature, and black images, have no kind either. */
static void short_files_are_of_no_kind(void **state) {
    (void)state;
    static const uint8_t zero[FILE_KIND_BYTES];
    static const char hdf5[] = "\x89HDF\r\n\x1a\n";
    assert_string_equal(name_of(zero, sizeof zero), "");
    for (size_t i = 0; i < sizeof hdf5 - 1; i++) assert_string_equal(name_of(hdf5, i), "");
    assert_string_equal(name_of(hdf5, sizeof hdf5 - 1), "an HDF5 file");
}

static void spellings_of_a_kind(void **state) {
    (void)state;
    assert_string_equal(NAME("\377\376"), "UTF-16 text");
    assert_string_equal(NAME("a\0b\0c\0d\0"), "UTF-16 text");
    assert_string_equal(NAME("\0a\0b\0c\0d"), "UTF-16 text");
    assert_string_equal(NAME("\357\273\277 \n<!docTYPE HTML>"), "an HTML page");
    assert_string_equal(NAME("<HTML lang=en>"), "an HTML page");
    assert_string_equal(NAME("\200\003}q\0"), "a Python pickle");
    assert_string_equal(NAME("\200\005\225\0"), "a Python pickle");
    assert_string_equal(NAME("PK\5\6"), "an empty ZIP archive");
    assert_string_equal(NAME("BZh91AY&SY"), "a bzip2 file");
}

static void the_path_is_in_the_advice(void **state) {
    (void)state;
    static const char xz[] = "\xfd"
                             "7zXZ\0";
    sr_failure why = {0};
    assert_int_equal(file_kind_check("a.xz", xz, 6, 0, "text", &why), SR_FORMAT);
    assert_string_equal(why.text, "a.xz: an xz file; wanted is text");
    assert_string_equal(why.hint, "`xz -dc a.xz > FILE` unpacks it");
    why = (sr_failure){0};
    file_kind_check("data_batch_1", "\200\002}q", 4, 0, "CIFAR's binary version", &why);
    assert_string_equal(why.hint, "take the binary or text version of the data; CIFAR's page has a "
                                  "\"binary version\"");
    why = (sr_failure){0};
    file_kind_check("a b;rm.xz", xz, 6, 0, "text", &why);
    assert_string_equal(why.hint, "`xz -dc ARCHIVE > FILE` unpacks it");
    assert_int_equal(file_kind_check("a", "\x89HDF\r\n\x1a\n", 8, ACCEPT(KIND_HDF5), "", NULL),
                     SR_OK);
    assert_int_equal(file_kind_check_path("/nowhere", 0, "text", NULL), SR_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_of_no_kind),
        cmocka_unit_test(short_files_are_of_no_kind),
        cmocka_unit_test(spellings_of_a_kind),
        cmocka_unit_test(the_path_is_in_the_advice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
