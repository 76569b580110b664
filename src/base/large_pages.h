/* large_pages.h -- memory in pages of 2 MB, for numbers that every step reads and writes again.
 *
 * A large page is contiguous in physical memory. Small pages are scattered and collide in a
 * second-level cache. A step of 100 MB needs 25,000 of them; a core translates 2,000 without a page
 * walk. */
#ifndef BASE_LARGE_PAGES_H
#define BASE_LARGE_PAGES_H

#include <stddef.h>

enum { LARGE_PAGE = 2 << 20 };

/* `bytes`, at least 1, contents undefined, aligned to a cache line. NULL when out of memory. Free
 * with free. Uses large pages where the system has them; one that would be half empty, or more,
 * stays small. */
void *large_pages_alloc(size_t bytes);

#endif
