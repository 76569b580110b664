/* failing_deeds.h -- runs an operation repeatedly; each time a different call from the program's
 * code fails (failing_calls.h). A failing operation gives its reason in one line, with the name of
 * a file; after a failed allocation the line contains "memory". Nothing stays open or allocated.
 * The operation itself checks a successful result. */
#ifndef TESTS_FAILING_DEEDS_H
#define TESTS_FAILING_DEEDS_H

#include <stdio.h>
#include <sys/wait.h>

#include "testing/check.h"
#include "testing/child_complaint.h"
#ifdef DEEDS_WITHOUT_HDF5 /* for modules without HDF5 */
#include "testing/failing_calls.h"
#else
#include "testing/failing_hdf5.h"
#endif

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

enum { DEEDS_TOGETHER = 24 }; /* calls that fail in one process */

typedef struct deed {
    const char *name;
    sr_status (*run)(sr_failure *why);
    void (*look)(const char *after, sr_status status); /* NULL: no check */
    void (*prepare)(void);                             /* before each; may be NULL */
    const char *file; /* part of the name of each file in a failure message; "": any, or none */
    bool writes;      /* after a failed write HDF5 is not called again, so its file may stay open */
} deed;

static bool deed_is_child;

static const char *const failing_kind_names[] = {"allocation", "call of the system", "call of HDF5",
                                                 "stream"};

/* How many objects HDF5 has open. */
static ssize_t deed_objects(void) {
#ifdef DEEDS_WITHOUT_HDF5
    return 0;
#else
    return H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL);
#endif
}

/* Lists the open files. */
static void deed_complain_of_open(const char *after, int more) {
    char command[64];
    snprintf(command, sizeof command, "ls -l /proc/%d/fd >&2", (int)getpid());
    if (system(command) == 0) complain(after, "%d files are open", more);
}

static void deed_check_leaks(const char *after, int left, bool closed) {
    if (closed && left) complain(after, "%d blocks are not freed", left);
#ifdef __SANITIZE_ADDRESS__
    if (__lsan_do_recoverable_leak_check()) complain(after, "a leak");
#endif
}

static void deed_fail_one(const deed *d, failing_kind kind, long k) {
    char after[300];
    sr_failure why = {0};
    if (d->prepare) d->prepare();
    const int descriptors = check_descriptors();
    const ssize_t objects = deed_objects();
    failing_begin(kind, k);
    const sr_status status = d->run(&why);
    const bool reached = failing_end();
    const int left = failing_left();
    snprintf(after, sizeof after, "%s, %s %ld at 0x%zx of the text: %s: %.90s", d->name,
             failing_kind_names[kind], k, failing_offset, sr_status_name(status), why.text);
    if (status != SR_OK) complain_unless_told(after, d->file, &why);
    if (status != SR_OK && kind == FAILING_ALLOCATIONS && !strstr(why.text, "memory"))
        complain(after, "names no memory");
    if (!reached && status != SR_OK) complain(after, "not reached: %s", why.text);
    const int more = check_descriptors() - descriptors;
    const bool closed = status == SR_OK || !d->writes || more == 0;
    if (closed && more != 0) deed_complain_of_open(after, more);
    if (closed && deed_objects() != objects) complain(after, "HDF5 has objects open");
    deed_check_leaks(after, left, closed);
    if (d->look) d->look(after, status);
}

/* An assertion of cmocka in the child would return to the test runner. This handler ends the child
 * before the parent's exit handlers, which remove its files. */
static void deed_end_child(void) {
    _exit(1);
}

/* Fails each call in turn. HDF5 keeps objects that it could not close, so each process runs a part
 * of the calls. Returns whether the child found no fault; it stops at the first. */
static bool deed_fail_some(const deed *d, failing_kind kind, const long *call, int count) {
    int status;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        atexit(deed_end_child);
        deed_is_child = true;
        for (int i = 0; i < count; i++) deed_fail_one(d, kind, call[i]);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        fprintf(stderr, "%s, after %s %ld: signal %d\n", d->name, failing_kind_names[kind], call[0],
                WTERMSIG(status));
    return status == 0;
}

/* Notes the calls of an operation that does not fail. */
static void deed_note(const deed *d, failing_kind kind) {
    sr_failure why = {0};
    if (deed_is_child) _exit(1);
    if (d->prepare) d->prepare();
    failing_begin(kind, 0);
    check_ok(d->run(&why), &why);
    failing_end();
}

static void deed_fail_list(const deed *d, failing_kind kind, const long *call, int count) {
    int faults = 0;
    for (int i = 0; i < count; i += DEEDS_TOGETHER) {
        const int rest = count - i;
        faults += !deed_fail_some(d, kind, call + i, rest < DEEDS_TOGETHER ? rest : DEEDS_TOGETHER);
    }
    printf("%s: %d places, %d calls failed: %s\n", d->name, failing_places, count,
           failing_kind_names[kind]);
    if (faults) fail_msg("%s: %d faults", d->name, faults);
}

/* The first, the second and the last call of each call site. */
static inline void deed_fail_each(const deed *d, failing_kind kind) {
    static long call[3 * FAILING_PLACES];
    deed_note(d, kind);
    deed_fail_list(d, kind, call, failing_list(call));
}

/* The first call of each call site that no earlier operation reached. */
static inline void deed_fail_new(const deed *d, failing_kind kind) {
    static const void *known[FAILING_KINDS][FAILING_PLACES];
    static int all[FAILING_KINDS];
    static long call[FAILING_PLACES];
    int count = 0;
    deed_note(d, kind);
    for (int i = 0; i < failing_places; i++) {
        const failing_place *p = &failing_found[i];
        int at = 0;
        while (at < all[kind] && known[kind][at] != p->caller) at++;
        if (at < all[kind]) continue;
        assert_true(at < FAILING_PLACES);
        known[kind][all[kind]++] = p->caller;
        call[count++] = p->first;
    }
    qsort(call, (size_t)count, sizeof *call, failing_order);
    deed_fail_list(d, kind, call, count);
}

/* Every call, of an operation that makes few. */
static inline void deed_fail_all(const deed *d, failing_kind kind) {
    static long call[3 * FAILING_PLACES];
    deed_note(d, kind);
    const int count = (int)failing_made;
    assert_in_range(count, kind != FAILING_ALLOCATIONS, 3 * FAILING_PLACES);
    for (int i = 0; i < count; i++) call[i] = i + 1;
    deed_fail_list(d, kind, call, count);
}

#endif
