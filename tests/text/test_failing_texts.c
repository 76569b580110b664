/* test_failing_texts.c -- reads texts, plain and compressed, whole and by lines, while one call
 * fails: an allocation, a system call, zlib or libzip. Each read returns the text or reports why it
 * failed, with the file name. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#define DEEDS_WITHOUT_HDF5
#include <unicase.h>
#include <zip.h>
#include <zlib.h>

#include "testing/failing_deeds.h"
#include "text/bpe/bpe_step.h"
#include "text/file_bytes.h"
#include "text/text_lines.h"

/* -- libraries that unpack: their calls from the text of the program */

zip_t *zip_open(const char *a, int b, int *code) {
    FAILING_REAL(zip_t *, zip_open, (const char *, int, int *));
    if (!failing_now(FAILING_ALLOCATIONS, __builtin_return_address(0)))
        return original.call(a, b, code);
    *code = ZIP_ER_MEMORY;
    return NULL;
}

int zip_stat_index(zip_t *a, zip_uint64_t b, zip_flags_t c, zip_stat_t *d) {
    FAILING_REAL(int, zip_stat_index, (zip_t *, zip_uint64_t, zip_flags_t, zip_stat_t *));
    return failing_now(FAILING_SYSTEM, __builtin_return_address(0)) ? -1
                                                                    : original.call(a, b, c, d);
}

zip_file_t *zip_fopen_index(zip_t *a, zip_uint64_t b, zip_flags_t c) {
    FAILING_REAL(zip_file_t *, zip_fopen_index, (zip_t *, zip_uint64_t, zip_flags_t));
    return failing_now(FAILING_SYSTEM, __builtin_return_address(0)) ? NULL : original.call(a, b, c);
}

zip_int64_t zip_fread(zip_file_t *a, void *b, zip_uint64_t c) {
    FAILING_REAL(zip_int64_t, zip_fread, (zip_file_t *, void *, zip_uint64_t));
    return failing_now(FAILING_SYSTEM, __builtin_return_address(0)) ? -1 : original.call(a, b, c);
}

int inflate(z_stream *a, int b) {
    FAILING_REAL(int, inflate, (z_stream *, int));
    return failing_now(FAILING_ALLOCATIONS, __builtin_return_address(0)) ? Z_MEM_ERROR
                                                                         : original.call(a, b);
}

int inflateInit2_(z_stream *a, int b, const char *c, int d) {
    FAILING_REAL(int, inflateInit2_, (z_stream *, int, const char *, int));
    return failing_now(FAILING_ALLOCATIONS, __builtin_return_address(0))
               ? Z_MEM_ERROR
               : original.call(a, b, c, d);
}

gzFile gzdopen(int a, const char *b) {
    FAILING_REAL(gzFile, gzdopen, (int, const char *));
    return failing_now(FAILING_ALLOCATIONS, __builtin_return_address(0)) ? NULL
                                                                         : original.call(a, b);
}

/* Whether the last gzread failed: zlib reports that through gzerror. */
static int gz_failure;

int gzread(gzFile a, void *b, unsigned c) {
    FAILING_REAL(int, gzread, (gzFile, void *, unsigned));
    const void *caller = __builtin_return_address(0);
    gz_failure = failing_now(FAILING_SYSTEM, caller)        ? Z_ERRNO
                 : failing_now(FAILING_ALLOCATIONS, caller) ? Z_MEM_ERROR
                                                            : Z_OK;
    return gz_failure ? -1 : original.call(a, b, c);
}

const char *gzerror(gzFile a, int *code) {
    FAILING_REAL(const char *, gzerror, (gzFile, int *));
    const char *text = original.call(a, code);
    if (gz_failure) *code = gz_failure;
    return text;
}

uint8_t *u8_tolower(const uint8_t *a, size_t b, const char *c, uninorm_t d, uint8_t *e, size_t *f) {
    FAILING_REAL(uint8_t *, u8_tolower,
                 (const uint8_t *, size_t, const char *, uninorm_t, uint8_t *, size_t *));
    return failing_now(FAILING_ALLOCATIONS, __builtin_return_address(0))
               ? NULL
               : original.call(a, b, c, d, e, f);
}

/* -- texts */

enum { SIZE = 200000 };
static char text[SIZE], got[SIZE + 1];
static size_t size;

static const char *path_of(const char *name) {
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", check_temporary(), name);
    return path;
}

static sr_status read_file(const char *path, sr_failure *why) {
    file_bytes f;
    const sr_status status = file_read(path, &f, why);
    if (status != SR_OK) return status;
    size = f.size;
    memcpy(got, f.byte, size < SIZE ? size : SIZE);
    file_free(&f);
    return SR_OK;
}

static sr_status read_lines(const char *path, sr_failure *why) {
    text_lines *t = text_lines_open(path, why);
    if (!t) return why->status;
    const char *line = "";
    sr_status status = SR_OK;
    for (size = 0; status == SR_OK && line;) {
        size_t length;
        status = text_lines_next(t, &line, &length, why);
        if (status != SR_OK || !line) continue;
        if (size + length > SIZE) complain("lines", "more than were written");
        memcpy(got + size, line, length);
        size += length;
    }
    text_lines_close(t);
    return status;
}

static void look(const char *after, sr_status status) {
    if (status == SR_OK && (size != SIZE || memcmp(got, text, SIZE) != 0))
        complain(after, "another text of %zu bytes", size);
}

#define READ(function, name, file)                                                                 \
    static sr_status name(sr_failure *why) {                                                       \
        return function(path_of(file), why);                                                       \
    }
READ(read_file, read_plain, "a.txt")
READ(read_file, read_gzip, "a.gz")
READ(read_file, read_zip, "a.zip")
READ(read_lines, lines_plain, "a.txt")
READ(read_lines, lines_gzip, "a.gz")
READ(read_lines, lines_zip, "a.zip")

/* A cut archive is a fault of the data, whatever fails. SR_OK: it was found. */
static sr_status read_cut(sr_failure *why) {
    sr_failure own = {0};
    file_bytes f;
    if (file_read(path_of("cut.zip"), &f, &own) == SR_OK) complain("read", "a cut archive");
    if (strstr(own.text, "truncated ZIP archive")) return SR_OK;
    *why = own;
    return own.status;
}

/* -- steps of lines */

static const char lines[] = "Die \316\243\316\221\316\243 DER Hund, der Hund.\nEIN Hund\n";

/* The text after the steps; with learnt merges last. */
static sr_status transform(sr_failure *why) {
    const file_bytes from = {(uint8_t *)(uintptr_t)lines, sizeof lines - 1, "lines"};
    file_bytes small = {0}, cut = {0}, pieces = {0};
    const line_transform lower = lowercase_step(), english = basic_english_step();
    line_transform merges = bpe_step("", 5, why);
    sr_status status = merges.apply ? SR_OK : why->status;
    if (status == SR_OK) status = line_transform_text(&lower, 0, &from, &small, why);
    if (status == SR_OK) status = line_transform_text(&english, 0, &small, &cut, why);
    if (status == SR_OK) status = merges.begin(merges.self, &cut, 1, 2, why);
    if (status == SR_OK) status = line_transform_text(&merges, 0, &cut, &pieces, why);
    size = status == SR_OK ? pieces.size : 0;
    if (size) memcpy(got, pieces.byte, size);
    file_free(&small), file_free(&cut), file_free(&pieces);
    if (merges.free) merges.free(merges.self);
    return status;
}

static void look_at_lines(const char *after, sr_status status) {
    static const char want[] = "d@@ i@@ e \317\203@@ \316\261@@ \317\202 der hund , der hund . \n"
                               "e@@ i@@ n hund\n";
    if (status == SR_OK && (size != sizeof want - 1 || memcmp(got, want, size) != 0))
        complain(after, "'%.*s'", (int)size, got);
}

static const deed transforming = {"transform", transform, look_at_lines, NULL, "", false};

static const deed deeds[] = {
    {"read", read_plain, look, NULL, "a.txt", false},
    {"read gzip", read_gzip, look, NULL, "a.gz", false},
    {"read ZIP", read_zip, look, NULL, "a.zip", false},
    {"read a cut ZIP", read_cut, NULL, NULL, "cut.zip", false},
    {"lines", lines_plain, look, NULL, "a.txt", false},
    {"lines of gzip", lines_gzip, look, NULL, "a.gz", false},
    {"lines of ZIP", lines_zip, look, NULL, "a.zip", false},
};

static void fail_all(failing_kind kind) {
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++) deed_fail_each(&deeds[i], kind);
}

static void allocations(void **state) {
    (void)state;
    fail_all(FAILING_ALLOCATIONS);
    deed_fail_each(&transforming, FAILING_ALLOCATIONS);
    look_at_lines("transform", SR_OK); /* lines of the run without a failure */
}

static void calls(void **state) {
    (void)state;
    fail_all(FAILING_SYSTEM);
}

static int write_texts(void **state) {
    (void)state;
    for (int i = 0; i < SIZE; i++)
        text[i] = i % 50 == 49 ? '\n' : (char)('a' + (i % 26 * i + i / 7) % 26);
    FILE *plain = fopen(path_of("a.txt"), "wb");
    assert_int_equal(fwrite(text, 1, SIZE, plain), SIZE);
    assert_int_equal(fclose(plain), 0);
    gzFile gz = gzopen(path_of("a.gz"), "wb");
    assert_int_equal(gzwrite(gz, text, SIZE), SIZE);
    assert_int_equal(gzclose(gz), Z_OK);
    zip_t *zip = zip_open(path_of("a.zip"), ZIP_CREATE, NULL);
    assert_non_null(zip);
    assert_true(zip_file_add(zip, "a.txt", zip_source_buffer(zip, text, SIZE, 0), 0) == 0);
    assert_int_equal(zip_close(zip), 0);
    char command[1400];
    snprintf(command, sizeof command, "cd '%s' && head -c 999 a.zip >cut.zip", check_temporary());
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations),
        cmocka_unit_test(calls),
    };
    return cmocka_run_group_tests(tests, write_texts, NULL);
}
