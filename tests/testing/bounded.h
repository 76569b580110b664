/* bounded.h -- runs programs that must end by themselves and use little memory. */
#ifndef TESTS_BOUNDED_H
#define TESTS_BOUNDED_H

#include <stdint.h>

typedef struct bounded_result {
    int status, signal; /* signal: SIGXCPU after 20 seconds of a processor, SIGALRM after 200 */
    int64_t memory;     /* bytes that it had at most */
    char *text;         /* its output, messages included */
} bounded_result;

/* Runs a program of the build in the test's temporary directory, words separated by blanks, FILE
 * being the path. */
bounded_result bounded_run(const char *words, const char *path);
void bounded_free(bounded_result *r);
/* Memory limit for reading a file of n bytes: 64 MiB + 4 n. */
int64_t bounded_memory(const char *path);

#endif
