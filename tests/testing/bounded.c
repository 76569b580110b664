/* bounded.c -- see bounded.h. */
#define _DEFAULT_SOURCE /* wait4 */
#include "testing/bounded.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/programs.h"

enum { SECONDS = 20, WAIT = 200, WORDS = 48 };

/* In the child. One thread, because threads reserve memory that does not depend on the file. */
static void start(const char *words, const char *path, const char *output) {
    char line[1024], program[1200], *word[WORDS + 1] = {NULL};
    int count = 0;
    snprintf(line, sizeof line, "%s", words);
    for (char *at = strtok(line, " "); at && count < WORDS; at = strtok(NULL, " "))
        word[count++] = strcmp(at, "FILE") == 0 ? (char *)(uintptr_t)path : at;
    const int null = open("/dev/null", O_RDONLY),
              out = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (chdir(check_temporary()) != 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(126);
    setenv("OMP_NUM_THREADS", "1", 1), setenv("OPENBLAS_NUM_THREADS", "1", 1);
    snprintf(program, sizeof program, "%s/%s", program_directory(), word[0]);
    setrlimit(RLIMIT_CPU, &(struct rlimit){SECONDS, SECONDS + 1});
    alarm(WAIT);
    execv(program, word);
    _exit(127);
}

static char *read_text(const char *path) {
    char *text = calloc(1, 1 << 20);
    FILE *in = fopen(path, "r");
    assert_true(text && in);
    for (size_t i = 0, got = fread(text, 1, (1 << 20) - 1, in); i < got; i++)
        if (!text[i]) text[i] = '?';
    fclose(in);
    return text;
}

bounded_result bounded_run(const char *words, const char *path) {
    char output[1200];
    struct rusage used;
    int state = 0;
    snprintf(output, sizeof output, "%s/bounded", check_temporary());
    program_directory(); /* fails the test here, not in the child */
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) start(words, path, output);
    assert_int_equal(wait4(child, &state, 0, &used), child);
    return (bounded_result){.status = WIFEXITED(state) ? WEXITSTATUS(state) : -1,
                            .signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0,
                            .memory = (int64_t)used.ru_maxrss * 1024,
                            .text = read_text(output)};
}

void bounded_free(bounded_result *r) {
    free(r->text);
    *r = (bounded_result){0};
}

/* Memory of the address sanitizer: 256 MiB of freed blocks, and the shadow map. */
#ifdef __SANITIZE_ADDRESS__
enum { SANITIZER = 512 };
#else
enum { SANITIZER = 0 };
#endif

int64_t bounded_memory(const char *path) {
    struct stat s;
    return ((int64_t)(64 + SANITIZER) << 20) + (stat(path, &s) == 0 ? 4 * (int64_t)s.st_size : 0);
}
