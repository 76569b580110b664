/* oracle_file.h -- reading the shared test vectors (HDF5, /caseK/in, /caseK/out; see their README).
 */
#ifndef TESTS_ORACLE_FILE_H
#define TESTS_ORACLE_FILE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct oracle_file oracle_file;

/* NULL when the file cannot be opened. */
oracle_file *oracle_open(const char *path);
void oracle_close(oracle_file *f);
int oracle_cases(const oracle_file *f);

/* An array of any number type as double; dims and count are filled (may be NULL). NULL when absent;
 * free() it. name: "in/x". */
double *oracle_read(const oracle_file *f, int k, const char *name, int64_t dim[4], int64_t *count);
/* Attribute of the case; `otherwise` when absent. */
double oracle_number(const oracle_file *f, int k, const char *name, double otherwise);
/* Text attribute of the case, "" when absent. Static storage. */
const char *oracle_text(const oracle_file *f, int k, const char *name);

/* Compares got [count] with out/NAME of the case: |got - want| <= max(atol, floor) + rtol |want|.
 * `mask` [count/width] selects rows (NULL: all). Prints the differences. False also when the
 * dataset is absent. */
bool oracle_check(const oracle_file *f, int k, const char *name, const double *got, int64_t count,
                  const uint8_t *mask, int64_t width);

#endif
