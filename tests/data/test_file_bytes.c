/* Whole files, plain and gzip: the bytes read, and a message for every damage. */
#define _GNU_SOURCE 1 /* posix_openpt */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zip.h>
#include <zlib.h>

#include "data_files.h"
#include "text/file_bytes.h"
#include "text/text_lines.h"

static void fill(unsigned char *bytes, size_t size) {
    uint64_t state = 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        bytes[i] = i % 3 ? (unsigned char)(state >> 60) : 7;
    }
}

static void expect_bytes(const char *path, const void *want, size_t size) {
    file_bytes f;
    sr_failure why = {0};
    check_ok(file_read(path, &f, &why), &why);
    assert_int_equal(f.size, size);
    if (size) assert_memory_equal(f.byte, want, size);
    assert_int_equal(f.byte[size], 0);
    file_free(&f);
}

static void refuse(const char *path, sr_status status, const char *part) {
    file_bytes f;
    sr_failure why = {0};
    assert_int_equal(file_read(path, &f, &why), status);
    check_failure(&why, status, part);
    check_failure(&why, status, path);
    assert_null(f.byte);
}

static void reads_plain_and_gzip(void **state) {
    (void)state;
    const char *dir = make_folder();
    static const size_t sizes[] = {0, 1, 5, 4096, 70000};
    unsigned char bytes[70000];
    fill(bytes, sizeof bytes);
    for (int i = 0; i < 5; i++) {
        expect_bytes(write_bytes(dir, "a.bin", bytes, sizes[i]), bytes, sizes[i]);
        expect_bytes(write_bytes(dir, "a.bin.gz", bytes, sizes[i]), bytes, sizes[i]);
    }
}

static void reads_several_members(void **state) {
    (void)state;
    const char *dir = make_folder();
    size_t size, both;
    unsigned char *one = read_raw(write_text(dir, "one.gz", "first half, "), &size);
    unsigned char *two = read_raw(write_text(dir, "two.gz", "second half"), &both);
    memcpy(one + size, two, both);
    expect_bytes(write_raw(dir, "both.gz", one, size + both), "first half, second half", 23);
    one[size] = 'x';
    refuse(write_raw(dir, "both.gz", one, size + both), SR_FORMAT, "something else follows");
    free(one);
    free(two);
}

static void refuses_every_truncation(void **state) {
    (void)state;
    const char *dir = make_folder();
    unsigned char bytes[3000];
    size_t size;
    fill(bytes, sizeof bytes);
    unsigned char *packed = read_raw(write_bytes(dir, "a.gz", bytes, sizeof bytes), &size);
    for (size_t keep = 0; keep < size; keep++) {
        char part[64];
        snprintf(part, sizeof part, "byte %zu: ", keep);
        refuse(write_raw(dir, "b.gz", packed, keep), SR_FORMAT, part);
    }
    free(packed);
}

static void refuses_every_flipped_byte(void **state) {
    (void)state;
    const char *dir = make_folder();
    unsigned char bytes[600];
    size_t size;
    fill(bytes, sizeof bytes);
    unsigned char *packed = read_raw(write_bytes(dir, "a.gz", bytes, sizeof bytes), &size);
    for (size_t i = 0; i < size; i++) {
        if (i >= 3 && i < 10) continue; /* flags, time, system: no data */
        packed[i] ^= 0x41;
        refuse(write_raw(dir, "b.gz", packed, size), SR_FORMAT, "byte ");
        packed[i] ^= 0x41;
    }
    packed[size - 6] ^= 1;
    refuse(write_raw(dir, "b.gz", packed, size), SR_FORMAT, "incorrect data check");
    free(packed);
}

static void refuses_what_is_no_gzip(void **state) {
    (void)state;
    const char *dir = make_folder();
    refuse(write_raw(dir, "a.gz", "just text", 9), SR_FORMAT, "byte 0: not a gzip file");
    refuse(write_raw(dir, "a.gz", "", 0), SR_FORMAT, "byte 0: empty");
    char whole[300];
    snprintf(whole, sizeof whole, "%s: Is a directory", dir);
    refuse(dir, SR_IO, whole);
    refuse("/nonexistent/file", SR_IO, "No such file");
}

/* A pipe without a writer would wait for one; a device never ends. */
static void refuses_what_is_no_file(void **state) {
    (void)state;
    char path[FILE_PATH];
    snprintf(path, sizeof path, "%s/fifo", make_folder());
    assert_int_equal(mkfifo(path, 0600), 0);
    refuse(path, SR_IO, "not a regular file");
    refuse("/dev/zero", SR_IO, "not a regular file");
    expect_bytes("/dev/null", "", 0);
}

/* -- descriptors opened by the caller */

/* A pipe with these bytes; its writer waits, then exits. Returns its path (static). */
static const char *pipe_with(const void *bytes, size_t size, unsigned wait, int *fd) {
    static char path[64];
    int ends[2];
    fflush(NULL);
    assert_int_equal(pipe(ends), 0);
    const pid_t writer = fork();
    assert_true(writer >= 0);
    if (writer == 0) {
        usleep(wait);
        _exit(write(ends[1], bytes, size) == (ssize_t)size ? 0 : 1);
    }
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", *fd = ends[0]);
    return path;
}

static void end_pipe(int fd) {
    int status;
    close(fd);
    assert_true(wait(&status) > 0 && status == 0);
}

static void reads_pipes(void **state) {
    (void)state;
    unsigned char bytes[70000];
    int fd;
    fill(bytes, sizeof bytes);
    expect_bytes(pipe_with(bytes, sizeof bytes, 0, &fd), bytes, sizeof bytes);
    end_pipe(fd);
    char path[64];
    pipe_with("ab", 2, 0, &fd);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    expect_bytes(path, "ab", 2);
    end_pipe(fd);
    const int input = dup(STDIN_FILENO);
    pipe_with("abc", 3, 0, &fd);
    assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    expect_bytes("/dev/stdin", "abc", 3);
    assert_int_equal(dup2(input, STDIN_FILENO), STDIN_FILENO);
    close(input), end_pipe(fd);
}

/* A file opened by the caller is read to its end; a device other than a terminal is rejected. */
static void reads_terminals(void **state) {
    (void)state;
    char path[64];
    const int zero = open("/dev/zero", O_RDONLY), terminal = posix_openpt(O_RDWR | O_NOCTTY);
    snprintf(path, sizeof path, "/dev/fd/%d", zero);
    refuse(path, SR_IO, "not a regular file");
    close(zero);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) skip();
    const int fd = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_int_equal(write(terminal, "a b\n\004", 5), 5); /* ^D ends it */
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    expect_bytes(path, "a b\n", 4);
    close(fd), close(terminal);
}

static void nothing(int signal) {
    (void)signal;
}

/* A signal interrupts a read that waits; the read is repeated. */
static void goes_on_after_signals(void **state) {
    (void)state;
    const struct sigaction handled = {.sa_handler = nothing};
    const struct itimerval soon = {{0, 50000}, {0, 50000}}, never = {{0, 0}, {0, 0}};
    int fd;
    assert_int_equal(sigaction(SIGALRM, &handled, NULL), 0);
    const char *path = pipe_with("abc", 3, 200000, &fd);
    assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
    expect_bytes(path, "abc", 3);
    setitimer(ITIMER_REAL, &never, NULL), end_pipe(fd);
    const char *line;
    size_t length;
    sr_failure why = {0};
    text_lines *t = text_lines_open(pipe_with("abc\n", 4, 200000, &fd), &why);
    assert_non_null(t);
    assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
    check_ok(text_lines_next(t, &line, &length, &why), &why);
    setitimer(ITIMER_REAL, &never, NULL);
    assert_int_equal(length, 4);
    text_lines_close(t), end_pipe(fd);
}

/* -- ZIP archives */

/* An archive with the text in each of these entries; a name that ends in a slash is a folder. */
static const char *write_zip(const char *dir, const char *const names[], const char *body,
                             size_t size) {
    static char path[FILE_PATH];
    snprintf(path, sizeof path, "%s/a.zip", dir);
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
    assert_non_null(zip);
    for (int i = 0; names[i]; i++) {
        const bool folder = names[i][strlen(names[i]) - 1] == '/';
        zip_source_t *source = zip_source_buffer(zip, body, size, 0);
        const zip_int64_t added =
            folder ? zip_dir_add(zip, names[i], 0) : zip_file_add(zip, names[i], source, 0);
        if (folder) zip_source_free(source);
        assert_true(added >= 0);
    }
    assert_int_equal(zip_close(zip), 0);
    return path;
}

/* Entries that systems add to archives are not data files. */
static void reads_the_only_member(void **state) {
    (void)state;
    const char *dir = make_folder();
    static const char
        *const one[] = {"d/", "d/text", "__MACOSX/d/._text", ".DS_Store", "d/.DS_Store", NULL},
               *const none[] = {"d/", "__MACOSX/x", NULL}, *const two[] = {"a", "b", NULL},
               *const many[] = {"a", "b", "c", "d", NULL};
    expect_bytes(write_zip(dir, one, "a b\n", 4), "a b\n", 4);
    refuse(write_zip(dir, none, "a", 1), SR_FORMAT, "a ZIP archive of 0 files; wanted is one file");
    refuse(write_zip(dir, two, "a", 1), SR_FORMAT, "a ZIP archive of 2 files: a, b; wanted");
    refuse(write_zip(dir, many, "a", 1), SR_FORMAT,
           "a ZIP archive of 4 files: a, b, c ...; wanted");
}

/* An archive is recognized by its end, which a pipe does not give at once. */
static void refuses_zip_in_pipes(void **state) {
    (void)state;
    static const char *const one[] = {"text", NULL};
    size_t size;
    int fd;
    unsigned char *bytes = read_raw(write_zip(make_folder(), one, "a b\n", 4), &size);
    refuse(pipe_with(bytes, size, 0, &fd), SR_FORMAT, "ZIP archive");
    end_pipe(fd);
    free(bytes);
}

enum { MIB = 1 << 20, BOMB_MIB = 200 };

static void refuses_zip_that_expands(void **state) {
    (void)state;
    static const char *const one[] = {"text", NULL};
    char *zeros = calloc(BOMB_MIB, MIB);
    assert_non_null(zeros);
    refuse(write_zip(make_folder(), one, zeros, (size_t)BOMB_MIB * MIB), SR_FORMAT,
           "unpacks to over");
    free(zeros);
}

/* The size at the end is the size of the last member. */
static void refuses_members_that_expand(void **state) {
    (void)state;
    const char *dir = make_folder();
    char *zeros = calloc(BOMB_MIB, MIB);
    size_t size, last;
    assert_non_null(zeros);
    unsigned char *bytes = read_raw(write_bytes(dir, "a.gz", zeros, (size_t)BOMB_MIB * MIB), &size);
    unsigned char *end = read_raw(write_text(dir, "b.gz", "end"), &last);
    memcpy(bytes + size, end, last);
    refuse(write_raw(dir, "both.gz", bytes, size + last), SR_FORMAT, "unpacks to over");
    free(zeros), free(bytes), free(end);
}

/* The deflated size of zeros. A usual data file unpacks to at most some 20 times its bytes. */
static void refuses_what_is_too_small(void **state) {
    (void)state;
    char path[FILE_PATH], *zeros = calloc(MIB, 1);
    snprintf(path, sizeof path, "%s/zeros.gz", make_folder());
    gzFile gz = gzopen(path, "wb9");
    assert_true(gz && zeros);
    for (int i = 0; i < BOMB_MIB; i++) assert_int_equal(gzwrite(gz, zeros, MIB), MIB);
    assert_int_equal(gzclose(gz), Z_OK);
    free(zeros);
    struct rlimit limit = {200 * (rlim_t)MIB, RLIM_INFINITY}, before;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    limit.rlim_max = before.rlim_max;
#ifndef __SANITIZE_ADDRESS__ /* it reserves terabytes */
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
#endif
    refuse(path, SR_FORMAT, "unpacks to over");
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
}

static void finds_plain_before_gzip(void **state) {
    (void)state;
    const char *dir = make_folder();
    char path[FILE_PATH], name[FILE_PATH + 1];
    bool found;
    sr_failure why = {0};
    check_ok(file_find(dir, "a", path, &found, &why), &why);
    assert_false(found);
    assert_string_equal(strrchr(path, '/'), "/a");
    write_text(dir, "a.gz", "x");
    check_ok(file_find(dir, "a", path, &found, &why), &why);
    assert_true(found);
    assert_string_equal(strrchr(path, '/'), "/a.gz");
    write_text(dir, "a", "x");
    check_ok(file_find(dir, "a", path, &found, &why), &why);
    assert_string_equal(strrchr(path, '/'), "/a");
    char ended[FILE_PATH]; /* a folder with its slash; without one; a path from the root */
    snprintf(ended, sizeof ended, "%s/", dir);
    check_ok(file_find(ended, "a", path, &found, &why), &why);
    assert_true(found && !strstr(path, "//a"));
    snprintf(ended, sizeof ended, "%s/a", dir);
    check_ok(file_find("", ended, path, &found, &why), &why);
    assert_true(found);
    check_ok(file_find("", "not there", path, &found, &why), &why);
    assert_string_equal(path, "not there");
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_int_equal(file_find(dir, name, path, &found, &why), SR_USAGE);
    assert_null(text_lines_open(name, &why));
    check_failure(&why, SR_USAGE, "the path is longer");
}

static void refuses_to_look_below_a_file(void **state) {
    (void)state;
    const char *path = write_text(make_folder(), "a", "x");
    char found_path[FILE_PATH];
    bool found;
    sr_failure why = {0};
    assert_int_equal(file_find(path, "b", found_path, &found, &why), SR_IO);
    check_failure(&why, SR_IO, "Not a directory");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_plain_and_gzip),
        cmocka_unit_test(reads_several_members),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(refuses_every_flipped_byte),
        cmocka_unit_test(refuses_what_is_no_gzip),
        cmocka_unit_test(refuses_what_is_no_file),
        cmocka_unit_test(reads_pipes),
        cmocka_unit_test(reads_terminals),
        cmocka_unit_test(goes_on_after_signals),
        cmocka_unit_test(reads_the_only_member),
        cmocka_unit_test(refuses_zip_in_pipes),
        cmocka_unit_test(refuses_zip_that_expands),
        cmocka_unit_test(refuses_members_that_expand),
        cmocka_unit_test(refuses_what_is_too_small),
        cmocka_unit_test(finds_plain_before_gzip),
        cmocka_unit_test(refuses_to_look_below_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
