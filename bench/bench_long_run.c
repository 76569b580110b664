/* bench_long_run.c -- analyses of a run of a million steps against reading its file once.
 *
 *   bench_long_run BIN [STEPS] [SITES]    default 1000000 steps, 61 sites (5 GB); BIN holds the programs
 *
 * Makes a run file of STEPS steps x SITES BN sites with every scalar of each in $TMPDIR. A line each:
 *
 *   read      a process that reads every dataset of the file with H5Dread, in order, into one buffer
 *   stat-...  every stat- program of BIN with its defaults and as many names of that file as it wants
 *
 * from the file in memory, one after the other. `ratio` is the reading time divided by the analysis
 * time: the speed of the analysis relative to reading everything. `peak` is the resident size of
 * the process. A `#` line names each program that cannot run on such a file (vectors, spectra), or
 * was stopped after a minute.
 */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <hdf5.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/program/progress.h"
#include "noise_run.h"

enum { BUFFER = 4 << 20, MOST_SECONDS = 60 };

static void give_up(const char *what) {
    fprintf(stderr, "bench_long_run: %s\n", what);
    exit(1);
}

/* -- reading plainly --------------------------------------------------------------------------- */

/* Whole rows at a time, as many as the buffer takes. */
static herr_t read_rows(hid_t set, hid_t type, hid_t space, char *buffer) {
    hsize_t shape[8] = {0}, start[8] = {0}, count[8];
    const int rank = H5Sget_simple_extent_ndims(space);
    if (rank < 1 || rank > 8) return 0;
    H5Sget_simple_extent_dims(space, shape, NULL);
    size_t row = H5Tget_size(type);
    for (int i = 1; i < rank; i++) row *= shape[i];
    const hsize_t most = row < BUFFER ? BUFFER / row : 1;
    herr_t result = row > BUFFER ? -1 : 0;
    memcpy(count, shape, sizeof count);
    for (; start[0] < shape[0] && result >= 0; start[0] += count[0]) {
        count[0] = shape[0] - start[0] < most ? shape[0] - start[0] : most;
        hid_t memory = H5Screate_simple(rank, count, NULL);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        result = H5Dread(set, type, memory, space, H5P_DEFAULT, buffer);
        H5Sclose(memory);
    }
    return result;
}

static herr_t read_object(hid_t file, const char *name, const H5O_info_t *info, void *buffer) {
    if (info->type != H5O_TYPE_DATASET) return 0;
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    hid_t type = H5Dget_type(set), space = H5Dget_space(set);
    const herr_t result = H5Tis_variable_str(type) > 0 ? 0 : read_rows(set, type, space, buffer);
    H5Tclose(type), H5Sclose(space), H5Dclose(set);
    return result;
}

/* Exit status of the process. */
static int read_plainly(const char *path) {
    char *buffer = malloc(BUFFER);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (!buffer || file < 0) return 1;
    const herr_t result = H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, read_object, buffer);
    free(buffer);
    return H5Fclose(file) < 0 || result < 0;
}

/* -- timed processes --------------------------------------------------------------------------- */

/* program NULL: plain reading. second NULL: the program takes one run. */
static int be_process(const char *program, const char *path, const char *second) {
    const int null = open("/dev/null", O_WRONLY);
    if (!program) return read_plainly(path);
    if (null < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0) return 1;
    alarm(MOST_SECONDS);
    execl(program, program, path, second, (char *)NULL);
    return 127;
}

typedef struct cost {
    double wall, cpu, peak; /* seconds, MiB */
    bool ended_well, stopped;
} cost;

static double seconds_of(struct timeval t) {
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static cost time_one(const char *program, const char *path, const char *second) {
    struct rusage used;
    int state = 0;
    const double start = progress_clock();
    const pid_t pid = fork();
    if (pid == 0) _exit(be_process(program, path, second));
    if (pid < 0 || wait4(pid, &state, 0, &used) != pid) give_up("cannot start a process");
    return (cost){progress_clock() - start, seconds_of(used.ru_utime) + seconds_of(used.ru_stime),
                  (double)used.ru_maxrss / 1024, state == 0,
                  WIFSIGNALED(state) && WTERMSIG(state) == SIGALRM};
}

static void print_row(const char *what, cost c, double reading) {
    printf("%s\t%.2f\t%.2f\t%.2f\t%.0f\n", what, c.wall, c.cpu, reading / c.wall, c.peak);
    fflush(stdout);
}

/* Programs that reject one run get two. */
static void measure(const char *program, const char *path, const char *second, double reading) {
    const char *name = strrchr(program, '/') + 1;
    cost c = time_one(program, path, NULL);
    if (!c.ended_well && !c.stopped) c = time_one(program, path, second);
    if (c.ended_well)
        print_row(name, c, reading);
    else if (c.stopped)
        printf("# stopped after %d s, %.0f MiB: %s\n", MOST_SECONDS, c.peak, name);
    else
        printf("# not of such runs: %s\n", name);
}

static void measure_all(const char *bin, const char *path, const char *second) {
    char pattern[4096];
    glob_t programs;
    snprintf(pattern, sizeof pattern, "%s/stat-*", bin);
    if (glob(pattern, 0, NULL, &programs) != 0) give_up("no stat- programs there");
    time_one(NULL, path, NULL); /* into memory */
    const cost plain = time_one(NULL, path, NULL);
    if (!plain.ended_well) give_up("cannot read the file");
    printf("what\tseconds\tcpu\tratio\tpeak_MiB\n");
    print_row("read", plain, plain.wall);
    for (size_t i = 0; i < programs.gl_pathc; i++)
        measure(programs.gl_pathv[i], path, second, plain.wall);
    globfree(&programs);
}

int main(int argc, char **argv) {
    const int64_t steps = argc > 2 ? atoll(argv[2]) : 1000000;
    const int sites = argc > 3 ? atoi(argv[3]) : 61;
    if (argc < 2 || steps < 1 || sites < 1) {
        fprintf(stderr, "usage: bench_long_run BIN [STEPS] [SITES]\n");
        return 2;
    }
    const char *base = getenv("TMPDIR");
    char directory[1024], path[1100], second[1100];
    struct stat s = {0};
    sr_failure why = {0};
    snprintf(directory, sizeof directory, "%s/bench.XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(directory)) give_up("cannot make a directory in $TMPDIR");
    snprintf(path, sizeof path, "%s/run.h5", directory);
    snprintf(second, sizeof second, "%s/again.h5", directory);
    if (noise_run_make(path, steps, sites, &why) != SR_OK) give_up(why.text);
    if (link(path, second) != 0 || stat(path, &s) != 0) give_up("cannot link the run file");
    printf("# %lld steps, %d sites, %.2f GB\n", (long long)steps, sites, 1e-9 * (double)s.st_size);
    measure_all(argv[1], path, second);
    unlink(path), unlink(second), rmdir(directory);
    return 0;
}
