/* test_power.c -- a power failure or a kill at any moment of a run. This program replaces and
 * records the system calls that change a file. From them it builds possible states of the disk.
 * Each page of 4096 bytes written since the last fdatasync is old, new or in between. In each state
 * the rows of the last flush are readable, with the right values. Also tears the k-th write,
 * followed by a kill. STATREC_TORTURE: number of states, default 150; from 1000 on, every write. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <hdf5.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/damage.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { STEPS = 90, FLUSH = 8, PAGE = 4096, MOST = 1 << 20 };

/* -- the system's calls ---------------------------------------------------------------------- */

/* One call: bytes written at an offset; bytes NULL and size < 0: a new length `at`; else a sync.
 * flushed: steps committed by a flush before it. */
typedef struct call {
    unsigned char *bytes;
    long at, size;
    int64_t flushed;
} call;

static struct {
    bool on;
    call *call;
    int count, room;
    int64_t flushed;
    long torn;                      /* the write that is torn; 0: none */
    int directories;                /* folders that were synced */
    int synchronised, before_close; /* syncs of the file; those while it was written */
    int since;                      /* changes of the file after its last sync */
    int64_t *shown;                 /* steps flushed by a child before it is killed */
} note;

static void add_call(const void *bytes, long at, long size) {
    if (note.count == note.room) {
        note.room = 2 * note.room + 64;
        note.call = realloc(note.call, (size_t)note.room * sizeof *note.call);
    }
    call *c = &note.call[note.count++];
    *c = (call){.at = at, .size = size, .flushed = note.flushed};
    if (bytes) memcpy(c->bytes = malloc((size_t)size + 1), bytes, (size_t)size);
}

/* Applies only to the file under test: the tests' own files use other calls. */
static ssize_t put(int fd, const void *bytes, size_t size, off_t at) {
    note.since++;
    if (note.on) add_call(bytes, at, (long)size);
    if (note.torn && --note.torn == 0) {
        syscall(SYS_pwrite64, fd, bytes, size / 2, at);
        kill(getpid(), SIGKILL);
    }
    return (ssize_t)syscall(SYS_pwrite64, fd, bytes, size, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
    return put(fd, bytes, size, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t at) {
    return put(fd, bytes, size, at);
}

int ftruncate(int fd, off_t size) {
    if (note.on) add_call(NULL, size, -1);
    return (int)syscall(SYS_ftruncate, fd, size);
}

int ftruncate64(int fd, off_t size) {
    return ftruncate(fd, size);
}

int fdatasync(int fd) {
    struct stat s;
    if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode)) note.synchronised++, note.since = 0;
    if (note.on) add_call(NULL, 0, 0);
    return 0;
}

int fsync(int fd) {
    struct stat s;
    note.directories += fstat(fd, &s) == 0 && S_ISDIR(s.st_mode);
    return fdatasync(fd);
}

/* -- a run ----------------------------------------------------------------------------------- */

static void flushed(sr_recorder *r, int64_t step) {
    check_ok(sr_flush(r), sr_failed(r));
    note.flushed = step;
    if (note.shown) *note.shown = step;
}

static void record(const char *path, sr_sync sync) {
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0, o.flush_steps = 4000, o.flush_seconds = 1e6, o.sync = sync;
    o.force = true;
    sr_recorder *r = sample_begin(path, &o);
    for (int64_t step = 1; step <= STEPS; step++) {
        check_ok(sample_steps(r, step, step, 16), sr_failed(r));
        if (step % FLUSH == 0) flushed(r, step);
    }
    note.before_close = note.synchronised;
    check_ok(sr_close(r, &SR_INIT(sr_finish, .status = "complete"), &why), &why);
    note.flushed = STEPS;
    if (note.shown) *note.shown = STEPS;
}

/* All readable rows are right, and all flushed rows are readable. */
static void expect_rows(const char *path, int64_t least, const char *what) {
    sr_failure why = {0};
    sr_recovery count = SR_INIT(sr_recovery, .steps = 0);
    const char *copy = sample_path("recovered.h5");
    if (sr_run_recover(path, copy, true, -1, &count, &why) != SR_OK) {
        if (least > 0) fail_msg("%s: %d steps were flushed: %s", what, (int)least, why.text);
        return;
    }
    if (count.steps < least) fail_msg("%s: %d of %d steps", what, (int)count.steps, (int)least);
    for (int i = 0; i < 2; i++) {
        sr_runfile *f = sample_open(i ? copy : path);
        if (sr_run_get_info(f)->steps < least)
            fail_msg("%s: %d of %d steps", what, (int)sr_run_get_info(f)->steps, (int)least);
        sample_check(f, 1, 1);
        sr_run_close(f);
    }
}

/* -- power ----------------------------------------------------------------------------------- */

static uint64_t seed = 20;

static int draw(int below) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (int)((seed >> 33) % (uint64_t)below);
}

static void apply(unsigned char *disk, const call *c, long from, long end) {
    const long a = c->at > from ? c->at : from, b = c->at + c->size < end ? c->at + c->size : end;
    if (c->bytes && a < b) memcpy(disk + a, c->bytes + (a - c->at), (size_t)(b - a));
    if (!c->bytes && c->size < 0 && c->at < end)
        memset(disk + (c->at > from ? c->at : from), 0,
               (size_t)(end - (c->at > from ? c->at : from)));
}

static long length_after(long length, const call *c) {
    if (c->bytes) return c->at + c->size > length ? c->at + c->size : length;
    return c->size < 0 ? c->at : length;
}

/* Returns how many of `calls` calls reached a page. kind: any number; nearly all; hardly any; all
 * on one side of a border and none on the other. */
static int draw_seen(int kind, long page, long border, int calls) {
    if (kind == 1) return draw(16) ? calls : 0;
    if (kind == 2) return draw(16) ? 0 : calls;
    if (kind == 3) return page < border ? 0 : calls;
    if (kind == 4) return page < border ? calls : 0;
    return draw(3) ? (draw(2) ? calls : 0) : draw(calls + 1);
}

/* Builds the disk's state after `calls` calls. For calls since the last fdatasync, each page has a
 * random number of them. */
static long make_state(unsigned char *disk, int calls) {
    int last = calls;
    long length = 0, all = 0;
    while (last > 0 && (note.call[last - 1].bytes || note.call[last - 1].size < 0)) last--;
    memset(disk, 0, MOST);
    for (int i = 0; i < last; i++) {
        apply(disk, &note.call[i], 0, MOST);
        length = length_after(length, &note.call[i]);
    }
    all = length;
    for (int i = last; i < calls; i++) all = length_after(all, &note.call[i]);
    const int kind = draw(5);
    const long border = draw((int)(all / PAGE) + 1) * PAGE;
    for (long page = 0; page < MOST; page += PAGE) {
        const int kept = draw_seen(kind, page, border, calls - last);
        for (int i = last; i < last + kept; i++) apply(disk, &note.call[i], page, page + PAGE);
    }
    return draw(2) ? all : length;
}

static int states(void) {
    return (int)check_places(150);
}

/* Draws a moment. Every fourth one is after a change of the file's length, since these are few, or
 * among the last calls. */
static int draw_moment(void) {
    int calls = draw(4) ? draw(note.count) : note.count - 1 - draw(8);
    if (draw(4)) return 1 + calls;
    while (calls + 3 < note.count && (note.call[calls].bytes || note.call[calls].size == 0))
        calls++;
    return 1 + calls + draw(2);
}

static void test_power(void **state) {
    (void)state;
    const char *path = sample_path("run.h5"), *left = sample_path("left.h5.part");
    unsigned char *disk = malloc(MOST);
    int64_t most = 0;
    note.on = true, note.flushed = note.directories = 0;
    record(path, SR_SYNC_FLUSH);
    note.on = false;
    unlink(path);
    assert_int_equal(note.directories, 2); /* PATH.part is created, PATH is its final name */
    printf("%d calls that change the file\n", note.count);
    for (int i = 0; i < states(); i++) {
        char what[64];
        const int calls = draw_moment();
        const long length = make_state(disk, calls);
        const int64_t least = note.call[calls - 1].flushed;
        snprintf(what, sizeof what, "state %d, after %d calls", i, calls);
        damage_store(left, (char *)disk, (size_t)length);
        expect_rows(left, least, what);
        if (least > most) most = least;
    }
    assert_true(most > 4 * FLUSH);
    for (int i = 0; i < note.count; i++) free(note.call[i].bytes);
    free(note.call), free(disk);
    note.call = NULL, note.count = note.room = 0;
}

/* -- rows of /running ------------------------------------------------------------------------ */

enum { RUNNING_STEPS = 3 * SR_RUNNING_KEPT, FEATURES = 2048 };

/* alpha 0: the running mean is the last batch's, which is the step's number. */
static void record_running(const char *path) {
    static float x[FEATURES];
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0, o.vectors = false, o.flush_steps = 4000, o.flush_seconds = 1e6, o.force = true;
    sr_recorder *r = run_create(path, o);
    sr_add_site(r, &SR_INIT(sr_site, .name = "s", .family = SR_FAMILY_SIGMA, .width = FEATURES));
    for (int64_t step = 1; step <= RUNNING_STEPS; step++) {
        for (int i = 0; i < FEATURES; i++) x[i] = (float)step;
        sr_begin_step(r, step);
        sr_take_forward(r, 0, &SR_INIT(sr_tensor, x, SR_FLOAT32, 1, FEATURES, 1, NULL, 0), NULL);
        check_ok(sr_end_step(r, &SR_INIT(sr_step, .update = step)), sr_failed(r));
        flushed(r, step);
    }
    check_ok(sr_close(r, &SR_INIT(sr_finish, .status = "complete"), &why), &why);
}

/* Checks that rows with a step have its values; returns their number. */
static int check_running(const char *path, const char *what) {
    static double mu[SR_RUNNING_KEPT][FEATURES];
    int64_t step[SR_RUNNING_KEPT] = {0};
    hsize_t rows = 0;
    int found = 0;
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t steps = H5Dopen2(file, "/running/step", H5P_DEFAULT),
                values = H5Dopen2(file, "/running/mu", H5P_DEFAULT), space = H5Dget_space(steps);
    H5Sget_simple_extent_dims(space, &rows, NULL);
    assert_in_range(rows, 0, SR_RUNNING_KEPT);
    H5Dread(steps, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, step);
    H5Dread(values, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, mu);
    for (hsize_t i = 0; i < rows; i++) {
        found += step[i] >= 0;
        for (int k = 0; k < FEATURES && step[i] >= 0; k++)
            if (fabs(mu[i][k] - (double)step[i]) > 0)
                fail_msg("%s: mean %g in the row of step %d", what, mu[i][k], (int)step[i]);
    }
    H5Sclose(space), H5Dclose(values), H5Dclose(steps), H5Fclose(file);
    return found;
}

static void test_running(void **state) {
    (void)state;
    const char *path = sample_path("running.h5"), *left = sample_path("running_left.h5.part"),
               *copy = sample_path("running_copy.h5");
    unsigned char *disk = malloc(MOST);
    int rows = 0;
    note.on = true, note.flushed = 0;
    record_running(path);
    note.on = false;
    for (int i = 0; i < states(); i++) {
        char what[64];
        sr_failure why = {0};
        const int calls = draw_moment();
        const long length = make_state(disk, calls);
        snprintf(what, sizeof what, "state %d, after %d calls", i, calls);
        damage_store(left, (char *)disk, (size_t)length);
        if (sr_run_recover(left, copy, true, -1, NULL, &why) == SR_OK)
            rows += check_running(copy, what);
    }
    assert_true(rows > 2 * states());
    for (int i = 0; i < note.count; i++) free(note.call[i].bytes);
    free(note.call), free(disk);
    note.call = NULL, note.count = note.room = 0;
}

/* -- torn writes ----------------------------------------------------------------------------- */

/* Returns whether the k-th write was reached. */
static bool tear(long k, sr_sync sync) {
    const char *path = sample_path("torn.h5");
    char part[300], what[64];
    int status;
    snprintf(part, sizeof part, "%s.part", path), snprintf(what, sizeof what, "write %ld", k);
    *note.shown = 0;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        note.torn = k;
        record(path, sync);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    const char *left = access(path, F_OK) == 0 ? path : part;
    if (access(left, F_OK) == 0) expect_rows(left, *note.shown, what);
    unlink(path), unlink(part);
    return WIFSIGNALED(status);
}

static void test_torn(void **state) {
    (void)state;
    const long step = 1 + 960 / check_places(16);
    int torn = 0;
    note.shown =
        mmap(NULL, sizeof *note.shown, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(note.shown, MAP_FAILED);
    for (int sync = 0; sync < 2; sync++)
        for (long k = 1; tear(k, sync ? SR_SYNC_NONE : SR_SYNC_FLUSH); k += step) torn++;
    printf("%d writes torn\n", torn);
    assert_true(torn > 40);
    munmap(note.shown, sizeof *note.shown);
    note.shown = NULL;
}

/* -- guarantees of --sync -------------------------------------------------------------------- */

static void test_promises(void **state) {
    (void)state;
    const char *path = sample_path("kept.h5");
    const struct {
        sr_sync sync;
        bool flushes, close;
    } promise[] = {
        {SR_SYNC_FLUSH, true, true}, {SR_SYNC_CLOSE, false, true}, {SR_SYNC_NONE, false, false}};
    for (int i = 0; i < 3; i++) {
        note.synchronised = note.since = note.directories = 0;
        record(path, promise[i].sync);
        unlink(path);
        if (promise[i].flushes)
            assert_true(note.before_close >= 2 * (STEPS / FLUSH));
        else
            assert_int_equal(note.before_close, 0);
        assert_int_equal(note.synchronised > note.before_close, promise[i].close);
        assert_int_equal(note.since == 0, promise[i].close); /* all of it is synced */
        assert_int_equal(note.directories, promise[i].flushes + promise[i].close);
    }
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promises),
        cmocka_unit_test(test_power),
        cmocka_unit_test(test_running),
        cmocka_unit_test(test_torn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
