/* replay.c -- usage: replay_NAME FILE|DIRECTORY...
 * Runs a target on its seeds and on inputs that once broke it. Discards the output of the code
 * under test; prints the name of an input that aborts. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

enum { SECONDS = 20, MEGABYTES = 512 }; /* for one input, beyond the program's own memory */

static int told = STDERR_FILENO;
static char current[4096];

static void name_input(int number) {
    static const char text[] = ": this input breaks the target\n";
    if (write(told, current, strlen(current)) > 0 && write(told, text, sizeof text - 1) > 0)
        fsync(told);
    signal(number, SIG_DFL);
    raise(number);
}

static void replay_file(const char *path) {
    FILE *f = fopen(path, "rb");
    struct stat s;
    if (!f || fstat(fileno(f), &s) != 0) {
        perror(path);
        exit(1);
    }
    const size_t size = (size_t)s.st_size;
    uint8_t *data = malloc(size + 1);
    if (!data || fread(data, 1, size, f) != size) abort();
    fclose(f);
    snprintf(current, sizeof current, "%s", path);
    alarm(SECONDS);
    LLVMFuzzerTestOneInput(data, size);
    alarm(0);
    free(data);
}

static int replay(const char *path) {
    struct dirent *entry;
    int count = 0;
    DIR *d = opendir(path);
    if (!d) {
        replay_file(path);
        return 1;
    }
    while ((entry = readdir(d))) {
        char name[4096];
        if (entry->d_name[0] == '.') continue;
        if (snprintf(name, sizeof name, "%s/%s", path, entry->d_name) < (int)sizeof name)
            replay_file(name);
        count++;
    }
    closedir(d);
    return count;
}

/* The sanitizer reserves more than any limit. */
static void limit_memory(void) {
#ifndef __SANITIZE_ADDRESS__
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld", &pages) != 1) return;
    fclose(f);
    const rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)MEGABYTES << 20);
    setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
#endif
}

int main(int argc, char **argv) {
    const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};
    int count = 0;
#ifndef __SANITIZE_ADDRESS__ /* the sanitizer reports more itself */
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], name_input);
#else
    signal(signals[5], name_input);
#endif
    told = dup(STDOUT_FILENO);
    if (told < 0 || LLVMFuzzerInitialize(&argc, &argv) != 0) return 1;
#ifndef __SANITIZE_ADDRESS__
    const int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0) return 1;
#endif
    limit_memory();
    for (int i = 1; i < argc; i++) count += replay(argv[i]);
    dprintf(told, "%d inputs\n", count);
    return count > 0 ? 0 : 1;
}
