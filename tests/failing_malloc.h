/* failing_malloc.h -- the n-th allocation fails, and what is not freed is counted. A program that uses
 * this has malloc and its kin replaced; under the address sanitizer, which replaces them too, there is
 * none of it. */
#ifndef TESTS_FAILING_MALLOC_H
#define TESTS_FAILING_MALLOC_H

#include <stdbool.h>

/* False: say so and skip. */
bool failing_malloc_there(void);
/* From now on allocation n (from 0) fails, -1: none. */
void failing_malloc_begin(long n);
/* Stops; what was allocated since and is not freed. */
long failing_malloc_end(void);

#endif
