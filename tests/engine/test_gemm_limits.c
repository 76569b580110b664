/* test_gemm_limits.c -- limits of threads and memory are reported in one line before the first
 * product. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/gemm/gemm.h"
#include "testing/check.h"

static int left = -1; /* threads that still start; -1: all */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument) {
    union {
        void *symbol;
        int (*call)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    } original = {.symbol = dlsym(RTLD_NEXT, "pthread_create")};
    if (left == 0) return EAGAIN;
    if (left > 0) left--;
    return original.call(thread, attributes, run, argument);
}

static void test_threads(void **state) {
    (void)state;
    sr_failure why = {0};
    left = 2; /* in addition to this thread */
    assert_int_equal(gemm_begin(5, &why), SR_IO);
    assert_string_equal(why.text, "thread 4 of 5 does not start: Resource temporarily unavailable");
    assert_non_null(strstr(why.hint, "--threads 3"));
    left = -1, why = (sr_failure){0};
    check_ok(gemm_begin(3, &why), &why);
}

/* Runs in a separate process; the exit status is gemm_begin's result. */
static void begin_within(rlim_t mib, int threads) {
    sr_failure why = {0};
    setrlimit(RLIMIT_AS, &(struct rlimit){mib << 20, mib << 20});
    const sr_status status = gemm_begin(threads, &why);
    if (status != SR_OK && !strstr(why.text, "memory limit of")) _exit(2);
    _exit(status == SR_OK ? 0 : strstr(why.hint, "--threads 1,") ? 3 : 1);
}

static void test_memory(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    print_message("skipped: the address sanitizer wants more addresses\n");
    skip();
#endif
    const struct {
        rlim_t mib;
        int threads, end;
    } row[] = {{100, 1, 1}, {4000, 1, 0}, {4000, 4, 0}, {600, 64, 1}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0) begin_within(row[i].mib, row[i].threads);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        const int end = WEXITSTATUS(status);
        if (row[i].end == 0 ? end != 0 : end != 1 && end != 3)
            fail_msg("%d MiB, %d threads: %d", (int)row[i].mib, row[i].threads, end);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
