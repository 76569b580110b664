#include "torture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/programs.h"

enum { QUICK = 5 };

long torture_places(void) {
    return check_places(QUICK);
}

const char *torture_faulty(void) {
    static char path[1100];
    snprintf(path, sizeof path, "PATH='%s/../faulty':\"$PATH\"; export PATH;", program_directory());
    return path;
}

long torture_place(long k, long n, long last) {
    return n < last ? 1 + (last - 1) * k / (n > 1 ? n - 1 : 1) : 1 + k;
}

void torture_read_count(long *calls, long *allocations) {
    FILE *count = fopen(program_file("count"), "r");
    assert_true(count && fscanf(count, "%ld %ld", calls, allocations) == 2);
    fclose(count);
}

void torture_begin(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    setenv("OMP_WAIT_POLICY", "passive", 0);
    setenv("GCOV_ERROR_FILE", "/dev/null", 1); /* allocations of gcov's own fail, too */
}
