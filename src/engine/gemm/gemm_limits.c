/* gemm_limits.c -- products under a limit of memory or threads (ulimit -v, -u; cgroups).
 *
 * OpenBLAS takes a buffer for each thread at its first product. Without memory for it, it tries
 * again for ever, and no signal of ours ends that. libgomp ends the program where a thread does not
 * start. So both are tried before the first product, and the buffers are taken while there is
 * memory. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "engine/gemm/gemm.h"

/* OpenBLAS: a buffer has 128 MiB of addresses. SPARE: memory of the libraries' first calls. */
enum { BUFFER_MIB = 129, STACK_MIB = 9, SPARE_MIB = 96, KEPT = 256 };

/* OpenBLAS has these, the reference BLAS has not. */
void *blas_memory_alloc(int position) __attribute__((weak));
void blas_memory_free(void *buffer) __attribute__((weak));

/* -- threads */

static void *wait_for_all(void *gate) {
    pthread_mutex_lock(gate); /* until the others have started, too */
    pthread_mutex_unlock(gate);
    return NULL;
}

/* Starts threads as libgomp will. */
static sr_status try_threads(int threads, sr_failure *why) {
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *thread = malloc((size_t)threads * sizeof *thread);
    int started = 1, failed = 0;
    if (!thread) return sr_fail(why, SR_MEMORY, "out of memory for %d threads", threads);
    pthread_mutex_lock(&gate);
    while (started < threads && !failed) {
        failed = pthread_create(&thread[started], NULL, wait_for_all, &gate);
        started += !failed;
    }
    pthread_mutex_unlock(&gate);
    for (int i = 1; i < started; i++) pthread_join(thread[i], NULL);
    free(thread);
    if (!failed) return SR_OK;
    sr_fail(why, SR_IO, "thread %d of %d does not start: %s", started + 1, threads,
            strerror(failed));
    sr_hint(why, "--threads %d, or raise the limits of processes and memory (ulimit -u, -v)",
            started);
    return SR_IO;
}

/* -- memory */

/* Bytes of the tightest limit of addresses; 0: none. */
static double address_limit(void) {
    static const int kind[] = {RLIMIT_AS, RLIMIT_DATA};
    double least = 0;
    for (size_t i = 0; i < sizeof kind / sizeof kind[0]; i++) {
        struct rlimit l;
        if (getrlimit(kind[i], &l) != 0 || l.rlim_cur == RLIM_INFINITY) continue;
        if (least == 0 || (double)l.rlim_cur < least) least = (double)l.rlim_cur;
    }
    return least;
}

static bool has_room(int64_t mib) {
    const size_t size = (size_t)mib << 20;
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED) return false;
    munmap(p, size);
    return true;
}

static sr_status try_memory(int threads, double limit, sr_failure *why) {
    const int64_t each = BUFFER_MIB + STACK_MIB, need = SPARE_MIB + threads * each;
    int fewer = threads - 1;
    if (has_room(need)) return SR_OK;
    while (fewer > 0 && !has_room(SPARE_MIB + fewer * each)) fewer--;
    sr_fail(why, SR_MEMORY,
            "memory limit of %.0f MiB: %d thread%s need%s %lld MiB more for matrix products",
            limit / 1048576, threads, threads == 1 ? "" : "s", threads == 1 ? "s" : "",
            (long long)need);
    if (fewer > 0)
        sr_hint(why, "--threads %d, or raise the limit (ulimit -v)", fewer);
    else
        sr_hint(why, "raise the limit (ulimit -v)");
    return SR_MEMORY;
}

/* OpenBLAS keeps its buffers. */
static void take_buffers(int threads) {
    void *buffer[KEPT];
    const int count = threads < KEPT ? threads : KEPT;
    if (!blas_memory_alloc || !blas_memory_free) return;
    for (int i = 0; i < count; i++) buffer[i] = blas_memory_alloc(0);
    for (int i = 0; i < count; i++) blas_memory_free(buffer[i]);
}

sr_status gemm_begin(int threads, sr_failure *why) {
    const double limit = address_limit();
    sr_status status = limit > 0 ? try_memory(threads, limit, why) : SR_OK;
    if (status == SR_OK) status = try_threads(threads, why);
    if (status != SR_OK) return status;
    gemm_setup(threads);
    if (limit > 0) take_buffers(threads);
    return SR_OK;
}
