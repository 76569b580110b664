/* fuzz.c -- see fuzz.h. */
#define _XOPEN_SOURCE 700 /* nftw */
#include "fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- files */

static char folder[64];

static int remove_one(const char *path, const struct stat *s, int flag, struct FTW *at) {
    (void)s, (void)flag, (void)at;
    return remove(path);
}

static void remove_folder(void) {
    if (nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        fprintf(stderr, "fuzz: %s is left\n", folder);
}

const char *fuzz_folder(void) {
    if (*folder) return folder;
    snprintf(folder, sizeof folder, "%s/statrec-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder)) {
        perror("fuzz: mkdtemp");
        abort();
    }
    atexit(remove_folder);
    return folder;
}

const char *fuzz_path(const char *name) {
    static char path[8][256];
    static int next;
    char *at = path[next++ % 8];
    snprintf(at, sizeof path[0], "%s/%s", fuzz_folder(), name);
    return at;
}

static void write_closed(int fd, const void *bytes, size_t size) {
    fuzz_expect(fd >= 0 && write(fd, bytes, size) == (ssize_t)size && close(fd) == 0,
                "a file could not be written");
}

const char *fuzz_store(const char *name, const void *bytes, size_t size) {
    const char *path = fuzz_path(name);
    write_closed(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), bytes, size);
    return path;
}

const char *fuzz_empty_folder(const char *name) {
    const char *path = fuzz_path(name);
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* before the first input it is missing */
    fuzz_expect(mkdir(path, 0700) == 0, "a folder could not be made");
    return path;
}

/* Whether the name has at most `folders` folders and a file, and no part that is "", "." or "..". A
 * "/" may end it. */
static bool stays_below(const char *name, int folders) {
    for (; *name; folders--) {
        const size_t length = strcspn(name, "/");
        if (length == 0 || folders < 0 || strspn(name, ".") == length) return false;
        name += length + (name[length] == '/');
    }
    return true;
}

void fuzz_store_named(const char *below, fuzz_part part, int folders) {
    const uint8_t *end = memchr(part.byte, '\n', part.size);
    char name[64], path[256];
    const size_t length = end ? (size_t)(end - part.byte) : 0;
    if (length == 0 || length >= sizeof name) return;
    memcpy(name, part.byte, length);
    name[length] = 0;
    if (strlen(name) != length || !stays_below(name, folders)) return;
    snprintf(path, sizeof path, "%s/%s", fuzz_path(below), name);
    for (char *slash = path + strlen(path) - length; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(path, 0700); /* it may be there, also as a file */
    }
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd >= 0) write_closed(fd, end + 1, part.size - length - 1);
}

/* -- parts of an input */

static const char between[] = "%%%%\n";
enum { BETWEEN = sizeof between - 1 };

int fuzz_split(const uint8_t *data, size_t size, fuzz_part part[FUZZ_PARTS]) {
    int count = 0;
    size_t first = 0, at = 0;
    while (at + BETWEEN <= size && count < FUZZ_PARTS - 1) {
        if (memcmp(data + at, between, BETWEEN) != 0) {
            at++;
            continue;
        }
        part[count++] = (fuzz_part){data + first, at - first};
        first = at += BETWEEN;
    }
    part[count++] = (fuzz_part){data + first, size - first};
    return count;
}

char *fuzz_text(fuzz_part part) {
    char *text = malloc(part.size + 1);
    fuzz_expect(text != NULL, "no memory for a text");
    if (part.size > 0) memcpy(text, part.byte, part.size);
    text[part.size] = 0;
    return text;
}

/* HDF5 1.10 leaks a little memory for each file that it rejects. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5";
}

/* -- expectations */

void fuzz_expect(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

void fuzz_expect_reason(bool failed, const sr_failure *why) {
    fuzz_expect(failed == (why->status != SR_OK), "a failure without a status, or the reverse");
    if (!failed) return;
    fuzz_expect(why->status != SR_MEMORY, why->text); /* a size claimed by the input was believed */
    for (const char *c = why->text; *c; c++)
        if (((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7f) {
            fprintf(stderr, "fuzz: byte %d in the message: %s\n", *c, why->text);
            abort();
        }
    fuzz_expect(strlen(why->text) > 4, "a failure without a reason");
}

/* -- commands */

enum { ARGUMENTS = 32 };

/* Standard output to nowhere from now on: commands flush it but leave the file open. */
static void silence(void) {
    static bool done;
    if (done) return;
    done = true;
    fuzz_expect(freopen("/dev/null", "w", stdout) != NULL, "no /dev/null");
}

int fuzz_command(int (*command)(const tool *), const char *const *argument) {
    char *argv[ARGUMENTS + 1] = {0}, *kept[ARGUMENTS];
    int argc = 0;
    silence();
    for (; argument[argc] && argc < ARGUMENTS; argc++) {
        kept[argc] = argv[argc] = strdup(argument[argc]);
        fuzz_expect(kept[argc] != NULL, "no memory for the arguments");
    }
    const tool t = {.name = "statrec", .argc = argc, .argv = argv};
    const int status = command(&t);
    for (int i = 0; i < argc; i++) free(kept[i]); /* the command may have moved argv */
    fuzz_expect(status >= TOOL_DONE && status <= TOOL_DIVERGED, "an exit status of no meaning");
    return status;
}
