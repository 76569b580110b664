/* Memory of large_pages_alloc has the promised size and alignment. It requests large pages for the
 * pages that are more than half used. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/large_pages.h"
#include "testing/check.h"

enum { HALF = LARGE_PAGE / 2 };

static void memory_is_aligned_and_whole(void **state) {
    (void)state;
    const size_t sizes[] = {1, 63, 64, 65, HALF, HALF + 1, LARGE_PAGE, LARGE_PAGE + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *memory = large_pages_alloc(sizes[i]);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 64, 0);
        memset(memory, 1, sizes[i]);
        free(memory);
    }
#ifndef __SANITIZE_ADDRESS__ /* which ends the program instead */
    assert_null(large_pages_alloc(PTRDIFF_MAX - LARGE_PAGE));
#endif
}

/* Does the mapping of `address` request large pages? Flag hg of /proc/self/smaps. */
static bool asks_for_large_pages(const void *address) {
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    bool inside = false, asks = false;
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        unsigned long first, end;
        if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
            inside = (uintptr_t)address >= first && (uintptr_t)address < end;
        if (inside && !strncmp(line, "VmFlags:", 8)) asks = strstr(line, " hg") != NULL;
    }
    fclose(f);
    return asks;
}

static void large_pages_are_more_than_half_used(void **state) {
    (void)state;
    const struct {
        size_t bytes;
        bool first, second;
    } cases[] = {{HALF, false, false},
                 {HALF + 1, true, false},
                 {LARGE_PAGE + HALF, true, false},
                 {LARGE_PAGE + HALF + 1, true, true}};
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) != 0) skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *memory = large_pages_alloc(cases[i].bytes);
        assert_non_null(memory);
        assert_int_equal(asks_for_large_pages(memory), cases[i].first);
        if (cases[i].bytes > LARGE_PAGE)
            assert_int_equal(asks_for_large_pages(memory + LARGE_PAGE), cases[i].second);
        free(memory);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_and_whole),
        cmocka_unit_test(large_pages_are_more_than_half_used),
    };
    mallopt(M_MMAP_THRESHOLD, 1 << 16); /* a separate mapping for each, unmapped by free */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
