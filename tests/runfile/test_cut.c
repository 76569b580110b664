/* test_cut.c -- the rows left in a killed writer's file whose end is lost. Compared with a search
 * over all chunks. The reader must not query HDF5 for every chunk, since each query is slower than
 * the last. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <dlfcn.h>
#include <hdf5.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/sample_run.h"

enum { SITES = 4, WIDTH = 512 };

static long asked;

/* Overrides HDF5's function. */
herr_t H5Dget_chunk_info(hid_t set, hid_t space, hsize_t i, hsize_t *first, unsigned *filters,
                         haddr_t *at, hsize_t *bytes) {
    typedef herr_t getter(hid_t, hid_t, hsize_t, hsize_t *, unsigned *, haddr_t *, hsize_t *);
    union {
        void *symbol;
        getter *call;
    } next = {.symbol = dlsym(RTLD_NEXT, "H5Dget_chunk_info")};
    asked++;
    return next.call(set, space, i, first, filters, at, bytes);
}

/* Writes a run of `rows` rows whose writer is killed. Only every second site has mu, so that a
 * flush writes it in parts. */
static void make_killed(const char *path, int64_t rows, int64_t flush_steps) {
    static double value[WIDTH];
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true, o.flush_steps = flush_steps, o.flush_seconds = 1000;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char name[24];
        sr_recorder *r = sr_create(path, &o, NULL);
        for (int i = 0; i < SITES; i++) {
            snprintf(name, sizeof name, "site.%d", i);
            sr_add_site(
                r, &(sr_site){.size = sizeof(sr_site), .name = name, .norm = "bn", .width = WIDTH});
        }
        for (int64_t step = 1; step <= rows; step++) {
            sr_step row = {.size = sizeof(sr_step)};
            sr_begin_step(r, step);
            for (int i = 0; i < SITES; i++) {
                sr_put_vector(r, i, SR_mu_B, value);
                if (i % 2) sr_put_vector(r, i, SR_mu, value);
            }
            sr_end_step(r, &row);
        }
        sr_flush(r);
        kill(getpid(), SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Returns a dataset's rows before the first chunk past the end. */
static int64_t rows_of(hid_t file, const char *name, hsize_t end) {
    hsize_t dims[2], count, first[2], bytes;
    haddr_t at;
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set);
    assert_true(H5Sget_simple_extent_dims(space, dims, NULL) >= 0);
    if (H5Dget_num_chunks(set, space, &count) < 0) count = dims[0] = 0; /* its index is cut off */
    for (hsize_t i = 0; i < count; i++) {
        assert_true(H5Dget_chunk_info(set, space, i, first, NULL, &at, &bytes) >= 0);
        if (at + bytes > end && first[0] < dims[0]) dims[0] = first[0];
    }
    H5Sclose(space), H5Dclose(set);
    return (int64_t)dims[0];
}

static int64_t rows_by_looking(const char *path, hsize_t end) {
    static const char *const names[] = {"/vectors/step", "/vectors/mu_B", "/vectors/mu"};
    int64_t least = INT64_MAX;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_metadata_read_attempts(access, 1); /* else it waits for the missing bytes */
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, access);
    H5Pclose(access);
    assert_true(file >= 0);
    for (int i = 0; i < 3; i++) {
        int64_t rows = rows_of(file, names[i], end);
        if (rows < least) least = rows;
    }
    H5Fclose(file);
    return least;
}

/* Truncates the file further and further. Returns the number of different row counts. */
static int cut_down(const char *path, int cuts, long most_asked) {
    struct stat s;
    int64_t last = -1;
    int met = 0;
    assert_int_equal(stat(path, &s), 0);
    for (int i = 1; i < cuts; i++) {
        off_t end = s.st_size / cuts * (cuts - i) + 1234;
        sr_failure why = {0};
        assert_int_equal(truncate(path, end), 0);
        asked = 0;
        sr_runfile *f = sr_run_open(path, &why);
        if (!f) continue; /* no rows left: the index of a chunk is cut off */
        if (asked > most_asked) fail_msg("%ld chunks asked for", asked);
        int64_t rows = sr_run_get_info(f)->vectors;
        sr_run_close(f);
        assert_int_equal(rows, rows_by_looking(path, (hsize_t)end));
        met += rows != last;
        last = rows;
    }
    return met;
}

static void test_rows_left(void **state) {
    (void)state;
    const char *path = sample_path("cut.h5.part");
    const int64_t flush_steps[] = {7, 64, 200, 600};
    for (int i = 0; i < 4; i++) {
        make_killed(sample_path("cut.h5"), 600, flush_steps[i]);
        int met = cut_down(path, (int)check_places(40), 10000);
        printf("flushed every %lld steps: %d numbers of rows left\n", (long long)flush_steps[i],
               met);
        assert_true(met >= 3);
    }
}

static void test_few_questions(void **state) {
    (void)state;
    make_killed(sample_path("cut.h5"), 4000, 64); /* 125 chunk rows, 4 chunks each */
    assert_true(cut_down(sample_path("cut.h5.part"), (int)check_places(64), 200) > 1);
}

int main(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_left),
        cmocka_unit_test(test_few_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
