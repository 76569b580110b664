/* test_journal.c -- readers of the growing file see writes before their commit. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "journal/journal.h"
#include "journal/positional_io.h"
#include "testing/check.h"
#include "testing/sample_run.h"

enum { SIZE = 256, WRITES = 40, READS = 400 };

/* A read returns the file's bytes, patched with uncommitted writes. */
static void expect_seen(const journal *l, const unsigned char *want, rng *random) {
    for (int i = 0; i < READS; i++) {
        unsigned char seen[SIZE];
        const size_t at = rng_below(random, SIZE), size = 1 + rng_below(random, SIZE - at);
        assert_true(positional_io_read(l->fd, at, seen, size));
        journal_patch(l, at, seen, size);
        assert_memory_equal(seen, want + at, size);
    }
}

static void waiting_writes_are_seen(void **state) {
    (void)state;
    journal l;
    rng random = rng_create(5);
    unsigned char want[SIZE];
    const int fd = open(sample_path("journal"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    memset(want, 7, SIZE);
    journal_init(&l, fd);
    assert_true(journal_write(&l, true, 0, want, SIZE));
    assert_true(journal_begin(&l, false));
    for (int i = 0; i < WRITES; i++) {
        unsigned char bytes[64];
        const size_t at = rng_below(&random, SIZE - 64), size = 1 + rng_below(&random, 64);
        for (size_t k = 0; k < size; k++)
            want[at + k] = bytes[k] = (unsigned char)rng_next(&random);
        assert_true(journal_write(&l, true, at, bytes, size));
        expect_seen(&l, want, &random);
        if (i % 10 == 9) assert_true(journal_commit(&l, SIZE));
    }
    expect_seen(&l, want, &random);
    journal_free(&l);
    assert_int_equal(close(fd), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(waiting_writes_are_seen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
